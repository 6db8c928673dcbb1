"""The scale on which a path is traced inside, and the way back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bregpath._typing import Array

__all__ = ["Units"]


@dataclass(frozen=True, eq=False)
class Units:
    """How the path was scaled inside.

    ``X_inside = (X - center) / scale``, ``y_inside = y / y_unit`` and ``t_inside = t * y_unit``. Constants that the
    intercept absorbs, of y and of the offset, are left out inside: ``shift`` is their sum, one an output.
    """

    center: Array
    scale: Array
    y_unit: float
    shift: Array | float = 0.0

    @classmethod
    def none(cls, p: int) -> Units:
        """Of p columns that are traced as they are."""
        return cls(np.broadcast_to(0.0, p), np.broadcast_to(1.0, p), 1.0)  # which take no room

    def inside(self, intercept: Array, columns: Array, coef: Array) -> tuple[Array, Array]:
        """What `restore` makes these of."""
        beta = coef * (self.scale.take(columns) / self.y_unit)[:, None]
        return (intercept - self.shift + coef.T @ self.center.take(columns)) / self.y_unit, beta

    def restore(self, alpha: Array, columns: Array, beta: Array) -> tuple[Array, Array]:
        """Intercepts and coefficients of some columns, brought to the original scale."""
        coef, center = beta * (self.y_unit / self.scale.take(columns))[:, None], self.center.take(columns)
        intercept = alpha * self.y_unit + self.shift
        return (intercept - coef.swapaxes(-1, -2) @ center if center.any() else intercept), coef
