"""Huber loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from bregpath._known_to_core import Kernel, only_for_its_class
from bregpath._sums import dot
from bregpath._typing import Array
from bregpath.losses.base import AbstractLoss
from bregpath.losses.gaussian import standard_deviation

__all__ = ["HuberLoss"]


class HuberLoss(AbstractLoss):
    r"""Squared loss near zero, absolute loss beyond a threshold, for regression with outliers.

    .. math:: \ell_i = u^2/2 \text{ if } |u| \le \tau, \quad \tau |u| - \tau^2/2 \text{ else}, \qquad u = \eta_i - y_i.

    Parameters
    ----------
    threshold : float, default 1.345
        The bend :math:`\tau`. When ``y`` is scaled inside (``standardize=True``) it is in units of the spread
        scale of ``y`` (1.4826 times the median absolute deviation), so that other units of ``y`` change nothing else.

    Examples
    --------
    >>> import numpy as np
    >>> HuberLoss(threshold=1.0).gradient(np.array([5.0, 0.5]), np.zeros(2), np.ones(2))
    array([1. , 0.5])
    """

    name = "huber"
    has_units = True
    is_location = True
    looks_inside = True

    def __init__(self, threshold: float = 1.345) -> None:
        if not threshold > 0:
            raise ValueError(f"`threshold` of the Huber loss must be positive, found {threshold}.")
        self.threshold = float(threshold)

    @only_for_its_class
    def kernel(self) -> Kernel:
        return Kernel("huber", {"threshold": self.threshold})

    def value(self, eta: Array, y: Array, w: Array) -> float:
        size = np.abs(eta - y)
        inner = np.minimum(size, self.threshold)
        return dot(w, inner * (size - 0.5 * inner))

    def gradient(self, eta: Array, y: Array, w: Array) -> Array:
        return w * np.clip(eta - y, -self.threshold, self.threshold)

    def curvature(self, eta: Array, y: Array, w: Array, direction: Array) -> Array:
        return w * (np.abs(eta - y) <= self.threshold) * direction

    def unit(self, y: Array, w: Array) -> float:
        centre = weighted_median(y, w)
        spread = 1.4826 * weighted_median(np.abs(y - centre), w)
        return spread if spread > 1e-12 * np.max(np.abs(y), initial=0.0) else standard_deviation(y, w)

    def null(self, y: Array, w: Array) -> Array:
        return np.array([weighted_median(y, w)])

    def response_size(self, y: Array, w: Array) -> float:
        return min(super().response_size(y, w), self.threshold)

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "threshold": self.threshold}


def weighted_median(y: Array, w: Array) -> float:
    """Middle value of ``y``, each row counted ``w`` times; rows of weight zero do not count."""
    used = w > 0
    order = np.argsort(y[used], kind="stable")
    values, mass = y[used][order], np.cumsum(w[used][order])
    half = 0.5 * mass[-1]
    lower = int(np.searchsorted(mass, half * (1 - 1e-12)))
    upper = min(int(np.searchsorted(mass, half * (1 + 1e-12))), len(values) - 1)
    return 0.5 * float(values[lower] + values[upper])
