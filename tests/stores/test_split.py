"""Split LBI as a store, defined here alone: what is sparse is not the coefficients but their differences."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bregpath import Path, trace_path
from bregpath.stores import AbstractStore, DenseBlock, Scan, scan_columns

# [split]


class SplitStore(AbstractStore):
    r"""``eta = [X alpha; (D alpha - beta) / sqrt(nu)]``: coefficients alpha, whose ``D alpha`` is near a sparse beta.

    With squared loss and zeros appended to y the loss is :math:`|y - X\alpha|^2 + |D\alpha - \beta|^2 / \nu`, halved.
    """

    has_intercepts = False

    def __init__(self, X: np.ndarray, D: np.ndarray, nu: float) -> None:
        self.alpha_columns = np.vstack([X, D / np.sqrt(nu)])
        self.beta_columns = np.vstack([np.zeros((len(X), len(D))), -np.eye(len(D)) / np.sqrt(nu)])
        self.shape = self.beta_columns.shape

    def n_alpha(self, n_outputs: int) -> int:
        return self.alpha_columns.shape[1]

    def spread(self, alpha: np.ndarray, eta: np.ndarray) -> np.ndarray:
        return eta + (self.alpha_columns @ alpha)[:, None]

    def collect(self, residual: np.ndarray) -> np.ndarray:
        return self.alpha_columns.T @ residual[:, 0]

    def scan(self, w: np.ndarray) -> Scan:
        return scan_columns(self.beta_columns, w)

    def products(self, vectors: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        return self.beta_columns.T[slice(None) if columns is None else columns] @ vectors

    def fetch(self, columns: np.ndarray) -> DenseBlock:
        return DenseBlock(self.beta_columns[:, columns])


# [/split]


def signal() -> tuple[np.ndarray, np.ndarray]:
    """Three levels, and a noisy measurement of each."""
    truth = np.repeat([0.0, 2.0, -1.0], [30, 40, 30])
    return truth, truth + 0.3 * np.random.default_rng(2).normal(size=100)


def fused(nu: float = 1.0) -> SplitStore:
    return SplitStore(np.eye(100), np.diff(np.eye(100), axis=0), nu)


def traced(store: SplitStore, y: np.ndarray, **options) -> Path:
    padded = np.append(y, np.zeros(store.shape[0] - len(y)))
    return trace_path(store, padded, standardize=False, **options)


def test_the_true_jumps_enter_first() -> None:
    truth, y = signal()
    path = traced(fused(), y, t_ratio=10.0, n_times=50)
    assert set(np.argsort(path.entry_times)[:2]) == {29, 69}
    third = np.sort(path.entry_times)[2]
    assert third > 2 * path.t[0]
    point = path.at(0.99 * third)
    assert_array_equal(np.flatnonzero(point.coef), [29, 69])
    # The dense coefficients follow: constant but for the two jumps, and close to the truth.
    assert point.intercept.shape == (100,)
    assert path.intercept.shape == (len(path.t), 100)
    assert np.abs(point.intercept - truth).max() < 0.6 < np.abs(y - truth).max()
    assert_allclose(point.intercept[[29, 30]], point.intercept[29:31])


def test_alpha_starts_at_its_optimum() -> None:
    """Where no jump is allowed yet: a ridge regression on D alpha, in one linear system."""
    _, y = signal()
    store = fused(nu=2.0)
    path = traced(store, y, t_ratio=2.0, n_times=3)
    A = store.alpha_columns
    assert_allclose(path.intercept[0], np.linalg.solve(A.T @ A, A[:100].T @ y), atol=1e-9)


def test_it_is_the_iteration_of_split_lbi() -> None:
    """The three lines, written out, with a fixed step."""
    _, y = signal()
    store, kappa = fused(), 5.0
    A, B, padded = store.alpha_columns, store.beta_columns, np.append(y, np.zeros(99))
    t0 = traced(store, y, kappa=kappa, t_ratio=2.0, n_times=3).t[0]
    step, count = t0 / 40, 60
    path = traced(store, y, kappa=kappa, step=step, t=[t0 + count * step])
    alpha = np.linalg.solve(A.T @ A, A.T @ padded)
    z, beta = t0 * B.T @ (padded - A @ alpha) / len(A), np.zeros(99)
    for _ in range(count):
        residual = (A @ alpha + B @ beta - padded) / len(A)
        alpha, z = alpha - kappa * step * A.T @ residual, z - step * B.T @ residual
        beta = kappa * np.sign(z) * np.maximum(np.abs(z) - 1, 0)
    assert np.count_nonzero(beta) >= 2
    assert_allclose(path.coef[-1], beta, atol=1e-9)
    assert_allclose(path.intercept[-1], alpha, atol=1e-9)


def test_what_needs_intercepts_says_so(tmp_path) -> None:
    _, y = signal()
    path = traced(fused(), y, t_ratio=2.0, n_times=3)
    with pytest.raises(ValueError, match=r"100 unpenalised parameters that are not intercepts.*at\(t\)\.intercept"):
        path.predict(np.ones((2, 99)), path.t[1])
    with pytest.raises(ValueError, match="100 unpenalised parameters that are not intercepts"):
        path.save(tmp_path / "path.npz")
    pytest.importorskip("pandas")
    assert [name for name in path.to_frame() if name.startswith("intercept")][:2] == ["intercept[0]", "intercept[1]"]
