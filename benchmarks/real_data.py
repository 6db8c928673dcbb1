"""How good the chosen models are on real data, by nested cross-validation: ``python -m benchmarks.real_data``.

All methods see the same outer and inner folds: bregpath with kappa = 10, with kappa by cross-validation, blended, with
the sparse choice and with what is left of it when it is pruned; lasso, relaxed lasso, elastic net and ridge of R
glmnet; MCP and SCAD of skglm; best subsets of abess.
Data other than scikit-learn's are looked for in ``data``, or in the folder that BREGPATH_BENCH_DATA names. The tables
are printed, and written into the page of the guide.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import bregpath
from benchmarks.cases import data_folder
from benchmarks.nested import Folds, Model, Problem, Record, make_splits, run_here, run_there
from benchmarks.processes import ROOT, peers_python

PEERS = Path(__file__).parent / "peers"
SUBSAMPLE = 2000  # rows of the large sets
SIMULATION = dict(n=400, p=80, s=20, M=1.0, r=0.25)  # the paper's
NAMES = {
    "kappa 10": "bregpath, kappa = 10",
    "kappa 10, 1se": "bregpath, kappa = 10, t_1se",
    "kappa 10, 1se glmnet": "bregpath, kappa = 10, t_1se by glmnet's rule",
    "kappa cv": 'bregpath, kappa = "cv"',
    "kappa cv, blend": 'bregpath, kappa = "cv", blend',
    "kappa cv, blend pruned": 'bregpath, kappa = "cv", blend, pruned',
    "kappa cv, sparse": 'bregpath, kappa = "cv", sparse choice',
    "kappa cv, sparse 1se": 'bregpath, kappa = "cv", sparse choice, t_1se',
    "kappa cv, pruned": 'bregpath, kappa = "cv", sparse choice, pruned',
    "lasso": "lasso",
    "lasso_1se": "lasso, lambda.1se",
    "relaxed_lasso": "relaxed lasso",
    "elastic_net": "elastic net",
    "ridge": "ridge",
    "mcp": "MCP",
    "scad": "SCAD",
    "abess": "best subsets (abess)",
}


# --- data ----------------------------------------------------------------------------------------------------


def _microarray(name: str) -> tuple[np.ndarray, np.ndarray, str]:
    with np.load(data_folder() / f"{name}.npz") as stored:
        return stored["X"].astype(float), stored["y"].astype(int), "logistic"


def libsvm(name: str, n: int | None = SUBSAMPLE) -> tuple[Any, np.ndarray, str]:
    """Some of the rows as an array; all of them as a sparse matrix."""
    from sklearn.datasets import load_svmlight_file

    with gzip.open(data_folder() / f"{name}.libsvm.gz") as stream:
        X, y = load_svmlight_file(stream)
    if n is None:
        return X, (y == y.max()).astype(int), "logistic"
    rows = np.sort(np.random.default_rng(0).choice(X.shape[0], n, replace=False))
    return X[rows].toarray(), (y[rows] == y.max()).astype(int), "logistic"


def _cancer() -> tuple[np.ndarray, np.ndarray, str]:
    from sklearn.datasets import load_breast_cancer

    return (*load_breast_cancer(return_X_y=True), "logistic")


def _digits(one: int, other: int) -> tuple[np.ndarray, np.ndarray, str]:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    rows = (y == one) | (y == other)
    return X[rows], (y[rows] == other).astype(int), "logistic"


def _diabetes() -> tuple[np.ndarray, np.ndarray, str]:
    from sklearn.datasets import load_diabetes
    from sklearn.preprocessing import PolynomialFeatures

    X, y = load_diabetes(return_X_y=True)
    return PolynomialFeatures(2, include_bias=False).fit_transform(X / X.std(axis=0)), y, "gaussian"


DATA: dict[str, Callable[[], tuple[np.ndarray, np.ndarray, str]]] = {
    "colon": lambda: _microarray("colon"),
    "leukemia": lambda: _microarray("leukemia"),
    "breast cancer": _cancer,
    "digits 3 and 8": lambda: _digits(3, 8),
    "digits 4 and 9": lambda: _digits(4, 9),
    "a9a": lambda: libsvm("a9a"),
    "mushrooms": lambda: libsvm("mushrooms"),
    "diabetes with interactions": _diabetes,
}


def load(name: str, repeats: int) -> Problem:
    X, y, loss = DATA[name]()
    X = X[:, X.std(axis=0) > 0]
    return Problem(name, X, y.astype(float), loss, make_splits(y, loss, repeats))


def simulate(seed: int) -> tuple[Problem, Any]:
    """One of the paper's data sets, with fresh rows to be held out."""
    data = bregpath.datasets.make_logistic(**SIMULATION, seed=seed, n_test=5000)
    inner = make_splits(data.y > 0, "logistic", 1, seed=seed)[:1]
    folds = np.where(inner == 0, 5, inner)  # what would be held out is one of five inner folds here
    split = np.concatenate([folds, np.zeros((1, 5000), dtype=int)], axis=1)
    X, y = np.vstack([data.X, data.X_test]), np.concatenate([data.y, data.y_test]) > 0
    return Problem(f"simulation {seed}", X, y.astype(float), "logistic", split), data


