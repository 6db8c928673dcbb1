"""Rows that are read again and again, as those that a fold holds out are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bregpath._typing import Array, IntArray
from bregpath.stores.base import AbstractBlock

__all__ = ["RowReader"]

MOST_BYTES = 2**23  # that are kept, as dense numbers: each fold of each kappa may have as many


class RowReader:
    """Some rows of a store, whose columns are gathered once: a path has those that it had, and then new ones.

    Parameters
    ----------
    part : callable
        Some columns of some rows, as a block.
    rows : ndarray
    """

    def __init__(self, part: Callable[[IntArray, IntArray], AbstractBlock], rows: IntArray) -> None:
        self._part, self._rows = part, rows
        self._columns: IntArray = np.zeros(0, dtype=int)
        self._block: AbstractBlock | None = None

    def __call__(self, beta: Array, columns: IntArray) -> Array:
        """`AbstractStore.predict`."""
        known = len(self._columns)
        can_keep = known <= len(columns) and 8 * len(columns) * len(self._rows) <= MOST_BYTES
        if not (can_keep and (columns[:known] == self._columns).all()):
            return self._part(columns, self._rows).matvec(beta)
        if self._block is None or len(columns) > known:
            more = self._part(columns[known:], self._rows)
            self._block, self._columns = more if self._block is None else self._block.append(more), columns
        return self._block.matvec(beta)
