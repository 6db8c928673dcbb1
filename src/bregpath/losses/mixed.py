"""Loss of graphs over mixed data: numbers, counts and labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from bregpath._typing import Array
from bregpath.losses.base import AbstractLoss, NodeLoss
from bregpath.losses.field import FieldCompositeLoss
from bregpath.losses.ising import IsingCompositeLoss

__all__ = ["MixedCompositeLoss"]


class _NumbersLoss(AbstractLoss):
    r"""Normal nodes: :math:`\ell_i = \sum_j (\omega_j x_{ij} - \eta_{ij})^2 / 2 \omega_j - \tfrac12 \log \omega_j`.

    So a node has the mean :math:`\eta_j / \omega_j` and the variance :math:`1 / \omega_j` given all others. Convex in
    both; the columns of :math:`\omega` stand behind those of :math:`\eta`. Infinite where one is not positive, and
    large close to there, so that no path ends at that boundary.
    """

    def __init__(self, n_nodes: int) -> None:
        self.n_outputs = 2 * n_nodes

    def _split(self, eta: Array) -> tuple[Array, Array]:
        return eta[:, : self.n_outputs // 2], eta[:, self.n_outputs // 2 :]

    def value(self, eta: Array, y: Array, w: Array) -> float:
        natural, precision = self._split(eta)
        if not (precision > 0).all():
            return np.inf
        squares = (precision * y - natural) ** 2 / precision
        return 0.5 * float(w @ (squares - np.log(precision)).sum(axis=1))

    def gradient(self, eta: Array, y: Array, w: Array) -> Array:
        natural, precision = self._split(eta)
        if not (precision > 0).all():
            return np.full_like(eta, np.nan)
        mean = natural / precision
        return w[:, None] * np.hstack([mean - y, 0.5 * (y * y - mean * mean - 1.0 / precision)])

    def curvature(self, eta: Array, y: Array, w: Array, direction: Array) -> Array:
        natural, precision = self._split(eta)
        along, across = self._split(direction)
        mean = natural / precision
        bent = (along - mean * across) / precision
        return w[:, None] * np.hstack([bent, 0.5 * across / precision**2 - mean * bent])

    def null(self, y: Array, w: Array) -> Array:
        mean = w @ y
        precision = 1.0 / (w @ (y - mean) ** 2)
        return np.concatenate([mean * precision, precision])


class _CountsLoss(NodeLoss):
    r"""Poisson nodes with log link: :math:`\ell_i = \sum_j e^{\eta_{ij}} - x_{ij} \eta_{ij}`."""

    def value(self, eta: Array, y: Array, w: Array) -> float:
        with np.errstate(over="ignore"):
            return float(w @ (np.exp(eta) - y * eta).sum(axis=1))

    def gradient(self, eta: Array, y: Array, w: Array) -> Array:
        with np.errstate(over="ignore"):
            return w[:, None] * (np.exp(eta) - y)

    def curvature(self, eta: Array, y: Array, w: Array, direction: Array) -> Array:
        return w[:, None] * np.exp(eta) * direction

    def null(self, y: Array, w: Array) -> Array:
        return np.log(w @ y)

    def saturated(self, y: Array, w: Array) -> float:
        return float(w @ (y - xlogy(y, y)).sum(axis=1))


class _Part(NamedTuple):
    """Nodes of one kind: their loss, their columns of the predictor and of the data, and the units of the former."""

    loss: AbstractLoss
    columns: slice
    nodes: slice
    units: Array


class MixedCompositeLoss(AbstractLoss):
    r"""Composite conditional likelihood (pseudo-likelihood) of numbers, counts and labels: the sum over all nodes.

    A number is normal given all others, with the natural parameter :math:`\eta_j` and a precision of its own; a count
    is Poisson with rate :math:`e^{\eta_j / s_j}`; labels have probabilities in proportion to
    :math:`e^{\eta_{j;l} / s_j}`, and two labels the log-odds :math:`\eta_j / s_j`. The units :math:`s_j` are those by
    which the features of the nodes are divided, so that a coupling means the same to both of its ends.

    The predictor has the columns of the numbers, their precisions, counts, pairs of labels, and states of the other
    labels; ``y`` has those of numbers, counts, spins (-1 and +1) and codes of states.

    Parameters
    ----------
    n_numbers : int
    count_units, pair_units : sequence of float
        Units of the counts, and of the nodes of two labels.
    n_labels : sequence of int
        Number of states of each node of other than two labels ...
    label_units : sequence of float
        ... and their units.

    Examples
    --------
    >>> import numpy as np
    >>> loss = MixedCompositeLoss(1, [1.0], [0.5], [3], [1.0])
    >>> y = np.array([[0.0, 2.0, 1.0, 0], [0.0, 0.0, -1.0, 2]])
    >>> at_zero = np.array([[0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]] * 2)
    >>> round(loss.value(at_zero, y, np.full(2, 0.5)), 4)  # 0 + 1 + log 2 + log 3
    2.7918
    """

    name = "mixed-composite"
    null_is_exact = True
    can_saturate = False  # numbers never are: the path goes on to the unpenalised fit

    def __init__(
        self, n_numbers: int, count_units: Any = (), pair_units: Any = (), n_labels: Any = (), label_units: Any = ()
    ) -> None:
        self.n_numbers = int(n_numbers)
        self.units = [np.asarray(units, dtype=float) for units in (count_units, pair_units, label_units)]
        if not all(np.all((units > 0) & np.isfinite(units)) for units in self.units):
            raise ValueError("`count_units`, `pair_units` and `label_units` must be positive and finite.")
        self.n_labels = np.asarray(n_labels, dtype=int)
        counts, pairs, labels = self.units
        losses: tuple[AbstractLoss, ...] = (
            _NumbersLoss(self.n_numbers),
            _CountsLoss(len(counts)),
            IsingCompositeLoss(len(pairs)),
            FieldCompositeLoss(self.n_labels),
        )
        units = np.ones(2 * self.n_numbers), counts, pairs, np.repeat(labels, self.n_labels)
        nodes = self.n_numbers, len(counts), len(pairs), len(labels)
        self._parts = [part for part in _side_by_side(losses, units, nodes) if len(part.units)]
        self.n_outputs = sum(map(len, units))

    def _each(self, eta: Array, y: Array) -> Iterator[tuple[_Part, Array, Array]]:
        """Every part with its predictor in natural units and its data."""
        for part in self._parts:
            data = y[:, part.nodes]
            codes = data.astype(np.intp) if isinstance(part.loss, FieldCompositeLoss) else data
            yield part, eta[:, part.columns] / part.units, codes

    def value(self, eta: Array, y: Array, w: Array) -> float:
        return sum(part.loss.value(own, data, w) for part, own, data in self._each(eta, y))

    def gradient(self, eta: Array, y: Array, w: Array) -> Array:
        out = np.empty_like(eta)
        for part, own, data in self._each(eta, y):
            np.divide(part.loss.gradient(own, data, w), part.units, out=out[:, part.columns])
        return out

    def curvature(self, eta: Array, y: Array, w: Array, direction: Array) -> Array:
        out = np.empty_like(eta)
        for part, own, data in self._each(eta, y):
            bent = part.loss.curvature(own, data, w, direction[:, part.columns] / part.units)
            np.divide(bent, part.units, out=out[:, part.columns])
        return out

    def null(self, y: Array, w: Array) -> Array:
        empty = np.zeros((len(y), self.n_outputs))
        return np.concatenate([part.units * part.loss.null(data, w) for part, _, data in self._each(empty, y)])

    def saturated(self, y: Array, w: Array) -> float:
        """Labels are certain, counts are their own rates, numbers leave what their regressions on all others do."""
        empty = np.ones((len(y), self.n_outputs))
        rest = sum(part.loss.saturated(data, w) for part, _, data in self._each(empty, y))
        return rest + 0.5 * float(np.sum(1.0 + np.log(self._residual_variances(y, w))))

    def _residual_variances(self, y: Array, w: Array) -> Array:
        """Of the numbers, given all other columns: inverse diagonal of the inverse covariance matrix."""
        if not self.n_numbers:
            return np.ones(0)
        whole = y.shape[1] - len(self.n_labels)
        states = [y[:, [whole + j]] == np.arange(1, q) for j, q in enumerate(self.n_labels)]
        columns = np.hstack([y[:, :whole], *states])
        columns = columns - w @ columns
        size = np.sqrt(w @ columns**2)
        columns = columns[:, size > 0] / size[size > 0]
        eigenvalues, vectors = np.linalg.eigh((columns * w[:, None]).T @ columns)
        safe = np.maximum(eigenvalues, 1e-6 * eigenvalues[-1])
        numbers = vectors[: self.n_numbers]
        return size[: self.n_numbers] ** 2 / np.sum(numbers**2 / safe, axis=1)

    def to_dict(self) -> dict[str, Any]:
        counts, pairs, labels = (units.tolist() for units in self.units)
        return {
            "name": self.name, "n_numbers": self.n_numbers, "count_units": counts, "pair_units": pairs,
            "n_labels": self.n_labels.tolist(), "label_units": labels,
        }  # fmt: skip


def _side_by_side(losses: Any, units: Any, n_nodes: Any) -> Iterator[_Part]:
    column = node = 0
    for loss, own, nodes in zip(losses, units, n_nodes, strict=True):
        yield _Part(loss, slice(column, column + len(own)), slice(node, node + nodes), own)
        column, node = column + len(own), node + nodes
