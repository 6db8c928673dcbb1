"""Curves of folds: their mean and error, their best point, and when they have clearly turned."""

from __future__ import annotations

import numpy as np

from bregpath._typing import Array, IntArray

__all__ = [
    "MIN_FOLDS",
    "SE_RULES",
    "aggregate",
    "choose",
    "clear_turn",
    "curve_of",
    "is_clearly_better",
    "is_past",
    "lowest",
    "not_best",
    "paired_error",
    "paired_turn",
]

# The error bars of fewer folds are too rough to end anything by.
MIN_FOLDS = 4
# So many standard errors of the difference within folds tell a turn: by one alone later and better minima are missed.
PAIRED_MARGIN = 1.5
# Standard errors by which a path itself must be better than means to be preferred: curves of paths are restless, and
# the lowest of many points of such a curve is low by luck.
PLAIN_MARGIN = 0.5
# A curve that has no better point within this growth of t is past its best one, if it is worse than that by this share
# of a standard error: one that stands still may be about to jump.
PAST, WORSE = 2.0, 0.1
# What "within one standard error" is about: the difference to the best point, or the best point itself.
SE_RULES = ("paired", "glmnet")


def clear_turn(
    mean: Array, se: Array, patience: int, *, larger_is_better: bool = False, smooth: bool = False
) -> tuple[int | None, int]:
    r"""The first index at which a curve has clearly turned, or None; and how many last points are clearly worse.

    A point is *clearly worse* than the best one before it, b, when their error bars do not touch,

    .. math:: m_i - m_b > s_i + s_b ,

    and the curve has turned when ``patience`` points in a row are. So neither noise ends it nor the plateau of a
    curve that moves in steps (misclassification): there the error bars overlap. For a ``smooth`` curve the larger
    of the two standard errors is enough. A point that is not finite is worse than any that is.

    Examples
    --------
    >>> import numpy as np
    >>> clear_turn(np.array([9.0, 5.0, 5.5, 6.5, 7.0, 8.0]), np.full(6, 0.5), patience=2)
    (4, 3)
    """
    curve, place = _so_far(mean, larger_is_better)
    margin = np.maximum(se, se[place]) if smooth else se + se[place]
    return _first_run(curve, place, margin, patience)


def paired_turn(
    scores: Array, weights: Array, patience: int, *, larger_is_better: bool = False, times: Array | None = None
) -> tuple[int | None, int]:
    r"""As `clear_turn`; a point is clearly worse when it is so by 1.5 standard errors of the difference within folds.

    Folds differ more from each other than a curve within a fold from time to time, so that far smaller rises are
    told from noise. If ``times`` are given, those before twice the best one do not count.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.array([[3.0, 1.0, 1.2, 1.3, 1.4], [9.0, 8.0, 8.1, 8.3, 8.3]])
    >>> paired_turn(scores, np.ones(2), patience=2)
    (3, 3)
    """
    curve, place = _so_far(_mean_of(scores, weights), larger_is_better)
    margin = PAIRED_MARGIN * paired_error(scores, scores[:, place], weights)
    if times is not None:
        margin = np.where(times < PAST * times[place], np.inf, margin)
    return _first_run(curve, place, margin, patience)


def not_best(mean: Array, start: int, *, larger_is_better: bool = False) -> int | None:
    """The first index from ``start`` on at which a curve is not better than at all before, or None.

    Examples
    --------
    >>> import numpy as np
    >>> not_best(np.array([9.0, 5.0, 6.0, 4.0, 3.0, 3.5]), start=3)
    5
    """
    later = np.flatnonzero(_so_far(mean, larger_is_better)[1][start:] < np.arange(start, len(mean)))
    return start + int(later[0]) if len(later) else None


def is_past(scores: Array, weights: Array, times: Array) -> bool:
    """Whether a curve is worse than its lowest point, and that lies before half of the time.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.array([[3.0, 1.0, 1.8, 2.0], [9.0, 8.0, 8.6, 8.9]])
    >>> is_past(scores, np.ones(2), np.array([1.0, 2.0, 4.0, 8.0])), is_past(scores, np.ones(2), np.arange(2.0, 6.0))
    (True, False)
    """
    mean, se = aggregate(scores, weights)
    best = int(np.argmin(np.where(np.isfinite(mean), mean, np.inf)))
    return bool(PAST * times[best] <= times[-1] and not mean[-1] - mean[best] <= WORSE * se[best])


def lowest(scores: Array, weights: Array) -> tuple[float, Array]:
    """The lowest mean of scores (folds, times), and the scores of the folds there."""
    curve = curve_of(scores, weights)
    i = int(curve.argmin())
    return float(curve[i]), scores[:, i]


