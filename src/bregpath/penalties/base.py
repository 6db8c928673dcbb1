"""What every penalty promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bregpath._known_to_core import Kernel
from bregpath._typing import Array, BoolArray, IntArray
from bregpath.penalties.wishes import check_factor, check_limit

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["ON_IT", "AbstractPenalty"]

ON_IT = 1e-9  # of a threshold or limit: what is as close is on it, on whichever side rounding puts it


class AbstractPenalty(ABC):
    r"""The mirror map that turns the dual variable ``z`` into sparse coefficients.

    .. math:: \beta = \kappa\, \mathrm{shrink}(z), \qquad
              \mathrm{shrink}(z) = \arg\min_b \; \tfrac12 \lVert b - z \rVert^2 + J(b)

    for a penalty :math:`J` that is a weighted norm, possibly with limits. Arrays have one row a column of
    X and one column an output: ``(p, q)``; `shrink`, `entry` and `primal` also take ``(..., p, q)``.

    Weights: 0 makes a coordinate free (it never was penalised and starts at its unpenalised optimum), ``inf``
    excludes it. Limits satisfy ``lower <= 0 <= upper``; a limit of 0 forbids a sign and acts inside the
    mirror map, any other limit clips its result (inside groups it is part of the minimisation).

    A new penalty is one file with `shrink` and `value`, and `entry` where its threshold is not the weight of a single
    coordinate. What is here holds for penalties that treat every coordinate for itself.
    """

    name: ClassVar[str] = ""
    array_names: ClassVar[tuple[str, ...]] = ("weights", "lower", "upper")  # what it is made of

    def __init__(self, weights: Array, lower: Array, upper: Array) -> None:
        self.weights = weights
        self.lower = lower
        self.upper = upper
        self.has_limits = bool(np.any(np.isfinite(lower)) or np.any(np.isfinite(upper)))

    @classmethod
    def build(
        cls,
        n_columns: int,
        n_outputs: int,
        *,
        groups: Any = None,
        penalty_factor: Any = None,
        lower: Any = None,
        upper: Any = None,
    ) -> Self:
        """The penalty of so many columns from a user's wishes, all checked; see `bregpath.trace_path`."""
        weights, extra = cls._weigh(n_columns, n_outputs, groups, penalty_factor)
        return cls(
            np.repeat(weights[:, None], n_outputs, axis=1),
            check_limit("lower", lower, n_columns, n_outputs),
            check_limit("upper", upper, n_columns, n_outputs),
            **extra,
        )

    @classmethod
    def _weigh(cls, n_columns: int, n_outputs: int, groups: Any, penalty_factor: Any) -> tuple[Array, dict[str, Array]]:
        """Threshold of each column, and other arrays of the penalty by name."""
        if groups is not None:
            raise ValueError(f'`groups` needs penalty="group" or "group-sqrt", found penalty={cls.name!r}.')
        return check_factor(penalty_factor, n_columns, "column"), {}

    def kernel(self) -> Kernel | None:
        """What the compiled core knows this very class as; see `bregpath.losses.AbstractLoss.kernel`."""
        return None

    @abstractmethod
    def shrink(self, z: Array) -> Array:
        """The mirror map, before it is scaled by kappa and clipped."""

    @abstractmethod
    def value(self, beta: Array) -> float:
        """The penalty :math:`J` itself."""

    def entry(self, z: Array) -> Array:
        """Distance of every coordinate to its threshold: positive while it is zero, negative once it is active.

        Free coordinates are at ``-inf``, excluded ones at ``+inf``.
        """
        return self._free_first(self.weights - np.abs(self.allowed(z)))

    def _free_first(self, distance: Array) -> Array:
        """Distances to thresholds, with ``-inf`` at free coordinates."""
        free = self.weights == 0
        return np.where(free, -np.inf, distance) if free.any() else distance

    @property
    def step_share(self) -> float:
        """Share of the usual error that a step may make: less where its estimate does not see every bend."""
        return 1.0

    def active(self, z: Array) -> BoolArray:
        """Columns with a coordinate beyond its threshold: ``(..., p)``."""
        return np.any(self.entry(z) < 0, axis=-1)

    def arrays(self) -> dict[str, Array]:
        """The arrays it is made of, by name: the arguments of its constructor."""
        return {name: getattr(self, name) for name in self.array_names}

    def take(self, columns: IntArray) -> Self:
        """The same penalty on some columns; whole groups only."""
        part = object.__new__(type(self))  # as copy() would, in a third of its time
        vars(part).update(vars(self))
        for name in self.array_names:
            setattr(part, name, getattr(self, name).take(columns, axis=0))
        return part

    @property
    def moves_together(self) -> bool:
        """Whether a column moves only together with others."""
        return False

    def close(self, columns: BoolArray) -> BoolArray:
        """The smallest set of columns that contains ``columns`` and is a union of groups."""
        return columns

    @property
    def variables(self) -> IntArray:
        """The number of the variable that each column belongs to: its own, or that of its group."""
        return np.arange(len(self.weights))

    def slack(self, scan: Any) -> Array:
        """How much the distance of each column can change when ``z = -X'R`` and R moves by one; from a `Scan`."""
        return scan.size

    def hold_at_zero(self, columns: BoolArray) -> None:
        """Keep some columns of otherwise free groups at zero."""
        if columns.any():
            self.lower[columns] = self.upper[columns] = 0.0
            self.has_limits = True

    def primal(self, z: Array, kappa: float) -> Array:
        """Coefficients at the dual variable ``z``."""
        beta = kappa * self.shrink(z)
        return np.clip(beta, self.lower, self.upper) if self.has_limits else beta

    def root(self, z: Array, v: Array) -> Array:
        """A bound of the root of ``d shrink / dz`` at ``z``, times ``v``, of coordinates that move or begin to."""
        return v

    def pace(self, z: Array, slope: Array, kappa: float) -> Array:
        """``slope' d primal / dz slope`` at both ends of some steps (2, r, p, q): (2, r).

        Of the coordinates that are active at both ends: others enter or leave on the way. So do, in whole groups, those
        that meet a limit or leave it.
        """
        stays = np.all(self.entry(z) < np.where(np.isinf(self.weights), 0.0, -ON_IT * self.weights), axis=0)
        if self.has_limits:
            beta = self.primal(z, kappa)
            near = ON_IT * np.abs(beta)
            start, end = (beta <= self.lower + near) | (beta >= self.upper - near)
            stays &= ~np.array([self.close(columns) for columns in np.any(start != end, axis=2)])[..., None]
        # Of each step for itself: what is read of one must not depend on which others are read with it.
        length = np.maximum(np.max(np.abs(slope), axis=(0, 2, 3), initial=0.0), 1e-300)
        move = slope * (1e-6 / length)[:, None, None]
        moved = self.primal(z + move, kappa) - self.primal(z - move, kappa)
        return length / 2e-6 * np.sum(moved * slope * stays, axis=(2, 3))

    def support(self, z: Array) -> BoolArray:
        """Coordinates with a non-zero coefficient at ``z``."""
        return self.primal(z, 1.0) != 0

    @property
    def free(self) -> BoolArray:
        """Columns that are never penalised."""
        return (self.weights == 0).all(axis=1)

    def free_among(self, columns: IntArray) -> BoolArray:
        """Which of some columns are never penalised."""
        return (self.weights[columns] == 0).all(axis=1)

    def allowed(self, z: Array) -> Array:
        """``z`` with forbidden signs set to zero."""
        if not self.has_limits:
            return z
        z = np.where(self.lower == 0, np.maximum(z, 0), z)
        return np.where(self.upper == 0, np.minimum(z, 0), z)
