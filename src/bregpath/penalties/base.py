"""What every penalty promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from bregpath._typing import Array, BoolArray, IntArray

__all__ = ["AbstractPenalty"]


class AbstractPenalty(ABC):
    r"""The mirror map that turns the dual variable ``z`` into sparse coefficients.

    .. math:: \beta = \kappa\, \mathrm{shrink}(z), \qquad
              \mathrm{shrink}(z) = \arg\min_b \; \tfrac12 \lVert b - z \rVert^2 + J(b)

    for a penalty :math:`J` that is a weighted norm, possibly with limits. Arrays have one row a column of the
    design and one column an output: ``(p, q)``; `shrink`, `entry` and `primal` also take ``(..., p, q)``.

    Weights: 0 makes a coordinate free (it never was penalised and starts at its unpenalised optimum), ``inf``
    excludes it. Limits satisfy ``lower <= 0 <= upper``; a limit of 0 forbids a sign and acts inside the
    mirror map, any other limit clips its result (inside groups it is part of the minimisation).
    """

    def __init__(self, weights: Array, lower: Array, upper: Array) -> None:
        self.weights = weights
        self.lower = lower
        self.upper = upper
        self.has_limits = bool(np.any(np.isfinite(lower)) or np.any(np.isfinite(upper)))

    @abstractmethod
    def shrink(self, z: Array) -> Array:
        """The mirror map, before it is scaled by kappa and clipped."""

    @abstractmethod
    def entry(self, z: Array) -> Array:
        """Distance of every coordinate to its threshold: positive while it is zero, negative once it is active.

        Free coordinates are at ``-inf``, excluded ones at ``+inf``.
        """

    @abstractmethod
    def value(self, beta: Array) -> float:
        """The penalty :math:`J` itself."""

    @abstractmethod
    def take(self, columns: IntArray) -> AbstractPenalty:
        """The same penalty on some columns of the design; whole groups only."""

    @abstractmethod
    def close(self, columns: BoolArray) -> BoolArray:
        """The smallest set of columns that contains ``columns`` and is a union of groups."""

    def slack(self, design: Any) -> Array:
        """How much the distance of each column of a design can change when ``z = -X'R`` and R moves by one."""
        return design.column_norms()

    def hold_at_zero(self, columns: BoolArray) -> None:
        """Keep some columns of otherwise free groups at zero."""
        if columns.any():
            self.lower[columns] = self.upper[columns] = 0.0
            self.has_limits = True

    def primal(self, z: Array, kappa: float) -> Array:
        """Coefficients at the dual variable ``z``."""
        beta = kappa * self.shrink(z)
        return np.clip(beta, self.lower, self.upper) if self.has_limits else beta

    def support(self, z: Array) -> BoolArray:
        """Coordinates with a non-zero coefficient at ``z``."""
        return self.primal(z, 1.0) != 0

    @property
    def free(self) -> BoolArray:
        """Columns of the design that are never penalised."""
        return np.all(self.weights == 0, axis=1)

    def allowed(self, z: Array) -> Array:
        """``z`` with forbidden signs set to zero."""
        if not self.has_limits:
            return z
        z = np.where(self.lower == 0, np.maximum(z, 0), z)
        return np.where(self.upper == 0, np.minimum(z, 0), z)
