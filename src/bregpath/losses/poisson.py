"""Poisson loss for counts."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp, xlogy

from bregpath._known_to_core import Kernel, only_for_its_class
from bregpath._sums import dot
from bregpath._typing import Array
from bregpath.losses.base import AbstractLoss, check_numbers

__all__ = ["PoissonLoss"]


class PoissonLoss(AbstractLoss):
    r"""Poisson loss :math:`\ell_i = e^{\eta_i} - y_i \eta_i` with the log link.

    Exposure enters as ``offset=np.log(exposure)``.

    Examples
    --------
    >>> import numpy as np
    >>> PoissonLoss().gradient(np.zeros(2), np.array([0.0, 3.0]), np.ones(2))
    array([ 1., -2.])
    """

    name = "poisson"
    looks_inside = True

    @only_for_its_class
    def kernel(self) -> Kernel:
        return Kernel("poisson", {})

    def value(self, eta: Array, y: Array, w: Array) -> float:
        with np.errstate(over="ignore"):
            return dot(w, np.exp(_counted(eta, w)) - y * eta)

    def gradient(self, eta: Array, y: Array, w: Array) -> Array:
        with np.errstate(over="ignore"):
            return w * (np.exp(_counted(eta, w)) - y)

    def curvature(self, eta: Array, y: Array, w: Array, direction: Array) -> Array:
        with np.errstate(over="ignore"):
            return w * np.exp(_counted(eta, w)) * direction

    def encode(self, y: Array, w: Array) -> Array:
        counts = check_numbers(y)
        if (counts < 0).any():
            raise ValueError(
                f"`y` must be non-negative for the Poisson loss, found {counts.min():g} in row {counts.argmin()}."
            )
        if self.lacking(counts, w):
            raise ValueError("`y` is zero in every row; the Poisson rate has no maximum-likelihood estimate then.")
        if not 1e-12 < dot(w, counts) < 1e15:
            raise ValueError(
                f"`y` has a mean of {dot(w, counts):.0e}, too small or too large for a Poisson rate; count in other "
                "units, and give the exposure as offset=np.log(exposure)."
            )
        return counts

    def lacking(self, y: Array, w: Array) -> str:
        return "" if dot(w, y) > 0 else "no count above zero"

    def null(self, y: Array, w: Array) -> Array:
        return np.array([np.log(dot(w, y))])

    def offset_level(self, offset: Array, w: Array) -> Array:
        return logsumexp(offset[w > 0], axis=0, b=w[w > 0, None])

    def response_size(self, y: Array, w: Array) -> float:
        return dot(w, y)

    def saturated(self, y: Array, w: Array) -> float:
        return dot(w, y - xlogy(y, y))

    def predict(self, eta: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.exp(eta)


def _counted(eta: Array, w: Array) -> Array:
    """``eta`` where rows of weight zero cannot overflow (0 * inf would be NaN)."""
    return eta if w.all() else np.where(w > 0, eta, 0.0)
