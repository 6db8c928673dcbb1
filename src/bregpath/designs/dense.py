"""Dense arrays, in either order, float32 or float64."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bregpath._typing import Array, IntArray
from bregpath.designs.base import AbstractColumns, AbstractDesign, beyond_squares

__all__ = ["DenseDesign"]

# Columns are converted to float64 a few at a time, so that a float32 X is never copied whole.
CHUNK_BYTES = 16 * 2**20


class DenseDesign(AbstractColumns):
    """A dense matrix, used where it lies: no copy of ``X`` is made.

    Examples
    --------
    >>> import numpy as np
    >>> design = DenseDesign(np.arange(6.0).reshape(3, 2))
    >>> design.matvec(np.ones((2, 1))).ravel()
    array([1., 5., 9.])
    """

    def __init__(self, X: Array) -> None:
        self.X = X
        self.shape = X.shape  # type: ignore[assignment]
        by_columns = X.flags.f_contiguous and X.dtype == np.float64
        self.layout = "dense" if by_columns else "other"
        self._room: Array | None = None
        self._room_used = [0]

    def arrays(self) -> dict[str, Array]:
        return {"dense": self.X}

    def matvec(self, beta: Array, columns: IntArray | None = None) -> Array:
        if columns is None and self.X.dtype == np.float64:
            return self.X @ beta
        out = np.zeros((self.shape[0], beta.shape[1]))
        for part, block in self._blocks(columns):
            out += block @ beta[part]
        return out

    def rmatvec(self, residual: Array, columns: IntArray | None = None) -> Array:
        if columns is None and self.X.dtype == np.float64:
            if residual.shape[1] > 3:
                return self.X.T @ residual
            # BLAS repacks all of X for a product with few vectors; one after the other they are faster.
            return np.stack([self.X.T @ column for column in residual.T], axis=1)
        size = self.shape[1] if columns is None else len(columns)
        out = np.empty((size, residual.shape[1]))
        for part, block in self._blocks(columns):
            out[part] = block.T @ residual
        return out

    def columns(self, columns: IntArray) -> DenseDesign:
        return DenseDesign(np.ascontiguousarray(self.X.T[columns], dtype=np.float64).T)

    def append(self, more: AbstractDesign) -> DenseDesign:
        assert isinstance(more, DenseDesign)
        n, old = self.shape
        new = old + more.shape[1]
        # Designs that share the room share the count of its used columns: only the longest may write behind its end.
        room, used = self._room, self._room_used
        if room is None or room.shape[1] < new or used[0] != old:
            # More room than is needed: a working set that grows column by column is copied a few times only.
            room = np.empty((n, new + new // 2 + 8), order="F")
            room[:, :old] = self.X
            used = [old]
        room[:, old:new] = more.X
        used[0] = new
        grown = DenseDesign(room[:, :new])
        grown._room, grown._room_used = room, used
        return grown

    def moments(self, w: Array) -> tuple[Array, Array]:
        mean, deviation = np.empty(self.shape[1]), np.empty(self.shape[1])
        for part, block in self._blocks(None):
            mean[part], deviation[part] = _moments(block, w)
        return mean, deviation

    def column_norms(self) -> Array:
        out = np.empty(self.shape[1])
        for part, block in self._blocks(None):
            out[part] = np.linalg.norm(block, axis=0)
        return out

    def row_blocks(self) -> Iterator[tuple[slice, Array]]:
        n, p = self.shape
        step = max(1, CHUNK_BYTES // (8 * max(1, p)))
        for start in range(0, n, step):
            part = slice(start, min(start + step, n))
            yield part, self.X[part].astype(np.float64, copy=False)

    def _blocks(self, columns: IntArray | None) -> Iterator[tuple[slice, Array]]:
        """Runs of columns as float64 arrays."""
        size = self.shape[1] if columns is None else len(columns)
        step = max(1, CHUNK_BYTES // (8 * max(1, self.shape[0])))
        for start in range(0, size, step):
            part = slice(start, min(start + step, size))
            # Columns are taken as rows of the transpose: whole runs of memory where X is in Fortran order.
            block = self.X[:, part] if columns is None else self.X.T[columns[part]].T
            yield part, block.astype(np.float64, copy=False)


def _moments(block: Array, w: Array) -> tuple[Array, Array]:
    mean = w @ block
    with np.errstate(over="ignore"):
        variance = w @ (block - mean) ** 2
    deviation = np.sqrt(variance)
    extreme = beyond_squares(mean, variance)
    size = np.max(np.abs(block[np.ix_(w > 0, extreme)]), axis=0, initial=0.0)  # rows of weight 0 have no say
    extreme, size = extreme[size > 0], size[size > 0]
    if len(extreme):
        mean[extreme], deviation[extreme] = size * _moments(block[:, extreme] / size, w)
    return mean, deviation
