"""Knockoffs: the copies, the threshold, the symmetry of the statistics, and the false discovery rate."""

from __future__ import annotations

import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bregpath
from bregpath.selection import copies as copies_module
from bregpath.selection.copies import (
    FullCorrelation,
    ThinCorrelation,
    copula_copies,
    elliptical_copies,
    equal_spread,
    gaussian_copies,
    reconstruct_spread,
)
from bregpath.selection.knockoffs import STATISTICS, knockoff_select, knockoff_threshold
from tests.helpers import make_data


@pytest.fixture(scope="module")
def data():
    return bregpath.datasets.make_logistic(400, 40, 12, M=2, seed=0)


# --- copies --------------------------------------------------------------------------------------------


def autoregressive(n, p, r, seed):
    rng = np.random.default_rng(seed)
    covariance = r ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    return rng.multivariate_normal(np.zeros(p), covariance, n), covariance


@pytest.mark.parametrize("spread", ["reconstruct", "equal"])
@pytest.mark.parametrize("known", [True, False])
def test_copies_have_the_second_moments(known, spread):
    X, covariance = autoregressive(20_000, 4, 0.5, 3)
    scale, shift = np.array([1.0, 10.0, 0.1, 3.0]), np.array([5.0, 0.0, -2.0, 1.0])
    scaled = covariance * np.outer(scale, scale)
    copies = gaussian_copies(X * scale + shift, seed=3, covariance=scaled if known else None, spread=spread)
    both = np.cov(X.T * scale[:, None], (copies.T - shift[:, None])) / np.tile(np.outer(scale, scale), (2, 2))
    full = FullCorrelation(covariance)
    s = equal_spread(full) if spread == "equal" else reconstruct_spread(full)
    assert_allclose(both[4:, 4:], covariance, atol=0.05)
    assert_allclose(both[:4, 4:], covariance - np.diag(s), atol=0.05)
    assert_allclose(copies.mean(axis=0), shift, atol=0.05 * scale.max())


def test_copies_of_few_rows_and_many_columns():
    X = np.random.default_rng(0).normal(size=(20, 50))
    copies = gaussian_copies(X)
    assert np.isfinite(copies).all() and not np.array_equal(copies, gaussian_copies(X, seed=1))
    assert_array_equal(copies, gaussian_copies(X, seed=0))


def test_copies_do_not_repeat_the_data():
    """Data drawn with the same seed must not come back as the noise of their copies."""
    X = np.random.default_rng(0).standard_normal((2000, 3))
    assert np.abs(np.corrcoef(X.T, gaussian_copies(X, seed=0).T)[:3, 3:]).max() < 0.1


def test_reconstruct_spread_is_the_minimum(rng):
    from scipy.optimize import minimize

    X = rng.normal(size=(40, 6)) @ rng.normal(size=(6, 6))
    correlation = np.corrcoef(X.T)

    def objective(s):
        apart = 2 * correlation - np.diag(s)
        if np.linalg.eigvalsh(apart)[0] <= 0 or s.min() <= 0:
            return np.inf
        return np.trace(np.linalg.inv(apart)) + np.sum(1 / s)

    full = FullCorrelation(correlation)
    own = reconstruct_spread(full, sweeps=500, tol=1e-10)
    other = minimize(objective, equal_spread(full) / 2, method="Nelder-Mead", options=dict(maxiter=4000))
    assert objective(own) <= other.fun * (1 + 1e-9)
    assert objective(reconstruct_spread(full)) <= 1.01 * objective(own)
    assert_allclose(reconstruct_spread(FullCorrelation(np.eye(3))), 1.0, atol=1e-3)


def test_blocks_of_columns_change_nothing(monkeypatch):
    _, correlation = autoregressive(4, 30, 0.7, 0)
    spreads = []
    for block in (1, 7, 64):
        monkeypatch.setattr(copies_module, "BLOCK", block)
        spreads.append(reconstruct_spread(FullCorrelation(correlation)))
    assert_allclose(spreads[1:], spreads[:1] * 2, rtol=1e-10)


# --- fewer rows than columns ---------------------------------------------------------------------------


