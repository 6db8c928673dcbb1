"""Whole paths with groups against adelie: ``python -m benchmarks.groups``.

Simulated columns (correlation 0.25 from one to the next, or indicators of labels), groups in a row of which ten have
coefficients, and noise of deviation 1 around a predictor of some deviation. Both systems have the same standardised X,
thresholds in proportion to the root of a group's size, and the usual window. Processor time on one thread, the least
of some repeats that take turns; adelie runs in an interpreter of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases import Data
from benchmarks.processes import ROOT, peers_python

ONE_THREAD = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Case:
    n: int
    p: int
    size: int  # of a group; 0: indicators of labels, of which there are three to nine
    deviation: float = 1.0  # of the predictor
    loss: str = "gaussian"

    @property
    def name(self) -> str:
        groups = f"groups of {self.size}" if self.size else "indicators"
        return f"{self.n} x {self.p}, {groups}, {self.deviation:g}, {self.loss}"

    def make(self, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((self.n, self.p))
        for j in range(1, self.p):
            X[:, j] = 0.25 * X[:, j - 1] + 0.97 * X[:, j]
        groups = np.arange(self.p) // max(self.size, 1)
        if self.size == 0:
            levels = rng.integers(3, 10, self.p // 6)
            X = np.concatenate([np.eye(k)[rng.integers(0, k, self.n)] for k in levels], axis=1)
            groups = np.repeat(np.arange(len(levels)), levels)
        eta = X @ (rng.standard_normal(len(groups)) * np.isin(groups, rng.permutation(groups.max() + 1)[:10]))
        eta *= self.deviation / eta.std()
        y = eta + rng.standard_normal(self.n)
        if self.loss == "logistic":
            y = (rng.random(self.n) < 1 / (1 + np.exp(eta.mean() - eta))) + 0.0
        return np.asfortranarray((X - X.mean(axis=0)) / X.std(axis=0)), y, groups


CASES = (
    Case(400, 80, 4),
    Case(1000, 200, 5),
    Case(1000, 200, 5, deviation=3.0),
    Case(2000, 180, 0),
    Case(3000, 500, 10),
    Case(1500, 1000, 5),
    Case(3000, 1500, 5),
    Case(6000, 2000, 5, deviation=3.0),
    Case(1000, 200, 5, loss="logistic"),
    Case(500, 5000, 5, deviation=2.0, loss="logistic"),
)


def spent(system: str, X: Any, y: Any, groups: Any, loss: str) -> float:
    """Processor time of one path."""
    if system == "adelie":
        from benchmarks.peers import adelie

        begun = time.process_time()
        adelie.fit(Data(X, y, loss), groups=np.flatnonzero(np.diff(groups, prepend=-1)))
        return time.process_time() - begun
    import bregpath

    begun = time.process_time()
    assert bregpath.trace_path(X, y, loss=loss, penalty="group-sqrt", groups=groups).coef.any()
    return time.process_time() - begun


def measure(system: str, file: str) -> None:
    """A path whenever asked, of the problem in a file."""
    with np.load(file) as data:
        X, y, groups, loss = np.asfortranarray(data["X"]), data["y"], data["groups"], str(data["loss"])
    spent(system, X[:50, groups < 2], y[:50], groups[groups < 2], loss)  # imports
    while input() == "go":
        print(json.dumps(spent(system, X, y, groups, loss)), flush=True)


def seconds(case: Case, systems: dict[str, str], repeats: int, seed: int) -> dict[str, float]:
    """The least of some paths of each system."""
    X, y, groups = case.make(seed)
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "problem.npz")
        np.savez(file, X=X, y=y, groups=groups, loss=np.array(case.loss))
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT, "env": ONE_THREAD}
        command = ["-m", "benchmarks.groups", "--measure", file, "--system"]
        workers = {name: subprocess.Popen([python, *command, name], **pipes) for name, python in systems.items()}
        times: dict[str, list[float]] = {name: [] for name in systems}
        for _ in range(repeats):
            for name, worker in workers.items():
                worker.stdin.write("go\n")
                worker.stdin.flush()
                times[name].append(json.loads(worker.stdout.readline()))
        for worker in workers.values():
            worker.communicate("done\n")
    return {name: min(x) for name, x in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.groups", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="the two smallest cases")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--system", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        return measure(args.system, args.measure)
    systems = {"bregpath": sys.executable, **({"adelie": python} if (python := peers_python()) else {})}
    print(f"| {' | '.join(['case', *systems])} |\n|{'---|' * (len(systems) + 1)}")
    for case in CASES[: 2 if args.quick else None]:
        times = seconds(case, systems, args.repeats, args.seed)
        print(f"| {' | '.join([case.name, *(f'{t:.3g}' for t in times.values())])} |", flush=True)
    return None


if __name__ == "__main__":
    main()
