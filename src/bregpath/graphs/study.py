"""The rows from which a graph is learned, and how: what its path, folds, subsamples and bootstraps share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bregpath._typing import Array, BoolArray, IntArray
from bregpath.flow.problem import Problem
from bregpath.graphs.layouts import AbstractLayout
from bregpath.graphs.path import GraphPath
from bregpath.path import Units
from bregpath.run import run_path

__all__ = ["GraphStudy"]


@dataclass(frozen=True, eq=False)
class GraphStudy:
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
    options : dict
        Arguments of `bregpath.run.run_path`.
    """

    layout: AbstractLayout
    rows: Array
    w: Array
    thresholds: Array
    kappa: float
    options: Mapping[str, Any]

    def on(self, w: Array | None = None) -> tuple[Problem, AbstractLayout]:
        """The problem of the rows with some weights (None: their own), the same rows once, and what it learns."""
        w = self.w if w is None else w
        kept = w > 0
        rows, w = (self.rows, w) if kept.all() else (self.rows[kept], w[kept])
        varies, thresholds = self.layout.varies(rows, w), self.thresholds
        if not varies.all():
            if self.layout.needs_variation:
                raise ValueError(f"`X` has {_constant(self.layout, varies)} in the rows drawn; drop the node.")
            thresholds = np.where(varies[:, None] & varies, thresholds, np.inf)
        layout, data, share = self.layout.learned_from(rows, w)
        return layout.problem(data, share, thresholds, self.kappa), layout

    def lacking(self, rows: IntArray) -> str:
        """What some rows lack of a model, in words; empty where they do not."""
        return _constant(self.layout, self.layout.varies(self.rows[rows], np.ones(len(rows))))

    def trace(self, w: Array | None = None, **options: Any) -> GraphPath:
        """The path of the rows with some weights (None: their own); ``options`` stand in for those of the study."""
        problem, layout = self.on(w)
        units = Units.none(layout.n_coefficients)
        return GraphPath(run_path(problem, units, **{**self.options, **options}), layout)

    def weights_of(self, rows: IntArray) -> Array:
        """Weights with which some rows alone count, each as often as it is there."""
        return np.bincount(rows, minlength=len(self.w)) * self.w


def _constant(layout: AbstractLayout, varies: BoolArray) -> str:
    if varies.all() or not layout.needs_variation:
        return ""
    return f"one value only of node {layout.names[int(varies.argmin())]!r}"
