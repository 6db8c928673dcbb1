"""First and second derivatives of a loss with respect to the parameters that an oracle would fit."""

from __future__ import annotations

import numpy as np

from bregpath._typing import Array, IntArray
from bregpath.problem import Problem

__all__ = ["SINGULAR", "Restriction"]

GAUSS_NODES = 8  # of the mean Hessian along a segment
SEGMENT_POINTS = 5  # at which the curvature of a segment is looked at, its ends included
SINGULAR = 1e-10  # smallest eigenvalue, relative to the largest, below which a matrix counts as singular


class Restriction:
    """A loss as a function of ``theta``: the unpenalised parameters, then the coefficients of some columns.

    The loss must act on every entry of the predictor for itself, so that its curvature is a weight an entry; all do
    that have one output, and so do those of Ising models.
    """

    def __init__(self, problem: Problem, columns: IntArray) -> None:
        self.problem = problem
        self.columns = columns
        self.outside = np.setdiff1d(np.arange(problem.beta_shape[0]), columns)
        self.n_alpha = problem.n_alpha if problem.fit_intercept else 0
        block, zero = problem.store.fetch(columns), np.zeros(problem.n_alpha)
        none = np.zeros((len(columns), 1))
        units = [(row, none) for row in np.eye(problem.n_alpha)[: self.n_alpha]]
        units += [(zero, row[:, None]) for row in np.eye(len(columns))]
        effects = [problem.predictor(block, alpha, beta, offset=False) for alpha, beta in units]
        self.shape = effects[0].shape
        self._effects = np.stack([effect.ravel() for effect in effects])  # (m, n q): of each parameter on the predictor

    def predictor(self, theta: Array) -> Array:
        """The linear predictor (n, q)."""
        return (theta @ self._effects).reshape(self.shape) + self.problem.offset

    def gradient(self, theta: Array) -> Array:
        """Derivative with respect to ``theta`` (m,)."""
        return self._effects @ self.problem.residual(self.predictor(theta)).ravel()

    def gradient_outside(self, theta: Array) -> Array:
        """Derivative with respect to the coefficients of all other columns."""
        residual = self.problem.residual(self.predictor(theta))
        return self.problem.store.products(residual[None], self.outside)[0, :, 0]

    def weights(self, theta: Array) -> Array:
        """Curvature of every entry of the predictor (n q,)."""
        return self.problem.curvature(self.predictor(theta), np.ones(self.shape)).ravel()

    def mean_weights(self, start: Array, end: Array) -> Array:
        """Their mean along a segment, by Gauss-Legendre quadrature: exact for squared loss."""
        nodes, shares = _gauss_legendre
        return sum(
            (share * self.weights(start + mu * (end - start)) for mu, share in zip(nodes, shares, strict=True)),
            start=np.zeros(self._effects.shape[1]),
        )

    def hessian(self, weights: Array) -> Array:
        """Second derivative with respect to ``theta`` where the predictor has these curvatures (m, m)."""
        return (self._effects * weights) @ self._effects.T

    def extremes(self, start: Array, end: Array) -> tuple[float, float]:
        """The smallest and the largest eigenvalue of the Hessian along a segment."""
        found = [
            np.linalg.eigvalsh(self.hessian(self.weights(start + mu * (end - start))))[[0, -1]]
            for mu in np.linspace(0.0, 1.0, SEGMENT_POINTS)
        ]
        low, high = np.transpose(found)
        return float(low.min()), float(high.max())

    def regressions(self, weights: Array) -> Array:
        """All other columns regressed on those inside, with these curvatures: ``H_outside,inside H_inside^-1`` (k, m).

        Infinite where the Hessian inside is singular.
        """
        hessian = self.hessian(weights)
        low, high = np.linalg.eigvalsh(hessian)[[0, -1]]
        if not low > SINGULAR * high:
            return np.full((len(self.outside), len(hessian)), np.inf)
        bent = (self._effects * weights).reshape(len(hessian), *self.shape)
        return np.linalg.solve(hessian, self.problem.store.products(bent, self.outside)[:, :, 0]).T


def _on_unit_interval() -> tuple[Array, Array]:
    nodes, shares = np.polynomial.legendre.leggauss(GAUSS_NODES)
    return (nodes + 1) / 2, shares / 2


_gauss_legendre = _on_unit_interval()
