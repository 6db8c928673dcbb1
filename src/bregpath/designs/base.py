"""What every design promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from bregpath._typing import Array, IntArray

__all__ = ["AbstractDesign"]


class AbstractDesign(ABC):
    """A linear map from coefficients to linear predictors: the only way data enters.

    Coefficients are ``(k, q)`` for ``k`` columns and ``q`` outputs, predictors ``(n, q)``. ``columns`` restricts a
    product to some columns; ``None`` means all of them. Dense, sparse, standardised or distributed data are
    designs, so no other code knows the difference.

    Designs that the compiled core can read name their ``layout`` and hand over their `arrays`.
    """

    shape: tuple[int, int]
    layout: str = "other"

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

    def row_blocks(self) -> Iterator[tuple[slice, Array]] | None:
        """Runs of rows as float64 arrays, where that is cheap (dense data); else None."""
        return None

    @abstractmethod
    def moments(self, w: Array) -> tuple[Array, Array]:
        """Weighted mean and standard deviation (1/n) of every column."""

    @abstractmethod
    def column_norms(self) -> Array:
        """Euclidean norm of every column."""