def curve_of(scores: Array, weights: Array) -> Array:
    """The mean over the folds, to be minimised: infinite where it is not a number."""
    mean = _mean_of(scores, weights)
    return np.where(np.isfinite(mean), mean, np.inf)


def _mean_of(scores: Array, weights: Array) -> Array:
    return weights / weights.sum() @ scores  # type: ignore[no-any-return]


def is_clearly_better(plain: Array, means: Array, weights: Array) -> bool:
    """Whether the lowest score of paths themselves is clearly lower than that of means over time."""
    best, there = lowest(means, weights)
    error = float(aggregate(there[:, None], weights)[1][0])
    return best - lowest(plain, weights)[0] > PLAIN_MARGIN * (error if np.isfinite(error) else 0.0)


def _so_far(mean: Array, larger_is_better: bool) -> tuple[Array, IntArray]:
    """The curve to be minimised, infinite where it is not finite, and the place of its best point so far."""
    curve = np.where(np.isfinite(mean), -mean if larger_is_better else mean, np.inf)
    best, place = np.minimum.accumulate(curve), np.arange(len(curve))
    place[1:][best[1:] >= best[:-1]] = 0
    return curve, np.maximum.accumulate(place)


def _first_run(curve: Array, place: IntArray, margin: Array, patience: int) -> tuple[int | None, int]:
    """Where ``patience`` points in a row are worse than the best before them by more than a margin."""
    best = curve[place]
    with np.errstate(invalid="ignore"):  # inf - inf, where nothing was finite yet
        worse = (curve - best > margin) | (np.isinf(curve) & np.isfinite(best))
    # Length of the run of clearly worse points that ends at each point.
    order = np.arange(1, len(curve) + 1)
    run = order - np.maximum.accumulate(np.where(worse, 0, order))
    turned = np.flatnonzero(run >= patience)
    return (int(turned[0]) if len(turned) else None), int(run[-1])


def choose(
    times: Array, mean: Array, se: Array, *, larger_is_better: bool = False, margin: float = 1.0,
    folds: tuple[Array, Array] | None = None,
) -> tuple[int, int]:  # fmt: skip
    r"""Indices of the best time and of the one-standard-error rule.

    .. math:: i_\min = \arg\min m, \qquad i_{1se} = \arg\min \{t_i : m_i \le m_{i_\min} + s_{i_\min}\};

    of equally good times (to rounding) the smallest counts. An undefined standard error (a single fold) counts as
    zero, and points where the mean is not finite are never chosen. With scores and weights of ``folds`` the standard
    error is that of the difference to the best time within folds, at each time. ``margin`` is how many of them count.

    Examples
    --------
    >>> import numpy as np
    >>> choose(np.array([1.0, 2.0, 3.0, 4.0]), np.array([9.0, 5.2, 5.0, 5.1]), np.full(4, 0.3))
    (2, 1)
    """
    order = np.argsort(times, kind="stable")
    curve = np.where(np.isfinite(mean), -mean if larger_is_better else mean, np.inf)[order]
    lowest = float(np.min(curve))
    if not np.isfinite(lowest):
        return int(order[0]), int(order[0])
    best = int(np.argmax(curve <= lowest + 1e-12 * abs(lowest)))
    error = np.full(len(curve), se[order[best]])
    if folds is not None:
        error = paired_error(folds[0], folds[0][:, [order[best]]], folds[1])[order]
    within = curve <= curve[best] + margin * np.where(np.isfinite(error), error, 0.0)
    return int(order[best]), int(order[np.argmax(within)])


def paired_error(scores: Array, best: Array, weights: Array) -> Array:
    """Standard error of the difference between scores and the best one, within folds.

    Examples
    --------
    >>> import numpy as np
    >>> paired_error(np.array([[1.0, 1.5], [3.0, 3.5]]), np.array([[1.0], [3.0]]), np.ones(2))
    array([0., 0.])
    """
    with np.errstate(invalid="ignore"):  # inf - inf
        return aggregate(scores - best, weights)[1]


def aggregate(scores: Array, weights: Array) -> tuple[Array, Array]:
    """Mean over the folds and its standard error, folds weighted by the rows they held out (as glmnet does).

    Examples
    --------
    >>> import numpy as np
    >>> mean, se = aggregate(np.array([[1.0], [3.0]]), np.array([3.0, 1.0]))
    >>> mean, se.round(3)
    (array([1.5]), array([0.866]))
    """
    with np.errstate(invalid="ignore", divide="ignore"):  # an infinite score of a fold; a single fold
        share = weights / weights.sum()
        mean = share @ scores
        variance = share @ (scores - mean) ** 2
        return mean, np.sqrt(variance / np.float64(len(weights) - 1))
