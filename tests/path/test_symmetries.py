"""What may not matter does not: names and order of classes, signs, order of rows and columns; and the loss never rises.

A symmetry of the problem is one of its path, whatever steps are taken: the same steps, up to rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import bregpath
from tests.graphs.cases import CASES, assert_same_graphs, data_of, graph_of, ising_data, path_of
from tests.helpers import ALL_LOSSES, LOSSES_WITH_UNITS, SIMULATORS, make_data, rows, trace

RTOL = 1e-6
SIZES = [(60, 10), (150, 60), (40, 120)]
SEEDS = range(4)

pytestmark = pytest.mark.parametrize("seed", SEEDS)
sizes = pytest.mark.parametrize(("n", "p"), SIZES)


def penalty_of(penalty: str, p: int) -> dict[str, Any]:
    return {"penalty": penalty} if penalty == "l1" else {"penalty": penalty, "groups": np.arange(p) // 3}


def assert_close(found: np.ndarray, expected: np.ndarray, scale: float | None = None) -> None:
    """Relative to the largest number there is."""
    scale = float(np.abs(expected).max()) if scale is None else scale
    assert_allclose(found, expected, rtol=0, atol=RTOL * max(scale, 1e-12))


def assert_image(image: bregpath.Path, path: bregpath.Path, coef: np.ndarray, intercept: np.ndarray) -> None:
    """A path that is the image of another: its coefficients and intercepts are given, all else is the same."""
    assert np.abs(path.coef).max() > 0
    assert_allclose(image.t, path.t, rtol=1e-9)
    assert_close(image.coef, coef)
    assert_close(image.intercept, intercept, max(np.abs(intercept).max(), np.abs(coef).max()))
    assert_allclose(image.deviance, path.deviance, rtol=RTOL, atol=1e-9 * path.null_deviance)


@sizes
def test_swapped_classes_of_logistic(n: int, p: int, seed: int) -> None:
    X, y = make_data("logistic", n, p, seed=seed)
    path, swapped = (trace(X, labels, loss="logistic") for labels in (y, 1 - y))
    assert_image(swapped, path, -path.coef, -path.intercept)
    assert_allclose(swapped.entry_times, path.entry_times, rtol=RTOL)


@sizes
@pytest.mark.parametrize("loss", LOSSES_WITH_UNITS)
def test_reversed_sign_of_y(loss: str, n: int, p: int, seed: int) -> None:
    X, y = make_data(loss, n, p, seed=seed)
    path, reversed_ = (trace(X, sign * y, loss=loss) for sign in (1, -1))
    assert_image(reversed_, path, -path.coef, -path.intercept)
    assert_allclose(reversed_.entry_times, path.entry_times, rtol=RTOL)


@sizes
@pytest.mark.parametrize("penalty", ["l1", "group"])
@pytest.mark.parametrize("loss", ALL_LOSSES)
def test_reversed_signs_of_columns(loss: str, penalty: str, n: int, p: int, seed: int) -> None:
    X, y = make_data(loss, n, p, seed=seed)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], p)
    path, image = (trace(data, y, loss=loss, **penalty_of(penalty, p)) for data in (X, X * signs))
    coef = (rows(path) * signs[:, None]).reshape(path.coef.shape)
    assert_image(image, path, coef, path.intercept)
    assert_allclose(image.entry_times, path.entry_times, rtol=RTOL)


@sizes
@pytest.mark.parametrize("penalty", ["l1", "group"])
def test_permuted_classes_of_multinomial(penalty: str, n: int, p: int, seed: int) -> None:
    X, y = make_data("multinomial", n, p, seed=seed)
    order = [[1, 2, 0], [2, 1, 0]][seed % 2]  # the class that was `order[k]` is the k-th now
    renamed = np.array([order.index("abc".index(label)) for label in y])
    path, image = (trace(X, labels, loss="multinomial", **penalty_of(penalty, p)) for labels in (y, renamed))
    assert_image(image, path, path.coef[:, :, order], path.intercept[:, order])
    assert_allclose(image.entry_times, path.entry_times, rtol=RTOL)


@sizes
@pytest.mark.parametrize("loss", ALL_LOSSES)
def test_permuted_rows_and_columns(loss: str, n: int, p: int, seed: int) -> None:
    X, y = make_data(loss, n, p, seed=seed)
    rng = np.random.default_rng(seed)
    row, column = rng.permutation(n), rng.permutation(p)
    path = trace(X, y, loss=loss)
    assert_image(trace(X[row], y[row], loss=loss), path, path.coef, path.intercept)
    image = trace(X[:, column], y, loss=loss)
    assert_image(image, path, path.coef[:, column], path.intercept)
    assert_allclose(image.entry_times, path.entry_times[column], rtol=RTOL)


# --- graphs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [case for case in CASES if case.startswith("ising")])
def test_reversed_spins(case: str, seed: int) -> None:
    X = ising_data(80, seed=seed)
    signs = np.random.default_rng(seed).choice([-1, 1], X.shape[1])
    path, image = path_of(case, X), path_of(case, X * signs)
    assert_image(image, path, path.coef * np.outer(signs, signs), path.intercept * signs)
    assert_allclose(image.entry_times, path.entry_times, rtol=RTOL)


@pytest.mark.parametrize("n", [20, 36, 60])
@pytest.mark.parametrize("case", CASES)
def test_permuted_nodes(case: str, n: int, seed: int) -> None:
    """Of few rows: some slopes are zero, up to rounding, whose sign must not decide on a step."""
    X = data_of(case, n, seed=seed)
    order = np.arange(X.shape[1])[::-1]
    path, image = path_of(case, X), path_of(case, X[:, order])
    assert_allclose(image.t, path.t, rtol=1e-9)
    assert_close(image.all_weights(), path.all_weights()[np.ix_(range(len(path.t)), order, order)])
    assert_allclose(image.entry_times, path.entry_times[np.ix_(order, order)], rtol=RTOL)


@pytest.mark.parametrize("case", CASES)
def test_weights_of_rows_are_copies(case: str, seed: int) -> None:
    X = data_of(case, n=60, seed=seed)
    counts = np.arange(60) % 3
    weighted, repeated = graph_of(case).fit(X, sample_weight=counts), graph_of(case).fit(np.repeat(X, counts, axis=0))
    assert_same_graphs(weighted.path_, repeated.path_, rtol=RTOL)


# --- the loss -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tol", [0.01, 0.1])
@pytest.mark.parametrize(("n", "p", "s"), [(100, 20, 5), (200, 100, 10), (60, 200, 8)])
@pytest.mark.parametrize("loss", ALL_LOSSES)
def test_loss_hardly_rises_between_reported_times(loss: str, n: int, p: int, s: int, tol: float, seed: int) -> None:
    data = SIMULATORS[loss](n, p, s, seed=seed)
    path = bregpath.trace_path(data.X, data.y, loss=loss, n_times=300, tol=tol)
    # It falls at every knot; in between coefficients are off by the tolerance, in which the loss is quadratic.
    assert np.diff(path.deviance).max() <= 0.5 * tol**2 * path.null_deviance
    assert path.deviance[-1] < 0.9 * path.null_deviance


@pytest.mark.parametrize("case", CASES)
def test_loss_of_graphs_hardly_rises_between_reported_times(case: str, seed: int) -> None:
    path = path_of(case, data_of(case, 100, seed=seed), n_times=200)
    assert np.diff(path.deviance).max() <= 1e-4 * path.null_deviance
