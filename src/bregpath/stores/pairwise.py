"""Pairs of nodes: one coefficient acts on the predictors of both ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bregpath._known_to_core import Kernel, only_for_its_class
from bregpath._typing import Array, IntArray
from bregpath.stores.base import AbstractBlock, BlockStore, Scan

__all__ = ["PairwiseBlock", "PairwiseStore", "StateBlock"]

MAX_SMALL = 1_000_000  # coefficients up to which products with all of them are cheap
MANY_STATES = 8  # so many times more where states are looked up: what screening would keep is larger than they are


@dataclass(frozen=True, eq=False)
class PairwiseScan(Scan):
    """Norms of couplings, each of which has a norm at each of its places; their means are not asked for."""

    squares: Array  # (m, places)
    has_indicators: bool

    def group_size(self, groups: IntArray) -> Array:
        # Indicators of one node are orthogonal, so a block F_j'R_k is at most as large as the longest of them allows;
        # the sum of all columns' norms would be far too careful. Other features have no such structure.
        if not self.has_indicators:
            return super().group_size(groups)
        longest = np.zeros((int(groups.max(initial=-1)) + 1, self.squares.shape[1]))
        np.maximum.at(longest, groups, self.squares)
        return np.sqrt(longest.sum(axis=1))[groups]


class PairwiseStore(BlockStore):
    """All couplings of a graph; the arguments are those of `PairwiseBlock`, and two more.

    Parameters
    ----------
    has_indicators : bool
        Whether the features of a node are indicators of its states, of which each row has one.
    has_cheap_curvature : bool, optional
        By default, where features are spins: one output a node, and a small Gram matrix for each.
    """

    def __init__(
        self, features: Any, n_targets: int, source: IntArray, target: IntArray, has_indicators: bool = False,
        has_cheap_curvature: bool | None = None,
    ) -> None:  # fmt: skip
        self.block: PairwiseBlock
        # Few states are better multiplied as numbers than looked up.
        kind = StateBlock if has_indicators and not isinstance(features, np.ndarray) else PairwiseBlock
        super().__init__(kind(features, n_targets, source, target))
        self.has_indicators = has_indicators
        if has_cheap_curvature is None:
            has_cheap_curvature = not has_indicators and bool(np.all(np.abs(features) == 1))
        self.has_cheap_curvature = has_cheap_curvature

    @property
    def is_small(self) -> bool:
        return self.shape[1] <= MAX_SMALL * (MANY_STATES if isinstance(self.block, StateBlock) else 1)

    def fetch(self, columns: IntArray) -> AbstractBlock:
        is_whole = len(columns) == self.shape[1] and np.array_equal(columns, np.arange(len(columns)))
        return self.block if is_whole else super().fetch(columns)

    def n_alpha(self, n_outputs: int) -> int:
        return self.block.n_targets

    def scan(self, w: Array) -> Scan:
        features = self.block.features
        squares = features * features if isinstance(features, np.ndarray) else features.multiply(features)
        at_places = np.asarray(squares.T @ w, dtype=float).ravel()[self.block.source]
        size = np.sqrt(at_places.sum(axis=1))
        return PairwiseScan(np.zeros_like(size), size, at_places, self.has_indicators)


class PairwiseBlock(AbstractBlock):
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

    Examples
    --------
    >>> import numpy as np
    >>> spins = np.array([[1.0, -1.0, 1.0], [1.0, 1.0, -1.0]])
    >>> pairs = np.array([[0, 1], [0, 2], [1, 2]])
    >>> block = PairwiseBlock(spins, 3, source=pairs, target=pairs[:, ::-1])
    >>> block.matvec(np.array([[1.0], [0.0], [10.0]]))
    array([[ -1.,  11., -10.],
           [  1.,  -9.,  10.]])
    """

    def __init__(self, features: Any, n_targets: int, source: IntArray, target: IntArray) -> None:
        self.features = features
        self.n_targets = n_targets
        self.source = source
        self.target = target
        self.shape = (features.shape[0], len(source))

    @only_for_its_class
    def kernel(self) -> Kernel:
        places = {"source": self.source, "target": self.target}
        if isinstance(self.features, np.ndarray):
            return Kernel("pairwise", {"dense": np.asfortranarray(self.features), **places})
        zeros = np.zeros(self.features.shape[1])
        sparse = {"values": self.features.data, "indices": self.features.indices, "indptr": self.features.indptr}
        return Kernel("pairwise", {**sparse, "center": zeros, "scale": zeros + 1.0, **places})

    def matvec(self, beta: Array) -> Array:
        used, row = _compact(self.source, self.features.shape[1])
        couplings = np.zeros((len(used), self.n_targets))
        couplings[row, self.target] = beta  # no two coefficients have the same place
        return np.asarray(self._features(used) @ couplings)

    def rmatvec(self, residual: Array) -> Array:
        return self.rmatvec_many(residual[None])[0]

    def rmatvec_many(self, residuals: Array) -> Array:
        used, row = _compact(self.source, self.features.shape[1])
        reached, column = _compact(self.target, self.n_targets)
        features = self._features(used).T
        out = np.empty((len(residuals), len(self.source), 1))
        for part, residual in zip(out, residuals, strict=True):
            wanted = residual if len(reached) == self.n_targets else residual[:, reached]
            part[:, 0] = np.asarray(features @ wanted)[row, column].sum(axis=1)
        return out

    def columns(self, index: IntArray) -> PairwiseBlock:
        return PairwiseBlock(self.features, self.n_targets, self.source[index], self.target[index])

    def append(self, more: AbstractBlock) -> PairwiseBlock:
        assert isinstance(more, PairwiseBlock)
        source, target = np.vstack([self.source, more.source]), np.vstack([self.target, more.target])
        return PairwiseBlock(self.features, self.n_targets, source, target)

    def _features(self, used: IntArray) -> Any:
        return self.features if len(used) == self.features.shape[1] else self.features[:, used]


class StateBlock(PairwiseBlock):
    """All couplings of nodes whose features are indicators of the very states that are predicted, one a column."""

    @only_for_its_class
    def kernel(self) -> Kernel:
        return Kernel("states", {"source": self.source, "target": self.target})


def _compact(numbers: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """Which of 0 .. size - 1 occur, and the position of each number among them."""
    occurs = np.zeros(size, dtype=bool)
    occurs[numbers] = True
    used = np.flatnonzero(occurs)
    return used, numbers if len(used) == size else (np.cumsum(occurs) - 1)[numbers]
