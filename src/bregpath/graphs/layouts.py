"""What the coefficients of a graph's path mean: which nodes they join, and what model they make."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from bregpath._typing import Array, IntArray
from bregpath.flow.problem import Problem
from bregpath.graphs.models import GaussianModel, IsingModel, PottsModel
from bregpath.graphs.problems import all_pairs, field_ends, field_problem, gaussian_problem, ising_problem

__all__ = ["LAYOUTS", "AbstractLayout", "FieldLayout", "GaussianLayout", "IsingLayout"]


@dataclass(frozen=True, eq=False)
class AbstractLayout(ABC):
    """Stands where the units of a regression stand: it restores parameters to what the user knows.

    Attributes
    ----------
    names : tuple of str
        The nodes.
    """

    names: tuple[str, ...]
    kind: ClassVar[str]
    y_unit: ClassVar[float] = 1.0  # time is not rescaled

    @property
    def n_nodes(self) -> int:
        return len(self.names)

    @property
    @abstractmethod
    def pairs(self) -> IntArray:
        """The two nodes of every coefficient, shape (m, 2)."""

    @abstractmethod
    def problem(self, data: Any, w: Array, edge_weights: Array, kappa: float) -> Problem:
        """Store x loss x penalty of some data, with the coefficients in the order of `pairs`."""

    def restore(self, alpha: Array, columns: IntArray, beta: Array) -> tuple[Array, Array]:
        """Parameters inside the path as those of the model."""
        return alpha, beta

    @abstractmethod
    def parameters(self, alpha: Array, beta: Array) -> tuple[Array, Array]:
        """Fields and the symmetric matrix of couplings, from all parameters of one time."""

    @abstractmethod
    def model(self, alpha: Array, beta: Array) -> Any:
        """The graphical model at one time."""

    @abstractmethod
    def weights(self, alpha: Array, beta: Array) -> Array:
        """One number for each pair of nodes, (p, p), zero where they are not joined."""

    def to_dict(self) -> dict[str, Any]:
        """Everything but arrays, for a file."""
        return {"kind": self.kind, "names": list(self.names)}


@dataclass(frozen=True, eq=False)
class IsingLayout(AbstractLayout):
    """Spins: fields ``a_j`` and couplings ``b_jk``, or two coefficients an edge if every node had its own regression.

    Attributes
    ----------
    levels : tuple of ndarray
        The two labels of each node, that of -1 first.
    loss : {"composite", "mpf", "nodewise"}
    rule : {"and", "or"}
        Whether a node-wise edge needs both of its coefficients, or one; the coupling is their mean.
    fit_fields : bool
    """

    levels: tuple[Array, ...]
    loss: str = "composite"
    rule: str = "and"
    fit_fields: bool = True
    kind: ClassVar[str] = "ising"

    @property
    def is_nodewise(self) -> bool:
        return self.loss == "nodewise"

    @property
    def pairs(self) -> IntArray:
        pairs = all_pairs(self.n_nodes)
        return np.concatenate([pairs, pairs]) if self.is_nodewise else pairs

    def problem(self, data: Any, w: Array, edge_weights: Array, kappa: float) -> Problem:
        return ising_problem(2.0 * data - 1.0, w, edge_weights, kappa, self.loss, self.fit_fields)

    def parameters(self, alpha: Array, beta: Array) -> tuple[Array, Array]:
        if self.is_nodewise:
            ends = beta.reshape(2, -1)
            joined = np.all(ends != 0, axis=0) if self.rule == "and" else np.any(ends != 0, axis=0)
            beta = np.where(joined, ends.mean(axis=0), 0.0)
        couplings = np.zeros((self.n_nodes, self.n_nodes))
        j, k = all_pairs(self.n_nodes).T
        couplings[j, k] = couplings[k, j] = beta
        return alpha, couplings

    def model(self, alpha: Array, beta: Array) -> IsingModel:
        return IsingModel(*self.parameters(alpha, beta), names=self.names, levels=self.levels)

    def weights(self, alpha: Array, beta: Array) -> Array:
        return self.parameters(alpha, beta)[1]

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "loss": self.loss, "rule": self.rule, "fit_fields": self.fit_fields}


@dataclass(frozen=True, eq=False)
class FieldLayout(AbstractLayout):
    """States: fields ``a_{j;l}`` and blocks ``b_jk`` of couplings.

    Attributes
    ----------
    levels : tuple of ndarray
        Labels of the states of each node.
    couplings : {"full", "diagonal"}
        Whole blocks, or equal states only (Potts).
    parameters_are : {"symmetric", "reduced"}
        Whether all states have parameters, or the first of each node is the reference and has none.
    penalty : {"group", "group-sqrt", "l1"}
    """

    levels: tuple[Array, ...]
    couplings: str = "full"
    parameters_are: str = "symmetric"
    penalty: str = "group"
    kind: ClassVar[str] = "field"

    @property
    def n_states(self) -> IntArray:
        return np.array([len(labels) for labels in self.levels])

    @cached_property
    def ends(self) -> IntArray:
        """Nodes and states (j, k, l, m) of every coefficient."""
        return field_ends(self.n_states, self.couplings, self.parameters_are)

    @property
    def pairs(self) -> IntArray:
        return self.ends[:, :2]

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
        j, k = self.pairs.T
        squares = np.bincount(j * self.n_nodes + k, weights=beta**2, minlength=self.n_nodes**2)
        norms = np.sqrt(squares).reshape(self.n_nodes, self.n_nodes)
        return norms + norms.T

    def to_dict(self) -> dict[str, Any]:
        options = {"couplings": self.couplings, "parameters_are": self.parameters_are, "penalty": self.penalty}
        return {**super().to_dict(), **options}


@dataclass(frozen=True, eq=False)
class GaussianLayout(AbstractLayout):
    """Precision matrices: diagonals ``omega_jj`` (free) and entries ``omega_jk``.

    Attributes
    ----------
    scale : ndarray of shape (p,)
        By which the variables were divided: the path runs on the correlation scale.
    mean : ndarray of shape (p,)
    loss : {"likelihood", "composite"}
    """

    scale: Array
    mean: Array
    loss: str = "likelihood"
    kind: ClassVar[str] = "gaussian"

    @property
    def pairs(self) -> IntArray:
        return all_pairs(self.n_nodes)

    def problem(self, data: Any, w: Array, edge_weights: Array, kappa: float) -> Problem:
        """``data`` is a covariance matrix in the user's units."""
        return gaussian_problem(data / np.outer(self.scale, self.scale), edge_weights, kappa, self.loss)

    def restore(self, alpha: Array, columns: IntArray, beta: Array) -> tuple[Array, Array]:
        j, k = self.pairs[columns].T
        return alpha / self.scale**2, beta / (self.scale[j] * self.scale[k])[:, None]

    def parameters(self, alpha: Array, beta: Array) -> tuple[Array, Array]:
        precision = np.diag(alpha)
        j, k = self.pairs.T
        precision[j, k] = precision[k, j] = beta
        try:
            np.linalg.cholesky(precision)
        except np.linalg.LinAlgError:  # between two steps of a coarse or thinned record
            raise ValueError(
                "The precision matrix is not positive definite at this time; ask for a time of `path.t`, or trace the "
                "path with a smaller `tol` (or `step`)."
            ) from None
        return self.mean, precision

    def model(self, alpha: Array, beta: Array) -> GaussianModel:
        mean, precision = self.parameters(alpha, beta)
        return GaussianModel(precision, mean=mean, names=self.names)

    def weights(self, alpha: Array, beta: Array) -> Array:
        """Partial correlations."""
        precision = self.parameters(alpha, beta)[1]
        deviation = np.sqrt(np.diagonal(precision))
        partial = -precision / np.outer(deviation, deviation)
        np.fill_diagonal(partial, 0.0)
        return partial + 0.0  # no minus zeros

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "loss": self.loss}


LAYOUTS: dict[str, type[AbstractLayout]] = {cls.kind: cls for cls in (IsingLayout, FieldLayout, GaussianLayout)}
