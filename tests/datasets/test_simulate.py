"""The simulators: reproducible, with the support, correlation, noise and labels that they promise."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from bregpath.datasets import make_linear, make_logistic, make_multinomial, make_poisson

MAKERS = [make_linear, make_logistic, make_multinomial, make_poisson]


@pytest.fixture(params=MAKERS, ids=lambda maker: maker.__name__)
def make(request):
    return request.param


def dense(X):
    return X if isinstance(X, np.ndarray) else X.toarray()


def test_works_bare_with_the_paper_sizes(make):
    sim = make()
    assert sim.X.shape == (400, 80)
    assert sim.y.shape == (400,)
    assert sim.X.flags.f_contiguous
    assert sim.X.dtype == np.float64
    assert_array_equal(sim.support, np.arange(20))


@pytest.mark.parametrize("density", [None, 0.3])
def test_reproducible_by_seed(make, density):
    one, two, other = (make(50, 12, 4, seed=seed, density=density) for seed in (7, 7, 8))
    assert_array_equal(dense(one.X), dense(two.X))
    assert_array_equal(one.y, two.y)
    assert_array_equal(one.coef, two.coef)
    assert_array_equal(one.intercept, two.intercept)
    assert not np.array_equal(one.coef, other.coef)


def test_generator_is_used_and_advanced(make):
    rng = np.random.default_rng(3)
    first, second = make(30, 6, 2, seed=rng), make(30, 6, 2, seed=rng)
    assert_array_equal(first.X, make(30, 6, 2, seed=3).X)
    assert not np.array_equal(first.X, second.X)


def test_the_truth_does_not_depend_on_n(make):
    small, large = make(20, 6, 2, seed=5), make(200, 6, 2, seed=5)
    assert_array_equal(small.coef, large.coef)
    assert_array_equal(small.intercept, large.intercept)


@pytest.mark.parametrize("density", [None, 0.3])
def test_a_fresh_sample_of_the_same_model(make, density):
    bare, small, large = (make(n, 6, 2, seed=5, density=density, n_test=m) for n, m in ((20, None), (20, 50), (80, 50)))
    assert bare.X_test is None and bare.y_test is None
    assert_array_equal(dense(bare.X), dense(small.X))  # the sample itself is the same with it and without it
    assert_array_equal(bare.y, small.y)
    assert_array_equal(dense(small.X_test), dense(large.X_test))  # and it is the same, whatever n
    assert_array_equal(small.y_test, large.y_test)
    assert small.X_test.shape == (50, 6) and small.y_test.shape == (50,)
    assert (type(small.X_test), small.X_test.dtype, small.y_test.dtype) == (type(small.X), small.X.dtype, small.y.dtype)
    assert not np.isin(dense(small.X_test)[dense(small.X_test) != 0], dense(large.X)).any()
    assert repr(small).endswith(", n_test=50)")


def test_a_fresh_sample_follows_the_model():
    sim = make_linear(10, 8, 5, r=0.5, snr=4.0, seed=0, n_test=50_000)
    signal = sim.X_test @ sim.coef
    assert_allclose((sim.y_test - sim.intercept - signal).var() / signal.var(), 0.25, rtol=0.05)
    assert_allclose(np.corrcoef(sim.X_test[:, 0], sim.X_test[:, 1])[0, 1], 0.5, atol=0.02)


def test_a_generator_gives_another_fresh_sample_each_time(make):
    rng = np.random.default_rng(3)
    first, second = make(30, 6, 2, seed=rng, n_test=10), make(30, 6, 2, seed=rng, n_test=10)
    assert_array_equal(first.X_test, make(30, 6, 2, seed=3, n_test=10).X_test)
    assert not np.isin(first.X_test, second.X_test).any()


@pytest.mark.parametrize("M", [0.5, 2.0])
@pytest.mark.parametrize("make", MAKERS[:3])
def test_truth_is_uniform_on_both_sides(make, M):
    sim = make(5, 300, 200, M=M, seed=0)
    values = np.abs(sim.coef[:200])
    assert M <= values.min() < 1.1 * M
    assert 1.9 * M < values.max() <= 2 * M
    assert np.all((np.abs(sim.intercept) >= M) & (np.abs(sim.intercept) <= 2 * M))
    assert np.all(sim.coef[200:] == 0)
    assert 0.3 < np.mean(sim.coef[:200] > 0) < 0.7


@pytest.mark.parametrize("r", [0.0, 0.25, 0.9, -0.5])
def test_correlation_of_columns(r):
    p = 6
    sim = make_linear(100_000, p, 2, r=r, seed=0)
    expected = r ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    assert_allclose(np.cov(sim.X, rowvar=False), expected, atol=0.02)
    assert_allclose(sim.X.mean(axis=0), 0, atol=0.02)


@pytest.mark.parametrize("snr", [0.5, 4.0, np.inf])
@pytest.mark.parametrize("setting", [{"r": 0.6}, {"r": -0.6}, {"density": 0.2}], ids=str)
def test_signal_to_noise_ratio(snr, setting):
    sim = make_linear(100_000, 8, 5, snr=snr, seed=2, **setting)
    signal = sim.X @ sim.coef
    noise = sim.y - sim.intercept - signal
    assert_allclose(noise.var() / signal.var(), 1 / snr, rtol=0.05, atol=1e-12)
    assert abs(noise.mean()) < 0.05


@pytest.mark.parametrize(("snr", "sd"), [(4.0, 1.0), (np.inf, 0.0)])
def test_linear_without_signal(snr, sd):
    sim = make_linear(50_000, 3, 0, snr=snr, seed=1)
    assert sim.support.size == 0
    assert_allclose(sim.y.std(), sd, atol=0.02)


def test_logistic_labels_follow_the_model():
    sim = make_logistic(100_000, 3, 2, seed=4)
    assert sim.y.dtype == np.int64
    assert_array_equal(np.unique(sim.y), [-1, 1])
    probability = 1 / (1 + np.exp(-(sim.intercept + sim.X @ sim.coef)))
    for low in (0.0, 0.25, 0.5, 0.75):
        bin_ = (probability >= low) & (probability < low + 0.25)
        assert_allclose(np.mean(sim.y[bin_] == 1), probability[bin_].mean(), atol=0.02)


def test_multinomial_shapes_and_frequencies():
    sim = make_multinomial(100_000, 4, 2, n_classes=5, M=0.5, seed=4)
    assert sim.coef.shape == (4, 5)
    assert sim.intercept.shape == (5,)
    assert_array_equal(np.unique(sim.y), np.arange(5))
    assert_array_equal(sim.support, [0, 1])
    weights = np.exp(sim.intercept + sim.X @ sim.coef)
    probability = weights / weights.sum(axis=1, keepdims=True)
    assert_allclose(np.bincount(sim.y) / sim.y.size, probability.mean(axis=0), atol=0.01)


def test_poisson_counts_follow_the_model():
    sim = make_poisson(100_000, 5, 3, seed=4)
    mean = np.exp(sim.intercept + sim.X @ sim.coef)
    assert np.issubdtype(sim.y.dtype, np.integer)
    assert_allclose(sim.y.mean(), mean.mean(), rtol=0.02)
    assert_allclose(np.mean((sim.y - mean) ** 2 / mean), 1, rtol=0.05)


@pytest.mark.parametrize("setting", [{"r": 0.5}, {"r": 0.99}, {"density": 1e-3}, {"density": 1.0}], ids=str)
@pytest.mark.parametrize("M", [2.0, 1e6])
def test_poisson_holds_large_signals_back(setting, M):
    sim = make_poisson(2000, 40, 20, M=M, seed=0, **setting)
    assert sim.y.min() >= 0
    assert sim.y.max() < 1e6
    assert np.abs(sim.coef).max() <= 1.5 + 1e-12
    assert abs(sim.intercept) <= 2.0
    assert (sim.X @ sim.coef).std() < 1.6
    assert_array_equal(sim.support, np.arange(20))


def test_small_poisson_signals_are_left_alone():
    assert np.all(np.abs(make_poisson(10, 6, 4, M=0.1, seed=0).coef[:4]) >= 0.1)


def test_single_precision_is_the_same_data_rounded(make):
    double, single = make(60, 9, 3, seed=1), make(60, 9, 3, seed=1, dtype=np.float32)
    assert single.X.dtype == np.float32
    assert_array_equal(single.X, double.X.astype(np.float32))
    assert_array_equal(single.coef, double.coef)


def test_memory_order_does_not_change_the_numbers(make):
    by_rows = make(20, 9, 3, seed=1, order="C")
    assert by_rows.X.flags.c_contiguous
    assert_array_equal(by_rows.X, make(20, 9, 3, seed=1).X)


@pytest.mark.parametrize("density", [0.01, 0.4, 1.0])
def test_sparse_design(make, density):
    sim = make(1000, 50, 5, seed=0, density=density, dtype="float32")
    assert isinstance(sim.X, sp.csc_array)
    assert sim.X.shape == (1000, 50)
    assert sim.X.dtype == np.float32
    assert sim.X.indices.dtype == np.int32
    assert sim.X.has_canonical_format
    assert_allclose(sim.X.nnz / 50_000, density, rtol=0.15)
    assert_allclose(sim.X.data.std(), 1.0, rtol=0.15)
    spread = np.sqrt(1000 * density * (1 - density))
    assert_allclose(np.diff(sim.X.indptr), 1000 * density, atol=5 * spread)


def test_very_sparse_design_may_be_empty():
    sim = make_logistic(10, 5, 2, seed=0, density=1e-15)
    assert sim.X.nnz == 0
    assert sim.X.shape == (10, 5)


@pytest.mark.parametrize("shape", [(1, 1, 0), (1, 5, 5), (7, 1, 1)])
@pytest.mark.parametrize("density", [None, 0.5])
def test_smallest_sizes(make, shape, density):
    sim = make(*shape, seed=0, density=density)
    assert sim.X.shape == shape[:2]
    assert np.all(np.isfinite(sim.y))
    assert sim.support.size == shape[2]


def test_repr_is_compact():
    sparse = make_multinomial(30, 8, 2, seed=0, density=0.5)
    assert repr(sparse) == "Simulation(n=30, p=8, s=2, q=3, X=sparse float64, y=int64)"
    assert repr(make_linear(30, 8, 2)) == "Simulation(n=30, p=8, s=2, X=dense float64, y=float64)"


def test_simulation_is_frozen():
    with pytest.raises(AttributeError, match="cannot assign"):
        make_linear(5, 2, 1).y = np.zeros(5)


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        ({"n": 0}, ValueError, "`n` must be at least 1, found 0"),
        ({"p": 2.5}, TypeError, "`p` must be an integer, found 2.5"),
        ({"n": True}, TypeError, "`n` must be an integer, found True"),
        ({"s": -1}, ValueError, "`s` must be at least 0, found -1"),
        ({"p": 10, "s": 11}, ValueError, "s=11 non-zero coefficients do not fit into p=10"),
        ({"M": 0.0}, ValueError, "M=0.0 is out of range; it must be a positive finite number"),
        ({"M": np.inf}, ValueError, "M=inf is out of range"),
        ({"M": "1"}, TypeError, "M must be a positive finite number, but is '1' of type str"),
        ({"r": 1.0}, ValueError, "r=1.0 is out of range; it must be a number strictly between -1 and 1"),
        ({"r": np.nan}, ValueError, "r=nan is out of range"),
        (
            {"density": 0.0},
            ValueError,
            r"density=0.0 is out of range; it must be None or a number in \(0, 1\]",
        ),
        ({"density": 0.1, "r": 0.5}, ValueError, "r=0.5 was given with density=0.1.*leave r out"),
        ({"density": 0.1, "order": "C"}, ValueError, "order='C' was given with density"),
        ({"order": "A"}, ValueError, "order='A' is not a memory order; use 'F'"),
        ({"dtype": int}, ValueError, "dtype=.*int.* is not supported; use numpy.float64 or numpy.float32"),
        ({"dtype": "nonsense"}, ValueError, "dtype='nonsense' is not supported"),
        ({"seed": -1}, ValueError, r"`seed` must be at least \d, found -1"),
        ({"n_test": 0}, ValueError, r"`n_test` must be at least \d, found 0"),
        ({"n_test": 2.5}, TypeError, "`n_test` must be an integer or None, found 2.5"),
        ({"seed": "a"}, TypeError, "`seed` must be an integer, a Generator or None, found 'a'"),
    ],
)
def test_bad_arguments_are_named(make, wrong, error, text):
    with pytest.raises(error, match=text):
        make(**wrong)


@pytest.mark.parametrize("snr", [0.0, -1.0, np.nan])
def test_bad_snr(snr):
    with pytest.raises(ValueError, match=r"snr=.* is out of range; it must be a positive number"):
        make_linear(snr=snr)


def test_bad_number_of_classes():
    with pytest.raises(ValueError, match="`n_classes` must be at least 2, found 1"):
        make_multinomial(n_classes=1)


def test_independent_columns_may_be_asked_for_explicitly(make):
    assert make(20, 5, 2, r=0, density=0.5, seed=0).X.shape == (20, 5)
