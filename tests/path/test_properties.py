"""Properties of every path, over all registered losses and penalties: monotone loss, equivariance, forms of data."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from tests.helpers import (
    LOSSES_WITH_UNITS,
    P,
    assert_same_path,
    encoded,
    make_data,
    penalty_options,
    rows,
    trace,
)

# --- the loss along the path --------------------------------------------------------------------------------


def test_loss_never_rises(loss: str, penalty: str) -> None:
    X, y = make_data(loss)
    ratios = []
    path = trace(
        X,
        y,
        loss=loss,
        n_times=300,
        stop=lambda now: bool(ratios.append(now.deviance_ratio)),
        **penalty_options(penalty),
    )
    assert np.diff(ratios).min() >= -1e-11  # after every step
    # In between the cubic may be off by the tolerance, in which the loss is quadratic.
    assert np.diff(path.deviance).max() <= 0.01**2 * path.null_deviance
    assert path.deviance[-1] < 0.95 * path.deviance[0]
    assert_allclose(path.deviance[0], path.null_deviance, rtol=1e-10)


def test_loss_never_rises_with_fixed_step(loss: str) -> None:
    X, y = make_data(loss)
    adaptive = trace(X, y, loss=loss, t_ratio=10)
    path = trace(X, y, loss=loss, t_ratio=10, step=adaptive.t[0] / 500)
    assert np.diff(path.deviance).max() <= 1e-12 * path.null_deviance


def test_deviance_and_df_agree_with_predictions(loss: str) -> None:
    X, y = make_data(loss)
    w = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    path = trace(X, y, loss=loss, sample_weight=w)
    _, codes, w = encoded(loss, y, w)
    unit = path.units.y_unit
    codes = codes / unit if path.loss.has_units else codes
    for i in (0, 7, 20, -1):
        eta = path.decision_function(X, path.t[i])
        assert_allclose(path.deviance[i], unit**2 * path.loss.deviance(eta / unit, codes, w), rtol=1e-9)
        assert_allclose(path.predict(X, path.t[i]), path.loss.predict(eta), rtol=1e-12)
        assert path.df[i] == np.count_nonzero(path.coef[i])
        support = np.flatnonzero(rows(path)[i].any(axis=1))
        assert_array_equal(path.support(path.t[i]), support)
    assert_allclose(path.deviance_ratio, 1 - path.deviance / path.null_deviance, rtol=1e-12)
    assert_allclose(path.deviance_ratio[0], 0, atol=1e-12)


def test_coef_sparse_is_coef(loss: str) -> None:
    X, y = make_data(loss)
    path = trace(X, y, loss=loss)
    sparse = path.coef_sparse
    assert sp.issparse(sparse)
    assert_array_equal(sparse.toarray(), path.coef.reshape(len(path.t), -1))
    assert sparse.nnz == path.df.sum()


def test_at_equals_the_table(loss: str) -> None:
    X, y = make_data(loss)
    path = trace(X, y, loss=loss)
    for i in (0, 3, 29):
        point = path.at(path.t[i])
        assert_array_equal(point.coef, path.coef[i])
        assert_array_equal(point.intercept, path.intercept[i])


# --- equivariance -------------------------------------------------------------------------------------------


def test_permutation_of_rows_and_columns(loss: str, penalty: str, rng: np.random.Generator) -> None:
    X, y = make_data(loss)
    row, column = rng.permutation(len(y)), rng.permutation(P)
    options = penalty_options(penalty)
    a = trace(X, y, loss=loss, **options)
    if "groups" in options:
        options["groups"] = options["groups"][column]
    b = trace(X[row][:, column], y[row], loss=loss, **options)
    scale = np.abs(a.coef).max()
    assert_allclose(b.t, a.t, rtol=1e-10)
    assert_allclose(b.coef, a.coef[:, column], rtol=0, atol=1e-8 * scale)
    assert_allclose(b.entry_times, a.entry_times[column], rtol=1e-7)


@pytest.mark.parametrize("loss", LOSSES_WITH_UNITS)
def test_units_of_y_change_units_only(loss: str) -> None:
    X, y = make_data(loss)
    a = trace(X, y, loss=loss)
    for factor in (7.3e4, 1e-6):
        b = trace(X, factor * y, loss=loss)
        assert_allclose(b.t, a.t / abs(factor), rtol=1e-10)
        assert_allclose(b.coef, factor * a.coef, rtol=1e-8, atol=1e-9 * abs(factor))
        assert_allclose(b.intercept, factor * a.intercept, rtol=1e-8, atol=1e-9 * abs(factor))
        assert_allclose(b.entry_times, a.entry_times / abs(factor), rtol=1e-8)
        assert_allclose(b.deviance, factor**2 * a.deviance, rtol=1e-8)


@pytest.mark.parametrize("loss", LOSSES_WITH_UNITS)
def test_shift_of_y_moves_the_intercept_only(loss: str) -> None:
    X, y = make_data(loss)
    a, b = trace(X, y, loss=loss), trace(X, y + 100.0, loss=loss)
    assert_allclose(b.t, a.t, rtol=1e-10)
    assert_allclose(b.coef, a.coef, rtol=0, atol=1e-9)
    assert_allclose(b.intercept, a.intercept + 100.0, rtol=1e-10)
    assert_allclose(b.entry_times, a.entry_times, rtol=1e-8)


def test_units_and_origin_of_columns_change_units_only(loss: str, penalty: str, rng: np.random.Generator) -> None:
    X, y = make_data(loss)
    factor, shift = rng.choice([-1, 1], P) * 10 ** rng.uniform(-3, 3, P), rng.normal(size=P)
    a = trace(X, y, loss=loss, **penalty_options(penalty))
    b = trace((X + shift) * factor, y, loss=loss, **penalty_options(penalty))
    scaled = rows(b) * factor[:, None]
    assert_allclose(b.t, a.t, rtol=1e-10)
    assert_allclose(scaled, rows(a), rtol=0, atol=1e-8 * np.abs(a.coef).max())
    assert_allclose(b.entry_times, a.entry_times, rtol=1e-7)
    assert_allclose(b.predict((X + shift) * factor, b.t[20]), a.predict(X, a.t[20]), rtol=1e-7, atol=1e-9)


def test_weight_is_repetition_and_zero_is_absence(loss: str, penalty: str, rng: np.random.Generator) -> None:
    X, y = make_data(loss, n=40)
    counts = rng.integers(0, 4, len(y))
    weighted = trace(X, y, loss=loss, sample_weight=counts, **penalty_options(penalty))
    repeated = trace(np.repeat(X, counts, axis=0), np.repeat(y, counts), loss=loss, **penalty_options(penalty))
    assert_same_path(weighted, repeated)


def test_rows_of_weight_zero_may_hold_anything(loss: str) -> None:
    X, y = make_data(loss, n=40)
    weight = np.ones(len(y))
    weight[:3] = 0
    wild = X.copy()
    wild[:3] = 1e6
    a = trace(wild, y, loss=loss, sample_weight=weight)
    b = trace(X[3:], y[3:], loss=loss)
    assert_same_path(a, b, rtol=1e-7)


@pytest.mark.parametrize("loss", LOSSES_WITH_UNITS)
def test_offset_moves_into_y(loss: str, rng: np.random.Generator) -> None:
    X, y = make_data(loss)
    offset = rng.normal(size=len(y))
    a, b = trace(X, y, loss=loss, offset=offset), trace(X, y - offset, loss=loss)
    assert_same_path(a, b)


def test_constant_offset_moves_the_intercept_only(loss: str) -> None:
    X, y = make_data(loss)
    q = 3 if loss == "multinomial" else 1
    a = trace(X, y, loss=loss)
    b = trace(X, y, loss=loss, offset=np.full((len(y), q), 0.75))
    assert_allclose(b.t, a.t, rtol=1e-9)
    assert_allclose(b.coef, a.coef, rtol=0, atol=1e-8 * np.abs(a.coef).max())
    if q == 1:  # several classes: a common offset changes nothing at all
        assert_allclose(b.intercept, a.intercept - 0.75, rtol=0, atol=1e-8)
    else:
        assert_allclose(b.intercept, a.intercept, rtol=0, atol=1e-8)


@pytest.mark.parametrize(("penalty", "norm"), [("l1", 1.0), ("group", np.sqrt(2.0))])
def test_two_classes_of_multinomial_are_logistic(penalty: str, norm: float) -> None:
    """With eta = (-f / 2, f / 2) both classes share the work.

    Their duals are (-z, z), of norm ``|z|`` times 1 (each on its own) or sqrt(2) (as a group): that is a scale of time,
    and f moves with twice kappa in the one, sqrt(2) kappa in the other.
    """
    X, y = make_data("logistic")
    logistic = trace(X, y, loss="logistic", kappa=20.0 / norm, t_ratio=10.0, step=0.02)
    path = trace(X, y, loss="multinomial", penalty=penalty, kappa=10.0, t_ratio=10.0, step=0.02 / norm)
    scale = np.abs(logistic.coef).max()
    assert_allclose(path.t, logistic.t / norm, rtol=1e-10)
    assert_allclose(path.coef[:, :, 1] - path.coef[:, :, 0], logistic.coef, rtol=0, atol=1e-9 * scale)
    assert_allclose(path.coef.sum(axis=2), 0, atol=1e-9 * scale)
    assert_allclose(path.intercept[:, 1] - path.intercept[:, 0], logistic.intercept, rtol=0, atol=1e-9 * scale)
    assert_allclose(path.entry_times, logistic.entry_times / norm, rtol=1e-8)
    assert_allclose(path.deviance, logistic.deviance, rtol=1e-9)


def test_coefficients_of_a_group_sum_to_zero_over_classes() -> None:
    X, y = make_data("multinomial")
    path = trace(X, y, loss="multinomial", penalty="group")
    assert np.abs(path.coef).max() > 0.1
    assert_allclose(path.coef.sum(axis=2), 0, atol=1e-10)
    assert_allclose(path.intercept.sum(axis=1), 0, atol=1e-10)


def test_order_of_classes_does_not_matter() -> None:
    X, y = make_data("multinomial")
    a = trace(X, y, loss="multinomial")
    renamed = np.array([{"a": 2, "b": 0, "c": 1}[label] for label in y])
    b = trace(X, renamed, loss="multinomial")
    assert_allclose(b.coef, a.coef[:, :, [1, 2, 0]], rtol=0, atol=1e-9)


# --- forms of the data --------------------------------------------------------------------------------------


@pytest.mark.parametrize("standardize", [True, "X", False])
def test_every_form_of_x_gives_the_same_path(loss: str, standardize: bool | str) -> None:
    X, y = make_data(loss)
    X = np.where(X > 0.3, X, 0.0).astype(np.float32)  # representable in single precision, half of it zero
    dense = np.ascontiguousarray(X, dtype=np.float64)
    reference = trace(dense, y, loss=loss, standardize=standardize)
    forms = [np.asfortranarray(dense), X, np.asfortranarray(X), sp.csr_array(dense), sp.csc_matrix(dense)]
    forms += [sp.coo_array(dense), sp.csc_array(X), dense[:, ::-1][:, ::-1]]
    for form in forms:
        assert_same_path(trace(form, y, loss=loss, standardize=standardize), reference)


def test_lists_integers_and_frames(rng: np.random.Generator) -> None:
    pd = pytest.importorskip("pandas")
    X = rng.integers(-3, 4, size=(40, 4))
    y = X[:, 0] - 0.5 * X[:, 2] + rng.normal(size=40)
    reference = trace(X.astype(float), y)
    for form in (X, X.tolist(), pd.DataFrame(X, columns=list("abcd"))):
        assert_same_path(trace(form, y), reference)
    assert_same_path(trace(X, list(y)), reference)
    assert_same_path(trace(X, pd.Series(y)), reference)
    assert_same_path(trace(X, y[:, None]), reference)


def test_data_are_left_as_they_were(loss: str) -> None:
    X, y = make_data(loss)
    w, factor, lower = np.ones(len(y)), np.ones(P), np.full(P, -1.0)
    q = 3 if loss == "multinomial" else 1
    given = [X, y, w, np.zeros((len(y), q)), factor, lower]
    kept = [a.copy() for a in given]
    for array in given:
        array.setflags(write=False)
    trace(X, y, loss=loss, sample_weight=w, offset=given[3], penalty_factor=factor, lower=lower)
    for array, before in zip(given, kept, strict=True):
        assert_array_equal(array, before)
