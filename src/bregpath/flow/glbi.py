"""Generalised linearised Bregman iterations on a working set."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bregpath import _kernels
from bregpath._kernels import Knot, StepError, Steps, System
from bregpath._typing import Array
from bregpath.flow.problem import Problem, null_model
from bregpath.flow.screening import LazyDual
from bregpath.flow.working_set import WorkingSet

__all__ = ["GLBI", "State"]

BLOCK_STEPS = 16
BLOCK_NUMBERS = 2**18  # of each kind, in a block of many steps
ROW_NUMBERS = 2**24  # of R, in a block of few


@dataclass(frozen=True)
class State:
    """All that a flow goes on from. It is never changed: a block of steps ends in another one."""

    knot: Knot
    working: WorkingSet
    system: System
    lowest: float  # loss so far

    def copy(self) -> State:
        """The same state to go on from independently: a compiled stepper has a memory of its own."""
        return replace(self, system=replace(self.system, cache=None))


class GLBI:
    """The dynamics of the paper from its exact first entry time on.

    Parameters
    ----------
    problem : Problem
        What is integrated.
    step : float or None
        Fixed step, or None for adaptive ones.
    tol : float
        Error of the coefficients allowed to adaptive steps, relative to the largest coefficient.
    screening : bool
        Work on few columns where the design is large.
    """

    def __init__(self, problem: Problem, step: float | None, tol: float, screening: bool = True) -> None:
        self.problem = problem
        self.step = step
        self.tol = tol
        self.screening = screening
        # Between knots z is a straight line for a fixed step, a cubic through values and slopes for adaptive ones.
        self.degree = 1 if step is not None else 3

    def start(self, t: float | None = None) -> State:
        """The state at the first entry time ``t0``, before which nothing happens; or at a time ``t`` before it."""
        problem = self.problem
        alpha, beta = null_model(problem)
        limits = problem.penalty.lower, problem.penalty.upper
        outside = np.flatnonzero(np.any(beta != np.clip(beta, *limits), axis=1))
        if len(outside):
            raise ValueError(
                f"The unpenalised optimum of column {outside[0]} (`penalty_factor` 0) lies outside its `lower` and "
                "`upper` limits; penalise the column or drop its limits."
            )
        eta = problem.predictor(problem.design, alpha, beta)
        residual = problem.residual(eta)
        slope = -problem.design.rmatvec(residual)
        self.null_value = problem.value(eta)
        self.t0 = first_entry(problem, slope)
        begin = self.t0 if t is None else t
        self.at_rest = not np.isfinite(self.t0)
        if self.at_rest:  # nothing can ever enter
            begin = 1.0
        free = problem.penalty.free[:, None]
        # Just below the threshold at t0: on which side rounding would put it must not decide the first step.
        z = np.where(free, beta / problem.kappa, begin * (1 - 1e-14) * slope)
        near = np.any(problem.penalty.entry(1.2 * z) < 0, axis=1)
        working = WorkingSet(problem, np.flatnonzero(problem.penalty.close(near)), self.screening)
        if not working.is_whole:
            working.dual = LazyDual(problem, begin, residual, slope)
        system, W = self._assemble(working), working.columns
        knot = Knot(
            t=begin,
            alpha=alpha,
            alpha_slope=problem.alpha_slope(residual),
            z=z[W],
            slope=slope[W],
            R=begin * residual,
            residual=residual,
            value=self.null_value,
            h=self.step or 0.0,
            direction=np.zeros_like(z[W]),
            alpha_direction=np.zeros_like(alpha),
        )
        if self.step is None and problem.design.has_cheap_curvature:
            knot = replace(knot, frozen=np.zeros_like(residual))  # at time 0: the first step takes it anew
        if self.step is None and not self.at_rest:
            knot = replace(knot, h=min(_kernels.first_step(system, knot), 0.1 * begin))
        return State(knot, working, system, knot.value)

    def advance(self, state: State, until: float, is_watched: bool = False) -> tuple[Steps, State]:
        """A block of steps, proved not to miss an entry, and the state after it.

        Blocks are short where ``is_watched``: a stop rule or a progress bar wants to see every few steps.
        """
        knot, working, system = state.knot, state.working.copy(), state.system
        while True:
            # Where nothing is checked after a block, blocks may be longer.
            whole = working.is_whole
            # R is kept at every step of a screened block: fewer steps where it is large.
            max_steps = BLOCK_STEPS if whole else int(np.clip(ROW_NUMBERS // knot.R.size, 2, BLOCK_STEPS))
            if whole and not is_watched:
                max_steps = int(np.clip(BLOCK_NUMBERS // knot.z.size, BLOCK_STEPS, 512))
            steps = _kernels.advance(system, knot, until, max_steps, keep_rows=not whole)
            certain, new = working.certify(steps)
            steps = steps.first(certain)
            knot = steps.last_knot()
            if len(new):
                knot = self._enlarge(knot, working, new)
                system = self._assemble(working)
            if certain:
                return steps, State(knot, working, system, self._lowest(state, steps))
            if steps.interrupted:
                raise KeyboardInterrupt

    def values(self, state: State, alpha: Array, columns: Array, beta: Array) -> Array:
        """Loss at some points of the path: intercepts (T, q) and coefficients (T, E, q) of working columns (E,)."""
        inside = np.zeros((len(alpha), *state.knot.z.shape))
        position = np.full(self.problem.design.shape[1], -1)
        position[state.working.columns] = np.arange(len(state.working.columns))
        inside[:, position[columns]] = beta
        return _kernels.values(state.system, alpha, inside)

    def _lowest(self, state: State, steps: Steps) -> float:
        """Lowest loss so far. A rise that rounding explains is allowed to a step, but not that many of them add up."""
        lowest = min(state.lowest, float(np.min(steps.value)))
        if self.step is None and steps.value[-1] > lowest + 2 * _kernels.NOISE * (abs(lowest) + 1e-3):
            raise StepError(f"the loss rises at t={steps.t[0]:g}")
        return lowest

    def _enlarge(self, knot: Knot, working: WorkingSet, new: Array) -> Knot:
        """Add columns to the working set; what they are at a knot follows from R and the residual alone."""
        z, slope = -self.problem.design.rmatvec_many(np.stack([knot.R, knot.residual]), new)
        working.grow(new)
        return replace(
            knot,
            z=np.concatenate([knot.z, z]),
            slope=np.concatenate([knot.slope, slope]),
            direction=np.concatenate([knot.direction, np.zeros_like(z)]),
        )

    def _assemble(self, working: WorkingSet) -> System:
        tol = step_tolerance(self.tol)
        return System(self.problem, working.block, working.penalty, self.step, tol, working.gram)


def step_tolerance(tol: float) -> float:
    """Error that a single step may make so that all of them together stay within ``tol``.

    A step of length h errs by h^3, so there are tol^(-1/3) of them, and what they may err must fall with tol^(3/2). The
    factor is such that at 1 %, where few steps bend with the path, the two are equal.
    """
    return tol * min(1.0, (tol / 0.01) ** 0.5)


def first_entry(problem: Problem, slope: Array) -> float:
    """Time ``t0`` at which ``t * slope`` first reaches a threshold; ``inf`` when it never does."""
    penalty = problem.penalty
    free = penalty.weights == 0
    largest = float(np.max(np.abs(slope), initial=0.0))
    noise = 1e-13 * problem.loss.response_size(problem.y, problem.w)
    if largest <= noise:  # so small a slope is rounding, unless the columns are as small
        norms = problem.design.column_norms()
        noise *= float(np.max(norms, initial=0.0)) / np.sqrt(problem.design.shape[0])
        if largest <= noise:
            return np.inf
    moving = np.where(free, 0.0, slope / largest)
    # Each threshold is a norm, so its distance is linear in t along a ray: one evaluation tells the time.
    with np.errstate(divide="ignore", invalid="ignore"):  # inf - inf of excluded columns
        gain = penalty.weights - penalty.entry(moving)
        times = np.where(free | ~np.isfinite(penalty.weights), np.inf, penalty.weights / gain / largest)
    return float(np.min(times, initial=np.inf))
