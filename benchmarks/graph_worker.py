"""A process that holds the rows of a graph and one system: ``python -m benchmarks.graph_worker SYSTEM FOLDER``.

It speaks as `benchmarks.worker` does: a line ``fit K`` is answered by one line of JSON with the seconds a call took,
the number of points of the path, and the edges and the loss at its end.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.cases import Data, read_data

Fit = Callable[[Data], Any]
Describe = Callable[[Data, Any], dict[str, Any]]


@dataclass(frozen=True)
class System:
    """How a graph is learned, and what its path looks like at the end; only ``fit`` is timed."""

    fit: Fit
    end: Describe
    package: str = "bregpath"


# --- bregpath ----------------------------------------------------------------------------------------------------


def estimator(kind: str, data: Data, **options: Any) -> Any:
    import bregpath

    window = {"t_ratio": 1.0 / data.ratio, "n_times": data.points}
    return getattr(bregpath, kind)(**window, **data.options, **options)


def path_only(kind: str, **options: Any) -> Fit:
    """The path and its 100 models, as the peers give them.

    `fit` always chooses a graph too, so the two steps before that choice are called by their private names.
    """

    def fit(data: Data) -> Any:
        graph = estimator(kind, data, **options)
        path = graph._prepare(data.X, None).trace()
        return path, path.all_weights()

    return fit


def path_and_choice(kind: str, **options: Any) -> Fit:
    """What a user calls: the path, and the graph of the least EBIC on it."""

    def fit(data: Data) -> Any:
        path = estimator(kind, data, **options).fit(data.X).path_
        return path, path.all_weights()

    return fit


def end_of_ours(data: Data, result: Any) -> dict[str, Any]:
    path, weights = result
    loss = ising_loss if data.loss == "ising" else gaussian_loss
    point = path.at(path.t[-1])
    stats = {key: getattr(path.stats, key) for key in ("steps", "gradients", "column_products")}
    edges = int(np.count_nonzero(weights[-1])) // 2
    return {"points": len(path.t), "edges": edges, "loss": loss(data, point.intercept, point.coef), "stats": stats}


def ising_loss(data: Data, fields: np.ndarray, couplings: np.ndarray) -> float:
    """Mean composite loss, ``sum_j log(1 + exp(-x_j eta_j))``."""
    eta = fields + data.X @ couplings
    return float(np.logaddexp(0.0, -data.X * eta).sum(axis=1).mean())


def gaussian_loss(data: Data, mean: np.ndarray, precision: np.ndarray) -> float:
    """``tr(S Omega) - log det Omega``."""
    return float(np.sum(data.X.T @ data.X / len(data.X) * precision) - np.linalg.slogdet(precision)[1])


# --- scikit-learn ------------------------------------------------------------------------------------------------


def graphical_lasso(data: Data) -> Any:
    """The path that `GraphicalLassoCV` follows: falling alphas, each started from the covariance before it."""
    from sklearn.covariance._graph_lasso import graphical_lasso_path
    from sklearn.exceptions import ConvergenceWarning

    S = data.X.T @ data.X / len(data.X)
    largest = np.abs(S - np.diag(np.diagonal(S))).max()
    alphas = largest * np.geomspace(1.0, data.ratio, data.points)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        precisions = graphical_lasso_path(data.X, alphas)[1]
    return precisions, sum(issubclass(w.category, ConvergenceWarning) for w in caught)


def end_of_graphical_lasso(data: Data, result: Any) -> dict[str, Any]:
    precisions, unconverged = result
    made = [precision for precision in precisions if np.ndim(precision) == 2]
    edges = int(np.count_nonzero(np.triu(made[-1], 1)))
    loss = gaussian_loss(data, np.zeros(0), made[-1])
    failed = len(precisions) - len(made)
    return {"points": len(made), "edges": edges, "loss": loss, "failed": failed, "unconverged": unconverged}


SYSTEMS = {
    "composite": System(path_only("IsingGraph", loss="composite"), end_of_ours),
    "composite+ebic": System(path_and_choice("IsingGraph", loss="composite"), end_of_ours),
    "mpf": System(path_only("IsingGraph", loss="mpf"), end_of_ours),
    "nodewise": System(path_only("IsingGraph", loss="nodewise"), end_of_ours),
    "likelihood": System(path_only("GaussianGraph", loss="likelihood"), end_of_ours),
    "gaussian composite": System(path_only("GaussianGraph", loss="composite"), end_of_ours),
    "graphical lasso": System(graphical_lasso, end_of_graphical_lasso, "sklearn"),
}


# --- the process -------------------------------------------------------------------------------------------------


def warm_up(system: System, data: Data) -> None:
    """A small problem of the same kind, so that everything is imported."""
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((60, 6))
    X = np.where(noise > 0, 1.0, -1.0) if data.loss == "ising" else (noise - noise.mean(axis=0)) / noise.std(axis=0)
    system.fit(replace(data, X=X, points=5))


def serve(system: System, data: Data, answers: Any) -> None:
    for line in sys.stdin:
        word, *count = line.split()
        if word == "quit":
            return
        repeats = int(count[0])
        begun = time.perf_counter()
        for _ in range(repeats):
            result = system.fit(data)
        seconds = (time.perf_counter() - begun) / repeats
        print(json.dumps({"seconds": seconds, **system.end(data, result)}), file=answers, flush=True)


def main() -> None:
    name, folder = sys.argv[1:3]
    # Answers keep the real standard output; whatever the libraries print goes to standard error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from benchmarks.worker import package_version

    try:
        system, data = SYSTEMS[name], read_data(folder)
        warm_up(system, data)
    except Exception as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"[:300]}), file=answers, flush=True)
        return
    package = "scikit-learn" if system.package == "sklearn" else system.package
    print(json.dumps({"ready": True, "version": package_version(package)}), file=answers, flush=True)
    serve(system, data, answers)


if __name__ == "__main__":
    main()
