"""Coefficients made to obey a structure exactly: ``D b = 0`` but for the rows that are active."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from bregpath._typing import Array, BoolArray

__all__ = ["Projection"]

EXACT = 1e-10  # of what rows may miss zero by, relative to their entries and the coefficients
SLACK = 1e-10  # of rows that depend on each other, relative to the largest entry of D squared
REFINEMENTS = 4  # each divides what is left by the square of a singular value over the slack


class Projection:
    """The nearest coefficients with ``D[j] b = 0`` for all rows j that are not active.

    Examples
    --------
    >>> import numpy as np
    >>> from bregpath.structures import fused
    >>> project = Projection(fused(4))
    >>> project(np.array([1.0, 3.0, 6.0, 8.0]), np.array([False, True, False]))
    array([2., 2., 7., 7.])
    """

    def __init__(self, D: Any) -> None:
        self.D = D

    def __call__(self, coef: Array, active: BoolArray) -> Array:
        rest = self.D[np.flatnonzero(~active)]
        if not rest.shape[0]:
            return coef
        if self._joins_pairs:
            _, piece = self._pieces(rest)
            return (np.bincount(piece, weights=coef) / np.bincount(piece))[piece]
        return _onto_null_space(rest, coef)

    def dimension(self, active: BoolArray) -> int:
        """Number of coefficients that are left to choose: of pieces, where D takes differences; else see `_rank`."""
        rest = self.D[np.flatnonzero(~active)]
        if self._joins_pairs:
            return self._pieces(rest)[0]
        return int(self.D.shape[1] - _rank(rest))

    @cached_property
    def _joins_pairs(self) -> bool:
        """Whether every row is a multiple of a difference of two coefficients: then all that are joined are equal."""
        pairs = np.all(np.diff(self.D.indptr) == 2)
        return bool(pairs and np.all(self.D.data[::2] == -self.D.data[1::2]))

    def _pieces(self, rest: Any) -> tuple[int, Array]:
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        ends = rest.indices.reshape(-1, 2).T
        joined = coo_array((np.ones(ends.shape[1]), (ends[0], ends[1])), shape=(rest.shape[1],) * 2)
        return connected_components(joined, directed=False)


def _rank(rest: Any) -> int:
    """The rank that the places of the entries allow: the rank itself, or more where rows depend on each other."""
    from scipy.sparse.csgraph import structural_rank

    return int(structural_rank(rest)) if rest.shape[0] else 0


def _onto_null_space(rest: Any, coef: Array) -> Array:
    """``argmin |b - coef|^2`` with ``rest b = 0``, by the equations of its multipliers."""
    m, p = rest.shape
    if _rank(rest) == m:
        nearest = _solve(rest, coef, np.zeros(m), 0.0)[:p]
        if np.abs(rest @ nearest).max() <= EXACT * np.abs(coef).max(initial=0.0) * np.abs(rest.data).max():
            return nearest
    # Rows that depend on each other have no single multipliers; with a slack they have, which in turn removes it.
    slack, found = SLACK * float(np.max(np.abs(rest.data))) ** 2, np.zeros(p + m)
    for _ in range(REFINEMENTS):
        found = _solve(rest, coef, found[p:], slack)
    return found[:p]


def _solve(rest: Any, coef: Array, multipliers: Array, slack: float) -> Array:
    """Coefficients and multipliers; not numbers where the equations are singular."""
    from scipy.sparse import block_array, eye_array
    from scipy.sparse.linalg import splu

    m, p = rest.shape
    equations = block_array([[eye_array(p), rest.T], [rest, -slack * eye_array(m)]], format="csc")
    try:
        return splu(equations).solve(np.concatenate([coef, -slack * multipliers]))  # type: ignore[no-any-return]
    except RuntimeError:
        return np.full(p + m, np.nan)
