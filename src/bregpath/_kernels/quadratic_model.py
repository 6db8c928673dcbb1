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
from bregpath._typing import Array, BoolArray
from bregpath.stores import AbstractBlock

__all__ = ["Model", "Part", "Stretch", "Tools"]

MIDDLE = 0.25  # of a stretch: what is farther than this from both ends is its middle
AT_REST = 0.3  # what a correction of a coordinate at rest counts, beside one of a coefficient
MAX_RESCALE = 2.0  # of a curvature at a time
MAX_KNOTS = 256  # of a stretch
ENDS = 1e-12  # closer than this to its end, relative to t, a stretch has ended


class Tools(NamedTuple):
    """The fastest kernels: exponential steps, columns where they lie, and losses at several points."""

    exponentials: ModuleType
    columns_of: Callable[[AbstractBlock], Any]
    values: Callable[[System, Array, Array], Array]


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
    """A block of which only the Gram matrix and the means are known."""

    gram: Array
    mean: Array

    def kernel(self) -> Kernel:
        return Kernel("gram", {"gram": self.gram, "gram_mean": self.mean})


class Model:
    """Squared loss with the curvature of another loss, divided by the sum of that over the rows, ``scale``."""

    def __init__(self, system: System, eta: Array, tools: Tools) -> None:
        problem = system.problem
        curvature = np.maximum(problem.curvature(eta, np.ones_like(eta))[:, 0], 0.0)
        self.scale, self.tools = float(curvature.sum()), tools
        if not (self.scale > 0 and math.isfinite(self.scale)):
            raise StepError("the loss has no curvature")
        self.gram, self.mean = _moments(system.block, curvature / self.scale, problem.scan.mean[system.columns], tools)
        block: Any = MomentsOnly(self.gram, self.mean)
        self.system = replace(system, block=block, cache={})

    def hessian_rows(self, movers: BoolArray) -> Array:
        """Of coordinates that move, the intercept the last of all: (k, m + 1)."""
        means = np.append(self.mean, 1.0)
        rows = np.outer(means[movers], means)
        rows[: np.count_nonzero(movers[:-1]), :-1] += self.gram[movers[:-1]]
        return rows

    def follow(self, knot: Knot, scale: float, length: float, trial: float) -> Steps:
        """Steps for some time, with a curvature of some scale: their times, slopes and losses are those of scale 1."""
        end, slopes = scale * (knot.t + length), (knot.alpha_slope / scale, knot.slope / scale)
        start = replace(
            knot, t=scale * knot.t, alpha_slope=slopes[0], slope=slopes[1], value=knot.value / scale
        )
        memory = Memory(scale * min(trial, length), np.zeros((0, 0)), np.zeros(0))
        steps = self.tools.exponentials.advance(self.system, start, memory, end * (1 - ENDS), MAX_KNOTS, False, end)
        if steps.interrupted:
            raise KeyboardInterrupt
        return steps  # type: ignore[no-any-return]


def _moments(block: AbstractBlock, w: Array, about: Array, tools: Tools) -> tuple[Array, Array]:
    """Gram matrix of columns about their means, and these; ``about`` is near them."""
    columns = tools.columns_of(block)
    if columns is None:
        X = block.matvec(np.eye(block.shape[1]))
        mean = w @ X
        return (X - mean).T @ ((X - mean) * w[:, None]), mean
    sums = columns.moments(w, w, about)
    rest = sums[:-2, -2] / w.sum()
    return sums[:-2, :-2] - np.outer(rest, rest), about + rest


