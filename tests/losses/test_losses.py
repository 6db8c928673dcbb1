"""Every registered loss keeps the promises of AbstractLoss."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from bregpath import trace_path
from bregpath.losses import LOSSES, AbstractLoss, HuberLoss, MixedCompositeLoss, UserLoss, as_loss, loss_from_dict
from bregpath.losses.huber import weighted_median
from bregpath.penalties import build_penalty
from bregpath.problem import Problem, null_model
from bregpath.stores import DenseStore
from tests.helpers import ALL_LOSSES, encoded, random_case, response


@pytest.fixture(params=ALL_LOSSES)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def finite_difference(function, x: np.ndarray, direction: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """Fourth-order central difference of a function along a direction."""
    d = step * direction
    near, far = function(x + d) - function(x - d), function(x + 2 * d) - function(x - 2 * d)
    return (8 * near - far) / (12 * step)


# --- derivatives -------------------------------------------------------------------------------------------------


def test_gradient(name: str, rng: np.random.Generator) -> None:
    loss, eta, y, w = random_case(name, rng)
    gradient = loss.gradient(eta, y, w)
    assert gradient.shape == eta.shape
    for _ in range(10):
        direction = rng.normal(size=eta.shape)
        expected = finite_difference(lambda e: loss.value(e, y, w), eta, direction)
        assert_allclose(np.sum(gradient * direction), expected, rtol=1e-7, atol=1e-9)


def test_curvature(name: str, rng: np.random.Generator) -> None:
    loss, eta, y, w = random_case(name, rng)
    for _ in range(5):
        direction = rng.normal(size=eta.shape)
        expected = finite_difference(lambda e: loss.gradient(e, y, w), eta, direction)
        assert_allclose(loss.curvature(eta, y, w, direction), expected, rtol=1e-6, atol=1e-9)


def test_default_curvature_is_the_analytic_one(name: str, rng: np.random.Generator) -> None:
    loss, eta, y, w = random_case(name, rng)
    for size in (1e-8, 1.0, 1e8):
        direction = size * rng.normal(size=eta.shape)
        default = AbstractLoss.curvature(loss, eta, y, w, direction)
        assert_allclose(default, loss.curvature(eta, y, w, direction), rtol=1e-4, atol=1e-8 * size)
    zero = np.zeros_like(eta)
    assert_array_equal(AbstractLoss.curvature(loss, eta, y, w, zero), zero)


CURVATURE_BOUNDS = {"gaussian": 1.0, "huber": 1.0, "logistic": 0.25, "multinomial": 0.5}


def test_curvature_is_symmetric_positive_and_bounded(name: str, rng: np.random.Generator) -> None:
    loss, eta, y, w = random_case(name, rng)
    for _ in range(10):
        a, b = rng.normal(size=(2, *eta.shape))
        bent = loss.curvature(eta, y, w, a)
        assert_allclose(np.sum(b * bent), np.sum(a * loss.curvature(eta, y, w, b)), rtol=1e-10, atol=1e-14)
        squares = (a * a).reshape(len(y), -1).sum(axis=1)
        assert -1e-14 <= np.sum(a * bent) <= CURVATURE_BOUNDS.get(name, np.inf) * np.dot(w, squares) * (1 + 1e-10)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**31), share=st.floats(0, 1))
@pytest.mark.parametrize("name", ALL_LOSSES)
def test_loss_is_convex(name: str, seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    loss, a, y, w = random_case(name, rng)
    b = 3 * rng.normal(size=a.shape)
    middle = loss.value(share * a + (1 - share) * b, y, w)
    assert middle <= share * loss.value(a, y, w) + (1 - share) * loss.value(b, y, w) + 1e-12


def test_extreme_predictors_stay_finite_or_infinite_never_nan(name: str, rng: np.random.Generator) -> None:
    loss, eta, y, w = random_case(name, rng)
    for size in (40.0, 700.0, 1e5):
        wide = size * eta
        assert not np.isnan(loss.value(wide, y, w))
        assert not np.isnan(loss.gradient(wide, y, w)).any()
        assert not np.isnan(loss.predict(wide)).any()


# --- optima ------------------------------------------------------------------------------------------------------


def problem_of(loss: AbstractLoss, y: np.ndarray, w: np.ndarray, offset: np.ndarray | None = None) -> Problem:
    n, q = len(y), loss.n_outputs
    offset = np.zeros((n, q)) if offset is None else offset
    return Problem(DenseStore(np.zeros((n, 1))), loss, build_penalty("l1", 1, q), y, w, offset, 10.0, True)


@pytest.mark.parametrize("with_offset", [False, True])
def test_null_model_is_the_optimum_of_the_intercept(name: str, with_offset: bool, rng: np.random.Generator) -> None:
    loss, eta, y, w = random_case(name, rng)
    q = loss.n_outputs
    offset = rng.normal(size=(len(y), q)) * with_offset
    alpha = null_model(problem_of(loss, y, w, offset)).alpha

    def objective(a: np.ndarray) -> float:
        return loss.value((a + offset).reshape(eta.shape), y, w)

    best = minimize(
        objective, np.zeros(q), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-15, "maxiter": 5000}
    )
    assert objective(alpha) <= best.fun + 1e-12
    shift = (alpha - alpha.mean(), best.x - best.x.mean()) if q > 1 else (alpha, best.x)
    assert_allclose(shift[0], shift[1], atol=1e-5)
    gradient = loss.gradient(np.reshape(alpha + offset, eta.shape), y, w).reshape(len(y), q)
    assert_allclose(gradient.sum(axis=0), 0, atol=1e-13)


def test_null_is_the_optimum_or_a_start_close_to_it(name: str, rng: np.random.Generator) -> None:
    """The contract asks for a start; all but the Huber loss (whose start is the median) return the optimum itself."""
    loss, eta, y, w = random_case(name, rng)
    start = np.asarray(loss.null(y, w), dtype=float)
    assert start.shape == (loss.n_outputs,)
    optimum = null_model(problem_of(loss, y, w)).alpha
    at = [loss.value(np.zeros_like(eta) + (a if loss.n_outputs > 1 else a[0]), y, w) for a in (start, optimum)]
    if name == "huber":
        assert at[0] <= at[1] + 0.1
    else:
        assert_allclose(start, optimum, atol=1e-12)


def test_saturated_is_a_lower_bound(name: str, rng: np.random.Generator) -> None:
    loss, eta, y, w = random_case(name, rng)
    floor = loss.saturated(y, w)
    for size in (0.1, 1.0, 5.0):
        assert loss.value(size * rng.normal(size=eta.shape), y, w) >= floor
    assert_allclose(loss.deviance(eta, y, w), 2 * (loss.value(eta, y, w) - floor), rtol=1e-12)


def test_saturated_is_reached_at_perfect_prediction(name: str, rng: np.random.Generator) -> None:
    loss, eta, y, w = random_case(name, rng)
    perfect = {
        "logistic": lambda: 40.0 * y,
        "multinomial": lambda: 80.0 * np.eye(loss.n_outputs)[y],
        "poisson": lambda: np.log(np.maximum(y, 1e-18)),
    }.get(name, lambda: y.astype(float))()
    assert_allclose(loss.value(perfect, y, w), loss.saturated(y, w), atol=1e-12)
    assert_allclose(loss.deviance(perfect, y, w), 0, atol=1e-12)


def test_predict_is_the_mean_response(name: str, rng: np.random.Generator) -> None:
    """For a canonical link the gradient is w (predict(eta) - y); for the others predict is eta itself."""
    loss, eta, y, w = random_case(name, rng)
    mean = loss.predict(eta)
    observed = {"logistic": lambda: (y + 1) / 2, "multinomial": lambda: np.eye(loss.n_outputs)[y]}.get(
        name, lambda: y
    )()
    if name == "huber":
        assert_array_equal(mean, eta)
    else:
        weights = w if eta.ndim == 1 else w[:, None]
        assert_allclose(loss.gradient(eta, y, w), weights * (mean - observed), rtol=1e-10, atol=1e-15)


# --- weights -----------------------------------------------------------------------------------------------------


def test_weight_k_is_k_rows_and_weight_zero_none(name: str, rng: np.random.Generator) -> None:
    loss, eta, y, _ = random_case(name, rng)
    counts = rng.integers(0, 4, len(y))
    w = counts / counts.sum()
    index = np.repeat(np.arange(len(y)), counts)
    uniform = np.full(len(index), 1 / len(index))
    assert_allclose(loss.value(eta, y, w), loss.value(eta[index], y[index], uniform), rtol=1e-12)
    assert_allclose(loss.saturated(y, w), loss.saturated(y[index], uniform), rtol=1e-12)
    assert_allclose(loss.null(y, w), loss.null(y[index], uniform), rtol=1e-10, atol=1e-12)
    assert_allclose(loss.unit(np.asarray(y, float), w), loss.unit(np.asarray(y, float)[index], uniform), rtol=1e-10)
    assert not np.any(loss.gradient(eta, y, w)[counts == 0])
    wild = eta.copy()
    wild[counts == 0] = 1e4
    assert_allclose(loss.value(wild, y, w), loss.value(eta, y, w), rtol=1e-12)
    assert not np.any(loss.gradient(wild, y, w)[counts == 0])


@given(
    y=arrays(float, 9, elements=st.floats(-5, 5).map(lambda v: round(v, 1))),
    counts=arrays(int, 9, elements=st.integers(0, 3)).filter(lambda c: c.sum() > 0),
)
@settings(max_examples=60, deadline=None)
def test_weighted_median_is_the_median_of_repeated_rows(y: np.ndarray, counts: np.ndarray) -> None:
    assert_allclose(weighted_median(y, counts / counts.sum()), np.median(np.repeat(y, counts)), atol=1e-12)


@pytest.mark.parametrize("name", [n for n in ALL_LOSSES if LOSSES[n].has_units])
def test_unit_scales_with_y(name: str, rng: np.random.Generator) -> None:
    loss, y = as_loss(name), rng.normal(size=31)
    w = rng.uniform(0.1, 1.0, 31)
    w /= w.sum()
    assert_allclose(loss.unit(5e3 * y, w), 5e3 * loss.unit(y, w), rtol=1e-12)
    assert_allclose(loss.unit(y + 100, w), loss.unit(y, w), rtol=1e-9)
    assert loss.unit(np.full(31, 4.0), w) == pytest.approx(4.0)
    assert loss.unit(np.zeros(31), w) == 1.0


# --- labels ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [(0, 1), (-1, 1), (1, 2), (False, True), ("no", "yes"), (b"a", b"b"), (2.5, 7.5)],
    ids=str,
)
def test_labels_of_any_two_kinds(labels: tuple, rng: np.random.Generator) -> None:
    index = rng.integers(0, 2, 20)
    y = np.array([labels[i] for i in index])
    loss, codes, _ = encoded("logistic", y)
    assert_array_equal(codes, 2.0 * index - 1.0)
    assert loss.classes.tolist() == list(labels)
    loss, codes, _ = encoded("multinomial", y)
    assert_array_equal(codes, index)


@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
def test_missing_labels_are_refused(loss: str) -> None:
    y = np.array([None, "x", None, "x"], dtype=object)
    with pytest.raises(ValueError, match="y has 2 missing values"):
        trace_path(np.eye(4), y, loss=loss)


def test_object_labels(rng: np.random.Generator) -> None:
    y = np.array(["b", "a", "c", "a"], dtype=object)
    loss, codes, _ = encoded("multinomial", y)
    assert loss.classes.tolist() == ["a", "b", "c"]
    assert_array_equal(codes, [1, 0, 2, 0])


# --- objects -----------------------------------------------------------------------------------------------------


def test_to_dict_and_pickle_give_the_same_loss(name: str, rng: np.random.Generator) -> None:
    loss, eta, y, w = random_case(name, rng)
    for twin in (loss_from_dict(loss.to_dict()), pickle.loads(pickle.dumps(loss))):
        assert type(twin) is type(loss)
        assert twin.to_dict() == loss.to_dict()
        assert twin.n_outputs == loss.n_outputs
        assert twin.value(eta, y, w) == loss.value(eta, y, w)
    assert LOSSES[name].name == name
    assert type(loss).__name__ in repr(loss)


def test_threshold_survives() -> None:
    assert loss_from_dict(HuberLoss(0.7).to_dict()).threshold == 0.7
    assert "0.7" in repr(HuberLoss(0.7))


def test_the_given_object_stays_as_it_was() -> None:
    mine = LOSSES["logistic"]()
    as_loss(mine).encode(np.array([0, 1]), np.array([0.5, 0.5]))
    assert mine.classes is None


def test_user_loss_takes_what_the_object_offers() -> None:
    class Mine:
        is_classifier = True

        def value(self, eta, y, w):
            return np.dot(w, (eta - y) ** 2)

        def gradient(self, eta, y, w):
            return 2 * w * (eta - y)

        def predict(self, eta):
            return eta + 1

    loss = as_loss(Mine())
    assert isinstance(loss, UserLoss)
    assert loss.is_classifier and loss.n_outputs == 1
    assert_array_equal(loss.predict(np.zeros(2)), np.ones(2))
    bent = loss.curvature(np.zeros(2), np.zeros(2), np.full(2, 0.5), np.array([1.0, -2.0]))
    assert_allclose(bent, [1.0, -2.0], rtol=1e-6)
    assert pickle.loads(pickle.dumps(as_loss("gaussian"))).name == "gaussian"


# --- errors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: as_loss("squared"), ValueError, "`loss` must be one of .*gaussian.*found 'squared'"),
        (lambda: as_loss(HuberLoss), TypeError, r"write HuberLoss\(\)"),
        (lambda: as_loss(3), TypeError, "lacks value and gradient"),
        (lambda: HuberLoss(0), ValueError, "`threshold`.*positive"),
        (lambda: HuberLoss(np.nan), ValueError, "`threshold`.*positive"),
        (lambda: MixedCompositeLoss(1, [1.0], [0.0]), ValueError, "`pair_units`.*positive"),
        (lambda: encoded("gaussian", np.array(["a", "b"])), ValueError, "`y` must hold numbers.*logistic"),
        (lambda: encoded("gaussian", np.ones((3, 2))), ValueError, "`y` must be one-dimensional"),
        (lambda: encoded("gaussian", np.array([1.0, np.nan])), ValueError, "`y` contains NaN.*row 1"),
        (lambda: encoded("logistic", np.array([1.0, np.nan])), ValueError, "`y` contains NaN"),
        (lambda: encoded("logistic", np.zeros((3, 2))), ValueError, "`y` must be one-dimensional"),
        (lambda: encoded("logistic", np.ones(3)), ValueError, "one class only"),
        (lambda: encoded("multinomial", np.ones(3)), ValueError, "one class only"),
        (lambda: encoded("logistic", np.array([0, 1, 2])), ValueError, '3 classes.*loss="multinomial"'),
        (lambda: encoded("logistic", np.array([0, 1]), np.array([1.0, 0.0])), ValueError, "one class only"),
        (lambda: encoded("poisson", np.array([1.0, -2.0])), ValueError, "non-negative.*-2 in row 1"),
        (lambda: encoded("poisson", np.zeros(3)), ValueError, "zero in every row"),
    ],
)
def test_errors(call, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_responses_of_the_tests_are_accepted(name: str, rng: np.random.Generator) -> None:
    y = response(name, rng.normal(size=50), rng)
    loss, codes, w = encoded(name, y)
    assert np.isfinite(loss.value(np.zeros((50, loss.n_outputs)) if loss.n_outputs > 1 else np.zeros(50), codes, w))
