"""What graphs of labels share: codes of states, nodes with one label only, and states without rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from bregpath._typing import Array
from bregpath.estimators.graph import AbstractGraph
from bregpath.graphs.data import StateCoder, add_absent_states, collapse_rows, count_states
from bregpath.graphs.layouts import AbstractLayout, FieldLayout, IsingLayout

__all__ = ["DiscreteGraph"]


class DiscreteGraph(AbstractGraph):
    """A graph of nodes with labels, `IsingGraph` or `PottsGraph`.

    A state without rows, of a node with one label only or in the training rows of a fold, would have the field minus
    infinity. It counts as half a row instead, spread over all rows, and nodes with one label only get no edges.
    """

    _coder: StateCoder

    def _encode(self, X: Any) -> Array:
        return self._coder.encode(X)

    def _distinct(self, layout: AbstractLayout, rows: Array, w: Array) -> tuple[Any, Array]:
        rows, w = add_absent_states(*collapse_rows(rows, w), _n_states(layout))
        return rows, w / w.sum()

    def _thresholds(self, layout: AbstractLayout, rows: Array, w: Array) -> Array:
        varies = _varies(layout, rows, w)
        return np.where(varies[:, None] & varies, super()._thresholds(layout, rows, w), np.inf)

    def _warn_of_constant(self, layout: AbstractLayout, rows: Array, w: Array) -> None:
        """Say which nodes cannot have edges; refuse a table of nothing else."""
        varies = _varies(layout, rows, w)
        if not varies.any():
            raise ValueError("`X` has one label only in every column; there is nothing to learn from it.")
        if not varies.all():
            names = [name for name, moves in zip(layout.names, varies, strict=True) if not moves]
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            warnings.warn(
                f"`X` has one label only in column(s) {', '.join(map(repr, names[:5]))}{more}: these nodes get no "
                "edges. Drop them, or take more rows.",
                UserWarning,
                stacklevel=4,  # the caller of fit
            )


def _n_states(layout: AbstractLayout) -> list[int]:
    assert isinstance(layout, IsingLayout | FieldLayout)
    return [len(labels) for labels in layout.levels]


def _varies(layout: AbstractLayout, rows: Array, w: Array) -> Array:
    """Which nodes have rows of two states or more."""
    return np.array([np.count_nonzero(counts) > 1 for counts in count_states(rows, w, _n_states(layout))])
