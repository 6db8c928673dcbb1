"""What kernels take and give: a system to integrate, the knots of its path, and the ways in which steps fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from bregpath._typing import Array, IntArray
from bregpath.penalties import AbstractPenalty
from bregpath.problem import Problem
from bregpath.stores import AbstractBlock

__all__ = [
    "BoundaryError",
    "Knot",
    "Memory",
    "StepError",
    "Steps",
    "System",
    "UnboundedError",
    "UnstableStepError",
    "cubic",
]


class StepError(RuntimeError):
    """No step is accepted, however short."""


class BoundaryError(StepError):
    """They did because the path is about to leave the domain of the loss."""


class UnboundedError(StepError):
    """The optimum to which the path would jump has no finite coefficients."""


class UnstableStepError(ValueError):
    """A fixed step at which the loss rises. Its numbers are inside units; `in_units` restates them."""

    def __init__(self, step: float, kappa: float, t: float, largest: float) -> None:
        self.numbers = step, kappa, t, largest
        super().__init__(
            f"`step`={step:.6g} is unstable with kappa={kappa:g}: at t={t:.4g} the loss rises. The largest stable step "
            f'there is {largest:.4g}; choose a smaller one, or step="adaptive".'
        )

    def in_units(self, unit: float) -> UnstableStepError:
        """The same error with times divided by ``unit``."""
        step, kappa, t, largest = self.numbers
        return UnstableStepError(step / unit, kappa, t / unit, largest / unit)


@dataclass(frozen=True)
class System:
    """What is integrated: the problem restricted to a working set of columns."""

    problem: Problem
    columns: IntArray  # the working columns
    block: AbstractBlock  # the same, ready for products
    penalty: AbstractPenalty  # on the working columns
    step: float | None  # fixed step, or None for adaptive ones
    tol: float
    cache: dict[str, Any] = field(default_factory=dict)  # what kernels made of it, by their names

    @property
    def has_linear_stages(self) -> bool:
        """Whether the loss is linearised inside a step; see the reference."""
        return self.step is None and self.problem.store.has_cheap_curvature


@dataclass(frozen=True)
class Knot:
    """A point of the path: physics only, whichever method steps; ``m`` working columns, ``n`` rows, ``q`` outputs.

    In a regression ``c = q``; in a graph a column is a pair of nodes with ``c = 1``, and the outputs are the nodes.
    """

    t: float
    alpha: Array  # (a,) unpenalised parameters: intercepts
    alpha_slope: Array  # (a,) d alpha / dt
    z: Array  # (m, c) dual variable
    slope: Array  # (m, c) dz / dt
    R: Array  # (n, q) integral of the residual; z = -X'R on penalised columns
    residual: Array  # (n, q) d loss / d eta
    value: float  # loss

    def grow(self, z: Array, slope: Array) -> Knot:
        """The same knot with more working columns."""
        return replace(self, z=np.concatenate([self.z, z]), slope=np.concatenate([self.slope, slope]))


@dataclass(frozen=True)
class Memory:
    """What the stepping method remembers from one step to the next; nobody else looks into it."""

    h: float  # proposed next step
    direction: Array  # (m, c) leading curvature direction, for the power iteration ...
    alpha_direction: Array  # (a,) ... and its part in alpha
    rate: float = 0.0  # largest curvature found there ...
    age: int = 0  # ... and how many steps ago
    gradients: int = 0  # computed so far
    products: int = 0  # with a single column so far
    frozen: Array = field(default_factory=lambda: np.zeros((0, 0)))  # predictor at which the curvature is frozen ...
    frozen_t: float = 0.0  # ... and its time; nothing without linear stages
    watched_t: float = 0.0  # since when the cost of stages is watched ...
    watched_products: int = 0  # ... and what they have cost since then, whichever columns work
    is_stiff: bool = False  # whether quadratic models of the loss take over ...
    quadratic: Any = None  # ... and what is remembered of the last one
    models: int = 0  # made so far

    def grow(self, z: Array) -> Memory:
        """The same for more working columns, with dual variables ``z``."""
        return replace(self, direction=np.concatenate([self.direction, np.zeros_like(z)]))


@dataclass(frozen=True)
class Steps:
    """Consecutive knots as arrays: the fields of `Knot` with a leading axis, and what the method remembers at each.

    ``R`` and ``residual`` may hold the last knot only. A method that sets several knots a step goes on from the last of
    them alone: ``cuts`` are those.
    """

    columns: IntArray  # the working columns
    t: Array
    alpha: Array
    alpha_slope: Array
    z: Array
    slope: Array
    R: Array
    residual: Array
    value: Array
    reach: Array  # longest step that was tried from the knot before
    memory: Callable[[int], Any]  # what the method remembers at a knot
    interrupted: bool = False  # Ctrl-C ended the block: what it had is kept, and whoever records it raises
    cuts: IntArray | None = None  # knots from which the method can go on; None: all

    def __len__(self) -> int:
        """Number of knots after the first: steps, for all that read them."""
        return len(self.t) - 1

    @property
    def n_steps(self) -> int:
        """Number of steps of the method, of which each may have set several knots."""
        return len(self) if self.cuts is None else int(self.cuts.searchsorted(len(self)))

    def cut(self, n: int) -> int:
        """The last knot up to ``n`` from which the method can go on."""
        return n if self.cuts is None else int(self.cuts[np.searchsorted(self.cuts, n, side="right") - 1])

    def first(self, n: int) -> Steps:
        """The first ``n`` steps, up to a knot from which the method can go on."""
        if n == len(self):
            return self
        return replace(self, **{name: getattr(self, name)[: n + 1] for name in (*_KNOT, "reach")})

    def end(self, keeps_room: bool = True) -> tuple[Knot, Any]:
        """The last knot, which holds the room of all of them unless it is copied."""
        fields = vars(self)
        row = {name: fields[name][-1] if keeps_room else fields[name][-1].copy() for name in _ARRAYS}
        return Knot(t=float(self.t[-1]), value=float(self.value[-1]), **row), self.memory(len(self))


_KNOT = tuple(f.name for f in fields(Knot))
_ARRAYS = tuple(name for name in _KNOT if name not in ("t", "value"))


def cubic(ends: Any, slopes: Any, h: Array | float, theta: Array | float) -> Array:
    """Value at fraction ``theta`` of a step of length ``h``, from the values and slopes at its two ends."""
    # In place: temporary arrays of this size cost more than the arithmetic.
    share, rest = theta * theta * (3 - 2 * theta), 1 - theta
    out = (1 - share) * ends[0]
    out += share * ends[1]
    out += h * theta * rest * rest * slopes[0]
    out -= h * theta * theta * rest * slopes[1]
    return out  # type: ignore[no-any-return]
