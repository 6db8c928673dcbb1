r"""Inverse scale space, the limit of the dynamics for :math:`\kappa \to \infty`, from event to event, in NumPy.

In the limit the subgradient ``rho`` is all of the dual variable, and parameters are at their optimum at once:

.. math:: \dot\rho = -\nabla_\beta \ell(\alpha, \beta), \qquad \rho \in \partial J(\beta), \qquad
          (\alpha, \beta) = \arg\min \ell \text{ with the signs that } \rho \text{ allows.}

As long as no coordinate of rho reaches a threshold or comes back from it, nothing else changes: coefficients are
constant, slopes are constant, and rho is a straight line, so the time of the next event is exact, for every loss. With
limits, a coordinate at its limit has its rho beyond the threshold.

A knot holds the coefficients *up to* its time; what it jumps to is found by the step that begins there. Its ``z`` is
``rho + beta``, of which both are known: ``beta`` is the shrunken ``z``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from bregpath._kernels.records import Knot, StepError, Steps, System
from bregpath._kernels.reference import Step, walk
from bregpath._kernels.restricted import NOISE, NOTHING_LEFT, Optimum, RestrictedNewton
from bregpath._typing import Array
from bregpath.penalties import AbstractPenalty

__all__ = ["Position", "advance", "begin"]

TIE = 1e-12  # events closer than this share of t happen together


@dataclass(frozen=True)
class Position:
    """Subgradient and coefficients of the working columns, and what was counted on the way to them."""

    rho: Array  # (m, c)
    beta: Array  # (m, c)
    scale: float  # of the slopes at the start of the path
    enough: float  # loss at which nothing is left to explain
    gradients: int = 0
    products: int = 0
    models: int = 0  # none: every leg is an optimum of the loss itself

    def grow(self, z: Array) -> Position:
        """The same with more working columns, which are at zero."""
        rho, beta = np.concatenate([self.rho, z]), np.concatenate([self.beta, np.zeros_like(z)])
        return replace(self, rho=rho, beta=beta)


def begin(system: System, knot: Knot, scale: float) -> Position:
    """What is remembered at the first entry time; ``scale`` is the largest slope there."""
    problem, penalty = system.problem, system.penalty
    free = penalty.weights == 0
    beta = np.where(free, knot.z, 0.0)
    low, high = thresholds(penalty)
    rho = np.where(free, 0.0, knot.z)
    close = np.minimum(np.abs(rho - low), np.abs(rho - high)) <= TIE * penalty.weights
    rho = _settle(rho, close & np.isfinite(penalty.weights), low, high)
    return Position(rho, beta, scale, problem.floor + NOTHING_LEFT * (knot.value - problem.floor))


def advance(system: System, knot: Knot, memory: Position, until: float, limit: float, max_steps: int) -> Steps:
    """From event to event, until one is at or beyond ``until`` or ``max_steps`` are done.

    A step ends at the ``limit`` if the next event is beyond it, or at ``until`` if there is none.
    """
    until = min(until, limit)
    return walk(system, partial(_to_next_event, until, limit), knot, memory, until, max_steps)


def thresholds(penalty: AbstractPenalty) -> tuple[Array, Array]:
    """Between which values of rho a coefficient is zero; infinite on a side that limits forbid."""
    weights = penalty.weights
    return np.where(penalty.lower < 0, -weights, -np.inf), np.where(penalty.upper > 0, weights, np.inf)


def _to_next_event(until: float, limit: float, system: System, knot: Knot, memory: Position) -> Step:
    penalty, t = system.penalty, knot.t
    low, high = thresholds(penalty)
    alpha, beta, rho, R = knot.alpha, memory.beta, memory.rho, knot.R
    while True:
        bounds = _bounds(penalty, rho, low, high)
        best = _newton(system, memory).minimise(alpha, beta, *bounds)
        alpha, beta = best.alpha, best.beta
        memory = replace(
            memory,
            gradients=memory.gradients + best.gradients,
            products=memory.products + 2 * len(rho) * best.gradients,
        )
        slope = _moves(best, *bounds, NOISE * memory.scale)
        arrival = _arrivals(rho, slope, low, high)
        wait = float(np.min(arrival, initial=np.inf))
        at_event = np.isfinite(wait) and t + wait <= limit
        goal = t + wait if at_event else limit if np.isfinite(limit) else until
        if not np.isfinite(goal):
            raise StepError("nothing will ever happen")
        wait = wait if at_event else goal - t
        rho, R = rho + wait * slope, R + wait * best.residual
        if at_event:
            rho = _settle(rho, arrival <= wait + TIE * t, low, high)
        t = goal  # the very end where there is one: a rounded sum might fall short of it, and ask for another step
        if t > knot.t * (1 + TIE) or not at_event:
            break
    after = Knot(t, alpha, np.zeros_like(alpha), rho + beta, best.slope, R, best.residual, best.value)
    return after, replace(memory, rho=rho, beta=beta), 0.0


def _bounds(penalty: AbstractPenalty, rho: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """The coefficients that a subgradient allows."""
    lower = np.where(rho > high, penalty.upper, np.where(rho <= low, penalty.lower, 0.0))
    upper = np.where(rho < low, penalty.lower, np.where(rho >= high, penalty.upper, 0.0))
    return lower, upper


def _moves(best: Optimum, lower: Array, upper: Array, noise: float) -> Array:
    """Speed of rho: zero where a coefficient is free to follow, and where it hardly differs from that."""
    held = np.where(best.beta == lower, best.slope < -noise, False) | (best.beta == upper) & (best.slope > noise)
    return np.where((lower == upper) | held, best.slope, 0.0)


def _arrivals(rho: Array, slope: Array, low: Array, high: Array) -> Array:
    """Time until each coordinate reaches the next threshold on its way."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ahead = np.where(slope > 0, np.where(rho < low, low, high), np.where(rho > high, high, low))
        return np.where((slope != 0) & np.isfinite(ahead) & _is_ahead(rho, slope, ahead), (ahead - rho) / slope, np.inf)


def _is_ahead(rho: Array, slope: Array, threshold: Array) -> Array:
    return np.where(slope > 0, rho < threshold, rho > threshold)


def _settle(rho: Array, arrives: Array, low: Array, high: Array) -> Array:
    """Put coordinates that arrive exactly on the threshold that is nearest."""
    return np.where(arrives, np.where(np.abs(rho - high) < np.abs(rho - low), high, low), rho)


def _newton(system: System, memory: Position) -> RestrictedNewton:
    """The solver of a system, made once."""
    if "newton" not in system.cache:
        system.cache["newton"] = RestrictedNewton(system.problem, system.block, memory.scale, memory.enough)
    return system.cache["newton"]  # type: ignore[no-any-return]
