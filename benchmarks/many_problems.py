"""How the chosen models predict on many regressions: ``python -m benchmarks.many_problems``.

Not a handful of data sets but some fifty problems made of the data at hand: one variable from all others. Nested
cross-validation with the same outer and inner folds for all methods, as in ``benchmarks.real_data``, here for the
question whether to predict by a path or by its mean over time.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases import data_folder
from benchmarks.nested import Folds, Model, Problem, make_splits, run_here
from benchmarks.processes import ROOT
from benchmarks.real_data import glmnet, libsvm, markdown, model_at, validate

SEED = 300  # of the splits; those of benchmarks.real_data begin at 0
NAMES = {
    "kappa 10": "kappa = 10, the path",
    "kappa 10, mean": "kappa = 10, its mean",
    "kappa cv, path": 'kappa = "cv", the path (`average=None`)',
    "kappa cv": 'kappa = "cv"',
    "elastic_net": "elastic net, alpha by the same folds",
}

# --- problems ------------------------------------------------------------------------------------------------

Made = tuple[str, np.ndarray, np.ndarray, str]  # name, X, y, loss


def digit_pairs(rng: np.random.Generator) -> Iterator[Made]:
    """One digit against another."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    for pair in ("06", "17", "18", "23", "35", "39", "59", "58", "89", "27"):
        rows = (y == int(pair[0])) | (y == int(pair[1]))
        yield pair, X[rows], y[rows] == int(pair[1]), "logistic"


def pixels(rng: np.random.Generator) -> Iterator[Made]:
    """A pixel of 250 digits from the others."""
    from sklearn.datasets import load_digits

    X = load_digits(return_X_y=True)[0]
    for j in (10, 20, 27, 29, 36, 43, 45, 53):
        rows = rng.choice(len(X), 250, replace=False)
        yield str(j), np.delete(X[rows], j, axis=1), X[rows, j], "gaussian"


def census(rng: np.random.Generator) -> Iterator[Made]:
    """The income of 300 to 2000 people (a9a)."""
    X, y, loss = libsvm("a9a", None)
    for i, n in enumerate((2000, 2000, 1000, 1000, 500, 500, 300, 300)):
        rows = rng.choice(len(y), n, replace=False)
        yield f"{n} ({i})", X[rows].toarray(), y[rows], loss


def proteins(rng: np.random.Generator) -> Iterator[Made]:
    """The logarithm of a protein in 300 cells from those of the others, with squares and products."""
    from sklearn.preprocessing import PolynomialFeatures

    X = np.log(np.loadtxt(data_folder() / "sachs_observational.csv", delimiter=",", skiprows=1))
    for j in (0, 1, 2, 4, 5, 7, 8, 10):
        rows, others = rng.choice(len(X), 300, replace=False), np.delete(X, j, axis=1)
        others = (others - others.mean(axis=0)) / others.std(axis=0)
        others = PolynomialFeatures(2, include_bias=False).fit_transform(others)
        yield str(j), others[rows], X[rows, j], "gaussian"


def roll_calls(rng: np.random.Generator) -> Iterator[Made]:
    """A roll call of the Senate from the others: 91 senators."""
    votes = _votes().T
    for j in rng.choice(np.flatnonzero(np.abs((votes > 0.5).mean(axis=0) - 0.5) < 0.2), 8, replace=False):
        yield str(j), np.delete(votes, j, axis=1), votes[:, j] > 0.5, "logistic"


def senators(rng: np.random.Generator) -> Iterator[Made]:
    """A senator from the others: 657 roll calls."""
    votes = _votes()
    for j in rng.choice(np.flatnonzero(np.abs((votes > 0.5).mean(axis=0) - 0.5) < 0.15), 6, replace=False):
        yield str(j), np.delete(votes, j, axis=1), votes[:, j] > 0.5, "logistic"


def _votes() -> np.ndarray:
    """Of the senators who voted in more than 80 % of the roll calls; a vote that is missing is their mean."""
    votes = np.genfromtxt(data_folder() / "senate110_votes.csv", delimiter=",", skip_header=1)[:, 1:]
    votes = votes[:, np.isnan(votes).mean(axis=0) < 0.2]
    return np.where(np.isnan(votes), np.nanmean(votes, axis=0), votes)


def residues(rng: np.random.Generator) -> Iterator[Made]:
    """Whether 600 sequences of a protein family have the commonest residue at one place, from all other places."""
    from bregpath.graphs import read_alignment

    states = read_alignment(data_folder() / "1atzA.fasta.gz").letters
    for j in (10, 25, 33, 47, 60, 12):
        rows = states[rng.choice(len(states), 600, replace=False)]
        found, counts = np.unique(rows[:, j], return_counts=True)
        columns = [rows[:, k] == state for k in range(rows.shape[1]) if k != j for state in np.unique(rows[:, k])]
        X = np.array([column for column in columns if 12 <= column.sum() <= 588], dtype=float).T
        yield str(j), X, rows[:, j] == found[counts.argmax()], "logistic"


GROUPS = {
    "digits": digit_pairs, "pixels": pixels, "census": census, "proteins": proteins,
    "roll calls": roll_calls, "senators": senators, "residues": residues,
}  # fmt: skip


