"""What the graph estimators share: from a table to a path of graphs, a choice on it, and what to do with it."""

from __future__ import annotations

import numbers
from abc import abstractmethod
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from bregpath import _frames, _interrupts, _validation
from bregpath._typing import Array, BoolArray
from bregpath.estimators.fixed_time import trace_to
from bregpath.graphs.export import edge_table, to_networkx, write_edges, write_graphml
from bregpath.graphs.layouts import AbstractLayout
from bregpath.graphs.path import GraphPath
from bregpath.graphs.study import GraphStudy, StopAtSparsity, edge_thresholds
from bregpath.path import Point
from bregpath.run import TraceOptions
from bregpath.selection.bootstrap import BootstrapIntervals, intervals_of
from bregpath.selection.checks import check_choice
from bregpath.selection.graphs import criterion, cross_validate_graph, stars
from bregpath.selection.kappas import CV_RULES, check_kappas, check_stop_of_kappas, chosen_by
from bregpath.selection.result import Selection
from bregpath.selection.stability import Stability, stability_of

__all__ = ["AbstractGraph"]


@dataclass(eq=False, repr=False, kw_only=True)
class GraphParameters(BaseEstimator):
    """Parameters that all graphs share; see `AbstractGraph`."""

    stop: str | float = "ebic"
    gamma: float = 0.25
    cv: Any = 5
    mask: Any = None
    edge_weights: Any = None
    kappa: Any = 10.0
    flow: Any = "glbi"
    step: float | str = "adaptive"
    tol: float = 0.05
    t: Any = None
    t_ratio: float = 100.0
    n_times: int = 100
    max_sparsity: float | None = None
    screening: bool = True
    stars_beta: float = 0.05
    n_subsamples: int = 20
    n_jobs: int | None = None
    random_state: Any = 0
    progress: bool | None = False