# --- methods of this process ---------------------------------------------------------------------------------


def model_at(selection: Any, t: float) -> Model:
    point = selection.path.at(min(t, float(selection.path.t[-1])))
    return point.intercept, point.coef


def validate(loss: str, X: np.ndarray, y: np.ndarray, folds: Folds, **options: Any) -> Any:
    """Over a window as long as glmnet's, which is longer where there are more rows than columns."""
    decades = 4 if X.shape[0] > X.shape[1] else 2
    window = {"t_ratio": 10.0**decades, "n_times": 50 * decades}
    return bregpath.cross_validate(X, y, loss=loss, cv=folds, **window, **options)


def one_kappa(loss: str, X: np.ndarray, y: np.ndarray, folds: Folds) -> dict[str, Model]:
    selection = validate(loss, X, y, folds)
    return {"kappa 10": model_at(selection, selection.t_min), "kappa 10, 1se": model_at(selection, selection.t_1se)}


def one_kappa_by_glmnet(loss: str, X: np.ndarray, y: np.ndarray, folds: Folds) -> dict[str, Model]:
    selection = validate(loss, X, y, folds, se_rule="glmnet")
    return {"kappa 10, 1se glmnet": model_at(selection, selection.t_1se)}


def several_kappas(loss: str, X: np.ndarray, y: np.ndarray, folds: Folds) -> dict[str, Model]:
    selection = validate(loss, X, y, folds, kappa="cv")
    sparse = selection.sparse()
    return {
        "kappa cv": model_at(selection, selection.t),
        "kappa cv, sparse": model_at(sparse, sparse.t),
        "kappa cv, sparse 1se": model_at(sparse, sparse.t_1se),
    }


def several_kappas_blended(loss: str, X: np.ndarray, y: np.ndarray, folds: Folds) -> dict[str, Model]:
    blend = validate(loss, X, y, folds, kappa="cv").blend()
    return {"kappa cv, blend": (blend.intercept, blend.coef)}


def blended_and_pruned(loss: str, X: np.ndarray, y: np.ndarray, folds: Folds) -> dict[str, Model]:
    pruned = validate(loss, X, y, folds, kappa="cv").blend().prune()
    return {"kappa cv, blend pruned": (pruned.intercept, pruned.coef)}


def several_kappas_pruned(loss: str, X: np.ndarray, y: np.ndarray, folds: Folds) -> dict[str, Model]:
    pruned = validate(loss, X, y, folds, kappa="cv").sparse().prune()
    return {"kappa cv, pruned": (pruned.intercept, pruned.coef)}


def glmnet(problem: Problem, limit: float, methods: str = "") -> dict[str, Record]:
    """R glmnet, if it is there: all methods, or those named, separated by commas."""
    rscript = shutil.which("Rscript")
    if rscript is None:
        return {}
    return run_there(problem, [rscript, str(PEERS / "nested_glmnet.R")], limit, {"BREGPATH_METHODS": methods})


def study(problem: Problem, who: list[str], limit: float) -> dict[str, Record]:
    """The methods of some of us on one problem."""
    records: dict[str, Record] = {}
    ours = (
        one_kappa, one_kappa_by_glmnet, several_kappas, several_kappas_blended, blended_and_pruned,
        several_kappas_pruned,
    )  # fmt: skip
    for fit in ours if "bregpath" in who else ():
        records |= run_here(problem, partial(fit, problem.loss))
    if "glmnet" in who:
        records |= glmnet(problem, limit)
    if "python" in who and (python := peers_python()):
        # -P: modules of that folder bear the names of the peers themselves
        records |= run_there(problem, [python, "-P", str(PEERS / "nested.py")], limit)
    return records


def study_data(name: str, repeats: int, who: list[str], limit: float) -> dict[str, Any]:
    """Figures of all methods on the outer splits of a data set."""
    problem = load(name, repeats)
    (n, p), (train, test) = problem.X.shape, problem.parts(0)
    figures = {method: record.figures for method, record in study(problem, who, limit).items()}
    return {"n": n, "p": p, "loss": problem.loss, "overlap": len(test) / len(train), "methods": figures}


