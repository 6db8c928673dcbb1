"""What the coefficients of a path of mixed data mean: numbers, labels and counts in units of their own spread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from bregpath._typing import Array, BoolArray, IntArray
from bregpath.graphs.base_layout import AbstractLayout
from bregpath.graphs.data import add_absent_values, count_states
from bregpath.graphs.mixed_model import KINDS, MixedModel
from bregpath.graphs.problems import field_ends, mixed_problem, pair_sums
from bregpath.losses import MixedCompositeLoss
from bregpath.problem import Problem

__all__ = ["MixedLayout"]

NUMBER, LABEL, COUNT = range(len(KINDS))


@dataclass(frozen=True, eq=False)
class MixedLayout(AbstractLayout):
    r"""Numbers, labels and counts: a block of couplings a pair of nodes, shared by both ends.

    A node has features that the others see: a number, a count, whether a label is the second of two, or indicators of
    three and more. They are centred, and divided by one unit a node such that their variances sum to one. Then blocks
    of all kinds compete alike: while the graph is empty, each grows at twice the correlation of its two nodes.

    Attributes
    ----------
    levels : tuple of ndarray
        Labels of the states of each node, none for numbers and counts.
    kinds : ndarray of shape (p,)
        Positions in `KINDS`.
    mean : ndarray
        Of every feature before it is centred.
    scale, max_counts : ndarray of shape (p,)
        Units of the nodes; the largest counts.
    """

    levels: tuple[Array, ...]
    kinds: IntArray
    mean: Array
    scale: Array
    max_counts: Array
    kind: ClassVar[str] = "mixed"
    choices: ClassVar[dict[str, tuple[Any, ...]]] = {}
    array_names: ClassVar[tuple[str, ...]] = ("kinds", "mean", "scale", "max_counts")
    n_levels: ClassVar[tuple[float, float]] = (0, np.inf)
    saturates_at_zero: ClassVar[bool] = False

    def __post_init__(self) -> None:
        has_labels = np.array([len(labels) > 0 for labels in self.levels])
        if not np.array_equal(self.kinds == LABEL, has_labels) or not np.isin(self.kinds, range(len(KINDS))).all():
            raise ValueError(f"`kinds` {self.kinds} do not go with `levels` of {has_labels.sum()} nodes.")

    @classmethod
    def of_rows(
        cls, names: tuple[str, ...], kinds: Sequence[str], levels: tuple[Array, ...], rows: Array, w: Array
    ) -> MixedLayout:
        """The layout whose units are those of some rows."""
        codes = np.array([KINDS.index(kind) for kind in kinds], dtype=np.int64)
        unknown = cls(names, levels, codes, np.zeros(0), np.ones(len(names)), rows.max(axis=0))
        values, share = unknown._values(rows), w / w.sum()
        mean = share @ values
        variances = np.bincount(unknown._owner, weights=share @ (values - mean) ** 2, minlength=len(names))
        scale = np.sqrt(np.where(unknown.varies(rows, w), variances, 1.0))  # what does not vary gets no edges
        return cls(names, levels, codes, mean, scale, unknown.max_counts)

    def array_shape(self, name: str) -> tuple[int, ...]:
        return (len(self._owner),) if name == "mean" else super().array_shape(name)

    # --- columns ---------------------------------------------------------------------------------------------

    @property
    def n_states(self) -> IntArray:
        """Number of labels of each node, 1 for numbers and counts."""
        return np.where(self.kinds == LABEL, [len(labels) for labels in self.levels], 1)

    @cached_property
    def _groups(self) -> tuple[IntArray, ...]:
        """Numbers, counts, nodes of two labels, and of others: side by side in the features and in the predictor."""
        is_label, is_pair = self.kinds == LABEL, self.n_states == 2
        kinds = self.kinds == NUMBER, self.kinds == COUNT, is_label & is_pair, is_label & ~is_pair
        return tuple(map(np.flatnonzero, kinds))

    @cached_property
    def _widths(self) -> IntArray:
        """Features of each node."""
        widths = np.ones(self.n_nodes, dtype=int)
        others = self._groups[-1]
        widths[others] = self.n_states[others]
        return widths

    @cached_property
    def _owner(self) -> IntArray:
        """The node of every feature."""
        nodes = np.concatenate(self._groups)
        return np.repeat(nodes, self._widths[nodes])

    @cached_property
    def _starts(self) -> IntArray:
        """The first feature of each node."""
        starts = np.empty(self.n_nodes, dtype=int)
        nodes = np.concatenate(self._groups)
        starts[nodes] = np.cumsum(self._widths[nodes]) - self._widths[nodes]
        return starts

    def _values(self, rows: Array) -> Array:
        """Features before they are centred and divided by their units."""
        *single, others = self._groups
        states = [rows[:, [j]] == np.arange(self.n_states[j]) for j in others]
        return np.hstack([rows[:, np.concatenate(single)], *states])

    @cached_property
    def ends(self) -> IntArray:
        """Nodes and features (j, k, a, b) of every coefficient."""
        return field_ends(self._widths)

    @property
    def pairs(self) -> IntArray:
        return self.ends[:, :2]

    @property
    def n_alpha(self) -> int:
        return int(self._widths.sum() + len(self._groups[0]))

    @property
    def n_coefficients(self) -> int:
        return (int(self._widths.sum()) ** 2 - int((self._widths**2).sum())) // 2

    # --- data ------------------------------------------------------------------------------------------------

    @property
    def needs_variation(self) -> BoolArray:
        return self.kinds == NUMBER  # their precision would be infinite

    def varies(self, rows: Array, w: Array) -> BoolArray:
        rows = rows[w > 0]
        return np.ptp(rows, axis=0) > 1e-13 * np.abs(rows).max(axis=0)

    def learned_from(self, rows: Array, w: Array) -> tuple[AbstractLayout, Any, Array]:
        states = np.where(self.kinds == LABEL, self.n_states, 0)
        absent: list[Array] = [np.flatnonzero(counts == 0) for counts in count_states(rows, w, states.tolist())]
        for j in np.flatnonzero((self.kinds == COUNT) & ~rows[w > 0].any(axis=0)):
            absent[j] = np.ones(1)  # a rate of zero would have the field minus infinity
        rows, w = add_absent_values(rows, w, absent)
        return self, rows, w / w.sum()

    def problem(self, data: Any, w: Array, edge_weights: Array, kappa: float) -> Problem:
        numbers, counts, pairs, others = self._groups
        features = (self._values(data) - self.mean) / self.scale[self._owner]
        spins = 2.0 * data[:, pairs] - 1.0
        y = np.hstack([features[:, : len(numbers)], data[:, counts], spins, data[:, others]])
        units = self.scale[counts], self.scale[pairs], self.n_states[others], self.scale[others]
        loss = MixedCompositeLoss(len(numbers), *units)
        return mixed_problem(features, y, w, edge_weights, kappa, loss, self.ends, self._starts)

    # --- models ----------------------------------------------------------------------------------------------

    def _natural(self, alpha: Array, beta: Array) -> tuple[Array, Array]:
        """Fields and couplings of the features; the diagonal of a number is minus its precision."""
        n_numbers = len(self._groups[0])
        j, k, first, second = self.ends.T
        couplings = np.zeros((len(self._owner), len(self._owner)))
        couplings[self._starts[j] + first, self._starts[k] + second] = beta
        couplings += couplings.T
        diagonal = np.arange(n_numbers)
        couplings[diagonal, diagonal] = -alpha[n_numbers : 2 * n_numbers]
        return np.delete(alpha, n_numbers + diagonal), couplings

    @cached_property
    def _codes(self) -> tuple[Array, Array]:
        """Features are ``phi @ codes - shift`` of the numbers, counts and indicators phi of a `MixedModel`."""
        offsets = np.cumsum(self.n_states) - self.n_states
        codes, shift = np.zeros((int(self.n_states.sum()), len(self._owner))), np.zeros(len(self._owner))
        for j in range(self.n_nodes):
            start = self._starts[j]
            own = slice(start, start + self._widths[j])
            if self.kinds[j] == LABEL:  # of which one indicator is there, so that the mean needs no shift
                is_pair = self.n_states[j] == 2
                values = np.array([[0.0], [1.0]]) if is_pair else np.eye(self.n_states[j])
                codes[offsets[j] : offsets[j] + self.n_states[j], own] = (values - self.mean[own]) / self.scale[j]
            else:
                codes[offsets[j], start] = 1.0 / self.scale[j]
                shift[start] = self.mean[start] / self.scale[j]
        return codes, shift

    def parameters(self, alpha: Array, beta: Array) -> tuple[Array, Array]:
        fields, couplings = self._natural(alpha, beta)
        codes, shift = self._codes
        matrix = codes @ couplings @ codes.T
        return codes @ (fields - couplings @ shift), (matrix + matrix.T) / 2.0  # exactly symmetric

    def model(self, alpha: Array, beta: Array) -> MixedModel:
        kinds = tuple(KINDS[kind] for kind in self.kinds)
        return MixedModel(
            *self.parameters(alpha, beta), kinds, self.n_states, self.max_counts, self.names, self.levels
        )

    def weights(self, alpha: Array, beta: Array) -> Array:
        r"""Norms of blocks over :math:`\sqrt\omega` of their numbers, with a sign where they are one coupling."""
        sums, squares = (pair_sums(self.pairs, values, self.n_nodes) for values in (beta, beta**2))
        size = np.ones(self.n_nodes)
        numbers = self._groups[0]
        size[numbers] = np.sqrt(alpha[len(numbers) : 2 * len(numbers)])
        norms = np.where(self.has_sign, sums, np.sqrt(squares)) / np.outer(size, size)
        return norms + norms.T

    @property
    def has_sign(self) -> BoolArray:
        return np.multiply.outer(self._widths, self._widths) == 1

    def n_parameters(self, beta: Array, weights: Array) -> int:
        """Blocks enter as a whole; one of q labels has q - 1 couplings that count, the others shift fields."""
        own = np.where(self.kinds == LABEL, self.n_states - 1, 1)
        return int(np.outer(own, own)[np.triu(weights) != 0].sum())
