r"""Sparse generalised linear models with known truth.

All four simulators share one recipe (Huang & Yao, AISTATS 2018, section on simulations):

* the support :math:`S` is the first `s` columns;
* the intercept and the non-zero coefficients are uniform on :math:`[-2M, -M] \cup [M, 2M]`;
* rows of `X` are normal with :math:`\Sigma_{jk} = r^{|j-k|}`, or sparse with independent entries.

The truth is drawn before the data: the same `seed` with another `n` is the same model. Its rows are not a fresh sample,
though: both draws use the same numbers, in another order. For a fresh one ask for `n_test` rows, which have a
stream of their own; they are the same whatever `n` is. To compare sizes, take the first rows of one large draw.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from bregpath._typing import Array, IntArray, Seed
from bregpath._validation import check_integer
from bregpath.datasets.arguments import check_range, generator, rows_of_test, signed_uniform
from bregpath.graphs.base_model import draw_states

if TYPE_CHECKING:
    import scipy.sparse as sp

Order: TypeAlias = Literal["F", "C"]

_DEFAULT_R = 0.25
# exp(eta) must stay a sensible mean: with these limits counts above a few ten thousand are out of reach.
_POISSON_MAX_SD = 1.5
_POISSON_MAX_INTERCEPT = 2.0


@dataclass(frozen=True, eq=False, repr=False)
class Simulation:
    """A simulated data set with the parameters that generated it.

    Attributes
    ----------
    X : ndarray or scipy.sparse.csc_array of shape (n, p)
        The design, without a column of ones.
    y : ndarray of shape (n,)
        The response.
    intercept : float or ndarray of shape (q,)
        The true intercept; one per class for the multinomial model.
    coef : ndarray of shape (p,) or (p, q)
        The true coefficients; exactly zero off the support.
    X_test, y_test : as X and y, with `n_test` rows, or None
        A fresh sample of the same model.

    Examples
    --------
    >>> from bregpath.datasets import make_logistic
    >>> make_logistic(n=50, p=10, s=3, seed=0, n_test=1000)
    Simulation(n=50, p=10, s=3, X=dense float64, y=int64, n_test=1000)
    """

    X: Array | sp.csc_array
    y: Array
    intercept: float | Array
    coef: Array
    X_test: Array | sp.csc_array | None = None
    y_test: Array | None = None

    @property
    def support(self) -> IntArray:
        """Indices of the columns of `X` whose true coefficients are not all zero."""
        nonzero = self.coef != 0
        return np.flatnonzero(nonzero if nonzero.ndim == 1 else nonzero.any(axis=1))

    def __repr__(self) -> str:
        n, p = self.X.shape
        kind = "dense" if isinstance(self.X, np.ndarray) else "sparse"
        size = f"n={n}, p={p}, s={self.support.size}" + (f", q={self.coef.shape[1]}" if self.coef.ndim == 2 else "")
        tested = "" if self.y_test is None else f", n_test={len(self.y_test)}"
        return f"Simulation({size}, X={kind} {self.X.dtype}, y={self.y.dtype}{tested})"


def make_linear(
    n: int = 400,
    p: int = 80,
    s: int = 20,
    M: float = 1.0,
    r: float | None = None,
    seed: Seed = None,
    *,
    snr: float = 4.0,
    density: float | None = None,
    dtype: npt.DTypeLike = np.float64,
    order: Order = "F",
    n_test: int | None = None,
) -> Simulation:
    r"""Simulate a sparse linear model, :math:`y = \alpha + X\beta + \sigma\varepsilon`.

    The noise level follows from the population variance of the signal,
    :math:`\sigma^2 = \beta^\top \Sigma \beta / \mathrm{snr}`: it depends on the truth, not on the sample.
    Without a signal (`s=0`) the noise has standard deviation 1.

    Parameters
    ----------
    n, p, s : int
        Number of rows, of columns, and of non-zero coefficients (the first `s` columns).
    M : float
        Size of the signal: intercept and coefficients are uniform on :math:`[-2M,-M] \cup [M,2M]`.
    r : float, optional
        Correlation of neighbouring columns, :math:`\Sigma_{jk} = r^{|j-k|}`, between -1 and 1. The default
        is 0.25 for a dense `X`; a sparse one has independent columns, so there `r` must be None or 0.
    seed : int, numpy.random.Generator or None
        Source of randomness. A generator is advanced by the call.
    snr : float
        Signal-to-noise ratio, var(X beta) / var(noise). ``numpy.inf`` means no noise.
    density : float, optional
        If given, `X` is a `scipy.sparse.csc_array`: each entry is non-zero with this probability, and then
        standard normal (as in tables of weighted words).
    dtype : numpy.float64 or numpy.float32
        Precision of `X`. The numbers are drawn in double precision and rounded, so the data are the same.
    order : {"F", "C"}
        Memory order of a dense `X`: by columns or by rows.
    n_test : int, optional
        Rows of a fresh sample of the same model, `X_test` and `y_test`. They do not depend on `n`.

    Returns
    -------
    Simulation
        Here `y` is float64.

    Examples
    --------
    >>> from bregpath.datasets import make_linear
    >>> sim = make_linear(n=100, p=20, s=3, seed=1)
    >>> sim.X.shape, sim.y.shape, sim.support.tolist()
    ((100, 20), (100,), [0, 1, 2])
    """
    recipe = _checked(n, p, s, M, r, density, dtype, order, n_test)
    check_range("snr", snr, lambda v: v > 0, "a positive number (numpy.inf for no noise)")
    rng = generator(seed)
    intercept, coef = recipe.draw_truth(rng)
    sigma = np.sqrt(recipe.signal_variance(coef) / snr) if recipe.s > 0 else float(np.isfinite(snr))
    return recipe.simulate(rng, intercept, coef, lambda eta, rng: eta + sigma * rng.standard_normal(len(eta)))


def make_logistic(
    n: int = 400,
    p: int = 80,
    s: int = 20,
    M: float = 1.0,
    r: float | None = None,
    seed: Seed = None,
    *,
    density: float | None = None,
    dtype: npt.DTypeLike = np.float64,
    order: Order = "F",
    n_test: int | None = None,
) -> Simulation:
    r"""Simulate a sparse logistic model, :math:`P(y = 1 \mid x) = 1 / (1 + e^{-(\alpha + x^\top\beta)})`.

    Parameters
    ----------
    n, p, s, M, r, seed, density, dtype, order, n_test
        As in :func:`make_linear`.

    Returns
    -------
    Simulation
        Here `y` holds the integers -1 and +1.

    Examples
    --------
    >>> import numpy as np
    >>> from bregpath.datasets import make_logistic
    >>> sim = make_logistic(n=100, p=20, s=3, seed=1)
    >>> np.unique(sim.y).tolist()
    [-1, 1]
    """
    recipe, rng = _checked(n, p, s, M, r, density, dtype, order, n_test), generator(seed)
    intercept, coef = recipe.draw_truth(rng)
    # A logistic variable exceeds -eta with probability 1 / (1 + exp(-eta)); no exponential can overflow.
    return recipe.simulate(
        rng, intercept, coef, lambda eta, rng: np.where(rng.logistic(size=len(eta)) > -eta, 1, -1).astype(np.int64)
    )


def make_multinomial(
    n: int = 400,
    p: int = 80,
    s: int = 20,
    M: float = 1.0,
    r: float | None = None,
    n_classes: int = 3,
    seed: Seed = None,
    *,
    density: float | None = None,
    dtype: npt.DTypeLike = np.float64,
    order: Order = "F",
    n_test: int | None = None,
) -> Simulation:
    r"""Simulate a sparse multinomial model, :math:`P(y = l \mid x) \propto e^{\alpha_l + x^\top\beta_l}`.

    The first `s` rows of the coefficient matrix are non-zero in all classes: a variable is relevant as a
    whole, which is what a group penalty on rows looks for.

    Parameters
    ----------
    n, p, s, M, r, seed, density, dtype, order, n_test
        As in :func:`make_linear`.
    n_classes : int
        Number of classes q, at least 2.

    Returns
    -------
    Simulation
        Here `y` holds the integers 0, ..., q - 1, `intercept` has shape (q,) and `coef` (p, q).

    Examples
    --------
    >>> import numpy as np
    >>> from bregpath.datasets import make_multinomial
    >>> sim = make_multinomial(n=100, p=20, s=3, seed=1)
    >>> sim.coef.shape, np.unique(sim.y).tolist()
    ((20, 3), [0, 1, 2])
    """
    recipe = _checked(n, p, s, M, r, density, dtype, order, n_test)
    q = check_integer("n_classes", n_classes, 2)
    rng = generator(seed)
    intercept, coef = recipe.draw_truth(rng, q)
    return recipe.simulate(rng, intercept, coef, lambda eta, rng: draw_states(eta, rng).astype(np.int64))


def make_poisson(
    n: int = 400,
    p: int = 80,
    s: int = 20,
    M: float = 0.2,
    r: float | None = None,
    seed: Seed = None,
    *,
    density: float | None = None,
    dtype: npt.DTypeLike = np.float64,
    order: Order = "F",
    n_test: int | None = None,
) -> Simulation:
    r"""Simulate a sparse Poisson model, :math:`y \mid x \sim \mathrm{Poisson}(e^{\alpha + x^\top\beta})`.

    The mean is exponential in the coefficients, so large ones are held back to keep counts finite: beta is
    scaled down as a whole until neither the population standard deviation of :math:`x^\top\beta` nor any
    :math:`|\beta_j|` exceeds 1.5, and the intercept is clipped to [-2, 2]. What is returned is what was used.

    Parameters
    ----------
    n, p, s, M, r, seed, density, dtype, order, n_test
        As in :func:`make_linear`; note the smaller default of `M`.

    Returns
    -------
    Simulation
        Here `y` holds counts (int64).

    Examples
    --------
    >>> from bregpath.datasets import make_poisson
    >>> sim = make_poisson(n=100, p=20, s=3, seed=1)
    >>> bool(sim.y.min() >= 0), sim.y.dtype.name
    (True, 'int64')
    """
    recipe, rng = _checked(n, p, s, M, r, density, dtype, order, n_test), generator(seed)
    intercept, coef = recipe.draw_truth(rng)
    # The limit on |beta_j| matters for a very sparse X, where a small variance can hide huge coefficients.
    size = max(np.sqrt(recipe.signal_variance(coef)), float(np.abs(coef).max()))
    coef *= min(1.0, _POISSON_MAX_SD / size) if size > 0.0 else 1.0
    intercept = np.clip(intercept, -_POISSON_MAX_INTERCEPT, _POISSON_MAX_INTERCEPT)
    return recipe.simulate(rng, intercept, coef, lambda eta, rng: rng.poisson(np.exp(eta)).astype(np.int64))


@dataclass(frozen=True)
class _Recipe:
    """The checked arguments that the simulators share, and the draws that they make in common."""

    n: int
    p: int
    s: int
    M: float
    r: float
    density: float | None
    dtype: np.dtype[Any]
    order: Order
    n_test: int | None

    def draw_truth(self, rng: np.random.Generator, q: int = 1) -> tuple[Array, Array]:
        """Draw intercepts (q,) and coefficients (p, q), uniform on [-2M, -M] u [M, 2M] where not zero."""
        values = signed_uniform(rng, self.M, (self.s + 1, q))
        coef = np.zeros((self.p, q))
        coef[: self.s] = values[1:]
        return values[0], coef

    def simulate(
        self, rng: np.random.Generator, intercept: Array, coef: Array,
        respond: Callable[[Array, np.random.Generator], Array],
    ) -> Simulation:  # fmt: skip
        """Draw X and then y = respond(eta), eta = intercept + X coef: (n,) if coef has one column, else (n, q)."""
        one = coef.shape[1] == 1

        def draw(recipe: _Recipe, rng: np.random.Generator) -> tuple[Any, Array]:
            X = recipe._draw_dense(rng) if self.density is None else recipe._draw_sparse(rng, self.density)
            eta = intercept + X[:, : self.s].astype(np.float64) @ coef[: self.s]
            return X, respond(eta[:, 0] if one else eta, rng)

        data = draw(self, rng)
        # A stream of its own, so that the rows above are the same with it and without it.
        fresh = () if self.n_test is None else draw(replace(self, n=self.n_test), rng.spawn(1)[0])
        return Simulation(*data, *((float(intercept[0]), coef[:, 0]) if one else (intercept, coef)), *fresh)

    def signal_variance(self, coef: Array) -> float:
        """Return the population variance of X coef, the sum of r^|j-k| beta_j beta_k over j, k, in O(s)."""
        beta = coef[: self.s, 0]
        if self.density is not None:
            return float(self.density * (beta @ beta))
        cross, carried = 0.0, 0.0
        for previous, current in pairwise(beta):
            carried = self.r * (carried + previous)  # sum over j < k of r^(k-j) beta_j
            cross += carried * current
        return float(beta @ beta + 2.0 * cross)

    def _draw_dense(self, rng: np.random.Generator) -> Array:
        """Draw an AR(1) along the columns, x_j = r x_{j-1} + sqrt(1 - r^2) e_j: Sigma is never formed."""
        X = np.empty((self.n, self.p), dtype=self.dtype, order=self.order)
        fresh = np.sqrt(1.0 - self.r**2)
        column = rng.standard_normal(self.n)
        X[:, 0] = column
        for j in range(1, self.p):
            column = self.r * column + fresh * rng.standard_normal(self.n)
            X[:, j] = column
        return X

    def _draw_sparse(self, rng: np.random.Generator, density: float) -> sp.csc_array:
        """Draw independent entries, in O(nnz): gaps between Bernoulli successes are geometric."""
        import scipy.sparse as sp

        cells = self.n * self.p
        block = int(cells * density + 6.0 * np.sqrt(cells * density)) + 16
        pieces, last = [], -1
        while last < cells:
            # Cut: at a tiny density a single gap can be the largest int64, and the sum would overflow.
            gaps = np.minimum(rng.geometric(density, block), cells + 1)
            pieces.append(last + np.cumsum(gaps))
            last = int(pieces[-1][-1])
        positions = np.concatenate(pieces)
        columns, rows = np.divmod(positions[positions < cells], self.n)
        index = np.int32 if max(rows.size, self.n) < 2**31 else np.int64
        indptr = np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=self.p))])
        values = rng.standard_normal(rows.size).astype(self.dtype)
        return sp.csc_array((values, rows.astype(index), indptr.astype(index)), shape=(self.n, self.p))


def _checked(
    n: int, p: int, s: int, M: float, r: float | None, density: float | None, dtype: Any, order: Order, n_test: Any
) -> _Recipe:
    n_test = rows_of_test(n_test)
    n, p, s = check_integer("n", n, 1), check_integer("p", p, 1), check_integer("s", s, 0)
    if s > p:
        raise ValueError(f"s={s} non-zero coefficients do not fit into p={p} columns; choose s <= p.")
    check_range("M", M, lambda v: 0 < v < np.inf, "a positive finite number")
    if order not in ("F", "C"):
        raise ValueError(f"order={order!r} is not a memory order; use 'F' (columns) or 'C' (rows).")
    if dtype not in (np.float64, np.float32, "float64", "float32"):
        raise ValueError(f"dtype={dtype!r} is not supported; use numpy.float64 or numpy.float32.")
    if density is None:
        r = _DEFAULT_R if r is None else r
        check_range("r", r, lambda v: -1 < v < 1, "a number strictly between -1 and 1")
    else:
        check_range("density", density, lambda v: 0 < v <= 1, "None or a number in (0, 1]")
        if r is not None and r != 0:
            raise ValueError(
                f"r={r!r} was given with density={density!r}, but a sparse X has independent columns; "
                "leave r out (or r=0), or leave density out."
            )
        if order == "C":
            raise ValueError("order='C' was given with density, but a sparse X is stored by columns.")
        r = 0.0
    return _Recipe(n, p, s, float(M), float(r), density, np.dtype(dtype), order, n_test)
