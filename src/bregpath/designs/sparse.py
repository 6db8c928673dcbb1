"""Sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from bregpath._typing import Array, IntArray
from bregpath._validation import canonical_csc
from bregpath.designs.base import AbstractColumns, AbstractDesign, beyond_squares

__all__ = ["SparseDesign"]


class SparseDesign(AbstractColumns):
    """A scipy.sparse matrix, kept by columns (CSC) without duplicates; other formats are converted once.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> SparseDesign(sp.csr_array(np.eye(2))).rmatvec(np.array([[3.0], [4.0]])).ravel()
    array([3., 4.])
    """

    def __init__(self, X: Any) -> None:
        self.X = canonical_csc(X)
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
        return _moments(self.X, w)

    def column_norms(self) -> Array:
        squares = np.concatenate([[0.0], np.cumsum(self.X.data.astype(float) ** 2)])
        return np.sqrt(np.maximum(np.diff(squares[self.X.indptr]), 0.0))


def _moments(X: Any, w: Array) -> tuple[Array, Array]:
    mean = np.asarray(X.T @ w, dtype=float)
    owner = np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))
    weights = w[X.indices]

    def sums(values: Array) -> Array:
        return np.bincount(owner, weights=values, minlength=X.shape[1])

    # A column without zeros has none by rounding either, else a constant would seem to vary.
    has_zeros = sums(weights > 0) < np.count_nonzero(w)
    zeros = np.where(has_zeros, np.maximum(w.sum() - sums(weights), 0.0), 0.0)
    # Deviations of the stored values, plus the deviation of all the zeros: no cancellation, no dense array.
    with np.errstate(over="ignore"):
        variance = sums(weights * (X.data - mean[owner]) ** 2) + zeros * mean * mean
    deviation = np.sqrt(variance)
    extreme = beyond_squares(mean, variance)
    size = np.ravel(abs(X[w > 0][:, extreme]).max(axis=0).toarray()).astype(float)  # rows of weight 0 have no say
    extreme, size = extreme[size > 0], size[size > 0]
    if len(extreme):
        part = X[:, extreme].astype(np.float64)
        part.data /= np.repeat(size, np.diff(part.indptr))
        mean[extreme], deviation[extreme] = size * _moments(part, w)
    return mean, deviation
