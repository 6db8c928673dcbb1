"""Multinomial logistic loss."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp, softmax

from bregpath._known_to_core import Kernel, only_for_its_class
from bregpath._sums import dot
from bregpath._typing import Array
from bregpath.losses.base import LabelLoss, encode_labels

__all__ = ["MultinomialLoss"]


class MultinomialLoss(LabelLoss):
    r"""Multinomial loss :math:`\ell_i = \log \sum_l e^{\eta_{il}} - \eta_{i y_i}` over ``q`` classes.

    All classes have coefficients (no reference class); their sum is held at zero by the dynamics itself, since
    the gradient sums to zero over classes.

    Examples
    --------
    >>> import numpy as np
    >>> loss = MultinomialLoss()
    >>> y = loss.encode(np.array(["a", "b", "c"]), np.full(3, 1 / 3))
    >>> round(loss.value(np.zeros((3, 3)), y, np.full(3, 1 / 3)), 4)
    1.0986
    """

    name = "multinomial"

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        return 1 if self.classes is None else len(self.classes)

    @only_for_its_class
    def kernel(self) -> Kernel:
        return Kernel("multinomial", {})

    def value(self, eta: Array, y: Array, w: Array) -> float:
        chosen = np.take_along_axis(eta, y[:, None], axis=1)[:, 0]
        return dot(w, logsumexp(eta, axis=1) - chosen)

    def gradient(self, eta: Array, y: Array, w: Array) -> Array:
        out = softmax(eta, axis=1)
        out[np.arange(len(y)), y] -= 1.0
        out *= w[:, None]
        return out

    def curvature(self, eta: Array, y: Array, w: Array, direction: Array) -> Array:
        p = softmax(eta, axis=1)
        mean = np.sum(p * direction, axis=1, keepdims=True)
        return w[:, None] * p * (direction - mean)

    def encode(self, y: Array, w: Array) -> Array:
        self.classes, codes = encode_labels(y, w)
        return codes

    def null(self, y: Array, w: Array) -> Array:
        log_share = np.log(np.bincount(y, weights=w, minlength=self.n_outputs))
        return log_share - log_share.mean()

    def offset_level(self, offset: Array, w: Array) -> Array:
        level = w @ offset
        return level - level.mean()  # what all classes have in common changes nothing

    def predict(self, eta: Array) -> Array:
        return softmax(eta, axis=-1)
