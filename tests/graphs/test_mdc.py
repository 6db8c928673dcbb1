"""Second-order marginal distribution correlation."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bregpath.datasets import make_ising_grid
from bregpath.graphs import IsingModel, gibbs, mdc
from bregpath.graphs.mdc import pairwise_tables

X1 = np.array([[1, 1], [1, 1], [-1, -1], [-1, 1]])
X2 = np.array([[1, 1], [1, -1], [-1, -1], [-1, 1]])


def test_tables_by_hand():
    # rows and columns: x_1 = 1, x_1 = -1, x_2 = 1, x_2 = -1
    expected = [[0.5, 0, 0.5, 0], [0, 0.5, 0.25, 0.25], [0.5, 0.25, 0.75, 0], [0, 0.25, 0, 0.25]]
    assert_allclose(pairwise_tables(X1, [np.array([1, -1])] * 2), expected)


def test_correlation_by_hand():
    # Both matrices have mean 1/4; sums of squares 15/8 and 3/2, of products 3/2, and 16 / 16 comes off each.
    assert mdc(X1, X2) == pytest.approx(0.5 / np.sqrt(0.875 * 0.5))


def by_definition(A, B):
    """The definition, pair by pair."""
    p = A.shape[1]
    vectors = []
    for X in (A, B):
        d2 = np.zeros((2 * p, 2 * p))
        for j in range(p):
            for k in range(p):
                for r, u in enumerate((1, -1)):
                    for c, v in enumerate((1, -1)):
                        d2[2 * j + r, 2 * k + c] = np.mean((X[:, j] == u) & (X[:, k] == v))
        vectors.append(d2.ravel())
    return np.corrcoef(*vectors)[0, 1]


def test_definition(rng):
    A, B = rng.choice([-1, 1], (20, 4), p=[0.3, 0.7]), rng.choice([-1, 1], (35, 4))
    assert mdc(A, B) == pytest.approx(by_definition(A, B), rel=1e-12)


@pytest.mark.parametrize(
    "recode",
    [lambda X: (X + 1) // 2, lambda X: X > 0, lambda X: np.where(X > 0, "yes", "no"), lambda X: X.astype(float), list],
    ids=["bits", "bool", "text", "float", "list"],
)
def test_coding_does_not_matter(recode):
    assert mdc(recode(X1), recode(X2)) == pytest.approx(mdc(X1, X2), rel=1e-12)


def test_constant_columns_count_as_binary():
    A, B = X1.copy(), X2.copy()
    A[:, 0] = B[:, 0] = 1
    assert mdc(A, B) == pytest.approx(by_definition(A, B), rel=1e-12)
    ones = np.ones((3, 2))
    assert mdc(ones, ones) == pytest.approx(1.0)
    assert mdc(np.ones((3, 1)), -np.ones((3, 1))) == pytest.approx(-1 / 3)


def test_symmetric_and_one_with_itself(rng):
    A, B = rng.integers(0, 2, (30, 5)), rng.integers(0, 2, (40, 5))
    assert mdc(A, A) == pytest.approx(1.0, abs=1e-15)
    assert mdc(A, B) == pytest.approx(mdc(B, A), rel=1e-14)
    assert mdc(A, B) < 1.0


def test_more_than_two_states(rng):
    A = np.column_stack([rng.integers(0, 3, 50), rng.integers(0, 2, 50)])
    B = np.column_stack([rng.integers(0, 3, 60), rng.integers(0, 2, 60)])
    tables = [pairwise_tables(X, [np.arange(3), np.arange(2)]) for X in (A, B)]
    assert tables[0].shape == (5, 5)
    assert mdc(A, B) == pytest.approx(np.corrcoef(tables[0].ravel(), tables[1].ravel())[0, 1])
    wider = mdc(A, B, levels=[range(3), range(3)])
    assert wider != pytest.approx(mdc(A, B), abs=1e-4)
    text = [np.array(["a", "b", "c"])[A], np.array(["a", "b", "c"])[B]]
    assert mdc(*text) == pytest.approx(mdc(A, B))
    mixed = [np.column_stack([X[:, 0].astype(object), np.array(["u", "v"])[X[:, 1]]]) for X in (A, B)]
    assert mdc(*mixed) == pytest.approx(mdc(A, B))


def test_same_model_scores_higher_than_another():
    truth = make_ising_grid(N=4, T=1.25, n=400, seed=3)
    alike = mdc(truth.X, gibbs(truth.model, 400, burn_in=500, seed=1))
    independent = IsingModel(truth.fields, np.zeros_like(truth.couplings))
    other = mdc(truth.X, gibbs(independent, 400, burn_in=500, seed=1))
    assert alike > 0.97
    assert other < alike - 0.05


@pytest.mark.parametrize(
    ("A", "B", "text"),
    [
        (X1, (X2 + 1) // 2, "same labels, found -1, 1 and 0, 1; code both in the same way"),
        ((X1 + 1) // 2, X2, "same labels, found 0, 1 and -1, 1"),
        (X1, X2.astype(str), "same labels"),
        (X1, X2[:, :1], "`X1` and `X2` must have the same columns, found 2 and 1"),
        (X1[0], X2, "`X1` must be two-dimensional"),
        (X1, X2[:0], "`X2` must be .* not empty"),
        (X1, np.full((2, 2), np.nan), "`X2` contains NaN"),
    ],
)
def test_wrong_samples(A, B, text):
    with pytest.raises(ValueError, match=text):
        mdc(A, B)


def test_wrong_levels():
    with pytest.raises(ValueError, match="`levels` must hold the labels of each of the 2 columns, found 1"):
        mdc(X1, X2, levels=[[-1, 1]])
    with pytest.raises(ValueError, match="`X1` has labels in column 1 that `levels` does not list"):
        mdc(X1, X2, levels=[[-1, 1], [0, 1]])
