"""What a structured path can tell."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import bregpath
from bregpath import trace_path
from bregpath.structures import StructuredPath, fused, graph, grid, trend
from bregpath.structures.projection import Projection
from tests.structures.cases import blocky_regression, steps_signal


@pytest.fixture(scope="module")
def path() -> StructuredPath:
    return trace_path(None, steps_signal(0)[1], structure="fused", t_ratio=20.0, n_times=20)


# --- the projection --------------------------------------------------------------------------------------------

MAPS = {
    "fused": fused(30),
    "trend": trend(30),
    "third": trend(30, 3),
    "grid": grid((5, 6)),
    "graph": graph([(0, 5), (5, 9), (9, 0), (3, 4)], 30),
    "repeated": sp.vstack([trend(30), 2 * trend(30)]).tocsr(),
    "own": sp.csr_array(np.random.default_rng(0).normal(size=(12, 30))),
}


@pytest.mark.parametrize("name", MAPS)
def test_it_is_an_orthogonal_projection(name: str) -> None:
    D, rng = MAPS[name], np.random.default_rng(1)
    project = Projection(D)
    for share in (0.0, 0.2, 0.9, 1.0):
        active = rng.random(D.shape[0]) < share
        a, b = rng.normal(size=(2, 30))
        once, rest = project(a, active), D.toarray()[~active]
        assert_allclose(rest @ once, 0, atol=1e-9)
        assert_allclose(project(once, active), once, atol=1e-9)
        assert_allclose(project(b, active) @ a, b @ once, atol=1e-9)  # symmetric, so orthogonal
        free = 30 - (np.linalg.matrix_rank(rest) if len(rest) else 0)
        assert project.dimension(active) <= free
        assert project.dimension(active) == free or name == "repeated"


def test_a_long_trend_is_projected_exactly() -> None:
    n = 2000
    line = 3 + 0.01 * np.arange(n)
    noise = np.random.default_rng(0).normal(size=n)
    found = Projection(trend(n))(line + noise, np.zeros(n - 2, dtype=bool))
    basis = np.column_stack([np.ones(n), np.arange(n)])
    assert_allclose(found, basis @ np.linalg.lstsq(basis, line + noise, rcond=None)[0], atol=1e-7)


def test_coefficients_obey_the_structure(path: StructuredPath) -> None:
    for t in path.t[::5]:
        coef, active = path.at(t).coef, path.support(t)
        assert_array_equal(np.setdiff1d(np.flatnonzero(np.abs(np.diff(coef)) > 1e-12), active), [])
    assert_array_equal(path.df, [len(np.unique(coef.round(9))) for coef in path.coef])


# --- reading -----------------------------------------------------------------------------------------------------


def test_three_estimates(path: StructuredPath) -> None:
    t = path.t[10]
    assert_allclose(path.at(t).coef, path.coef[10])
    assert_allclose(path.at(t, "dense").coef, path.dense[10])
    assert_allclose(path.split_at(t), path.split[10])
    assert_array_equal(path.support(t), np.flatnonzero(path.split[10]))
    assert np.abs(path.structure @ path.dense[10] - path.split[10]).max() < 0.5 * np.abs(path.split[10]).max()
    assert path.intercept.shape == path.t.shape and not path.intercept.any()


@pytest.mark.parametrize("loss", ["gaussian", "logistic"])
def test_predictions_and_deviance(loss: str) -> None:
    X, y = blocky_regression(loss)
    path = trace_path(X, y, loss=loss, structure="fused", nu=0.1, n_times=20)
    t = path.t[12]
    for estimate in ("projected", "dense"):
        _, intercept, coef = path.at(t, estimate)
        assert_allclose(path.decision_function(X, t, estimate=estimate), X @ coef + intercept)
    eta = path.decision_function(X, t)
    assert_allclose(path.predict(X, t), path.loss.predict(eta))
    expected = np.mean((eta - y) ** 2) if loss == "gaussian" else 2 * np.mean(np.log1p(np.exp(-y * eta)))
    assert_allclose(path.deviance[12], expected)
    assert path.deviance_ratio[0] < 1e-6 and path.deviance_ratio[-1] > 0.1
    assert_allclose(path.predict(X, t, offset=np.ones(len(y))), path.loss.predict(eta + 1))


def test_several_outputs() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 8))
    y = rng.integers(0, 3, size=90)
    path = trace_path(X, y, loss="multinomial", structure="fused", nu=0.1, n_times=10, t_ratio=5.0)
    assert path.coef.shape == path.dense.shape == (10, 8, 3) and path.split.shape == (10, 7, 3)
    assert path.intercept.shape == (10, 3) and path.at(path.t[3]).coef.shape == (8, 3)
    assert_allclose(path.predict(X, path.t[-1]).sum(axis=1), 1)


def test_extend_is_having_asked_for_more() -> None:
    _, y = steps_signal(1)
    short = trace_path(None, y, structure="fused", t_ratio=5.0, n_times=10)
    longer = short.extend(3 * short.t[-1])
    at_once = trace_path(None, y, structure="fused", t=longer.t)
    for name in ("coef", "dense", "split", "deviance"):
        assert_allclose(getattr(longer, name), getattr(at_once, name), rtol=1e-9, atol=1e-12)


def test_it_can_be_pickled_but_not_saved(path: StructuredPath, tmp_path) -> None:
    again = pickle.loads(pickle.dumps(path))
    assert_allclose(again.at(path.t[7]).coef, path.at(path.t[7]).coef)
    with pytest.raises(ValueError, match="trace it anew"):
        again.extend(1e9)
    with pytest.raises(TypeError, match="use pickle"):
        path.save(tmp_path / "path.npz")


def test_tables_and_pictures(path: StructuredPath) -> None:
    assert repr(path).startswith("StructuredPath of 100 coefficients, 99 rows of D (gaussian, kappa=10), 20 times")
    pytest.importorskip("pandas")
    frame = path.to_frame()
    assert list(frame)[:5] == ["t", "df", "deviance_ratio", "intercept", "x0"]
    assert_allclose(frame["x99"], path.coef[:, 99])
    pytest.importorskip("matplotlib")
    ax = path.plot(mark=path.t[3])
    assert ax.get_ylabel() == "Split variable"


def test_names_of_a_frame() -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("narwhals")
    X, y = blocky_regression("gaussian", p=4)
    frame = pd.DataFrame(X, columns=list("abcd"))
    path = trace_path(frame, y, structure="fused", n_times=5, t_ratio=3.0)
    assert path.coef_names == list("abcd")
    assert_allclose(path.predict(frame, path.t[-1]), path.predict(X, path.t[-1]))


# --- the maps -----------------------------------------------------------------------------------------------------


def test_maps_take_the_differences_they_say() -> None:
    v, image = np.random.default_rng(0).normal(size=9), np.random.default_rng(1).normal(size=(3, 4, 2))
    for order in (1, 2, 3):
        assert_allclose(trend(9, order) @ v, np.diff(v, n=order))
    assert_allclose(fused(9) @ v, np.diff(v))
    expected = np.concatenate([np.diff(image, axis=axis).ravel() for axis in range(3)])
    assert_allclose(grid(image.shape) @ image.ravel(), expected)
    assert_allclose(graph([(0, 8), (3, 1)], 9) @ v, [v[8] - v[0], v[1] - v[3]])


def test_short_names_are_these_maps() -> None:
    _, y = steps_signal(0)
    options = {"t_ratio": 2.0, "n_times": 3}
    named = {
        "fused": ("fused", fused(100)),
        "grid": (("grid", (10, 10)), grid((10, 10))),
        "graph": (("graph", [(0, 1), (5, 7)]), graph([(0, 1), (5, 7)], 100)),
    }
    for short, D in named.values():
        assert (trace_path(None, y, structure=short, **options).structure != D).nnz == 0
    assert trace_path(None, y, structure=("trend", 3), **options).structure.shape == (97, 100)
    assert bregpath.structures.StructuredPath is StructuredPath
