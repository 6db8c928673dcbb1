"""A loss that is least where one wants it to be."""

from __future__ import annotations

import numpy as np

from bregpath._typing import Array
from bregpath.losses.base import AbstractLoss

__all__ = ["TiltedLoss"]


class TiltedLoss(AbstractLoss):
    r"""The Bregman divergence of a loss from a predictor, up to a constant:

    .. math:: \ell(\eta) - \langle \nabla \ell(\eta^*), \eta \rangle .

    Its minimum is at :math:`\eta^*`. Of a likelihood in its natural parameter it is the Kullback-Leibler divergence of
    what :math:`\eta^*` predicts from what :math:`\eta` does; the response drops out.

    Parameters
    ----------
    loss : AbstractLoss
    tilt : ndarray
        Its gradient at :math:`\eta^*`.

    Examples
    --------
    >>> import numpy as np
    >>> from bregpath.losses import as_loss
    >>> loss, y, w, wanted = as_loss("logistic"), np.array([-1.0, 1.0]), np.full(2, 0.5), np.array([0.3, 2.0])
    >>> TiltedLoss(loss, loss.gradient(wanted, y, w)).gradient(wanted, y, w)
    array([0., 0.])
    """

    def __init__(self, loss: AbstractLoss, tilt: Array) -> None:
        self.loss, self.tilt = loss, tilt
        self.n_outputs, self.is_classifier = loss.n_outputs, loss.is_classifier

    def value(self, eta: Array, y: Array, w: Array) -> float:
        return self.loss.value(eta, y, w) - float(np.sum(self.tilt * eta))

    def gradient(self, eta: Array, y: Array, w: Array) -> Array:
        return self.loss.gradient(eta, y, w) - self.tilt

    def curvature(self, eta: Array, y: Array, w: Array, direction: Array) -> Array:
        return self.loss.curvature(eta, y, w, direction)
