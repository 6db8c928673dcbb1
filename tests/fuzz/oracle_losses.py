"""Losses of the oracle: d loss / d eta (n, q), its derivative (n, q, q), and units of y; nothing of bregpath."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["CURVATURES", "HUBER_BEND", "RESIDUALS", "UNITS"]

Array = np.ndarray
HUBER_BEND = 1.345


def _softmax(eta: Array) -> Array:
    p = np.exp(eta - eta.max(axis=1)[:, None])
    return p / p.sum(axis=1)[:, None]


RESIDUALS: dict[str, Callable[[Array, Array], Array]] = {
    "gaussian": lambda eta, y: eta - y[:, None],
    "logistic": lambda eta, y: 0.5 + 0.5 * np.tanh(0.5 * eta) - y[:, None],
    "multinomial": lambda eta, y: _softmax(eta) - (y[:, None] == np.arange(eta.shape[1])),
    "poisson": lambda eta, y: np.exp(eta) - y[:, None],
    "huber": lambda eta, y: np.clip(eta - y[:, None], -HUBER_BEND, HUBER_BEND),
}
CURVATURES: dict[str, Callable[[Array, Array], Array]] = {
    "gaussian": lambda eta, y: np.ones((*eta.shape, 1)),
    "logistic": lambda eta, y: 0.25 * (1 - np.tanh(0.5 * eta[:, :, None]) ** 2),
    "multinomial": lambda eta, y: _softmax(eta)[:, :, None] * (np.eye(eta.shape[1]) - _softmax(eta)[:, None, :]),
    "poisson": lambda eta, y: np.exp(eta)[:, :, None],
    "huber": lambda eta, y: 1.0 * (np.abs(eta - y[:, None]) <= HUBER_BEND)[:, :, None],
}


def _deviation(y: Array, w: Array) -> float:
    return float(np.sqrt(w @ (y - w @ y) ** 2))


def _median(y: Array, w: Array) -> float:
    order = np.argsort(y)
    y, below = y[order], np.cumsum(w[order])
    return 0.5 * (y[np.argmax(below >= 0.5 - 1e-12)] + y[np.argmax(below >= min(0.5 + 1e-12, below[-1]))])


def _robust(y: Array, w: Array) -> float:
    spread = 1.4826 * _median(np.abs(y - _median(y, w)), w)
    return spread if spread > 1e-12 * np.abs(y).max() else _deviation(y, w)


UNITS = {"gaussian": _deviation, "huber": _robust}
