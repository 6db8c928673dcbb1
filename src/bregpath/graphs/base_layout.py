"""What every layout of a graph promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bregpath._typing import Array, BoolArray, IntArray
from bregpath.problem import Problem

__all__ = ["AbstractLayout"]


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

    @property
    def is_nodewise(self) -> bool:
        """Whether every node has a regression of its own, so that an edge has a coefficient at each of its ends."""
        return False

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

    @property
    def has_sign(self) -> BoolArray:
        """Which weights have a sign among those of a graph where some have (p, p)."""
        return np.ones((self.n_nodes, self.n_nodes), dtype=bool)

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
