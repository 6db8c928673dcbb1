"""What the coefficients of a graph's path mean: which nodes they join, and what model they make."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from bregpath._typing import Array, BoolArray, IntArray
from bregpath.graphs.data import add_absent_states, collapse_rows, count_states, covariance
from bregpath.graphs.models import GaussianModel, IsingModel, PottsModel
from bregpath.graphs.problems import all_pairs, field_ends, field_problem, gaussian_problem, ising_problem, pair_sums
from bregpath.problem import Problem

__all__ = ["AbstractLayout", "FieldLayout", "GaussianLayout", "IsingLayout", "StateLayout"]


@dataclass(frozen=True, eq=False)
class AbstractLayout(ABC):
    """The nodes of a graph, and all that depends on its kind.

    The parameters of a path are ``alpha``, never penalised, and ``beta``, one coefficient or several a pair of nodes,
    in the order of `pairs`. Methods take those of one time.

    Attributes
    ----------
    names : tuple of str
        The nodes.
    """

    names: tuple[str, ...]
    kind: ClassVar[str]
    choices: ClassVar[dict[str, tuple[Any, ...]]]  # what its options may be; the first is the default
    array_names: ClassVar[tuple[str, ...]] = ()  # attributes that a file keeps as arrays
    n_levels: ClassVar[tuple[float, float] | None] = None  # least and largest number of labels a node, if it has them
    saturates_at_zero: ClassVar[bool] = True  # whether the deviance of a path is counted from zero
    has_predictors: ClassVar[bool] = True  # whether rows of data have predictors of their nodes

    @property
    def n_nodes(self) -> int:
        return len(self.names)

    @property
    @abstractmethod
    def pairs(self) -> IntArray:
        """The two nodes of every coefficient, shape (m, 2)."""

    @property
    def n_alpha(self) -> int:
        """Number of parameters that are not penalised."""
        return self.n_nodes

    @property
    def n_coefficients(self) -> int:
        """Length of `pairs`, counted without making them."""
        return self.n_nodes * (self.n_nodes - 1) // 2

    @property
    def has_rows(self) -> bool:
        """Whether rows are data, and not made up to have a given covariance."""
        return True

    # --- data ------------------------------------------------------------------------------------------------

    @property
    def needs_variation(self) -> BoolArray:
        """Which nodes break the model if they do not vary; others get no edges only."""
        return np.zeros(self.n_nodes, dtype=bool)

    @abstractmethod
    def varies(self, rows: Array, w: Array) -> BoolArray:
        """Which nodes have more than one value in rows of some weight."""

    def as_data(self, rows: Array, w: Array) -> Any:
        """Rows as `problem` takes them."""
        return rows

    @abstractmethod
    def learned_from(self, rows: Array, w: Array) -> tuple[AbstractLayout, Any, Array]:
        """The layout of a model of some rows, and these as data and weights of `problem`, the same rows once."""

    @abstractmethod
    def problem(self, data: Any, w: Array, edge_weights: Array, kappa: float) -> Problem:
        """Store x loss x penalty of some data."""

    # --- models ----------------------------------------------------------------------------------------------

    def each_time(self, alpha: Array, columns: IntArray, values: Array) -> Iterator[tuple[Array, Array]]:
        """All parameters, one time after the other, from what a path or a trajectory reads at some times."""
        for own, coef in zip(alpha, values[:, :, 0], strict=True):
            beta = np.zeros(self.n_coefficients)
            beta[columns] = coef
            yield own, beta

    @abstractmethod
    def parameters(self, alpha: Array, beta: Array) -> tuple[Array, Array]:
        """Fields and the symmetric matrix of couplings."""

    @abstractmethod
    def model(self, alpha: Array, beta: Array) -> Any:
        """The graphical model."""

    @abstractmethod
    def weights(self, alpha: Array, beta: Array) -> Array:
        """One number for each pair of nodes, (p, p), zero where they are not joined."""

    # --- what criteria count ---------------------------------------------------------------------------------

    @property
    def likelihood(self) -> AbstractLayout:
        """The same coefficients with a loss that is a likelihood; this layout itself, if its loss is one."""
        return self

    @property
    def n_sightings(self) -> int:
        """How often the likelihood sees a coefficient: from both ends, in a sum over all nodes given the others."""
        return 2

    @property
    def n_needed(self) -> int:
        """How many of its coefficients an edge needs."""
        return 1

    def n_parameters(self, beta: Array, weights: Array) -> int:
        """Number of independent coefficients of the edges."""
        return int(np.count_nonzero(beta))

    def array_shape(self, name: str) -> tuple[int, ...]:
        """Shape of one of the `array_names`."""
        return (self.n_nodes,)

    def to_dict(self) -> dict[str, Any]:
        """Everything but labels and arrays, for a file."""
        options = {name: getattr(self, name) for name in self.choices}
        return {"kind": self.kind, "names": list(self.names), **options}


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
        except np.linalg.LinAlgError:  # between two steps of a coarse or thinned record
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
