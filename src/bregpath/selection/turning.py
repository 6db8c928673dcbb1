"""When a curve has clearly turned, so that its best point is known before its end."""

from __future__ import annotations

import numpy as np

from bregpath._typing import Array

__all__ = ["MIN_FOLDS", "clear_turn"]

# The error bars of fewer folds are too rough to end anything by.
MIN_FOLDS = 4


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
    >>> curve = np.array([9.0, 5.0, 5.5, 6.5, 7.0, 8.0])
    >>> clear_turn(curve, np.full(6, 0.5), patience=2)
    (4, 3)
    >>> clear_turn(curve, np.full(6, 0.5), patience=4)
    (None, 3)
    >>> clear_turn(curve, np.full(6, 0.4), patience=4, smooth=True)
    (5, 4)
    """
    curve = np.where(np.isfinite(mean), -mean if larger_is_better else mean, np.inf)
    best = np.minimum.accumulate(curve)
    place = np.maximum.accumulate(np.where(np.r_[True, best[1:] < best[:-1]], np.arange(len(curve)), 0))
    margin = np.maximum(se, se[place]) if smooth else se + se[place]
    with np.errstate(invalid="ignore"):  # inf - inf, where nothing was finite yet
        worse = (curve - best > margin) | (np.isinf(curve) & np.isfinite(best))
    # Length of the run of clearly worse points that ends at each point.
    order = np.arange(1, len(curve) + 1)
    run = order - np.maximum.accumulate(np.where(worse, 0, order))
    turned = np.flatnonzero(run >= patience)
    return (int(turned[0]) if len(turned) else None), int(run[-1])
