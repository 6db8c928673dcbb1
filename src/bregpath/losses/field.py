"""Loss of discrete Markov fields (Potts models)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bregpath._known_to_core import Kernel, only_for_its_class
from bregpath._typing import Array
from bregpath.losses.base import AbstractLoss

__all__ = ["FieldCompositeLoss"]

SAFE = 200.0  # predictors whose exponentials need not be kept from overflowing
RUN_NUMBERS = 2**20  # predictors that are worked on at a time


class FieldCompositeLoss(AbstractLoss):
    r"""Composite conditional likelihood (pseudo-likelihood) of a discrete Markov field.

    .. math:: \ell_i = \sum_j \Big( \log \sum_l e^{\eta_{ij;l}} - \eta_{ij; x_{ij}} \Big)

    ``y`` holds states 0, 1, ... of every node, shape (n, p); ``eta`` one column a state, node after node.

    Parameters
    ----------
    n_states : sequence of int
        Number of states of each node.

    Examples
    --------
    >>> import numpy as np
    >>> loss = FieldCompositeLoss([3, 2])
    >>> states = np.array([[0, 1], [2, 0]])
    >>> round(loss.value(np.zeros((2, 5)), states, np.full(2, 0.5)), 4)  # log 3 + log 2
    1.7918
    """

    name = "field-composite"
    null_is_exact = True

    def __init__(self, n_states: Any) -> None:
        self.n_states = np.asarray(n_states, dtype=int)
        self.starts = np.concatenate([[0], np.cumsum(self.n_states)])
        self.n_outputs = int(self.starts[-1])

    @only_for_its_class
    def kernel(self) -> Kernel:
        return Kernel("multinomial", {"nodes": np.asarray(self.n_states, dtype=np.int64)})

    def _spread(self, of_nodes: Array) -> Array:
        """Numbers of nodes (n, p) at all of their states."""
        return np.repeat(of_nodes, self.n_states, axis=1)

    def _sums(self, values: Array) -> Array:
        """Sums over the states of each node: (n, p)."""
        return np.add.reduceat(values, self.starts[:-1], axis=1)

    def _softmax(self, eta: Array) -> tuple[Array, Array]:
        """Probabilities of the states, and the logarithm of what they were divided by (n, p)."""
        if np.max(np.abs(eta), initial=0.0) < SAFE:
            out, top = np.exp(eta), np.zeros(1)
        else:
            top = np.maximum.reduceat(eta, self.starts[:-1], axis=1)
            out = np.exp(eta - self._spread(top))
        total = self._sums(out)
        out /= self._spread(total)
        return out, top + np.log(total)

    def value(self, eta: Array, y: Array, w: Array) -> float:
        total = 0.0
        for rows in self._runs(len(eta)):
            chosen = np.take_along_axis(eta[rows], self.starts[:-1] + y[rows], axis=1)
            total += float(w[rows] @ (self._softmax(eta[rows])[1] - chosen).sum(axis=1))
        return total

    def gradient(self, eta: Array, y: Array, w: Array) -> Array:
        out = self.predict(eta)
        out[np.arange(len(y))[:, None], self.starts[:-1] + y] -= 1.0
        out *= w[:, None]
        return out

    def curvature(self, eta: Array, y: Array, w: Array, direction: Array) -> Array:
        share = self.predict(eta)
        out = share * direction
        out -= share * self._spread(self._sums(out))
        out *= w[:, None]
        return out

    def null(self, y: Array, w: Array) -> Array:
        shares = [np.bincount(x, weights=w, minlength=q) for x, q in zip(y.T, self.n_states, strict=True)]
        logs = [np.log(share) for share in shares]
        return np.concatenate([log - log.mean() for log in logs])

    def predict(self, eta: Array) -> Array:
        out = np.empty_like(eta)
        for rows in self._runs(len(eta)):
            out[rows] = self._softmax(eta[rows])[0]
        return out

    def _runs(self, n: int) -> Iterator[slice]:
        """Runs of rows: with many states, intermediate results for all of them would be the largest arrays of all."""
        step = max(1, RUN_NUMBERS // self.n_outputs)
        return (slice(first, first + step) for first in range(0, n, step))

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "n_states": self.n_states.tolist()}
