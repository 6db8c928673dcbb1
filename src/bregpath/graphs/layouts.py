"""What the coefficients of a graph's path mean: which nodes they join, and what model they make."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from bregpath._typing import Array, BoolArray, IntArray
from bregpath.graphs.base_layout import AbstractLayout
from bregpath.graphs.data import add_absent_states, collapse_rows, count_states, covariance
from bregpath.graphs.mixed_layout import MixedLayout
from bregpath.graphs.models import GaussianModel, IsingModel, PottsModel
from bregpath.graphs.problems import all_pairs, field_ends, field_problem, gaussian_problem, ising_problem, pair_sums
from bregpath.problem import Problem

__all__ = ["LAYOUTS", "AbstractLayout", "FieldLayout", "GaussianLayout", "IsingLayout", "MixedLayout", "StateLayout"]


@dataclass(frozen=True, eq=False)
class StateLayout(AbstractLayout):
    """Nodes with states; those with one only get no edges.

    Attributes
    ----------
    levels : tuple of ndarray
        Labels of the states of each node.
    """

    levels: tuple[Array, ...]

    @property
    def n_states(self) -> IntArray:
        return np.array([len(labels) for labels in self.levels])

    def varies(self, rows: Array, w: Array) -> BoolArray:
        return np.array([np.count_nonzero(count) > 1 for count in count_states(rows, w, self.n_states.tolist())])

    def learned_from(self, rows: Array, w: Array) -> tuple[AbstractLayout, Any, Array]:
        rows, w = add_absent_states(*collapse_rows(rows, w), self.n_states.tolist())
        return self, rows, w / w.sum()


@dataclass(frozen=True, eq=False)
class IsingLayout(StateLayout):
    """Spins: fields ``a_j`` and couplings ``b_jk``, or two coefficients an edge if every node had its own regression.

    The first of the two labels of a node is that of -1.

    Attributes
    ----------
    loss : {"composite", "mpf", "nodewise"}
    rule : {"and", "or"}
        Whether a node-wise edge needs both of its coefficients, or one; the coupling is their mean.
    fit_fields : bool
    """

    loss: str = "composite"
    rule: str = "and"
    fit_fields: bool = True
    kind: ClassVar[str] = "ising"
    n_levels: ClassVar[tuple[float, float]] = (2, 2)
    choices: ClassVar[dict[str, tuple[Any, ...]]] = {
        "loss": ("composite", "mpf", "nodewise"),
        "rule": ("and", "or"),
        "fit_fields": (True, False),
    }

    @property
    def is_nodewise(self) -> bool:
        return self.loss == "nodewise"

    @property
    def pairs(self) -> IntArray:
        pairs = all_pairs(self.n_nodes)
        return np.concatenate([pairs, pairs]) if self.is_nodewise else pairs

    @property
    def n_coefficients(self) -> int:
        return super().n_coefficients * (2 if self.is_nodewise else 1)

    def problem(self, data: Any, w: Array, edge_weights: Array, kappa: float) -> Problem:
        return ising_problem(2.0 * data - 1.0, w, edge_weights, kappa, self.loss, self.fit_fields)

    def parameters(self, alpha: Array, beta: Array) -> tuple[Array, Array]:
        if self.is_nodewise:
            ends = beta.reshape(2, -1)
            joined = np.count_nonzero(ends, axis=0) >= self.n_needed
            beta = np.where(joined, ends.mean(axis=0), 0.0)
        couplings = np.zeros((self.n_nodes, self.n_nodes))
        j, k = all_pairs(self.n_nodes).T
        couplings[j, k] = couplings[k, j] = beta
        return alpha, couplings

    def model(self, alpha: Array, beta: Array) -> IsingModel:
        return IsingModel(*self.parameters(alpha, beta), names=self.names, levels=self.levels)

    def weights(self, alpha: Array, beta: Array) -> Array:
        return self.parameters(alpha, beta)[1]

    @property
    def likelihood(self) -> AbstractLayout:
        """Minimum probability flow has none of its own; the composite one takes its place."""
        return replace(self, loss="composite") if self.loss == "mpf" else self

    @property
    def n_sightings(self) -> int:
        return 1 if self.is_nodewise else 2  # both coefficients of an edge are counted already

    @property
    def n_needed(self) -> int:
        return 2 if self.is_nodewise and self.rule == "and" else 1


@dataclass(frozen=True, eq=False)
class FieldLayout(StateLayout):
    """States: fields ``a_{j;l}`` and blocks ``b_jk`` of couplings.

    Attributes
    ----------
    couplings : {"full", "diagonal"}
        Whole blocks, or equal states only (Potts).
    parameters_are : {"symmetric", "reduced"}
        Whether all states have parameters, or the first of each node is the reference and has none.
    penalty : {"group", "group-sqrt", "l1"}
    """

    couplings: str = "full"
    parameters_are: str = "symmetric"
    penalty: str = "group"
    kind: ClassVar[str] = "field"
    n_levels: ClassVar[tuple[float, float]] = (1, np.inf)
    choices: ClassVar[dict[str, tuple[Any, ...]]] = {
        "couplings": ("full", "diagonal"),
        "parameters_are": ("symmetric", "reduced"),
        "penalty": ("group", "group-sqrt", "l1"),
    }

    @cached_property
    def ends(self) -> IntArray:
        """Nodes and states (j, k, l, m) of every coefficient."""
        return field_ends(self.n_states, self.couplings, self.parameters_are)

    @property
    def pairs(self) -> IntArray:
        return self.ends[:, :2]

    @property
    def n_alpha(self) -> int:
        return int(self.n_states.sum())

    @property
    def n_coefficients(self) -> int:
        states = self.n_states - (self.parameters_are == "reduced")
        if self.couplings == "full":
            return (int(states.sum()) ** 2 - int((states**2).sum())) // 2
        ascending = np.sort(states)  # the smaller of a pair: each counts for all that follow
        return int((ascending * np.arange(len(states) - 1, -1, -1)).sum())

    def problem(self, data: Any, w: Array, edge_weights: Array, kappa: float) -> Problem:
        return field_problem(data, self.n_states, w, edge_weights, kappa, self.ends, self.penalty)

    def parameters(self, alpha: Array, beta: Array) -> tuple[Array, Array]:
        starts = np.concatenate([[0], np.cumsum(self.n_states)])
        j, k, first, second = self.ends.T
        couplings = np.zeros((starts[-1], starts[-1]))
        couplings[starts[j] + first, starts[k] + second] = beta
        if self.parameters_are == "reduced":
            alpha = alpha - np.repeat(alpha[starts[:-1]], self.n_states)
        return alpha, couplings + couplings.T

    def model(self, alpha: Array, beta: Array) -> PottsModel:
        fields, couplings = self.parameters(alpha, beta)
        return PottsModel(fields, couplings, self.n_states, names=self.names, levels=self.levels)

    def weights(self, alpha: Array, beta: Array) -> Array:
        norms = np.sqrt(pair_sums(self.pairs, beta**2, self.n_nodes))
        return norms + norms.T

    def n_parameters(self, beta: Array, weights: Array) -> int:
        """Blocks enter as a whole; one of q x r couplings has (q - 1)(r - 1) that count, the others shift fields."""
        if self.penalty == "l1":
            return super().n_parameters(beta, weights)
        return int(self._block_sizes[weights != 0].sum())

    @cached_property
    def _block_sizes(self) -> IntArray:
        """Independent coefficients of every pair j < k, zero at and below the diagonal."""
        own = pair_sums(self.pairs, np.ones(len(self.ends)), self.n_nodes).astype(int)
        return np.minimum(own, np.outer(self.n_states - 1, self.n_states - 1))


@dataclass(frozen=True, eq=False)
class GaussianLayout(AbstractLayout):
    """Precision matrices: diagonals ``omega_jj`` (free) and entries ``omega_jk``.

    Attributes
    ----------
    scale : ndarray of shape (p,)
        By which the variables were divided: the path runs on the correlation scale.
    mean : ndarray of shape (p,)
    loss : {"likelihood", "composite"}
    knows_mean : bool
        Whether the mean is given, as that of a covariance matrix is, or that of the rows from which a model is learned.
    """

    scale: Array
    mean: Array
    loss: str = "likelihood"
    knows_mean: bool = False
    kind: ClassVar[str] = "gaussian"
    choices: ClassVar[dict[str, tuple[Any, ...]]] = {"loss": ("likelihood", "composite")}
    array_names: ClassVar[tuple[str, ...]] = ("scale", "mean")
    saturates_at_zero: ClassVar[bool] = False
    has_predictors: ClassVar[bool] = False

    @property
    def pairs(self) -> IntArray:
        return all_pairs(self.n_nodes)

    @property
    def has_rows(self) -> bool:
        return not self.knows_mean

    @property
    def needs_variation(self) -> BoolArray:
        return np.ones(self.n_nodes, dtype=bool)  # the precision would be infinite

    def varies(self, rows: Array, w: Array) -> BoolArray:
        rows = rows[w > 0]
        if self.knows_mean:
            return np.any(rows != self.mean, axis=0)
        return np.ptp(rows, axis=0) > 1e-13 * np.abs(rows).max(axis=0)

    def as_data(self, rows: Array, w: Array) -> Array:
        """Their covariance matrix about the mean, in the user's units."""
        return covariance(rows, w, self.mean)

    def learned_from(self, rows: Array, w: Array) -> tuple[AbstractLayout, Any, Array]:
        # The path of a fold knows the mean of its own rows, about which it scores others.
        layout = self if self.knows_mean else replace(self, mean=w @ rows / w.sum())
        return layout, layout.as_data(rows, w), w / w.sum()

    def problem(self, data: Any, w: Array, edge_weights: Array, kappa: float) -> Problem:
        return gaussian_problem(data / np.outer(self.scale, self.scale), edge_weights, kappa, self.loss)

    def parameters(self, alpha: Array, beta: Array) -> tuple[Array, Array]:
        precision = self._precision(alpha, beta)
        try:
            np.linalg.cholesky(precision)
        except np.linalg.LinAlgError:  # between two steps of a coarse record
            raise ValueError(
                "The precision matrix is not positive definite at this time; ask for a time of `path.t`, or trace the "
                "path with a smaller `tol` (or `step`)."
            ) from None
        return self.mean, precision / np.outer(self.scale, self.scale)

    def _precision(self, alpha: Array, beta: Array) -> Array:
        """On the correlation scale."""
        precision = np.diag(alpha)
        j, k = self.pairs.T
        precision[j, k] = precision[k, j] = beta
        return precision

    def model(self, alpha: Array, beta: Array) -> GaussianModel:
        mean, precision = self.parameters(alpha, beta)
        return GaussianModel(precision, mean=mean, names=self.names)

    def weights(self, alpha: Array, beta: Array) -> Array:
        """Partial correlations."""
        deviation = np.sqrt(alpha)
        partial = -self._precision(alpha, beta) / np.outer(deviation, deviation)
        np.fill_diagonal(partial, 0.0)
        return partial + 0.0  # no minus zeros

    @property
    def n_sightings(self) -> int:
        return 1 if self.loss == "likelihood" else 2


KINDS: tuple[type[AbstractLayout], ...] = (IsingLayout, FieldLayout, GaussianLayout, MixedLayout)
LAYOUTS: dict[str, type[AbstractLayout]] = {cls.kind: cls for cls in KINDS}  # as files name them
