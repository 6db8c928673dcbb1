"""Nested cross-validation of linear models: the same folds for every method, here or in other processes.

A method gets the training rows of an outer split and the inner folds to choose its knobs by, and returns intercept and
coefficients on the scale of the data; everything else is computed from those.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

__all__ = ["Model", "Problem", "Record", "make_splits", "run_here", "run_there"]

Model = tuple[float, np.ndarray]  # intercept and coefficients
Folds = list[tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Problem:
    """Data and outer splits: ``splits[j]`` has 0 for rows held out, and the inner fold (1, 2, ...) of the others."""

    name: str
    X: np.ndarray
    y: np.ndarray  # 0 and 1 for the logistic loss
    loss: str
    splits: np.ndarray  # (J, n)

    def parts(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        """Training and held-out rows of an outer split."""
        return np.flatnonzero(self.splits[j] > 0), np.flatnonzero(self.splits[j] == 0)

    def inner_folds(self, j: int) -> Folds:
        """Rows of each inner fold, counted among the training rows of an outer split."""
        label = self.splits[j][self.splits[j] > 0]
        return [(np.flatnonzero(label != k), np.flatnonzero(label == k)) for k in np.unique(label)]


@dataclass
class Record:
    """What a method did on each outer split."""

    error: list[float] = field(default_factory=list)
    deviance: list[float] = field(default_factory=list)
    variables: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    models: list[Model] = field(default_factory=list)

    @property
    def figures(self) -> dict[str, list[float]]:
        """All but the models."""
        return {what: getattr(self, what) for what in ("error", "deviance", "variables", "seconds")}

    def add(self, problem: Problem, j: int, model: Model, seconds: float) -> None:
        """Score the rows held out: misclassification or squared error, and the deviance."""
        rows = problem.parts(j)[1]
        y, eta = problem.y[rows], model[0] + problem.X[rows] @ model[1]
        if problem.loss == "gaussian":
            error = deviance = float(np.mean((y - eta) ** 2))
        else:
            margin = np.where(y > 0, eta, -eta)
            error = float(np.mean(np.where(margin == 0, 0.5, margin < 0)))
            deviance = float(2 * np.mean(np.logaddexp(0.0, -margin)))
        self.error.append(error)
        self.deviance.append(deviance)
        self.variables.append(float(np.count_nonzero(model[1])))
        self.seconds.append(seconds)
        self.models.append(model)


def make_splits(y: np.ndarray, loss: str, repeats: int, folds: int = 5, seed: int = 0) -> np.ndarray:
    """Repeated outer folds with inner folds inside, stratified where there are classes."""
    from sklearn.model_selection import KFold, StratifiedKFold

    kind, splits = (StratifiedKFold if loss == "logistic" else KFold), []
    for repeat in range(repeats):
        outer = kind(folds, shuffle=True, random_state=seed + repeat)
        for k, (train, _) in enumerate(outer.split(y, y)):
            split = np.zeros(len(y), dtype=int)
            inner = kind(folds, shuffle=True, random_state=1000 + seed + folds * repeat + k)
            for i, (_, held) in enumerate(inner.split(y[train], y[train])):
                split[train[held]] = i + 1
            splits.append(split)
    return np.array(splits)


def run_here(problem: Problem, fit: Callable[[np.ndarray, np.ndarray, Folds], dict[str, Model]]) -> dict[str, Record]:
    """Methods of this process; those that come from one fit share its time."""
    records: dict[str, Record] = {}
    for j in range(len(problem.splits)):
        train, _ = problem.parts(j)
        inner = problem.inner_folds(j)
        X, y = np.ascontiguousarray(problem.X[train]), problem.y[train]
        begun = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            models = fit(X, y, inner)
        seconds = time.perf_counter() - begun
        for name, model in models.items():
            records.setdefault(name, Record()).add(problem, j, model, seconds)
    return records


def run_there(
    problem: Problem, command: list[str], limit: float, variables: dict[str, str] | None = None
) -> dict[str, Record]:
    """Methods of another process, which reads the problem from a folder and writes ``NAME.bin`` for each of them.

    A file holds for each split the seconds, the intercept and the coefficients. What is not done within the limit is
    left out. ``variables`` are added to its environment.
    """
    J, p = len(problem.splits), problem.X.shape[1]
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        np.asfortranarray(problem.X).T.tofile(home / "x.bin")
        problem.y.astype(float).tofile(home / "y.bin")
        problem.splits.astype(float).tofile(home / "splits.bin")
        meta = {"n": len(problem.y), "p": p, "splits": J, "loss": problem.loss}
        (home / "meta.tsv").write_text("".join(f"{key}\t{value}\n" for key, value in meta.items()))
        try:
            options = {"timeout": limit, "env": {**os.environ, **(variables or {})}}
            done = subprocess.run([*command, folder], capture_output=True, text=True, check=False, **options)
            if done.returncode:
                print(f"{problem.name}: {' '.join(command[-1:])} failed: {done.stderr.strip()[-300:]}")
        except subprocess.TimeoutExpired:
            print(f"{problem.name}: {' '.join(command[-1:])} took more than {limit:g} s")
        records = {}
        for file in sorted(home.glob("model_*.bin")):
            table = np.fromfile(file)
            if len(table) == J * (p + 2):  # else it was not finished
                record = records[file.stem.removeprefix("model_")] = Record()
                for j, row in enumerate(table.reshape(J, p + 2)):
                    record.add(problem, j, (float(row[1]), row[2:]), float(row[0]))
    return records
