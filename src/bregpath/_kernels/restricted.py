"""The least loss inside bounds, by Newton steps on the few coordinates that are free to move."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from bregpath import _interrupts
from bregpath._kernels.records import StepError, UnboundedError
from bregpath._typing import Array, IntArray
from bregpath.problem import Problem
from bregpath.stores import AbstractBlock

__all__ = ["Optimum", "RestrictedNewton"]

# Of the largest slope at the start of a path: slopes that are zero, and those that pull a coordinate off its bound.
TOL, NOISE = 1e-12, 1e-10
NOTHING_LEFT = 1e-6  # share of the deviance below which coefficients only grow
STALE = 0.2  # a Newton step that leaves a larger share of the slopes needs the curvature of where it is
SINGULAR = 1e-11  # of a curvature, beneath which it is that of dependent columns
TIED = 1e-9  # coordinates whose pulls differ by less are pulled alike
# A step that moves the predictor so far and gains less than this share of that belongs to a loss that falls for ever.
FAR, FLAT = 0.5, 0.01
STRAIGHT = 0.1  # of a slope that no curvature explains
MAX_STEPS = 500  # Newton steps from one optimum to the next
MAX_SHORTER = 60  # trials of a Newton step


@dataclass(frozen=True)
class Optimum:
    """Parameters with the loss there and its derivatives; ``m`` working columns."""

    alpha: Array  # (a,)
    beta: Array  # (m, c)
    residual: Array  # (n, q)
    slope: Array  # (m, c) minus the derivative
    value: float
    gradients: int = 0  # that it took


class RestrictedNewton:
    """Minimises a loss over alpha and the coefficients of a block, each between two bounds.

    Coordinates strictly inside their bounds, the *members*, move. When their slopes are zero, the one at a bound that
    is pulled inside the most becomes a member; one that meets a bound on the way stays there (Lawson and Hanson's
    method for non-negative least squares, 1974, with Newton steps). The Hessian of the members is kept from one optimum
    to the next, with rows added and deleted, and computed anew only where a step with it gains too little: for squared
    loss never.

    Parameters
    ----------
    problem : Problem
    block : AbstractBlock
        The working columns.
    scale : float
        Size of the slopes at the start of the path.
    enough : float
        Loss at which the search ends, because nothing is left to explain: it may have no finite optimum.
    """

    def __init__(self, problem: Problem, block: AbstractBlock, scale: float, enough: float) -> None:
        self.problem = problem
        self.block = block
        self.scale = scale
        self.enough = enough
        self.flat = FLAT * (enough - problem.floor)
        self.n_alpha = problem.n_alpha if problem.fit_intercept else 0
        self.members: IntArray = np.zeros(0, dtype=int)  # numbers of coordinates (m * c), in the order of the Hessian
        self.frozen: Array | None = None  # predictor at which the Hessian was computed
        self.hessian: Array = np.zeros((0, 0))
        self.factor: tuple[Array, bool] | None = None

    def minimise(self, alpha: Array, beta: Array, lower: Array, upper: Array) -> Optimum:
        """The optimum from a point inside the bounds ``(m, c)``."""
        eta = self.problem.predictor(self.block, alpha, beta)
        now = self._at(alpha, beta.ravel(), eta, self.problem.value(eta))
        low, high = lower.ravel(), upper.ravel()
        self._set_members(np.flatnonzero((low < now.beta) & (now.beta < high)), eta)
        budget, tied = [MAX_STEPS], TIED
        while True:
            now = self._converge(now, low, high, budget)
            pull = np.where((now.beta == low) & (low < high), now.slope, 0.0)
            pull = np.maximum(pull, np.where((now.beta == high) & (low < high), -now.slope, 0.0))
            strongest = float(np.max(pull, initial=0.0))
            if now.value <= self.enough or strongest <= NOISE * self.scale:
                break
            # Equal ones enter together, as equal columns should; but several may get into each other's way, so that one
            # of them would not leave its bound. That cannot happen to a single one.
            new = np.flatnonzero(pull >= (1 - tied) * strongest)[: None if tied else 1]
            self._set_members(np.append(self.members, new), now.eta)
            tied = TIED if len(new) == 1 or self._all_leave(now, new) else 0.0
        shape, used = beta.shape, 1 + MAX_STEPS - budget[0]
        return Optimum(now.alpha, now.beta.reshape(shape), now.residual, now.slope.reshape(shape), now.value, used)

    def _all_leave(self, now: _Trial, new: IntArray) -> bool:
        """Whether all new members leave their bounds in the direction in which they are pulled."""
        step = -self._solve(self._gradient(now))[self.n_alpha :]
        move = step[np.isin(self.members, new)]
        if np.all(move * now.slope[new] > 0):
            return True
        self._set_members(self.members[~np.isin(self.members, new)], now.eta)
        return False

    # --- one set of members ----------------------------------------------------------------------------------

    def _converge(self, now: _Trial, low: Array, high: Array, budget: list[int]) -> _Trial:
        """Newton steps until the slopes of the members are zero; members that meet a bound cease to be."""
        before, stride = np.inf, 1.0
        while now.value > self.enough:
            _interrupts.check()
            gradient, size = self._gradient(now), self._size(now)
            if size <= TOL * self.scale:
                break
            if size > STALE * before and self.frozen is not now.eta:
                self._freeze(now.eta)
            elif size > 0.5 * before and size <= NOISE * self.scale:
                break  # the rest is rounding
            budget[0] -= 1
            if budget[0] < 0:
                raise StepError("no optimum between two events")
            step, is_straight = self._newton_step(gradient, stride)
            target = np.where(step[self.n_alpha :] < 0, low[self.members], high[self.members])
            share = self._share_to(target, now, step)
            after = self._shorten(now, step, float(np.min(share, initial=1.0)), float(gradient @ step))
            if after is None:
                if self.frozen is now.eta:
                    break  # the loss falls by less than its rounding
                self._freeze(now.eta)
                continue
            now, taken, reach = after
            if reach > FAR and -taken * float(gradient @ step) <= self.flat:
                self.frozen = None  # of no use from where another search begins
                raise UnboundedError("the loss falls for ever")
            met = share <= taken
            if met.any():
                now.beta[self.members[met]] = target[met]
                self._set_members(self.members[~met], now.eta)
            before = np.inf if met.any() else size
            # Straight parts may be long: those of a row of next to no weight, which is far on the wrong side.
            if is_straight:
                stride = max(1.0, stride * (2.0 if taken == 1.0 else taken))
        return now

    def _share_to(self, target: Array, now: _Trial, step: Array) -> Array:
        """The share of a step in which each member meets a bound."""
        move, way = step[self.n_alpha :], target - now.beta[self.members]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(np.abs(move) > 0, way / move, np.inf)

    def _shorten(self, now: _Trial, step: Array, share: float, descent: float) -> tuple[_Trial, float, float] | None:
        """Where a part of a step leads, at most a given share of it, that lowers the loss; that part, and how far the
        predictor moves."""
        alpha_change, change = self._split(step)
        direction = self._spread(alpha_change, change)
        # A gain below what rounding makes of the loss, and of a large predictor in it, is seen by the slopes alone.
        rounding = self.problem.rounding(now.value)
        is_seen = -descent > max(rounding, np.finfo(float).eps * float(np.max(np.abs(now.eta), initial=0.0)))
        for _ in range(MAX_SHORTER):
            eta = now.eta + share * direction
            with np.errstate(over="ignore", invalid="ignore"):  # of a trial that is far too long
                value = self.problem.value(eta)
            falls = value <= now.value + 1e-4 * share * descent + rounding
            if falls or not is_seen:
                after = self._at(now.alpha + share * alpha_change, now.beta + share * change, eta, value)
                if falls or self._size(after) <= 0.5 * self._size(now):
                    return after, share, share * float(np.max(np.abs(direction), initial=0.0))
            share /= 2
        return None

    def _split(self, step: Array) -> tuple[Array, Array]:
        """A step of alpha and the members as one of alpha and all coefficients."""
        alpha, beta = np.zeros(self.problem.n_alpha), np.zeros(self.block.shape[1] * self._width)
        alpha[: self.n_alpha], beta[self.members] = step[: self.n_alpha], step[self.n_alpha :]
        return alpha, beta

    def _spread(self, alpha: Array, beta: Array) -> Array:
        """The change of the predictor."""
        inside = beta.reshape(-1, self._width)[self.part_columns]
        return self.problem.predictor(self.part, alpha, inside, offset=False)

    def _at(self, alpha: Array, beta: Array, eta: Array, value: float) -> _Trial:
        residual = self.problem.residual(eta)
        return _Trial(alpha, beta, eta, residual, -self.block.rmatvec(residual).ravel(), value)

    def _gradient(self, now: _Trial) -> Array:
        of_alpha = self.problem.alpha_gradient(now.residual)[: self.n_alpha]
        return np.concatenate([of_alpha, -now.slope[self.members]])

    def _size(self, now: _Trial) -> float:
        return float(np.max(np.abs(self._gradient(now)), initial=0.0))

    # --- their Hessian ---------------------------------------------------------------------------------------

    def _set_members(self, members: IntArray, eta: Array) -> None:
        """Change the members: old ones keep their rows of the Hessian, new ones come behind them."""
        stay = np.isin(self.members, members)
        new = members[~np.isin(members, self.members)]
        if stay.all() and not len(new) and self.frozen is not None:
            return
        kept = np.concatenate([np.arange(self.n_alpha), self.n_alpha + np.flatnonzero(stay)])
        self.members = np.concatenate([self.members[stay], new])
        columns, self.position = np.unique(self.members // self._width, return_inverse=True)
        self.part, self.part_columns = self.block.columns(columns), columns
        self.factor = None
        if self.frozen is None:
            self._freeze(eta)
            return
        size = self.n_alpha + len(self.members)
        hessian = np.empty((size, size))
        hessian[: len(kept), : len(kept)] = self.hessian[np.ix_(kept, kept)]
        hessian[:, len(kept) :] = self._bend(np.arange(len(kept), size)).T
        hessian[len(kept) :, : len(kept)] = hessian[: len(kept), len(kept) :].T
        self.hessian = hessian

    def _freeze(self, eta: Array) -> None:
        """The Hessian at a predictor."""
        self.frozen = eta
        self.hessian = self._bend(np.arange(self.n_alpha + len(self.members)))
        self.factor = None

    def _bend(self, units: IntArray) -> Array:
        """Products of the Hessian with some unit vectors."""
        assert self.frozen is not None
        if not len(units):
            return np.zeros((0, self.n_alpha + len(self.members)))
        bent = np.empty((len(units), *self.frozen.shape))
        for row, unit in zip(bent, units, strict=True):
            row[...] = self.problem.curvature(self.frozen, self._image(int(unit)))
        of_alpha = np.array([self.problem.alpha_gradient(row)[: self.n_alpha] for row in bent])
        of_beta = self.part.rmatvec_many(bent)[:, self.position, self.members % self._width]
        return np.concatenate([of_alpha.reshape(len(units), self.n_alpha), of_beta], axis=1)

    def _image(self, unit: int) -> Array:
        """The change of the predictor with one parameter."""
        alpha, nothing = np.zeros(self.problem.n_alpha), np.zeros(0, dtype=int)
        if unit < self.n_alpha:
            alpha[unit] = 1.0
            return self.problem.predictor(self.block.columns(nothing), alpha, np.zeros((0, self._width)), offset=False)
        member = int(self.members[unit - self.n_alpha])
        beta = np.zeros((1, self._width))
        beta[0, member % self._width] = 1.0
        column = self.block.columns(np.array([member // self._width]))
        return self.problem.predictor(column, alpha, beta, offset=False)

    @property
    def _width(self) -> int:
        """Coordinates a column."""
        return self.problem.beta_shape[1]

    def _newton_step(self, gradient: Array, stride: float) -> tuple[Array, bool]:
        """A step, and whether it is one along a straight part: where the loss slopes but does not bend, as Huber's does
        far out, it moves the predictor by ``stride`` downhill."""
        step = -self._solve(gradient)
        if self.factor is not None and not self.factor[1]:
            straight = gradient + self.hessian @ step
            if np.abs(straight).max() > STRAIGHT * np.abs(gradient).max():
                reach = float(np.max(np.abs(self._spread(*self._split(straight)))))
                return step - stride * straight / max(reach, 1e-300), True
        return step, False

    def _solve(self, gradient: Array) -> Array:
        """The least-norm solution where columns depend on each other: what the dynamics of any kappa would find."""
        if self.factor is None:
            lower, info = lapack.dpotrf(self.hessian, lower=1)
            pivots = np.diagonal(lower) ** 2
            regular = info == 0 and bool(np.all(pivots > SINGULAR * np.diagonal(self.hessian)))
            if regular:
                self.factor = lower, True
            else:
                curvature, axes = np.linalg.eigh(self.hessian)
                known = curvature > SINGULAR * float(np.max(curvature, initial=0.0))
                axes = axes[:, known] / np.sqrt(curvature[known])
                self.factor = axes, False
        matrix, regular = self.factor
        return lapack.dpotrs(matrix, gradient, lower=1)[0] if regular else matrix @ (matrix.T @ gradient)


@dataclass(frozen=True)
class _Trial:
    """A point on the way to an optimum; coefficients as one vector."""

    alpha: Array
    beta: Array
    eta: Array
    residual: Array
    slope: Array
    value: float
