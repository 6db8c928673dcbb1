"""Multinomial logistic loss."""

from __future__ import annotations

from functools import reduce

import numpy as np

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
        return dot(w, _softmax(eta)[1] - eta[np.arange(len(y)), y])

    def gradient(self, eta: Array, y: Array, w: Array) -> Array:
        out = _softmax(eta)[0]
        out[np.arange(len(y)), y] -= 1.0
        out *= w[:, None]
        return out

    def curvature(self, eta: Array, y: Array, w: Array, direction: Array) -> Array:
        p = _softmax(eta)[0]
        mean = np.einsum("iq,iq->i", p, direction)
        return w[:, None] * p * (direction - mean[:, None])

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
        return _softmax(eta)[0]


def _softmax(eta: Array) -> tuple[Array, Array]:
    """Probabilities of the classes (..., q), and the logarithm of what they were divided by (...)."""
    # Class by class: sums over a last axis that is short take NumPy several times as long.
    with np.errstate(invalid="ignore"):  # of predictors that are far beyond all numbers
        top = reduce(np.maximum, np.moveaxis(eta, -1, 0))
        out = np.exp(eta - top[..., None])
        total = reduce(np.add, np.moveaxis(out, -1, 0))
        out /= total[..., None]
        return out, top + np.log(total)
