"""The Gram matrix of the working columns, with which squared loss needs no pass over the rows."""

from __future__ import annotations

from copy import copy

import numpy as np

from bregpath._typing import Array
from bregpath.designs import AbstractDesign
from bregpath.flow.problem import Problem
from bregpath.losses import AbstractLoss

__all__ = ["GramMatrix"]

MAX_WHOLE = 4000  # columns of a matrix that is made for the whole design
LARGE_MEAN = 10.0  # square of a mean over the variance, beyond which a difference of moments is too coarse
ROUNDING = 1e-28  # the same for means that are zero but for rounding


class GramMatrix:
    r"""Moments of the working columns and ``y - offset`` about their means; it grows with the columns.

    With ``m`` the means of the columns and ``u = alpha + m'b - mean(y)`` the mean residual,

    .. math:: \ell = \tfrac12 (b'Gb - 2 b'c + v + u^2), \qquad \nabla_b \ell = G b - c + u\, m ,

    where G, c and v are *central* moments: nothing cancels, however far the data are from zero.
    """

    def __init__(self, problem: Problem, design: AbstractDesign) -> None:
        self.w = problem.w
        y = problem.y - problem.offset[:, 0]
        self.y_mean = float(self.w @ y)
        self.y = y - self.y_mean
        self.y_square = float(self.w @ self.y**2)
        self.size = design.shape[1]
        self._sum_rows(design, np.zeros(self.size))
        # Central moments as differences lose the digits of a mean that is large: then the rows are centred first.
        if np.any(self.mean**2 > LARGE_MEAN * np.diagonal(self._room)):
            self._sum_rows(design, self.mean)
        self._used = [self.size]

    def _sum_rows(self, design: AbstractDesign, shift: Array) -> None:
        """The moments from sums over rows from which ``shift`` is subtracted."""
        self._room = np.zeros((self.size, self.size))
        self.mean, self.target = shift.copy(), np.zeros(self.size)
        uniform = self.w.min() == self.w.max()
        blocks = design.row_blocks()
        assert blocks is not None
        for part, rows in blocks:
            w = self.w[part]
            rows = rows - shift if shift.any() else rows
            # A matrix times its own transpose is symmetric, which BLAS knows: half the work.
            self._room += rows.T @ rows * w[0] if uniform else rows.T @ (rows * w[:, None])
            self.mean += w @ rows
            self.target += (w * self.y[part]) @ rows
        rest = self.mean - shift
        if np.any(rest**2 > ROUNDING * np.diagonal(self._room)):
            self._room -= np.outer(rest, rest)

    @staticmethod
    def pays_whole(problem: Problem) -> bool:
        """Whether the matrix of all columns is small enough to replace the design altogether."""
        n, p = problem.design.shape
        return _is_squared(problem.loss) and p <= min(n, MAX_WHOLE) and problem.design.row_blocks() is not None

    @staticmethod
    def pays(problem: Problem, block: AbstractDesign) -> bool:
        """Whether products with the matrix of some columns are cheaper than those with their rows."""
        n, m = block.shape
        return _is_squared(problem.loss) and block.layout == "dense" and m <= 2 * n

    def grow(self, block: AbstractDesign) -> GramMatrix:
        """The Gram matrix of a block whose first columns are those of this one."""
        X: Array = block.arrays()["dense"]
        old, new = self.size, X.shape[1]
        mean = self.w @ X[:, old:]
        added = X[:, old:] - mean
        grown = copy(self)
        # Matrices that share the room share the count of its used rows: only the largest may write behind its end.
        if new > len(self._room) or self._used[0] != old:
            grown._room = np.empty((2 * new, 2 * new))
            grown._room[:old, :old] = self._room[:old, :old]
            grown._used = [new]
        # The weighted sum of `added` is zero, so the other factor need not be centred.
        products = X.T @ (added * self.w[:, None])
        grown._room[:new, old:new] = products
        grown._room[old:new, :old] = products[:old].T
        grown._used[0] = grown.size = new
        grown.mean = np.concatenate([self.mean, mean])
        grown.target = np.concatenate([self.target, (self.w * self.y) @ added])
        return grown

    def arrays(self) -> dict[str, Array | float]:
        """What the compiled core takes."""
        return {
            "gram": self._room[: self.size, : self.size],
            "gram_mean": self.mean,
            "gram_target": self.target,
            "y_mean": self.y_mean,
            "y_square": self.y_square,
        }


def _is_squared(loss: AbstractLoss) -> bool:
    kernel = loss.kernel()
    return kernel is not None and kernel.name == "gaussian"
