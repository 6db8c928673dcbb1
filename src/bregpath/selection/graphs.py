"""Rules that choose a graph on a path: information criteria, cross-validation, stability."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bregpath import _interrupts, _validation
from bregpath._typing import Array, IntArray
from bregpath.graphs.gibbs import gibbs
from bregpath.graphs.layouts import AbstractLayout, FieldLayout, GaussianLayout, IsingLayout
from bregpath.graphs.mdc import mdc
from bregpath.graphs.path import GraphPath
from bregpath.selection._threads import map_threads
from bregpath.selection.bootstrap import check_count, check_rows, make_generator
from bregpath.selection.cross_validation import aggregate, choose
from bregpath.selection.folds import make_folds
from bregpath.selection.result import Selection

__all__ = ["GraphData", "criterion", "cross_validate_graph", "graph_deviance", "stars"]

MAX_DRAWS = 100  # attempts to draw rows in which all nodes vary, a subsample


@dataclass(frozen=True, eq=False)
class GraphData:
    """Rows a graph is learned from, and how.

    Attributes
    ----------
    rows : ndarray of shape (n, p)
        Codes of states, or numbers.
    w : ndarray of shape (n,)
        Weights of the rows; their sum is the number of rows that count.
    trace : callable
        ``trace(rows, w, times)`` is the path on some rows, at given times (None: the default ones).
    """

    rows: Array
    w: Array
    trace: Callable[[Array, Array, Any], GraphPath]

    def take(self, rows: IntArray, times: Any) -> GraphPath:
        """The path on some of the rows."""
        return self.trace(self.rows[rows], self.w[rows], times)


def graph_deviance(path: GraphPath, rows: Array, w: Array, times: Array) -> Array:
    """Twice the negative mean log-likelihood of some rows at some times; composite unless the path's loss is not.

    The composite likelihood is also used for minimum probability flow, which has no likelihood of its own. Constants
    that do not depend on the model are left out.
    """
    layout = likelihood_layout(path.layout)
    data = covariance(rows, w, layout.mean) if isinstance(layout, GaussianLayout) else rows
    ones = np.ones((layout.n_nodes, layout.n_nodes))
    problem = layout.problem(data, w / w.sum(), ones, path.kappa)
    # A path that ended before stays where it ended; its record may go on for a part of a step.
    alpha, columns, beta = path.trajectory.read(np.minimum(times, path.t[-1]))
    block = problem.store.fetch(columns)
    values = [problem.value(problem.predictor(block, a, b)) for a, b in zip(alpha, beta, strict=True)]
    return problem.loss.deviance_factor * np.array(values)


def likelihood_layout(layout: AbstractLayout) -> AbstractLayout:
    """The same coefficients with a loss that is a likelihood."""
    if isinstance(layout, IsingLayout) and layout.loss == "mpf":
        return replace(layout, loss="composite")
    return layout


def covariance(X: Array, w: Array, mean: Array) -> Array:
    """Weighted covariance (1/n) about a given mean."""
    centred = X - mean
    return (centred * (w / w.sum())[:, None]).T @ centred


def n_parameters(path: GraphPath) -> Array:
    """Number of independent coefficients of the edges at every time."""
    layout = path.layout
    if not isinstance(layout, FieldLayout) or layout.penalty == "l1":
        return path.df
    # A block of q x r couplings has (q - 1)(r - 1) parameters that count; the others shift fields.
    states = layout.n_states
    own = np.zeros((layout.n_nodes, layout.n_nodes), dtype=int)
    np.add.at(own, tuple(layout.pairs.T), 1)
    size = np.minimum(own, np.outer(states - 1, states - 1))
    return np.array([np.sum(path.adjacency(t) * size) for t in path.t])


def criterion(path: GraphPath, rows: Array, w: Array, kind: str, gamma: float) -> Selection:
    r"""Choose a graph by EBIC (or BIC: gamma 0).

    With :math:`\ell` the log-likelihood of n rows, E edges with k parameters, and p nodes,

    .. math:: \mathrm{EBIC} = -2 \ell + c\, k \log n + 4 \gamma E \log p ,

    c = 1 for the likelihood (Foygel and Drton) and for node-wise regressions, whose two coefficients an edge are
    counted both; c = 2 for a composite likelihood with one coefficient an edge, because the edge is seen from both of
    its ends and noise gains twice as much.
    """
    if isinstance(gamma, bool) or not isinstance(gamma, numbers.Real) or not 0.0 <= gamma <= 1.0:
        raise ValueError(f"`gamma` must be a number from 0 (BIC) to 1, found {gamma!r}.")
    n, p = float(w.sum()), path.layout.n_nodes
    # The path knows the deviance of its own rows; that of Gaussian graphs is counted from another zero.
    is_own = likelihood_layout(path.layout) is path.layout and not isinstance(path.layout, GaussianLayout)
    fit = n * (path.deviance if is_own else graph_deviance(path, rows, w, path.t))
    once = path.loss.name == "gaussian-likelihood" or getattr(path.layout, "is_nodewise", False)
    size = n_parameters(path)
    gamma = 0.0 if kind == "bic" else float(gamma)
    values = fit + (1.0 if once else 2.0) * size * np.log(n) + 4.0 * gamma * path.n_edges * np.log(p)
    best = float(path.t[int(np.argmin(values))])
    return Selection(
        rule="BIC" if kind == "bic" else f"EBIC (gamma={gamma:g})",
        t=best,
        t_min=best,
        t_1se=None,
        times=path.t,
        mean=values,
        measure=kind,
        curves={"df": path.n_edges, "parameters": size, "fit": fit},
        path=path,
    )


def cross_validate_graph(
    path: GraphPath, data: GraphData, cv: Any, measure: str, n_jobs: int | None, seed: Any, burn_in: int = 500
) -> Selection:
    """Choose a graph by K-fold cross-validation of the composite deviance, or of the second-order MDC.

    MDC is that of the held-out rows and a fresh Gibbs sample of as many rows from the model at each time.
    """
    folds = make_folds(cv, data.rows, np.zeros(len(data.rows)), data.w, None, False, seed)
    for k, (train, _) in enumerate(folds):
        lacking = _constant_node(path.layout, data.rows[train])
        if lacking:
            raise ValueError(
                f"`cv`: the training rows of fold {k} have {lacking}; use fewer or other folds, drop the "
                'node, or choose the graph by `stop`="ebic".'
            )
    draws = _generator(seed).integers(2**63, size=len(folds))

    def score(k: int) -> Array:
        train, test = folds[k]
        fold = data.take(train, path.t)
        if measure == "deviance":
            return graph_deviance(fold, data.rows[test], data.w[test], path.t)
        rng = np.random.default_rng(draws[k])
        held_out = np.repeat(data.rows[test], _copies(data.w[test]), axis=0)
        return np.array([_mdc_at(fold, t, held_out, rng, burn_in) for t in path.t])

    scores = np.stack(map_threads(score, range(len(folds)), n_jobs))
    weights = np.array([data.w[test].sum() for _, test in folds])
    mean, se = aggregate(scores, weights)
    i_min, i_1se = choose(path.t, mean, se, larger_is_better=measure == "mdc")
    return Selection(
        rule=f"{len(folds)}-fold cross-validation",
        t=float(path.t[i_min]),
        t_min=float(path.t[i_min]),
        t_1se=float(path.t[i_1se]),
        times=path.t,
        mean=mean,
        se=se,
        measure=measure,
        larger_is_better=measure == "mdc",
        curves={"df": path.n_edges},
        fold_scores=scores,
        fold_weights=weights,
        path=path,
        folds=tuple(folds),
    )


def _constant_node(layout: AbstractLayout, rows: Array) -> str:
    """A node of a Gaussian graph that does not vary in some rows: its precision would be infinite."""
    if isinstance(layout, GaussianLayout):
        constant = np.flatnonzero(np.ptp(rows, axis=0) <= 1e-13 * np.abs(rows).max(axis=0))
        return f"one value only of node {layout.names[constant[0]]!r}" if len(constant) else ""
    return ""


def _generator(seed: Any) -> np.random.Generator:
    try:
        return make_generator(seed)
    except ValueError:
        raise ValueError(f"`random_state` must be a whole number >= 0, a Generator or None, found {seed!r}.") from None


def _mdc_at(fold: GraphPath, t: float, held_out: IntArray, rng: np.random.Generator, burn_in: int) -> float:
    _interrupts.check()
    model = fold.model(min(t, float(fold.t[-1])))
    drawn = gibbs(model, len(held_out), burn_in=burn_in, seed=rng, chains=len(held_out))
    codes = [np.arange(len(labels)) for labels in model.labels]
    return mdc(held_out, model.encode(drawn), levels=codes)


def _copies(w: Array) -> IntArray:
    """Rows as often as they count."""
    counts = np.round(w).astype(int)
    if not np.allclose(counts, w):
        raise ValueError('`stop`="mdc" compares samples, so `sample_weight` must hold whole numbers (copies of rows).')
    return counts


def _subsamples(layout: AbstractLayout, data: GraphData, n_subsamples: int, rng: np.random.Generator) -> list[IntArray]:
    """Rows of each subsample, drawn again until every node of a Gaussian graph varies in them."""
    counted = check_rows(np.flatnonzero(data.w > 0))
    size = int(min(10 * np.sqrt(len(counted)), 0.8 * len(counted)))
    samples: list[IntArray] = []
    for _ in range(MAX_DRAWS * n_subsamples):
        drawn = np.sort(rng.choice(counted, size, replace=False))
        lacking = _constant_node(layout, data.rows[drawn])
        if not lacking:
            samples.append(drawn)
        if len(samples) == n_subsamples:
            return samples
    raise ValueError(
        f'`stop`="stars" draws {size} rows at a time, which mostly have {lacking}; drop the node, or choose the '
        'graph by `stop`="ebic".'
    )


def stars(path: GraphPath, data: GraphData, beta: float, n_subsamples: int, n_jobs: int | None, seed: Any) -> Selection:
    r"""Choose the densest stable graph (StARS; Liu, Roeder and Wasserman, 2010).

    Paths are traced on subsamples of :math:`b = 10 \sqrt n` rows (at most 0.8 n). With :math:`\theta_{jk}(t)` the
    share of them that have an edge, the instability is the mean of :math:`2 \theta (1 - \theta)` over all pairs; the
    chosen time is the last before its running maximum exceeds ``beta``.
    """
    limit = _validation.check_number("stars_beta", beta)
    n_subsamples = check_count("n_subsamples", n_subsamples, 2)
    p = path.layout.n_nodes
    samples = _subsamples(path.layout, data, n_subsamples, _generator(seed))
    size = len(samples[0])

    def edges(rows: IntArray) -> Array:
        fold = data.take(rows, path.t)
        return np.stack([fold.adjacency(min(t, float(fold.t[-1]))) for t in path.t])

    share = np.mean(map_threads(edges, samples, n_jobs), axis=0)
    instability = np.sum(2 * share * (1 - share), axis=(1, 2)) / (p * (p - 1))
    running = np.maximum.accumulate(instability)
    stable = np.flatnonzero(running <= limit)
    best = float(path.t[stable[-1] if len(stable) else 0])
    return Selection(
        rule=f"StARS (beta={limit:g}, {n_subsamples} subsamples of {size} rows)",
        t=best,
        t_min=best,
        t_1se=None,
        times=path.t,
        mean=running,
        measure="instability",
        curves={"df": path.n_edges, "instability": instability},
        path=path,
    )
