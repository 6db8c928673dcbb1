"""Off-diagonal entries of a symmetric matrix: the design of Gaussian graphs."""

from __future__ import annotations

import numpy as np

from bregpath._typing import Array, IntArray
from bregpath.designs.base import AbstractDesign

__all__ = ["PrecisionDesign"]


class PrecisionDesign(AbstractDesign):
    r"""The predictor is the precision matrix itself: ``eta = diag(alpha) + sum_jk beta_jk (E_jk + E_kj)``.

    One coefficient a pair, so its derivative has both ends: ``residual[j, k] + residual[k, j]``.

    Parameters
    ----------
    p : int
        Number of nodes.
    pairs : array of shape (m, 2)

    Examples
    --------
    >>> import numpy as np
    >>> design = PrecisionDesign(2, np.array([[0, 1]]))
    >>> design.spread(np.array([2.0, 3.0]), design.matvec(np.array([[-1.0]])))
    array([[ 2., -1.],
           [-1.,  3.]])
    """

    layout = "precision"
    is_small = True

    def __init__(self, p: int, pairs: IntArray) -> None:
        j, k = pairs.T
        self._set(p, j * p + k, k * p + j)

    def _set(self, p: int, above: IntArray, below: IntArray) -> None:
        self.p = p
        self.above, self.below = above, below  # places of both ends in the flat matrix
        self.shape = (p, len(above))

    def matvec(self, beta: Array, columns: IntArray | None = None) -> Array:
        above, below = self._ends(columns)
        eta = np.zeros(self.p * self.p)
        eta[above] = eta[below] = beta[:, 0]
        return eta.reshape(self.p, self.p)

    def rmatvec(self, residual: Array, columns: IntArray | None = None) -> Array:
        above, below = self._ends(columns)
        flat = residual.ravel()
        return (flat.take(above) + flat.take(below))[:, None]

    def spread(self, alpha: Array, eta: Array) -> Array:
        eta = eta.copy()
        eta.reshape(-1)[:: self.p + 1] += alpha
        return eta

    def collect(self, residual: Array) -> Array:
        return np.diagonal(residual).copy()

    def columns(self, columns: IntArray) -> PrecisionDesign:
        return self._like(*self._ends(columns))

    def append(self, more: AbstractDesign) -> PrecisionDesign:
        assert isinstance(more, PrecisionDesign)
        return self._like(np.append(self.above, more.above), np.append(self.below, more.below))

    def column_norms(self) -> Array:
        return np.full(len(self.above), np.sqrt(2.0))

    def _ends(self, columns: IntArray | None) -> tuple[IntArray, IntArray]:
        return (self.above, self.below) if columns is None else (self.above[columns], self.below[columns])

    def _like(self, above: IntArray, below: IntArray) -> PrecisionDesign:
        twin = PrecisionDesign.__new__(PrecisionDesign)
        twin._set(self.p, above, below)
        return twin
