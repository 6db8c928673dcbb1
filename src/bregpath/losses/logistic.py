"""Logistic loss for two classes."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from bregpath._known_to_core import Kernel, only_for_its_class
from bregpath._sums import dot
from bregpath._typing import Array
from bregpath.losses.base import LabelLoss, encode_labels

__all__ = ["LogisticLoss"]


class LogisticLoss(LabelLoss):
    r"""Logistic loss :math:`\ell_i = \log(1 + e^{-y_i \eta_i})` with labels coded as -1 and +1.

    Labels of any two kinds are accepted; the larger in sorted order is the positive class, the one whose
    probability `predict` returns.

    Examples
    --------
    >>> import numpy as np
    >>> loss = LogisticLoss()
    >>> loss.encode(np.array(["no", "yes"]), np.array([0.5, 0.5]))
    array([-1.,  1.])
    >>> loss.classes.tolist()
    ['no', 'yes']
    """

    name = "logistic"

    @property
    def null_is_exact(self) -> bool:  # type: ignore[override]
        return self.kernel() is not None  # a subclass may have changed the formulas

    @only_for_its_class
    def kernel(self) -> Kernel:
        return Kernel("logistic", {})

    def value(self, eta: Array, y: Array, w: Array) -> float:
        return dot(w, np.logaddexp(0.0, -y * eta))

    def gradient(self, eta: Array, y: Array, w: Array) -> Array:
        return -w * y * expit(-y * eta)

    def curvature(self, eta: Array, y: Array, w: Array, direction: Array) -> Array:
        p = expit(eta)
        return w * p * (1.0 - p) * direction

    def encode(self, y: Array, w: Array) -> Array:
        self.classes, codes = encode_labels(y, w)
        if len(self.classes) != 2:
            some = ", ".join(map(repr, self.classes[:5].tolist())) + ", ..." * (len(self.classes) > 5)
            raise ValueError(
                f'`y` has {len(self.classes)} classes ({some}); loss="logistic" takes two, use loss="multinomial".'
            )
        return 2.0 * codes - 1.0

    def null(self, y: Array, w: Array) -> Array:
        positive = dot(w, y > 0)
        return np.array([np.log(positive / (1.0 - positive))])

    def predict(self, eta: Array) -> Array:
        return expit(eta)
