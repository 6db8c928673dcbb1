"""Sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from bregpath._typing import Array, IntArray
from bregpath.designs.base import AbstractColumns, AbstractDesign

__all__ = ["SparseDesign"]


class SparseDesign(AbstractColumns):
    """A scipy.sparse matrix, kept by columns (CSC); other formats are converted once.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> SparseDesign(sp.csr_array(np.eye(2))).rmatvec(np.array([[3.0], [4.0]])).ravel()
    array([3., 4.])
    """

    def __init__(self, X: Any) -> None:
        self.X = X.tocsc()
        self.shape = X.shape
        self.layout = "csc" if self.X.dtype == np.float64 else "other"

    def arrays(self) -> dict[str, Array]:
        p = self.shape[1]
        return {
            "values": self.X.data,
            "indices": np.ascontiguousarray(self.X.indices, dtype=np.int32),
            "indptr": self.X.indptr.astype(np.int64),
            "center": np.zeros(p),
            "scale": np.ones(p),
        }

    def matvec(self, beta: Array, columns: IntArray | None = None) -> Array:
        X = self.X if columns is None else self.X[:, columns]
        return np.asarray(X @ beta, dtype=float)

    def rmatvec(self, residual: Array, columns: IntArray | None = None) -> Array:
        X = self.X if columns is None else self.X[:, columns]
        return np.asarray(X.T @ residual, dtype=float)

    def columns(self, columns: IntArray) -> SparseDesign:
        return SparseDesign(self.X[:, columns].astype(np.float64))

    def append(self, more: AbstractDesign) -> SparseDesign:
        from scipy.sparse import hstack

        assert isinstance(more, SparseDesign)
        return SparseDesign(hstack([self.X, more.X], format="csc"))

    def moments(self, w: Array) -> tuple[Array, Array]:
        mean = np.asarray(self.X.T @ w, dtype=float)
        squares = self.X.copy()
        # Deviations of the stored values, plus the deviation of all the zeros: no cancellation, no dense array.
        squares.data = (self.X.data.astype(float) - np.repeat(mean, np.diff(self.X.indptr))) ** 2
        stored = self.X.copy()
        stored.data = np.ones(len(self.X.data))
        zero_weight = np.maximum(w.sum() - stored.T @ w, 0.0)
        return mean, np.sqrt(np.asarray(squares.T @ w, dtype=float) + zero_weight * mean**2)

    def column_norms(self) -> Array:
        squares = np.concatenate([[0.0], np.cumsum(self.X.data.astype(float) ** 2)])
        return np.sqrt(np.maximum(np.diff(squares[self.X.indptr]), 0.0))
