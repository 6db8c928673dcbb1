"""Structural sparsity: coefficients alpha that are dense, and a sparse gamma that ``D alpha`` is near to."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from bregpath._typing import Array, IntArray
from bregpath.stores.base import AbstractBlock, BlockStore, Scan

__all__ = ["IdentityBlock", "Metric", "SplitBlock", "SplitStore"]


class Metric:
    r"""A square root P of :math:`(\nu I + D'D)^{-1}`, as a sparse triangular factor.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> metric = Metric(sp.csr_array([[-1.0, 1.0]]), 1.0)
    >>> metric.root(metric.adjoint(np.array([[3.0], [0.0]]))).ravel()  # the inverse of [[2, -1], [-1, 2]] times (3, 0)
    array([2., 1.])
    """

    def __init__(self, D: Any, nu: float) -> None:
        self.D = D
        self.nu = nu

    @cached_property
    def _factor(self) -> tuple[Any, Array, IntArray, IntArray]:
        """Of the symmetric matrix with its rows in an order that keeps L sparse: L, 1 / sqrt(diagonal), the order."""
        from scipy.sparse import eye_array
        from scipy.sparse.linalg import splu

        matrix = (self.D.T @ self.D + self.nu * eye_array(self.D.shape[1])).tocsc()
        symmetric = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
        lu = splu(matrix, permc_spec="MMD_AT_PLUS_A", **symmetric)
        lower = splu(lu.L.tocsc(), permc_spec="NATURAL", **symmetric)  # a triangle is its own factor
        return lower, 1.0 / np.sqrt(lu.U.diagonal()), np.argsort(lu.perm_c), lu.perm_c

    def root(self, u: Array) -> Array:
        """``P @ u`` of the columns of a matrix."""
        lower, scale, _, place = self._factor
        return lower.solve(scale[:, None] * u, trans="T")[place]

    def adjoint(self, v: Array) -> Array:
        """``P.T @ v`` of the columns of a matrix."""
        lower, scale, order, _ = self._factor
        return scale[:, None] * lower.solve(v[order])

    def __getstate__(self) -> dict[str, Any]:
        return {"D": self.D, "nu": self.nu}  # the factor cannot be pickled, and is made anew


class SplitStore(BlockStore):
    r"""The predictor of the data, and below it what ``D alpha`` misses gamma by.

    .. math:: \eta = \begin{pmatrix} a + X \alpha \\ D \alpha - \gamma \end{pmatrix}, \qquad \alpha = P u, \qquad
              P P' = (\nu I + D'D)^{-1}.

    The unpenalised parameters are a, in some ``unit``, and u. Steepest descent in u is that of alpha in the norm
    :math:`\nu |\alpha|^2 + |D \alpha|^2`, in which slow changes of alpha are as fast as quick ones. Otherwise alpha
    would lag behind gamma, the more so the smaller :math:`\nu` is.

    Parameters
    ----------
    X : AbstractBlock
        All columns of the data.
    metric : Metric
        Of D and nu.
    unit : float
        Of the intercept; 0 where there is none.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> store = SplitStore(IdentityBlock(2), Metric(sp.csr_array([[-1.0, 1.0]]), 1.0), 0.0)
    >>> store.spread(np.zeros(2), store.fetch(np.array([0])).matvec(np.array([[3.0]]))).ravel()
    array([ 0.,  0., -3.])
    """

    has_intercepts = False
    has_cheap_curvature = True  # D and its metric cost more than the data, and a squared distance has no other
    is_small = True

    def __init__(self, X: AbstractBlock, metric: Metric, unit: float) -> None:
        self.X = X
        self.metric = metric
        self.unit = unit
        self.D, self.D_adjoint = metric.D, metric.D.T.tocsr()
        super().__init__(SplitBlock(X.shape[0], self.D.shape[0], np.arange(self.D.shape[0])))

    def scan(self, w: Array) -> Scan:
        """A column has one entry."""
        w = w[-self.shape[1] :]
        return Scan(np.zeros(len(w)), np.sqrt(w))

    def n_alpha(self, n_outputs: int) -> int:
        return ((self.unit > 0) + self.D.shape[1]) * n_outputs

    def parameters(self, alpha: Array, n_outputs: int) -> tuple[Array, Array]:
        """Intercepts (T, q) and coefficients (T, p, q) that unpenalised parameters (T, a) stand for."""
        rows = alpha.reshape(len(alpha), -1, n_outputs)
        p, times = self.D.shape[1], len(alpha)
        u = rows[:, -p:].transpose(1, 0, 2).reshape(p, times * n_outputs)
        coef = self.metric.root(u).reshape(p, times, n_outputs).transpose(1, 0, 2)
        return (self.unit * rows[:, 0] if self.unit > 0 else np.zeros((times, n_outputs))), coef

    def spread(self, alpha: Array, eta: Array) -> Array:
        q, n, p = eta.shape[1], *self.X.shape
        coef, out = self.metric.root(alpha[-p * q :].reshape(p, q)), eta.copy()
        out[:n] += self.X.matvec(coef)
        out[n:] += self.D @ coef
        if self.unit > 0:
            out[:n] += self.unit * alpha[:q]
        return out

    def collect(self, residual: Array) -> Array:
        of_data, rest = residual[: self.X.shape[0]], residual[self.X.shape[0] :]
        slope = self.metric.adjoint(self.X.rmatvec(of_data) + self.D_adjoint @ rest).ravel()
        return np.concatenate([self.unit * of_data.sum(axis=0), slope]) if self.unit > 0 else slope


class SplitBlock(AbstractBlock):
    """Some entries of gamma: minus the unit vectors below the ``n`` rows of the data."""

    def __init__(self, n: int, m: int, index: IntArray) -> None:
        self.n, self.m = n, m
        self.index = index
        self.shape = (n + m, len(index))

    def matvec(self, beta: Array) -> Array:
        eta = np.zeros((self.shape[0], beta.shape[1]))
        eta[self.n + self.index] = -beta
        return eta

    def rmatvec(self, residual: Array) -> Array:
        return -residual[self.n + self.index]

    def columns(self, index: IntArray) -> SplitBlock:
        return SplitBlock(self.n, self.m, self.index[index])

    def append(self, more: AbstractBlock) -> SplitBlock:
        assert isinstance(more, SplitBlock)
        return SplitBlock(self.n, self.m, np.concatenate([self.index, more.index]))


class IdentityBlock(AbstractBlock):
    """The columns of a unit matrix: every coefficient is the predictor of a row."""

    def __init__(self, n: int) -> None:
        self.shape = (n, n)

    def matvec(self, beta: Array) -> Array:
        return beta

    def rmatvec(self, residual: Array) -> Array:
        return residual

    def columns(self, index: IntArray) -> AbstractBlock:
        raise TypeError("All columns of a unit matrix work together.")

    append = columns  # type: ignore[assignment]
