"""What the graph estimators share: from a table to a path of graphs, and a choice on it."""

from __future__ import annotations

import numbers
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from bregpath import _frames, _interrupts, _validation
from bregpath._typing import Array, BoolArray
from bregpath.estimators.chosen import ChosenGraph
from bregpath.estimators.fixed_time import trace_to
from bregpath.graphs.layouts import AbstractLayout
from bregpath.graphs.study import GraphStudy, StopAtSparsity, edge_thresholds
from bregpath.run import TraceOptions
from bregpath.selection.checks import check_choice, make_generator
from bregpath.selection.graphs import criterion, cross_validate_graph, stable_edges, stars
from bregpath.selection.imputation import complete
from bregpath.selection.kappas import CV_RULES, check_kappas, check_stop_of_kappas, chosen_by
from bregpath.selection.result import Selection

__all__ = ["AbstractGraph"]


@dataclass(eq=False, repr=False, kw_only=True)
class GraphParameters(BaseEstimator):
    """Parameters that all graphs share; see `AbstractGraph`."""

    stop: str | float = "ebic"
    gamma: float = 0.25
    cv: Any = 5
    missing: str = "impute"
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
    stable_threshold: float = 0.9
    stars_beta: float = 0.05
    n_subsamples: int = 20
    n_jobs: int | None = None
    random_state: Any = 0
    progress: bool | None = False


class AbstractGraph(ChosenGraph, GraphParameters):
    """A sparse graph at one time of a Bregman path.

    The parameters below are those of `IsingGraph`, `PottsGraph` and `GaussianGraph` alike.

    Parameters
    ----------
    loss : str
        See the class.
    stop : {"ebic", "bic", "cv", "cv-1se", "cv-sparse", "mdc", "stars", "stable"} or float, default "ebic"
        How the graph is chosen: the time of an information criterion; cross-validation of the (composite) deviance, its
        best time, the sparsest within one standard error, or (of several kappas) the best time of the largest one
        within one standard error; cross-validation of the second-order MDC (Ising and Potts);
        the densest stable graph (StARS); the edges of the graph of EBIC that most halves of the rows have too and
        that the others cannot stand in for, at most a tenth of them false; or a given time t.
    gamma : float
        Price of the search in EBIC; 0.25 for Ising and Potts, 0.5 for Gaussian graphs.
    cv : int, splitter or iterable, default 5
        Folds, as in `bregpath.cross_validate`.
    missing : {"impute", "refuse"}, default "impute"
        What becomes of missing values (NaN, None). They are drawn from the graph itself: first from their columns, then
        five times from the graph that EBIC chooses on the rows so completed, given the known cells of their rows. The
        last draw is taken for data by ``stop``, `stability` and `intervals`. `score` refuses them always.
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
    stable_threshold : float, default 0.9
        Share of the halves that must have an edge for ``stop="stable"`` to test and keep it.
    stars_beta : float, default 0.05
        Instability that StARS allows.
    n_subsamples : int, default 20
        Subsamples of StARS, or halves of ``stop="stable"``, which come in pairs.
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
        Graphs of all sizes; with ``stop="stable"`` of the kept edges alone.
    selection_ : Selection or None
        The curve by which the time was chosen; None if ``stop`` is a number.
    stability_ : Stability or None
        How often each edge was found on halves of the rows: of ``stop="stable"``, or once `stability` was called.
    n_missing_ : int
        Missing cells that were drawn.
    n_features_in_, feature_names_in_
        The nodes.
    """

    loss: str
    saturation: float | None

    # --- what each model does on its own ---------------------------------------------------------------------

    _losses: tuple[str, ...] = ()
    _rules: tuple[str, ...] = ("ebic", "bic", *CV_RULES, "mdc", "stars", "stable")

    @abstractmethod
    def _read(self, X: Any, w: Any, rng: np.random.Generator) -> tuple[AbstractLayout, Array, Array, BoolArray]:
        """The layout, rows and weights of the data, and which cells are missing; these are drawn from their columns."""

    def _edge_weights(self, layout: AbstractLayout, rows: Array, w: Array) -> Any:
        """Relative thresholds of the edges, not yet checked."""
        return self.edge_weights

    def _given_time(self, study: GraphStudy) -> float | None:
        """The time that ``stop`` names before there is a path, if it does."""
        return float(self.stop) if self._is_time else None

    def _prepare(self, X: Any, w: Any) -> GraphStudy:
        """All that is checked before a path is traced."""
        check_choice("missing", self.missing, ("impute", "refuse"))
        rng = make_generator(self.random_state, "random_state")
        layout, rows, weights, missing = self._read(X, w, rng)
        names = ("step", "tol", "t", "t_ratio", "n_times", "saturation", "screening", "progress", "flow")
        options = {name: getattr(self, name) for name in names}
        if self.max_sparsity is not None:
            level, p = _validation.check_number("max_sparsity", self.max_sparsity), layout.n_nodes
            options["stop"] = StopAtSparsity(layout, int(level * p * (p - 1) / 2 + 1e-9))
        kappas = check_kappas(self.kappa)
        traced, kappa = TraceOptions(**options).with_kappa(self.kappa if kappas is None else kappas[0])
        thresholds = edge_thresholds(layout.n_nodes, self._edge_weights(layout, rows, weights), self.mask)
        self.n_missing_ = int(missing.sum())
        study = GraphStudy(layout, rows, weights, thresholds, kappa, traced)
        with _interrupts.all_or_nothing(), self._limits(layout.n_nodes):
            return complete(study, missing, self.gamma, rng)

    @property
    def _takes_gaps(self) -> bool:
        return self.missing == "impute"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._takes_gaps
        return tags

    # --- fitting ---------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Trace the path of graphs and choose one.

        Parameters
        ----------
        X : array or data frame of shape (n, p)
            One column a node. See ``missing`` for cells without a value.
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
            self._choose(study)
        return self

    def _choose(self, study: GraphStudy) -> None:
        """Trace the path, and set what is chosen on it."""
        selection = stability = None
        given = self._given_time(study)
        if given is not None:
            path, t = trace_to(study, given), given
        elif self.stop == "stable":
            selection, stability, kept = stable_edges(
                study, self.gamma, self.stable_threshold, self.n_subsamples, self.n_jobs, self.random_state
            )
            study, t = study.restricted(kept), selection.t
            path = trace_to(study, t)
        else:
            selection = self._select(study)
            path, t = selection.path, selection.t
        several = selection is not None and selection.surface
        self._study = study.with_kappa(path.kappa) if several else study
        self.path_, self.selection_, self.stability_, self.kappa_ = path, selection, stability, path.kappa
        self._set_time(min(t, float(path.t[-1])))

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
