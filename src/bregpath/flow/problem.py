"""What a flow integrates: a loss of a design, with a penalty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bregpath._typing import Array
from bregpath.designs import AbstractDesign
from bregpath.losses import AbstractLoss
from bregpath.penalties import AbstractPenalty

__all__ = ["Problem", "null_model"]

MAX_DENSE_NEWTON = 300  # parameters of a null model whose Hessian is formed


@dataclass(frozen=True)
class Problem:
    """Design x loss x penalty, in the units in which the path is traced.

    ``w`` sums to one and ``offset`` has the shape of the predictor, or one that broadcasts to it. The predictor of a
    regression is ``(n, q)`` with q outputs, and coefficients have a trailing axis of q as well; losses with one output
    see vectors. In a graph the predictor has a column a node (or a state of one) and coefficients one a pair.
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
    def n_alpha(self) -> int:
        """Number of unpenalised parameters: intercepts, fields, diagonals."""
        return self.offset.shape[1]

    @property
    def beta_shape(self) -> tuple[int, int]:
        """Shape of all coefficients."""
        return self.penalty.weights.shape  # type: ignore[return-value]

    def predictor(self, block: AbstractDesign, alpha: Array, beta: Array, offset: bool = True) -> Array:
        """``alpha + block @ beta (+ offset)``."""
        eta = self.design.spread(alpha, block.matvec(beta))
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
        """Speed of the unpenalised parameters."""
        return -self.kappa * self.alpha_gradient(residual)

    def alpha_gradient(self, residual: Array) -> Array:
        """Derivative with respect to the unpenalised parameters; zero where there are none to fit."""
        return self.design.collect(residual) if self.fit_intercept else np.zeros(self.n_alpha)

    def _flat(self, eta: Array) -> Array:
        return eta[:, 0] if eta.shape[1] == 1 else eta


def null_model(problem: Problem, max_iter: int = 100) -> tuple[Array, Array]:
    """Intercept and free coefficients that minimise the loss while all others are zero, by damped Newton steps."""
    free = np.flatnonzero(problem.penalty.free)
    block = problem.design.columns(free)
    full = np.zeros(problem.beta_shape)
    q = problem.n_alpha
    alpha, beta = np.zeros(q), full[free]
    if problem.fit_intercept:
        alpha = np.asarray(problem.loss.null(problem.y, problem.w), dtype=float).copy()
    exact = problem.loss.null_is_exact and problem.fit_intercept and not problem.offset.any()
    if exact and not len(free):
        return alpha, full
    value = problem.value(problem.predictor(block, alpha, beta))
    size, change = np.inf, np.inf
    for _ in range(max_iter):
        eta = problem.predictor(block, alpha, beta)
        gradient = _gradient(problem, block, problem.residual(eta))
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
    full[free] = beta
    return alpha, full


def _gradient(problem: Problem, block: AbstractDesign, residual: Array) -> Array:
    """Derivative with respect to alpha and the coefficients of a block, one after the other."""
    return np.concatenate([problem.alpha_gradient(residual), block.rmatvec(residual).ravel()])


def _newton_direction(problem: Problem, block: AbstractDesign, eta: Array, gradient: Array) -> Array:
    """The least-norm Newton step on alpha and a block (the Hessian may be singular)."""
    q, size = problem.n_alpha, len(gradient)
    shape = block.shape[1], problem.beta_shape[1]

    def bend(v: Array) -> Array:
        eta_dir = problem.predictor(block, v[:q] * problem.fit_intercept, v[q:].reshape(shape), offset=False)
        return _gradient(problem, block, problem.curvature(eta, eta_dir))

    if size > MAX_DENSE_NEWTON:
        from scipy.sparse.linalg import LinearOperator, cg

        return cg(LinearOperator((size, size), matvec=bend), gradient, rtol=1e-10)[0]
    hessian = np.stack([bend(unit) for unit in np.eye(size)], axis=1) if size else np.zeros((0, 0))
    return np.linalg.lstsq(hessian, gradient, rcond=1e-12)[0]
