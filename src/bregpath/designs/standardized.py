"""Centring and scaling without touching the data."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bregpath._typing import Array, IntArray
from bregpath.designs.base import AbstractColumns, AbstractDesign
from bregpath.designs.dense import DenseDesign

__all__ = ["StandardizedDesign"]


class StandardizedDesign(AbstractColumns):
    """``(X - center) / scale``, computed on the fly: a sparse X stays sparse, a dense X is not copied.

    Examples
    --------
    >>> import numpy as np
    >>> base = DenseDesign(np.array([[1.0, 0.0], [3.0, 4.0]]))
    >>> StandardizedDesign(base, np.array([2.0, 2.0]), np.array([1.0, 2.0])).matvec(np.eye(2))
    array([[-1., -1.],
           [ 1.,  1.]])
    """

    def __init__(self, base: AbstractColumns, center: Array, scale: Array) -> None:
        self.base = base
        self.center = center
        self.scale = scale
        self.shape = base.shape
        # Dense columns are standardised when they are gathered; sparse ones stay as they are.
        self.layout = "csc" if base.layout == "csc" else "other"

    def arrays(self) -> dict[str, Array]:
        return {**self.base.arrays(), "center": self.center, "scale": self.scale}

    def matvec(self, beta: Array, columns: IntArray | None = None) -> Array:
        center, scale = self._of(columns)
        scaled = beta / scale[:, None]
        return self.base.matvec(scaled, columns) - center @ scaled

    def rmatvec(self, residual: Array, columns: IntArray | None = None) -> Array:
        center, scale = self._of(columns)
        product = self.base.rmatvec(residual, columns) - np.outer(center, residual.sum(axis=0))
        return product / scale[:, None]

    def columns(self, columns: IntArray) -> AbstractColumns:
        base = self.base.columns(columns)
        center, scale = self._of(columns)
        if isinstance(base, DenseDesign):  # a fresh copy of few columns: standardise it in place
            base.X -= center
            base.X /= scale
            return base
        return StandardizedDesign(base, center, scale)

    def append(self, more: AbstractDesign) -> StandardizedDesign:
        assert isinstance(more, StandardizedDesign)
        return StandardizedDesign(
            self.base.append(more.base),
            np.concatenate([self.center, more.center]),
            np.concatenate([self.scale, more.scale]),
        )

    def row_blocks(self) -> Iterator[tuple[slice, Array]] | None:
        blocks = self.base.row_blocks()
        return None if blocks is None else ((part, (rows - self.center) / self.scale) for part, rows in blocks)

    def moments(self, w: Array) -> tuple[Array, Array]:
        mean, deviation = self.base.moments(w)
        return (mean - self.center) / self.scale, deviation / self.scale

    def column_norms(self) -> Array:
        n = self.shape[0]
        return np.sqrt(n) * np.hypot(*self.moments(np.full(n, 1.0 / n)))

    def _of(self, columns: IntArray | None) -> tuple[Array, Array]:
        return (self.center, self.scale) if columns is None else (self.center[columns], self.scale[columns])