def thin_and_full(n, p, share, seed=0):
    A = np.sqrt((1 - share) / n) * np.random.default_rng(seed).normal(size=(n, p)).T
    A *= np.sqrt((1 - share) / np.sum(A**2, axis=1))[:, None]
    return ThinCorrelation(A, share), FullCorrelation(share * np.eye(p) + A @ A.T)


@pytest.mark.parametrize("share", [0.05, 0.4, 0.9])
def test_thin_spread_is_the_full_one(share):
    thin, full = thin_and_full(15, 80, share)
    assert_allclose(equal_spread(thin), equal_spread(full), rtol=1e-8)
    assert_allclose(reconstruct_spread(thin), reconstruct_spread(full), rtol=1e-8)


def test_thin_copies_have_the_second_moments(rng):
    thin, full = thin_and_full(2, 5, 0.4)
    s = reconstruct_spread(thin)
    rows = rng.multivariate_normal(np.zeros(5), full.matrix, 100_000)
    expected = np.block([[full.matrix, full.matrix - np.diag(s)], [full.matrix - np.diag(s), full.matrix]])
    for correlation in (thin, full):
        assert_allclose(np.cov(rows.T, correlation.draw(rows, s, rng).T), expected, atol=0.02)


@pytest.mark.parametrize("n", [4, 20, 40])
def test_shrinkage_of_wide_data_is_that_of_all_eigenvalues(n, rng, monkeypatch):
    X = rng.normal(size=(n, 160)) + 2 * rng.normal(size=(n, 1))
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    thin = copies_module._estimate(scaled, lambda done: None)
    monkeypatch.setattr(copies_module, "THIN", np.inf)
    full = copies_module._estimate(scaled, lambda done: None)
    assert isinstance(thin, ThinCorrelation) and isinstance(full, FullCorrelation)
    assert_allclose(thin.matrix, full.matrix, atol=1e-12)


