"""Stability selection: which variables enter early on most halves of the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from bregpath import _interrupts, _validation
from bregpath._typing import Array, BoolArray, IntArray
from bregpath.flow.stop import Progress
from bregpath.selection.bounds import StabilityRules, error_bound
from bregpath.selection.checks import make_generator
from bregpath.selection.replicates import (
    Trace,
    check_rows,
    draw_halves,
    lacks_labels,
    names_for,
    read_replicates,
    traces_of,
)
from bregpath.selection.stability_result import Stability, counted_once
from bregpath.structures.study import read_study
from bregpath.study import AbstractStudy

__all__ = ["Stability", "error_bound", "replicate_stability", "stability_of", "stability_selection"]


def stability_selection(
    X: Any, y: Any, *, threshold: float = 0.9, max_false: float | None = 1.0, n_variables: int | None = None,
    n_replicates: int = 100, pairs: bool = True, bound: str | None = None, count: str = "entered",
    n_jobs: int | None = None, seed: Any = 0, **options: Any,
) -> Stability:  # fmt: skip
    r"""Select the variables that enter on most random halves of the rows.

    The path is traced on B halves. All are read at the times of the path on all rows, and a replicate ends once q
    variables have entered. With :math:`t_{bj}` the time at which variable j enters on half b (if it is among the
    first q), a variable is selected when

    .. math:: \hat\Pi_j(t) = \tfrac1B \#\{b : t_{bj} \le t\} \ge \pi \quad \text{for some } t.

    Let p variables be candidates, q(t) the mean number selected on a half by time t, and V the number of selected
    variables that are on a half no more likely selected than the average, with probability at most q / p. Then

    .. math:: E[V] \le \frac{q^2}{(2 \pi - 1) p}

    (Meinshausen and Buehlmann for independent halves, under exchangeability of the noise variables; Shah and Samworth
    for complementary pairs, without that assumption). The "unimodal" bound of Shah and Samworth is about half of it and
    assumes that the share of pairs in which both halves select a noise variable has a unimodal distribution.

    Parameters
    ----------
    X, y
        As in `trace_path`.
    threshold : float, default 0.9
        :math:`\pi`, above 0.5 and at most 1. For a given ``max_false`` a larger one lets replicates run further,
        which finds more.
    max_false : float or None, default 1
        Wanted bound of E[V]. It fixes q, the number of variables at which a replicate ends.
    n_variables : int, optional
        q itself; then the bound follows (`Stability.error_bound`), and ``max_false`` is not used.
        With ``max_false=None`` too, replicates run to the last time.
    n_replicates : int, default 100
        Number of halves (even, with pairs).
    pairs : bool, default True
        Complementary pairs: two halves that share no row. False draws every half for itself.
    bound : {"unimodal", "worst-case"}, optional
        "unimodal" for pairs (Shah and Samworth), and "worst-case" otherwise.
    count : {"entered", "active"}, default "entered"
        What is counted at t: variables that have entered by t, or those that are in the model at t (they may have left
        again). The bound holds for both.
    n_jobs : int, optional
        Number of threads over replicates; -1 is one for each processor. The result does not depend on it.
    seed : int, numpy.random.Generator or None, default 0
    **options
        Keyword arguments of `trace_path`. ``t``, ``t_ratio``, ``n_times`` and ``stop`` give the path on all rows, and
        so the clock.

    Notes
    -----
    Columns that enter together (``groups``, or the levels of a categorical column of a data frame) count as one
    variable in p and in q, and are selected together. For classes, halves that miss a class are drawn again. Columns
    with ``penalty_factor=0`` are in every model; they have probability one and are counted neither in p nor in q.

    References
    ----------
    Meinshausen and Buehlmann, *Stability selection*, JRSS B 2010. Shah and Samworth, *Variable selection with error
    control: another look at stability selection*, JRSS B 2013.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_linear(200, 50, 4, seed=0)
    >>> stability = bregpath.stability_selection(data.X, data.y)
    >>> stability.selected.tolist(), stability.error_bound <= 1
    ([0, 1, 2, 3], True)
    """
    study = read_study(X, y, **options)
    return stability_of(
        study, n_jobs, seed, threshold=threshold, max_false=max_false, n_variables=n_variables,
        n_replicates=n_replicates, pairs=pairs, bound=bound, count=count,
    )  # fmt: skip


def stability_of(
    study: AbstractStudy, n_jobs: int | None = None, seed: Any = 0, path: Any = None, t: float | None = None,
    who: str = "resampling", **wishes: Any,
) -> Stability:  # fmt: skip
    """`stability_selection` of any study: of the columns of a regression, or of the edges of a graph.

    ``path`` is that of all rows, if it is there already. With a time ``t`` replicates are read there alone.
    ``who`` resamples, in the text of errors.
    """
    rules = StabilityRules(**wishes)
    rows, rng = check_rows(study.pool), make_generator(seed)
    halves = draw_halves(rows, rules.n_replicates, rules.pairs, study.lacking, rng, who)
    if path is None:
        with _interrupts.all_or_nothing():
            path = study.trace()
    weights, variable = path.trajectory.penalty.weights, study.variables
    never_penalised = np.all(weights == 0, axis=1)
    candidates = ~never_penalised & np.any(np.isfinite(weights), axis=1)
    sizes = np.bincount(variable[candidates])  # coefficients of each variable
    q, stop = rules.allowed(int(np.count_nonzero(sizes))), None
    if q is not None:
        # With more coefficients than q - 1 variables have, and others without having entered, q have entered.
        sizes = np.sort(sizes)[::-1]
        fewer = sizes[: q - 1].sum() + np.minimum(sizes[q - 1 :], study.n_needed - 1).sum()
        enough = int(fewer + 1 + never_penalised.sum())
        stop = partial(_has_entered, enough)
    clock = path.t if t is None else np.array([float(t)])
    traces = traces_of(study, halves, clock[-1:], n_jobs, stop)
    rules = replace(rules, n_variables=q, max_false=None)
    return _count(traces, clock, rules, n_jobs, path, study.as_reported(candidates), groups=study.groups)


def _has_entered(n: int, progress: Progress) -> bool:
    return progress.n_active >= n


def replicate_stability(
    trace: Callable[[IntArray], Any], rows: IntArray | int, times: Any, *, candidates: Any = None, labels: Any = None,
    names: Sequence[str] | None = None, path: Any = None, groups: Any = None, n_jobs: int | None = None, seed: Any = 0,
    **rules: Any,
) -> Stability:  # fmt: skip
    """Stability selection of anything that can be traced on some rows: edges of a graph, a user's own model.

    Parameters
    ----------
    trace : callable
        ``trace(rows)`` returns the path on these rows: an object whose ``entry_times`` has shape (p,), or (p, p) for
        edges (then its upper triangle counts). It is called from several threads if ``n_jobs`` says so.
    rows : int or array
        Number of rows, or the rows to draw from.
    times : array-like
        The common clock.
    candidates : array-like of bool, of the shape of the entry times, optional
        Items that may be selected; all by default.
    labels : array-like, optional
        Class of each row; then every half holds every class.
    names : sequence of str, optional
        Names of the columns, or of the nodes; by default those that the paths have.
    path : optional
        The path on all rows, kept in the result.
    groups : array-like, one label an item, optional
        Items of one label enter together and count as one.
    n_jobs, seed, **rules
        As in `stability_selection`: threshold, max_false, n_variables, n_replicates, pairs, bound, count. Only the
        first ``n_variables`` entries of a replicate count, however far it ran.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_linear(200, 50, 4, seed=0)
    >>> def trace(rows):
    ...     return bregpath.trace_path(data.X[rows], data.y[rows])
    >>> replicate_stability(trace, 200, times=[0.5, 1.0, 2.0, 4.0]).selected.tolist()
    [0, 1, 2, 3]
    """
    times, asked, lacking = _validation.check_times(times), StabilityRules(**rules), lacks_labels(labels)
    halves = draw_halves(check_rows(rows), asked.n_replicates, asked.pairs, lacking, make_generator(seed))
    traces = [(lambda until, half=half: trace(half)) for half in halves]
    return _count(traces, times, asked, n_jobs, path, candidates, names, groups)


def _count(
    traces: Iterable[Trace], times: Array, rules: StabilityRules, n_jobs: int | None, path: Any, candidates: Any,
    names: Sequence[str] | None = None, groups: Any = None,
) -> Stability:  # fmt: skip
    """Trace all replicates and count what they select."""
    heard: list[Any] = [] if path is None else [path]

    def read(replicate: Any) -> tuple[Array, BoolArray | None]:
        if not heard:
            heard.append(replicate)
        return _read(replicate, times, rules.count)

    replicates = read_replicates(traces, float(times[-1]), read, n_jobs)
    entries, edges = np.stack([entry for entry, _ in replicates]), None
    names = names_for(names, heard[0], entries.shape[1])
    if entries.ndim == 3:
        edges = np.column_stack(np.triu_indices(entries.shape[1], 1))
        entries = entries[:, edges[:, 0], edges[:, 1]]
    chosen = _check_candidates(candidates, entries.shape[1], edges)
    if groups is not None:
        groups, entries = _check_groups(groups, entries)
    once = counted_once(chosen, groups)
    q = rules.allowed(int(once.sum()))
    counted = _first(entries, chosen, once, q)
    last = np.max(counted[:, chosen], where=np.isfinite(counted[:, chosen]), initial=0.0)
    times = times[: int(np.searchsorted(times, last)) + 1]  # later no replicate changes
    probabilities = _share_entered(counted, times)
    size = probabilities[:, once].sum(axis=1)
    if rules.count == "active":
        probabilities = _share_active([active for _, active in replicates], counted, times, edges)
    return Stability(
        times, probabilities, size, float(rules.threshold), str(rules.bound), q, int(rules.n_replicates), rules.pairs,
        chosen, edges, names, path, groups,
    )  # fmt: skip


def _read(path: Any, times: Array, count: str) -> tuple[Array, BoolArray | None]:
    """Entry times of a replicate and, if wanted, what is in its model at each time."""
    entry = np.asarray(path.entry_times, dtype=float)
    if entry.ndim not in (1, 2) or (entry.ndim == 2 and entry.shape[0] != entry.shape[1]):
        raise ValueError(f"`trace` must return entry_times of shape (p,) or (p, p), found {entry.shape}.")
    if count == "entered":
        return entry, None
    inside = np.minimum(times, float(path.t[-1]))  # a path that ended before stays where it ended
    of_edges = getattr(path, "all_weights", None)
    coef = of_edges(inside) if of_edges else np.stack([np.asarray(path.at(t).coef) for t in inside])
    return entry, np.any(coef.reshape(len(times), *entry.shape, -1) != 0, axis=-1)


def _first(entries: Array, candidates: BoolArray, once: BoolArray, q: int | None) -> Array:
    """Entry times with ``inf`` after the first q candidates of each replicate; ties at the end are all left out."""
    if q is None or q >= once.sum():
        return entries
    limit = np.sort(entries[:, once], axis=1)[:, q]  # the first entry that is too many
    return np.where((entries < limit[:, None]) | ~candidates, entries, np.inf)


def _share_entered(counted: Array, times: Array) -> Array:
    """Share of the replicates on which an item has entered by each time."""
    fresh = np.zeros((len(times) + 1, counted.shape[1]))  # the last row is what comes later than the clock
    for entry in counted:
        fresh[np.searchsorted(times, entry), np.arange(len(entry))] += 1
    return np.cumsum(fresh[:-1], axis=0) / len(counted)


def _share_active(active: list[Any], counted: Array, times: Array, edges: IntArray | None) -> Array:
    """Share of the replicates in whose model an item is, of those items that count."""
    total = np.zeros((len(times), counted.shape[1]))
    for now, entry in zip(active, counted, strict=True):
        flat = now if edges is None else now[:, edges[:, 0], edges[:, 1]]
        total += flat[: len(times)] & (entry <= times[:, None])
    return total / len(active)


def _check_candidates(candidates: Any, n_items: int, edges: IntArray | None) -> BoolArray:
    mask = np.ones(n_items, dtype=bool) if candidates is None else np.asarray(candidates, dtype=bool)
    if edges is not None and mask.ndim == 2:
        mask = mask[edges[:, 0], edges[:, 1]]
    if mask.shape != (n_items,):
        raise ValueError(f"`candidates` must say yes or no to each of {n_items} items, found shape {mask.shape}.")
    return mask


def _check_groups(groups: Any, entries: Array) -> tuple[IntArray, Array]:
    """Labels from 0 on, and the entry times of groups: that of the first of their items."""
    if np.shape(groups) != (entries.shape[1],):
        raise ValueError(
            f"`groups` must have one label for each of {entries.shape[1]} items, found shape {np.shape(groups)}."
        )
    labels = np.unique(groups, return_inverse=True)[1].ravel()
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(labels.max(initial=-1) + 1))
    return labels, np.minimum.reduceat(entries[:, order], starts, axis=1)[:, labels]
