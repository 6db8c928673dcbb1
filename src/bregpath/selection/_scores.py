"""Scores of held-out rows, at every time at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bregpath._typing import Array
from bregpath.losses import AbstractLoss

__all__ = ["SCORES", "check_scoring"]


def _deviance(loss: AbstractLoss, unit: float, eta: Array, y: Array, w: Array) -> Array:
    # Losses with units count in those of the path on all rows (the bend of Huber's loss is a multiple of
    # them).
    y = y / unit if loss.has_units else y
    return np.array([unit**2 * loss.deviance(e / unit, y, w) for e in eta])


def _misclassification(loss: AbstractLoss, unit: float, eta: Array, y: Array, w: Array) -> Array:
    wrong = np.argmax(eta, axis=2) != y if eta.ndim == 3 else (eta > 0) != (y > 0)
    return wrong @ w


def _mse(loss: AbstractLoss, unit: float, eta: Array, y: Array, w: Array) -> Array:
    prediction = loss.predict(eta)
    if eta.ndim == 3:
        return np.sum((prediction - np.eye(eta.shape[2])[y]) ** 2, axis=2) @ w
    return (prediction - (y > 0 if loss.is_classifier else y)) ** 2 @ w


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
    "mse": _mse,
    "auc": _auc,
}


def check_scoring(scoring: Any, loss: AbstractLoss) -> str | Callable[..., float]:
    scoring = "deviance" if scoring is None else scoring
    if not callable(scoring) and scoring not in SCORES:
        raise ValueError(f"`scoring` must be one of {sorted(SCORES)} or a callable, found {scoring!r}.")
    if scoring == "misclassification" and not loss.is_classifier:
        raise ValueError(f'`scoring`="misclassification" needs a classifier, found loss={loss.name!r}; use "deviance".')
    if scoring == "auc" and not (loss.is_classifier and loss.n_outputs == 1):
        raise ValueError(f'`scoring`="auc" needs loss="logistic", found loss={loss.name!r}.')
    return scoring
