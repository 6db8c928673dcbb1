"""The Gram matrix of the columns, with which squared loss needs no pass over the rows."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cached_property
from mmap import mmap
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from bregpath._kernels import block_products, columns_of, has_compiled
from bregpath._known_to_core import Kernel, is_known_as, only_for_its_class
from bregpath._sums import dot
from bregpath._typing import Array, IntArray
from bregpath.problem import Problem
from bregpath.stores import AbstractBlock, AbstractStore, DenseBlock, DenseStore, Scan, SparseBlock

__all__ = [
    "LARGE_MEAN",
    "CentralMoments",
    "GramBlock",
    "GramOnDemand",
    "SparseGram",
    "as_dense",
    "central_moments",
    "products_with",
    "with_moments",
]

MAX_WHOLE = 4000  # columns of a matrix that stands for all of them
SPARSE_SHARE = 4  # of the rows, up to which the square of a number of sparse columns is few
MADE_TOGETHER = 16  # rows of a matrix that are made at once, or a multiple of it ...
MADE_SHARE = 0.25  # ... that is at least this share of those that are there
LARGE_MEAN = 10.0  # square of a mean over the variance, beyond which a difference of moments is too coarse
ROUNDING = 1e-28  # the same for means that are zero but for rounding

RowMaker = Callable[[IntArray, Array], Array]  # rows of a Gram matrix; columns, and how long each has to wait


class GramBlock(AbstractBlock):
    r"""Working columns with their moments and those of ``y - offset`` about the means.

    With ``m`` the means of the columns and ``u = alpha + m'b - mean(y)`` the mean residual,

    .. math:: \ell = \tfrac12 (b'Gb - 2 b'c + v + u^2), \qquad \nabla_b \ell = G b - c + u\, m ,

    where G, c and v are *central* moments: nothing cancels, however far the data are from zero. Where the block holds
    all columns of the store (``block`` is None) their rows are not fetched; then G may be known.
    """

    def __init__(self, problem: Problem, block: AbstractBlock | None, gram: Array | None = None) -> None:
        self.problem = problem
        self.rows = rows = None if block is None else as_dense(block)
        self.shape = problem.store.shape if rows is None else rows.shape
        self._center_response()
        self._used = [self.shape[1]]
        if gram is not None:
            self._room = gram
            self._read_store()
            return
        store = problem.store if rows is None else DenseStore(rows.X)
        moments = central_moments(store, problem.w, self.y, np.zeros(self.shape[1]))
        # Central moments as differences lose the digits of a mean that is large: then the rows are centred first.
        if np.any(moments.mean**2 > LARGE_MEAN * np.diagonal(moments.matrix)):
            moments = central_moments(store, problem.w, self.y, moments.mean)
        self._room, self.mean, self.target = moments

    def _center_response(self) -> None:
        problem = self.problem
        y = problem.y - problem.offset[:, 0]
        self.y_mean = dot(problem.w, y)
        self.y = y - self.y_mean
        self.y_square = dot(problem.w, self.y**2)

    def _read_store(self) -> None:
        """The moments that are no matrix, of all columns."""
        problem, begun = self.problem, self.problem.beginning
        self.mean = problem.scan.mean
        if begun.alpha[0] == self.y_mean and not begun.beta.any():  # where a path begins with the very same product
            self.target = begun.slope[:, 0]
        else:
            self.target = problem.store.products((problem.w * self.y)[None, :, None])[0, :, 0]

    @staticmethod
    def pays_whole(problem: Problem) -> bool:
        """Whether the matrix of all columns is small enough to replace the store altogether."""
        n, p = problem.store.shape
        return _is_squared(problem) and p <= min(n, MAX_WHOLE) and problem.store.row_blocks() is not None

    @staticmethod
    def pays(problem: Problem, block: AbstractBlock) -> bool:
        """Whether products with the matrix of some columns are cheaper than those with their rows."""
        (n, m), p = block.shape, problem.store.shape[1]
        can_be_dense = type(block) is DenseBlock or (p <= 2 * n and problem.store.row_blocks() is not None)
        return _is_squared(problem) and can_be_dense and m <= 2 * n

    def matvec(self, beta: Array) -> Array:
        return self._columns().matvec(beta)

    def rmatvec(self, residual: Array) -> Array:
        return self._columns().rmatvec(residual)

    def columns(self, index: IntArray) -> AbstractBlock:
        return self.problem.store.fetch(index) if self.rows is None else self.rows.columns(index)

    @cached_property
    def in_core(self) -> Any:
        """The columns of the store for the compiled core, if it knows them."""
        return columns_of(self.problem.store)

    @property
    def matrix(self) -> Array:
        """As much of it as there is."""
        size = self.shape[1]
        return self._room[:size, :size]

    @property
    def nbytes(self) -> int:
        """Size of the whole matrix."""
        return 8 * self.shape[1] ** 2

    def rows_of(self, columns: IntArray, wait: Array) -> Array:
        """Some rows of the matrix."""
        return self._room[columns]

    def _columns(self) -> AbstractBlock:
        return self.columns(np.arange(self.shape[1])) if self.rows is None else self.rows

    def append(self, more: AbstractBlock) -> AbstractBlock:
        """The block with more columns; without the matrix where it no longer pays."""
        assert self.rows is not None
        rows = self.rows.append(self._as_rows(more))
        if not self.pays(self.problem, rows):
            return rows
        old, new = self.shape[1], rows.shape[1]
        mean, products, target = self._moments_of(rows, old)
        grown = copy(self)
        grown.rows, grown.shape = rows, rows.shape
        # Matrices that share the room share the count of its used rows: only the largest may write behind its end.
        if new > len(self._room) or self._used[0] != old:
            grown._room = np.empty((2 * new, 2 * new))
            grown._room[:old, :old] = self._room[:old, :old]
            grown._used = [new]
        grown._room[:new, old:new] = products
        grown._room[old:new, :old] = products[:old].T
        grown._used[0] = new
        grown.mean = np.concatenate([self.mean, mean])
        grown.target = np.concatenate([self.target, target])
        return grown

    def _as_rows(self, block: AbstractBlock) -> Any:
        return as_dense(block)

    def _moments_of(self, rows: Any, first: int) -> tuple[Array, Array, Array]:
        """Means of the columns from a first one on, their products with all columns, and with y."""
        X, w = rows.X, self.problem.w
        mean = w @ X[:, first:]
        added = X[:, first:] - mean
        # The weighted sum of `added` is zero, so the other factor need not be centred.
        products = block_products(rows, (added * w[:, None]).T[..., None])[..., 0]
        return mean, products.T, (w * self.y) @ added

    @only_for_its_class
    def kernel(self) -> Kernel:
        numbers = self._numbers()
        return Kernel("gram", numbers if self.rows is None else {**numbers, "dense": self.rows.X})

    def _numbers(self) -> dict[str, Any]:
        return {
            "gram": self.matrix,
            "gram_mean": self.mean,
            "gram_target": self.target,
            "y_mean": self.y_mean,
            "y_square": self.y_square,
        }


class SparseGram(GramBlock):
    """The same of few sparse columns of many rows, which stay sparse."""

    def __init__(self, problem: Problem, block: SparseBlock) -> None:
        self.problem, self.rows, self.shape = problem, block, block.shape  # type: ignore[assignment]
        self._center_response()
        self._used = [self.shape[1]]
        self.mean, self._room, self.target = self._moments_of(block, 0)

    @staticmethod
    def pays(problem: Problem, block: AbstractBlock) -> bool:
        """Whether a product with the matrix is cheaper than what is done with every row at a gradient."""
        n, m = block.shape
        is_few = m * m <= SPARSE_SHARE * n and has_compiled()  # NumPy has no kernels for it
        if not (type(block) is SparseBlock and is_few and _is_squared(problem)):
            return False
        # What is zero in half of the rows varies by more than its mean: no difference of moments is rounding.
        return bool(np.max(np.diff(block.X.indptr), initial=0) * problem.w.max() <= 0.5)

    def _as_rows(self, block: AbstractBlock) -> Any:
        return block

    def _moments_of(self, rows: Any, first: int) -> tuple[Array, Array, Array]:
        X, w, scale = rows.X, self.problem.w, rows.scale
        mean, weighted = X.T @ w, X[:, first:].copy()
        weighted.data = weighted.data * w[weighted.indices]
        products = (X.T @ weighted).toarray() - np.outer(mean, mean[first:])
        products /= scale[:, None] * scale[first:]
        target = (weighted.T @ self.y - mean[first:] * dot(w, self.y)) / scale[first:]
        return (mean - rows.center)[first:] / scale[first:], products, target

    @only_for_its_class
    def kernel(self) -> Kernel:
        kernel = self.rows.kernel()  # type: ignore[union-attr]
        assert kernel is not None
        return Kernel("sparse-gram", {**self._numbers(), **kernel.numbers})


class GramOnDemand(GramBlock):
    """The matrix of all columns of the store, of which a row is made when its column is about to move.

    Columns that stay at zero are most, and need none. Kernels that know of it call ``make_rows`` before they use a row.
    Problems, and threads, may share the matrix: what a row is does not depend on those that are made with it.

    Parameters
    ----------
    problem : Problem
    made_by : callable, optional
        Makes some rows; by default from the rows of the data.
    """

    def __init__(self, problem: Problem, made_by: RowMaker | None = None) -> None:
        self.problem, self.rows, self.shape = problem, None, problem.store.shape
        self._center_response()
        self._read_store()
        p = self.shape[1]
        # What is not written takes no memory: of a map that is so page by page, of a large array of NumPy by 2 MB.
        self._room = np.frombuffer(mmap(-1, 8 * p * p)).reshape(p, p)
        self._is_made, self.has_moved = np.zeros(p, dtype=bool), np.zeros(p, dtype=bool)
        self._made_by, self._lock = made_by, Lock()

    def make_rows(self, wait: Array) -> None:
        """The rows of columns that move (``wait`` is 0), and of those that will soonest where any is made."""
        moves = wait <= 0
        self.has_moved |= moves
        if not self._is_made[moves].all():
            self.make(wait, int((1 + MADE_SHARE) * np.count_nonzero(moves)))

    def make(self, wait: Array, least: int = 0) -> None:
        """Make what is missing of rows that are wanted (``wait`` is 0), and others until there are so many."""
        with self._lock:
            missing = ~self._is_made
            wanted = np.count_nonzero(missing & (wait <= 0))
            if not wanted:
                return
            count = max(wanted, least - np.count_nonzero(self._is_made))
            # Of whole batches a row is the same bit by bit, whichever others are in them.
            count = -(-count // MADE_TOGETHER) * MADE_TOGETHER
            columns = np.argsort(np.where(missing, wait, np.inf), kind="stable")[:count]
            rows, new = (self._made_by or self._sum_up)(columns, wait), missing[columns]
            self._room[columns[new]] = rows[new]
            self._is_made[columns] = True

    def rows_of(self, columns: IntArray, wait: Array) -> Array:
        wait = wait.copy()
        wait[columns] = 0.0
        self.make(wait)
        return super().rows_of(columns, wait)

    def _sum_up(self, columns: IntArray, wait: Array) -> Array:
        return products_with(self.problem.store, columns, self.mean, self.problem.w)

    @only_for_its_class
    def kernel(self) -> Kernel:
        return Kernel("gram", {**self._numbers(), "make_rows": self.make_rows})


class CentralMoments(NamedTuple):
    """Of columns: the matrix of their products, their means, and their products with y."""

    matrix: Array
    mean: Array
    target: Array

    @property
    def scan(self) -> Scan:
        """Means and deviations."""
        return Scan(self.mean, np.sqrt(self.matrix.diagonal()))

    def scaled(self, scale: Array) -> tuple[Array, Array]:
        """Matrix and products with y, of the columns over a scale; writes into the matrix."""
        self.matrix[:] /= scale
        self.matrix[:] /= scale[:, None]
        return self.matrix, self.target / scale


def central_moments(store: AbstractStore, w: Array, y: Array, shift: Array, columns: Any = None) -> CentralMoments:
    """Weighted sums over the rows, about the means; ``shift`` is what is subtracted before they are known.

    ``columns`` are those of the store where they lie, if they are at hand.
    """
    columns = columns_of(store) if columns is None else columns
    sums = _sum_products(store, w, y, shift) if columns is None else columns.moments(w, y, shift)
    total = float(w.sum())
    matrix, rest = sums[:-2, :-2], sums[:-2, -2] / total
    if (rest**2 > ROUNDING * matrix.diagonal()).any():
        matrix -= (total * rest)[:, None] * rest
    return CentralMoments(matrix, shift + rest, sums[:-2, -1].copy())


def _sum_products(store: AbstractStore, w: Array, y: Array, shift: Array) -> Array:
    """Weighted sums of products of columns, less a shift, with each other, then with ones and with ``y``."""
    p = len(shift)
    sums = np.zeros((p + 2, p + 2))
    is_uniform = w.min() == w.max()
    blocks = store.row_blocks()
    if blocks is None:  # few rows of a sparse store, of which less is stored than of the others
        blocks = DenseStore(as_dense(store.fetch(np.arange(p))).X).row_blocks()
    for part, rows in blocks:
        weights = w[part]
        rows = rows - shift if shift.any() else rows
        if is_uniform:  # a matrix times its own transpose is symmetric, which BLAS knows: half the work
            squares = rows.T @ rows
            squares *= weights[0]
        else:
            squares = rows.T @ (rows * weights[:, None])
        sums[:p, :p] += squares
        sums[:p, p:] += rows.T @ np.stack([weights, weights * y[part]], axis=1)
    return sums


def products_with(store: AbstractStore, columns: IntArray, mean: Array, w: Array) -> Array:
    """Weighted products of some columns, without their means, with all columns."""
    X = as_dense(store.fetch(columns)).X - mean[columns]
    X -= w @ X / w.sum()  # what the rounding of large means leaves
    X *= w[:, None]
    # The weighted sum of the centred columns is zero, so the other factor need not be centred.
    rows: Array = (columns_of(store) or store).products(X.T[..., None])[..., 0]
    return rows


def with_moments(problem: Problem, block: AbstractBlock) -> AbstractBlock:
    """A block with the Gram matrix of its columns, where that pays."""
    if GramBlock.pays(problem, block):
        return GramBlock(problem, block)
    if SparseGram.pays(problem, block):
        return SparseGram(problem, block)  # type: ignore[arg-type]
    return block


def as_dense(block: AbstractBlock) -> DenseBlock:
    """The columns of a block, one after the other."""
    return block if isinstance(block, DenseBlock) else DenseBlock(block.matvec(np.eye(block.shape[1])))


def _is_squared(problem: Problem) -> bool:
    return is_known_as(problem.loss, "gaussian") and problem.store.has_intercepts
