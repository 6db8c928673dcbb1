"""Sums over the rows."""

from __future__ import annotations

import numpy as np

from bregpath._typing import Array

__all__ = ["dot"]

THREADED = 10_000  # numbers from which on BLAS may call its threads, which wait for each other longer than a sum takes


def dot(x: Array, y: Array) -> float:
    """The inner product of two vectors, always in this thread.

    Examples
    --------
    >>> import numpy as np
    >>> dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    return float(x @ y if len(x) < THREADED else np.einsum("i,i->", x, y))
