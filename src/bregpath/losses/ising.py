"""Losses of Ising models: functions of the predictors of all nodes at once."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from bregpath._known_to_core import Kernel, only_for_its_class
from bregpath._typing import Array
from bregpath.losses.base import NodeLoss

__all__ = ["IsingCompositeLoss", "IsingFlowLoss"]


class _IsingLoss(NodeLoss):
    """Spins ``y`` of shape (n, p) in {-1, +1}; ``eta`` has one column a node."""

    def null(self, y: Array, w: Array) -> Array:
        up = w @ (y > 0)
        return np.log(up / (1.0 - up))

    def predict(self, eta: Array) -> Array:
        return expit(eta)


class IsingCompositeLoss(_IsingLoss):
    r"""Composite conditional likelihood (pseudo-likelihood) of an Ising model.

    .. math:: \ell_i = \sum_j \log(1 + e^{-x_{ij} \eta_{ij}}), \qquad \eta_j = a_j + \sum_{k \ne j} b_{jk} x_k.

    Examples
    --------
    >>> import numpy as np
    >>> spins = np.array([[1.0, -1.0], [1.0, 1.0]])
    >>> round(IsingCompositeLoss(2).value(np.zeros((2, 2)), spins, np.full(2, 0.5)), 4)  # 2 log 2
    1.3863
    """

    name = "ising-composite"

    @only_for_its_class
    def kernel(self) -> Kernel:
        return Kernel("logistic", {"nodes": np.ones(self.n_outputs, dtype=np.int64)})

    def value(self, eta: Array, y: Array, w: Array) -> float:
        return float(w @ np.logaddexp(0.0, -y * eta).sum(axis=1))

    def gradient(self, eta: Array, y: Array, w: Array) -> Array:
        return -w[:, None] * y * expit(-y * eta)

    def curvature(self, eta: Array, y: Array, w: Array, direction: Array) -> Array:
        up = expit(eta)
        return w[:, None] * up * (1.0 - up) * direction


class IsingFlowLoss(_IsingLoss):
    r"""Minimum probability flow objective of an Ising model: flow into all states that differ in one spin.

    .. math:: \ell_i = \sum_j e^{-x_{ij} \eta_{ij} / 2}, \qquad \eta_j = a_j + \sum_{k \ne j} b_{jk} x_k.

    Convex, without the partition function, and often better at finding edges than the composite likelihood.

    Examples
    --------
    >>> import numpy as np
    >>> spins = np.array([[1.0, -1.0], [1.0, 1.0]])
    >>> IsingFlowLoss(2).value(np.zeros((2, 2)), spins, np.full(2, 0.5))
    2.0
    """

    name = "ising-mpf"

    @only_for_its_class
    def kernel(self) -> Kernel:
        return Kernel("ising-flow", {"nodes": np.ones(self.n_outputs, dtype=np.int64)})

    def value(self, eta: Array, y: Array, w: Array) -> float:
        with np.errstate(over="ignore"):
            return float(w @ np.exp(-0.5 * y * eta).sum(axis=1))

    def gradient(self, eta: Array, y: Array, w: Array) -> Array:
        with np.errstate(over="ignore"):
            return -0.5 * w[:, None] * y * np.exp(-0.5 * y * eta)

    def curvature(self, eta: Array, y: Array, w: Array, direction: Array) -> Array:
        return 0.25 * w[:, None] * np.exp(-0.5 * y * eta) * direction
