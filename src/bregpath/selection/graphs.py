"""Rules that choose a graph on a path: cross-validation and stability."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bregpath import _interrupts, _validation
from bregpath._typing import Array, BoolArray, IntArray
from bregpath.graphs.chains import Plan, run_chains
from bregpath.graphs.edge_tests import edge_p_values
from bregpath.graphs.held_out import HeldOutRows
from bregpath.graphs.mdc import mdc
from bregpath.graphs.path import GraphPath
from bregpath.graphs.study import GraphStudy
from bregpath.selection.bounds import check_threshold
from bregpath.selection.checks import check_count, make_generator
from bregpath.selection.criteria import choose_by_criterion
from bregpath.selection.cross_validation import validate
from bregpath.selection.discoveries import few_false
from bregpath.selection.folds import make_folds
from bregpath.selection.replicates import check_rows, draw_until, read_replicates, traces_of
from bregpath.selection.result import Selection
from bregpath.selection.scores import Scorer
from bregpath.selection.stability import Stability, stability_of

__all__ = ["criterion", "cross_validate_graph", "stable_edges", "stars"]

BURN_IN, SWEEPS = 500, 40  # of a Gibbs sampler before a row is drawn: at the first time of a path, at later ones
FALSE_SHARE = 0.1  # of the edges of a stable graph, at most
REMEDY = 'drop the node, or choose the graph by `stop`="ebic"'


def criterion(study: GraphStudy, kind: str, gamma: float) -> Selection:
    """Choose a graph by EBIC (or BIC: gamma 0); see `bregpath.selection.information_criterion`."""
    path = study.trace()
    is_own = path.has_likelihood and path.layout.saturates_at_zero  # the path knows that of its own rows
    deviance = path.deviance if is_own else path.deviance_of(study.rows, study.w, path.t)
    return choose_by_criterion(path, kind, study.w.sum(), gamma, deviance)


def cross_validate_graph(
    study: GraphStudy, cv: Any, measures: tuple[str, ...], n_jobs: int | None, seed: Any, **options: Any
) -> Selection:
    """Choose a graph by K-fold cross-validation of the first of some measures: "deviance" (composite), "mdc".

    MDC, the second-order one, is that of the held-out rows and a fresh Gibbs sample of as many rows from the model at
    each time. ``options`` are those of `bregpath.selection.cross_validation.validate`.
    """
    rng = make_generator(seed, "random_state")
    folds = make_folds(cv, study.rows, np.zeros(len(study.w)), study.w, None, False, seed)
    draws = rng.integers(2**63, size=len(folds))

    def scorers(fold: int) -> tuple[Scorer, ...]:
        mdc_of = _MdcAlongPath(np.random.default_rng(draws[fold]))
        known = Scorer("deviance", lambda held: held.deviance, is_smooth=True), Scorer("mdc", mdc_of, True)
        return tuple(next(scorer for scorer in known if scorer.name == measure) for measure in measures)

    return validate(study, scorers, folds, n_jobs=n_jobs, remedy=f"use fewer or other folds, {REMEDY}", **options)


class _MdcAlongPath:
    """MDC of held-out rows and samples of the models at the times of a path, in order.

    A sample starts where that of the time before ended, since the model has hardly changed: one burn-in a path.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.ends: Array | None = None

    def __call__(self, held: HeldOutRows) -> Array:
        rows = np.repeat(held.rows, _copies(held.w), axis=0)
        return np.array([self._score(rows, model) for model in held.graphical_models()])

    def _score(self, rows: Array, model: Any) -> float:
        _interrupts.check()
        start = self.ends if self.ends is not None and len(self.ends) == len(rows) else None
        plan = Plan(len(rows), len(rows), BURN_IN if start is None else SWEEPS, 1)
        run = run_chains(model, plan, self.rng, start=start)
        self.ends = run.ends
        return mdc(rows, run.codes, levels=[np.arange(len(labels)) for labels in model.labels])


