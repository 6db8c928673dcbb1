"""Losses of rows by many predictors, of those losses that the core has and that need no constants."""

from __future__ import annotations

import numpy as np

import bregpath._kernels._core as _core
from bregpath._known_to_core import is_known_as
from bregpath._typing import Array
from bregpath.losses import AbstractLoss

__all__ = ["losses", "supports"]

KNOWN = ("gaussian", "logistic")


def supports(loss: AbstractLoss) -> bool:
    """Whether the compiled core knows the loss."""
    return is_known_as(loss, *KNOWN)


def losses(loss: AbstractLoss, eta: Array, y: Array, w: Array) -> Array:
    """`AbstractLoss.value` at each of several ``eta`` (T, n)."""
    out = np.empty(len(eta))
    rows = {name: np.ascontiguousarray(x, dtype=np.float64) for name, x in {"eta": eta, "y": y, "w": w}.items()}
    _core.losses(loss.name, {**rows, "out": out})
    return out
