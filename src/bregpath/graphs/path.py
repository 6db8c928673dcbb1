"""Paths of graphs: from the empty graph on, edges enter one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bregpath._typing import Array, BoolArray, IntArray
from bregpath._validation import check_time
from bregpath.graphs.export import edge_table, to_networkx, write_edges, write_graphml
from bregpath.graphs.layouts import AbstractLayout
from bregpath.path import Path, Point

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

__all__ = ["GraphPath"]


@dataclass(frozen=True, eq=False, repr=False)
class GraphPath(Path):
    """Sparse graphs of all sizes, indexed by time ``t``, from the empty one on.

    All that is said of `bregpath.Path` holds. What differs: a coefficient belongs to a pair of nodes.

    Attributes
    ----------
    coef : ndarray of shape (n_times, p, p)
        Weights of the edges: couplings of an Ising model, norms of blocks of a Potts model, partial correlations of a
        Gaussian graph.
    intercept : ndarray of shape (n_times, k)
        Unpenalised parameters: fields, or diagonals of the precision matrix. `at` has the means of a Gaussian graph.
    entry_times, exit_times : ndarray of shape (p, p)
        Exact time at which each edge first entered (``inf``: never), and last left for good (``inf``: it did not).
    n_edges : ndarray of shape (n_times,)

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_ising_grid(3, T=1.0, n=500, seed=1)
    >>> path = bregpath.IsingGraph().fit(data.X).path_
    >>> path.at_sparsity(0.2).coef.shape
    (9, 9)
    """

    counts: ClassVar[str] = "coefficients"

    @property
    def layout(self) -> AbstractLayout:
        """What the coefficients mean."""
        return self.units

    # --- reading ---------------------------------------------------------------------------------------------

    def _parameters(self, t: float) -> tuple[Array, Array]:
        """All parameters at a time, one after the other."""
        t = check_time(t)
        alpha, columns, values = self.read(np.array([t]))
        beta = np.zeros(self.trajectory.beta_null.shape[0])
        beta[columns] = values[0, :, 0]
        return alpha[0], beta

    def at(self, t: float) -> Point:
        """Fields and the matrix of couplings at any time up to the end of the path, exactly.

        For a Gaussian graph these are the means and the precision matrix.
        """
        return Point(check_time(t), *self.layout.parameters(*self._parameters(t)))

    def model(self, t: float) -> Any:
        """The graphical model at ``t``: it can be sampled from."""
        return self.layout.model(*self._parameters(t))

    def weights(self, t: float) -> Array:
        """Weights of the edges at ``t``, symmetric (p, p) with zeros where there is none."""
        return self.layout.weights(*self._parameters(t))

    def adjacency(self, t: float) -> BoolArray:
        """Which nodes are joined at ``t``."""
        return self.weights(t) != 0

    def support(self, t: float) -> Array:
        """Edges at ``t`` as rows (j, k), j < k."""
        return np.argwhere(np.triu(self.adjacency(t)))

    def graph(self, t: float) -> nx.Graph:
        """The graph at ``t`` with weights and signs, as networkx has it."""
        point = self.at(t)
        one_a_node = np.shape(point.intercept) == (self.layout.n_nodes,)
        return to_networkx(self.weights(t), self.names, fields=point.intercept if one_a_node else None)

    def time_at_sparsity(self, level: float) -> float:
        """The last time of the path before it has more than a share ``level`` of all p (p - 1) / 2 edges."""
        if not 0.0 <= float(level) <= 1.0:
            raise ValueError(f"`level` must be a share of edges between 0 and 1, found {level!r}.")
        p = self.layout.n_nodes
        allowed = int(np.floor(float(level) * p * (p - 1) / 2 + 1e-9))
        from_start = int(np.count_nonzero(self.entry_times == 0.0)) // 2
        if from_start > allowed:
            raise ValueError(
                f"`level`={level:g} allows {allowed} edges, but {from_start} are there from the start "
                "(`edge_weights` 0); ask for more."
            )
        times, _, opened = self._edge_events
        too_many = np.flatnonzero(from_start + np.cumsum(np.where(opened, 1, -1)) > allowed)
        if not len(too_many):
            return float(self.t[-1])
        # Just before, so that rounding cannot let the next edge in.
        return float(min(times[too_many[0]] * (1 - 1e-12), self.t[-1]))

    def at_sparsity(self, level: float) -> Point:
        """The model with a wanted share of all possible edges; see `time_at_sparsity`."""
        return self.at(self.time_at_sparsity(level))

    # --- tables ----------------------------------------------------------------------------------------------

    @cached_property
    def coef(self) -> Array:  # type: ignore[override]
        return np.stack([self.layout.weights(alpha, beta) for alpha, beta in self._models])

    @cached_property
    def intercept(self) -> Array:  # type: ignore[override]
        return self._table[0]

    @cached_property
    def n_edges(self) -> Array:
        found = [self.layout.weights(alpha, beta) for alpha, beta in self._models]
        return np.array([np.count_nonzero(weights) // 2 for weights in found])

    @property
    def _models(self) -> Iterator[tuple[Array, Array]]:
        """All parameters at every time of the path, one after the other."""
        alpha, columns, values = self._table
        for i in range(len(self.t)):
            beta = np.zeros(self.n_features)
            beta[columns] = values[i, :, 0]
            yield alpha[i], beta

    @property
    def sparsity(self) -> Array:
        """Share of all possible edges at every time."""
        p = self.layout.n_nodes
        return self.n_edges / (p * (p - 1) / 2)

    @cached_property
    def _edge_events(self) -> tuple[Array, IntArray, BoolArray]:
        """Time, the two nodes (j, k), and direction (True: opened) of every change of the graph, in order of time."""
        # An edge is open while it has a coefficient; with the "and" rule of node-wise regressions, while it has both.
        layout: Any = self.layout
        needed = 2 if getattr(layout, "is_nodewise", False) and layout.rule == "and" else 1
        pairs = layout.pairs
        active = np.zeros((layout.n_nodes, layout.n_nodes), dtype=int)
        np.add.at(active, tuple(self._free_ends), 1)
        changes = []
        for column, time, entered in zip(*self._events, strict=True):
            j, k = pairs[column]
            active[j, k] += 1 if entered else -1
            if active[j, k] == (needed if entered else needed - 1):
                changes.append((time, j, k, entered))
        times = np.array([change[0] for change in changes])
        ends = np.array([change[1:3] for change in changes], dtype=int).reshape(-1, 2)
        return times, ends, np.array([change[3] for change in changes], dtype=bool)

    @property
    def _free_ends(self) -> IntArray:
        """The nodes (2, m) of the coefficients that were never penalised."""
        return self.layout.pairs[np.any(self.trajectory.beta_null != 0, axis=1)].T

    @cached_property
    def entry_times(self) -> Array:  # type: ignore[override]
        out = np.full((self.layout.n_nodes, self.layout.n_nodes), np.inf)
        for time, (j, k), opened in zip(*self._edge_events, strict=True):
            if opened:
                out[j, k] = out[k, j] = min(out[j, k], time)
        j, k = self._free_ends
        out[j, k] = out[k, j] = 0.0
        return out

    @cached_property
    def exit_times(self) -> Array:  # type: ignore[override]
        out = np.full((self.layout.n_nodes, self.layout.n_nodes), np.inf)
        for time, (j, k), opened in zip(*self._edge_events, strict=True):
            out[j, k] = out[k, j] = np.inf if opened else time
        return out

    def edge_table(self, t: float) -> pd.DataFrame:
        """Edges at ``t`` with weights, signs and entry times, in their order of entry (needs pandas)."""
        return edge_table(self.weights(t), self.names, entry_times=self.entry_times)

    def write_edges(self, file: str | PathLike[str], t: float) -> None:
        """Write the edges at ``t`` to a CSV file."""
        write_edges(self.weights(t), file, self.names, entry_times=self.entry_times)

    def write_graphml(self, file: str | PathLike[str], t: float) -> None:
        """Write the graph at ``t`` to a GraphML file (needs networkx)."""
        write_graphml(self.graph(t), file)

    def to_frame(self) -> pd.DataFrame:
        """One row a time: t, number of edges, deviance ratio, and the weights of the edges that were ever there."""
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("to_frame() needs pandas: pip install pandas") from None
        table = {"t": self.t, "n_edges": self.n_edges, "deviance_ratio": self.deviance_ratio}
        for j, k in np.argwhere(np.triu(np.isfinite(self.entry_times), 1)):
            table[f"{self.names[j]} -- {self.names[k]}"] = self.coef[:, j, k]
        return pd.DataFrame(table)

    # --- data ------------------------------------------------------------------------------------------------

    def decision_function(self, X: Any, t: float, offset: Any = None) -> Array:
        """Not defined for a graph; see `model`, and ``predict_proba`` and ``score`` of its estimator."""
        raise TypeError("A graph has no response: use model(t), or score() of its estimator.")

    predict = decision_function  # type: ignore[assignment]

    # --- names and pictures ----------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """The nodes."""
        return list(self.layout.names)

    @property
    def feature_names(self) -> list[str]:
        """Names of the coefficients: the pair of nodes."""
        return [f"{self.names[j]} -- {self.names[k]}" for j, k in self.layout.pairs]

    def plot_graph(self, t: float, **kwargs: Any) -> Any:
        """Draw the graph at ``t``; see `bregpath.plots.plot_graph`."""
        from bregpath.plots import plot_graph

        return plot_graph(self.weights(t), self.names, **kwargs)

    def __repr__(self) -> str:
        return self._table_of(f"GraphPath of {self.layout.n_nodes} nodes", "Edges", self.n_edges)
