"""The least loss plus a ridge on some columns, by Newton steps, and on fewer and fewer of them."""

from __future__ import annotations

import numpy as np

from bregpath._typing import Array
from bregpath.problem import Problem

__all__ = ["DampedFit", "contrasts"]

MAX_NEWTON, MAX_HALVINGS = 100, 40
ROUNDING = 1e-14  # of an objective
SINGULAR = 1e-13  # share of a pivot in the entry of the diagonal that it comes from
SLOW = 0.1  # a step that leaves more than this share of the gain to come asks for a new Hessian


def contrasts(q: int) -> Array:
    """Orthonormal contrasts (q, q - 1) of q classes or levels, of which only differences count."""
    return np.linalg.svd(np.eye(q) - 1.0 / q)[0][:, : q - 1]


def _inverse(matrix: Array) -> Array:
    """Of a symmetric matrix; where it is singular, its pseudo-inverse."""
    try:
        factor = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        factor = np.zeros_like(matrix)
    if (np.diagonal(factor) ** 2 <= SINGULAR * np.diagonal(matrix)).any():
        return np.linalg.pinv(matrix, hermitian=True)
    half = np.linalg.inv(factor)
    return half.T @ half


class DampedFit:
    r"""Parameters of some columns that minimise the loss plus a ridge,

    .. math:: \ell(\mathrm{offset} + D\, \Theta\, C^\top) + \tfrac12 \sum_k \rho_k \theta_k^2 ,

    with D the ``design`` (n, m) and C the contrasts of the outputs (q, r): ``theta`` has a number for each column and
    contrast, r of them a column.
    """

    def __init__(self, problem: Problem, design: Array, ridge: Array) -> None:
        q = problem.beta_shape[1]
        self.problem, self.design = problem, design
        self.contrasts = contrasts(q) if problem.loss.is_classifier and q > 1 else np.eye(q)
        self.ridge = np.repeat(ridge, self.contrasts.shape[1])  # of each parameter
        self.theta = np.zeros(len(self.ridge))
        self.inverse: Array | None = None  # of the Hessian, here or where theta was before

    def predictor(self, theta: Array) -> Array:
        """The linear predictor, (n, q)."""
        return self.problem.offset + self.design @ self._by_contrast(theta) @ self.contrasts.T

    def hessian(self, eta: Array) -> Array:
        """Of the loss alone."""
        r, m = self.contrasts.shape[1], self.design.shape[1]
        out = np.empty((m, r, m, r))
        for c, contrast in enumerate(self.contrasts.T):
            bent = self.problem.curvature(eta, np.tile(contrast, (len(eta), 1))) @ self.contrasts
            for d in range(c, r):
                out[:, c, :, d] = (self.design * bent[:, d, None]).T @ self.design
                out[:, d, :, c] = out[:, c, :, d]  # symmetric in the columns
        return out.reshape(m * r, m * r)

    def optimise(self, tol: float = 1e-24) -> None:
        """Newton steps, halved until the objective does not rise; the Hessian is kept as long as they shrink quickly.

        ``tol`` is the share of the objective below which what is left to gain does not count.
        """
        value, before = self._objective(self.theta), np.inf
        for _ in range(MAX_NEWTON):
            eta = self.predictor(self.theta)
            slope = (self.design.T @ self.problem.residual(eta) @ self.contrasts).ravel() + self.ridge * self.theta
            if self.inverse is None or slope @ self.inverse @ slope > SLOW * before:
                self.inverse = _inverse(self.hessian(eta) + np.diag(self.ridge))
            step = self.inverse @ slope
            before = float(slope @ step)
            if before <= tol * abs(value):
                return
            for _ in range(MAX_HALVINGS):
                risen = self._objective(self.theta - step) > value + ROUNDING * abs(value)
                if not risen:
                    break
                step = 0.5 * step
            self.theta = self.theta - step
            value = self._objective(self.theta)

    def importance(self, columns: Array) -> float:
        """By how much the objective would rise without some columns, a parameter: Wald's statistic."""
        assert self.inverse is not None
        k = self._parameters(columns)
        return float(self.theta[k] @ np.linalg.solve(self.inverse[np.ix_(k, k)], self.theta[k])) / len(k)

    def drop(self, columns: Array) -> None:
        """Leave some columns out; the others go to where a quadratic objective would have its minimum."""
        assert self.inverse is not None
        k = self._parameters(columns)
        along = np.linalg.solve(self.inverse[np.ix_(k, k)], self.inverse[k]).T
        self.theta = self.theta - along @ self.theta[k]
        self.inverse = self.inverse - along @ self.inverse[k]
        kept = np.delete(np.arange(len(self.theta)), k)
        self.theta, self.inverse, self.ridge = self.theta[kept], self.inverse[np.ix_(kept, kept)], self.ridge[kept]
        self.design = np.delete(self.design, columns, axis=1)

    def by_column(self) -> Array:
        """The parameters as numbers of all outputs, (m, q)."""
        return self._by_contrast(self.theta) @ self.contrasts.T

    def _by_contrast(self, theta: Array) -> Array:
        return theta.reshape(self.design.shape[1], self.contrasts.shape[1])

    def _objective(self, theta: Array) -> float:
        return self.problem.value(self.predictor(theta)) + 0.5 * float(self.ridge @ theta**2)

    def _parameters(self, columns: Array) -> Array:
        r = self.contrasts.shape[1]
        return (np.asarray(columns)[:, None] * r + np.arange(r)).ravel()
