"""Paths of graphs: from the empty graph on, edges enter one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import starmap
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bregpath._frames import import_pandas
from bregpath._typing import Array, BoolArray, IntArray
from bregpath._validation import check_time
from bregpath.graphs.export import edge_table, to_networkx, write_edges, write_graphml
from bregpath.graphs.held_out import HeldOutRows
from bregpath.graphs.layouts import AbstractLayout
from bregpath.graphs.problems import all_pairs
from bregpath.path import Complexity, Path, Point, describe, of_its

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

__all__ = ["GraphPath"]


@dataclass(frozen=True, eq=False, repr=False)
class GraphPath:
    """Sparse graphs of all sizes, indexed by time ``t``, from the empty one on.

    What a `bregpath.Path` is to models of a response, with edges in place of columns.

    Attributes
    ----------
    path : Path
        The coefficients that were traced, one or several an edge.
    layout : AbstractLayout
        What they mean.
    t : ndarray of shape (n_times,)
    intercept, coef : ndarray of shape (n_times, ...)
        Parameters of the models: ``intercept[i]`` and ``coef[i]`` are those of ``at(t[i])``. Fields and couplings, (p,)
        and (p, p) for an Ising model, with an entry a state in place of a node for a Potts model; means and precision
        matrices of a Gaussian graph.
    n_edges, sparsity : ndarray of shape (n_times,)
        Number of edges, and their share of all that are possible; `weights` tells what they weigh.
    df : ndarray of shape (n_times,)
        Number of non-zero coefficients.
    entry_times, exit_times : ndarray of shape (p, p)
        Exact time at which each edge first entered (``inf``: never), and last left for good (``inf``: it did not).
    deviance, deviance_ratio, null_deviance, loss, kappa, result, stats
        As those of `bregpath.Path`.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_ising_grid(3, T=1.0, n=500, seed=1)
    >>> path = bregpath.IsingGraph().fit(data.X).path_
    >>> path.at_sparsity(0.2).coef.shape, path.all_weights().shape
    ((9, 9), (100, 9, 9))
    """

    path: Path
    layout: AbstractLayout
    counts: ClassVar[str] = "edges"  # what enters, for figures
    value_name: ClassVar[str] = "Weight"
    n_outputs: ClassVar[int] = 1
    classes: ClassVar[None] = None

    # --- of the coefficients ---------------------------------------------------------------------------------

    t = of_its("path.t")
    deviance = of_its("path.deviance")
    deviance_ratio = of_its("path.deviance_ratio")
    null_deviance = of_its("path.null_deviance")
    df = of_its("path.df")
    loss = of_its("path.loss")
    kappa = of_its("path.kappa")
    result = of_its("path.result")
    stats = of_its("path.stats")
    trajectory = of_its("path.trajectory")
    event_times = of_its("path.event_times")

    @property
    def scale(self) -> Array:
        """Of the pairs of nodes: weights have no units."""
        return np.ones(self.layout.n_nodes * (self.layout.n_nodes - 1) // 2)

    # --- reading ---------------------------------------------------------------------------------------------

    def _at(self, t: float) -> tuple[Array, Array]:
        return next(self.layout.each_time(*self.path.read(np.array([check_time(t)]))))

    def at(self, t: float) -> Point:
        """Fields and the matrix of couplings at any time up to the end of the path, exactly.

        For a Gaussian graph these are the means and the precision matrix.
        """
        return Point(check_time(t), *self.layout.parameters(*self._at(t)))

    def model(self, t: float) -> Any:
        """The graphical model at ``t``: it can be sampled from."""
        return self.layout.model(*self._at(t))

    def weights(self, t: float) -> Array:
        """Weights of the edges at ``t``, symmetric (p, p) with zeros where there is none.

        Couplings of an Ising model, norms of blocks of a Potts model, partial correlations of a Gaussian graph.
        """
        return self.layout.weights(*self._at(t))

    def all_weights(self, times: Array | None = None) -> Array:
        """Weights of the edges at several times, by default those of the path: shape (n_times, p, p)."""
        table = self.path.table if times is None else self.path.read(times)
        return np.stack([*starmap(self.layout.weights, self.layout.each_time(*table))])

    def adjacency(self, t: float) -> BoolArray:
        """Which nodes are joined at ``t``."""
        return self.weights(t) != 0

    def support(self, t: float) -> Array:
        """Edges at ``t`` as rows (j, k), j < k."""
        return np.argwhere(np.triu(self.adjacency(t)))

    def read(self, times: Array) -> tuple[Array, IntArray, Array]:
        """Many graphs at once: free parameters (T, k), the edges that ever were (E,), and their weights (T, E, 1).

        Edges are counted as `feature_names` are, and come in the order in which they entered.
        """
        j, k = all_pairs(self.layout.n_nodes).T
        entry = self.entry_times[j, k]
        order = np.argsort(entry, kind="stable")
        edges = order[np.isfinite(entry[order])]
        j, k, table = j[edges], k[edges], self.path.read(times)
        weights = [self.layout.weights(*parameters)[j, k] for parameters in self.layout.each_time(*table)]
        return table[0], edges, np.reshape(weights, (len(times), len(edges), 1))

    def deviance_of(self, rows: Array, w: Array, times: Array) -> Array:
        """Twice the negative mean log-likelihood of some rows, codes of states or numbers, at some times.

        Composite, unless the loss is the likelihood. Constants that do not depend on the model are left out.
        """
        # A path that ended before stays where it ended; its record may go on for a part of a step.
        models = self.trajectory.read(np.minimum(times, self.t[-1]))
        return HeldOutRows(self.layout, self.kappa, rows, w, models).deviance

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
    def coef(self) -> Array:
        return np.stack([couplings for _, couplings in self._models()])

    @cached_property
    def intercept(self) -> Array:
        return np.stack([fields for fields, _ in self._models()])

    def _models(self) -> Iterator[tuple[Array, Array]]:
        return starmap(self.layout.parameters, self.layout.each_time(*self.path.table))

    @cached_property
    def _sizes(self) -> IntArray:
        """Edges and their independent parameters at every time, (2, n_times)."""
        sizes = []
        for alpha, beta in self.layout.each_time(*self.path.table):
            weights = self.layout.weights(alpha, beta)
            sizes.append((np.count_nonzero(weights) // 2, self.layout.n_parameters(beta, weights)))
        return np.array(sizes).T

    @property
    def n_edges(self) -> Array:
        return self._sizes[0]

    @property
    def sparsity(self) -> Array:
        p = self.layout.n_nodes
        return self.n_edges / (p * (p - 1) / 2)

    @property
    def has_likelihood(self) -> bool:
        """Whether `deviance` is that of a likelihood, be it a composite one."""
        return self.layout.likelihood is self.layout

    @property
    def complexity(self) -> Complexity:
        """What information criteria pay for; see `bregpath.selection.information_criterion`."""
        n_edges, parameters = self._sizes
        return Complexity(n_edges, parameters, self.layout.n_sightings, 2.0 * np.log(self.layout.n_nodes))

    @cached_property
    def _edge_events(self) -> tuple[Array, IntArray, BoolArray]:
        """Time, the two nodes (j, k), and direction (True: opened) of every change of the graph, in order of time."""
        # An edge is open while it has as many coefficients as it needs.
        pairs, needed = self.layout.pairs, self.layout.n_needed
        active = np.zeros((self.layout.n_nodes, self.layout.n_nodes), dtype=int)
        np.add.at(active, tuple(self._free_ends), 1)
        changes = []
        for column, time, entered in zip(*self.path.events, strict=True):
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
    def entry_times(self) -> Array:
        out = np.full((self.layout.n_nodes, self.layout.n_nodes), np.inf)
        for time, (j, k), opened in zip(*self._edge_events, strict=True):
            if opened:
                out[j, k] = out[k, j] = min(out[j, k], time)
        j, k = self._free_ends
        out[j, k] = out[k, j] = 0.0
        return out

    @cached_property
    def exit_times(self) -> Array:
        out = np.full((self.layout.n_nodes, self.layout.n_nodes), np.inf)
        for time, (j, k), opened in zip(*self._edge_events, strict=True):
            out[j, k] = out[k, j] = np.inf if opened else time
        return out

    def graph(self, t: float) -> nx.Graph:
        """The graph at ``t`` with weights and signs, as networkx has it."""
        fields = self.at(t).intercept
        return to_networkx(self.weights(t), self.names, fields=fields if len(fields) == self.layout.n_nodes else None)

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
        _, edges, weights = self.read(self.t)
        table = {"t": self.t, "n_edges": self.n_edges, "deviance_ratio": self.deviance_ratio}
        names = self.feature_names
        columns = {names[edges[i]]: weights[:, i, 0] for i in np.argsort(edges)}
        return import_pandas("to_frame()").DataFrame(table | columns)

    # --- going on, keeping, names and pictures ---------------------------------------------------------------

    def extend(self, t_max: float) -> GraphPath:
        """The same path, traced on to ``t_max``; equal to having asked for more at once."""
        return GraphPath(self.path.extend(t_max), self.layout)

    def save(self, file: str | PathLike[str]) -> None:
        """Write the path to one file, as `bregpath.Path.save` does; `bregpath.load_path` reads it."""
        from bregpath.path_file import write_path

        write_path(self.path, file, self.layout)

    def predict(self, X: Any, t: float, offset: Any = None) -> Array:
        """Not defined for a graph; see `model`, and ``predict_proba`` and ``score`` of its estimator."""
        raise TypeError("A graph has no response: use model(t), or score() of its estimator.")

    decision_function = predict

    @property
    def names(self) -> list[str]:
        """The nodes."""
        return list(self.layout.names)

    @property
    def feature_names(self) -> list[str]:
        """The pairs of nodes, (0, 1), (0, 2), ..."""
        names = self.layout.names
        return [f"{names[j]} -- {names[k]}" for j, k in all_pairs(len(names))]

    def plot(self, **kwargs: Any) -> Any:
        """Draw the weights of the edges against time; see `bregpath.plots.plot_path`."""
        from bregpath.plots import plot_path

        return plot_path(self, **kwargs)

    def plot_graph(self, t: float, **kwargs: Any) -> Any:
        """Draw the graph at ``t``; see `bregpath.plots.plot_graph`."""
        from bregpath.plots import plot_graph

        return plot_graph(self.weights(t), self.names, **{"has_sign": self.layout.has_sign, **kwargs})

    def __repr__(self) -> str:
        return describe(self.path, f"GraphPath of {self.layout.n_nodes} nodes", "Edges", self.n_edges)
