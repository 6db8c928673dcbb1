"""What a stability selection has found: how often each variable or edge was selected, and which are stable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bregpath._frames import import_pandas
from bregpath._text import shortened
from bregpath._typing import Array, BoolArray, IntArray
from bregpath.selection.bounds import check_threshold, error_bound

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Stability", "counted_once"]


@dataclass(frozen=True, eq=False, repr=False)
class Stability:
    r"""How often each variable was selected, over time, and which are stable.

    Attributes
    ----------
    times : ndarray of shape (n_times,)
        Times at which all replicates were read.
    probabilities : ndarray of shape (n_times, n_items)
        Share of the replicates that had selected a variable (or edge) by each time.
    size : ndarray of shape (n_times,)
        q(t): mean number of variables selected by each time, free ones not counted.
    threshold, bound, n_replicates, pairs
        As they were asked for: items with a probability of at least the threshold are selected.
    n_variables : int or None
        A replicate ended once this many variables had entered.
    candidates : ndarray of bool of shape (n_items,)
        Items that may be selected: not those that are never penalised, or never allowed to enter.
    edges : ndarray of shape (n_items, 2) or None
        The ends of each item where items are edges of a graph.
    names : sequence of str or None
        Names of the columns (the nodes of a graph).
    path : Path, GraphPath or None
        The path on all rows.
    groups : ndarray of shape (n_items,) or None
        Label of each item where items enter together, as the levels of a categorical column: a group counts as one.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_linear(100, 20, 3, seed=0)
    >>> stability = bregpath.stability_selection(data.X, data.y, n_replicates=20)
    >>> stability.selected.tolist()
    [0, 1, 2]
    """

    times: Array
    probabilities: Array
    size: Array
    threshold: float
    bound: str
    n_variables: int | None
    n_replicates: int
    pairs: bool
    candidates: BoolArray
    edges: IntArray | None = None
    names: Sequence[str] | None = None
    path: Any = None
    groups: IntArray | None = None

    @property
    def max_probability(self) -> Array:
        """Largest probability of each item over time."""
        return np.max(self.probabilities, axis=0)

    @property
    def selected(self) -> IntArray:
        """Stable columns in increasing order, or stable edges as rows (j, k)."""
        stable = np.flatnonzero(self._is_stable)
        return stable if self.edges is None else self.edges[stable]

    @property
    def _is_stable(self) -> BoolArray:
        return self.max_probability >= self.threshold - 1e-12  # up to rounding

    @property
    def error_bounds(self) -> Array:
        """Bound of the expected number of falsely selected items, if selection had ended at each time."""
        n_items = int(np.count_nonzero(counted_once(self.candidates, self.groups)))
        bounds = [error_bound(q, n_items, self.threshold, self.n_replicates, kind=self.bound) for q in self.size]
        return np.array(bounds)

    @property
    def error_bound(self) -> float:
        """Bound of the expected number of falsely selected items."""
        return float(self.error_bounds[-1])

    def at_threshold(self, threshold: float) -> Stability:
        """The same replicates with another threshold, and the error bound that belongs to it."""
        return replace(self, threshold=check_threshold(threshold))

    @property
    def item_names(self) -> list[str]:
        """Name of each item: of a column, or of both ends of an edge."""
        names = self._names
        return names if self.edges is None else [f"{names[j]} - {names[k]}" for j, k in self.edges]

    @property
    def _names(self) -> list[str]:
        """Of the columns, or of the nodes."""
        if self.names is not None:
            return list(self.names)
        n = len(self.candidates) if self.edges is None else int(self.edges.max(initial=0)) + 1
        return [f"x{j}" for j in range(n)]

    def to_frame(self) -> pd.DataFrame:
        """One row an item, the most probable first: its probability, and whether it is stable (needs pandas).

        Items are named by ``name``, edges of a graph by their ends ``source`` and ``target``.
        """
        order = np.argsort(-self.max_probability, kind="stable")
        columns: dict[str, Any] = {"name": np.array(self.item_names, dtype=object)[order]}
        if self.edges is not None:
            nodes = np.array(self._names, dtype=object)
            columns = {"source": nodes[self.edges[order, 0]], "target": nodes[self.edges[order, 1]]}
        columns |= {"probability": self.max_probability[order], "stable": self._is_stable[order]}
        return import_pandas("to_frame()").DataFrame(columns)

    def plot(self, **kwargs: Any) -> Any:
        """Draw the probabilities against time; see `bregpath.plots.plot_stability`."""
        from bregpath.plots import plot_stability

        return plot_stability(self, **kwargs)

    def __repr__(self) -> str:
        how = "in complementary pairs" if self.pairs else "independent halves"
        what = "variables" if self.edges is None else "edges"
        best, names = self.max_probability, self.item_names
        order = np.argsort(-best, kind="stable")
        chosen, everything = len(self.selected), np.ones(len(best), dtype=bool)
        n_chosen, n_items = (counted_once(mask, self.groups).sum() for mask in (self._is_stable, everything))
        width = max((len(names[i]) for i in order[: chosen + 3]), default=0)
        lines = [f"{names[i]:>{width}}  {best[i]:.2f}{'  *' if r < chosen else ''}" for r, i in enumerate(order)]
        head = f"Stability selection, {self.n_replicates} replicates {how}: {n_chosen} of {n_items} {what}"
        found = f"probability >= {self.threshold:g}; {self.size[-1]:.1f} {what} a replicate; "
        found += f"expected false {what} <= {self.error_bound:.3g} ({self.bound} bound)"
        return "\n".join([head, found, *shortened(lines, min(chosen, 20) + 3)])


def counted_once(candidates: BoolArray, groups: IntArray | None) -> BoolArray:
    """The candidates, of each group only the first."""
    if groups is None:
        return candidates
    first = np.zeros(len(candidates), dtype=bool)
    members = np.flatnonzero(candidates)
    first[members[np.unique(groups[members], return_index=True)[1]]] = True
    return first