class AbstractGraph(GraphParameters):
    """A sparse graph at one time of a Bregman path.

    The parameters below are those of `IsingGraph`, `PottsGraph` and `GaussianGraph` alike.

    Parameters
    ----------
    loss : str
        See the class.
    stop : {"ebic", "bic", "cv", "cv-1se", "cv-sparse", "mdc", "stars"} or float, default "ebic"
        How the time is chosen: an information criterion; cross-validation of the (composite) deviance, its best time,
        the sparsest within one standard error, or (of several kappas) the best time of the largest one within one
        standard error; cross-validation of the second-order MDC (Ising and Potts); the densest
        stable graph (StARS); or a given time t.
    gamma : float
        Price of the search in EBIC; 0.25 for Ising and Potts, 0.5 for Gaussian graphs.
    cv : int, splitter or iterable, default 5
        Folds, as in `bregpath.cross_validate`.
    mask : array-like of shape (p, p), optional
        False where an edge is forbidden.
    edge_weights : array-like of shape (p, p), optional
        Relative thresholds of the edges: 0 is never penalised, ``inf`` never enters.
    kappa : float, "cv" or list of float, default 10
        Damping. Larger is less biased and costs more. Several are chosen from by cross-validation, as in
        `bregpath.cross_validate`.
    flow : {"glbi", "giss"} or class, default "glbi"
        The dynamics; "giss" is its limit for infinite kappa (not for groups of parameters).
    step : "adaptive" or float, default "adaptive"
        Adaptive steps meet ``tol``; a number is the paper's iteration with that fixed step.
    tol : float, default 0.05
        Error of the parameters allowed to a step, relative to the largest.
    t, t_ratio, n_times, saturation, screening, progress
        As in `bregpath.trace_path`; the time is chosen among those reported.
    max_sparsity : float, optional
        End the path before it has more than this share of all edges; dense graphs cost most and are rarely wanted.
        Not used if ``stop`` is a time.
    stars_beta : float, default 0.05
        Instability that StARS allows.
    n_subsamples : int, default 20
        Subsamples of StARS.
    n_jobs : int, optional
        Threads over folds or subsamples.
    random_state : int or None, default 0
        How rows are dealt into folds and subsamples.

    Attributes
    ----------
    weights_ : ndarray of shape (p, p)
        Weights of the edges at the chosen time; zero where there is none.
    adjacency_ : ndarray of bool of shape (p, p)
    fields_ : ndarray
        Unpenalised parameters.
    t_, kappa_ : float
        The chosen time, and kappa.
    path_ : GraphPath
        Graphs of all sizes.
    selection_ : Selection or None
        The curve by which the time was chosen; None if ``stop`` is a number.
    n_features_in_, feature_names_in_
        The nodes.
    """

    path_: GraphPath
    selection_: Selection | None
    t_: float
    kappa_: float
    weights_: Array
    adjacency_: BoolArray
    fields_: Array
    loss: str
    saturation: float | None
    _study: GraphStudy | None

    # --- what each model does on its own ---------------------------------------------------------------------

    _losses: tuple[str, ...] = ()
    _rules: tuple[str, ...] = ("ebic", "bic", *CV_RULES, "mdc", "stars")

    @abstractmethod
    def _read(self, X: Any, w: Any) -> tuple[AbstractLayout, Array, Array]:
        """The layout, rows and weights of the data."""

    @abstractmethod
    def _encode(self, X: Any) -> Array:
        """Rows of new data."""

    def _prepare(self, X: Any, w: Any) -> GraphStudy:
        """All that is checked before a path is traced."""
        layout, rows, weights = self._read(X, w)
        names = ("step", "tol", "t", "t_ratio", "n_times", "saturation", "screening", "progress", "flow")
        options = {name: getattr(self, name) for name in names}
        if self.max_sparsity is not None:
            level, p = _validation.check_number("max_sparsity", self.max_sparsity), layout.n_nodes
            options["stop"] = StopAtSparsity(layout, int(level * p * (p - 1) / 2 + 1e-9))
        kappas = check_kappas(self.kappa)
        traced, kappa = TraceOptions(**options).with_kappa(self.kappa if kappas is None else kappas[0])
        thresholds = edge_thresholds(layout.n_nodes, self.edge_weights, self.mask)
        return GraphStudy(layout, rows, weights, thresholds, kappa, traced)

    # --- fitting ---------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Trace the path of graphs and choose one.

        Parameters
        ----------
        X : array or data frame of shape (n, p)
            One column a node. Missing values are refused.
        y : ignored
        sample_weight : array-like of shape (n,), optional
            Weight k equals k copies of a row.

        Returns
        -------
        self
        """
        check_choice("loss", self.loss, self._losses)
        if not self._is_time:
            check_choice("stop", self.stop, self._rules, " or a time t")
        check_stop_of_kappas(self.stop, check_kappas(self.kappa) is not None)
        study = self._prepare(X, sample_weight)
        self.n_features_in_ = study.layout.n_nodes
        if _frames.is_frame(X):
            self.feature_names_in_ = np.array(study.layout.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_
        with _interrupts.all_or_nothing(), self._limits(study.layout.n_nodes):
            if self._is_time:
                path, selection = trace_to(study, self.stop), None
                chosen = min(float(self.stop), float(path.t[-1]))
            else:
                selection = self._select(study)
                path, chosen = selection.path, selection.t
        several = selection is not None and selection.surface
        self._study = study.with_kappa(path.kappa) if several else study
        self.path_, self.selection_, self.kappa_ = path, selection, path.kappa
        self._set_time(chosen)
        return self

    def _limits(self, p: int) -> AbstractContextManager[Any]:
        """Within which paths of p nodes are traced."""
        return nullcontext()

    @property
    def _is_time(self) -> bool:
        return isinstance(self.stop, numbers.Real) and not isinstance(self.stop, bool)

    def _select(self, study: GraphStudy) -> Selection:
        if self.stop in ("ebic", "bic"):
            return criterion(study, self.stop, self.gamma)
        if self.stop == "stars":
            return stars(study, self.stars_beta, self.n_subsamples, self.n_jobs, self.random_state)
        measures = ("mdc" if self.stop == "mdc" else "deviance",)
        kappas = check_kappas(self.kappa)
        selection = cross_validate_graph(study, self.cv, measures, self.n_jobs, self.random_state, kappas=kappas)
        return chosen_by(selection, str(self.stop))

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_study": None}  # as a path does, leave the data behind

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
        twin = copy(self)
        twin._study = self._study  # which a copy, as a pickle, leaves behind
        twin._set_time(float(t))
        return twin

    def at_sparsity(self, level: float) -> Any:
        """The same estimator at the last time with at most a share ``level`` of all edges."""
        check_is_fitted(self)
        return self.at(self.path_.time_at_sparsity(level))

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

    def sample(self, n: int, seed: Any = None, **options: Any) -> Array:
        """Draw rows from the chosen model; see `bregpath.graphs.gibbs` for the options of discrete models."""
        return self.model().sample(n, seed=seed, **options)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log-likelihood of the rows of ``X``: larger is better. Composite, unless the loss is the likelihood."""
        check_is_fitted(self)
        rows = self._encode(X)
        w = _validation.check_counts(sample_weight, len(rows))
        return -0.5 * float(self.path_.deviance_of(rows, w, np.array([self.t_]))[0])

    # --- how sure it is --------------------------------------------------------------------------------------

    def stability(self, *, n_jobs: int | None = None, seed: Any = 0, **options: Any) -> Stability:
        """Stability selection of the edges: which enter early on most halves of the rows.

        Parameters
        ----------
        n_jobs, seed, **options
            As in `bregpath.stability_selection`: ``threshold``, ``max_false``, ``n_variables`` (edges),
            ``n_replicates``, ``pairs``, ``bound``, ``count``.

        Returns
        -------
        Stability
            On the clock of ``path_``. Edges of weight 0 or ``inf`` are no candidates.

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
            return stability_of(study, n_jobs, seed, self.path_, **options)

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
    def _resampled(self) -> GraphStudy:
        """What was fitted, to be fitted again on other rows."""
        check_is_fitted(self)
        if self._study is None:
            raise ValueError("A graph that was unpickled has no data; call fit() again.")
        if not self._study.layout.has_rows:
            raise ValueError("A covariance matrix has no rows to draw from; fit the graph to data.")
        return self._study

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