def _copies(w: Array) -> IntArray:
    """Rows as often as they count."""
    counts = np.round(w).astype(int)
    if not np.allclose(counts, w):
        raise ValueError('`stop`="mdc" compares samples, so `sample_weight` must hold whole numbers (copies of rows).')
    return counts


def stars(study: GraphStudy, beta: float, n_subsamples: int, n_jobs: int | None, seed: Any) -> Selection:
    r"""Choose the densest stable graph (StARS; Liu, Roeder and Wasserman, 2010).

    Paths are traced on subsamples of :math:`b = 10 \sqrt n` rows (at most 0.8 n). With :math:`\theta_{jk}(t)` the
    share of them that have an edge, the instability is the mean of :math:`2 \theta (1 - \theta)` over all pairs; the
    chosen time is the last before its running maximum exceeds ``beta``.
    """
    limit, rng = _validation.check_number("stars_beta", beta), make_generator(seed, "random_state")
    n_subsamples, rows = check_count("n_subsamples", n_subsamples, 2), check_rows(study.pool)
    size = int(min(10 * np.sqrt(len(rows)), 0.8 * len(rows)))

    def draw() -> tuple[IntArray]:
        return (np.sort(rng.choice(rows, size, replace=False)),)

    samples = [draw_until(draw, study.lacking, '`stop`="stars"', REMEDY)[0] for _ in range(n_subsamples)]
    path = study.trace()

    def edges(replicate: GraphPath) -> Array:
        return replicate.all_weights(np.minimum(path.t, replicate.t[-1])) != 0

    share = np.mean(read_replicates(traces_of(study, samples, path.t, n_jobs), path.t[-1], edges, n_jobs), axis=0)
    p = path.layout.n_nodes
    instability = np.sum(2 * share * (1 - share), axis=(1, 2)) / (p * (p - 1))
    running = np.maximum.accumulate(instability)
    stable = np.flatnonzero(running <= limit)
    rule = f"StARS (beta={limit:g}, {n_subsamples} subsamples of {size} rows)"
    curves = {"df": path.n_edges, "instability": instability}
    return Selection.without_folds(rule, path, int(stable[-1]) if len(stable) else 0, running, "instability", curves)


def stable_edges(
    study: GraphStudy, gamma: float, threshold: float, n_halves: int, n_jobs: int | None, seed: Any
) -> tuple[Selection, Stability, BoolArray]:
    """The graph that EBIC chooses, how often each edge is in that of the same time on halves of the rows, and those
    of its edges that can be defended.

    An edge that one sample of the rows happens to have is missing on many halves, whatever it weighs on all rows. One
    that stands for other edges is not, so of the edges that most halves have those are kept that the others cannot
    stand in for, by `edge_p_values`; a tenth of them may be false. Edges that are never penalised are given, and stay.
    As halves come in pairs, an odd number of them is rounded up.
    """
    threshold = check_threshold(threshold, "stable_threshold")
    n_halves = 2 * ((check_count("n_subsamples", n_halves, 2) + 1) // 2)
    selection = criterion(study, "ebic", gamma)
    path, t = selection.path, selection.t
    stability = stability_of(
        study, n_jobs, seed, path, t, '`stop`="stable"', threshold=threshold, max_false=None, count="active",
        n_replicates=n_halves,
    )  # fmt: skip
    stable = np.zeros(study.thresholds.shape, dtype=bool)
    stable[tuple(stability.selected.T)] = True
    stable &= path.adjacency(t)
    tested = stable & (study.thresholds > 0)
    kept = stable & ~tested
    if tested.any():
        kept[tested] = few_false(edge_p_values(study, path, t)[tested], FALSE_SHARE)
    halves = f"its edges on at least {threshold:.0%} of {n_halves} halves"
    rule = f"{selection.rule}, {halves}, tested for a false share of {FALSE_SHARE:.0%}"
    return replace(selection, rule=rule), stability, kept | kept.T
