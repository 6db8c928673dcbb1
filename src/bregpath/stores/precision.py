"""Off-diagonal entries of a symmetric matrix: the store of Gaussian graphs."""

from __future__ import annotations

import numpy as np

from bregpath._known_to_core import Kernel, only_for_its_class
from bregpath._typing import Array, IntArray
from bregpath.stores.base import AbstractBlock, BlockStore, Scan

__all__ = ["PrecisionBlock", "PrecisionStore"]


class PrecisionStore(BlockStore):
    r"""The predictor is the precision matrix itself: ``eta = diag(alpha) + sum_jk beta_jk (E_jk + E_kj)``.

    Parameters
    ----------
    p : int
        Number of nodes.
    pairs : array of shape (m, 2)

    Examples
    --------
    >>> import numpy as np
    >>> store = PrecisionStore(2, np.array([[0, 1]]))
    >>> store.spread(np.array([2.0, 3.0]), store.fetch(np.array([0])).matvec(np.array([[-1.0]])))
    array([[ 2., -1.],
           [-1.,  3.]])
    """

    is_small = True

    def __init__(self, p: int, pairs: IntArray) -> None:
        j, k = pairs.T
        super().__init__(PrecisionBlock(p, j * p + k, k * p + j))

    def scan(self, w: Array) -> Scan:
        """Every coefficient has two places; there are no rows to be weighted."""
        m = self.shape[1]
        return Scan(np.zeros(m), np.full(m, np.sqrt(2.0)))

    def spread(self, alpha: Array, eta: Array) -> Array:
        eta = eta.copy()
        eta.reshape(-1)[:: len(eta) + 1] += alpha
        return eta

    def collect(self, residual: Array) -> Array:
        return np.diagonal(residual).copy()


class PrecisionBlock(AbstractBlock):
    """One coefficient a pair, so its derivative has both ends: ``residual[j, k] + residual[k, j]``.

    ``above`` and ``below`` are the places of both ends in the flat matrix.
    """

    def __init__(self, p: int, above: IntArray, below: IntArray) -> None:
        self.p = p
        self.above, self.below = above, below
        self.shape = (p, len(above))

    @only_for_its_class
    def kernel(self) -> Kernel:
        return Kernel("precision", {"n_nodes": self.p, "above": self.above})

    def matvec(self, beta: Array) -> Array:
        eta = np.zeros(self.p * self.p)
        eta[self.above] = eta[self.below] = beta[:, 0]
        return eta.reshape(self.p, self.p)

    def rmatvec(self, residual: Array) -> Array:
        flat = residual.ravel()
        return (flat.take(self.above) + flat.take(self.below))[:, None]

    def columns(self, index: IntArray) -> PrecisionBlock:
        return PrecisionBlock(self.p, self.above[index], self.below[index])

    def append(self, more: AbstractBlock) -> PrecisionBlock:
        assert isinstance(more, PrecisionBlock)
        return PrecisionBlock(self.p, np.append(self.above, more.above), np.append(self.below, more.below))
