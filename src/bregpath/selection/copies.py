"""Knockoff copies: columns like those of X, drawn without looking at y."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from bregpath import _frames, _validation
from bregpath._progress import work_bar
from bregpath._typing import Array
from bregpath.selection.checks import check_choice, make_generator
from bregpath.selection.replicates import MIN_ROWS

__all__ = ["copula_copies", "dense_columns", "elliptical_copies", "gaussian_copies"]

SPREADS = ("reconstruct", "equal")
FOLDS = 5  # of the rows, to choose the shrinkage
SWEEPS = 30  # over the columns, at most, to choose the spread
THIN = 4  # columns a row, from which on nothing of p x p entries is formed
BLOCK = 64  # columns between two updates of an inverse
LONG = 60.0  # seconds of work of which a user is told beforehand


def gaussian_copies(
    X: Any, seed: Any = 0, covariance: Any = None, spread: str = "reconstruct", progress: bool | None = False
) -> Array:
    r"""Second-order knockoff copies: the same mean and covariance as X, as little like X as that allows.

    For columns scaled to unit variance, with mean :math:`\mu`, correlation :math:`\Sigma` and :math:`S =
    \operatorname{diag}(s)`,

    .. math:: \tilde x \mid x \sim N\big( x - S \Sigma^{-1} (x - \mu),\; 2 S - S \Sigma^{-1} S \big).

    Then :math:`(x, \tilde x)` has a covariance that does not change when any columns are swapped with their copies;
    for normal X that is all, otherwise it is an approximation. The correlation of a column with its copy is
    :math:`1 - s_j`. "equal" takes the largest equal :math:`s_j = \min(1, 2 \lambda_{\min}(\Sigma))`, which two nearly
    identical columns make tiny for all; "reconstruct" minimises :math:`\operatorname{tr} (2 \Sigma - S)^{-1} +
    \sum_j 1 / s_j`, so that no column can be told from all others and their copies (Spector and Janson 2022).

    Unless given, :math:`\Sigma = (1 - \delta) R + \delta I` with the sample correlation R and the :math:`\delta` that
    maximises the normal likelihood of held-out rows. (Ledoit and Wolf's choice aims at another error and shrinks more,
    so that noise columns close to a true one beat their copies: the false discovery rate rose above its level.)

    Parameters
    ----------
    X : array of shape (n, p)
    seed : int, numpy.random.Generator or None, default 0
    covariance : array of shape (p, p), optional
    spread : {"reconstruct", "equal"}, default "reconstruct"
    progress : bool or None, default False
        Show a progress bar (needs rich); None shows it on a terminal.

    Notes
    -----
    The cost grows as :math:`p^3`, but as :math:`n^2 p` where p is at least 4 n and no covariance is given: then
    :math:`\Sigma` has rank n but for a multiple of I, and Woodbury's identity gives the same copies.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> copies = gaussian_copies(X)
    >>> bool(np.abs(np.corrcoef(X.T, copies.T)[:3, 3:]).max() < 0.2)
    True
    """
    check_choice("spread", spread, SPREADS)
    matrix, _ = dense_columns(X)
    mean, scale = matrix.mean(axis=0), matrix.std(axis=0)
    with work_bar(progress, "making copies", FOLDS + SWEEPS + 2) as report:
        if covariance is None:
            correlation = _estimate((matrix - mean) / scale, report)
        else:
            scale, given = _given_correlation(covariance, matrix.shape[1])
            correlation = FullCorrelation(given)
        s = equal_spread(correlation) if spread == "equal" else reconstruct_spread(correlation, report=report)
        report(FOLDS + SWEEPS + 1)
        if s.max() < 0.01:
            _warn_of_twins(correlation.matrix)
        return mean + scale * correlation.draw((matrix - mean) / scale, s, make_generator(seed))


def copula_copies(X: Any, seed: Any = 0, spread: str = "reconstruct", progress: bool | None = False) -> Array:
    r"""Copies of columns with any distributions, joined by a Gaussian copula.

    The model is :math:`x_j = Q_j(\Phi(z_j))` with normal z and the column's own quantile function :math:`Q_j`. So ranks
    become normal scores, these get normal copies (`gaussian_copies`), and the copies become values of the column
    again: values, atoms and tails are those of the column. Ranks of equal values are drawn at random, so columns may
    be skewed, heavy-tailed, ordinal or binary. What the model cannot see is dependence in the tails, as of rows
    that are extreme as a whole. All arguments are as in `gaussian_copies`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.exp(np.random.default_rng(0).normal(size=(500, 3)))
    >>> copies = copula_copies(X)
    >>> bool(np.isin(copies, X).all())
    True
    """
    from scipy.special import ndtr, ndtri

    matrix, _ = dense_columns(X)
    rng, (n, p) = make_generator(seed), matrix.shape
    order = np.stack([np.lexsort((rng.random(n), column)) for column in matrix.T], axis=1)
    scores = np.empty((n, p))
    np.put_along_axis(scores, order, np.broadcast_to(ndtri((np.arange(n) + 0.5) / n)[:, None], (n, p)), axis=0)
    places = ndtr(gaussian_copies(scores, rng, None, spread, progress)) * n
    return np.take_along_axis(np.sort(matrix, axis=0), np.minimum(places.astype(int), n - 1), axis=0)


def elliptical_copies(X: Any, seed: Any = 0, spread: str = "reconstruct", progress: bool | None = False) -> Array:
    r"""Copies of rows that are normal but for a size of their own, as those of a multivariate t distribution.

    The model is :math:`x_i = c + \tau_i g_i` with normal g. Rows, less the medians c, are brought to one length over
    all (scaled) columns, get normal copies (`gaussian_copies`) and are brought back. A row tells its size well only
    where there are many columns. All arguments are as in `gaussian_copies`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 30)) / np.sqrt(rng.chisquare(3, (500, 1)))
    >>> lengths = np.linalg.norm(X, axis=1), np.linalg.norm(elliptical_copies(X), axis=1)
    >>> bool(np.corrcoef(*lengths)[0, 1] > 0.9)
    True
    """
    matrix, _ = dense_columns(X)
    center = np.median(matrix, axis=0)
    sizes = np.linalg.norm((matrix - center) / matrix.std(axis=0), axis=1, keepdims=True)
    sizes[sizes == 0] = 1.0
    return center + sizes * gaussian_copies((matrix - center) / sizes, seed, None, spread, progress)


# --- spreads -------------------------------------------------------------------------------------------------


def equal_spread(correlation: Correlation) -> Array:
    """The largest s that is equal for all columns."""
    return np.full(correlation.size, min(1.0, 2.0 * correlation.smallest))


def reconstruct_spread(
    correlation: Correlation, sweeps: int = SWEEPS, tol: float = 1e-3, report: Callable[[float], None] | None = None
) -> Array:
    r"""Minimise :math:`\mathrm{tr}\, M + \sum_j 1 / s_j`, :math:`M = (2 \Sigma - S)^{-1}`, one :math:`s_j` at a time.

    A step h in :math:`s_j` turns M into :math:`M + h\, m m^\top / (1 - h m_j)` with m its j-th column, so the best one
    satisfies :math:`1 - h m_j = \lVert m \rVert (s_j + h)`; it keeps :math:`2 \Sigma - S` positive definite. Every
    feasible s gives valid copies, so few digits will do.
    """
    s = 0.9 * equal_spread(correlation)
    for k in range(sweeps):
        before = s.copy()
        correlation.sweep(s)
        if report is not None:
            report(FOLDS + k + 1)
        if np.max(np.abs(s - before)) <= tol:
            break
    return s


def _best_step(s: float, m: float, length: float) -> float:
    return (1.0 - length * s) / (length + m)


# --- correlations --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FullCorrelation:
    """A correlation matrix as it is."""

    matrix: Array

    @property
    def size(self) -> int:
        return len(self.matrix)

    @property
    def smallest(self) -> float:
        """The smallest eigenvalue."""
        return float(np.linalg.eigvalsh(self.matrix)[0])

    def sweep(self, s: Array) -> None:
        """Improve every entry of s, in place."""
        p = self.size
        M = np.linalg.inv(2.0 * self.matrix - np.diag(s))  # anew: updates gather rounding errors
        for start in range(0, p, BLOCK):
            end = min(start + BLOCK, p)
            moved, factor = np.empty((p, end - start), order="F"), np.empty(end - start)
            for i, j in enumerate(range(start, end)):
                m = M[:, j] + moved[:, :i] @ (factor[:i] * moved[j, :i])
                h = _best_step(s[j], m[j], float(np.sqrt(m @ m)))
                moved[:, i], factor[i] = m, h / (1.0 - h * m[j])
                s[j] += h
            M[:, end:] += (moved * factor) @ moved[end:].T  # many updates of rank one in one product

    def draw(self, scaled: Array, s: Array, rng: np.random.Generator) -> Array:
        """Copies of the scaled rows."""
        inverse = np.linalg.inv(self.matrix)
        values, vectors = np.linalg.eigh(2.0 * np.diag(s) - s[:, None] * inverse * s)
        noise = rng.standard_normal(scaled.shape) * np.sqrt(np.maximum(values, 0.0))
        return scaled - scaled @ inverse * s + noise @ vectors.T


@dataclass(frozen=True)
class ThinCorrelation:
    r""":math:`\delta I + A A^\top` with A of shape (p, n), n < p: only matrices of n x p entries are formed.

    Spreads stay below :math:`2 \delta`. Then all parts below are positive. (The best ones are about :math:`\delta`.)
    """

    A: Array
    share: float

    @property
    def size(self) -> int:
        return len(self.A)

    @property
    def matrix(self) -> Array:
        return self.share * np.eye(self.size) + self.A @ self.A.T

    @property
    def smallest(self) -> float:
        return self.share

    def sweep(self, s: Array) -> None:
        r"""As of `FullCorrelation`.

        With :math:`D = 2 \delta I - S`, :math:`U = \sqrt 2 A`, :math:`K = I + U^\top D^{-1} U`, :math:`v = K^{-1} u_j`,

        .. math:: M = D^{-1} - D^{-1} U K^{-1} U^\top D^{-1}, \qquad m_j = \frac1{d_j} - \frac{u_j^\top v}{d_j^2},

        .. math:: \lVert m \rVert^2 = \frac1{d_j^2} - \frac{2 u_j^\top v}{d_j^3}
                  + \frac{v^\top U^\top D^{-2} U v}{d_j^2},

        and a step in :math:`s_j` changes K and :math:`U^\top D^{-2} U` by a matrix of rank one.
        """
        from scipy.linalg.blas import dsymv, dsyr  # they use the upper triangle only

        U, limit = np.ascontiguousarray(np.sqrt(2.0) * self.A), 2.0 * self.share
        d = limit - s
        inverse = np.asfortranarray(np.linalg.inv(np.eye(U.shape[1]) + (U.T / d) @ U))
        squares = np.asfortranarray((U.T / d**2) @ U)
        for j, u in enumerate(U):
            v = dsymv(1.0, inverse, u)
            a, old = float(u @ v), float(d[j])
            m = 1.0 / old - a / old**2
            length = np.sqrt(1.0 / old**2 - 2.0 * a / old**3 + float(v @ dsymv(1.0, squares, v)) / old**2)
            s[j] = min(s[j] + _best_step(s[j], m, length), 0.999 * limit)
            d[j] = limit - s[j]
            change = 1.0 / d[j] - 1.0 / old
            inverse = dsyr(-change / (1.0 + change * a), v, a=inverse, overwrite_a=1)
            squares = dsyr(1.0 / d[j] ** 2 - 1.0 / old**2, u, a=squares, overwrite_a=1)

    def draw(self, scaled: Array, s: Array, rng: np.random.Generator) -> Array:
        r"""As of `FullCorrelation`, with :math:`B = \delta I + A^\top A`.

        :math:`\Sigma^{-1} = (I - A B^{-1} A^\top) / \delta`, so the noise has the covariance
        :math:`2 S - S^2 / \delta + S A (\delta B)^{-1} A^\top S`: a diagonal part, and one of rank n.
        """
        B = self.share * np.eye(self.A.shape[1]) + self.A.T @ self.A
        root = np.linalg.cholesky(B)
        fitted = np.linalg.solve(B, self.A.T @ scaled.T).T @ self.A.T
        own = rng.standard_normal(scaled.shape) * np.sqrt(np.maximum(s * (2.0 - s / self.share), 0.0))
        shared = np.linalg.solve(root.T, rng.standard_normal((self.A.shape[1], len(scaled)))).T @ self.A.T
        return scaled - (scaled - fitted) / self.share * s + own + shared / np.sqrt(self.share) * s


Correlation: TypeAlias = FullCorrelation | ThinCorrelation


def _estimate(scaled: Array, report: Callable[[float], None]) -> Correlation:
    """``(1 - d) R + d I`` with the d under which held-out rows are most likely."""
    (n, p), began = scaled.shape, time.perf_counter()
    shares = np.geomspace(1e-3, 1.0, 40)
    lengths = np.zeros(len(shares))
    for fold in range(FOLDS):
        held_out = np.arange(n) % FOLDS == fold
        if held_out.any():
            values, squares, rest = _spectrum(scaled[~held_out], scaled[held_out])
            spectrum = (1.0 - shares[:, None]) * values + shares[:, None]
            logs = np.log(spectrum).sum(axis=1) + (p - len(values)) * np.log(shares)
            lengths += held_out.sum() * logs + (squares / spectrum).sum(axis=1) + rest / shares
        report(fold + 1)
        if fold == 0 and p < THIN * n:
            _warn_if_long(p, time.perf_counter() - began)
    share = float(shares[int(np.argmin(lengths))])
    if p >= THIN * n:
        return ThinCorrelation(np.sqrt((1.0 - share) / n) * scaled.T, share)
    return FullCorrelation((1.0 - share) * (scaled.T @ scaled / n) + share * np.eye(p))


def _spectrum(rows: Array, fresh: Array) -> tuple[Array, Array, float]:
    """Eigenvalues of R that are not zero, and squares of fresh rows along their vectors, and across all of them."""
    n, p = rows.shape
    if p <= n:
        values, vectors = np.linalg.eigh(rows.T @ rows / n)
    else:
        values, left = np.linalg.eigh(rows @ rows.T / n)
        kept = values > 1e-10 * values[-1]
        values, vectors = values[kept], rows.T @ (left[:, kept] / np.sqrt(n * values[kept]))
    squares = np.sum((fresh @ vectors) ** 2, axis=0)
    rest = float(np.sum(fresh**2) - squares.sum()) if len(values) < p else 0.0
    return np.maximum(values, 0.0), squares, max(rest, 0.0)


def _warn_if_long(p: int, fold_seconds: float) -> None:
    """The first fold tells what the rest will cost: in all about ten times as much."""
    seconds = 10.0 * fold_seconds
    if seconds > LONG:
        warnings.warn(
            f"Copies of {p} columns will take about {seconds:.0f} seconds, and the work grows as p^3; progress=True "
            "shows a bar.",
            UserWarning,
            stacklevel=4,
        )


def _warn_of_twins(R: Array) -> None:
    off = np.abs(R - np.diag(np.diagonal(R)))
    j, k = np.sort(np.unravel_index(int(np.argmax(off)), off.shape))
    warnings.warn(
        f"The columns of X nearly depend on each other (columns {j} and {k} have correlation {R[j, k]:.4f}): copies "
        "are almost the columns themselves, and hardly anything will be selected; drop or merge such columns.",
        UserWarning,
        stacklevel=3,
    )


def _given_correlation(covariance: Any, p: int) -> tuple[Array, Array]:
    matrix = np.asarray(covariance, dtype=float)
    if matrix.shape != (p, p) or not np.isfinite(matrix).all() or not np.allclose(matrix, matrix.T):
        raise ValueError(
            f"`covariance` must be a finite symmetric matrix of shape ({p}, {p}), found shape {matrix.shape}."
        )
    if not np.linalg.eigvalsh(matrix)[0] > 0:
        raise ValueError("`covariance` must be positive definite; leave it out to have it estimated with shrinkage.")
    scale = np.sqrt(np.diagonal(matrix))
    return scale, matrix / np.outer(scale, scale)


def dense_columns(X: Any) -> tuple[Array, list[str]]:
    """X as a dense array with the names of its columns, none of them constant."""
    names = None
    if _frames.is_frame(X):
        encoder = _frames.ColumnEncoder.from_frame(X)
        if encoder.has_categories:
            categories = [spec.name for spec in encoder.columns if spec.levels is not None]
            raise ValueError(
                f"`X` has categorical columns {categories[:5]}, of which no normal copy can be drawn; leave them "
                "out, or pass an encoded matrix and your own `copies`."
            )
        X, names = encoder.encode(X), list(encoder.names)
    if _validation.is_sparse(X):
        raise TypeError("`X` is sparse, but its copies are not; pass X.toarray() if that fits into memory.")
    matrix = np.asarray(_validation.check_design(X), dtype=float)
    if len(matrix) < MIN_ROWS:
        raise ValueError(
            f"`X` has {len(matrix)} rows, too few to estimate the covariance of its columns; at least {MIN_ROWS} are "
            "needed, and many more to select anything."
        )
    constant = np.flatnonzero(np.std(matrix, axis=0) <= 1e-13 * np.abs(np.mean(matrix, axis=0)))
    if len(constant):
        raise ValueError(f"`X` has constant columns {constant[:5].tolist()}, which have no copy; drop them.")
    return matrix, names or [f"x{j}" for j in range(matrix.shape[1])]
