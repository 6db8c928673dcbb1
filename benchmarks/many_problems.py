"""How the chosen models predict on many regressions: ``python -m benchmarks.many_problems``.

Not a handful of data sets but many: thirty that come with R packages (Debian's, see ``benchmarks.install``), and some
fifty problems made of the data at hand, one variable from all others. Nested cross-validation with the same outer and
inner folds for all methods, as in ``benchmarks.real_data``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases import data_folder
from benchmarks.nested import Folds, Model, Problem, make_splits, run_here
from benchmarks.processes import ROOT
from benchmarks.real_data import PEERS, glmnet, libsvm, markdown, model_at, validate

SEED = 300  # of the splits; those of benchmarks.real_data begin at 0
OUTER = 5  # folds
NAMES = {
    "kappa 10": "kappa = 10, the path",
    "kappa 10, mean": "kappa = 10, its mean",
    "kappa cv, path": 'kappa = "cv", the path (`average=None`)',
    "kappa cv": 'kappa = "cv"',
    "kappa cv, blend": 'kappa = "cv", blend',
    "kappa cv, blend pruned": 'kappa = "cv", blend, pruned',
    "kappa cv, sparse": 'kappa = "cv", sparse choice',
    "kappa cv, sparse 1se": 'kappa = "cv", sparse choice, t_1se',
    "kappa cv, pruned": 'kappa = "cv", sparse choice, pruned',
    "elastic_net": "elastic net, alpha by the same folds",
    "lasso_1se": "lasso, lambda.1se",
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


def r_packages(rng: np.random.Generator) -> Iterator[Made]:
    """Data sets of the R packages caret, kernlab, MASS, mlbench, modeldata, multtest and pls."""
    rscript = shutil.which("Rscript")
    if rscript is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([rscript, str(PEERS / "data_sets.R"), folder], check=True, capture_output=True)
        for file in sorted(Path(folder).glob("*.bin")):
            n, p, is_class = np.fromfile(file, dtype=np.int32, count=3)
            table = np.fromfile(file, offset=12)
            yield file.stem, table[: n * p].reshape(p, n).T, table[n * p :], "logistic" if is_class else "gaussian"


GROUPS = {
    "R packages": r_packages, "digits": digit_pairs, "pixels": pixels, "census": census, "proteins": proteins,
    "roll calls": roll_calls, "senators": senators, "residues": residues,
}  # fmt: skip


def problems(group: str, repeats: int, most: int) -> Iterator[Problem]:
    for i, (name, X, y, loss) in enumerate(GROUPS[group](np.random.default_rng(5))):
        if i < most:
            X = np.asarray(X, dtype=float)[:, np.std(X, axis=0) > 0]
            splits = make_splits(np.asarray(y), loss, repeats, OUTER, seed=SEED)
            yield Problem(f"{group} {name}", X, np.asarray(y, dtype=float), loss, splits)


# --- methods -------------------------------------------------------------------------------------------------


def fit(loss: str, X: np.ndarray, y: np.ndarray, folds: Folds) -> dict[str, Model]:
    options: dict[str, dict[str, Any]] = {
        "kappa 10": {}, "kappa 10, mean": {"average": "linear"},
        "kappa cv, path": {"kappa": "cv", "average": None}, "kappa cv": {"kappa": "cv"},
    }  # fmt: skip
    chosen = {name: validate(loss, X, y, folds, **one) for name, one in options.items()}
    sparse = chosen["kappa cv"].sparse()
    blend, pruned = chosen["kappa cv"].blend(), sparse.prune()
    few = blend.prune()
    models = {name: model_at(selection, selection.t) for name, selection in chosen.items()}
    models["kappa cv, sparse"] = model_at(sparse, sparse.t)
    models["kappa cv, sparse 1se"] = model_at(sparse, sparse.t_1se)
    models["kappa cv, blend"] = (blend.intercept, blend.coef)
    models["kappa cv, blend pruned"] = (few.intercept, few.coef)
    models["kappa cv, pruned"] = (pruned.intercept, pruned.coef)
    return models


def study(problem: Problem, limit: float) -> dict[str, dict[str, list[float]]]:
    records = run_here(problem, partial(fit, problem.loss))
    records |= glmnet(problem, limit, "lasso,lasso_1se,elastic_net")
    return {name: record.figures for name, record in records.items()}


# --- tables --------------------------------------------------------------------------------------------------


def row(stored: dict[str, dict[str, dict[str, list[float]]]], method: str) -> list[str]:
    """Over some problems: how often the method is at least as good as the lasso, and by how much."""

    def means(name: str, what: str) -> np.ndarray:
        return np.array([np.mean(one[name][what]) for one in stored.values()])

    def at_most(peer: str, what: str) -> str:
        return str(int(np.sum(means(method, what) <= means(peer, what) + 1e-9)))

    def within(figures: dict[str, dict[str, list[float]]]) -> bool:
        """Standard errors as in ``real_data.corrected``."""
        gap = np.subtract(figures[method]["error"], figures["lasso"]["error"])
        return bool(gap.mean() <= np.sqrt((1 / len(gap) + 1 / (OUTER - 1)) * gap.var(ddof=1)))

    ratio = np.log(means(method, "deviance") / means("lasso", "deviance"))
    size = means(method, "variables") / np.maximum(means("lasso", "variables"), 1.0)
    near = np.array([within(one) for one in stored.values()])
    against = [at_most(peer, what) for what in ("error", "deviance") for peer in ("lasso", "elastic_net")]
    figures = [f"{np.exp(np.median(ratio)):.3f}", f"{np.exp(ratio.mean()):.3f}", f"{np.median(size):.2f}"]
    return [*against, str(near.sum()), str((near & (size <= 0.5)).sum()), *figures]


def table(results: dict[str, dict[str, dict[str, list[float]]]]) -> str:
    head = [
        "", "error at most the lasso's", "the elastic net's", "deviance at most the lasso's", "the elastic net's",
        "error within one se of the lasso's", "and at most half its variables", "deviance / the lasso's, median",
        "geometric mean", "variables / the lasso's, median",
    ]  # fmt: skip
    known = complete(results)
    return markdown(head, [[text, *row(known, name)] for name, text in NAMES.items()] if known else [])


def complete(results: dict[str, dict[str, dict[str, list[float]]]]) -> dict[str, dict[str, dict[str, list[float]]]]:
    """The problems on which all methods were done in the time allowed."""
    return {name: one for name, one in results.items() if set(NAMES) | {"lasso"} <= set(one)}


def make_page(results: dict[str, dict[str, dict[str, dict[str, list[float]]]]]) -> str:
    made = {name: one for group, some in results.items() if group != "R packages" for name, one in some.items()}
    counts = {group: len(complete(one)) for group, one in results.items()}
    kinds = "\n".join(f"* **{group}** ({n}): {GROUPS[group].__doc__}" for group, n in counts.items())
    tables = {"One variable from the others": made, **results}
    parts = "\n\n".join(
        f"## {group[0].upper()}{group[1:]}, {len(complete(one))}\n\n{table(one)}" for group, one in tables.items()
    )
    return PAGE.format(kinds=kinds, parts=parts)


def main(argv: list[str] | None = None) -> str:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.many_problems", description=__doc__)
    parser.add_argument("--groups", default=",".join(GROUPS), help="kinds of problems, separated by commas")
    parser.add_argument("--repeats", type=int, help="repeats of the five outer folds (default: 2; R packages: 1)")
    parser.add_argument("--most", type=int, default=100, help="problems of a kind")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for glmnet, a problem")
    parser.add_argument("--out", default="benchmarks/results", help="folder for the record")
    parser.add_argument("--page", default=str(ROOT / "docs" / "guide" / "many_problems.md"), help="page to write")
    args = parser.parse_args(argv)
    record = Path(args.out) / "many_problems.json"
    record.parent.mkdir(parents=True, exist_ok=True)
    # What an earlier run wrote of other kinds is kept.
    results: dict[str, Any] = json.loads(record.read_text()) if record.exists() else {}
    for group in args.groups.split(","):
        results[group] = {}
        for problem in problems(group, args.repeats or (1 if group == "R packages" else 2), args.most):
            results[group][problem.name] = study(problem, args.limit)
            record.write_text(json.dumps(results))
            print(problem.name, *problem.X.shape, flush=True)
        print(f"\n{table(results[group])}\n", flush=True)
    page = make_page({group: results[group] for group in GROUPS if group in results})
    Path(args.page).write_text(page)
    return page


PAGE = """# Many regressions

How well do paths, their means over time, and what is chosen among kappas ([kappa and t](kappa_and_t.md)) predict,
beside lasso and elastic net? Nested cross-validation: five outer folds, twice (R packages: once), and five inner folds
of the training rows to choose all knobs by the deviance, the same for all methods. Lasso and elastic net (alpha from
five values) are R's cv.glmnet; a standard error is that of the difference to the lasso, corrected for splits that share
rows. This page is written by `python -m benchmarks.many_problems`.

Problems of a kind other than R packages are of one data set, so that they are no independent sample, and that a linear
mean is the default was settled on other splits and samples of the same data. The data sets of R packages had no part in
that; on other splits of both it was seen that four kappas choose as well as six, what is to be blended, and how much is
to be pruned.

{kinds}

{parts}
"""


if __name__ == "__main__":
    main()
