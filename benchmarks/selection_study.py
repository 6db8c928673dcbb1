"""What selection rules are worth on data with known truth: ``python -m benchmarks.selection_study``.

The paper's logistic simulation (p = 80, 20 true columns, M = 1, r = 0.25), 20 seeds for each n: models chosen by
cross-validation against those of R glmnet on the same folds, stability selection against its error bound, knockoffs
against their false discovery rate. Tables in markdown are printed and written to ``selection_study.md``.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import bregpath
from benchmarks.machine import write_page
from benchmarks.report import markdown

P, S = 80, 20
TEST_ROWS = 10_000
MODELS = {
    "bregpath, t_min": "ours",
    "bregpath, t_1se": "ours",
    "bregpath, t_1se refitted": "ours",
    "bregpath, t_1se by glmnet's rule": "ours",
    "bregpath, EBIC": "ours",
    "bregpath, GIC": "ours",
    "glmnet, lambda.min": "R",
    "glmnet, lambda.1se": "R",
    "relaxed lasso, min": "R",
    "relaxed lasso, 1se": "R",
}

R_SCRIPT = r"""
suppressPackageStartupMessages(library(glmnet))
folder <- commandArgs(trailingOnly = TRUE)[1]
read_numbers <- function(name) {
  connection <- file(file.path(folder, name), "rb")
  on.exit(close(connection))
  readBin(connection, "double", file.size(file.path(folder, name)) / 8)
}
y <- read_numbers("y.bin")
X <- matrix(read_numbers("x.bin"), nrow = length(y))
folds <- read_numbers("folds.bin")
common <- list(x = X, y = y, family = "binomial", foldid = folds, lambda.min.ratio = 0.01)
lasso <- do.call(cv.glmnet, common)
relaxed <- suppressWarnings(do.call(cv.glmnet, c(common, relax = TRUE)))
models <- cbind(
  as.numeric(coef(lasso, s = "lambda.min")), as.numeric(coef(lasso, s = "lambda.1se")),
  as.numeric(coef(relaxed, s = "lambda.min", gamma = "gamma.min")),
  as.numeric(coef(relaxed, s = "lambda.1se", gamma = "gamma.1se"))
)
writeBin(as.numeric(models), file.path(folder, "models.bin"))
"""


@dataclass
class Record:
    """Figures of one row of a table, a list over seeds each."""

    figures: dict[str, list[float]] = field(default_factory=dict)

    def add(self, **figures: float) -> None:
        for name, value in figures.items():
            self.figures.setdefault(name, []).append(float(value))

    def mean(self, name: str) -> float:
        return float(np.mean(self.figures[name]))

    def error(self, name: str) -> float:
        """Standard error of the mean."""
        return float(np.std(self.figures[name], ddof=1) / np.sqrt(len(self.figures[name])))

    def cell(self, name: str, digits: int) -> str:
        return f"{self.mean(name):.{digits}f} ({self.error(name):.{digits}f})"


# --- models chosen on a path ---------------------------------------------------------------------------------


def fresh_rows(truth: Any, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the same model that no method has seen."""
    rng = np.random.default_rng([20180409, seed])
    X = np.empty((TEST_ROWS, P))
    X[:, 0] = rng.standard_normal(TEST_ROWS)
    for j in range(1, P):
        X[:, j] = 0.25 * X[:, j - 1] + np.sqrt(1 - 0.25**2) * rng.standard_normal(TEST_ROWS)
    eta = truth.intercept + X @ truth.coef
    return X, np.where(rng.logistic(size=TEST_ROWS) > -eta, 1, -1)


def our_models(data: Any, folds: list[Any]) -> dict[str, tuple[float, np.ndarray]]:
    selection = bregpath.cross_validate(data.X, data.y, loss="logistic", cv=folds)
    path = bregpath.trace_path(data.X, data.y, loss="logistic")
    refit = bregpath.relaxed_refit(path, selection.t_1se, data.X, data.y)
    bold = bregpath.cross_validate(data.X, data.y, loss="logistic", cv=folds, se_rule="glmnet")
    times = {"t_min": selection.t_min, "t_1se": selection.t_1se, "t_1se by glmnet's rule": bold.t_1se}
    for kind in ("ebic", "gic"):
        times[kind.upper()] = bregpath.information_criterion(path, kind, n=len(data.y)).t
    models = {f"bregpath, {name}": path.at(t)[1:] for name, t in times.items()}
    models["bregpath, t_1se refitted"] = (refit.intercept, refit.coef)
    return models


def glmnet_models(data: Any, folds: list[Any]) -> dict[str, tuple[float, np.ndarray]]:
    """The lasso and the relaxed lasso of R glmnet, with the same folds."""
    labels = np.empty(len(data.y))
    for k, (_, held_out) in enumerate(folds):
        labels[held_out] = k + 1
    names = [name for name, home in MODELS.items() if home == "R"]
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        np.asfortranarray(data.X).ravel(order="F").tofile(home / "x.bin")
        (data.y > 0).astype(float).tofile(home / "y.bin")
        labels.tofile(home / "folds.bin")
        (home / "study.R").write_text(R_SCRIPT)
        subprocess.run(["Rscript", str(home / "study.R"), folder], check=True, capture_output=True)
        models = np.fromfile(home / "models.bin").reshape(len(names), P + 1)
    return {name: (float(theta[0]), theta[1:]) for name, theta in zip(names, models, strict=True)}


