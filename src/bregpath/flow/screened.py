"""What flows have in common that work on few columns and prove that the others stay where they are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bregpath import _kernels
from bregpath._kernels import Knot, StepError, Steps, System
from bregpath._typing import Array, IntArray
from bregpath.flow.base import AbstractFlow, Costs, State
from bregpath.flow.screening import begin_dual
from bregpath.flow.working_set import WorkingSet

__all__ = ["ScreenedFlow"]

BLOCK_STEPS = 16
MOST_STEPS = 512  # where nothing is checked after them
BLOCK_NUMBERS = 2**18  # of each kind, in a block of many steps
MOST_NUMBERS = 2**21  # of each kind, beyond which blocks are shorter
ROW_NUMBERS = 2**24  # of R, in a block of few ...
LONG_NUMBERS = 2**19  # ... and of each of its columns: of long ones less is kept, and more of that in the cache


@dataclass(frozen=True)
class Workplace:
    """The working columns, ready for kernels."""

    working: WorkingSet
    system: System

    def copy(self) -> Workplace:
        """The same with a stepper of its own: the compiled one has room for one path."""
        return Workplace(self.working, replace(self.system, cache={}))


class ScreenedFlow(AbstractFlow):
    """A flow that steps on working columns.

    `begin` and `steps_of` are its own; ``z`` and R of a knot must be the integrals of its slopes and residuals wherever
    a column is at zero, which is all that the proofs need to know of it.
    """

    @abstractmethod
    def begin(self, system: System, knot: Knot) -> Any:
        """What the stepping method remembers at the first entry time; its ``grow(z)`` takes in more columns."""

    @abstractmethod
    def steps_of(
        self, system: System, knot: Knot, memory: Any, until: float, max_steps: int, keep_rows: bool
    ) -> Steps:
        """A block of steps of the working columns; ``keep_rows`` keeps R at every knot."""

    def wants_all_columns(self, memory: Any) -> bool:
        """Whether from here on steps are made that no outside column can be proved to have no part in."""
        return False

    def needs_rows(self, system: System) -> bool:
        """Whether `steps_of` needs ``R`` and the residual of a system of all columns, whom nobody else asks for."""
        return True

    @property
    @abstractmethod
    def mirror_scale(self) -> float:
        """The coefficient of a free column over its dual variable."""

    @property
    def can_gram(self) -> bool:
        """Whether kernels take the Gram matrix of squared loss: the compiled ones do."""
        return _kernels.has_compiled()

    @property
    def asks_for_rows(self) -> bool:
        """Whether kernels tell which rows of that matrix they need, so that the others need not be made."""
        return False

    def start(self, t: float | None = None) -> State:
        """The state at the first entry time ``t0``, before which nothing happens; or at a time ``t`` before it."""
        problem = self.problem
        alpha, beta, value, slope, t0 = problem.beginning
        if problem.penalty.has_limits:
            inside = (problem.penalty.lower <= beta) & (beta <= problem.penalty.upper)
            outside = np.flatnonzero(~inside.all(axis=1))
            if len(outside):
                raise ValueError(
                    f"The unpenalised optimum of column {outside[0]} (`penalty_factor` 0) lies outside its `lower` and "
                    "`upper` limits; penalise the column or drop its limits."
                )
        residual = problem.residual(problem.beginning.predictor(problem))
        begin = t0 if t is None else t
        at_rest = np.isinf(begin)
        past = 1.0 if at_rest else begin  # with constant slopes; any time will do where nothing ever moves
        free = problem.penalty.free[:, None]
        # Just below the threshold at t0: on which side rounding would put it must not decide the first step.
        z = np.where(free, beta / self.mirror_scale, past * (1 - 1e-14) * slope)
        working = self._working_set(lambda: self._near(z))
        if not working.is_whole and not at_rest:
            working.dual = begin_dual(problem, past * residual, residual, (past * slope, slope))
        W, system = working.columns, self._assemble(working)
        rows = slice(None) if not working.is_whole or self.needs_rows(system) else slice(0)
        knot = Knot(
            t=begin,
            alpha=alpha,
            alpha_slope=problem.alpha_slope(residual) if self.takes_kappa else np.zeros_like(alpha),
            z=z[W],
            slope=slope[W],
            R=past * residual[rows],
            residual=residual[rows].copy(),
            value=value,
        )
        return State(knot, W, value, None if at_rest else self.begin(system, knot), Workplace(working, system))

    def advance(self, state: State, until: float, is_watched: bool = False) -> tuple[State, Steps]:
        """A block of steps, proved not to miss an entry."""
        knot, memory, place = state.knot, state.memory, self._workplace(state)
        working, system = place.working.copy(), place.system
        while True:
            whole = working.is_whole
            # R is kept at every step of a screened block: fewer steps where it is large.
            if whole:
                most = MOST_NUMBERS // knot.z.size
            else:
                most = min(ROW_NUMBERS // knot.R.size, LONG_NUMBERS // len(knot.R))
                if self.takes_kappa:  # where a block of inverse scale space ends, so does a step
                    most = min(most, working.block_steps)
            max_steps = min(max(most, 2), BLOCK_STEPS)
            if whole and not is_watched:  # nothing is checked after a block: it may be longer
                max_steps = min(max(BLOCK_NUMBERS // knot.z.size, max_steps), MOST_STEPS)
            steps = self.steps_of(system, knot, memory, until, max_steps, keep_rows=not whole)
            certificate = working.certify(steps)
            steps = steps.first(certificate.certain)
            # The room of a long block is for the next one: of many tracks each would hold its own else.
            knot, memory = steps.end(keeps_room=not whole)
            if len(certificate.columns):
                working.grow(certificate)
                knot, memory = knot.grow(certificate.z, certificate.slope), memory.grow(certificate.z)
                system = self._assemble(working)
            if not working.is_whole and self.wants_all_columns(memory):
                rest = working.complete(knot)
                knot, memory = knot.grow(rest.z, rest.slope), memory.grow(rest.z)
                system = self._assemble(working)
            if certificate.certain:
                lowest = self._lowest(state, steps)
                return State(knot, working.columns, lowest, memory, Workplace(working, system)), steps
            if steps.interrupted:
                raise KeyboardInterrupt

    def values(self, state: State, alpha: Array, columns: IntArray, beta: Array) -> Array:
        inside, place = np.zeros((len(alpha), *state.knot.z.shape)), np.empty(self.problem.beta_shape[0], dtype=int)
        place[state.columns] = np.arange(len(state.columns))
        inside[:, place[columns]] = beta
        return _kernels.values(self._workplace(state).system, alpha, inside)

    def costs(self, state: State) -> Costs:
        working, memory = self._workplace(state).working, state.memory
        if memory is None:
            return super().costs(state)
        dual = working.dual
        products = memory.products + (dual.products if dual else 0)
        refreshes = dual.refreshes if dual else 0
        return Costs(memory.gradients, products, refreshes, len(state.columns), memory.models)

    def _lowest(self, state: State, steps: Steps) -> float:
        """Lowest loss so far. A rise that rounding explains is allowed to a step, but not that many of them add up."""
        lowest = min(state.lowest, float(steps.value.min()))
        if self.step is None and steps.value[-1] > lowest + 2 * _kernels.NOISE * (abs(lowest) + 1e-3):
            raise StepError(f"the loss rises at t={steps.t[0]:g}")
        return lowest

    def _workplace(self, state: State) -> Workplace:
        """Where the state was left, or the same made anew for one that comes from elsewhere."""
        if state.workplace is not None:
            return state.workplace  # type: ignore[no-any-return]
        working, knot = self._working_set(lambda: state.columns), state.knot
        if not working.is_whole:
            working.dual = begin_dual(self.problem, knot.R, knot.residual)
        place = Workplace(working, self._assemble(working))
        object.__setattr__(state, "workplace", place)
        return place

    def _working_set(self, start: Callable[[], IntArray]) -> WorkingSet:
        return WorkingSet(self.problem, start, self.screening, self.can_gram, self.asks_for_rows)

    def _near(self, z: Array) -> IntArray:
        """Columns that will soon enter."""
        penalty = self.problem.penalty
        return np.flatnonzero(penalty.close(np.any(penalty.entry(1.2 * z) < 0, axis=1)))

    def _assemble(self, working: WorkingSet) -> System:
        problem = self.problem
        return System(problem, working.columns, working.block, working.penalty, self.step, self.step_tolerance)

    @property
    def step_tolerance(self) -> float:
        """Error of the coefficients that a single step may make."""
        return self.tol
