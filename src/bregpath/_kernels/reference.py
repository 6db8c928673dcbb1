"""Blocks of steps in NumPy: complete for every loss, penalty and store, and the oracle of the compiled core.

Two ways to advance the same dynamics ``z' = -X'r(eta)``, ``beta = kappa shrink(z)``, ``alpha' = -kappa 1'r``:

* a fixed step is the paper's iteration to the letter (explicit Euler);
* adaptive steps are a stabilised Runge-Kutta method with an embedded error estimate.

Which columns can move inside an adaptive step is decided at its start: those that are active, and those that would
reach their threshold by the end of the step at their present speed (`live`). A step after which any other column
lies beyond its threshold is repeated with that column made live. Hence the result does not depend on which other
columns were in the working set, and a screened path equals the unscreened one.

Where the store says that it pays (`has_cheap_curvature`), the loss is linearised inside an adaptive step:
``r(eta) = r_k + H (eta - eta_k)`` with the curvature H frozen for a while. Then a stage costs products with Gram
matrices only, of few active edges a node of a graph; the end of a step is exact, and the error estimate, made of exact
slopes, sees what the linearisation missed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np

from bregpath import _interrupts
from bregpath._kernels.chebyshev import MAX_STAGES, longest_step, stage_coefficients, stages_needed
from bregpath._kernels.curvature import curvature_on
from bregpath._kernels.records import (
    BoundaryError,
    Knot,
    Memory,
    StepError,
    Steps,
    System,
    UnstableStepError,
    cubic,
)
from bregpath._typing import Array, BoolArray
from bregpath.penalties import AbstractPenalty

__all__ = ["INSIDE", "NOISE", "Step", "advance", "begin", "look", "round_down", "rounding", "values", "walk"]

SAFETY = 0.8  # of the step that the error estimate allows
RATE_MARGIN = 1.15  # of the power iteration, which approaches the largest curvature from below
RATE_STEPS = 5  # between two power iterations ...
RATE_SHARE = 0.05  # ... unless more than this share of columns is new
ENTRY_SHARE = 0.05  # of the active coordinates that may enter in one step ...
ENTRY_FLOOR = 500  # ... beyond so many: the farther a step looks ahead, the less screening can decide
ENTRY_AHEAD = 1.25  # steps ahead that a column counts as entering, with linear stages
WATCH_GROWTH = 1.2  # of t, during which the cost of stages is watched
FREEZE_GROWTH = 1.2  # of t, for which the curvature of linear stages is kept
MAX_ATTEMPTS = 200  # at one step
MIN_PROGRESS = 3e-5  # of t in a step with all stages: below it a path would take hours
ROUNDING = 1e-12  # a rise of the loss below this fraction of it is rounding ...
NOISE = 1e-6  # ... and one below this, if a shorter step does not lessen it fourfold
INSIDE = 3  # times inside a step, at equal distances, at which a loss that is not finite everywhere is looked at
FIRST = 1e-9  # distance to its threshold within which a coordinate enters first
STEP_BITS, NUDGE = 7, 1e-8  # of a step: significant bits, and by which share of the last one it may fall short of it


def advance(
    system: System, knot: Knot, memory: Memory, until: float, max_steps: int, keep_rows: bool = True,
    most_products: float = math.inf,
) -> Steps:  # fmt: skip
    """Steps from ``knot`` until one reaches ``until`` or ``max_steps`` are done, or they cost too much."""
    take_step = _fixed_step if system.step is not None else _adaptive_step
    if most_products == math.inf:
        return walk(system, take_step, knot, memory, until, max_steps, keep_rows)

    def watched_step(system: System, knot: Knot, memory: Memory) -> Step:
        after, memory, longest = take_step(system, knot, memory)
        return after, _watched(memory, after.t, most_products), longest

    return walk(system, watched_step, knot, memory, until, max_steps, keep_rows, lambda memory: memory.is_stiff)


def _watched(memory: Memory, t: float, most: float) -> Memory:
    """See now and then whether products with columns are more than ``most`` in a unit of log t."""
    if t < WATCH_GROWTH * memory.watched_t:
        return memory
    if memory.watched_t > 0 and memory.watched_products > most * math.log(t / memory.watched_t):
        return replace(memory, is_stiff=True)
    return replace(memory, watched_t=t, watched_products=0)


def walk(
    system: System, take_step: Callable[..., Step], knot: Knot, memory: Any, until: float, max_steps: int,
    keep_rows: bool = True, is_over: Callable[[Any], bool] = lambda memory: False,
) -> Steps:  # fmt: skip
    """A block of steps of any kind; ``take_step(system, knot, memory)`` is one of them.

    Without ``keep_rows`` only the last ``R`` and ``residual`` are kept.
    """
    path, interrupted = [(knot, memory, 0.0)], False
    while len(path) <= max_steps and path[-1][0].t < until and not is_over(path[-1][1]):
        try:
            _interrupts.check()
            path.append(take_step(system, *path[-1][:2]))
        except (StepError, KeyboardInterrupt) as trouble:
            if len(path) == 1:
                raise
            interrupted = isinstance(trouble, KeyboardInterrupt)
            break  # keep what was done; a step that failed fails again in the next call
    kept = {f.name: path if keep_rows or f.name not in ("R", "residual") else path[-1:] for f in fields(Knot)}
    arrays = {name: np.stack([getattr(k, name) for k, _, _ in knots]) for name, knots in kept.items()}
    reach = np.array([longest for _, _, longest in path])
    return Steps(system.columns, **arrays, reach=reach, memory=lambda k: path[k][1], interrupted=interrupted)


Step = tuple[Knot, Any, float]  # its end, what is remembered there, and the longest step that was tried


def _fixed_step(system: System, knot: Knot, memory: Memory) -> Step:
    """The three lines."""
    h = system.step
    assert h is not None
    problem = system.problem
    alpha, z = knot.alpha + h * knot.alpha_slope, knot.z + h * knot.slope
    eta = problem.predictor(system.block, alpha, system.penalty.primal(z, problem.kappa))
    residual, value = problem.residual(eta), problem.value(eta)
    if not value <= knot.value + rounding(knot):
        _refuse_unstable(system, knot, memory)
        if problem.loss.has_domain and np.isinf(value):
            raise BoundaryError(f"the next step leaves the domain of the loss at t={knot.t:g}")
    R, slope = knot.R + h * knot.residual, -system.block.rmatvec(residual)
    after = Knot(knot.t + h, alpha, problem.alpha_slope(residual), z, slope, R, residual, value)
    cost = replace(memory, gradients=memory.gradients + 1, products=memory.products + 2 * len(z))
    return after, cost, h


def rounding(knot: Knot) -> float:
    """A rise of the loss that its rounding explains."""
    return ROUNDING * (abs(knot.value) + 1e-3)


def _refuse_unstable(system: System, knot: Knot, memory: Memory) -> None:
    """The loss cannot rise while ``kappa * step * curvature < 2``; where it does, say which step is stable."""
    assert system.step is not None
    support = np.any(system.penalty.support(knot.z + system.step * knot.slope), axis=1)
    rate = curvature_on(system, knot, memory, support, iterations=50).rate
    largest = 2.0 / (system.problem.kappa * rate)
    if system.step >= 0.999 * largest or not np.isfinite(rate):
        raise UnstableStepError(system.step, system.problem.kappa, knot.t, largest)


def _adaptive_step(system: System, knot: Knot, memory: Memory) -> Step:
    """One accepted step, as long as the tolerance allows."""
    penalty, linear, loss = system.penalty, system.has_linear_stages, system.problem.loss
    started = np.any(penalty.entry(knot.z) < 0, axis=1)
    h, longest, earlier_rise, is_outside = memory.h or _first_length(system, knot, memory), 0.0, np.inf, False
    memory = _renew_curvature(system, knot, memory, started)
    rate = memory.rate * system.problem.kappa * RATE_MARGIN
    forced, ahead = np.zeros(len(knot.z), dtype=bool), ENTRY_AHEAD if linear else 1.0
    for _ in range(MAX_ATTEMPTS):
        if not h > 1e-13 * knot.t:
            break
        stages = stages_needed(h * rate)
        if stages > MAX_STAGES:
            stages, h = MAX_STAGES, longest_step(MAX_STAGES, rate)
            if h < MIN_PROGRESS * knot.t:
                raise StepError(f"the curvature allows only steps of {h:.1e} at t={knot.t:g}")
        longest = max(longest, ahead * h)
        h, entering = _not_far_beyond_entry(penalty, knot, h, 1.0 / rate, 0 if linear else ENTRY_FLOOR, ahead)
        h = round_down(h)
        stages = min(stages, stages_needed(h * rate))
        live = penalty.close(started | entering | forced)
        of_stages = 2 * stages * int(live.sum())
        memory = _count(memory, 1 if linear else stages, of_stages + 2 * len(knot.z), of_stages)
        if linear:
            after = _linear_step(system, knot, h, stages, live, memory.frozen)
        else:
            after = _chebyshev_step(system, knot, h, stages, live)
        if after is None:  # overflow: the local curvature is far from that at the knot
            h, is_outside = 0.2 * h, loss.has_domain
            continue
        error = _error(system, knot, after, live, h)
        highest = after.value
        if loss.looks_inside and error <= 1.0:  # between two knots the loss need not fall by more than can be seen
            highest = max(highest, _highest_inside(system, knot, after, live) - NOISE * abs(knot.value))
        rise, is_outside = highest - knot.value, np.isinf(highest)
        # A true rise c h^2 - d h falls by more than a factor of four when h is halved; that of rounding does not.
        is_noise = rise <= NOISE * abs(knot.value) and rise > 0.25 * earlier_rise
        if error > 1.0 or (rise > rounding(knot) and not is_noise) or not np.isfinite(error):
            if linear and memory.frozen_t < knot.t:  # that may be the fault of an old curvature
                memory = _freeze(system, knot, memory)
                continue
            shorter = SAFETY * error ** (-1 / 3) if np.isfinite(error) and error > 0 else 0.1
            h *= min(0.5, max(0.1, shorter))
            earlier_rise = rise if rise > rounding(knot) else np.inf
            continue
        missed = np.any(penalty.entry(after.z) < 0, axis=1) & ~live
        if missed.any():
            forced |= missed
            continue
        longer = min(3.0, max(0.3, SAFETY * max(error, 1e-6) ** (-1 / 3)))
        return after, replace(memory, h=h * longer), longest
    kind = BoundaryError if is_outside else StepError
    raise kind(f"no step from t={knot.t:g} is accurate")


def _renew_curvature(system: System, knot: Knot, memory: Memory, started: BoolArray) -> Memory:
    """The curvature at a knot: that of some steps ago, since it changes slowly, unless many columns have entered."""
    if system.has_linear_stages and knot.t >= FREEZE_GROWTH * memory.frozen_t:
        memory = _freeze(system, knot, memory)
    known = np.any(memory.direction != 0, axis=1)
    too_many_new = np.sum(started & ~known) > RATE_SHARE * np.sum(known)
    if memory.rate == 0 or memory.age + 1 >= RATE_STEPS or too_many_new:
        return _count(curvature_on(system, knot, memory, started), 0, 4 * int(started.sum()))
    return replace(memory, age=memory.age + 1)


def _count(memory: Memory, gradients: int, products: int, watched: int = 0) -> Memory:
    gradients, products = memory.gradients + gradients, memory.products + products
    return replace(memory, gradients=gradients, products=products, watched_products=memory.watched_products + watched)


def _not_far_beyond_entry(
    penalty: AbstractPenalty, knot: Knot, h: float, slack: float, floor: int, ahead: float
) -> tuple[float, BoolArray]:
    """Shorten a step to end just after the first few expected entries, and tell which columns enter.

    An entry bends the path; a step that ends soon after it is rarely rejected. Among many active coefficients a few
    more do not matter. To let in a column that stays at rest changes nothing and costs little where stages are linear;
    to repeat a step for one that was missed costs all of it. So there columns count as entering somewhat ahead.
    """
    now, then = penalty.entry(knot.z), penalty.entry(knot.z + h * knot.slope)
    entering = (now >= 0) & (then < 0)
    if entering.any():
        together = int(ENTRY_SHARE * max(int(np.count_nonzero(now < 0)) - floor, 0))
        shares = np.sort(now[entering] / (now[entering] - then[entering]))
        h = min(h, h * float(shares[min(together, len(shares) - 1)]) + slack)
    entering = (now >= 0) & (penalty.entry(knot.z + ahead * h * knot.slope) < 0)
    return h, np.any(entering, axis=1)


def round_down(h: float, bits: int = STEP_BITS) -> float:
    """A step to a few significant bits, so that the rounding of sums does not grow from step to step, nor decide where
    whole numbers in the data make it just these."""
    mantissa, exponent = math.frexp(h)
    return math.ldexp(math.floor(math.ldexp(mantissa, bits) + NUDGE), exponent - bits)


Moving = tuple[Array, ...]  # quantities that obey the same recursion


def _recursion(
    stages: int, h: float, start: Moving, speed0: Moving, speed_at: Callable[[Moving], Moving | None]
) -> Moving | None:
    """The last stage of the Runge-Kutta-Chebyshev recursion; None where a speed is not finite."""
    c = stage_coefficients(stages)
    before: Moving = start
    stage: Moving = tuple(y + c.first * h * f for y, f in zip(start, speed0, strict=True))
    for j in range(2, stages + 1):
        speed = speed_at(stage)
        if speed is None:
            return None
        factors = 1 - c.mu[j] - c.nu[j], c.mu[j], c.nu[j], h * c.mu1[j], h * c.gamma[j]
        new = tuple(_combine(factors, parts) for parts in zip(start, stage, before, speed, speed0, strict=True))
        before, stage = stage, new
    return stage


def _combine(factors: tuple[float, ...], arrays: tuple[Array, ...]) -> Array:
    """A linear combination, without a new array for every term."""
    out = factors[0] * arrays[0]
    term = np.empty_like(out)
    for factor, array in zip(factors[1:], arrays[1:], strict=True):
        np.multiply(array, factor, out=term)
        out += term
    return out


def _chebyshev_step(system: System, knot: Knot, h: float, stages: int, live: BoolArray) -> Knot | None:
    """One Runge-Kutta-Chebyshev step in which the ``live`` columns move."""
    problem, kappa = system.problem, system.problem.kappa
    columns = np.flatnonzero(live)
    block, penalty = system.block.columns(columns), system.penalty.take(columns)

    def speed_at(stage: Moving) -> Moving | None:
        eta = problem.predictor(block, stage[0], penalty.primal(stage[1], kappa))
        residual = problem.residual(eta)
        if not np.isfinite(residual).all():
            return None
        return problem.alpha_slope(residual), -block.rmatvec(residual), residual

    start = knot.alpha, knot.z[columns], knot.R
    end = _recursion(stages, h, start, (knot.alpha_slope, knot.slope[columns], knot.residual), speed_at)
    return None if end is None else _arrive(system, knot, h, columns, *end)


def _linear_step(system: System, knot: Knot, h: float, stages: int, live: BoolArray, frozen: Array) -> Knot | None:
    """The same with the loss linearised at the knot; R follows from the integrals of alpha and beta."""
    problem, kappa = system.problem, system.problem.kappa
    columns = np.flatnonzero(live)
    block, penalty = system.block.columns(columns), system.penalty.take(columns)
    beta, slope = penalty.primal(knot.z[columns], kappa), knot.slope[columns]

    def residual_change(alpha: Array, beta: Array) -> Array:
        return problem.curvature(frozen, problem.predictor(block, alpha, beta, offset=False))

    def speed_at(stage: Moving) -> Moving:
        moved = stage[0] - knot.alpha, penalty.primal(stage[1], kappa) - beta
        change = residual_change(*moved)
        return knot.alpha_slope + problem.alpha_slope(change), slope - block.rmatvec(change), *moved

    rest = np.zeros_like(knot.alpha), np.zeros_like(beta)
    end = _recursion(stages, h, (knot.alpha, knot.z[columns], *rest), (knot.alpha_slope, slope, *rest), speed_at)
    assert end is not None
    return _arrive(system, knot, h, columns, end[0], end[1], knot.R + h * knot.residual + residual_change(*end[2:]))


def _freeze(system: System, knot: Knot, memory: Memory) -> Memory:
    """Take the curvature at this knot from now on."""
    eta = system.problem.predictor(system.block, knot.alpha, system.penalty.primal(knot.z, system.problem.kappa))
    return replace(memory, frozen=eta, frozen_t=knot.t)


def _arrive(system: System, knot: Knot, h: float, columns: Array, alpha: Array, z_live: Array, R: Array) -> Knot | None:
    """The knot at the end of a step, exact; None where the loss is not finite."""
    problem = system.problem
    beta = system.penalty.take(columns).primal(z_live, problem.kappa)
    eta = problem.predictor(system.block.columns(columns), alpha, beta)
    residual, value = problem.residual(eta), problem.value(eta)
    if not (np.isfinite(value) and np.isfinite(residual).all()):
        return None
    change, slope = -system.block.rmatvec_many(np.stack([R - knot.R, residual]))
    z = knot.z + change
    z[columns] = z_live
    return Knot(knot.t + h, alpha, problem.alpha_slope(residual), z, slope, R, residual, value)


def _highest_inside(system: System, knot: Knot, after: Knot, live: BoolArray) -> float:
    """Largest loss at a few times inside a step, where the path is read by cubics: infinite outside of its domain."""
    problem, columns = system.problem, np.flatnonzero(live)
    block, penalty, h = system.block.columns(columns), system.penalty.take(columns), after.t - knot.t
    highest = -np.inf
    for theta in np.arange(1, INSIDE + 1) / (INSIDE + 1):
        alpha = cubic((knot.alpha, after.alpha), (knot.alpha_slope, after.alpha_slope), h, theta)
        slopes = knot.slope[columns], after.slope[columns]
        z = cubic((knot.z[columns], after.z[columns]), slopes, h, theta)
        highest = max(highest, problem.value(problem.predictor(block, alpha, penalty.primal(z, problem.kappa))))
    return highest


def _error(system: System, knot: Knot, after: Knot, live: BoolArray, h: float) -> float:
    """Estimated error of the coefficients of a step, as a multiple of the tolerance.

    The tolerance is relative to the largest coefficient, in the middle of the step. The estimate is that of the RKC
    code: ``0.8 (y_k - y_{k+1}) + 0.4 h (f_k + f_{k+1})``. It counts for coefficients that move at either end, or would
    at their present speed: one that a step far too long throws back below its threshold is at zero at both.
    """
    kappa, penalty = system.problem.kappa, system.penalty
    moving = np.any([penalty.entry(z) < 0 for z in (knot.z, after.z, knot.z + h * knot.slope)], axis=0) & live[:, None]
    largest = float(np.mean([np.max(np.abs(penalty.primal(z, kappa)[live]), initial=0.0) for z in (knot.z, after.z)]))
    z_error = 0.8 * (knot.z - after.z) + 0.4 * h * (knot.slope + after.slope)
    alpha_error = 0.8 * (knot.alpha - after.alpha) + 0.4 * h * (knot.alpha_slope + after.alpha_slope)
    worst = kappa * float(np.max(np.abs(z_error[moving]), initial=0.0))
    worst = max(worst, float(np.max(np.abs(alpha_error), initial=0.0)))
    return worst / (system.tol * max(largest, 1e-6 * kappa))


def values(system: System, alpha: Array, beta: Array) -> Array:
    """Loss at coefficients (T, m, q) of the working columns and intercepts (T, q)."""
    problem, used = system.problem, np.flatnonzero(np.any(beta != 0, axis=(0, 2)))
    block = system.block.columns(used)
    pairs = zip(alpha, beta[:, used], strict=True)
    return np.array([problem.value(problem.predictor(block, a, b)) for a, b in pairs])


def look(system: System, alpha: Array, beta: Array) -> tuple[float, Array, Array, Array]:
    """Loss, residual, and slopes of working columns and alpha: no numbers where the loss is none."""
    problem, block = system.problem, system.block
    eta = problem.predictor(block, alpha, beta)
    residual, value = problem.residual(eta), problem.value(eta)
    if not (np.isfinite(value) and np.isfinite(residual).all()):
        return np.inf, residual, np.full_like(beta, np.nan), np.full_like(alpha, np.nan)
    return value, residual, -block.rmatvec(residual), problem.alpha_slope(residual)


def begin(system: System, knot: Knot) -> Memory:
    """What is remembered at the first knot of a path: nothing, not even how long an adaptive step should be."""
    memory = Memory(system.step or 0.0, np.zeros_like(knot.z), np.zeros_like(knot.alpha))
    # At time 0: the first step takes it anew.
    return replace(memory, frozen=np.zeros_like(knot.residual)) if system.has_linear_stages else memory


def _first_length(system: System, knot: Knot, memory: Memory) -> float:
    """A cautious step: a tenth of the explicit stability limit at the first entry."""
    first = np.any(system.penalty.entry(knot.z) <= FIRST, axis=1)
    rate = curvature_on(system, knot, memory, first, iterations=3).rate
    return min(0.1 / (system.problem.kappa * rate), 0.1 * knot.t)
