"""Pairs of nodes: one coefficient acts on the predictors of both ends."""

from __future__ import annotations

from typing import Any

import numpy as np

from bregpath._typing import Array, IntArray
from bregpath.designs.base import AbstractDesign

__all__ = ["PairwiseDesign"]

MAX_SMALL = 1_000_000  # coefficients up to which products with all of them are cheap


class PairwiseDesign(AbstractDesign):
    r"""Couplings between features of nodes: ``eta[:, target] += beta * features[:, source]``.

    A node has features that others see (its spin; indicators of its states) and columns of the predictor (one spin;
    one a state). A coefficient has one or two places. With two it is symmetric: it couples a feature of node j to a
    column of node k and back, so its derivative is the sum of both ends,
    :math:`F_s^\top R_u + F_{s'}^\top R_{u'}`. With one place it is a coefficient of a node-wise regression.

    Parameters
    ----------
    features : array or scipy.sparse.csc_array of shape (n, S)
    n_targets : int
        Columns of the predictor.
    source, target : arrays of shape (m, places)
        Feature and column of the predictor of each place of each coefficient.
    has_indicators : bool
        Whether the features of a node are indicators of its states, of which each row has one.

    Examples
    --------
    >>> import numpy as np
    >>> spins = np.array([[1.0, -1.0, 1.0], [1.0, 1.0, -1.0]])
    >>> pairs = np.array([[0, 1], [0, 2], [1, 2]])
    >>> design = PairwiseDesign(spins, 3, source=pairs, target=pairs[:, ::-1])
    >>> design.matvec(np.array([[1.0], [0.0], [10.0]]))
    array([[ -1.,  11., -10.],
           [  1.,  -9.,  10.]])
    """

    layout = "pairwise"

    def __init__(
        self, features: Any, n_targets: int, source: IntArray, target: IntArray, has_indicators: bool = False
    ) -> None:
        self.features = features
        self.n_targets = n_targets
        self.source = source
        self.target = target
        self.shape = (features.shape[0], len(source))
        self.has_indicators = has_indicators
        self.has_cheap_curvature = not has_indicators  # one output a node: a small Gram matrix for each

    @property
    def is_small(self) -> bool:
        return len(self.source) <= MAX_SMALL

    def arrays(self) -> dict[str, Any]:
        """Features as columns, and the places of the coefficients."""
        places = {"source": self.source, "target": self.target}
        if isinstance(self.features, np.ndarray):
            return {"dense": np.asfortranarray(self.features), **places}
        zeros = np.zeros(self.features.shape[1])
        sparse = {"values": self.features.data, "indices": self.features.indices, "indptr": self.features.indptr}
        return {**sparse, "center": zeros, "scale": zeros + 1.0, **places}

    def matvec(self, beta: Array, columns: IntArray | None = None) -> Array:
        source, target = self._places(columns)
        used, row = self._compact(source, self.features.shape[1])
        couplings = np.zeros((len(used), self.n_targets))
        couplings[row, target] = beta  # no two coefficients have the same place
        return np.asarray(self._features(used) @ couplings)

    def rmatvec(self, residual: Array, columns: IntArray | None = None) -> Array:
        return self.rmatvec_many(residual[None], columns)[0]

    def rmatvec_many(self, residuals: Array, columns: IntArray | None = None) -> Array:
        source, target = self._places(columns)
        used, row = self._compact(source, self.features.shape[1])
        reached, column = self._compact(target, self.n_targets)
        features = self._features(used).T
        out = np.empty((len(residuals), len(source), 1))
        for part, residual in zip(out, residuals, strict=True):
            wanted = residual if len(reached) == self.n_targets else residual[:, reached]
            part[:, 0] = np.asarray(features @ wanted)[row, column].sum(axis=1)
        return out

    @staticmethod
    def _compact(numbers: IntArray, size: int) -> tuple[IntArray, IntArray]:
        """Which of 0 .. size - 1 occur, and the position of each number among them."""
        occurs = np.zeros(size, dtype=bool)
        occurs[numbers] = True
        used = np.flatnonzero(occurs)
        return used, numbers if len(used) == size else (np.cumsum(occurs) - 1)[numbers]

    def columns(self, columns: IntArray) -> PairwiseDesign:
        return self._with(self.source[columns], self.target[columns])

    def append(self, more: AbstractDesign) -> PairwiseDesign:
        assert isinstance(more, PairwiseDesign)
        return self._with(np.vstack([self.source, more.source]), np.vstack([self.target, more.target]))

    def _with(self, source: IntArray, target: IntArray) -> PairwiseDesign:
        return PairwiseDesign(self.features, self.n_targets, source, target, self.has_indicators)

    def column_norms(self) -> Array:
        return np.sqrt(self._squares()[self.source].sum(axis=1))

    def group_norms(self, groups: IntArray) -> Array:
        # Indicators of one node are orthogonal, so a block F_j'R_k is at most as large as the longest of them allows;
        # the sum of all columns' norms would be far too careful. Other features have no such structure.
        if not self.has_indicators:
            return super().group_norms(groups)
        longest = np.zeros((int(groups.max(initial=-1)) + 1, self.source.shape[1]))
        np.maximum.at(longest, groups, self._squares()[self.source])
        return np.sqrt(longest.sum(axis=1))[groups]

    def _squares(self) -> Array:
        features = self.features
        squares = features * features if isinstance(features, np.ndarray) else features.multiply(features)
        return np.asarray(squares.sum(axis=0), dtype=float).ravel()

    def _places(self, columns: IntArray | None) -> tuple[IntArray, IntArray]:
        return (self.source, self.target) if columns is None else (self.source[columns], self.target[columns])

    def _features(self, used: IntArray) -> Any:
        return self.features if len(used) == self.features.shape[1] else self.features[:, used]
