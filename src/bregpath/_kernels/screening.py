"""What proofs that columns stay at zero are made of, in NumPy: lengths of large vectors, and bounds of all columns.

And moments of fewer rows.
"""

from __future__ import annotations

import numpy as np

from bregpath._typing import Array, BoolArray, IntArray
from bregpath.penalties import AbstractPenalty

__all__ = ["MARGIN", "lengths", "lessen", "may_cross"]

MARGIN = 1e-9  # closer than this to a threshold a bound decides nothing


def lengths(R: Array, residual: Array, end: Array, last: Array, weights: Array) -> Array:
    """Weighted inner products (5, k) of ``d = R - end`` and ``r = residual`` (k, n): d'd, d'r, r'r, d'last, r'last."""
    d = R - end
    wd, wr = d * weights, residual * weights
    squares = [np.einsum("kn,kn->k", *pair) for pair in ((wd, d), (wd, residual), (wr, residual))]
    return np.stack([*squares, wd @ last, wr @ last])


def lessen(whole: Array, lost: Array, share: float, moved: Array, unit: Array) -> Array:
    """The Gram matrix of the rows that are left, a ``share`` of the weight, in units of its columns: from the matrix of
    all rows, what is ``lost`` of it about the same means, and by how much these have moved.
    """
    return ((whole - lost) / share - np.outer(moved, moved)) / np.outer(unit, unit)


def may_cross(
    penalty: AbstractPenalty, z: Array, along: Array, slack: Array, bounds: Array, owner: IntArray,
    columns: IntArray | None = None,
) -> BoolArray:  # fmt: skip
    """Columns, in whole groups, that bounds do not exclude from crossing their thresholds.

    Each row of ``bounds`` is what is seen from a reference: least and largest way along its direction, and the length
    of what is left besides; ``owner`` is the reference of each column. Penalty and slack are those of all columns, the
    rest is that of some ``columns`` only if these are given.
    """
    if columns is not None:
        penalty, slack = penalty.take(columns), slack[columns]
    low, high, rest = bounds[owner].T[..., None]
    # The distance to a threshold is concave along the direction: over an interval its ends are the worst.
    reach = slack * rest + MARGIN
    near = np.any(penalty.entry(z + low * along) < reach, axis=1)
    near |= np.any(penalty.entry(z + high * along) < reach, axis=1)
    return penalty.close(near)
