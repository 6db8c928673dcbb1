"""Which of many findings to keep so that few of them are false."""

from __future__ import annotations

import numpy as np

from bregpath._typing import Array, BoolArray

__all__ = ["few_false"]

CLEARLY_NULL = 0.5  # p-values above which true findings are rare


def few_false(p_values: Array, share: float) -> BoolArray:
    r"""The findings to keep, of which a ``share`` is expected to be false at most.

    Benjamini and Hochberg keep the k smallest of m p-values for the largest k with :math:`p_{(k)} \le q k / m`, which
    lets through a share :math:`q \pi_0` where :math:`\pi_0` of all m are false. Here that is estimated from the large
    p-values (Storey, 2002), :math:`\hat\pi_0 = 2 (1 + \#\{p > 1/2\}) / m`, and q is ``share`` over it. No p-value
    above 1/2 is kept.

    Examples
    --------
    >>> few_false(np.array([0.001, 0.3, 0.06, 0.9]), 0.1)
    array([ True, False, False, False])
    >>> few_false(np.array([0.001, 0.002, 0.04, 0.03, 0.06]), 0.1)
    array([ True,  True,  True,  True,  True])
    """
    n_false = (1 + np.count_nonzero(p_values > CLEARLY_NULL)) / (1 - CLEARLY_NULL)
    ordered = np.sort(p_values)
    passed = np.flatnonzero(min(n_false, len(ordered)) * ordered <= share * np.arange(1, len(ordered) + 1))
    limit = ordered[passed[-1]] if len(passed) else -1.0
    return p_values <= min(limit, CLEARLY_NULL)
