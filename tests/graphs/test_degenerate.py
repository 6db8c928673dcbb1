"""Tables that hardly tell anything: every estimator returns finite numbers, or says what is wrong."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest

from tests.graphs.cases import CASES, ONE_OF_EACH, graph_of

RULES = ["ebic", "bic", "cv", "cv-1se", "mdc", "stars", "stable", 1.5, 40.0]
FEW = {"n_times": 5, "t_ratio": 8.0, "cv": 2, "n_subsamples": 2}


def table(kind: str, normal: bool) -> np.ndarray:
    """A table that is degenerate in some way: of labels 0 and 1, or of numbers."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 9)) if normal else rng.integers(0, 2, (12, 9))
    same = np.tile(X[0, :4], (6, 1))
    one_row_differs = same.copy()
    one_row_differs[2] = 1 - same[2]
    pair = X[:, :2]
    return {
        "all rows equal": same,
        "one row differs": one_row_differs,
        "one row": X[:1],
        "two rows": np.array([[0, 1, 0], [1, 1, 1]]),
        "two opposite rows": np.array([[0, 1, 0], [1, 0, 1]]),
        "two nodes": pair,
        "two equal nodes": X[:, [0, 0]],
        "two opposite nodes": np.stack([X[:, 0], 1 - X[:, 0]], axis=1),
        "copies and negations": np.column_stack([pair, pair, 1 - pair]),
        "all nodes equal": np.tile(X[:, :1], (1, 5)),
        "a constant node": np.column_stack([X, np.ones(12, dtype=int)]),
        "one node varies": np.column_stack([np.ones((12, 3), dtype=int), X[:, 0]]),
        "one rare state": np.column_stack([X[:, :3], np.arange(12) == 3]),
        "more nodes than rows": X[:4],
        "a sum of others": np.column_stack([pair, pair.sum(axis=1) if normal else pair.sum(axis=1) % 2]),
        "every row once": np.array(list(np.ndindex(2, 2, 2))),
        "two rows repeated": np.repeat([[0, 0, 0], [1, 1, 1]], 5, axis=0),
        "hardly any difference": X.astype(float) * 1e-9 + 1.0,
    }[kind]


KINDS = [
    "all rows equal", "one row differs", "one row", "two rows", "two opposite rows", "two nodes", "two equal nodes",
    "two opposite nodes", "copies and negations", "all nodes equal", "a constant node", "one node varies",
    "one rare state", "more nodes than rows", "a sum of others", "every row once", "two rows repeated",
    "hardly any difference",
]  # fmt: skip


def fit(case: str, X: np.ndarray, rule: str | float):
    """The fitted graph, or None where it is refused with words; warnings must be about the data."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            graph = graph_of(case, stop=rule, **FEW, **({"kinds": "auto"} if case == "mixed" else {})).fit(X)
        except ValueError as error:
            assert str(error).startswith(("`X`", "`cv`", "`stop`")), error
            graph = None
    for warning in caught:
        assert warning.category is UserWarning, warning.message
        expected = "`X` has one label only", "`X` has one value only", "`stop`="
        assert str(warning.message).startswith(expected), warning.message
    return graph


def assert_finite(graph, X: np.ndarray) -> None:
    path = graph.path_
    for numbers in (path.t, path.coef, path.intercept, path.deviance, graph.weights_, graph.fields_):
        assert np.isfinite(numbers).all()
    assert np.all(np.diff(path.t) > 0)
    assert path.t[0] <= graph.t_ <= path.t[-1] or graph.selection_ is None
    if graph.selection_ is not None:
        assert np.isfinite(graph.selection_.mean).all()
    assert np.isfinite(graph.score(X))
    drawn = graph.sample(4, seed=0)
    assert drawn.shape == (4, X.shape[1])
    for t in (path.t[0], 0.5 * (path.t[0] + path.t[-1]), path.t[-1]):
        point = path.at(t)
        assert np.isfinite(point.coef).all()
        if hasattr(graph, "precision_"):
            assert np.linalg.eigvalsh(point.coef)[0] > 0


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("case", CASES)
def test_degenerate_tables(case, rule):
    is_gaussian = case.startswith(("gaussian", "mixed"))
    if rule == "mdc" and is_gaussian:
        pytest.skip("MDC compares tables of labels")
    for kind, normal in product(KINDS, (False, True) if is_gaussian else (False,)):
        X = table(kind, normal)
        graph = fit(case, X, rule)
        if graph is not None:
            assert_finite(graph, X)


def test_what_is_refused():
    """Few of these tables are: the others have a graph, if an empty one."""
    refused = {case: [kind for kind in KINDS if fit(case, table(kind, False), "ebic") is None] for case in ONE_OF_EACH}
    nothing = ["all rows equal", "one row"]
    assert refused["ising-composite"] == refused["potts"] == nothing
    constant = ["two rows", "a constant node", "one node varies"]
    assert set(nothing + constant) <= set(refused["gaussian-likelihood"])


@pytest.mark.parametrize("factor", [1e200, 1e-200])
def test_numbers_that_cannot_be_squared(factor):
    X = factor * np.random.default_rng(0).standard_normal((20, 3))
    with pytest.raises(ValueError, match="`X` .*column 'x0'.*rescale"):
        graph_of("gaussian-likelihood").fit(X)
