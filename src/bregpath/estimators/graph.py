"""What the graph estimators share: from a table to a path of graphs, a choice on it, and what to do with it."""

from __future__ import annotations

import numbers
import warnings
from abc import abstractmethod
from collections.abc import Sequence
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
from bregpath.flow.stop import AbstractStop, Progress, Result
from bregpath.graphs.export import edge_table, to_networkx, write_edges, write_graphml
from bregpath.graphs.layouts import AbstractLayout
from bregpath.graphs.path import GraphPath
from bregpath.graphs.study import GraphStudy
from bregpath.path import Point
from bregpath.run import TraceOptions
from bregpath.selection.bootstrap import BootstrapIntervals, intervals_of
from bregpath.selection.graphs import criterion, cross_validate_graph, stars
from bregpath.selection.result import Selection
from bregpath.selection.stability import Stability, stability_of

__all__ = ["AbstractGraph", "check_choice"]


class StopAtSparsity(AbstractStop):
    """End a path before it has more than some edges."""

    overshoots = True

    def __init__(self, layout: AbstractLayout, n_edges: int) -> None:
        self.layout = layout
        self.n_edges = n_edges

    def __call__(self, progress: Progress) -> bool:
        if progress.n_active <= self.n_edges:  # an edge has one active coefficient at least
            return False
        weights = self.layout.weights(progress.intercept, progress.coef[:, 0])
        return bool(np.count_nonzero(weights) // 2 > self.n_edges)


@dataclass(eq=False, repr=False, kw_only=True)
class GraphParameters(BaseEstimator):
    """Parameters that all graphs share; see `AbstractGraph`."""

    stop: str | float = "ebic"
    gamma: float = 0.25
    cv: Any = 5
    mask: Any = None
    edge_weights: Any = None
    kappa: float = 10.0
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
    stop : {"ebic", "bic", "cv", "cv-1se", "mdc", "stars"} or float, default "ebic"
        How the time is chosen: an information criterion; cross-validation of the (composite) deviance, its best time or
        the sparsest within one standard error; cross-validation of the second-order MDC (Ising and Potts); the densest
        stable graph (StARS); or a given time t.
    gamma : float
        Price of the search in EBIC; 0.25 for Ising and Potts, 0.5 for Gaussian graphs.
    cv : int, splitter or iterable, default 5
        Folds, as in `bregpath.cross_validate`.
    mask : array-like of shape (p, p), optional
        False where an edge is forbidden.
    edge_weights : array-like of shape (p, p), optional
        Relative thresholds of the edges: 0 is never penalised, ``inf`` never enters.
    kappa : float, default 10
        Damping. Larger is less biased and costs more.
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
    t_ : float
        The chosen time.
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
    weights_: Array
    adjacency_: BoolArray
    fields_: Array
    loss: str
    saturation: float | None
    _study: GraphStudy | None

    # --- what each model does on its own ---------------------------------------------------------------------

    _losses: tuple[str, ...] = ()
    _rules: tuple[str, ...] = ("ebic", "bic", "cv", "cv-1se", "mdc", "stars")

    @abstractmethod
    def _read(self, X: Any, w: Any) -> tuple[AbstractLayout, Array, Array]:
        """The layout, rows and weights of the data."""

    @abstractmethod
    def _encode(self, X: Any) -> Array:
        """Rows of new data."""

    def _prepare(self, X: Any, w: Any) -> GraphStudy:
        """All that is checked before a path is traced."""
        layout, rows, weights = self._read(X, w)
        names = ("step", "tol", "t", "t_ratio", "n_times", "saturation", "screening", "progress")
        options = {name: getattr(self, name) for name in names}
        if self.max_sparsity is not None:
            level, p = _validation.check_number("max_sparsity", self.max_sparsity), layout.n_nodes
            options["stop"] = StopAtSparsity(layout, int(level * p * (p - 1) / 2 + 1e-9))
        kappa = _validation.check_number("kappa", self.kappa)
        thresholds = self._thresholds(layout.n_nodes)
        return GraphStudy(layout, rows, weights, thresholds, kappa, TraceOptions(**options))

    def _thresholds(self, p: int) -> Array:
        """Weights of the edges, checked, with ``inf`` where they are forbidden."""
        weights = np.ones((p, p))
        if self.edge_weights is not None:
            weights = _square("edge_weights", self.edge_weights, p, float)
            if (weights < 0).any():
                raise ValueError("`edge_weights` must be non-negative (0 = never penalised, inf = never enters).")
        if self.mask is not None:
            weights = np.where(_square("mask", self.mask, p, bool), weights, np.inf)
        return weights

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
        study = self._prepare(X, sample_weight)
        self.n_features_in_ = study.layout.n_nodes
        if _frames.is_frame(X):
            self.feature_names_in_ = np.array(study.layout.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_
        with _interrupts.all_or_nothing(), self._limits(study.layout.n_nodes):
            if self._is_time:
                path, selection = _trace_to(study, _validation.check_number("stop", self.stop)), None
                chosen = min(float(self.stop), float(path.t[-1]))
            else:
                selection = self._select(study)
                path, chosen = selection.path, selection.t
        self._study, self.path_, self.selection_ = study, path, selection
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
        measure = "mdc" if self.stop == "mdc" else "deviance"
        selection = cross_validate_graph(study, self.cv, measure, self.n_jobs, self.random_state)
        return selection.one_se() if self.stop == "cv-1se" else selection

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_study": None}  # as a path does, leave the data behind

    # --- the chosen graph ------------------------------------------------------------------------------------

    def _set_time(self, t: float) -> None:
        self.t_ = t
        self.weights_, self.fields_ = self._parameters(t)
        self.adjacency_ = self.weights_ != 0

    def _parameters(self, t: float) -> tuple[Array, Array]:
        """Weights of the edges and fields at a time, as the user wants to see them."""
        return self.path_.weights(t), self.path_.at(t).intercept

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

    def graph(self, t: float | None = None) -> Any:
        """The graph as a `networkx.Graph`, with weights and signs."""
        check_is_fitted(self)
        weights, fields = self._parameters(self._time(t))
        return to_networkx(weights, self.path_.names, fields=fields if fields.shape == (len(weights),) else None)

    def edge_table(self, t: float | None = None) -> Any:
        """Edges with weights, signs and entry times as a data frame (needs pandas)."""
        check_is_fitted(self)
        return edge_table(self._parameters(self._time(t))[0], self.path_.names, entry_times=self.path_.entry_times)

    def write_edges(self, file: str | PathLike[str], t: float | None = None) -> None:
        """Write the edges to a CSV file."""
        check_is_fitted(self)
        weights, times = self._parameters(self._time(t))[0], self.path_.entry_times
        write_edges(weights, file, self.path_.names, entry_times=times)

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
        """Edges that enter on most random halves of the rows; ``options`` as in `bregpath.stability_selection`."""
        with self._limits(self.n_features_in_):
            return stability_of(self._resampled, n_jobs, seed, **options)

    def intervals(self, t: float | None = None, *, n_jobs: int | None = None, **options: Any) -> BootstrapIntervals:
        """Bootstrap of the parameters at the chosen time, or another; ``options`` as in `bootstrap_intervals`."""
        with self._limits(self.n_features_in_):
            return intervals_of(self._resampled, self._time(t), n_jobs=n_jobs, **options)

    @property
    def _resampled(self) -> GraphStudy:
        """What was fitted, to be fitted again on other rows."""
        check_is_fitted(self)
        if self._study is None:
            raise ValueError("A graph that was unpickled has no data; call fit() again.")
        if not self._study.has_rows:
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


def check_choice(name: str, value: Any, known: Sequence[str], other: str = "") -> None:
    """One of some words; ``other`` says what else would do."""
    if value not in known:
        raise ValueError(f"`{name}` must be one of {list(known)}{other}, found {value!r}.")


def _trace_to(study: GraphStudy, t: float) -> GraphPath:
    """The path as far as a time, also if that lies beyond the default window."""
    path = study.trace(stop=t)
    if path.t[-1] < t and path.result is Result.COMPLETED:
        path = path.extend(t)
    if path.t[-1] < t * (1 - 1e-9):
        warnings.warn(
            f"`stop`={t:g} lies beyond the end of the path, t={path.t[-1]:.4g}, whose graph is used. {path.result}",
            UserWarning,
            stacklevel=3,
        )
    return path


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
