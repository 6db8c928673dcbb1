"""The rows from which a graph is learned, and how: what its path, folds, subsamples and bootstraps share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from bregpath import _validation
from bregpath._typing import Array, BoolArray, IntArray
from bregpath.flow.stop import AbstractStop, Progress
from bregpath.graphs.held_out import HeldOutRows
from bregpath.graphs.layouts import AbstractLayout
from bregpath.graphs.path import GraphPath
from bregpath.path import Path
from bregpath.run import Assembled, TraceOptions, Track
from bregpath.study import AbstractStudy
from bregpath.units import Units

__all__ = ["GraphStudy", "StopAtSparsity", "edge_thresholds"]

MAX_PREDICTORS = 2**23  # numbers: predictors of all nodes, rows and times that are kept of a cross-validation


@dataclass(frozen=True)
class StopAtSparsity(AbstractStop):
    """End a path before it has more than some edges."""

    layout: AbstractLayout
    n_edges: int
    overshoots = True

    def __call__(self, progress: Progress) -> bool:
        if progress.n_active <= self.n_edges:  # an edge has one active coefficient at least
            return False
        weights = self.layout.weights(progress.intercept, progress.coef[:, 0])
        return bool(np.count_nonzero(weights) // 2 > self.n_edges)


@dataclass(frozen=True, eq=False)
class GraphStudy(AbstractStudy):
    """Checked arguments of a graph; replicates differ by the weights of the rows alone.

    Attributes
    ----------
    layout : AbstractLayout
    rows : ndarray of shape (n, p)
        Codes of states, or numbers.
    w : ndarray of shape (n,)
        Weights of the rows; their sum is the number of rows that count.
    thresholds : ndarray of shape (p, p)
        Relative thresholds of the edges, ``inf`` where they are forbidden.
    kappa : float
    options : TraceOptions
    """

    layout: AbstractLayout
    rows: Array
    w: Array
    thresholds: Array
    kappa: float
    options: TraceOptions
    stops_replicates: ClassVar[bool] = True

    @property
    def nbytes(self) -> float:
        return float(self.rows.nbytes)

    @property
    def step_bytes(self) -> float:
        # Without predictors of the rows there are inverses, two or more, with a product of two columns an entry.
        return self.nbytes if self.layout.has_predictors else 16.0 * self.layout.n_nodes**3

    def on(self, counts: Array | None = None, copies: bool = False) -> Assembled:
        """Rows that count nothing are always left out, and the same rows are there once."""
        w = self.w if counts is None else counts
        kept = w > 0
        rows, w = (self.rows, w) if kept.all() else (self.rows[kept], w[kept])
        varies, thresholds = self.layout.varies(rows, w), self.thresholds
        if not varies.all():
            lacking = _constant(self.layout, varies)
            if lacking:
                raise ValueError(f"`X` has {lacking} in the rows drawn; drop the node.")
            thresholds = np.where(varies[:, None] & varies, thresholds, np.inf)
        layout, data, share = self.layout.learned_from(rows, w)
        problem = layout.problem(data, share, thresholds, self.kappa)
        return Assembled(problem, Units.none(layout.n_coefficients), layout)

    def restricted(self, kept: BoolArray) -> GraphStudy:
        """The same with some edges allowed, and no others."""
        return replace(self, thresholds=np.where(kept, self.thresholds, np.inf))

    def report(self, path: Path, track: Track) -> GraphPath:
        return GraphPath(path, track.layout)

    def lacking(self, rows: IntArray) -> str:
        return _constant(self.layout, self.layout.varies(self.rows[rows], np.ones(len(rows))))

    def held_out(self, track: Track, rows: IntArray, times: Array) -> HeldOutRows:
        models = track.read(times)
        few = len(self.w) * models[0].shape[1] * self.options.n_times <= MAX_PREDICTORS
        keeps_eta = few and self.layout.has_predictors
        return HeldOutRows(track.layout, self.kappa, self.rows[rows], self.w[rows], models, keeps_eta)

    def sizes(self, path: Any) -> Array:
        return path.n_edges

    @property
    def variables(self) -> IntArray:
        j, k = self.layout.pairs.T
        return np.unique(j * self.layout.n_nodes + k, return_inverse=True)[1].ravel()

    @property
    def n_needed(self) -> int:
        return self.layout.n_needed

    def as_reported(self, mask: BoolArray) -> BoolArray:
        j, k = self.layout.pairs[mask].T
        edges = np.zeros((self.layout.n_nodes, self.layout.n_nodes), dtype=bool)
        edges[j, k] = edges[k, j] = True
        return edges


def _constant(layout: AbstractLayout, varies: BoolArray) -> str:
    lacking = layout.needs_variation & ~varies
    return f"one value only of node {layout.names[int(lacking.argmax())]!r}" if lacking.any() else ""


def edge_thresholds(p: int, edge_weights: Any, mask: Any) -> Array:
    """Relative thresholds of the edges of p nodes, checked, with ``inf`` where a mask forbids them."""
    weights = np.ones((p, p))
    if edge_weights is not None:
        weights = _square("edge_weights", edge_weights, p, float)
        if (weights < 0).any():
            raise ValueError("`edge_weights` must be non-negative (0 = never penalised, inf = never enters).")
    return weights if mask is None else np.where(_square("mask", mask, p, bool), weights, np.inf)


def _square(name: str, matrix: Any, p: int, dtype: type) -> Array:
    """A symmetric matrix with an entry a pair of nodes; its diagonal does not matter."""
    given = _validation.as_array(name, matrix)
    if given.shape != (p, p):
        raise ValueError(f"`{name}` must have one entry a pair of nodes, shape ({p}, {p}), found {given.shape}.")
    if given.dtype.kind not in "fiub":
        raise TypeError(f"`{name}` must hold numbers or booleans, found dtype {given.dtype}.")
    off = ~np.eye(p, dtype=bool)
    if np.isnan(given[off]).any():
        raise ValueError(f"`{name}` contains NaN; every pair of nodes needs an entry.")
    if not np.array_equal(given[off], given.T[off]):
        raise ValueError(f"`{name}` must be symmetric: an edge has no direction.")
    return np.where(off, given, 1).astype(dtype)
