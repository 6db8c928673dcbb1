"""Irrepresentability and conditioning of a chosen model."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import bregpath
from bregpath.datasets import make_linear, make_logistic, make_multinomial
from bregpath.theory import assess


def standardized(X, w=None):
    """Columns less their means, divided by their standard deviations."""
    w = np.full(len(X), 1 / len(X)) if w is None else w / w.sum()
    centred = X - w @ X
    return centred / np.sqrt(w @ centred**2)


def classical(X, support, signs, w, factor=None):
    """Push of each outside column, for these signs and for any, with the intercept among the columns inside."""
    factor = np.ones(X.shape[1]) if factor is None else factor
    inside = np.column_stack([np.ones(len(X)), X[:, support]])
    outside = np.setdiff1d(np.arange(X.shape[1]), support)
    slopes = (X[:, outside] * w[:, None]).T @ inside @ np.linalg.inv((inside * w[:, None]).T @ inside)
    slopes = slopes[:, 1:] * factor[support] / factor[outside, None]
    return np.abs(slopes @ signs), np.abs(slopes).sum(axis=1)


@pytest.mark.parametrize("standardize", [True, "X", False])
def test_linear_model(standardize):
    data = make_linear(150, 12, 4, r=0.6, seed=0)
    path = bregpath.trace_path(data.X, data.y, standardize=standardize)
    t = 4 * path.t[0]
    found = assess(path, t, data.X, data.y)
    support, coef = path.support(t), path.at(t).coef
    X = standardized(data.X) if standardize else data.X
    push, any_signs = classical(X, support, np.sign(coef[support]), np.full(150, 1 / 150))
    assert_allclose(found.push, push, rtol=1e-8)
    assert_allclose(found.push_of_any_signs, any_signs, rtol=1e-8)
    assert found.support.tolist() == support.tolist()
    assert found.critical == found.outside[push.argmax()]
    inside = np.column_stack([np.ones(150), X[:, support]])
    assert_allclose([found.convexity, found.smoothness], np.linalg.eigvalsh(inside.T @ inside / 150)[[0, -1]])


def test_weights_factors_and_the_curvature_of_a_logistic_model():
    data = make_logistic(300, 8, 3, r=0.5, seed=1)
    rows, factor = np.random.default_rng(0).integers(1, 4, 300).astype(float), np.linspace(0.5, 2.0, 8)
    path = bregpath.trace_path(data.X, data.y, loss="logistic", sample_weight=rows, penalty_factor=factor)
    t = 5 * path.t[0]
    found = assess(path, t, data.X, data.y, sample_weight=rows)
    point, support = path.at(t), path.support(t)
    chance = 1 / (1 + np.exp(-(point.intercept + data.X @ point.coef)))
    w = rows / rows.sum() * chance * (1 - chance)
    used = path.trajectory.penalty.weights[:, 0]
    push, any_signs = classical(standardized(data.X, rows), support, np.sign(point.coef[support]), w, used)
    assert_allclose(found.push, push, rtol=1e-7)
    assert_allclose(found.push_of_any_signs, any_signs, rtol=1e-7)


def test_free_and_excluded_columns():
    data = make_linear(150, 8, 3, r=0.6, seed=2)
    factor = np.array([0.0, 1, 1, 1, 1, 1, 1, np.inf])
    path = bregpath.trace_path(data.X, data.y, penalty_factor=factor)
    t = 3 * path.t[0]
    found = assess(path, t, data.X, data.y)
    assert 0 in found.support and 7 not in found.outside
    support = found.support
    signs = np.where(support == 0, 0.0, np.sign(path.at(t).coef[support]))  # a free column pushes nobody
    push, _ = classical(standardized(data.X)[:, :7], support, signs, np.full(150, 1 / 150))
    assert_allclose(found.push, push, rtol=1e-8)


def test_without_intercept():
    data = make_linear(150, 8, 3, r=0.6, seed=3)
    path = bregpath.trace_path(data.X, data.y, fit_intercept=False, standardize=False)
    t = 3 * path.t[0]
    found, support = assess(path, t, data.X, data.y), path.support(t)
    inside = data.X[:, support]
    slopes = data.X[:, found.outside].T @ inside @ np.linalg.inv(inside.T @ inside)
    assert_allclose(found.push, np.abs(slopes @ np.sign(path.at(t).coef[support])), rtol=1e-8)


def test_a_saved_path_of_inverse_scale_space_and_sparse_columns(tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    data = make_logistic(300, 10, 3, density=0.4, seed=0)
    path = bregpath.trace_path(data.X, data.y, loss="logistic", flow="giss")
    path.save(tmp_path / "path.npz")
    t = 2 * path.t[0]
    one = assess(path, t, data.X, data.y)
    other = assess(bregpath.load_path(tmp_path / "path.npz"), t, data.X.toarray(), data.y)
    assert sparse.issparse(data.X) and len(one.support) > 1
    assert_allclose(one.push, other.push, rtol=1e-8)


def test_orthogonal_columns_push_nobody():
    Q = np.linalg.qr(np.column_stack([np.ones(32), np.random.default_rng(0).standard_normal((32, 6))]))[0][:, 1:]
    y = Q @ np.array([3.0, -2.0, 1.0, 0, 0, 0])
    path = bregpath.trace_path(Q, y)
    found = assess(path, 2 * path.t[0], Q, y)
    assert_allclose(found.push_of_any_signs, 0.0, atol=1e-10)
    assert found.condition_number == pytest.approx(1.0)
    assert "no other column imitates them, whatever their signs" in found.verdict


def imitated(n=300, seed=0):
    """Two true columns, and a third that is nearly their sum."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 6))
    X[:, 5] = X[:, 0] + X[:, 1] + 0.3 * rng.standard_normal(n)
    return X, X[:, 0] + X[:, 1] + 0.1 * rng.standard_normal(n)


