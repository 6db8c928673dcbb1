"""What a flow integrates: a loss of the columns of a store, with a penalty."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from bregpath._records import changed
from bregpath._typing import Array
from bregpath.losses import AbstractLoss
from bregpath.penalties import AbstractPenalty
from bregpath.stores import AbstractBlock, AbstractStore, Scan

__all__ = ["NullModel", "Problem", "first_entry", "null_model"]

MAX_DENSE_NEWTON = 300  # parameters of a null model whose Hessian is formed
MAX_STEPS = 200  # of Newton's method ...
MAX_SHORTER = 60  # ... and trials of each
ROUNDING = 1e-14  # of a loss


@dataclass(frozen=True, eq=False)
class Problem:
    """Store x loss x penalty, in the units in which the path is traced.

    ``w`` sums to one and ``offset`` has the shape of the predictor, or one that broadcasts to it. The predictor of a
    regression is ``(n, q)`` with q outputs, and coefficients have a trailing axis of q as well; losses with one output
    see vectors. In a graph the predictor has a column a node (or a state of one) and coefficients one a pair.
    """

    store: AbstractStore
    loss: AbstractLoss
    penalty: AbstractPenalty
    y: Array
    w: Array
    offset: Array
    kappa: float
    fit_intercept: bool
    known_scan: Scan | None = None  # of the store with these weights, where it has been done
    moments: Any = None  # room for all columns or their Gram matrix, whatever kappa is: `flow.moments.Moments`
    known_slope: Array | None = None  # of the dual variable at the null model, where it is known

    @cached_property
    def scan(self) -> Scan:
        """Mean and deviation of every column."""
        return self.store.scan(self.w) if self.known_scan is None else self.known_scan

    @cached_property
    def floor(self) -> float:
        """Smallest value of the loss that any predictor can reach."""
        return self.loss.saturated(self.y, self.w)

    @cached_property
    def beginning(self) -> Beginning:
        """Where a path begins, whatever its kappa."""
        alpha, beta, eta = null_model(self)
        slope = -self.store.products(self.residual(eta)[None])[0] if self.known_slope is None else self.known_slope
        return Beginning(alpha, beta, self.value(eta), slope, first_entry(self, slope))

    def at_kappa(self, kappa: float) -> Problem:
        """The same problem with another kappa, and the same beginning."""
        return self if kappa == self.kappa else self._but(kappa=kappa)

    def without_moments(self) -> Problem:
        """The same problem with no room for moments, and the same beginning."""
        return self._but(moments=None)

    def _but(self, **changes: Any) -> Problem:
        return changed(self, beginning=self.beginning, **changes)

    @property
    def n_alpha(self) -> int:
        """Number of unpenalised parameters: intercepts, fields, diagonals."""
        return self.store.n_alpha(self.offset.shape[1])

    @property
    def beta_shape(self) -> tuple[int, int]:
        """Shape of all coefficients."""
        return self.penalty.weights.shape  # type: ignore[return-value]

    def predictor(self, block: AbstractBlock, alpha: Array, beta: Array, offset: bool = True) -> Array:
        """``alpha + block @ beta (+ offset)``."""
        eta = self.store.spread(alpha, block.matvec(beta))
        return eta + self.offset if offset else eta

    def level(self, alpha: Array) -> Array:
        """The same where all coefficients are zero, of a store with intercepts."""
        return self.store.spread(alpha, np.zeros((self.store.shape[0], self.offset.shape[1]))) + self.offset

    def value(self, eta: Array) -> float:
        """Loss at ``eta``."""
        return self.loss.value(self._flat(eta), self.y, self.w)

    def rounding(self, value: float) -> float:
        """By how much a loss may be wrong for rounding; it may be near zero where what it is the sum of is not."""
        return ROUNDING * (abs(value) + abs(self.floor))

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
        return self.store.collect(residual) if self.fit_intercept else np.zeros(self.n_alpha)

    def _flat(self, eta: Array) -> Array:
        return eta[:, 0] if eta.shape[1] == 1 else eta


class Beginning(NamedTuple):
    """The null model, without what has a size of the data, and how fast the dual variable moves there."""

    alpha: Array
    beta: Array
    value: float  # loss
    slope: Array
    t0: float  # when the first column enters

    def predictor(self, problem: Problem) -> Array:
        columns = np.flatnonzero(self.beta.any(axis=1))
        if not len(columns) and problem.store.has_intercepts:
            return problem.level(self.alpha)
        return problem.predictor(problem.store.fetch(columns), self.alpha, self.beta[columns])


def first_entry(problem: Problem, slope: Array) -> float:
    """Time ``t0`` at which ``t * slope`` first reaches a threshold; ``inf`` when it never does."""
    penalty = problem.penalty
    free = penalty.weights == 0
    largest = float(np.abs(slope).max(initial=0.0))
    noise = 1e-13 * problem.loss.response_size(problem.y, problem.w)
    if largest <= noise:  # so small a slope is rounding, unless the columns are as small
        noise *= float(np.max(problem.scan.size, initial=0.0))
        if largest <= noise:
            return np.inf
    moving = np.where(free, 0.0, slope / largest)
    # Each threshold is a norm, so its distance is linear in t along a ray: one evaluation tells the time.
    with np.errstate(divide="ignore", invalid="ignore"):  # inf - inf of excluded columns
        gain = penalty.weights - penalty.entry(moving)
        times = np.where(free | ~np.isfinite(penalty.weights), np.inf, penalty.weights / gain / largest)
    return float(times.min(initial=np.inf))


class NullModel(NamedTuple):
    """Unpenalised parameters and all coefficients where nothing has entered, and the predictor there."""

    alpha: Array
    beta: Array
    eta: Array


def null_model(problem: Problem) -> NullModel:
    """Intercept and free coefficients that minimise the loss while all others are zero."""
    penalty = problem.penalty
    free = penalty.free.nonzero()[0]
    if len(free):  # a constant column inside a free group is held at zero
        free = free[np.any((penalty.lower[free] < 0) | (penalty.upper[free] > 0), axis=1)]
    full, alpha = np.zeros(problem.beta_shape), np.zeros(problem.n_alpha)
    if problem.fit_intercept and problem.store.has_intercepts:
        alpha = np.asarray(problem.loss.null(problem.y, problem.w), dtype=float).copy()
        if problem.loss.null_is_exact and not len(free) and not problem.offset.any():
            return NullModel(alpha, full, problem.level(alpha))
    block, beta = problem.store.fetch(free), full[free]
    eta = problem.predictor(block, alpha, beta)
    newton = _Newton(problem, block, problem.scan.size[free] if len(free) else np.zeros(0))
    alpha, beta, eta = newton.descend(alpha, beta, eta)
    # Columns that separate classes fit them the better the larger their coefficients: Newton's method goes on by about
    # one in the predictor for ever, and only rounding ended that.
    residual = problem.residual(eta)
    if problem.loss.is_classifier and len(free):
        is_fitted = np.abs(residual).sum() < 1e-10 and newton.reach(np.append(0 * alpha, beta)) > 20
        if is_fitted or newton.reach(newton.direction(eta, newton.gradient(residual), 0.0)) > 0.1:
            raise _no_optimum()
    # Where adding the same to all outputs changes nothing, only rounding has done so.
    if beta.shape[1] > 1 and np.abs(residual.sum(axis=1)).max() <= 1e-12 * np.abs(residual).max():
        beta = beta - beta.mean(axis=1, keepdims=True)
        eta = problem.predictor(block, alpha, beta)
    full[free] = beta
    return NullModel(alpha, full, eta)


def _no_optimum() -> ValueError:
    return ValueError(
        "The unpenalised part of the model (intercept and columns with `penalty_factor` 0) has no finite optimum; "
        "penalise some of those columns."
    )


class _Newton:
    """Newton steps of alpha and the coefficients of a block, one after the other, in units of the block's columns."""

    def __init__(self, problem: Problem, block: AbstractBlock, sizes: Array) -> None:
        self.problem = problem
        self.block = block
        self.shape = block.shape[1], problem.beta_shape[1]
        per_column = np.where(sizes > 0, 1.0 / np.where(sizes > 0, sizes, 1.0), 1.0)
        self.unit = np.concatenate([np.ones(problem.n_alpha), np.repeat(per_column, self.shape[1])])

    def descend(self, alpha: Array, beta: Array, eta: Array) -> tuple[Array, Array, Array]:
        """The optimum to which damped steps lead, and the predictor there."""
        problem, value = self.problem, self.problem.value(eta)
        size, change = np.inf, np.inf
        for _ in range(MAX_STEPS):
            residual = problem.residual(eta)
            gradient = self.gradient(residual)
            # Close to the optimum the loss falls by less than its rounding, but the gradient still falls: follow it.
            rounding, before = problem.rounding(value), size
            size = float(np.max(np.abs(gradient), initial=0.0))
            if size < 1e-15 or (change <= rounding and size > 0.5 * before):
                return alpha, beta, eta
            noise = 1e-13 * float(np.abs(residual).sum()) + 1e-15 * problem.loss.response_size(problem.y, problem.w)
            step = self.direction(eta, gradient, noise)
            step, eta, new = self.shorten(step, (alpha, beta), value, float(gradient @ step), rounding)
            if not step.any():
                return alpha, beta, eta
            alpha, beta = self.moved((alpha, beta), step)
            value, change = new, abs(new - value)
            if np.max(np.abs(step)) <= 1e-15 * (1 + np.max(np.abs(alpha))):
                return alpha, beta, eta
        raise _no_optimum()

    def gradient(self, residual: Array) -> Array:
        """Derivative of the loss."""
        return np.concatenate([self.problem.alpha_gradient(residual), self.block.rmatvec(residual).ravel()])

    def reach(self, step: Array) -> float:
        """How far a step moves the predictor."""
        return float(np.max(np.abs(self._spread(step)), initial=0.0))

    def moved(self, point: tuple[Array, Array], step: Array) -> tuple[Array, Array]:
        """Alpha and coefficients after a step."""
        q = self.problem.n_alpha
        return point[0] - step[:q], point[1] - step[q:].reshape(self.shape)

    def shorten(
        self, step: Array, point: tuple[Array, Array], value: float, descent: float, rounding: float
    ) -> tuple[Array, Array, float]:
        """A part of a step that lowers the loss, predictor and loss at its end; a step of zero if there is none."""
        reach, share = self.reach(step), 1.0
        for _ in range(MAX_SHORTER):
            with np.errstate(over="ignore", invalid="ignore"):  # of a trial that is far too long
                eta = self.problem.predictor(self.block, *self.moved(point, share * step))
                new = self.problem.value(eta)
            if new <= value - 1e-4 * share * descent + rounding:
                return share * step, eta, new
            # Where the loss is flat a Newton step may be any number of orders too long.
            share = 4 * np.sqrt(share * reach) / reach if share * reach > 64 else share / 2
        return 0 * step, eta, new

    def _spread(self, step: Array) -> Array:
        q, problem = self.problem.n_alpha, self.problem
        return problem.predictor(
            self.block, step[:q] * problem.fit_intercept, step[q:].reshape(self.shape), offset=False
        )

    def _bend(self, eta: Array, v: Array) -> Array:
        """The Hessian applied to a direction, both in units of the columns."""
        return self.unit * self.gradient(self.problem.curvature(eta, self._spread(self.unit * v)))

    def direction(self, eta: Array, gradient: Array, noise: float) -> Array:
        """The least-norm Newton step (the Hessian may be singular); ``noise`` is the rounding of the gradient."""
        size, slope = len(gradient), self.unit * gradient
        if size > MAX_DENSE_NEWTON:
            from scipy.sparse.linalg import LinearOperator, cg

            bend = LinearOperator((size, size), matvec=lambda v: self._bend(eta, v))
            return self.unit * cg(bend, slope, rtol=1e-10)[0]
        hessian = np.stack([self._bend(eta, unit) for unit in np.eye(size)], axis=1) if size else np.zeros((0, 0))
        curvature, axes = np.linalg.eigh((hessian + hessian.T) / 2)
        slope = axes.T @ slope
        flat = 1e-12 * max(float(np.max(curvature, initial=0.0)), 1e-280)
        # Along a flat axis there is nothing to gain, unless the loss slopes there by more than rounding.
        slope[(curvature <= flat) & (np.abs(slope) <= noise)] = 0.0
        return self.unit * (axes @ (slope / np.maximum(curvature, flat)))
