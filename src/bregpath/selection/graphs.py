"""Rules that choose a graph on a path: information criteria, cross-validation, stability."""

from __future__ import annotations

from typing import Any

import numpy as np

from bregpath import _interrupts, _validation
from bregpath._typing import Array, IntArray
from bregpath.graphs.gibbs import gibbs
from bregpath.graphs.mdc import mdc
from bregpath.graphs.path import GraphPath
from bregpath.graphs.study import GraphStudy
from bregpath.selection._threads import map_threads
from bregpath.selection.bootstrap import check_count, check_rows, make_generator
from bregpath.selection.criteria import choose_by_criterion
from bregpath.selection.cross_validation import aggregate, choose
from bregpath.selection.folds import make_folds
from bregpath.selection.result import Selection

__all__ = ["criterion", "cross_validate_graph", "stars"]

MAX_DRAWS = 100  # attempts to draw rows in which all nodes vary, a subsample


def criterion(path: GraphPath, study: GraphStudy, kind: str, gamma: float) -> Selection:
    """Choose a graph by EBIC (or BIC: gamma 0); see `bregpath.selection.information_criterion`."""
    is_own = path.has_likelihood and path.layout.saturates_at_zero  # the path knows that of its own rows
    deviance = path.deviance if is_own else path.deviance_of(study.rows, study.w, path.t)
    return choose_by_criterion(path, kind, study.w.sum(), gamma, deviance)


def cross_validate_graph(
    path: GraphPath, study: GraphStudy, cv: Any, measure: str, n_jobs: int | None, seed: Any, burn_in: int = 500
) -> Selection:
    """Choose a graph by K-fold cross-validation of the composite deviance, or of the second-order MDC.

    MDC is that of the held-out rows and a fresh Gibbs sample of as many rows from the model at each time.
    """
    folds = make_folds(cv, study.rows, np.zeros(len(study.rows)), study.w, None, False, seed)
    for k, (train, _) in enumerate(folds):
        lacking = study.lacking(train)
        if lacking:
            raise ValueError(
                f"`cv`: the training rows of fold {k} have {lacking}; use fewer or other folds, drop the "
                'node, or choose the graph by `stop`="ebic".'
            )
    draws = _generator(seed).integers(2**63, size=len(folds))

    def score(k: int) -> Array:
        train, test = folds[k]
        fold = study.trace(study.weights_of(train), t=path.t)
        if measure == "deviance":
            return fold.deviance_of(study.rows[test], study.w[test], path.t)
        rng = np.random.default_rng(draws[k])
        held_out = np.repeat(study.rows[test], _copies(study.w[test]), axis=0)
        return np.array([_mdc_at(fold, t, held_out, rng, burn_in) for t in path.t])

    scores = np.stack(map_threads(score, range(len(folds)), n_jobs))
    weights = np.array([study.w[test].sum() for _, test in folds])
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


def _subsamples(study: GraphStudy, n_subsamples: int, rng: np.random.Generator) -> list[IntArray]:
    """Rows of each subsample, drawn again until every node of a Gaussian graph varies in them."""
    counted = check_rows(np.flatnonzero(study.w > 0))
    size = int(min(10 * np.sqrt(len(counted)), 0.8 * len(counted)))
    samples: list[IntArray] = []
    for _ in range(MAX_DRAWS * n_subsamples):
        drawn = np.sort(rng.choice(counted, size, replace=False))
        lacking = study.lacking(drawn)
        if not lacking:
            samples.append(drawn)
        if len(samples) == n_subsamples:
            return samples
    raise ValueError(
        f'`stop`="stars" draws {size} rows at a time, which mostly have {lacking}; drop the node, or choose the '
        'graph by `stop`="ebic".'
    )


def stars(
    path: GraphPath, study: GraphStudy, beta: float, n_subsamples: int, n_jobs: int | None, seed: Any
) -> Selection:
    r"""Choose the densest stable graph (StARS; Liu, Roeder and Wasserman, 2010).

    Paths are traced on subsamples of :math:`b = 10 \sqrt n` rows (at most 0.8 n). With :math:`\theta_{jk}(t)` the
    share of them that have an edge, the instability is the mean of :math:`2 \theta (1 - \theta)` over all pairs; the
    chosen time is the last before its running maximum exceeds ``beta``.
    """
    limit = _validation.check_number("stars_beta", beta)
    n_subsamples = check_count("n_subsamples", n_subsamples, 2)
    p = path.layout.n_nodes
    samples = _subsamples(study, n_subsamples, _generator(seed))
    size = len(samples[0])

    def edges(rows: IntArray) -> Array:
        fold = study.trace(study.weights_of(rows), t=path.t)
        return fold.all_weights(np.minimum(path.t, fold.t[-1])) != 0

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
