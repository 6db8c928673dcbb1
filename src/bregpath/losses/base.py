"""What every loss promises, with a complete NumPy default for all of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from bregpath._known_to_core import Kernel
from bregpath._typing import Array

__all__ = ["AbstractLoss", "LabelLoss", "NodeLoss", "UserLoss", "check_numbers", "distinct_labels", "encode_labels"]


class AbstractLoss(ABC):
    r"""A smooth convex function of the linear predictor ``eta``, averaged over rows.

    .. math:: \ell(\eta) = \sum_i w_i\, \ell_i(\eta_i; y_i), \qquad \sum_i w_i = 1.

    A loss never sees X. A new loss is one file with `value` and `gradient`; the other
    methods have defaults that are right before they are fast.

    Conventions shared by all methods: ``eta`` is ``(n,)`` (or ``(n, q)`` when ``n_outputs > 1``), ``y`` is what
    `encode` returned, ``w`` is ``(n,)``, non-negative and sums to one. The weights are part of the result.

    Attributes
    ----------
    name : str
        Key in the registry.
    n_outputs : int
        Number of linear predictors per row.
    has_units : bool
        True when ``eta`` carries the units of ``y``; such a ``y`` is scaled inside (see `unit`).
    is_location : bool
        True when the loss is a function of ``eta - y`` only, so that both may be shifted together.
    is_classifier : bool
        True when ``y`` holds labels; then `encode` sets ``classes``.
    deviance_factor : float
        Deviance of a row over its loss: 2 for minus a log-likelihood.
    null_is_exact : bool
        True when `null` is the optimum to rounding, so that it needs no polishing (without offsets).
    can_saturate : bool
        True when a path ends once nearly all is explained, because coefficients only grow from there on.
    has_domain : bool
        True when `value` is infinite for some ``eta``.
    looks_inside : bool
        True when adaptive steps are also checked inside, where the path is read: there coefficients within `tol` may
        have a much larger value, or an infinite one.
    step_share : float
        Share of the usual error that a stabilised step may make.
    """

    name: str = ""
    n_outputs: int = 1
    has_units: bool = False
    is_location: bool = False
    is_classifier: bool = False
    deviance_factor: float = 2.0
    null_is_exact: bool = False
    can_saturate: bool = True
    has_domain: bool = False
    looks_inside: bool = False
    step_share: float = 1.0
    classes: Array | None = None

    def kernel(self) -> Kernel | None:
        """What the compiled core knows these very formulas as; None where they are evaluated in NumPy.

        Defined with `only_for_its_class`, so that a subclass, which may have changed the formulas, is not mistaken.
        """
        return None

    @abstractmethod
    def value(self, eta: Array, y: Array, w: Array) -> float:
        """Weighted sum of the losses of all rows."""

    @abstractmethod
    def gradient(self, eta: Array, y: Array, w: Array) -> Array:
        """Derivative of `value` with respect to ``eta``; same shape as ``eta``."""

    def curvature(self, eta: Array, y: Array, w: Array, direction: Array) -> Array:
        """Second derivative of `value` applied to ``direction``; by central differences unless overridden."""
        length = float(np.max(np.abs(direction), initial=0.0))
        if length == 0.0:
            return np.zeros_like(direction)
        eps = 1e-5 / length
        forward = self.gradient(eta + eps * direction, y, w)
        backward = self.gradient(eta - eps * direction, y, w)
        return (forward - backward) / (2 * eps)

    def encode(self, y: Array, w: Array) -> Array:
        """Check ``y`` and turn it into the numbers the other methods take."""
        return check_numbers(y)

    def unit(self, y: Array, w: Array) -> float:
        """Scale of ``y`` by which a loss with units is made unit-free; 1 for losses without units."""
        return 1.0

    def lacking(self, y: Array, w: Array) -> str:
        """What some rows lack for the intercept of their null model to be finite, in words; nothing if it is."""
        return ""

    def null(self, y: Array, w: Array) -> Array:
        """Start value, shape ``(n_outputs,)``, from which the intercept of the null model is polished."""
        return np.zeros(self.n_outputs)

    def offset_level(self, offset: Array, w: Array) -> Array:
        """About the constants, shape ``(n_outputs,)``, that an offset ``(n, n_outputs)`` adds to the intercepts."""
        return w @ offset

    def response_size(self, y: Array, w: Array) -> float:
        """Size of the response in the gradient, by which its rounding is judged."""
        if not self.has_units:
            return 1.0
        mean = float(y.sum() / len(y))
        return max(float(y.max()) - mean, mean - float(y.min()))

    def saturated(self, y: Array, w: Array) -> float:
        """Smallest value any ``eta`` can reach; the deviance is measured from here."""
        return 0.0

    def deviance(self, eta: Array, y: Array, w: Array) -> float:
        """Distance of `value` to its `saturated` value, times ``deviance_factor``."""
        return self.deviance_factor * (self.value(eta, y, w) - self.saturated(y, w))

    def predict(self, eta: Array) -> Array:
        """Mean response at ``eta``."""
        return eta

    def to_dict(self) -> dict[str, Any]:
        """Everything needed to build this loss again, as JSON-able values."""
        return {"name": self.name}

    def __repr__(self) -> str:
        options = ", ".join(f"{k}={v!r}" for k, v in self.to_dict().items() if k not in ("name", "classes"))
        return f"{type(self).__name__}({options})"


class LabelLoss(AbstractLoss):
    """A loss of class labels, which knows them once it has encoded a response."""

    is_classifier = True

    def __init__(self, classes: Any = None) -> None:
        self.classes = None if classes is None else np.asarray(classes)

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "classes": None if self.classes is None else self.classes.tolist()}


class NodeLoss(AbstractLoss):
    """A loss of all nodes of a graph at once, with an output each."""

    null_is_exact = True

    def __init__(self, n_outputs: int = 1) -> None:
        self.n_outputs = n_outputs

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "n_outputs": self.n_outputs}


class UserLoss(AbstractLoss):
    """Any object with ``value(eta, y, w)`` and ``gradient(eta, y, w)``, run through the same loop.

    Optional methods and attributes of `AbstractLoss` are used where the object has them.

    Examples
    --------
    >>> import numpy as np
    >>> class Quartic:
    ...     def value(self, eta, y, w):
    ...         return float(w @ (eta - y) ** 4)
    ...
    ...     def gradient(self, eta, y, w):
    ...         return 4 * w * (eta - y) ** 3
    >>> UserLoss(Quartic()).value(np.array([3.0]), np.array([1.0]), np.ones(1))
    16.0
    """

    name = "user"
    looks_inside = True

    def __init__(self, loss: Any) -> None:
        missing = [m for m in ("value", "gradient") if not callable(getattr(loss, m, None))]
        if missing:
            raise TypeError(
                f"`loss` must be a name or an object with methods value(eta, y, w) and gradient(eta, y, w); "
                f"{type(loss).__name__} lacks {' and '.join(missing)}."
            )
        self.loss = loss
        settings = ("n_outputs", "has_units", "is_classifier", "looks_inside")
        methods = ("encode", "unit", "null", "saturated", "predict")
        for attribute in settings + methods:
            if hasattr(loss, attribute):
                setattr(self, attribute, getattr(loss, attribute))

    # The object may use `eta` as scratch space, so it gets a copy; it must leave the data alone.

    def value(self, eta: Array, y: Array, w: Array) -> float:
        return float(self.loss.value(eta.copy(), _locked(y), _locked(w)))

    def gradient(self, eta: Array, y: Array, w: Array) -> Array:
        return np.asarray(self.loss.gradient(eta.copy(), _locked(y), _locked(w)), dtype=float)

    def curvature(self, eta: Array, y: Array, w: Array, direction: Array) -> Array:
        if not hasattr(self.loss, "curvature"):
            return super().curvature(eta, y, w, direction)
        bent = self.loss.curvature(eta.copy(), _locked(y), _locked(w), direction.copy())
        return np.asarray(bent, dtype=float)

    def to_dict(self) -> dict[str, Any]:
        return {"name": "user", "class": type(self.loss).__name__}


def _locked(data: Array) -> Array:
    """A view of an array through which it cannot be changed."""
    view = data.view()
    view.flags.writeable = False
    return view


def check_numbers(y: Array) -> Array:
    """One-dimensional finite float64 copy-on-need of ``y``, or an error that says what is wrong."""
    try:
        values = np.asarray(y, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            f"`y` must hold numbers for this loss, found values like {np.ravel(y)[0]!r}; "
            'for class labels use loss="logistic" or loss="multinomial".'
        ) from None
    return _checked(values)


def _checked(y: Array) -> Array:
    if y.ndim != 1:
        raise ValueError(f"`y` must be one-dimensional, found shape {y.shape}; pass y.ravel() for one column.")
    bad = ~np.isfinite(y) if y.dtype.kind == "f" else np.zeros(1, dtype=bool)
    if bad.any():
        raise ValueError(f"`y` contains NaN or infinity in {bad.sum()} rows (first: row {bad.argmax()}); drop them.")
    return y


def encode_labels(y: Array, w: Array) -> tuple[Array, Array]:
    """Sorted class labels and the index of each row's label; needs at least two classes with weight."""
    classes, codes = distinct_labels(_checked(np.asarray(y)))
    present = np.bincount(codes, weights=w, minlength=len(classes)) > 0
    if present.sum() < 2:
        raise ValueError(
            f"`y` has one class only ({classes[present].tolist()}); a classifier needs rows of at least two classes."
        )
    if not present.all():
        raise ValueError(f"`y` has classes whose rows all have weight 0: {classes[~present].tolist()}; drop them.")
    return classes, codes


def distinct_labels(y: Array) -> tuple[Array, Array]:
    """Sorted labels, and the position of each row's label among them."""
    try:
        labels, position = np.unique(y, return_inverse=True)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in y.ravel().tolist()})
        raise ValueError(
            f"`y` mixes labels of type {' and '.join(kinds)}; give them one type, and drop rows without any."
        ) from None
    return labels, position.ravel()
