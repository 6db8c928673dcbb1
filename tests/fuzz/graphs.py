"""Graphs of tables that are hardly tables: finite results, or an error that says what is wrong."""

from __future__ import annotations

import traceback
import warnings
from typing import Any

import numpy as np

from tests.fuzz.problems import stream
from tests.graphs.cases import CASES, KINDS, graph_of

Array = np.ndarray
STOPS = ("ebic", "bic", "cv", 0.5, 20.0)


def graphs(seed: int) -> str:
    """A random graph estimator on a random degenerate table: fitted, and all of it finite, or refused."""
    rng = stream(seed)
    case = str(rng.choice(list(CASES)))
    X = _table(rng, case.startswith("gaussian"), case.startswith("ising"))
    options = {"kinds": rng.choice(KINDS, X.shape[1]).tolist()} if case == "mixed" else {}
    graph = graph_of(case, stop=STOPS[rng.integers(len(STOPS))], kappa=float(10 ** rng.uniform(0, 2)), **options)
    weights = rng.integers(0, 3, len(X)) if rng.random() < 0.3 else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # advice of bregpath, such as a path that ended early
            graph.fit(X, sample_weight=weights)
    except ValueError as error:
        assert_clear(error)
        return "refused"
    path = graph.path_
    for name, values in {
        "weights": graph.weights_,
        "fields": graph.fields_,
        "coefficients": path.coef,
        "intercepts": path.intercept,
        "deviance": path.deviance,
        "score": graph.score(X),
    }.items():
        assert np.isfinite(values).all(), f"{case}, X of shape {X.shape}: {name} not finite"
    return "fitted"


def assert_clear(error: ValueError) -> None:
    """It was raised on purpose, by bregpath itself, and names what is wrong."""
    where = traceback.extract_tb(error.__traceback__)[-1].filename
    if "bregpath" not in where or isinstance(error, np.linalg.LinAlgError) or "`" not in str(error):
        raise AssertionError(f"not an error of bregpath: {error!r}") from error


def _table(rng: np.random.Generator, numbers: bool, two_labels: bool) -> Array:
    """Few rows; nodes that are copies, opposites or constant; labels seen once; columns in any units."""
    n, p = int(rng.choice([1, 2, 3, 5, 10, 30])), int(rng.integers(1, 8))
    if numbers:
        X: Any = rng.normal(size=(n, p))
        if rng.random() < 0.3:
            X = X * 10 ** rng.uniform(-8, 8, p) + 10 ** rng.uniform(-2, 5, p)
    else:
        X = rng.integers(0, 2 if two_labels else 4, (n, p))
        if rng.random() < 0.3:  # every label at least once, if there are rows enough
            X[:4] = np.minimum(np.arange(4)[: len(X), None], X.max())
    for _ in range(rng.integers(0, 3)):
        j, k = rng.integers(p, size=2)
        change = rng.integers(4)
        if change == 0:
            X[:, j] = X[:, k]
        elif change == 1:
            X[:, j] = X.max() - X[:, k]
        elif change == 2:
            X[:, j] = X[0, j]
        else:
            X[:, j] = 0
            X[rng.integers(n), j] = 1
    return X
