"""What does not make sense is refused, with the remedy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from bregpath import StopWhenWorse, knockoff_select, trace_path
from bregpath.stores import DenseStore
from bregpath.structures import fused, graph, grid, trend
from tests.structures.cases import blocky_regression

X, Y = blocky_regression("gaussian")


@pytest.mark.parametrize(
    ("structure", "text"),
    [
        (np.ones((3, 5)), "`structure` must have a column for each of the 12 coefficients, found 5"),
        (np.ones((12, 5)), "found 5; pass its transpose"),
        (np.full((2, 12), np.nan), "`structure` contains NaN or infinity"),
        (np.zeros((0, 12)), "`structure` is empty"),
        (sp.csr_array((4, 12)), "`structure` is empty"),
        (np.ones(12), r"matrix of real numbers, found shape \(12,\)"),
        (np.full((2, 12), "a"), "matrix of real numbers"),
        ("fussed", r"`structure` must be one of \['fused', 'graph', 'grid', 'trend'\] or a matrix"),
        ("grid", r"needs the sides of the grid; pass structure=\(\"grid\", \(rows, columns\)\)"),
        (("grid", (3, 5)), r"has 15 points, but there are 12 coefficients"),
        ("graph", "needs its edges"),
        (("graph", [(0, 12)]), "`edges` must join two different nodes from 0 to 11"),
        (("fused", 2), "takes no argument, found 1"),
        (("trend", 2, 3), "takes one argument, found 2"),
        (("trend", 12), "`p` must be at least 13, found 12"),
    ],
)
def test_structures(structure, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        trace_path(X, Y, structure=structure)


@pytest.mark.parametrize("nu", [0.0, -1.0, np.inf, np.nan])
def test_nu_must_be_positive(nu: float) -> None:
    with pytest.raises(ValueError, match="`nu` must be a finite number above 0"):
        trace_path(X, Y, structure="fused", nu=nu)


def test_what_belongs_together() -> None:
    with pytest.raises(ValueError, match="`nu` is the slack of a `structure`; pass structure="):
        trace_path(X, Y, nu=1.0)
    with pytest.raises(ValueError, match="`X` is missing; without it y is a signal, and needs a structure"):
        trace_path(None, Y)
    with pytest.raises(ValueError, match="`y` is missing"):
        trace_path(None, None, structure="fused")
    with pytest.raises(ValueError, match=r"`penalty_factor` must have one entry a column \(11\)"):
        trace_path(X, Y, structure="fused", penalty_factor=np.ones(12))
    with pytest.raises(ValueError, match="`structure` relates the columns of X"):
        knockoff_select(X, Y, structure="fused")
    with pytest.raises(ValueError, match="`X` contains NaN or infinity in 1 column"):
        trace_path(np.where(X == X.max(), np.nan, X), Y, structure="fused")
    with pytest.raises(ValueError, match="StopWhenWorse knows no `structure`"):
        trace_path(X, Y, structure="fused", stop=StopWhenWorse(X, Y))
    with pytest.raises(ValueError, match="`estimate` must be one of"):
        trace_path(X, Y, structure="fused", n_times=2, t_ratio=1.1).at(1.0, "sparse")
    with pytest.raises(ValueError, match="`X` has 5 columns, the path was traced on 12"):
        trace_path(X, Y, structure="fused", n_times=2, t_ratio=1.1).predict(X[:, :5], 1.0)


def test_stores_and_frames() -> None:
    class OwnParameters(DenseStore):
        has_intercepts = False

    with pytest.raises(ValueError, match="store with parameters of its own"):
        trace_path(OwnParameters(X), Y, structure="fused")
    assert trace_path(DenseStore(X), Y, structure="fused", n_times=2, t_ratio=1.5).coef.shape == (2, 12)
    pd = pytest.importorskip("pandas")
    pytest.importorskip("narwhals")
    frame = pd.DataFrame({"a": X[:, 0], "b": pd.Categorical(np.where(X[:, 1] > 0, "x", "y"))})
    with pytest.raises(ValueError, match="categorical columns, which no `structure` relates"):
        trace_path(frame, Y, structure="fused")


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: fused(1), ValueError, "`p` must be at least 2"),
        (lambda: trend(10, 0), ValueError, "`order` must be at least 1"),
        (lambda: trend(10.5), TypeError, "`p` must be an integer"),
        (lambda: grid((1, 1)), ValueError, "is one point"),
        (lambda: grid((3, -1)), ValueError, "`shape` must be at least 1"),
        (lambda: graph([(0, 0)], 3), ValueError, "two different nodes"),
        (lambda: graph([(0.5, 1)], 3), ValueError, "pairs"),
        (lambda: graph([0, 1, 2], 3), ValueError, "pairs"),
    ],
)
def test_maps(make, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()
