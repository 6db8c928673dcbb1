"""Sparse matrices."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from bregpath._known_to_core import Kernel, only_for_its_class
from bregpath._typing import Array, IntArray
from bregpath._validation import canonical_csc
from bregpath.stores import base
from bregpath.stores.base import AbstractBlock, AbstractStore, Scan, beyond_squares, one_by_one, side_by_side
from bregpath.stores.dense import ROW_BYTES, DenseStore
from bregpath.stores.row_reader import RowReader

__all__ = ["SparseBlock", "SparseStore"]

# Of a dense X: where more of its entries differ from zero, or its rows are fewer, passes over all of them are as fast.
MAX_STORED = 0.2
MIN_ROWS = 500
SAMPLE = 1000  # entries that are looked at first
MAX_DENSE = 20_000  # columns over the share of entries that are stored, up to which dense rows are cheap to sum up


class SparseStore(AbstractStore):
    """A scipy.sparse matrix, kept by columns (CSC) without duplicates; others are converted, unless ``is_canonical``.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> SparseStore(sp.csr_array(np.eye(2))).products(np.array([[[3.0], [4.0]]])).ravel()
    array([3., 4.])
    """

    least_screened = (1e6, np.inf)

    def __init__(self, X: Any, is_canonical: bool = False) -> None:
        self.X = X if is_canonical else canonical_csc(X)
        self.shape = X.shape

    @classmethod
    def of_dense(cls, X: Array) -> SparseStore | None:
        """A dense ``X`` without its zeros; None where these are too few for that to pay, or what is left is large."""
        (n, p), entry = X.shape, np.arange(SAMPLE)
        if n < MIN_ROWS:
            return None
        sample = X[entry * n // SAMPLE, entry * 7919 % p]
        if np.count_nonzero(sample) > 1.5 * MAX_STORED * SAMPLE:
            return None
        stored = np.count_nonzero(X)
        if stored > MAX_STORED * X.size or 12 * stored > max(base.WHOLE_BYTES, X.nbytes / 5):
            return None
        return cls(_without_zeros(X), is_canonical=True)

    @property
    def is_small(self) -> bool:
        if super().is_small:
            return True
        # Most of few one-hot columns come to move, and rows that they do not tell apart are one to the core.
        return 8 * self.shape[1] <= self.shape[0] and self.nbytes <= base.WHOLE_BYTES and self._is_one_hot

    @cached_property
    def _is_one_hot(self) -> bool:
        return base.is_one_hot(self.filled(np.arange(self.shape[0])))

    def filled(self, rows: IntArray) -> IntArray:
        return np.bincount(self.X.indices[self.X.data != 0], minlength=self.shape[0])[rows]

    def scan(self, w: Array) -> Scan:
        return _scan(self.X, w)

    def products(self, vectors: Array, columns: IntArray | None = None) -> Array:
        X = self.X if columns is None else self.X[:, columns]
        return one_by_one(np.asarray(X.T @ side_by_side(vectors), dtype=float), len(vectors))

    def fetch(self, columns: IntArray) -> SparseBlock:
        X, k = self.X[:, columns], len(columns)
        return SparseBlock(X.astype(np.float64, copy=False), np.zeros(k), np.ones(k))

    def row_blocks(self) -> Iterator[tuple[slice, Array]] | None:
        cells = max(self.shape[0] * self.shape[1], 1)
        return self._dense_runs() if self.shape[1] <= MAX_DENSE * self.X.nnz / cells else None

    def _dense_runs(self) -> Iterator[tuple[slice, Array]]:
        by_rows, (n, p) = self.X.tocsr(), self.shape
        step = max(1, ROW_BYTES // (8 * max(1, p)))
        for start in range(0, n, step):
            part = slice(start, min(start + step, n))
            yield part, by_rows[part].toarray().astype(np.float64, copy=False)

    @only_for_its_class
    def kernel(self) -> Kernel | None:
        return Kernel("csc", _arrays(self.X)) if self.X.dtype == np.float64 else None

    @property
    def nbytes(self) -> float:
        return float(self.X.data.nbytes + self.X.indices.nbytes)

    def rows(self, index: IntArray) -> SparseStore:
        return SparseStore(self.X[index])

    def predict(self, beta: Array, columns: IntArray, rows: IntArray) -> Array:
        return self.part(columns, rows).matvec(beta)

    def reader(self, rows: IntArray) -> RowReader:
        return RowReader(self.part, rows)

    def part(self, columns: IntArray, rows: IntArray) -> SparseBlock:
        """Some rows of some columns."""
        return SparseBlock(self.X[:, columns][rows], np.zeros(len(columns)), np.ones(len(columns)))


class SparseBlock(AbstractBlock):
    """``(X - center) / scale`` of canonical CSC columns in float64, computed on the fly: X stays sparse.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> block = SparseBlock(sp.csc_array(np.eye(2)), center=np.array([0.5, 0.0]), scale=np.array([0.5, 1.0]))
    >>> block.matvec(np.eye(2))
    array([[ 1.,  0.],
           [-1.,  1.]])
    """

    def __init__(self, X: Any, center: Array, scale: Array) -> None:
        self.X = X
        self.shape = X.shape
        self.center = center
        self.scale = scale

    def matvec(self, beta: Array) -> Array:
        scaled = beta / self.scale[:, None]
        return np.asarray(self.X @ scaled) - self.center @ scaled

    def rmatvec(self, residual: Array) -> Array:
        product = np.asarray(self.X.T @ residual) - np.outer(self.center, residual.sum(axis=0))
        return product / self.scale[:, None]

    def rmatvec_many(self, residuals: Array) -> Array:
        return one_by_one(self.rmatvec(side_by_side(residuals)), len(residuals))

    def columns(self, index: IntArray) -> SparseBlock:
        return SparseBlock(self.X[:, index], self.center[index], self.scale[index])

    def append(self, more: AbstractBlock) -> SparseBlock:
        from scipy.sparse import hstack

        assert isinstance(more, SparseBlock)
        return SparseBlock(
            hstack([self.X, more.X], format="csc"),
            np.concatenate([self.center, more.center]),
            np.concatenate([self.scale, more.scale]),
        )

    def standardized(self, center: Array, scale: Array) -> SparseBlock:
        return SparseBlock(self.X, self.center + self.scale * center, self.scale * scale)

    @only_for_its_class
    def kernel(self) -> Kernel:
        return Kernel("csc", {**_arrays(self.X), "center": self.center, "scale": self.scale})


def _without_zeros(X: Array) -> Any:
    from scipy.sparse import csc_array

    rows, values = [], []
    for _, run in DenseStore(X).column_runs():
        for column in run.T:
            rows.append(np.flatnonzero(column != 0).astype(np.int32))
            values.append(column[rows[-1]])
    ends = np.cumsum([0, *map(len, rows)])
    return csc_array((np.concatenate(values), np.concatenate(rows), ends), shape=X.shape)


def _arrays(X: Any) -> dict[str, Array]:
    """What is stored of a matrix, as the compiled core takes it."""
    rows = np.ascontiguousarray(X.indices, dtype=np.int32)
    return {"values": X.data, "indices": rows, "indptr": X.indptr.astype(np.int64)}


def _scan(X: Any, w: Array) -> Scan:
    """See `bregpath.stores.base.scan_columns`."""
    with np.errstate(over="ignore", invalid="ignore"):
        def sums(values: Array, weights: Array) -> Array:
            """Of all that is stored of each column."""
            return np.asarray(type(X)((values, X.indices, X.indptr), shape=X.shape).T @ weights, dtype=float)

        counts, ones = np.diff(X.indptr), np.ones(len(X.data))
        mean = sums(X.data, w)
        # A column without zeros has none by rounding either, else a constant would seem to vary.
        has_zeros = (counts if w.all() else sums(ones, 1.0 * (w > 0))) < np.count_nonzero(w)
        zeros = np.where(has_zeros, np.maximum(w.sum() - sums(ones, w), 0.0), 0.0)
        # Deviations of the stored values, plus the deviation of all the zeros: no cancellation, no dense array.
        deviations = X.data - np.repeat(mean, counts)
        variance = sums(np.square(deviations, out=deviations), w) + zeros * mean * mean
        deviation = np.sqrt(variance)
        extreme = beyond_squares(mean, variance)
        # Rows of weight 0 have no say.
        size = np.ravel(abs(X[:, extreme][w > 0]).max(axis=0).toarray()).astype(float)
        extreme, size = extreme[size > 0], size[size > 0]
        if len(extreme):
            part = X[:, extreme].astype(np.float64)
            part.data /= np.repeat(size, np.diff(part.indptr))
            inside = _scan(part, w)
            mean[extreme], deviation[extreme] = size * inside.mean, size * inside.deviation
    return Scan(mean, deviation)
