"""Moments of some rows, and the squared errors of linear models on them."""

from __future__ import annotations

from threading import Lock

import numpy as np

from bregpath import _kernels
from bregpath._typing import Array, IntArray
from bregpath.stores import AbstractStore

__all__ = ["RowMoments"]

MAX_COLUMNS = 256
MIN_ROWS = 4  # a column, from which on moments pay for the many models of several kappas
# Share of the moments that must be left as an error, which is their difference, to be more than rounding.
MIN_LEFT = 1e-8


class RowMoments:
    r"""Of some rows, which are read once.

    With means and products over the rows, weights :math:`w` that sum to one, u the columns less a shift s and v the
    response less its mean, a model with intercept a errs by

    .. math:: \overline{(v - c - u'b)^2} = \overline{vv} - 2 b'\overline{uv} + c^2 + 2 c\, b'\bar u
              + b'\overline{uu'} b, \qquad c = a + s'b - \bar y .

    Parameters
    ----------
    store : AbstractStore
        Of all rows.
    rows : ndarray
    y, w : ndarray of shape (n_rows,)
        Of these rows, less an offset.
    """

    def __init__(self, store: AbstractStore, rows: IntArray, y: Array, w: Array) -> None:
        w = w / w.sum()
        self._store: AbstractStore | None = store
        self._rows, self._w = rows, w
        self._level = float(w @ y)
        self._v = y - self._level
        self._variance = float(w @ self._v**2)
        self._sums: Array | None = None
        self._shift = np.zeros(store.shape[1])
        self._lock = Lock()

    @staticmethod
    def pays(store: AbstractStore, rows: IntArray) -> bool:
        """Whether there are so many rows for the columns that moments are cheaper than predictions."""
        p = store.shape[1]
        return p <= MAX_COLUMNS and len(rows) >= MIN_ROWS * p and bool(np.isfinite(store.nbytes))

    def squared_error(self, intercept: Array, columns: IntArray, coef: Array, near: Array) -> Array | None:
        """The mean squared error of models (T,) and (T, E) on some columns.

        None where errors are so small that they would be rounding, or where the core cannot read the columns. The first
        to ask says where they lie ``near``.
        """
        with self._lock:
            if self._store is not None:
                some = _kernels.columns_of(self._store.rows(self._rows))
                if some is not None and not some.are_sparse:
                    self._shift, self._sums = near, some.moments(self._w, self._v, near)
                self._store = None
        if self._sums is None:
            return None
        sums = self._sums
        c = intercept + coef @ self._shift[columns] - self._level
        gram = sums[np.ix_(columns, columns)]
        size = np.sum((coef @ gram) * coef, axis=1) + self._variance + c**2
        error = size - 2 * coef @ sums[columns, -1] + 2 * c * (coef @ sums[columns, -2])
        return error if np.all(error > MIN_LEFT * size) else None
