"""What every store and every block promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bregpath._known_to_core import Kernel
from bregpath._typing import Array, IntArray

__all__ = [
    "AbstractBlock",
    "AbstractStore",
    "BlockStore",
    "Scan",
    "beyond_squares",
    "one_by_one",
    "scan_columns",
    "side_by_side",
]

# A store up to this size is gathered whole: then every column works and nothing needs to be proved.
MOST_VARIED = 0.25  # variance over mean of how many numbers a one-hot row has; 1 where they are anywhere
WHOLE_BYTES = 32 * 2**20


@dataclass(frozen=True, eq=False)
class Scan:
    """Weighted mean and standard deviation (1/n) of every column: all that is asked of a first pass over the data.

    A column that holds NaN or infinity has no finite mean. Weighted norms follow: ``|x|^2 = mean^2 + deviation^2``.

    Examples
    --------
    >>> import numpy as np
    >>> scan_columns(np.array([[2.0, 3.0], [4.0, 3.0]]), np.array([0.5, 0.5])).deviation
    array([1., 0.])
    """

    mean: Array  # (p,)
    deviation: Array  # (p,)

    @cached_property
    def largest(self) -> tuple[float, float]:
        """Mean, without its sign, and deviation."""
        return float(np.max(np.abs(self.mean), initial=0.0)), float(np.max(self.deviation, initial=0.0))

    @property
    def size(self) -> Array:
        r"""Weighted norm of every column, :math:`(\sum_i w_i x_i^2)^{1/2}`."""
        return np.hypot(self.mean, self.deviation)

    def group_size(self, groups: IntArray) -> Array:
        """At every column, a bound of the weighted norm of its group: of the map from the group to the predictor."""
        return np.sqrt(np.bincount(groups, weights=self.size**2)[groups])

    def standardized(self, center: Array, scale: Array) -> Scan:
        """The same of ``(X - center) / scale``."""
        return Scan((self.mean - center) / scale, self.deviation / scale)

    @staticmethod
    def join(parts: Sequence[Scan]) -> Scan:
        """The scan of columns that were scanned in parts."""
        return Scan(np.concatenate([s.mean for s in parts]), np.concatenate([s.deviation for s in parts]))


def is_one_hot(filled: IntArray) -> bool:
    """Whether rows hold about as many numbers each, as the indicators of some categories do: anywhere else they vary.

    Examples
    --------
    >>> is_one_hot(np.array([3, 3, 3, 3])), is_one_hot(np.array([1, 5, 3, 2]))
    (True, False)
    """
    return bool(filled.var() <= MOST_VARIED * filled.mean())


class AbstractBlock(ABC):
    """A few columns, laid out for repeated products: all that the kernels of a path see of the data.

    Coefficients are ``(k, c)`` for ``k`` columns, predictors are matrices. In a regression both have one column an
    output; in a graph a coefficient belongs to a pair of nodes and acts on the predictors of both.
    """

    shape: tuple[int, int]

    @abstractmethod
    def matvec(self, beta: Array) -> Array:
        """``X @ beta`` in float64."""

    @abstractmethod
    def rmatvec(self, residual: Array) -> Array:
        """``X.T @ residual`` in float64."""

    @abstractmethod
    def columns(self, index: IntArray) -> AbstractBlock:
        """Some of the columns as a block of their own."""

    @abstractmethod
    def append(self, more: AbstractBlock) -> AbstractBlock:
        """A block, of the same kind, with the columns of another one behind those of this one."""

    def rmatvec_many(self, residuals: Array) -> Array:
        """`rmatvec` of several residuals ``(b, n, q)`` at once: ``(b, k, c)``."""
        return np.stack([self.rmatvec(residual) for residual in residuals])

    def standardized(self, center: Array, scale: Array) -> AbstractBlock:
        """``(X - center) / scale``; may write into a block that was just fetched."""
        raise TypeError(f"{type(self).__name__} cannot be standardised; use standardize=False.")

    def kernel(self) -> Kernel | None:
        """What the compiled core knows this very class as; see `bregpath.losses.AbstractLoss.kernel`."""
        return None


class AbstractStore(ABC):
    """Where the columns of X live: in memory, on a disk, on other machines.

    A path asks a store for little: one `scan` and one product with all columns to begin with; then for the few columns
    that come to matter, and now and then for products with all of them again. Dense, sparse and standardised data are
    stores, and so are the pairs of a graph, so no other code knows the difference. ``shape`` is rows x columns.
    """

    shape: tuple[int, int]
    # Whether the unpenalised parameters are one intercept a column of the predictor: then the loss knows the best ones
    # where nothing else has entered, and may leave out constants that they absorb.
    has_intercepts: bool = True
    # Numbers, zeros included, from which on it pays to leave columns at rest alone, if few move: where there are far
    # more columns than rows, and where not.
    least_screened: tuple[float, float] = (np.inf, np.inf)
    # Whether single columns can be read at little cost; else they are asked for only once they are to work.
    has_cheap_columns: bool = True
    # Whether products with a frozen curvature are so much cheaper than gradients that steps should linearise the loss.
    has_cheap_curvature: bool = False

    @abstractmethod
    def scan(self, w: Array) -> Scan:
        """Mean and deviation of every column with weights ``w`` that sum to one, in one pass; see `scan_columns`."""

    @abstractmethod
    def products(self, vectors: Array, columns: IntArray | None = None) -> Array:
        """``X[:, columns].T @ vectors`` of several vectors ``(b, n, q)`` in one pass: ``(b, k, q)`` in float64.

        ``columns=None`` means all of them.
        """

    @abstractmethod
    def fetch(self, columns: IntArray) -> AbstractBlock:
        """Some columns, or none, as a block that nobody else writes into."""

    @property
    def is_small(self) -> bool:
        """Whether the columns are so few that all of them may as well be fetched at once."""
        return 8 * self.shape[0] * self.shape[1] <= WHOLE_BYTES

    def filled(self, rows: IntArray) -> IntArray | None:
        """How many entries of some rows are not zero before they are standardised; None where nobody knows."""
        return None

    def row_blocks(self) -> Iterator[tuple[slice, Array]] | None:
        """Runs of rows as float64 arrays, where that is cheap (dense data, and few sparse columns); else None."""
        return None

    @property
    def nbytes(self) -> float:
        """Size of a copy of all rows, infinite where `rows` cannot be asked for."""
        return np.inf

    def rows(self, index: IntArray) -> AbstractStore:
        """A copy of some rows, as a store of their own."""
        raise NotImplementedError(f"{type(self).__name__} does not copy rows; give other rows the weight zero.")

    def predict(self, beta: Array, columns: IntArray, rows: IntArray) -> Array:
        """``X[rows][:, columns] @ beta``."""
        return self.fetch(columns).matvec(beta)[rows]

    def reader(self, rows: IntArray) -> Callable[[Array, IntArray], Array]:
        """`predict` of some rows by coefficients and columns, asked again and again, of more and more columns."""
        return lambda beta, columns: self.predict(beta, columns, rows)

    def kernel(self) -> Kernel | None:
        """What the compiled core knows this very class as: then columns are read where they lie."""
        return None

    def n_alpha(self, n_outputs: int) -> int:
        """Number of unpenalised parameters for a predictor with so many columns."""
        return n_outputs

    def spread(self, alpha: Array, eta: Array) -> Array:
        """``eta`` with the unpenalised parameters ``alpha`` added: one for each column of ``eta``."""
        return eta + (alpha if len(alpha) > 1 else alpha[0])  # a number is added to one column much faster

    def collect(self, residual: Array) -> Array:
        """The adjoint of `spread`: derivative with respect to ``alpha``."""
        return residual.sum(axis=0)


class BlockStore(AbstractStore):
    """A store whose columns all lie in one block; `scan` is left to say."""

    def __init__(self, block: AbstractBlock) -> None:
        self.block = block
        self.shape = block.shape

    def products(self, vectors: Array, columns: IntArray | None = None) -> Array:
        block = self.block if columns is None else self.block.columns(columns)
        return block.rmatvec_many(vectors)

    def fetch(self, columns: IntArray) -> AbstractBlock:
        return self.block.columns(columns)


def side_by_side(vectors: Array) -> Array:
    """Several matrices ``(b, n, q)`` as one ``(n, q b)``, so that one product does for all; see `one_by_one`."""
    b, n, q = vectors.shape
    return vectors.transpose(1, 2, 0).reshape(n, q * b)


def one_by_one(products: Array, b: int) -> Array:
    """The products ``(k, q b)`` of matrices `side_by_side`, taken apart: ``(b, k, q)``."""
    return products.reshape(len(products), products.shape[1] // b, b).transpose(2, 0, 1)


def beyond_squares(mean: Array, variance: Array) -> IntArray:
    """Columns so large or so small that the squares of their values overflow or vanish."""
    strange = ~np.isfinite(variance) | (variance < 1e-270) & (np.abs(mean) < 1e-130)
    return np.flatnonzero(strange & np.isfinite(mean))


def scan_columns(X: Array, w: Array) -> Scan:
    """The `Scan` of dense columns, for values from 1e-290 to 1e290.

    Examples
    --------
    >>> import numpy as np
    >>> scan_columns(np.array([[2e200, 3.0], [4e200, np.nan]]), np.array([0.5, 0.5])).mean
    array([3.e+200,     nan])
    """
    with np.errstate(over="ignore", invalid="ignore"):  # squares, and values that are not finite
        mean = w @ X
        squares = X - mean
        squares *= squares
        variance = w @ squares
        deviation = np.sqrt(variance)
        if len(extreme := beyond_squares(mean, variance)):
            size = np.max(np.abs(X[np.ix_(w > 0, extreme)]), axis=0, initial=0.0)  # rows of weight 0 have no say
            extreme, size = extreme[size > 0], size[size > 0]
            part = scan_columns(X[:, extreme] / size, w)
            mean[extreme], deviation[extreme] = size * part.mean, size * part.deviation
    return Scan(mean, deviation)
