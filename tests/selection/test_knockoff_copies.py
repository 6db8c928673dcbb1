"""Copies of knockoffs: their moments, many columns, other distributions, what is announced."""

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
from bregpath.selection.knockoffs import knockoff_select


@pytest.fixture(scope="module")
def data():
    return bregpath.datasets.make_logistic(400, 40, 12, M=2, seed=0)


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


def test_unknown_spread():
    with pytest.raises(ValueError, match="`spread` must be"):
        gaussian_copies(np.random.default_rng(0).normal(size=(9, 2)), spread="wide")
