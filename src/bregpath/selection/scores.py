"""Scores of some rows, at every time at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bregpath import _kernels
from bregpath._typing import Array
from bregpath.losses import AbstractLoss
from bregpath.regression import HeldOut

__all__ = ["SCORES", "Scorer", "make_scorers"]


class Scorer(NamedTuple):
    """A named measure of predictions."""

    name: str
    score: Callable[[Any], Array]  # from what `AbstractStudy.held_out` returns to one number a time
    larger_is_better: bool = False
    is_smooth: bool = False  # whether its curve is that of the loss itself, which moves without jumps


def make_scorers(scoring: Any, loss: AbstractLoss) -> tuple[Scorer, ...]:
    """The measures that were asked for: a name, a function, a list of these, or a dict of them by name."""
    scoring = "deviance" if scoring is None else scoring
    if isinstance(scoring, Mapping):
        scorers = tuple(_read(measure, loss, str(name)) for name, measure in scoring.items())
    else:
        several = scoring if isinstance(scoring, list | tuple | set) else (scoring,)
        scorers = tuple(_read(measure, loss) for measure in several)
    names = [scorer.name for scorer in scorers]
    if not names:
        raise ValueError("`scoring` is empty; name at least one measure, or leave it out for the deviance.")
    if len(set(names)) < len(names):
        raise ValueError(f"`scoring` names a measure twice: {names}; pass a dict to name functions yourself.")
    return scorers


def _read(measure: Any, loss: AbstractLoss, name: str | None = None) -> Scorer:
    if not callable(measure) and not (isinstance(measure, str) and measure in SCORES):
        raise ValueError(f"`scoring` must be one of {sorted(SCORES)} or a callable (or several), found {measure!r}.")
    if hasattr(measure, "_score_func"):  # of sklearn.metrics.make_scorer: it wants an estimator
        raise TypeError(
            f"`scoring` takes functions score(y_true, prediction), found a scorer of estimators, {measure!r}; "
            "pass the metric itself."
        )
    if measure == "misclassification" and not loss.is_classifier:
        raise ValueError(f'`scoring`="misclassification" needs a classifier, found loss={loss.name!r}; use "deviance".')
    if measure == "auc" and not (loss.is_classifier and loss.n_outputs == 1):
        raise ValueError(f'`scoring`="auc" needs loss="logistic", found loss={loss.name!r}.')
    if isinstance(measure, str):
        formula = SCORES[measure]

        def by_name(held: HeldOut) -> Array:
            if held.squared_error is not None:
                return held.squared_error
            return formula(held.loss, held.unit, held.eta, held.coded, held.w / held.w.sum())

        return Scorer(name or measure, by_name, measure == "auc", measure == "deviance")

    title = name or str(getattr(measure, "__name__", "score"))

    def by_function(held: HeldOut) -> Array:
        extra = {"sample_weight": held.w} if held.weighted else {}
        return np.array([_number(title, measure(held.y, held.loss.predict(e), **extra)) for e in held.eta])

    return Scorer(title, by_function, bool(getattr(measure, "larger_is_better", False)))


def _number(title: str, score: Any) -> float:
    value = np.asarray(score)
    if value.size == 1 and value.dtype.kind in "fiub":
        return float(value.item())
    raise TypeError(f"`scoring` takes functions that return one number; {title} returned {score!r}.")


# --- the measures by name ------------------------------------------------------------------------------------


def _deviance(loss: AbstractLoss, unit: float, eta: Array, y: Array, w: Array) -> Array:
    values = _kernels.losses(loss, eta, y, w)
    if values is not None:
        return loss.deviance_factor * values
    if loss.name in _ROWWISE and loss.kernel() is not None:
        return _ROWWISE[loss.name](eta, y) @ w
    # Losses with units count in those of the path on all rows (the bend of Huber's loss is a multiple of them).
    y = y / unit if loss.has_units else y
    return np.array([unit**2 * loss.deviance(e / unit, y, w) for e in eta])


def _logistic_deviance(eta: Array, y: Array) -> Array:
    margin = y * eta
    return 2.0 * (np.log1p(np.exp(-np.abs(margin))) + np.maximum(-margin, 0.0))


# Deviances of single rows of the shipped losses that need no constants: all times in one go.
_ROWWISE: dict[str, Callable[[Array, Array], Array]] = {
    "gaussian": lambda eta, y: (eta - y) ** 2,
    "logistic": _logistic_deviance,
}


def _misclassification(loss: AbstractLoss, unit: float, eta: Array, y: Array, w: Array) -> Array:
    wrong = np.argmax(eta, axis=2) != y if eta.ndim == 3 else (eta > 0) != (y > 0)
    return wrong @ w


def _error(power: int, loss: AbstractLoss, unit: float, eta: Array, y: Array, w: Array) -> Array:
    """Power of predicted minus observed response, or of probability minus indicator of the class."""
    if eta.ndim == 3:
        return np.sum(np.abs(loss.predict(eta) - np.eye(eta.shape[2])[y]) ** power, axis=2) @ w
    return np.abs(loss.predict(eta) - (y > 0 if loss.is_classifier else y)) ** power @ w


def _auc(loss: AbstractLoss, unit: float, eta: Array, y: Array, w: Array) -> Array:
    positive = y > 0
    if positive.all() or not positive.any():
        raise ValueError(
            '`scoring`="auc" needs held-out rows of both classes in every fold; use fewer, stratified folds.'
        )
    out = np.empty(len(eta))
    for i, e in enumerate(eta):
        level = np.unique(e, return_inverse=True)[1].ravel()
        won = np.bincount(level, weights=w * positive)
        lost = np.bincount(level, weights=w * ~positive)
        out[i] = won @ (np.cumsum(lost) - 0.5 * lost) / (won.sum() * lost.sum())  # ties count half
    return out


# (loss, unit of y, eta of shape (n_times, n[, q]), coded y, weights that sum to one) -> (n_times,)
SCORES: dict[str, Callable[..., Array]] = {
    "deviance": _deviance,
    "misclassification": _misclassification,
    "mse": partial(_error, 2),
    "mae": partial(_error, 1),
    "auc": _auc,
}
