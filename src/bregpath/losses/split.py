"""A loss of the data, and the distance of D alpha from a sparse gamma."""

from __future__ import annotations

from typing import Any

import numpy as np

from bregpath._typing import Array
from bregpath.losses.base import AbstractLoss

__all__ = ["SplitLoss"]


class SplitLoss(AbstractLoss):
    r"""``loss(eta) + sum_j w_j eta_j^2 / 2``: the last ``n_rows`` predictors are what is left of a constraint.

    Of the rows of a `bregpath.stores.split.SplitStore` the first are those of the data; they alone have a response.
    The weights of the others say what it costs to miss the constraint.

    Examples
    --------
    >>> import numpy as np
    >>> from bregpath.losses import GaussianLoss
    >>> loss = SplitLoss(GaussianLoss(), 1)
    >>> loss.value(np.array([1.0, 3.0]), np.array([2.0]), np.array([1.0, 0.5]))  # 1 / 2 + 0.5 * 9 / 2
    2.75
    """

    def __init__(self, loss: AbstractLoss, n_rows: int) -> None:
        self.loss, self.n_rows = loss, n_rows
        shared = ("name", "n_outputs", "is_classifier", "classes", "deviance_factor", "can_saturate", "has_domain")
        for attribute in (*shared, "looks_inside"):
            setattr(self, attribute, getattr(loss, attribute))

    def value(self, eta: Array, y: Array, w: Array) -> float:
        of_data, rest = self.loss.value(eta[: -self.n_rows], y, w[: -self.n_rows]), eta[-self.n_rows :]
        return of_data + 0.5 * float(np.sum(self._weigh(w, rest) * rest))

    def gradient(self, eta: Array, y: Array, w: Array) -> Array:
        of_data = self.loss.gradient(eta[: -self.n_rows], y, w[: -self.n_rows])
        return np.concatenate([of_data, self._weigh(w, eta[-self.n_rows :])])

    def curvature(self, eta: Array, y: Array, w: Array, direction: Array) -> Array:
        of_data = self.loss.curvature(eta[: -self.n_rows], y, w[: -self.n_rows], direction[: -self.n_rows])
        return np.concatenate([of_data, self._weigh(w, direction[-self.n_rows :])])

    def _weigh(self, w: Array, rest: Array) -> Array:
        w = w[-self.n_rows :]
        return (w if rest.ndim == 1 else w[:, None]) * rest

    def response_size(self, y: Array, w: Array) -> float:
        return self.loss.response_size(y, w[: -self.n_rows])

    def saturated(self, y: Array, w: Array) -> float:
        return self.loss.saturated(y, w[: -self.n_rows])

    def predict(self, eta: Array) -> Array:
        return self.loss.predict(eta)

    def to_dict(self) -> dict[str, Any]:
        return self.loss.to_dict()