def test_thousands_of_columns_form_no_square_matrix(rng):
    import tracemalloc

    X = rng.normal(size=(30, 3000))
    tracemalloc.start()
    gaussian_copies(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3000**2 * 8 / 2


def test_long_work_is_announced(monkeypatch):
    monkeypatch.setattr(copies_module, "LONG", 0.0)
    with pytest.warns(UserWarning, match="Copies of 3 columns will take about .* seconds.*progress=True"):
        gaussian_copies(np.random.default_rng(0).normal(size=(50, 3)))


def test_progress_of_copies(data, monkeypatch):
    shown = []

    @contextmanager
    def bar(show, label, end):
        shown.append((show, label, end))
        yield lambda done: shown.append(done)

    monkeypatch.setattr(copies_module, "work_bar", bar)
    knockoff_select(data.X, data.y, loss="logistic", progress=None)
    (show, label, end), *done = shown
    assert (show, label) == (None, "making copies")
    assert done[:6] == [1, 2, 3, 4, 5, 6] and done == sorted(done) and done[-1] < end


@pytest.mark.parametrize("show", [True, False])
def test_bars_are_drawn_if_wanted(data, monkeypatch, show):
    rich_progress = pytest.importorskip("rich.progress")
    labels = []

    class Bar(rich_progress.Progress):
        def add_task(self, label, **kwargs):
            labels.append(label)
            return super().add_task(label, **kwargs)

    monkeypatch.setattr(rich_progress, "Progress", Bar)
    knockoff_select(data.X, data.y, loss="logistic", progress=show)
    assert labels == ["making copies", "tracing the path"] * show


# --- other distributions -------------------------------------------------------------------------------


def test_copula_copies_keep_the_margins(rng):
    X, covariance = autoregressive(4000, 3, 0.6, 0)
    X = np.column_stack([np.exp(2 * X[:, 0]), X[:, 1] > 0.8, np.round(X[:, 2])])
    copies = copula_copies(X, seed=1)
    assert np.isin(copies[:, 0], X[:, 0]).all() and set(copies[:, 1]) == {0.0, 1.0}
    assert_allclose(np.quantile(copies, [0.2, 0.5, 0.9], axis=0), np.quantile(X, [0.2, 0.5, 0.9], axis=0), rtol=0.15)
    assert_allclose(copies[:, 1].mean(), X[:, 1].mean(), atol=0.03)


def test_copula_copies_do_not_depend_on_the_scale():
    """Any increasing change of a column changes its copy alike."""
    X, _ = autoregressive(300, 3, 0.6, 0)
    copies = copula_copies(X, seed=1)
    assert_allclose(copula_copies(np.exp(X), seed=1), np.exp(copies), rtol=1e-12)
    both = np.corrcoef(X.T, copies.T)
    assert_allclose(both[3:, 3:], both[:3, :3], atol=0.15)
    assert_allclose(both[0, 4], both[0, 1], atol=0.15)


def test_elliptical_copies_have_the_sizes_of_their_rows(rng):
    X, covariance = autoregressive(4000, 20, 0.6, 0)
    size = np.sqrt(rng.chisquare(3, (4000, 1)) / 3)
    X[0] = 0.0  # a row without a size
    copies = elliptical_copies(5 + X / size, seed=1)
    lengths = (np.linalg.norm(rows, axis=1) for rows in (X / size, copies - 5))
    assert np.corrcoef(*(np.log(length[1:]) for length in lengths))[0, 1] > 0.8
    both = np.corrcoef((X * 1.0).T, ((copies - 5) * size).T)
    assert_allclose(both[20:, 20:], covariance, atol=0.15)
    assert_allclose(both[0, 21:], covariance[0, 1:], atol=0.15)


@pytest.mark.parametrize(("name", "make"), [("copula", copula_copies), ("elliptical", elliptical_copies)])
def test_other_distributions_are_options(data, name, make):
    result = knockoff_select(np.exp(data.X), data.y, loss="logistic", copies=name, fdr=0.2, seed=3)
    fakes = make(np.exp(data.X), copies_module.make_generator(3))
    by_hand = knockoff_select(np.exp(data.X), data.y, loss="logistic", copies=fakes, fdr=0.2)
    assert_allclose(result.statistics, by_hand.statistics)


def test_a_twin_does_not_spoil_the_others():
    X = np.random.default_rng(0).normal(size=(500, 4))
    X[:, 3] = X[:, 2] + 1e-3 * X[:, 3]
    likeness = {}
    for spread in ("equal", "reconstruct"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            copies = gaussian_copies(X, spread=spread)
        likeness[spread] = np.diagonal(np.corrcoef(X.T, copies.T)[:4, 4:])
    assert likeness["equal"].min() > 0.99
    assert np.abs(likeness["reconstruct"][:2]).max() < 0.2


def estimated(scaled):
    return copies_module._estimate(scaled, lambda done: None).matrix


def test_shrinkage_fades_and_takes_over(rng):
    X, correlation = autoregressive(4000, 5, 0.6, 0)
    assert_allclose(estimated(X / X.std(axis=0)), correlation, atol=0.05)
    noise = rng.normal(size=(12, 30))
    scaled = (noise - noise.mean(axis=0)) / noise.std(axis=0)
    shrunken = estimated(scaled)
    assert_allclose(np.diagonal(shrunken), 1.0)
    assert np.linalg.eigvalsh(shrunken)[0] > 0.1
    np.linalg.cholesky(estimated(scaled[:4]))  # 4 rows, 30 columns: still a correlation matrix


def test_near_copies_are_named():
    X = np.random.default_rng(0).normal(size=(5000, 2))
    X[:, 1] = X[:, 0] + 1e-6 * X[:, 1]
    with pytest.warns(UserWarning, match="columns 0 and 1 have correlation 0.99"):
        gaussian_copies(X)


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


def test_unknown_spread():
    with pytest.raises(ValueError, match="`spread` must be"):
        gaussian_copies(np.random.default_rng(0).normal(size=(9, 2)), spread="wide")


def test_sparse_is_refused():
    from scipy.sparse import csr_array

    with pytest.raises(TypeError, match="`X` is sparse"):
        knockoff_select(csr_array(np.eye(10)), np.arange(10.0))
