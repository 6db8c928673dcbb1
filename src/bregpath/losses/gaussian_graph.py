"""Losses of Gaussian graphs: functions of the precision matrix."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from scipy.linalg import lapack

from bregpath._typing import Array
from bregpath.losses.base import AbstractLoss

__all__ = ["GaussianCompositeLoss", "GaussianLikelihoodLoss"]


class _GaussianGraphLoss(AbstractLoss):
    """``eta`` is the precision matrix Omega, ``y`` the covariance matrix S; weights are not used."""

    null_is_exact = True
    can_saturate = False  # the path goes on to the unpenalised fit, and edges may still leave

    def __init__(self, n_outputs: int = 1) -> None:
        self.n_outputs = n_outputs

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "n_outputs": self.n_outputs}

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

    infinite where Omega is not positive definite: a step that leads there is refused and shortened.

    Examples
    --------
    >>> import numpy as np
    >>> GaussianLikelihoodLoss(2).value(np.eye(2), np.eye(2), np.ones(1))
    2.0
    """

    name = "gaussian-likelihood"
    deviance_factor = 1.0  # tr(S Omega) - log det is minus twice the log-likelihood

    def value(self, eta: Array, y: Array, w: Array) -> float:
        factor, failed = lapack.dpotrf(eta, lower=1, clean=0)
        if failed:
            return np.inf
        return float(np.sum(y * eta) - 2.0 * np.sum(np.log(np.diagonal(factor))))

    def gradient(self, eta: Array, y: Array, w: Array) -> Array:
        inverse = _inverse(eta)
        return np.full_like(eta, np.nan) if inverse is None else y - inverse

    def curvature(self, eta: Array, y: Array, w: Array, direction: Array) -> Array:
        inverse = _inverse(eta)
        assert inverse is not None
        return inverse @ direction @ inverse


class GaussianCompositeLoss(_GaussianGraphLoss):
    r"""Composite conditional likelihood of a Gaussian graph: the regressions of every node on all others.

    .. math:: \ell(\Omega) = \sum_j \frac{\Omega_j^\top S\, \Omega_j}{2 \omega_{jj}} - \tfrac12 \log \omega_{jj}

    Examples
    --------
    >>> import numpy as np
    >>> GaussianCompositeLoss(2).value(np.eye(2), np.eye(2), np.ones(1))
    1.0
    """

    name = "gaussian-composite"

    def value(self, eta: Array, y: Array, w: Array) -> float:
        diagonal = np.diagonal(eta)
        if np.any(diagonal <= 0):
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


def _inverse(matrix: Array) -> Array | None:
    """Inverse of a symmetric matrix by its Cholesky factor; None where it is not positive definite."""
    factor, failed = lapack.dpotrf(matrix, lower=1, clean=0)
    if failed:
        return None
    half, failed = lapack.dpotri(factor, lower=1)
    if failed:
        return None
    # LAPACK fills one triangle and leaves the other as it was.
    np.copyto(half, half.T, where=_above_diagonal(len(half)))
    return half


@lru_cache(maxsize=4)
def _above_diagonal(p: int) -> Array:
    return np.triu(np.ones((p, p), dtype=bool), 1)
