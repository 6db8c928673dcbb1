"""Losses of Gaussian graphs: functions of the precision matrix."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.linalg import lapack

from bregpath._known_to_core import Kernel, only_for_its_class
from bregpath._typing import Array
from bregpath.losses.base import NodeLoss

__all__ = ["GaussianCompositeLoss", "GaussianLikelihoodLoss"]

MARGIN = 1e-8  # smallest eigenvalue of a matrix with unit diagonal that can safely be inverted


class _GaussianGraphLoss(NodeLoss):
    """``eta`` is the precision matrix Omega, ``y`` the covariance matrix S; weights are not used.

    Infinite where Omega is not positive definite: a step that leads there is refused and shortened.
    """

    has_domain = True
    looks_inside = True
    can_saturate = False  # the path goes on to the unpenalised fit, and edges may still leave

    def null(self, y: Array, w: Array) -> Array:
        return 1.0 / np.diagonal(y)

    def saturated(self, y: Array, w: Array) -> float:
        # At Omega = S^-1; a singular S has no optimum, and the share explained is counted from a nearly singular one.
        eigenvalues, vectors = np.linalg.eigh(y)
        safe = np.maximum(eigenvalues, 1e-6 * eigenvalues[-1])
        return self.value((vectors / safe) @ vectors.T, (vectors * safe) @ vectors.T, w)


class GaussianLikelihoodLoss(_GaussianGraphLoss):
    r"""Likelihood of a Gaussian graph,

    .. math:: \ell(\Omega) = \operatorname{tr}(S \Omega) - \log\det \Omega ,

    infinite where Omega is not positive definite, and large close to there: a path never ends at that boundary.

    Examples
    --------
    >>> import numpy as np
    >>> GaussianLikelihoodLoss(2).value(np.eye(2), np.eye(2), np.ones(1))
    2.0
    """

    name = "gaussian-likelihood"
    deviance_factor = 1.0  # tr(S Omega) - log det is minus twice the log-likelihood

    def __init__(self, n_outputs: int = 1) -> None:
        super().__init__(n_outputs)
        # The last matrix with its inverse and log determinant, which all three methods are asked for. One tuple,
        # replaced as a whole, so that threads which share the loss never see parts of two.
        self._last: tuple[Array, Array, float] | None = None

    @only_for_its_class
    def kernel(self) -> Kernel:
        return Kernel(self.name, {})

    def value(self, eta: Array, y: Array, w: Array) -> float:
        last = self._last
        if last is not None and last[0] is eta:
            return float(np.vdot(y, eta) - last[2])
        factor = _cholesky(eta)
        return np.inf if factor is None else float(np.vdot(y, eta) - _log_determinant(factor))

    def gradient(self, eta: Array, y: Array, w: Array) -> Array:
        known = self._inverse(eta)
        return np.full_like(eta, np.nan) if known is None else y - known[0]

    def curvature(self, eta: Array, y: Array, w: Array, direction: Array) -> Array:
        known = self._inverse(eta)
        assert known is not None
        return known[0] @ direction @ known[0]

    def _inverse(self, matrix: Array) -> tuple[Array, float] | None:
        """Inverse and log determinant by the Cholesky factor; None where it does not exist."""
        last = self._last
        if last is not None and last[0] is matrix:
            return last[1:]
        factor = _cholesky(matrix)
        if factor is None:
            return None
        log_determinant = _log_determinant(factor)
        half, failed = lapack.dpotri(factor, lower=1, overwrite_c=1)
        if failed:
            return None
        # LAPACK fills one triangle and leaves the other as it was.
        np.copyto(half, half.T, where=_above_diagonal(len(half)))
        self._last = matrix, half, log_determinant
        return half, log_determinant


class GaussianCompositeLoss(_GaussianGraphLoss):
    r"""Composite conditional likelihood of a Gaussian graph: the regressions of every node on all others.

    .. math:: \ell(\Omega) = \sum_j \frac{\Omega_j^\top S\, \Omega_j}{2 \omega_{jj}} - \tfrac12 \log \omega_{jj} ,

    infinite where Omega is not positive definite. Nothing keeps a path away from there, so it may end at that boundary.

    Examples
    --------
    >>> import numpy as np
    >>> GaussianCompositeLoss(2).value(np.eye(2), np.eye(2), np.ones(1))
    1.0
    """

    name = "gaussian-composite"

    @only_for_its_class
    def kernel(self) -> Kernel:
        return Kernel(self.name, {"margin": MARGIN})

    def value(self, eta: Array, y: Array, w: Array) -> float:
        diagonal = np.diagonal(eta)
        if _cholesky(eta - np.diag(MARGIN * diagonal)) is None:
            return np.inf
        quadratic = np.sum(eta * (y @ eta), axis=0)
        return float(np.sum(quadratic / (2 * diagonal) - 0.5 * np.log(diagonal)))

    def gradient(self, eta: Array, y: Array, w: Array) -> Array:
        diagonal = np.diagonal(eta)
        if np.any(diagonal <= 0):
            return np.full_like(eta, np.nan)
        product = y @ eta
        out = product / diagonal
        quadratic = np.sum(eta * product, axis=0)
        out[np.diag_indices_from(out)] -= quadratic / (2 * diagonal**2) + 0.5 / diagonal
        return out

    def curvature(self, eta: Array, y: Array, w: Array, direction: Array) -> Array:
        d, dd = np.diagonal(eta), np.diagonal(direction)
        product, change = y @ eta, y @ direction
        quadratic, cross = np.sum(eta * product, axis=0), np.sum(direction * product, axis=0)
        out = change / d - product * (dd / d**2)
        out[np.diag_indices_from(out)] += -cross / d**2 + quadratic * dd / d**3 + 0.5 * dd / d**2
        return out


def _cholesky(matrix: Array) -> Array | None:
    """The lower factor (what is above it is arbitrary); None where the matrix is not positive definite."""
    factor, failed = lapack.dpotrf(matrix, lower=1, clean=0)
    return None if failed else factor


def _log_determinant(factor: Array) -> float:
    """Of a matrix, by its Cholesky factor."""
    return 2.0 * float(np.sum(np.log(np.diagonal(factor))))


@lru_cache(maxsize=4)
def _above_diagonal(p: int) -> Array:
    return np.triu(np.ones((p, p), dtype=bool), 1)
