"""Centring and scaling without touching the data."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bregpath._known_to_core import Kernel, only_for_its_class
from bregpath._typing import Array, IntArray
from bregpath.stores.base import AbstractBlock, AbstractStore, Scan

__all__ = ["StandardizedStore"]


class StandardizedStore(AbstractStore):
    """``(X - center) / scale`` of another store, whose blocks are standardised as they are fetched.

    What the other store says of itself holds for this one: whether it is small, and what its parameters ``alpha`` are.

    Examples
    --------
    >>> import numpy as np
    >>> from bregpath.stores import DenseStore
    >>> base = DenseStore(np.array([[1.0, 0.0], [3.0, 4.0]]))
    >>> store = StandardizedStore(base, np.array([2.0, 2.0]), np.array([1.0, 2.0]))
    >>> store.fetch(np.array([0, 1])).matvec(np.eye(2))
    array([[-1., -1.],
           [ 1.,  1.]])
    """

    def __init__(self, base: AbstractStore, center: Array, scale: Array) -> None:
        self.base = base
        self.center = center
        self.scale = scale
        self.shape = base.shape
        self.has_intercepts = base.has_intercepts
        self.least_screened = base.least_screened
        self.has_cheap_columns = base.has_cheap_columns
        self.has_cheap_curvature = base.has_cheap_curvature

    @property
    def is_small(self) -> bool:
        return self.base.is_small

    def filled(self, rows: IntArray) -> IntArray | None:
        return self.base.filled(rows)

    def n_alpha(self, n_outputs: int) -> int:
        return self.base.n_alpha(n_outputs)

    def spread(self, alpha: Array, eta: Array) -> Array:
        return self.base.spread(alpha, eta)

    def collect(self, residual: Array) -> Array:
        return self.base.collect(residual)

    def scan(self, w: Array) -> Scan:
        return self.base.scan(w).standardized(self.center, self.scale)

    def products(self, vectors: Array, columns: IntArray | None = None) -> Array:
        center, scale = self._of(columns)
        products = self.base.products(vectors, columns) - np.sum(vectors, axis=1)[:, None] * center[:, None]
        products /= scale[:, None]
        return products

    def fetch(self, columns: IntArray) -> AbstractBlock:
        return self.base.fetch(columns).standardized(*self._of(columns))

    def row_blocks(self) -> Iterator[tuple[slice, Array]] | None:
        blocks = self.base.row_blocks()
        return None if blocks is None else ((part, self._standardized(rows)) for part, rows in blocks)

    @only_for_its_class
    def kernel(self) -> Kernel | None:
        base = self.base.kernel()
        if base is None or "scale" in base.numbers:
            return None
        return Kernel(base.name, {**base.numbers, "center": self.center, "scale": self.scale})

    @property
    def nbytes(self) -> float:
        return self.base.nbytes

    def rows(self, index: IntArray) -> StandardizedStore:
        return StandardizedStore(self.base.rows(index), self.center, self.scale)

    def _standardized(self, rows: Array) -> Array:
        rows = rows - self.center
        rows /= self.scale  # in place: another array of this size costs more than the arithmetic
        return rows

    def _of(self, columns: IntArray | None) -> tuple[Array, Array]:
        return (self.center, self.scale) if columns is None else (self.center[columns], self.scale[columns])
