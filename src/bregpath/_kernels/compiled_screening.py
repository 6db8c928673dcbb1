"""The compiled twin of `screening`, and sums over rows of columns where they lie."""

from __future__ import annotations

from typing import Any

import numpy as np

import bregpath._kernels._core as _core
from bregpath._kernels import screening
from bregpath._kernels.compiled import typed
from bregpath._known_to_core import is_known_as
from bregpath._typing import Array, BoolArray, IntArray
from bregpath.penalties import AbstractPenalty
from bregpath.stores import AbstractBlock, AbstractStore, Scan
from bregpath.stores.base import beyond_squares

__all__ = ["Columns", "lengths", "lessen", "may_cross"]

TILE = 8  # columns that are multiplied at a time


class Columns:
    """The columns of a store that the compiled core knows, or of a block, which has no `scan`."""

    def __init__(self, store: AbstractStore | AbstractBlock) -> None:
        kernel = store.kernel()
        assert kernel is not None
        self._store: Any = store
        self.are_sparse, self._n_columns = kernel.name == "csc", store.shape[1]
        numbers = typed(kernel).numbers
        self._units = (numbers["center"], numbers["scale"]) if "scale" in numbers else None
        self._core = _core.Store(store.shape[0], numbers)

    def products(self, vectors: Array, columns: IntArray | None = None) -> Array:
        """See `AbstractStore.products`."""
        b, n, q = vectors.shape
        by_outputs = np.ascontiguousarray(np.moveaxis(vectors, 2, 1), dtype=np.float64).reshape(b * q, n)
        columns = None if columns is None else np.ascontiguousarray(columns, dtype=np.int64)
        out = np.empty((b * q, self._n_columns if columns is None else len(columns)))
        self._core.products({"vectors": by_outputs, "columns": columns, "out": out})
        return np.moveaxis(out.reshape(b, q, -1), 1, 2)

    def scan(self, w: Array) -> Scan:
        """See `AbstractStore.scan`; in the core for columns whose squares are numbers."""
        mean, variance = np.empty((2, self._n_columns))
        self._core.scan({"w": np.ascontiguousarray(w), "mean": mean, "variance": variance})
        if len(beyond_squares(mean, variance)):
            return self._store.scan(w)  # type: ignore[no-any-return]
        scan = Scan(mean, np.sqrt(variance))  # of the columns as they are stored
        return scan.standardized(*self._units) if self._units else scan

    def moments(self, w: Array, y: Array, shift: Array, rows: IntArray | None = None) -> Array:
        """Weighted sums of products of columns, less a shift, with each other, with ones and with ``y``.

        Over all rows, or some of them in order, whose ``w`` and ``y`` are given.
        """
        size = self._n_columns + 2
        out = np.zeros((-(-size // TILE) * TILE,) * 2)
        self._core.moments({**_contiguous({"w": w, "y": y, "shift": shift}), "rows": rows, "out": out})
        return out[:size, :size]


def lessen(whole: Array, lost: Array, share: float, moved: Array, unit: Array) -> Array:
    """See `screening.lessen`."""
    out = np.empty_like(whole)
    _core.lessen({"whole": whole, "lost": lost, **_contiguous({"moved": moved, "unit": unit}), "out": out}, share)
    return out


def lengths(R: Array, residual: Array, end: Array, last: Array, weights: Array) -> Array:
    """See `screening.lengths`."""
    out = np.empty((len(R), 5))
    rows = {"R": R, "residual": residual, "end": end, "last": last, "weights": weights}
    _core.lengths({**_contiguous(rows), "out": out})
    return out.T


def may_cross(
    penalty: AbstractPenalty, z: Array, along: Array, slack: Array, bounds: Array, owner: IntArray,
    columns: IntArray | None = None,
) -> BoolArray:  # fmt: skip
    """See `screening.may_cross`; in the core for the l1 penalty."""
    if not is_known_as(penalty, "l1"):
        return screening.may_cross(penalty, z, along, slack, bounds, owner, columns)
    near = np.empty(len(z), dtype=bool)
    limits = {"lower": penalty.lower, "upper": penalty.upper} if penalty.has_limits else {}
    arrays = {"z": z, "along": along, "slack": slack, "bounds": bounds, "weights": penalty.weights, **limits}
    _core.may_cross({**_contiguous(arrays), "owner": owner, "columns": columns, "near": near}, screening.MARGIN)
    return near


def _contiguous(arrays: dict[str, Array]) -> dict[str, Any]:
    return {name: np.ascontiguousarray(array, dtype=np.float64) for name, array in arrays.items()}
