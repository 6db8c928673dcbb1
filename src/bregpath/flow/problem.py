"""What a flow integrates: a loss of a design, with a penalty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bregpath._typing import Array
from bregpath.designs import AbstractDesign
from bregpath.losses import AbstractLoss
from bregpath.penalties import AbstractPenalty

__all__ = ["Problem", "null_model"]


@dataclass(frozen=True)
class Problem:
    """Design x loss x penalty, in the units in which the path is traced.

    ``w`` sums to one and ``offset`` is ``(n, q)``. All arrays have a trailing axis of ``q`` outputs; losses with one
    output see vectors.
    """

    design: AbstractDesign
    loss: AbstractLoss
    penalty: AbstractPenalty
    y: Array
    w: Array
    offset: Array
    kappa: float
    fit_intercept: bool

    @property
    def n_outputs(self) -> int:
        return self.offset.shape[1]

    def predictor(self, block: AbstractDesign, alpha: Array, beta: Array, offset: bool = True) -> Array:
        """``alpha + block @ beta (+ offset)``."""
        eta = block.matvec(beta) + alpha
        return eta + self.offset if offset else eta

    def value(self, eta: Array) -> float:
        """Loss at ``eta``."""
        return self.loss.value(self._flat(eta), self.y, self.w)

    def residual(self, eta: Array) -> Array:
        """Derivative of the loss with respect to ``eta``."""
        return self.loss.gradient(self._flat(eta), self.y, self.w).reshape(eta.shape)

    def curvature(self, eta: Array, direction: Array) -> Array:
        """Second derivative of the loss applied to a direction."""
        bent = self.loss.curvature(self._flat(eta), self.y, self.w, self._flat(direction))
        return bent.reshape(eta.shape)

    def alpha_slope(self, residual: Array) -> Array:
        """Speed of the intercepts."""
        if not self.fit_intercept:
            return np.zeros(residual.shape[1])
        return -self.kappa * residual.sum(axis=0)

    def _flat(self, eta: Array) -> Array:
        return eta[:, 0] if eta.shape[1] == 1 else eta


def null_model(problem: Problem, max_iter: int = 100) -> tuple[Array, Array]:
    """Intercept and free coefficients that minimise the loss while all others are zero, by damped Newton steps."""
    free = np.flatnonzero(problem.penalty.free)
    block = problem.design.columns(free)
    q = problem.n_outputs
    alpha, beta = np.zeros(q), np.zeros((len(free), q))
    if problem.fit_intercept:
        alpha = np.asarray(problem.loss.null(problem.y, problem.w), dtype=float).copy()
    value = problem.value(problem.predictor(block, alpha, beta))
    size, change = np.inf, np.inf
    for _ in range(max_iter):
        eta = problem.predictor(block, alpha, beta)
        residual = problem.residual(eta)
        gradient = np.concatenate([residual.sum(axis=0) * problem.fit_intercept, block.rmatvec(residual).ravel()])
        # Close to the optimum the loss falls by less than its rounding, but the gradient still falls: follow it.
        rounding, before = 1e-14 * abs(value), size
        size = float(np.max(np.abs(gradient), initial=0.0))
        if size < 1e-15 or (change <= rounding and size > 0.5 * before):
            break
        step = _newton_direction(problem, block, eta, gradient)
        for _ in range(40):
            trial = alpha - step[:q], beta - step[q:].reshape(beta.shape)
            new = problem.value(problem.predictor(block, *trial))
            if new <= value + rounding:
                break
            step = step / 2
        else:
            break
        done = np.max(np.abs(step)) <= 1e-15 * (1 + np.max(np.abs(alpha)))
        (alpha, beta), value, change = trial, new, abs(new - value)
        if done:
            break
    else:
        raise ValueError(
            "The unpenalised part of the model (intercept and columns with `penalty_factor` 0) has no finite optimum; "
            "penalise some of those columns."
        )
    full = np.zeros((problem.design.shape[1], q))
    full[free] = beta
    return alpha, full


def _newton_direction(problem: Problem, block: AbstractDesign, eta: Array, gradient: Array) -> Array:
    """Hessian of the free block, column by column, and the least-norm Newton step (it may be singular)."""
    q, size = problem.n_outputs, len(gradient)
    hessian = np.zeros((size, size))
    for k in range(size):
        unit = np.zeros(size)
        unit[k] = 1.0
        eta_dir = problem.predictor(block, unit[:q] * problem.fit_intercept, unit[q:].reshape(-1, q), offset=False)
        bent = problem.curvature(eta, eta_dir)
        hessian[:, k] = np.concatenate([bent.sum(axis=0) * problem.fit_intercept, block.rmatvec(bent).ravel()])
    return np.linalg.lstsq(hessian, gradient, rcond=1e-12)[0]
