"""Signals and regressions with a structure, and the iteration of Split LBI written out."""

from __future__ import annotations

import numpy as np
from scipy.special import expit


def steps_signal(seed: int, noise: float = 0.25) -> tuple[np.ndarray, np.ndarray]:
    """Three levels, and a noisy measurement of each of 100 positions; jumps after 29 and 69."""
    truth = np.repeat([0.0, 2.0, -1.0], [30, 40, 30])
    return truth, truth + noise * np.random.default_rng(seed).normal(size=100)


def blocky_regression(loss: str, n: int = 80, p: int = 12, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A regression whose coefficients are constant in two pieces."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + 0.5
    eta = X @ np.where(np.arange(p) < p // 2, 0.5, -0.5)
    return X, np.where(rng.random(n) < expit(eta), 1, -1) if loss == "logistic" else eta + rng.normal(size=n)


def plain_iteration(
    loss: str, X: np.ndarray, y: np.ndarray, D: np.ndarray, nu: float, kappa: float, step: float, n: int
) -> tuple[float, float, np.ndarray, np.ndarray]:
    """``n`` steps from the first entry on: its time, intercept, dense coefficients and split variable.

    alpha moves in the norm nu |alpha|^2 + |D alpha|^2, with X about its means, and the intercept in a unit of its own.
    """
    mean, p, m = X.mean(axis=0), X.shape[1], len(D)
    X = X - mean
    cost = np.mean(np.mean(X**2, axis=0)) / nu
    metric = np.linalg.inv(nu * np.eye(p) + D.T @ D)

    def slopes(a: float, alpha: np.ndarray, gamma: np.ndarray):
        eta = a + X @ alpha
        r = (-y * expit(-y * eta) if loss == "logistic" else eta - y) / len(y)
        rest = cost * (D @ alpha - gamma)
        return r.sum(), X.T @ r + D.T @ rest, rest

    a, alpha, gamma = 0.0, np.zeros(p), np.zeros(m)
    for _ in range(60):  # Newton to the best model with gamma = 0
        eta = a + X @ alpha
        bend = (expit(eta) * expit(-eta) if loss == "logistic" else np.ones(len(y))) / len(y)
        A = np.column_stack([np.ones(len(y)), X])
        H = A.T @ (bend[:, None] * A)
        H[1:, 1:] += cost * D.T @ D
        slope = slopes(a, alpha, gamma)
        move = np.linalg.solve(H, np.append(slope[0], slope[1]))
        a, alpha = a - move[0], alpha - move[1:]
    rest = slopes(a, alpha, gamma)[2]
    t0 = 1 / np.abs(rest).max()
    z = t0 * rest
    for _ in range(n):
        slope = slopes(a, alpha, gamma)
        a -= kappa * step * cost * slope[0]
        alpha = alpha - kappa * step * metric @ slope[1]
        z = z + step * slope[2]
        gamma = kappa * np.sign(z) * np.maximum(np.abs(z) - 1, 0)
    return t0, a - mean @ alpha, alpha, gamma