def test_an_imitation_is_named_with_its_name():
    pd = pytest.importorskip("pandas")
    X, y = imitated()
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d", "e", "sum"])
    # Had the path taken the two true columns, it would have met their imitation.
    path = bregpath.trace_path(frame, y, penalty_factor=[1, 1, 1, 1, 1, 5])
    t = 2 * path.entry_times[:2].max()
    assert path.support(t).tolist() == [0, 1]
    again = bregpath.trace_path(frame, y)
    found = assess(path, t, frame, y)
    assert found.names[found.critical] == "sum" and found.irr < 1  # its threshold is five times higher
    assert again.entry_times.argmin() == 5
    assert found.to_frame()["name"].iloc[0] == "sum"
    assert_allclose(found.irr * 5, 1.41, atol=0.05)  # (1 + 1) / sqrt(2): above 1 with an equal threshold


def test_a_forbidden_sign_pushes_nobody():
    X, y = imitated()
    path = bregpath.trace_path(X, y, upper=[np.inf] * 5 + [0.0])
    t = 2 * path.entry_times[:2].max()
    found = assess(path, t, X, y)
    assert path.support(t).tolist() == [0, 1]
    assert found.outside[-1] == 5 and found.push[-1] == 0.0  # the sum would have to enter with a plus
    assert found.push_of_any_signs[-1] == pytest.approx(1.41, abs=0.05)
    assert f"With other signs one could be pushed to {found.irr_of_any_signs:.2f}" in found.verdict


def test_real_data_where_two_columns_take_turns():
    data = pytest.importorskip("sklearn.datasets").load_diabetes()
    path = bregpath.trace_path(data.data, data.target)
    s1, s2 = data.feature_names.index("s1"), data.feature_names.index("s2")  # correlated by 0.9
    t = 20 * path.t[0]
    assert path.entry_times[s2] < path.exit_times[s2] < t  # s2 was in, and s1 took its place
    found = assess(path, t, data.data, data.target)
    assert s1 in found.support and found.critical == s2
    assert not found.is_irrepresentable
    assert found.verdict.startswith(f"x{s2} imitates the model")


def test_columns_that_cannot_be_told_apart():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    nearly = np.column_stack([X, X[:, 0] + 0.05 * rng.standard_normal(60)])
    y = nearly[:, 0] - nearly[:, 5] + 0.001 * rng.standard_normal(60)
    path = bregpath.trace_path(nearly, y, t_ratio=1e4, kappa=1000)
    found = assess(path, path.t[-1], nearly, y)
    assert {0, 5} <= set(found.support.tolist())
    assert found.condition_number > 100 and "nearly collinear" in found.verdict
    copied, y = np.column_stack([X, X[:, 0]]), X[:, 0] + rng.standard_normal(60)
    path = bregpath.trace_path(copied, y)
    found = assess(path, 2 * path.t[0], copied, y)
    assert {0, 5} <= set(found.support.tolist())
    assert found.condition_number == np.inf and "cannot be told apart" in found.verdict
    assert repr(found).startswith(f"Model of {len(found.support)} columns")


@pytest.mark.parametrize("kind", ["type", "group", "classes", "null"])
def test_bad_input(kind):
    data = make_linear(60, 6, 2, seed=0)
    path = bregpath.trace_path(data.X, data.y)
    if kind == "type":
        with pytest.raises(TypeError, match="`path` must be a Path of trace_path, found str"):
            assess("path", 1.0, data.X, data.y)
    elif kind == "group":
        grouped = bregpath.trace_path(data.X, data.y, penalty="group", groups=[0, 0, 1, 1, 2, 2])
        with pytest.raises(ValueError, match="`path` has the penalty 'group'"):
            assess(grouped, grouped.t[5], data.X, data.y)
    elif kind == "classes":
        many = make_multinomial(60, 6, 2, seed=0)
        outputs = bregpath.trace_path(many.X, many.y, loss="multinomial")
        with pytest.raises(ValueError, match="`path` has 3 outputs"):
            assess(outputs, outputs.t[5], many.X, many.y)
    else:
        with pytest.raises(ValueError, match="before any column enters"):
            assess(path, path.t[0], data.X, data.y)
