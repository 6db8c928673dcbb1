r"""Graphical models as plain objects: Ising, Potts and Gaussian.

A model is a frozen record of numbers: it can be built by hand, drawn by a simulator or returned by an estimator. It
knows its own probabilities up to a constant and how to sample; `strengths` holds one number for each pair of nodes.

Two nodes that are not joined are independent given all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bregpath._typing import Array, IntArray, Seed
from bregpath.graphs._checks import (
    check_levels,
    check_names,
    check_square,
    check_state_counts,
    finite_array,
    freeze,
)
from bregpath.graphs.base_model import AbstractModel, DiscreteModel, InBlocks

__all__ = ["GaussianModel", "IsingModel", "PottsModel"]


@dataclass(frozen=True, eq=False)
class IsingModel(DiscreteModel):
    r"""Ising model, :math:`P(x) \propto \exp(\sum_j a_j x_j / 2 + \sum_{j<k} b_{jk} x_j x_k / 2)`, x in {-1, +1}.

    So :math:`P(x_j = 1 \mid \mathrm{rest}) = 1 / (1 + \exp(-a_j - \sum_k b_{jk} x_k))`: fields and couplings are the
    coefficients of logistic regressions.

    Parameters
    ----------
    fields : array-like of shape (p,)
        :math:`a`.
    couplings : array-like of shape (p, p)
        :math:`b`, symmetric with zero diagonal.
    names : sequence of str, optional
        Names of the nodes.
    levels : sequence of p pairs, optional
        Labels [of -1, of +1] of each node; without them the states are -1 and +1.

    Examples
    --------
    >>> model = IsingModel(fields=[0.5, 0.0], couplings=[[0.0, 2.0], [2.0, 0.0]])
    >>> model.log_weight([[1, 1], [1, -1]])
    array([ 1.25, -0.75])
    >>> model.zero_one()
    (array([-1.5, -2. ]), array([[0., 4.], [4., 0.]]))
    """

    fields: Array
    couplings: Array
    names: tuple[str, ...] | None = None
    levels: tuple[Array, ...] | None = None

    _scale = 0.5

    def __post_init__(self) -> None:
        fields = finite_array("fields", self.fields, 1)
        couplings = check_square("couplings", self.couplings, len(fields))
        if np.diagonal(couplings).any():
            raise ValueError("`couplings` must have a zero diagonal (x_j x_j is constant); set it to zero.")
        freeze(self, fields=fields, couplings=couplings, names=check_names(self.names, len(fields)))
        freeze(self, levels=check_levels(self.levels, self.counts))

    @classmethod
    def from_zero_one(
        cls, fields: Any, couplings: Any, names: Sequence[str] | None = None, levels: Sequence[Any] | None = None
    ) -> IsingModel:
        r"""Build the model from the parameters of the 0/1 coding.

        There :math:`P(x) \propto \exp(\sum_j a'_j x_j + \sum_{j<k} b'_{jk} x_j x_k)` with x in {0, 1}. The
        inverse of `zero_one`: :math:`b = b' / 2` and :math:`a_j = a'_j + \sum_k b_{jk}`. It is the same distribution;
        pass ``levels=[[0, 1]] * p`` to have it sampled in 0 and 1 too.

        Examples
        --------
        >>> model = IsingModel.from_zero_one([-1.5, -2.0], [[0.0, 4.0], [4.0, 0.0]])
        >>> model.fields, float(model.couplings[0, 1])
        (array([0.5, 0. ]), 2.0)
        """
        a = finite_array("fields", fields, 1)
        b = check_square("couplings", couplings, len(a)) / 2.0
        return cls(a + b.sum(axis=1), b, check_names(names, len(a)), None if levels is None else tuple(levels))

    def zero_one(self) -> tuple[Array, Array]:
        r"""Return fields and couplings of the 0/1 coding: :math:`a'_j = a_j - \sum_k b_{jk}` and :math:`b' = 2 b`."""
        return self.fields - self.couplings.sum(axis=1), 2.0 * self.couplings

    @property
    def counts(self) -> IntArray:
        return np.full(len(self.fields), 2)

    @property
    def labels(self) -> tuple[Array, ...]:
        return self.levels or (np.array([-1, 1], dtype=np.int8),) * len(self.fields)

    @property
    def strengths(self) -> Array:
        """The couplings."""
        return self.couplings

    def features(self, codes: Array) -> Array:
        return 2.0 * codes - 1.0

    def log_odds(self, features: Array, j: int) -> Array:
        eta = self.fields[j] + features @ self.couplings[:, j]
        return np.column_stack([np.zeros_like(eta), eta])


@dataclass(frozen=True, eq=False)
class PottsModel(InBlocks, DiscreteModel):
    r"""Discrete Markov field, :math:`P(x) \propto \exp(\sum_j a_{j;x_j} + \sum_{j<k} b_{jk}[x_j, x_k])`.

    Node j has states 0 ... q_j - 1. Everything is stored flat: node j owns the entries ``offsets[j]`` up to
    ``offsets[j + 1]`` of `fields`, and of the rows and columns of `couplings`.

    Parameters
    ----------
    fields : array-like of shape (P,)
        :math:`a`, with P the sum of `n_states`.
    couplings : array-like of shape (P, P)
        :math:`b`, symmetric, with diagonal blocks of zeros.
    n_states : int or sequence of int
        Number of states of each node; one number if all have the same.
    names : sequence of str, optional
        Names of the nodes.
    levels : sequence of p sequences, optional
        Labels of the states of each node; without them the states are 0, 1, ...

    Notes
    -----
    Many parameters give the same distribution. `to_zero_sum` returns the representative with the smallest blocks, in
    which strengths are usually compared.

    Examples
    --------
    >>> import numpy as np
    >>> couplings = np.kron([[0, 1], [1, 0]], np.eye(3))
    >>> model = PottsModel(np.zeros(6), couplings, n_states=3)
    >>> model.block(0, 1).shape, float(model.strengths[0, 1])
    ((3, 3), 1.732)
    >>> model.log_weight([[2, 2], [2, 1]])
    array([1., 0.])
    """

    fields: Array
    couplings: Array
    n_states: IntArray
    names: tuple[str, ...] | None = None
    levels: tuple[Array, ...] | None = None

    _scale = 1.0

    def __post_init__(self) -> None:
        fields = finite_array("fields", self.fields, 1)
        n_states = check_state_counts(self.n_states, len(fields))
        couplings = check_square("couplings", self.couplings, len(fields))
        freeze(self, fields=fields, couplings=couplings, n_states=n_states)
        freeze(self, names=check_names(self.names, len(n_states)), levels=check_levels(self.levels, n_states))
        if any(self.block(j, j).any() for j in range(len(n_states))):
            raise ValueError("`couplings` must have zero diagonal blocks (they belong to `fields`); set them to zero.")

    @property
    def counts(self) -> IntArray:
        return self.n_states

    @property
    def labels(self) -> tuple[Array, ...]:
        return self.levels or tuple(np.arange(q) for q in self.n_states)

    @property
    def strengths(self) -> Array:
        """Frobenius norms of the blocks (p, p)."""
        return np.sqrt(self._block_sums(self._block_sums(self.couplings**2, 0), 1))

    def features(self, codes: Array) -> Array:
        z = np.zeros((len(codes), len(self.fields)))
        np.put_along_axis(z, codes + self.offsets[:-1], 1.0, axis=1)
        return z

    def log_odds(self, features: Array, j: int) -> Array:
        own = slice(self.offsets[j], self.offsets[j + 1])
        return self.fields[own] + features @ self.couplings[:, own]

    def to_zero_sum(self) -> PottsModel:
        r"""Return the same distribution with rows and columns of each block, and the fields of each node, summing to 0.

        What is constant along the columns of a block moves to the fields:
        :math:`a_{j;l} \leftarrow a_{j;l} + \sum_k \bar b_{jk}[l, \cdot]`, then centred.
        """
        rows = self._block_sums(self.couplings, 1) / self.n_states  # (P, p): means over the states of the other node
        total = self._block_sums(rows, 0) / self.n_states[:, None]
        spread = np.repeat(rows, self.n_states, axis=1)
        both = np.repeat(np.repeat(total, self.n_states, axis=0), self.n_states, axis=1)
        fields = self.fields + rows.sum(axis=1)
        fields -= np.repeat(self._block_sums(fields, 0) / self.n_states, self.n_states)
        return PottsModel(fields, self.couplings - spread - spread.T + both, self.n_states, self.names, self.levels)

    def _block_sums(self, values: Array, axis: int) -> Array:
        return np.add.reduceat(values, self.offsets[:-1], axis=axis)


@dataclass(frozen=True, eq=False)
class GaussianModel(AbstractModel):
    r"""Gaussian graph: normal rows with precision matrix :math:`\Omega = \Sigma^{-1}`; zeros are missing edges.

    Parameters
    ----------
    precision : array-like of shape (p, p)
        :math:`\Omega`, symmetric and positive definite.
    mean : array-like of shape (p,), optional
        Zero by default.
    names : sequence of str, optional
        Names of the nodes.

    Examples
    --------
    >>> model = GaussianModel([[2.0, -1.0], [-1.0, 2.0]])
    >>> float(model.partial_correlations[0, 1]), float(model.covariance[0, 1])
    (0.5, 0.333)
    >>> model.sample(5, seed=0).shape
    (5, 2)
    """

    precision: Array
    mean: Array | None = None
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        precision = check_square("precision", self.precision, None)
        p = len(precision)
        mean = finite_array("mean", np.zeros(p) if self.mean is None else self.mean, 1)
        if mean.shape != (p,):
            raise ValueError(f"`mean` must have one entry for each of the {p} nodes, found shape {mean.shape}.")
        freeze(self, precision=precision, mean=mean, names=check_names(self.names, p))
        _ = self._cholesky  # refuses what is not positive definite

    @cached_property
    def _cholesky(self) -> Array:
        try:
            return np.linalg.cholesky(self.precision)
        except np.linalg.LinAlgError:
            raise ValueError(
                "`precision` is not positive definite, so no normal distribution has it; add to its diagonal."
            ) from None

    @property
    def n_nodes(self) -> int:
        return len(self.precision)

    @cached_property
    def covariance(self) -> Array:
        r""":math:`\Sigma = \Omega^{-1}`."""
        half = np.linalg.inv(self._cholesky)
        return half.T @ half

    @property
    def partial_correlations(self) -> Array:
        r""":math:`-\omega_{jk} / \sqrt{\omega_{jj} \omega_{kk}}`, with ones on the diagonal."""
        scale = np.sqrt(np.diagonal(self.precision))
        correlations = -self.precision / np.outer(scale, scale)
        np.fill_diagonal(correlations, 1.0)
        return correlations

    @property
    def strengths(self) -> Array:
        """Partial correlations with zero diagonal."""
        correlations = self.partial_correlations
        np.fill_diagonal(correlations, 0.0)
        return correlations

    def log_likelihood(self, X: Any) -> Array:
        r"""Logarithm of the density at each row of `X`."""
        whitened = (self._rows(X, float) - self.mean) @ self._cholesky
        half_log_det = np.log(np.diagonal(self._cholesky)).sum()
        return half_log_det - 0.5 * (self.n_nodes * np.log(2.0 * np.pi) + np.einsum("ij,ij->i", whitened, whitened))

    def sample(self, n: int, seed: Seed = None) -> Array:
        r"""Draw `n` independent rows, :math:`\mu + L^{-\top} \varepsilon` with :math:`\Omega = L L^\top`."""
        from scipy.linalg import solve_triangular

        noise = np.random.default_rng(seed).standard_normal((n, self.n_nodes))
        return self.mean + solve_triangular(self._cholesky, noise.T, trans="T", lower=True).T
