"""What every design promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np

from bregpath._typing import Array, IntArray

__all__ = ["AbstractColumns", "AbstractDesign", "beyond_squares"]

# A design up to this size is gathered whole: then every column works and nothing needs to be proved.
WHOLE_BYTES = 32 * 2**20


class AbstractDesign(ABC):
    """A linear map from coefficients to linear predictors: the only way data enters.

    Coefficients are ``(k, c)`` for ``k`` columns, predictors are matrices. In a regression both have one column an
    output; in a graph a coefficient belongs to a pair of nodes and acts on the predictors of both (`shape` is then
    rows x pairs). ``columns`` restricts a product to some columns; ``None`` means all of them. Dense, sparse,
    standardised or distributed data are designs, so no other code knows the difference.

    Designs that the compiled core can read name their ``layout`` and hand over their `arrays`.
    """

    shape: tuple[int, int]
    layout: str = "other"
    # Whether products with a frozen curvature are so much cheaper than gradients that steps should linearise the loss.
    has_cheap_curvature: bool = False

    @property
    def is_small(self) -> bool:
        """Whether products with all columns are so cheap that screening them does not pay."""
        return 8 * self.shape[0] * self.shape[1] <= WHOLE_BYTES

    def arrays(self) -> dict[str, Array]:
        """Arrays of the layout: ``dense``; or ``values, indices, indptr, center, scale`` for ``"csc"``."""
        return {}

    @abstractmethod
    def matvec(self, beta: Array, columns: IntArray | None = None) -> Array:
        """``X[:, columns] @ beta`` in float64."""

    @abstractmethod
    def rmatvec(self, residual: Array, columns: IntArray | None = None) -> Array:
        """``X[:, columns].T @ residual`` in float64."""

    @abstractmethod
    def columns(self, columns: IntArray) -> AbstractDesign:
        """Some columns as a design of their own, laid out for repeated products."""

    @abstractmethod
    def append(self, more: AbstractDesign) -> AbstractDesign:
        """Put the columns of another design, of the same kind, behind those of this one."""

    def rmatvec_many(self, residuals: Array, columns: IntArray | None = None) -> Array:
        """`rmatvec` of several residuals ``(b, ...)`` at once: ``(b, k, c)``."""
        return np.stack([self.rmatvec(residual, columns) for residual in residuals])

    def spread(self, alpha: Array, eta: Array) -> Array:
        """``eta`` with the unpenalised parameters ``alpha`` added: one for each column of ``eta``."""
        return eta + alpha

    def collect(self, residual: Array) -> Array:
        """The adjoint of `spread`: derivative with respect to ``alpha``."""
        return residual.sum(axis=0)

    @abstractmethod
    def column_norms(self) -> Array:
        """Euclidean norm of every column."""

    def group_norms(self, groups: IntArray) -> Array:
        """At every column, a bound of the norm of its group: of the map from the group to the predictor."""
        return np.sqrt(np.bincount(groups, weights=self.column_norms() ** 2)[groups])

    def row_blocks(self) -> Iterator[tuple[slice, Array]] | None:
        """Runs of rows as float64 arrays, where that is cheap (dense data); else None."""
        return None


def beyond_squares(mean: Array, variance: Array) -> IntArray:
    """Columns so large or so small that the squares of their values overflow or vanish."""
    return np.flatnonzero(~np.isfinite(variance) | (variance < 1e-270) & (np.abs(mean) < 1e-130))


class AbstractColumns(AbstractDesign):
    """Designs of a regression: a matrix with one column a variable, applied to every output alike."""

    @abstractmethod
    def moments(self, w: Array) -> tuple[Array, Array]:
        """Weighted mean and standard deviation (1/n) of every column."""

    @abstractmethod
    def columns(self, columns: IntArray) -> AbstractColumns:
        """Some columns as a design of their own, laid out for repeated products."""

    @abstractmethod
    def append(self, more: AbstractDesign) -> AbstractColumns:
        """Put the columns of another design, of the same kind, behind those of this one."""

    def rmatvec_many(self, residuals: Array, columns: IntArray | None = None) -> Array:
        # All residuals side by side: one product.
        b, n, q = residuals.shape
        products = self.rmatvec(np.moveaxis(residuals, 0, 2).reshape(n, q * b), columns)
        return np.moveaxis(products.reshape(len(products), q, b), 2, 0)