def study_simulations(seeds: int, who: list[str], limit: float) -> dict[str, Any]:
    """The same with what is true and what is false among the variables."""
    found: dict[str, dict[str, list[float]]] = {}
    for seed in range(seeds):
        problem, data = simulate(seed)
        for method, record in study(problem, who, limit).items():
            chosen = record.models[0][1] != 0
            counts = {"true": [float(chosen[data.coef != 0].sum())], "false": [float(chosen[data.coef == 0].sum())]}
            for what, values in (record.figures | counts).items():
                found.setdefault(method, {}).setdefault(what, []).extend(values)
    return {"seeds": seeds, "methods": found}


# --- tables --------------------------------------------------------------------------------------------------


def corrected(stored: dict[str, Any], one: str, other: str, what: str) -> tuple[float, float]:
    """Mean difference over the outer splits, and its standard error (Nadeau and Bengio: splits share rows)."""
    difference = np.array(stored["methods"][one][what]) - np.array(stored["methods"][other][what])
    share = 1 / len(difference) + stored["overlap"]
    return float(difference.mean()), float(np.sqrt(share * difference.var(ddof=1)))


def mean(stored: dict[str, Any], method: str, what: str) -> float:
    return float(np.mean(stored["methods"][method][what]))


def markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def table(stored: dict[str, Any]) -> str:
    digits = 0 if stored["loss"] == "gaussian" else 4
    rows = []
    for name in (name for name in NAMES if name in stored["methods"]):
        cells = {"error": "-", "deviance": "-"}
        if "lasso" in stored["methods"] and name != "lasso":
            for what in cells:
                gap, error = corrected(stored, name, "lasso", what)
                cells[what] = f"{gap:+.{digits}f} ({error:.{digits}f})"
        scores = [(f"{mean(stored, name, what):.{digits}f}", cell) for what, cell in cells.items()]
        size, seconds = f"{mean(stored, name, 'variables'):.0f}", f"{mean(stored, name, 'seconds'):.2f}"
        rows.append([NAMES[name], *scores[0], *scores[1], size, seconds])
    what = "squared error" if stored["loss"] == "gaussian" else "misclassified"
    return markdown(["", what, "less the lasso's", "deviance", "less the lasso's", "variables", "seconds"], rows)


def table_of_simulations(stored: dict[str, Any]) -> str:
    def cell(name: str, what: str, digits: int) -> str:
        values = np.array(stored["methods"][name][what])
        return f"{values.mean():.{digits}f} ({values.std(ddof=1) / np.sqrt(len(values)):.{digits}f})"

    digits = {"error": 4, "deviance": 3, "true": 1, "false": 1, "seconds": 2}
    known = [name for name in NAMES if name in stored["methods"]]
    rows = [[NAMES[name], *(cell(name, what, d) for what, d in digits.items())] for name in known]
    truth = f"true variables of {SIMULATION['s']}"
    return markdown(["", "misclassified", "deviance", truth, "false positives", "seconds"], rows)


PREDICTING = ("kappa cv", "kappa cv, blend")
FEW = ("kappa cv, blend pruned", "kappa cv, sparse", "kappa cv, sparse 1se", "kappa cv, pruned")


def promises(results: dict[str, dict[str, Any]]) -> str:
    """What is asked of the choice of kappa, set by set: predictions, few variables, time."""
    needed = {*PREDICTING, *FEW, "lasso", "elastic_net"}
    known = {name: stored for name, stored in results.items() if needed <= set(stored["methods"])}
    title = {name: NAMES[name].removeprefix('bregpath, kappa = "cv", ') for name in NAMES}
    title["kappa cv"] = "best"
    better = [
        [name, *(
            yes(mean(stored, method, what) <= mean(stored, peer, what) + 1e-12)
            for method in PREDICTING for what in ("error", "deviance") for peer in ("lasso", "elastic_net")
        )]
        for name, stored in known.items()
    ]  # fmt: skip
    few, times = [], []
    for name, stored in known.items():
        cells = []
        for method in FEW:
            gap, se = corrected(stored, method, "lasso", "error")
            share = mean(stored, method, "variables") / mean(stored, "lasso", "variables")
            cells += [f"{yes(gap <= se)}, {share:.2f}", yes(gap <= se and share <= 0.5)]
        few.append([name, *cells])
        seconds = {method: mean(stored, method, "seconds") for method in (*PREDICTING, "elastic_net", "kappa 10")}
        peers = ("elastic_net", "kappa 10")
        times.append([name, *(f"{seconds[one] / seconds[peer]:.2f}" for one in PREDICTING for peer in peers)])
    measures = ("error at most the lasso's", "the elastic net's", "deviance at most the lasso's", "the elastic net's")
    return "\n\n".join([
        markdown(["", *(f"{title[method]}: {what}" for method in PREDICTING for what in measures)], better),
        "Within one standard error of the lasso's error, with which share of its variables; and at most half of them:",
        markdown(["", *(cell for method in FEW for cell in (title[method], "at most half"))], few),
        "Time:",
        markdown(["", *(f"{title[method]} / {NAMES[peer].removeprefix('bregpath, ')}"
                        for method in PREDICTING for peer in ("elastic_net", "kappa 10"))], times),
    ])  # fmt: skip


