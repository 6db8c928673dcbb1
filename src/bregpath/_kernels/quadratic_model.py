"""A quadratic model of a loss: followed by exponentials for a stretch, then held against the truth and put right."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from bregpath._kernels.exponential import LEAST_SCALE
from bregpath._kernels.records import Knot, Memory, StepError, Steps, System, cubic
from bregpath._kernels.reference import INSIDE, NOISE, round_down, rounding
from bregpath._known_to_core import Kernel
from bregpath._typing import Array
from bregpath.penalties.l1 import L1Penalty
from bregpath.stores import AbstractBlock

__all__ = ["Model", "Part", "Stretch", "Tools"]

MIDDLE = 0.25  # of a stretch: what is farther than this from both ends is its middle
AT_REST = 0.3  # what a correction of a coordinate at rest counts, beside one of a coefficient
MAX_RESCALE = 2.0  # of a curvature at a time
MAX_KNOTS = 256  # of a stretch
ROUNDING = 1e-12  # of curvatures
ENDS = 1e-12  # closer than this to its end, relative to t, a stretch has ended


class Tools(NamedTuple):
    """The fastest kernels: exponential steps, stages and what is true at a point, and columns where they lie."""

    exponentials: ModuleType
    stages: ModuleType
    columns_of: Callable[[AbstractBlock], Any]


class Part(NamedTuple):
    """Consecutive knots without what has the size of the rows."""

    t: Array
    alpha: Array
    alpha_slope: Array
    z: Array
    slope: Array
    value: Array

    @classmethod
    def of(cls, knot: Knot) -> Part:
        return cls(*(np.asarray(getattr(knot, name))[None] for name in cls._fields))

    @classmethod
    def joined(cls, parts: list[Part]) -> Part:
        return cls(*(np.concatenate(pieces) for pieces in zip(*parts, strict=True)))


class MomentsOnly(NamedTuple):
    """A block of which only the Gram matrix and the means are known.

    So many columns, side by side, are outputs of one of which only differences count.
    """

    gram: Array
    mean: Array
    outputs: int

    def kernel(self) -> Kernel:
        return Kernel("gram", {"gram": self.gram, "gram_mean": self.mean, "outputs": self.outputs})


class Model:
    """Squared loss with the curvature of another loss, divided by the sum of that over rows and outputs, ``scale``.

    Its coefficients are those of all columns and, as of a last one, the intercepts, with all their outputs: (m + 1, q).
    To exponentials each is a column of its own.
    """

    def __init__(self, system: System, eta: Array, tools: Tools) -> None:
        problem, penalty, q, self.tools = system.problem, system.penalty, eta.shape[1], tools
        self.hessian, self.scale, only_differences = _hessian(system, eta, tools)
        if not (self.scale > 0 and math.isfinite(self.scale)):
            raise StepError("the loss has no curvature")
        self.hessian /= self.scale
        if not problem.fit_intercept:
            self.hessian[-q:] = self.hessian[:, -q:] = 0.0
        rest = 0.0 if problem.fit_intercept else np.inf
        edges = (penalty.weights, rest), (penalty.lower, -np.inf), (penalty.upper, np.inf)
        flat = L1Penalty(*(np.append(x, np.full(q, of_intercept))[:, None] for x, of_intercept in edges))
        block: Any = MomentsOnly(self.hessian, np.zeros(len(self.hessian)), q if only_differences else 1)
        problem = replace(problem, fit_intercept=False)
        self.system = replace(system, problem=problem, block=block, penalty=flat, cache={})

    def follow(self, knot: Knot, scale: float, length: float, trial: float) -> Steps:
        """Steps for some time, with a curvature of some scale: their times, slopes and losses are those of scale 1.

        Intercepts begin at zero: they are free, and must not count where the largest coefficient is asked for.
        """
        end, none = scale * (knot.t + length), np.zeros(1)
        z = np.concatenate([knot.z, 0.0 * knot.alpha[None]]).reshape(-1, 1)
        slope = np.concatenate([knot.slope, knot.alpha_slope[None] / self.system.problem.kappa]).reshape(-1, 1)
        start = replace(
            knot, t=scale * knot.t, alpha=none, alpha_slope=none, z=z, slope=slope / scale, value=knot.value / scale
        )
        memory = Memory(scale * min(trial, length), np.zeros((0, 0)), np.zeros(0))
        steps = self.tools.exponentials.advance(self.system, start, memory, end * (1 - ENDS), MAX_KNOTS, False, end)
        if steps.interrupted:
            raise KeyboardInterrupt
        return steps  # type: ignore[no-any-return]


def _hessian(system: System, eta: Array, tools: Tools) -> tuple[Array, float, bool]:
    """That of all coefficients, its scale, and whether only differences between outputs count."""
    block, (n, q) = system.block, eta.shape
    m, columns = block.shape[1] + 1, tools.columns_of(block)
    hessian, scale, only_differences = np.zeros((m, q, m, q)), 0.0, True
    for k in range(q):
        curvature = system.problem.curvature(eta, np.tile(np.eye(q)[k], (n, 1)))
        scale += float(curvature[:, k].sum())
        of_all = curvature.sum(axis=1)  # when all outputs change by the same
        if np.abs(of_all).max() > ROUNDING * np.abs(curvature).max():
            only_differences = False
            hessian[:, k, :, k] += _products(block, columns, of_all)
        for other in range(k):
            products = _products(block, columns, curvature[:, other])
            hessian[:, k, :, other] = hessian[:, other, :, k] = products
            hessian[:, k, :, k] -= products
            hessian[:, other, :, other] -= products
    return hessian.reshape(m * q, m * q), scale, only_differences


def _products(block: AbstractBlock, columns: Any, w: Array) -> Array:
    """Weighted sums of products of columns, and a last one of ones, with each other; by the core if it has them."""
    zeros = np.zeros(block.shape[1])
    if columns is None:
        X = np.column_stack([block.matvec(np.eye(block.shape[1])), np.ones(len(w))])
        return (X.T * w) @ X  # type: ignore[no-any-return]
    out = np.zeros((len(zeros) + 1, len(zeros) + 1))
    for sign in (1.0, -1.0):
        if (weights := np.maximum(sign * w, 0.0)).any():
            out += sign * columns.moments(weights, weights, zeros)[:-1, :-1]
    return out


class Stretch:
    """What a model made of a stretch of the path, the truth at its end, and what puts it right.

    Coordinates are dual variables of columns and, as of a last one, intercepts over kappa: (m + 1, q).
    """

    def __init__(self, system: System, knot: Knot, model: Model, scale: float, steps: Steps) -> None:
        self.system, self.problem, self.knot, self.scale, self.steps = system, system.problem, knot, scale, steps
        self.stages, penalty = model.tools.stages, system.penalty
        self.t = steps.t / scale
        self.length = float(self.t[-1]) - knot.t
        start = self._coordinates(knot.z, knot.alpha)
        shape = len(self.t), *start.shape
        self.path, self.speed = steps.z.reshape(shape), scale * steps.slope.reshape(shape)
        self.path[:, -1] += start[-1]
        moves = penalty.support(self.path[-1, :-1]) | (penalty.weights == 0)
        self.moves = np.concatenate([moves, np.full_like(moves[:1], self.problem.fit_intercept)])
        self.seen = self._look(-1)
        self.true_slope = self._slope_of(self.seen)
        self.change = self._correction(model)

    def _look(self, k: int, change: Array | float = 0.0) -> Knot:
        """The truth where a knot is put."""
        z = self.path[k] + change
        beta, alpha = self._coefficients(z)
        value, residual, slope, alpha_slope = self.stages.look(self.system, alpha, beta)
        return Knot(float(self.t[k]), alpha, alpha_slope, z[:-1], slope, self.knot.R, residual, value)

    def _coordinates(self, columns: Array, alpha: Array) -> Array:
        return np.concatenate([columns, alpha[None] / self.problem.kappa])

    def _coefficients(self, z: Array) -> tuple[Array, Array]:
        """Of columns, and intercepts."""
        kappa = self.problem.kappa
        return self.system.penalty.primal(z[:-1], kappa), kappa * z[-1]

    def _slope_of(self, knot: Knot) -> Array:
        return self._coordinates(knot.slope, knot.alpha_slope)

    def _mean(self, defect: Array) -> Array:
        """Mean of the difference of slopes over the stretch, at whose end it is the ``defect``.

        By a parabola through its middle, or as if it grew evenly where no knot is near that.
        """
        share = (self.t - self.knot.t) / self.length
        k = int(np.argmin(np.abs(share - 0.5)))
        theta = float(share[k])
        if not MIDDLE <= theta <= 1.0 - MIDDLE:
            return 0.5 * defect
        middle = self._slope_of(self._look(k)) - self.speed[k]
        bend: Array = (middle / theta - defect) / (theta - 1.0)
        return 0.5 * (defect - bend) + bend / 3.0

    def _correction(self, model: Model) -> Array:
        """Of all coordinates at the end; see the formulas of `quadratic`."""
        defect, moves, kappa = self.true_slope - self.speed[-1], self.moves, self.problem.kappa
        if not np.isfinite(defect).all():
            return defect
        movers = np.flatnonzero(moves)
        hessian = model.hessian[movers[:, None], movers]
        hessian[np.diag_indices_from(hessian)] += 2.0 / (kappa * self.length * self.scale)
        factor = cho_factor(hessian, overwrite_a=True, check_finite=False)
        moved = np.zeros(defect.size)
        moved[movers] = cho_solve(factor, defect[moves] / self.scale, check_finite=False)
        rest = self._mean(defect) - 0.5 * self.scale * (model.hessian @ moved).reshape(defect.shape)
        return np.where(moves, moved.reshape(defect.shape) / kappa, self.length * rest)

    def error(self, tol: float) -> float:
        """The correction over ``tol`` of the largest coefficient; inf if the truth is no number, or the loss rises."""
        penalty, kappa = self.system.penalty, self.problem.kappa
        if not (math.isfinite(self.seen.value) and np.isfinite(self.change).all()):
            return math.inf
        counts = np.append(np.isfinite(penalty.weights), self.moves[-1:], axis=0)  # what is excluded may go anywhere
        largest = float(np.max(np.abs(penalty.primal(self.seen.z, kappa)), initial=0.0))
        worst = kappa * float(np.max(np.abs(self.change) * np.where(self.moves, 1.0, AT_REST) * counts))
        error = worst / (tol * max(largest, LEAST_SCALE * kappa))
        if error <= 1.0 and not self._highest() <= self.knot.value + rounding(self.knot):
            return math.inf
        return error

    def rescaled(self) -> float:
        """The scale with which the curvature along what has moved would have been right."""
        (beta, alpha), (beta_then, alpha_then) = (self._coefficients(self.path[k]) for k in (0, -1))
        moved = np.append(beta_then - beta, (alpha_then - alpha)[None], axis=0)
        start = self._slope_of(self.knot)
        true, modelled = (float(np.vdot(moved, start - slope)) for slope in (self.true_slope, self.speed[-1]))
        if not (modelled > 0 and true > 0):
            return self.scale
        return self.scale * round_down(min(max(true / modelled, 1.0 / MAX_RESCALE), MAX_RESCALE))

    @cached_property
    def end(self) -> Knot:
        """The last knot, put right, and what is true there."""
        return self._look(-1, self.change)

    @cached_property
    def part(self) -> Part:
        """All knots after the first, put right."""
        value, end, kappa = self.scale * self.steps.value, self.end, self.problem.kappa
        share = ((self.t[1:] - self.knot.t) / self.length)[:, None, None]
        z = self.path[1:] + share**2 * self.change
        slope = self.speed[1:] + 2.0 * share / self.length * self.change
        modelled = value[1:] + share[:, 0, 0] ** 2 * (end.value - value[-1])
        value = np.clip(modelled, end.value, max(self.knot.value, end.value))  # it falls along a path
        part = Part(self.t[1:], kappa * z[:, -1], kappa * slope[:, -1], z[:, :-1], slope[:, :-1], value)
        for name in ("z", "slope", "alpha", "alpha_slope", "value"):
            getattr(part, name)[-1] = getattr(end, name)
        return part

    def _highest(self) -> float:
        """Largest loss at the end, and between knots if it may be much larger there than at these."""
        if not self.problem.loss.looks_inside:
            return self.end.value
        all_knots = Part.joined([Part.of(self.knot), self.part])
        h, highest = np.diff(all_knots.t)[:, None], self.end.value
        for theta in np.arange(1, INSIDE + 2) / (INSIDE + 1):
            z, alpha = (
                cubic((x[:-1], x[1:]), (slope[:-1], slope[1:]), h.reshape(-1, *[1] * (x.ndim - 1)), theta)
                for x, slope in ((all_knots.z, all_knots.slope), (all_knots.alpha, all_knots.alpha_slope))
            )
            values = self.stages.values(self.system, alpha, self.system.penalty.primal(z, self.problem.kappa))
            highest = max(highest, float(np.max(values)) - NOISE * abs(self.knot.value))
        return highest
