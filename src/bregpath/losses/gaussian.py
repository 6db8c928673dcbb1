"""Squared loss."""

from __future__ import annotations

import math

import numpy as np

from bregpath._known_to_core import Kernel, only_for_its_class
from bregpath._sums import dot
from bregpath._typing import Array
from bregpath.losses.base import AbstractLoss

__all__ = ["GaussianLoss", "standard_deviation"]


class GaussianLoss(AbstractLoss):
    r"""Squared loss :math:`\ell_i = (\eta_i - y_i)^2 / 2` of linear regression.

    Examples
    --------
    >>> import numpy as np
    >>> loss, w = GaussianLoss(), np.array([0.5, 0.5])
    >>> loss.value(np.array([1.0, 2.0]), np.array([0.0, 2.0]), w)
    0.25
    """

    name = "gaussian"
    has_units = True
    is_location = True
    # A coefficient goes all the way to its new value at one rate, nothing saturates: the errors of the few steps of a
    # transient have one sign, and add up.
    step_share = 0.88

    @property
    def null_is_exact(self) -> bool:  # type: ignore[override]
        return self.kernel() is not None  # a subclass may have changed the formulas

    @only_for_its_class
    def kernel(self) -> Kernel:
        return Kernel("gaussian", {})

    def value(self, eta: Array, y: Array, w: Array) -> float:
        residual = eta - y
        return 0.5 * dot(w, residual * residual)

    def gradient(self, eta: Array, y: Array, w: Array) -> Array:
        return w * (eta - y)

    def curvature(self, eta: Array, y: Array, w: Array, direction: Array) -> Array:
        return w * direction

    def unit(self, y: Array, w: Array) -> float:
        return standard_deviation(y, w)

    def null(self, y: Array, w: Array) -> Array:
        return np.array([dot(w, y)])


def standard_deviation(y: Array, w: Array) -> float:
    """Weighted standard deviation (variance with 1/n); the root mean square of a constant ``y``."""
    if not w.all():
        counts = w > 0
        y, w = y[counts], w[counts]
    largest = max(float(y.max(initial=0.0)), -float(y.min(initial=0.0)))
    if largest == 0:
        return 1.0
    y = y / largest  # squares of very large or small numbers are none
    mean = dot(w, y)
    y -= mean
    deviation = math.sqrt(dot(w, y * y))
    size = math.hypot(mean, deviation)
    # A constant y (up to rounding) has no spread to measure it by.
    return largest * (deviation if deviation > 1e-12 * size else size)
