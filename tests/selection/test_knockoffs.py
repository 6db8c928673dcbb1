"""Knockoffs: the threshold, the symmetry of the statistics, and the false discovery rate."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bregpath
from bregpath.selection.copies import gaussian_copies
from bregpath.selection.knockoffs import STATISTICS, knockoff_select, knockoff_threshold
from tests.helpers import make_data


@pytest.fixture(scope="module")
def data():
    return bregpath.datasets.make_logistic(400, 40, 12, M=2, seed=0)


# --- threshold -----------------------------------------------------------------------------------------


def brute_threshold(W, fdr):
    for w in np.sort(np.abs(W[W != 0])):
        if (1 + np.sum(W <= -w)) / max(np.sum(W >= w), 1) <= fdr:
            return w
    return np.inf


def test_threshold_is_the_definition(rng):
    for _ in range(200):
        W = np.round(rng.normal(0.7, 1.0, size=25), 1)
        for fdr in (0.1, 0.2, 0.5):
            assert knockoff_threshold(W, fdr) == brute_threshold(W, fdr)
    assert knockoff_threshold(np.zeros(5), 0.2) == np.inf
    assert knockoff_threshold(np.ones(10), 0.1) == 1.0
    assert knockoff_threshold(np.ones(9), 0.1) == np.inf  # nothing, not everything


# --- statistics ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("statistic", STATISTICS)
def test_a_swap_turns_the_sign(data, statistic):
    X, copies = data.X[:, :12], gaussian_copies(data.X[:, :12])
    swapped = np.array([0, 3, 11])
    X_swapped, copies_swapped = X.copy(), copies.copy()
    X_swapped[:, swapped], copies_swapped[:, swapped] = copies[:, swapped], X[:, swapped]
    options = dict(loss="logistic", statistic=statistic, fdr=0.3)
    W = knockoff_select(X, data.y, copies=copies, **options).statistics
    turned = knockoff_select(X_swapped, data.y, copies=copies_swapped, **options).statistics
    sign = np.ones(12)
    sign[swapped] = -1
    assert_allclose(turned, sign * W, rtol=1e-6)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_order_and_scale_of_columns_do_not_matter(data, statistic, rng):
    X, copies = data.X[:, :12], gaussian_copies(data.X[:, :12])
    order, scale = rng.permutation(12), rng.uniform(0.1, 10, 12)
    options = dict(loss="logistic", statistic=statistic)
    W = knockoff_select(X, data.y, copies=copies, **options).statistics
    moved = knockoff_select((X * scale)[:, order], data.y, copies=(copies * scale)[:, order], **options).statistics
    assert_allclose(moved, W[order], rtol=1e-6)


def test_entry_statistic_by_hand(data):
    result = knockoff_select(data.X, data.y, loss="logistic", statistic="entry")
    own, fake = result.path.entry_times[:40], result.path.entry_times[40:]
    first = np.minimum(own, fake)
    entered = np.isfinite(first)
    assert_allclose(result.statistics[entered], np.where(own < fake, 1, -1)[entered] / first[entered])
    assert not result.statistics[~entered].any()


def test_identical_copies_tie(data):
    for statistic in STATISTICS:
        result = knockoff_select(data.X, data.y, loss="logistic", copies=data.X, statistic=statistic)
        assert not result.statistics.any()
        assert result.threshold == np.inf and len(result.selected) == 0
        assert "No threshold keeps to this rate" in repr(result)


# --- selection -----------------------------------------------------------------------------------------


def test_finds_the_support(data):
    result = bregpath.knockoff_select(data.X, data.y, loss="logistic", fdr=0.1)
    assert set(data.support) <= set(result.selected) and len(result.selected) <= 14
    assert_array_equal(result.selected, np.flatnonzero(result.statistics >= result.threshold))
    assert result.path.n_features == 80
    stricter = result.at_level(0.01)
    assert len(stricter.selected) == 0 and stricter.fdr == 0.01
    assert_array_equal(stricter.at_level(0.1).selected, result.selected)
    assert f"{len(result.selected)} of 40 columns" in repr(result)


def test_callable_copies_and_seed(data):
    seen = []

    def sampler(X, rng):
        seen.append(rng.integers(1000))
        return gaussian_copies(X, rng)

    knockoff_select(data.X, data.y, loss="logistic", copies=sampler, seed=4)
    knockoff_select(data.X, data.y, loss="logistic", copies=sampler, seed=4)
    assert seen[0] == seen[1]


def test_free_columns_and_limits():
    X, y = make_data("gaussian", n=80, p=10)
    factor, lower = np.r_[0.0, np.ones(9)], np.r_[-np.inf, np.zeros(9)]
    result = knockoff_select(X, y, penalty_factor=factor, lower=lower, fdr=0.5)
    assert result.statistics[0] == 0 and np.isinf(result.path.entry_times[10])
    assert (result.path.coef[:, 1:10] >= 0).all() and (result.path.coef[:, 11:] >= 0).all()


def test_multinomial_and_frames():
    pd = pytest.importorskip("pandas")
    pytest.importorskip("narwhals")
    sim = bregpath.datasets.make_multinomial(400, 20, 8, M=2, seed=1)
    frame = pd.DataFrame(sim.X, columns=[f"gene{j}" for j in range(20)])
    result = knockoff_select(frame, sim.y, loss="multinomial", penalty="group", fdr=0.2)
    assert len(set(result.selected) & set(range(8))) >= 5 and "gene" in repr(result)
    frame["kind"] = "a"
    with pytest.raises(ValueError, match=r"categorical columns \['kind'\]"):
        knockoff_select(frame, sim.y, loss="multinomial")


@pytest.mark.slow
@pytest.mark.parametrize("statistic", STATISTICS)
def test_false_discovery_rate_in_simulation(statistic):
    shares = {0.1: [], 0.2: []}
    power = []
    for seed in range(40):
        sim = bregpath.datasets.make_linear(200, 40, 15, r=0.5, seed=seed, snr=3)
        result = knockoff_select(sim.X, sim.y, statistic=statistic, seed=seed)
        for fdr, found in shares.items():
            selected = result.at_level(fdr).selected
            found.append(np.count_nonzero(selected >= 15) / max(len(selected), 1))
        power.append(np.count_nonzero(selected < 15) / 15)
    for fdr, found in shares.items():
        assert np.mean(found) <= fdr + 2 * np.std(found) / np.sqrt(len(found))
    assert np.mean(power) > 0.5


# --- words ---------------------------------------------------------------------------------------------


def constant(X):
    X = X.copy()
    X[:, 2] = 0.3
    return X


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (None, dict(fdr=0.0), "`fdr` must be a number above 0 and below 1"),
        (None, dict(fdr=1), "`fdr` must be a number above 0 and below 1"),
        (None, dict(fdr="low"), "`fdr` must be"),
        (None, dict(statistic="lasso"), "`statistic` must be one of"),
        (None, dict(copies="magic"), "`copies` must be one of"),
        (None, dict(copies=np.zeros((3, 3))), "`copies` must be finite and have the shape of X"),
        (None, dict(copies=np.zeros((30, 5)), covariance=np.eye(5)), "`covariance` is for normal copies"),
        (None, dict(copies="copula", covariance=np.eye(5)), "`covariance` is for normal copies"),
        (None, dict(covariance=np.eye(3)), r"`covariance` must be a finite symmetric matrix of shape \(5, 5\)"),
        (None, dict(covariance=np.ones((5, 5))), "`covariance` must be positive definite"),
        (None, dict(groups=[0, 0, 1, 1, 1], penalty="group"), "`groups` is not possible"),
        (None, dict(penalty_factor=np.ones(3)), "`penalty_factor` must have one entry a column"),
        (constant, {}, r"constant columns \[2\]"),
        (lambda X: X[:3], {}, "`X` has 3 rows, too few to estimate the covariance"),
        (lambda X: np.where(X > 1, np.nan, X), {}, "`X` contains NaN"),
    ],
)
def test_errors_name_the_argument(change, options, message):
    X, y = make_data("gaussian", n=30, p=5)
    X = X if change is None else change(X)
    with pytest.raises(ValueError, match=message):
        knockoff_select(X, y[: len(X)], **options)


def test_sparse_is_refused():
    from scipy.sparse import csr_array

    with pytest.raises(TypeError, match="`X` is sparse"):
        knockoff_select(csr_array(np.eye(10)), np.arange(10.0))