class Stretch:
    """What a model made of a stretch of the path, the truth at its end, and what puts it right."""

    def __init__(self, system: System, knot: Knot, model: Model, scale: float, steps: Steps) -> None:
        self.system, self.problem, self.knot, self.scale, self.steps = system, system.problem, knot, scale, steps
        self.values = model.tools.values
        self.t = steps.t / scale
        self.length = float(self.t[-1]) - knot.t
        self.seen = self._look(steps.alpha[-1], steps.z[-1])
        self.modelled_slope, self.true_slope = self._modelled(-1), self._slope_of(self.seen)
        self.moves = np.append(np.any(system.penalty.support(steps.z[-1]), axis=1) | system.penalty.free, True)
        self.moves[-1] = self.problem.fit_intercept
        self.change = self._correction(model)

    def _look(self, alpha: Array, z: Array) -> Knot:
        """The truth at the end, if it is at some point; slopes that are no numbers where the loss is none."""
        problem, block = self.problem, self.system.block
        eta = problem.predictor(block, alpha, self.system.penalty.primal(z, problem.kappa))
        residual, value, t = problem.residual(eta), problem.value(eta), float(self.t[-1])
        if math.isfinite(value) and np.isfinite(residual).all():
            slope, alpha_slope = -block.rmatvec(residual), problem.alpha_slope(residual)
        else:
            slope, alpha_slope, value = np.full_like(z, np.nan), np.full_like(alpha, np.nan), np.inf
        return Knot(t, alpha, alpha_slope, z, slope, self.knot.R, residual, value)

    def _coordinates(self, columns: Array, alpha: Array) -> Array:
        """Columns and intercept as one vector."""
        return np.append(columns[..., 0], alpha / self.problem.kappa)

    def _slope_of(self, knot: Knot) -> Array:
        return self._coordinates(knot.slope, knot.alpha_slope)

    def _modelled(self, k: int) -> Array:
        """The slope of the model at one of its knots."""
        return self.scale * self._coordinates(self.steps.slope[k], self.steps.alpha_slope[k])

    def _mean(self, defect: Array) -> Array:
        """Mean of the difference of slopes over the stretch, at whose end it is the ``defect``.

        By a parabola through its middle, or as if it grew evenly where no knot is near that.
        """
        share = (self.t - self.knot.t) / self.length
        k = int(np.argmin(np.abs(share - 0.5)))
        theta = float(share[k])
        if not MIDDLE <= theta <= 1.0 - MIDDLE:
            return 0.5 * defect
        middle = self._slope_of(self._look(self.steps.alpha[k], self.steps.z[k])) - self._modelled(k)
        bend: Array = (middle / theta - defect) / (theta - 1.0)
        return 0.5 * (defect - bend) + bend / 3.0

    def _correction(self, model: Model) -> Array:
        """Of all coordinates at the end; see the formulas of `quadratic`."""
        defect, moves, kappa = self.true_slope - self.modelled_slope, self.moves, self.problem.kappa
        if not np.isfinite(defect).all():
            return defect
        rows = self.scale * model.hessian_rows(moves)
        hessian = rows[:, moves]
        hessian[np.diag_indices_from(hessian)] += 2.0 / (kappa * self.length)
        coefficients = cho_solve(cho_factor(hessian, check_finite=False), defect[moves], check_finite=False)
        change: Array = self.length * (self._mean(defect) - 0.5 * coefficients @ rows)
        change[moves] = coefficients / kappa
        if not self.problem.fit_intercept:
            change[-1] = 0.0
        return change

    def error(self, tol: float) -> float:
        """The correction over ``tol`` of the largest coefficient; inf if the truth is no number, or the loss rises."""
        penalty, kappa = self.system.penalty, self.problem.kappa
        if not (math.isfinite(self.seen.value) and np.isfinite(self.change).all()):
            return math.inf
        counts = np.append(np.isfinite(penalty.weights[:, 0]), True)  # what is excluded may go anywhere
        largest = float(np.max(np.abs(penalty.primal(self.seen.z, kappa)), initial=0.0))
        worst = kappa * float(np.max(np.abs(self.change) * np.where(self.moves, 1.0, AT_REST) * counts))
        error = worst / (tol * max(largest, LEAST_SCALE * kappa))
        if error <= 1.0 and not self._highest() <= self.knot.value + rounding(self.knot):
            return math.inf
        return error

    def rescaled(self) -> float:
        """The scale with which the curvature along what has moved would have been right."""
        steps, knot, kappa, primal = self.steps, self.knot, self.problem.kappa, self.system.penalty.primal
        moved = np.append((primal(steps.z[-1], kappa) - primal(knot.z, kappa))[:, 0], steps.alpha[-1] - knot.alpha)
        start = self._slope_of(knot)
        true, modelled = (float(moved @ (start - slope)) for slope in (self.true_slope, self.modelled_slope))
        if not (modelled > 0 and true > 0):
            return self.scale
        return self.scale * round_down(min(max(true / modelled, 1.0 / MAX_RESCALE), MAX_RESCALE))

    @cached_property
    def end(self) -> Knot:
        """The last knot, put right, and what is true there."""
        alpha, z = self.steps.alpha[-1] + self.problem.kappa * self.change[-1:], self.steps.z[-1]
        return self._look(alpha, z + self.change[:-1, None])

    @cached_property
    def part(self) -> Part:
        """All knots after the first, put right."""
        steps, end = self.steps, self.end
        share = ((self.t[1:] - self.knot.t) / self.length)[:, None]
        speed = 2.0 * share / self.length
        on_z, on_alpha = self.change[:-1], self.problem.kappa * self.change[-1:]
        z = steps.z[1:] + (share**2 * on_z)[..., None]
        slope = self.scale * steps.slope[1:] + (speed * on_z)[..., None]
        alpha = steps.alpha[1:] + share**2 * on_alpha
        alpha_slope = self.scale * steps.alpha_slope[1:] + speed * on_alpha
        modelled = self.scale * steps.value[1:] + share[:, 0] ** 2 * (end.value - self.scale * steps.value[-1])
        value = np.clip(modelled, end.value, max(self.knot.value, end.value))  # it falls along a path
        part = Part(self.t[1:], alpha, alpha_slope, z, slope, value)
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
            values = self.values(self.system, alpha, self.system.penalty.primal(z, self.problem.kappa))
            highest = max(highest, float(np.max(values)) - NOISE * abs(self.knot.value))
        return highest