def yes(value: Any) -> str:
    return "yes" if value else "no"


def make_page(stored: dict[str, Any]) -> str:
    """The page of the guide, of all that has been done so far."""
    results = {name: stored["data"][name] for name in DATA if name in stored["data"]}
    titles = {name: f"## {name[:1].upper() + name[1:]}, {one['n']} x {one['p']}" for name, one in results.items()}
    simulated = stored.get("simulations")
    splits = {len(next(iter(one["methods"].values()))["error"]) for one in results.values()}
    return PAGE.format(
        splits=" or ".join(map(str, sorted(splits))),
        tables="\n\n".join(f"{titles[name]}\n\n{table(one)}" for name, one in results.items()),
        summary=promises(results),
        simulated=table_of_simulations(simulated) if simulated else "",
        seeds=simulated["seeds"] if simulated else 0,
        **SIMULATION,
    )


# --- the command ---------------------------------------------------------------------------------------------


def main(argv: list[str] | None = None) -> str:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real_data", description=__doc__)
    parser.add_argument("--data", default=",".join([*DATA, "simulations"]), help="what to do, separated by commas")
    parser.add_argument("--repeats", type=int, default=4, help="repeats of the five outer folds")
    parser.add_argument("--seeds", type=int, default=20, help="data sets of the simulations")
    parser.add_argument("--who", default="bregpath,glmnet,python", help="whose methods, separated by commas")
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds for the peers, a data set")
    parser.add_argument("--quick", action="store_true", help="two small sets, one repeat: does the harness work?")
    parser.add_argument("--out", default="benchmarks/results", help="folder; what is there of others is kept")
    parser.add_argument("--page", default=str(ROOT / "docs" / "guide" / "real_data.md"), help="page to write")
    args = parser.parse_args(argv)
    names, repeats, seeds, who = args.data.split(","), args.repeats, args.seeds, args.who.split(",")
    if args.quick:
        names, repeats, seeds = ["digits 4 and 9", "diabetes with interactions", "simulations"], 1, 2
    folder = Path(args.out)
    folder.mkdir(parents=True, exist_ok=True)
    record = folder / ("real_data_quick.json" if args.quick else "real_data.json")
    for name in names:
        if name == "simulations":
            done = study_simulations(seeds, who, args.limit)
        else:
            done = study_data(name, repeats, who, args.limit)
        # Read again, because another process may have done other sets, or other methods, in the meantime.
        stored = json.loads(record.read_text()) if record.exists() else {"data": {}}
        place = stored if name == "simulations" else stored["data"]
        done["methods"] = place.get(name, {}).get("methods", {}) | done["methods"]
        place[name] = done
        record.write_text(json.dumps(stored))
        print(f"{name}\n\n{(table_of_simulations if name == 'simulations' else table)(done)}\n", flush=True)
    page = make_page(stored)
    if not args.quick:
        Path(args.page).write_text(page)
    print(promises(stored["data"]))
    return page


PAGE = """# How good the chosen models are

Nested cross-validation of the whole procedure, choice of all knobs included. This page is written by `make study`.

* Five outer folds, repeated: {splits} splits of every data set. What is chosen is chosen by five inner folds of the
  training rows, by the deviance. All methods see the same outer and inner folds.
* Differences to the lasso are paired by split; in brackets their standard errors, corrected for splits that share rows
  (Nadeau and Bengio). Variables and seconds (one thread, choice included) are means over splits.
* Lasso, relaxed lasso, elastic net (alpha from five values by the same folds) and ridge are R's cv.glmnet; MCP and SCAD
  are skglm's, 30 values of lambda; best subsets are those of abess. a9a and mushrooms are random samples of 2000 rows.
  What is not in a table was not done in the time allowed, or failed.
* The window is glmnet's: to a hundredth of the largest lambda (100 times t0), and where there are more rows than
  columns to a ten-thousandth (`t_ratio=1e4`).
* `kappa="cv"` is the linear mean of a path over time, unless a path itself is clearly better; the blend averages the
  good models of all kappas; the sparse choice is a path ([kappa and t](kappa_and_t.md)); pruned, both are without the
  variables that they can do without. Which mean, how clearly, what is blended, and how much is pruned, was settled on
  other splits, and on other data.

{tables}

## Simulations

The paper's logistic model: n = {n}, p = {p}, {s} true variables. Means over {seeds} data sets, in brackets their
standard errors; rows held out are fresh.

{simulated}

## In short

{summary}
"""


if __name__ == "__main__":
    main()
