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
        self.p = p
        self.pairs = pairs
        self.shape = (p, len(pairs))

    def matvec(self, beta: Array, columns: IntArray | None = None) -> Array:
        j, k = self._ends(columns)
        eta = np.zeros((self.p, self.p))
        eta[j, k] = eta[k, j] = beta[:, 0]
        return eta

    def rmatvec(self, residual: Array, columns: IntArray | None = None) -> Array:
        j, k = self._ends(columns)
        return (residual[j, k] + residual[k, j])[:, None]

    def spread(self, alpha: Array, eta: Array) -> Array:
        eta = eta.copy()
        eta[np.diag_indices(self.p)] += alpha
        return eta

    def collect(self, residual: Array) -> Array:
        return np.diagonal(residual).copy()

    def columns(self, columns: IntArray) -> PrecisionDesign:
        return PrecisionDesign(self.p, self.pairs[columns])

    def append(self, more: AbstractDesign) -> PrecisionDesign:
        assert isinstance(more, PrecisionDesign)
        return PrecisionDesign(self.p, np.vstack([self.pairs, more.pairs]))

    def column_norms(self) -> Array:
        return np.full(len(self.pairs), np.sqrt(2.0))

    def _ends(self, columns: IntArray | None) -> Array:
        return (self.pairs if columns is None else self.pairs[columns]).T
