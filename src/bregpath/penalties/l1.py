"""The l1 penalty: every coordinate for itself."""

from __future__ import annotations

import numpy as np

from bregpath._known_to_core import Kernel, only_for_its_class
from bregpath._typing import Array, BoolArray
from bregpath.penalties.base import ON_IT, AbstractPenalty

__all__ = ["L1Penalty"]


class L1Penalty(AbstractPenalty):
    r"""Weighted l1 norm :math:`J(b) = \sum_j w_j |b_j|`, whose mirror map is soft thresholding.

    .. math:: \mathrm{shrink}(z)_j = \mathrm{sign}(z_j) \max(|z_j| - w_j, 0).

    Examples
    --------
    >>> import numpy as np
    >>> no_limit = np.full((3, 1), np.inf)
    >>> penalty = L1Penalty(np.ones((3, 1)), -no_limit, no_limit)
    >>> penalty.shrink(np.array([[-1.5], [0.5], [3.0]])).ravel()
    array([-0.5,  0. ,  2. ])
    """

    name = "l1"

    @only_for_its_class
    def kernel(self) -> Kernel:
        return Kernel("l1", self.arrays())  # type: ignore[arg-type]

    def shrink(self, z: Array) -> Array:
        z = self.allowed(z)
        inside = np.maximum(z, -self.weights)  # in place from here on: large temporary arrays cost more than arithmetic
        np.minimum(inside, self.weights, out=inside)
        return np.subtract(z, inside, out=inside)

    def active(self, z: Array) -> BoolArray:
        if self.has_limits:
            return super().active(z)
        beyond = np.abs(z) > self.weights
        active: BoolArray = beyond[..., 0] if beyond.shape[-1] == 1 else np.any(beyond, axis=-1)
        return active if self.weights.all() else active | self.free

    def pace(self, z: Array, slope: Array, kappa: float) -> Array:
        if self.has_limits:
            return super().pace(z, slope, kappa)
        beyond = np.abs(z) > (1 + ON_IT) * self.weights
        stays = (beyond[0] & beyond[1]) | (self.weights == 0)
        return kappa * np.einsum("krcq,krcq->kr", slope * stays, slope)

    def value(self, beta: Array) -> float:
        active = beta != 0  # an excluded coordinate has weight inf and coefficient 0: no contribution
        return float(np.sum(self.weights[active] * np.abs(beta[active])))
