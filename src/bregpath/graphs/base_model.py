"""What every graphical model promises, and what those of states and of blocks share."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from bregpath._typing import Array, BoolArray, IntArray, Seed
from bregpath._validation import as_array

__all__ = ["AbstractModel", "DiscreteModel", "InBlocks", "as_discrete_model", "draw_states"]


class AbstractModel:
    """What all graphical models share."""

    @property
    def strengths(self) -> Array:
        """One number for each pair of nodes (p, p); zero where two nodes are not joined."""
        raise NotImplementedError

    @property
    def n_nodes(self) -> int:
        return len(self.strengths)

    @property
    def adjacency(self) -> BoolArray:
        """Which nodes are joined (p, p)."""
        return self.strengths != 0

    def _rows(self, X: Any, dtype: Any = None) -> Array:
        values, p = as_array("X", X, dtype), self.n_nodes
        if values.ndim != 2 or values.shape[1] != p:
            raise ValueError(f"`X` must have one column for each of the {p} nodes, found shape {values.shape}.")
        return values


class DiscreteModel(AbstractModel):
    r"""What Ising and Potts models share: :math:`\log P(x) = c\,(a^\top z + z^\top B z / 2) - \log Z`.

    Here :math:`z` are the features of a row of states, and :math:`a` and :math:`B` the fields and couplings. States are
    counted 0, 1, ... by their codes; labels are what the user sees.
    """

    fields: Array
    couplings: Array
    names: tuple[str, ...] | None
    levels: tuple[Array, ...] | None
    _scale: float  # c

    @property
    def counts(self) -> IntArray:
        """Number of states of each node."""
        raise NotImplementedError

    def features(self, codes: Array) -> Array:
        """Rows of codes (n, p) as rows of numbers: -1 and +1, or indicators of the states."""
        raise NotImplementedError

    def log_odds(self, features: Array, j: int) -> Array:
        """Of the states of node j given the features of all others, up to a constant a row."""
        raise NotImplementedError

    @property
    def labels(self) -> tuple[Array, ...]:
        """Labels of the states of each node, in the order of their codes."""
        raise NotImplementedError

    @property
    def n_nodes(self) -> int:
        return len(self.counts)

    def encode(self, X: Any) -> IntArray:
        """Codes of the labels in `X` (n, p)."""
        values = self._rows(X)
        codes = np.empty(values.shape, dtype=np.intp)
        for j, labels in enumerate(self.labels):
            matches = values[:, j, None] == labels
            if not matches.any(axis=1).all():
                wrong = values[~matches.any(axis=1), j][0]
                raise ValueError(f"`X` has {wrong!r} in column {j}, whose states are {labels.tolist()}; recode it.")
            codes[:, j] = matches.argmax(axis=1)
        return codes

    def decode(self, codes: Array) -> Array:
        """Labels of codes (n, p); columns of numbers and of text together become objects."""
        kinds = {"text" if labels.dtype.kind in "US" else labels.dtype.kind in "biuf" for labels in self.labels}
        dtype = np.result_type(*self.labels) if kinds in ({True}, {"text"}) else np.dtype(object)
        X = np.empty(codes.shape, dtype=dtype)
        for j, labels in enumerate(self.labels):
            X[:, j] = labels[codes[:, j]]
        return X

    def log_weight(self, X: Any) -> Array:
        """Logarithm of the probability of each row of `X`, up to a constant (see `enumerate_states` for it)."""
        return self.log_weight_of_codes(self.encode(X))

    def log_weight_of_codes(self, codes: Array) -> Array:
        """See `log_weight`, for codes."""
        z = self.features(codes)
        return self._scale * (z @ self.fields + 0.5 * np.einsum("ij,ij->i", z @ self.couplings, z))

    def redraw(self, codes: Array, j: int, features: Array, at: Any, rng: np.random.Generator) -> None:
        """Draw node j of some rows, ``at``, given all other nodes; codes and their features are changed."""
        codes[at, j] = draw_states(self.log_odds(features[at], j), rng)
        features[at] = self.features(codes[at])

    def sample(self, n: int, seed: Seed = None, **options: Any) -> Array:
        """Draw `n` rows by Gibbs sampling; see `bregpath.graphs.gibbs` for the options, and on dependent rows."""
        from bregpath.graphs.gibbs import gibbs

        return gibbs(self, n, seed=seed, **options)


class InBlocks:
    """Of models whose nodes own several entries each of `fields`, and of the rows and columns of `couplings`."""

    couplings: Array
    n_states: IntArray

    @cached_property
    def offsets(self) -> IntArray:
        """Where the entries of each node begin (p + 1,)."""
        return np.concatenate([[0], np.cumsum(self.n_states)])

    def block(self, j: int, k: int) -> Array:
        """Couplings of two nodes :math:`b_{jk}`, a row and a column for each of their entries."""
        at = self.offsets
        return self.couplings[at[j] : at[j + 1], at[k] : at[k + 1]]


def draw_states(eta: Array, rng: np.random.Generator) -> IntArray:
    """State l with probability exp(eta_l) / sum_k exp(eta_k), along axis 1: the largest of eta + Gumbel noise."""
    return (eta + rng.gumbel(size=eta.shape)).argmax(axis=1)


def as_discrete_model(model: Any) -> DiscreteModel:
    """The Ising or Potts model that `model` is, or that its method ``model()`` returns."""
    if not isinstance(model, DiscreteModel) and callable(getattr(model, "model", None)):
        model = model.model()
    if not isinstance(model, DiscreteModel):
        raise TypeError(
            f"`model` must be an IsingModel, a PottsModel or a fitted graph of either, found {type(model).__name__}; "
            "a GaussianModel draws independent rows by its own method `sample`."
        )
    return model