def problems(group: str, repeats: int, most: int) -> Iterator[Problem]:
    for i, (name, X, y, loss) in enumerate(GROUPS[group](np.random.default_rng(5))):
        if i < most:
            X = np.asarray(X, dtype=float)[:, np.std(X, axis=0) > 0]
            splits = make_splits(np.asarray(y), loss, repeats, seed=SEED)
            yield Problem(f"{group} {name}", X, np.asarray(y, dtype=float), loss, splits)


# --- methods -------------------------------------------------------------------------------------------------


def fit(loss: str, X: np.ndarray, y: np.ndarray, folds: Folds) -> dict[str, Model]:
    options: dict[str, dict[str, Any]] = {
        "kappa 10": {}, "kappa 10, mean": {"average": "linear"},
        "kappa cv, path": {"kappa": "cv", "average": None}, "kappa cv": {"kappa": "cv"},
    }  # fmt: skip
    chosen = {name: validate(loss, X, y, folds, **one) for name, one in options.items()}
    return {name: model_at(selection, selection.t) for name, selection in chosen.items()}


def study(problem: Problem, limit: float) -> dict[str, dict[str, list[float]]]:
    records = run_here(problem, partial(fit, problem.loss))
    records |= glmnet(problem, limit, "lasso,elastic_net")
    return {name: record.figures for name, record in records.items()}


# --- tables --------------------------------------------------------------------------------------------------


def row(stored: dict[str, dict[str, dict[str, list[float]]]], method: str) -> list[str]:
    """Over some problems: how often the method is at least as good as the lasso, and by how much."""

    def means(name: str, what: str) -> np.ndarray:
        return np.array([np.mean(one[name][what]) for one in stored.values()])

    def at_most(peer: str, what: str) -> str:
        return str(int(np.sum(means(method, what) <= means(peer, what) + 1e-9)))

    ratio = np.log(means(method, "deviance") / means("lasso", "deviance"))
    size = np.median(means(method, "variables") / np.maximum(means("lasso", "variables"), 1.0))
    against = [at_most(peer, what) for what in ("error", "deviance") for peer in ("lasso", "elastic_net")]
    return [*against, f"{np.exp(np.median(ratio)):.3f}", f"{np.exp(ratio.mean()):.3f}", f"{size:.2f}"]


def table(results: dict[str, dict[str, dict[str, list[float]]]]) -> str:
    head = [
        "", "error at most the lasso's", "the elastic net's", "deviance at most the lasso's", "the elastic net's",
        "deviance / the lasso's, median", "geometric mean", "variables / the lasso's, median",
    ]  # fmt: skip
    complete = {name: one for name, one in results.items() if {"lasso", "elastic_net"} <= set(one)}
    return markdown(head, [[text, *row(complete, name)] for name, text in NAMES.items()] if complete else [])


def make_page(results: dict[str, dict[str, dict[str, dict[str, list[float]]]]]) -> str:
    everything = {name: one for group in results.values() for name, one in group.items()}
    kinds = "\n".join(f"* **{group}** ({len(results[group])}): {GROUPS[group].__doc__}" for group in results)
    parts = "\n\n".join(f"## {group.capitalize()}, {len(one)}\n\n{table(one)}" for group, one in results.items())
    splits = len(next(iter(next(iter(everything.values())).values()))["error"])
    return PAGE.format(n=len(everything), splits=splits, kinds=kinds, everything=table(everything), parts=parts)


def main(argv: list[str] | None = None) -> str:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.many_problems", description=__doc__)
    parser.add_argument("--groups", default=",".join(GROUPS), help="kinds of problems, separated by commas")
    parser.add_argument("--repeats", type=int, default=2, help="repeats of the five outer folds")
    parser.add_argument("--most", type=int, default=100, help="problems of a kind")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for glmnet, a problem")
    parser.add_argument("--out", default="benchmarks/results", help="folder for the record")
    parser.add_argument("--page", default=str(ROOT / "docs" / "guide" / "many_problems.md"), help="page to write")
    args = parser.parse_args(argv)
    results: dict[str, Any] = {}
    for group in args.groups.split(","):
        results[group] = {}
        for problem in problems(group, args.repeats, args.most):
            results[group][problem.name] = study(problem, args.limit)
            print(problem.name, *problem.X.shape, flush=True)
        print(f"\n{table(results[group])}\n", flush=True)
    Path(args.out).mkdir(parents=True, exist_ok=True)
    (Path(args.out) / "many_problems.json").write_text(json.dumps(results))
    page = make_page(results)
    Path(args.page).write_text(page)
    return page


PAGE = """# Paths and their means on many regressions

Which predicts better, a path or its mean over time ([kappa and t](kappa_and_t.md))? {n} regressions, one variable from
all others, by nested cross-validation: {splits} outer splits each, five inner folds of the training rows to choose all
knobs by the deviance, the same for all methods. Lasso and elastic net (alpha from five values) are R's cv.glmnet. This
page is written by `python -m benchmarks.many_problems`. Problems of a kind are of one data set, so that they are no
independent sample. That a linear mean is the default was settled on other splits and samples of the same data.

{kinds}

## All {n}

{everything}

{parts}
"""


if __name__ == "__main__":
    main()