def study_models(n: int, seeds: range, with_r: bool) -> dict[str, Record]:
    from sklearn.model_selection import StratifiedKFold

    records = {name: Record() for name, home in MODELS.items() if with_r or home == "ours"}
    for seed in seeds:
        data = bregpath.datasets.make_logistic(n, P, S, 1.0, 0.25, seed=seed)
        X, y = fresh_rows(data, seed)
        folds = list(StratifiedKFold(5, shuffle=True, random_state=seed).split(data.y, data.y))
        models = our_models(data, folds) | (glmnet_models(data, folds) if with_r else {})
        for name, (intercept, coef) in models.items():
            records[name].add(
                error=np.mean(np.where(intercept + X @ coef > 0, 1, -1) != y),
                l2=np.linalg.norm(coef - data.coef),
                found=np.count_nonzero(coef[:S]),
                false=np.count_nonzero(coef[S:]),
            )
    return records


# --- variables selected with a promise -----------------------------------------------------------------------


def study_stability(n: int, seeds: range, max_false: float) -> Record:
    record = Record()
    for seed in seeds:
        data = bregpath.datasets.make_logistic(n, P, S, 1.0, 0.25, seed=seed)
        result = bregpath.stability_selection(data.X, data.y, loss="logistic", max_false=max_false, seed=seed)
        record.add(
            found=np.count_nonzero(result.selected < S), false=np.count_nonzero(result.selected >= S),
            bound=result.error_bound, size=result.size[-1],
        )  # fmt: skip
    return record


def hard_design(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A linear model in which every true column has a noise column that is correlated with it (0.8)."""
    data = bregpath.datasets.make_linear(n, P, S, 1.0, 0.25, seed=seed)
    X = np.array(data.X)
    X[:, -S:] = 0.8 * X[:, :S] + 0.6 * X[:, -S:]
    eta = X @ data.coef
    return X, eta + np.random.default_rng([1, seed]).standard_normal(n) * eta.std()


def study_knockoffs(n: int, seeds: range, statistic: str, hard: bool) -> dict[float, Record]:
    records = {0.1: Record(), 0.2: Record()}
    for seed in seeds:
        if hard:
            (X, y), loss = hard_design(n, seed), "gaussian"
        else:
            data, loss = bregpath.datasets.make_logistic(n, P, S, 1.0, 0.25, seed=seed), "logistic"
            X, y = data.X, data.y
        result = bregpath.knockoff_select(X, y, loss=loss, statistic=statistic, seed=seed)
        for fdr, record in records.items():
            selected = result.at_level(fdr).selected
            record.add(
                share=np.count_nonzero(selected >= S) / max(len(selected), 1),
                power=np.count_nonzero(selected < S) / S,
            )
    return records


# --- tables --------------------------------------------------------------------------------------------------


def table_of_models(sizes: list[int], seeds: range, with_r: bool) -> str:
    rows = []
    for n in sizes:
        for name, record in study_models(n, seeds, with_r).items():
            rows.append(
                [str(n), name, record.cell("error", 4), record.cell("l2", 2), record.cell("found", 1),
                 record.cell("false", 1)]
            )  # fmt: skip
    return markdown(["n", "model", "error", "l2 error", f"true columns of {S}", "false positives"], rows)


def table_of_stability(sizes: list[int], seeds: range) -> str:
    rows = []
    for n in sizes:
        for max_false in (1.0, 5.0):
            record = study_stability(n, seeds, max_false)
            held = "yes" if record.mean("false") <= record.mean("bound") else "NO"
            rows.append(
                [str(n), f"{max_false:g}", record.cell("size", 1), record.cell("found", 1), record.cell("false", 2),
                 f"{record.mean('bound'):.2f}", held]
            )  # fmt: skip
    head = ["n", "max_false", "columns a replicate", f"true columns of {S}", "false positives", "bound", "held"]
    return markdown(head, rows)


def table_of_knockoffs(sizes: list[int], seeds: range) -> str:
    rows = []
    for n in sizes:
        for hard in (False, True):
            for statistic in ("area", "entry"):
                for fdr, record in study_knockoffs(n, seeds, statistic, hard).items():
                    held = "yes" if record.mean("share") <= fdr + 2 * record.error("share") else "NO"
                    data = "linear, noise near truth" if hard else "logistic"
                    rows.append(
                        [str(n), data, statistic, f"{fdr:g}", record.cell("share", 3), record.cell("power", 2), held]
                    )
    return markdown(["n", "data", "statistic", "level", "false discovery rate", "power", "held"], rows)


def main(argv: list[str] | None = None) -> str:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.selection_study", description=__doc__)
    parser.add_argument("--sizes", default="400,800", help="numbers of rows")
    parser.add_argument("--seeds", type=int, default=20, help="data sets for models and stability selection")
    parser.add_argument("--knockoff-seeds", type=int, default=100, help="data sets for knockoffs")
    parser.add_argument("--no-r", action="store_true", help="without R glmnet")
    parser.add_argument("--out", default="benchmarks/results")
    args = parser.parse_args(argv)
    sizes = [int(n) for n in args.sizes.split(",")]
    with_r = not args.no_r and shutil.which("Rscript") is not None
    parts = []
    for title, text in (
        ("Models", lambda: table_of_models(sizes, range(args.seeds), with_r)),
        ("Stability selection", lambda: table_of_stability(sizes, range(args.seeds))),
        ("Knockoffs", lambda: table_of_knockoffs(sizes, range(args.knockoff_seeds))),
    ):
        parts.append(f"### {title}\n\n{text()}")
        print(parts[-1], end="\n\n", flush=True)
    page = "\n\n".join(parts) + "\n"
    print(f"written: {write_page(args.out, 'selection_study.md', page)}")
    return page


if __name__ == "__main__":
    main()
