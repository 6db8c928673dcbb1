"""Dense arrays, in either order, float32 or float64."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bregpath._known_to_core import Kernel, only_for_its_class
from bregpath._typing import Array, IntArray
from bregpath.stores.base import AbstractBlock, AbstractStore, Scan, one_by_one, scan_columns, side_by_side
from bregpath.stores.row_reader import RowReader

__all__ = ["DenseBlock", "DenseStore"]

# A few columns at a time: they stay in the cache while they are scanned, and a float32 X is never copied whole ...
CHUNK_BYTES = 2**20
MIN_COLUMNS = 8  # ... but so many that an X in C order is read by whole lines of the cache
ROW_BYTES = 16 * 2**20  # of a run of rows


class DenseStore(AbstractStore):
    """A dense matrix, used where it lies: no copy of ``X`` is made.

    Examples
    --------
    >>> import numpy as np
    >>> store = DenseStore(np.arange(6.0).reshape(3, 2))
    >>> store.fetch(np.array([1])).matvec(np.ones((1, 1))).ravel()
    array([1., 3., 5.])
    """

    least_screened = (1e5, 7.5e5)

    def __init__(self, X: Array) -> None:
        self.X = X
        self.shape = X.shape  # type: ignore[assignment]

    def scan(self, w: Array) -> Scan:
        return Scan.join([scan_columns(block, w) for _, block in self.column_runs()])

    def products(self, vectors: Array, columns: IntArray | None = None) -> Array:
        rows = side_by_side(vectors)
        if columns is None and self.X.dtype == np.float64:
            return one_by_one(_transposed_product(self.X, rows), len(vectors))
        out = np.empty((self.shape[1] if columns is None else len(columns), rows.shape[1]))
        for part, block in self.column_runs(columns):
            out[part] = block.T @ rows
        return one_by_one(out, len(vectors))

    def fetch(self, columns: IntArray) -> DenseBlock:
        # Columns are taken as rows of the transpose: whole runs of memory where X is in Fortran order.
        if self.X.dtype == np.float64:
            return DenseBlock(np.ascontiguousarray(self.X.T[columns]).T, is_own=True)
        out = np.empty((len(columns), self.shape[0]))
        for part, block in self.column_runs(columns):
            out[part] = block.T
        return DenseBlock(out.T, is_own=True)

    @property
    def nbytes(self) -> float:
        return float(self.X.nbytes)

    def filled(self, rows: IntArray) -> IntArray:
        return np.count_nonzero(self.X[rows], axis=1)

    def rows(self, index: IntArray) -> DenseStore:
        return DenseStore(np.take(self.X.T, index, axis=1).T)  # by columns, as products want it

    def predict(self, beta: Array, columns: IntArray, rows: IntArray) -> Array:
        return self.part(columns, rows).matvec(beta)

    def reader(self, rows: IntArray) -> RowReader:
        return RowReader(self.part, rows)

    def part(self, columns: IntArray, rows: IntArray) -> DenseBlock:
        """Some rows of some columns."""
        if not self.X.flags.f_contiguous:
            return DenseBlock(self.X.T[np.ix_(columns, rows)].T, is_own=True)
        # Whole columns are copied faster than some of their numbers, and these are then near each other.
        some = np.empty((len(columns), len(rows)))
        for part, block in self.column_runs(columns):
            block.T.take(rows, axis=1, out=some[part], mode="clip")
        return DenseBlock(some.T, is_own=True)

    def row_blocks(self) -> Iterator[tuple[slice, Array]]:
        n, p = self.shape
        step = max(1, ROW_BYTES // (8 * max(1, p)))
        for start in range(0, n, step):
            part = slice(start, min(start + step, n))
            yield part, self.X[part].astype(np.float64, copy=False)

    @only_for_its_class
    def kernel(self) -> Kernel | None:
        can_be_read = self.X.dtype == np.float64 and self.X.flags.f_contiguous and self.X.flags.aligned
        return Kernel("dense", {"dense": self.X}) if can_be_read else None

    def column_runs(self, columns: IntArray | None = None) -> Iterator[tuple[slice, Array]]:
        """Runs of columns as float64 arrays."""
        size = self.shape[1] if columns is None else len(columns)
        step = max(MIN_COLUMNS, CHUNK_BYTES // (8 * max(1, self.shape[0])))
        for start in range(0, size, step):
            part = slice(start, min(start + step, size))
            block = self.X[:, part] if columns is None else self.X.T[columns[part]].T
            yield part, block.astype(np.float64, copy=False)


class DenseBlock(AbstractBlock):
    """Dense columns in float64, one after the other.

    Parameters
    ----------
    X : array of shape (n, k)
        Copied only where it is not in Fortran order.
    is_own : bool
        Whether nobody else holds the array, so that the block may change it.

    Examples
    --------
    >>> import numpy as np
    >>> DenseBlock(np.eye(2)).append(DenseBlock(np.ones((2, 1)))).X
    array([[1., 0., 1.],
           [0., 1., 1.]])
    """

    def __init__(self, X: Array, is_own: bool = False) -> None:
        self.X = np.asfortranarray(X, dtype=np.float64)
        self.shape = X.shape  # type: ignore[assignment]
        self._is_own = is_own
        self._room: Array | None = None
        self._room_used = [0]

    def matvec(self, beta: Array) -> Array:
        return (beta.T @ self.X.T).T  # BLAS is faster where the columns of a product lie as those of X do

    def rmatvec(self, residual: Array) -> Array:
        return _transposed_product(self.X, residual)

    def rmatvec_many(self, residuals: Array) -> Array:
        return one_by_one(_transposed_product(self.X, side_by_side(residuals)), len(residuals))

    def columns(self, index: IntArray) -> DenseBlock:
        return DenseBlock(self.X.T[index].T, is_own=True)

    def append(self, more: AbstractBlock) -> DenseBlock:
        assert isinstance(more, DenseBlock)
        n, old = self.shape
        new = old + more.shape[1]
        # Blocks that share the room share the count of its used columns: only the longest may write behind its end.
        room, used = self._room, self._room_used
        if room is None or room.shape[1] < new or used[0] != old:
            # More room than is needed: a working set that grows column by column is copied a few times only.
            room = np.empty((n, new + new // 2 + 8), order="F")
            room[:, :old] = self.X
            used = [old]
        room[:, old:new] = more.X
        used[0] = new
        grown = DenseBlock(room[:, :new])
        grown._room, grown._room_used = room, used
        return grown

    def standardized(self, center: Array, scale: Array) -> DenseBlock:
        X = np.subtract(self.X, center, out=self.X if self._is_own else None)
        X /= scale
        return DenseBlock(X, is_own=True)

    @only_for_its_class
    def kernel(self) -> Kernel:
        return Kernel("dense", {"dense": self.X})


def _transposed_product(X: Array, rows: Array) -> Array:
    if rows.shape[1] > 3:
        return X.T @ rows
    # BLAS repacks all of X for a product with few vectors; one after the other they are faster.
    out = np.empty((X.shape[1], rows.shape[1]))
    for k, row in enumerate(rows.T):
        out[:, k] = X.T @ row
    return out
