"""The graph that an estimator has chosen: reading it, its tables, and how sure its edges are."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from copy import copy
from os import PathLike
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bregpath import _interrupts, _validation
from bregpath._typing import Array, BoolArray
from bregpath.estimators.fixed_time import trace_to
from bregpath.estimators.graph_summary import describe_graph
from bregpath.graphs.comparison import GraphComparison, compare_graphs
from bregpath.graphs.export import edge_table, strongest_edges, to_networkx, write_edges, write_graphml
from bregpath.graphs.path import GraphPath
from bregpath.graphs.study import GraphStudy
from bregpath.graphs.tables import group_table, node_table
from bregpath.path import Point
from bregpath.selection.bootstrap import BootstrapIntervals, intervals_of
from bregpath.selection.result import Selection
from bregpath.selection.stability import Stability, stability_of

__all__ = ["ChosenGraph"]


class ChosenGraph:
    """What a fitted graph can be asked; see `AbstractGraph` for its attributes."""

    path_: GraphPath
    selection_: Selection | None
    stability_: Stability | None
    t_: float
    kappa_: float
    weights_: Array
    adjacency_: BoolArray
    fields_: Array
    _study: GraphStudy | None

    def _encode(self, X: Any) -> Array:
        """Rows of new data."""
        raise NotImplementedError

    def _limits(self, p: int) -> AbstractContextManager[Any]:
        """Within which paths of p nodes are traced."""
        return nullcontext()

    # --- the chosen graph ------------------------------------------------------------------------------------

    def _set_time(self, t: float) -> None:
        self.t_ = t
        self.weights_, self.fields_ = self._shown(self.path_, t)
        self.adjacency_ = self.weights_ != 0

    def _shown(self, path: GraphPath, t: float) -> tuple[Array, Array]:
        """Weights of the edges and fields at a time of a path, as the user wants to see them."""
        return path.weights(t), path.at(t).intercept

    def at(self, t: float) -> Any:
        """The same estimator at another time of its path."""
        check_is_fitted(self)
        twin = self._twin()
        twin._set_time(float(t))
        return twin

    def _twin(self) -> Any:
        twin = copy(self)
        twin._study = self._study  # which a copy, as a pickle, leaves behind
        return twin

    def at_sparsity(self, level: float) -> Any:
        """The same estimator at the last time with at most a share ``level`` of all edges."""
        check_is_fitted(self)
        return self.at(self.path_.time_at_sparsity(level))

    def strongest(self, k: int) -> Any:
        """The same estimator with the k strongest edges of the chosen graph, and no others.

        The path is traced again to the chosen time with these edges allowed, so that fields and weights are those of
        a model of its own. `at_sparsity` is something else: the graph of an early time, whose edges are half-grown.

        Examples
        --------
        >>> import bregpath
        >>> data = bregpath.datasets.make_ising_grid(3, T=1.5, n=500, seed=0)
        >>> graph = bregpath.IsingGraph().fit(data.X)
        >>> int(graph.strongest(5).adjacency_.sum()) // 2
        5
        """
        check_is_fitted(self)
        j, m = strongest_edges(self.weights_)
        k = _validation.check_integer("k", k, 0)
        if k > len(j):
            raise ValueError(f"`k` is {k}, but the chosen graph has {len(j)} edges; ask for fewer, or a later time.")
        kept = np.zeros(self.weights_.shape, dtype=bool)
        kept[j[:k], m[:k]] = True
        return self._restricted(kept | kept.T)

    def _restricted(self, kept: BoolArray) -> Any:
        """The same estimator with some edges allowed, at the chosen time."""
        study, twin = self._data.restricted(kept), self._twin()
        with _interrupts.all_or_nothing(), self._limits(study.layout.n_nodes):
            twin._study, twin.path_ = study, trace_to(study, self.t_)
        twin._set_time(min(self.t_, float(twin.path_.t[-1])))
        return twin

    def model(self, t: float | None = None) -> Any:
        """The graphical model at the chosen time, or another."""
        check_is_fitted(self)
        return self.path_.model(self._time(t))

    def point(self, t: float | None = None) -> Point:
        """Parameters at the chosen time, or another."""
        check_is_fitted(self)
        return self.path_.at(self._time(t))

    def _drawn(self, t: float | None) -> tuple[Array, Array]:
        check_is_fitted(self)
        return self._shown(self.path_, self._time(t))

    def graph(self, t: float | None = None) -> Any:
        """The graph as a `networkx.Graph`, with weights and signs."""
        weights, fields = self._drawn(t)
        return to_networkx(weights, self.path_.names, fields=fields if fields.shape == (len(weights),) else None)

    def edge_table(self, t: float | None = None) -> Any:
        """Edges with weights, signs and entry times as a data frame (needs pandas)."""
        return edge_table(self._drawn(t)[0], self.path_.names, entry_times=self.path_.entry_times)

    def write_edges(self, file: str | PathLike[str], t: float | None = None) -> None:
        """Write the edges to a CSV file."""
        write_edges(self._drawn(t)[0], file, self.path_.names, entry_times=self.path_.entry_times)

    def write_graphml(self, file: str | PathLike[str], t: float | None = None) -> None:
        """Write the graph to a GraphML file (needs networkx)."""
        write_graphml(self.graph(t), file)

    def node_table(self, t: float | None = None, *, node_groups: Any = None) -> Any:
        """Degree and strength of each node as a data frame; see `bregpath.graphs.node_table`."""
        return node_table(self._drawn(t)[0], self.path_.names, node_groups)

    def group_table(self, node_groups: Any, t: float | None = None) -> Any:
        """Edges within and between groups of nodes as a data frame; see `bregpath.graphs.group_table`."""
        return group_table(self._drawn(t)[0], node_groups, self.path_.names)

    def compare(self, other: Any) -> GraphComparison:
        """Edges in common with another fitted graph, or a matrix of weights: only here, only there, and differences.

        Nodes of another graph are matched by name; those of a matrix are in the order of this graph.

        Examples
        --------
        >>> import bregpath
        >>> data = bregpath.datasets.make_ising_grid(3, T=1.5, n=500, seed=0)
        >>> graph = bregpath.IsingGraph().fit(data.X)
        >>> both = graph.compare(graph.strongest(5))
        >>> len(both.common), len(both.only_there), both.sign_agreement
        (5, 0, 1.0)
        """
        check_is_fitted(self)
        if isinstance(other, ChosenGraph):
            check_is_fitted(other)
            return compare_graphs(self.weights_, other.weights_, self.path_.names, other.path_.names)
        return compare_graphs(self.weights_, other, self.path_.names)

    def summary(self, n_edges: int = 10) -> str:
        """The chosen graph in a few lines: ``print(graph)`` of a fitted graph.

        Nodes, edges, the rule, the ``n_edges`` strongest edges (with the share of halves of the rows that have them,
        after `stability`), and what to mind.
        """
        check_is_fitted(self)
        return describe_graph(self, _validation.check_integer("n_edges", n_edges, 0))

    def __str__(self) -> str:
        return self.summary() if hasattr(self, "path_") else repr(self)

    def sample(self, n: int, seed: Any = None, **options: Any) -> Array:
        """Draw rows from the chosen model; see `bregpath.graphs.gibbs` for the options of discrete models."""
        return self.model().sample(n, seed=seed, **options)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log-likelihood of the rows of ``X``, as in scikit-learn's covariance estimators; larger is better.

        Composite, unless the loss is the likelihood: log-densities of all nodes given the others, summed. After a fit
        to a covariance matrix, rows are deviations from the mean.
        """
        check_is_fitted(self)
        rows = self._encode(X)
        w = _validation.check_counts(sample_weight, len(rows))
        deviance = float(self.path_.deviance_of(rows, w, np.array([self.t_]))[0])
        return -0.5 * deviance - self._log_units(rows, w)

    def _log_units(self, rows: Array, w: Array) -> float:
        """What a mean log-density loses from the units of the path to those of the data, with its constants."""
        return 0.0

    # --- how sure it is --------------------------------------------------------------------------------------

    def stability(
        self, *, t: float | None = None, n_jobs: int | None = None, seed: Any = 0, **options: Any
    ) -> Stability:
        """Stability selection of the edges: which enter early on most halves of the rows.

        Parameters
        ----------
        t : float, optional
            Read halves at this time alone. With ``count="active"`` and ``max_false=None`` the probabilities are the
            shares of halves whose graph has an edge at t.
        n_jobs, seed, **options
            As in `bregpath.stability_selection`: ``threshold``, ``max_false``, ``n_variables`` (edges),
            ``n_replicates``, ``pairs``, ``bound``, ``count``.

        Returns
        -------
        Stability
            On the clock of ``path_``; ``to_frame()`` names the edges. Edges of weight 0 or ``inf`` are no candidates.
            It is kept as ``stability_``, and `summary` tells it.

        Examples
        --------
        >>> import bregpath
        >>> data = bregpath.datasets.make_ising_grid(3, T=1.5, n=500, seed=0)
        >>> graph = bregpath.IsingGraph().fit(data.X)
        >>> stable = graph.stability(n_replicates=20)
        >>> len(stable.selected) > 4, bool(data.adjacency[tuple(stable.selected.T)].all())
        (True, True)
        """
        study = self._resampled
        with self._limits(study.layout.n_nodes):
            self.stability_ = stability_of(study, n_jobs, seed, self.path_, t, **options)
        return self.stability_

    def intervals(self, t: float | None = None, *, n_jobs: int | None = None, **options: Any) -> BootstrapIntervals:
        """Bootstrap of the weights of the edges at the chosen time, or another.

        They show how much the estimate moves from sample to sample; see `bregpath.bootstrap_intervals`.

        Parameters
        ----------
        t : float, optional
        n_jobs, **options
            As there: ``n_replicates``, ``level``, ``seed``.

        Returns
        -------
        BootstrapIntervals

        Examples
        --------
        >>> import bregpath
        >>> data = bregpath.datasets.make_gaussian_graph(n=300, p=6, graph="chain", seed=0)
        >>> graph = bregpath.GaussianGraph().fit(data.X)
        >>> sure = graph.intervals(n_replicates=20).excludes_zero
        >>> bool((sure == data.adjacency).all())
        True
        """
        study, t = self._resampled, self._time(t)
        with self._limits(study.layout.n_nodes):
            return intervals_of(study, t, n_jobs=n_jobs, path=self.path_, read=self._weights, **options)

    def _weights(self, path: GraphPath, t: float) -> Array:
        return self._shown(path, t)[0]

    @property
    def _data(self) -> GraphStudy:
        """What was fitted, to be fitted again."""
        check_is_fitted(self)
        if self._study is None:
            raise ValueError("A graph that was unpickled has no data; call fit() again.")
        return self._study

    @property
    def _resampled(self) -> GraphStudy:
        """What was fitted, to be fitted again on other rows."""
        if not self._data.layout.has_rows:
            raise ValueError("A covariance matrix has no rows to draw from; fit the graph to data.")
        return self._data

    def plot(self, t: float | None = None, **kwargs: Any) -> Any:
        """Draw the graph: green edges are positive, red ones negative, the width is the strength."""
        check_is_fitted(self)
        return self.path_.plot_graph(self._time(t), **kwargs)

    def save(self, file: str | PathLike[str]) -> None:
        """Write the path to one file; `bregpath.load_path` reads it. The chosen time is ``t_``."""
        check_is_fitted(self)
        self.path_.save(file)

    def _time(self, t: float | None) -> float:
        return self.t_ if t is None else float(t)
