"""Constants that the intercept absorbs, and numbers of any size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.optimize import brentq

from bregpath import Result, trace_path
from bregpath.losses import as_loss
from tests.helpers import assert_same_path, encoded, make_data

OPTIONS: dict[str, Any] = {"t_ratio": 20.0, "n_times": 12}
CONSTANTS = [-700.0, -100.0, -33.0, 33.0, 100.0, 700.0]
N, P = 60, 6


def make_offset(loss: str, spread: float = 1.0) -> np.ndarray:
    rng = np.random.default_rng(3)
    return spread * (rng.normal(size=(N, 3)) if loss == "multinomial" else rng.normal(size=N))


@pytest.mark.parametrize("constant", CONSTANTS)
def test_a_common_offset_goes_into_the_intercept(loss: str, constant: float) -> None:
    X, y = make_data(loss, n=N, p=P)
    offset = make_offset(loss)
    reference = trace_path(X, y, loss=loss, offset=offset, **OPTIONS)
    path = trace_path(X, y, loss=loss, offset=offset + constant, **OPTIONS)
    assert_allclose(path.t, reference.t, rtol=1e-9)
    assert_allclose(path.coef, reference.coef, rtol=0, atol=1e-9 * np.abs(reference.coef).max())
    absorbed = 0.0 if loss == "multinomial" else constant  # what all classes have in common changes nothing
    assert_allclose(path.intercept + absorbed, reference.intercept, rtol=0, atol=1e-9)
    assert_allclose(path.deviance, reference.deviance, rtol=1e-7)
    assert_allclose(
        path.predict(X, path.t[-1], offset=offset + constant),
        reference.predict(X, path.t[-1], offset=offset),
        rtol=1e-7,
        atol=1e-9,
    )


@pytest.mark.parametrize("constant", CONSTANTS)
def test_a_common_offset_next_to_free_columns(loss: str, constant: float) -> None:
    X, y = make_data(loss, n=N, p=P)
    offset = make_offset(loss)
    t0 = trace_path(X, y, loss=loss, offset=offset, n_times=2, t_ratio=1.5).t[0]
    options = {"loss": loss, "penalty_factor": [0, 0, 1, 1, 1, 1], "step": 0.005 * t0, "t": t0 * np.arange(1.0, 9.0)}
    reference = trace_path(X, y, offset=offset, **options)
    path = trace_path(X, y, offset=offset + constant, **options)
    assert_allclose(path.coef, reference.coef, rtol=0, atol=1e-8 * np.abs(reference.coef).max())
    absorbed = 0.0 if loss == "multinomial" else constant
    assert_allclose(path.intercept + absorbed, reference.intercept, rtol=0, atol=1e-8)


def test_offsets_of_classes_go_into_their_intercepts() -> None:
    X, y = make_data("multinomial", n=N, p=P)
    offset, constants = make_offset("multinomial"), np.array([100.0, -300.0, 50.0])
    reference = trace_path(X, y, loss="multinomial", offset=offset, **OPTIONS)
    path = trace_path(X, y, loss="multinomial", offset=offset + constants, **OPTIONS)
    assert_allclose(path.coef, reference.coef, rtol=0, atol=1e-9)
    assert_allclose(path.intercept + constants - constants.mean(), reference.intercept, rtol=0, atol=1e-9)


@pytest.mark.parametrize("step", ["adaptive", 0.01])
@pytest.mark.parametrize("loss", ["gaussian", "huber"])
@pytest.mark.parametrize("constant", [-1e6, 1e3, 1e5])
def test_a_response_far_from_zero(loss: str, constant: float, step: float | str) -> None:
    """Squares of the response would round away all that varies."""
    X, y = make_data(loss, n=N, p=P)
    reference = trace_path(X, y, loss=loss, step=step, **OPTIONS)
    path = trace_path(X, y + constant, loss=loss, step=step, **OPTIONS)
    assert path.result is reference.result is Result.COMPLETED
    assert_allclose(path.coef, reference.coef, rtol=0, atol=1e-9 * abs(constant) ** 0.5)
    assert_allclose(path.intercept - constant, reference.intercept, rtol=0, atol=1e-9 * abs(constant) ** 0.5)


@pytest.mark.parametrize("spread", [10.0, 100.0, 700.0])
@pytest.mark.parametrize("loss", ["logistic", "poisson"])
def test_the_null_model_of_spread_offsets(loss: str, spread: float) -> None:
    """The derivative by the intercept rises with it: its root is the null model."""
    X, y = make_data(loss, n=N, p=P)
    offset = make_offset(loss, spread)
    path = trace_path(X, y, loss=loss, offset=offset, t_ratio=1.1, n_times=2)
    model, coded, w = encoded(loss, y)
    root = brentq(lambda a: model.gradient(a + offset, coded, w).sum(), -5 * spread - 9, 3 * spread + 9, xtol=1e-12)
    at_root, found = (model.value(a + offset, coded, w) for a in (root, path.intercept[0]))
    assert found <= at_root * (1 + 1e-12)
    assert abs(model.gradient(path.intercept[0] + offset, coded, w).sum()) < 1e-9


@pytest.mark.parametrize("spread", [1.0, 30.0, 300.0])
def test_the_null_model_with_free_columns_and_spread_offsets(loss: str, spread: float) -> None:
    X, y = make_data(loss, n=N, p=P)
    offset = make_offset(loss, spread)
    path = trace_path(X, y, loss=loss, offset=offset, penalty_factor=[0, 0, 1, 1, 1, 1], t_ratio=1.1, n_times=2)
    model, coded, w = encoded(loss, y)
    eta = X @ path.coef[0] + path.intercept[0] + offset
    unit = path.units.y_unit  # of the threshold of the Huber loss too
    residual = as_loss(model).gradient(*((eta / unit, coded / unit) if model.has_units else (eta, coded)), w)
    columns = np.column_stack([np.ones(N), (X[:, :2] - X[:, :2].mean(axis=0)) / X[:, :2].std(axis=0)])
    assert np.abs(columns.T @ residual).max() < 1e-9 * max(1.0, np.abs(residual).sum())


def test_free_columns_of_unequal_scale() -> None:
    X, y = make_data("logistic", n=N, p=P)
    options = {"loss": "logistic", "penalty_factor": [0, 0, 1, 1, 1, 1], "standardize": False, "n_times": 2}
    reference, scale = trace_path(X, y, t_ratio=1.0001, **options), np.array([1e-8, 1e3, 1, 1, 1, 1])
    path = trace_path(X * scale, y, t_ratio=1.0001, **options)
    assert_allclose(path.coef[0] * scale, reference.coef[0], rtol=1e-6)
    assert_allclose(path.t[0], reference.t[0], rtol=1e-6)


@pytest.mark.parametrize("name", ["logistic", "multinomial"])
def test_free_columns_that_separate_the_classes(name: str) -> None:
    X, _ = make_data(name, n=N, p=P)
    y = np.digitize(X[:, 0], np.quantile(X[:, 0], [0.5] if name == "logistic" else [0.33, 0.67]))
    with pytest.raises(ValueError, match="no finite optimum"):
        trace_path(X, y, loss=name, penalty_factor=[0, 1, 1, 1, 1, 1])


# --- sizes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("size", [1e-290, 1e-200, 1e-160, 1e160, 1e200, 1e290])
def test_columns_of_any_size(loss: str, size: float, kind: Any) -> None:
    X, y = make_data(loss, n=N, p=P)
    sizes = np.where(np.arange(P) % 2, 1.0, size)
    shape = (P,) if loss != "multinomial" else (P, 1)
    reference, path = (trace_path(kind(X * s), y, loss=loss, **OPTIONS) for s in (1.0, sizes))
    assert_allclose(path.t, reference.t, rtol=1e-9)
    scaled = path.coef * sizes.reshape(shape)
    assert_allclose(scaled, reference.coef, rtol=0, atol=1e-9 * np.abs(reference.coef).max())
    assert_allclose(path.entry_times, reference.entry_times, rtol=1e-7)


@pytest.mark.usefixtures("always_screen")
@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_screened_columns_of_any_size(size: float) -> None:
    X, y = make_data("logistic", n=N, p=40)
    reference = trace_path(X, y, loss="logistic", **OPTIONS)
    path = trace_path(X * size, y, loss="logistic", **OPTIONS)
    assert_allclose(path.coef * size, reference.coef, rtol=0, atol=1e-9 * np.abs(reference.coef).max())


@pytest.mark.parametrize("size", [1e-305, 1e305])
def test_coefficients_that_are_no_numbers_are_refused(size: float) -> None:
    X, y = make_data("gaussian", n=N, p=P)
    X[:, 2] *= size
    with pytest.raises(ValueError, match=r"`X` has a spread of about \S+ in column 2.*Multiply this column"):
        trace_path(X, y)


@pytest.mark.parametrize("size", [1e-200, 1e-60, 1e60, 1e200])
def test_columns_taken_as_they_are(loss: str, size: float) -> None:
    X, y = make_data(loss, n=N, p=P)
    with pytest.raises(ValueError, match=r"`X` has values of about \S+ in column 0.*use standardize=True"):
        trace_path(X * size, y, loss=loss, standardize=False)


def test_small_columns_taken_as_they_are_do_enter(loss: str) -> None:
    """Before anything is explained the first column enters, as late as its scale says; or the remedy is told."""
    X, y = make_data(loss, n=N, p=P)
    reference, path = (
        trace_path(X * size, y, loss=loss, standardize=False, t_ratio=1.001, n_times=2) for size in (1.0, 1e-6)
    )
    assert path.result is Result.COMPLETED
    assert_allclose(path.t[0] * 1e-6, reference.t[0], rtol=1e-9)
    # Beside such columns the intercept is so stiff that no method gets anywhere.
    with pytest.raises(ValueError, match=r"does not get away from t0=.*rescale `X`"):
        trace_path(X * 1e-18, y, loss=loss, standardize=False, t_ratio=1.001, n_times=2)


@pytest.mark.parametrize("standardize", [True, "X", False])
@pytest.mark.parametrize("loss", ["gaussian", "huber"])
@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e160, 1e300])
def test_responses_whose_squares_are_no_numbers(loss: str, size: float, standardize: bool | str) -> None:
    X, y = make_data(loss, n=N, p=P)
    with pytest.raises(ValueError, match=r"`y` has a spread of about \S+, too (large|small).*power of ten"):
        trace_path(X, y * size, loss=loss, standardize=standardize)


@pytest.mark.parametrize("size", [1e-20, 1e-300, 1e20, 1e300])
def test_rates_that_are_no_counts(size: float) -> None:
    X, y = make_data("poisson", n=N, p=P)
    with pytest.raises(ValueError, match=r"`y` has a mean of \S+, too small or too large for a Poisson rate"):
        trace_path(X, y * size, loss="poisson")


@pytest.mark.parametrize("size", [1e-10, 1e10])
def test_rates_of_other_units(size: float) -> None:
    X, y = make_data("poisson", n=N, p=P)
    reference, path = (trace_path(X, y * s, loss="poisson", tol=1e-5, **OPTIONS) for s in (1.0, size))
    assert_allclose(path.coef, reference.coef, rtol=0, atol=1e-3 * np.abs(reference.coef).max())
    assert_allclose(path.t * size, reference.t, rtol=1e-6)


@pytest.mark.parametrize("loss", ["gaussian", "huber"])
def test_huge_responses_taken_as_they_are(loss: str) -> None:
    X, y = make_data(loss, n=N, p=P)
    path = trace_path(X, y * 1e20, loss=loss, standardize="X", t_ratio=2.0, n_times=3)
    assert path.result is Result.COMPLETED and path.coef[-1].any()


def test_same_path_without_an_offset(loss: str) -> None:
    """An offset that is the same for all rows says nothing."""
    X, y = make_data(loss, n=N, p=P)
    constant = np.full((N, 3), [5.0, 5.0, -10.0]) if loss == "multinomial" else np.full(N, 5.0)
    path, reference = trace_path(X, y, loss=loss, offset=constant, **OPTIONS), trace_path(X, y, loss=loss, **OPTIONS)
    assert_allclose(path.intercept + constant[0], reference.intercept, rtol=0, atol=1e-9)
    assert_allclose(path.coef, reference.coef, rtol=0, atol=1e-9)
    assert_same_path(trace_path(X, y, loss=loss, offset=0 * constant, **OPTIONS), reference)


def test_free_columns_of_classes_have_no_common_part() -> None:
    """Adding the same to the coefficients of all classes changes nothing, so rounding must not decide it."""
    X, y = make_data("multinomial", n=N, p=P)
    rng = np.random.default_rng(0)
    w = rng.integers(1, 4, N)
    options = {"loss": "multinomial", "penalty_factor": [0.0, 0.0, *np.ones(P - 2)], "n_times": 5}
    offset = rng.normal(size=(N, 3))
    weighted = trace_path(X, y, sample_weight=w, offset=offset, **options)
    copied = trace_path(np.repeat(X, w, axis=0), np.repeat(y, w), offset=np.repeat(offset, w, axis=0), **options)
    assert_allclose(weighted.coef[0].sum(axis=1), 0, atol=1e-12)
    assert_allclose(weighted.coef, copied.coef, rtol=1e-8, atol=1e-10)
