r"""Columns of numbers as normal scores: what a Gaussian graph sees of data that are monotone images of normal ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from bregpath._typing import Array

__all__ = ["NormalScores"]


@dataclass(frozen=True, eq=False)
class NormalScores:
    r"""The score :math:`\Phi^{-1}(F(x))` of every value x of each column, F the share of rows below it.

    Half of the rows that have the very value count as below, so that F is neither 0 nor 1 and ties share a score.

    Attributes
    ----------
    values, scores : tuple of ndarray
        Sorted values of each column, and their scores.

    Examples
    --------
    >>> import numpy as np
    >>> known = NormalScores.learn(np.array([[1.0], [10.0], [10.0], [1000.0]]), np.ones(4))
    >>> known.apply(np.array([[1.0], [10.0], [505.0], [np.nan]])).ravel().round(3)
    array([-1.15 ,  0.   ,  0.575,    nan])
    """

    values: tuple[Array, ...]
    scores: tuple[Array, ...]

    @classmethod
    def learn(cls, X: Array, w: Array) -> NormalScores:
        """Scores of the columns of a table whose rows count ``w``; cells of NaN are left out."""
        values, scores = [], []
        for column in X.T:
            known = ~np.isnan(column) & (w > 0)
            found, position = np.unique(column[known], return_inverse=True)
            weight = np.bincount(position.ravel(), weights=w[known])
            values.append(found)
            scores.append(ndtri((np.cumsum(weight) - 0.5 * weight) / weight.sum()))
        return cls(tuple(values), tuple(scores))

    def apply(self, X: Array) -> Array:
        """Scores of a table: straight lines between known values, the last score beyond them, NaN for NaN."""
        columns = [np.interp(*known) for known in zip(X.T, self.values, self.scores, strict=True)]
        return np.where(np.isnan(X), np.nan, np.column_stack(columns))
