"""The Gram matrix of the working columns, with which squared loss needs no pass over the rows."""

from __future__ import annotations

from copy import copy

import numpy as np

from bregpath._typing import Array
from bregpath.designs import AbstractDesign
from bregpath.flow.problem import Problem

__all__ = ["GramMatrix"]


class GramMatrix:
    """``X'WX``, ``X'w`` and ``X'W(y - offset)`` of the working columns; they grow with them."""

    def __init__(self, problem: Problem, block: AbstractDesign) -> None:
        self.w = problem.w
        self.y = problem.y - problem.offset[:, 0]
        self.y_mean = float(self.w @ self.y)
        self.y_square = float(self.w @ self.y**2)
        X: Array = block.arrays()["dense"]
        self.size = X.shape[1]
        self.mean, self.target = self.w @ X, (self.w * self.y) @ X
        if self.w.min() == self.w.max():
            self._room = X.T @ X  # symmetric, which BLAS knows: half the work
            self._room *= self.w[0]
        else:
            self._room = X.T @ (X * self.w[:, None])
        self._used = [self.size]

    @staticmethod
    def pays(problem: Problem, block: AbstractDesign) -> bool:
        """Whether products with the Gram matrix are cheaper than those with the rows."""
        n, m = block.shape
        return problem.loss.name == "gaussian" and block.layout == "dense" and m <= 2 * n

    def grow(self, block: AbstractDesign) -> GramMatrix:
        """The Gram matrix of a block whose first columns are those of this one."""
        X: Array = block.arrays()["dense"]
        old, new = self.size, X.shape[1]
        added = X[:, old:]
        grown = copy(self)
        # Matrices that share the room share the count of its used rows: only the largest may write behind its end.
        if new > len(self._room) or self._used[0] != old:
            grown._room = np.empty((2 * new, 2 * new))
            grown._room[:old, :old] = self._room[:old, :old]
        products = X.T @ (added * self.w[:, None])
        grown._room[:new, old:new] = products
        grown._room[old:new, :old] = products[:old].T
        grown._used = [new]
        if grown._room is self._room:
            grown._used = self._used
            grown._used[0] = new
        grown.mean = np.concatenate([self.mean, self.w @ added])
        grown.target = np.concatenate([self.target, (self.w * self.y) @ added])
        grown.size = new
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
