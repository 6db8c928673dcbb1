r"""Exact probabilities of small Ising and Potts models, by looking at every state.

What sampling can only approximate is exact here: the partition function, moments, and independent rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bregpath._typing import Array, IntArray, Seed
from bregpath.graphs.base_model import DiscreteModel, as_discrete_model

__all__ = ["Enumeration", "enumerate_states"]

MAX_STATES = 2**20
_AT_ONCE = 2**15  # states whose features are held at the same time


def enumerate_states(model: Any) -> Enumeration:
    r"""Return the exact distribution of a model with at most :math:`2^{20}` states.

    Parameters
    ----------
    model : IsingModel, PottsModel, or an object whose method ``model()`` returns one
        Up to 20 nodes for an Ising model.

    Returns
    -------
    Enumeration
        Probabilities, moments, `log_partition`, and exact sampling.

    Examples
    --------
    >>> from bregpath.graphs import IsingModel, enumerate_states
    >>> exact = enumerate_states(IsingModel([0.0, 0.0], [[0.0, 2.0], [2.0, 0.0]]))
    >>> exact.states.tolist()
    [[-1, -1], [-1, 1], [1, -1], [1, 1]]
    >>> exact.probabilities.round(2)
    array([0.44, 0.06, 0.06, 0.44])
    >>> float(exact.second_moments[0, 1])  # tanh(b / 2)
    0.762
    """
    model = as_discrete_model(model)
    size = float(np.prod(model.counts.astype(float)))
    if size > MAX_STATES:
        raise ValueError(
            f"`model` has {size:.3g} states, too many to look at each (at most {MAX_STATES}); use `gibbs` to sample."
        )
    log_weight = np.concatenate([model.log_weight_of_codes(codes) for codes in _chunks(model.counts)])
    largest = log_weight.max()
    weight = np.exp(log_weight - largest)
    total = weight.sum()
    return Enumeration(model, weight / total, float(largest + np.log(total)))


@dataclass(frozen=True, eq=False)
class Enumeration:
    r"""All states of a model with their probabilities.

    Attributes
    ----------
    model : IsingModel or PottsModel
        The model.
    probabilities : ndarray
        Of each row of `states`; they sum to one.
    log_partition : float
        :math:`\log Z`, so that ``model.log_weight(X) - log_partition`` are log-probabilities.
    """

    model: DiscreteModel
    probabilities: Array
    log_partition: float

    @property
    def states(self) -> Array:
        """All states, as labels; the last node changes fastest."""
        return self.model.decode(np.concatenate(list(_chunks(self.model.counts))))

    @property
    def mean(self) -> Array:
        """Means of the features: E x_j for an Ising model, P(x_j = l) for a Potts model (P,)."""
        return self._moments[0]

    @property
    def second_moments(self) -> Array:
        """Means of products of features: E x_j x_k, or P(x_j = l, x_k = m) for a Potts model (P, P)."""
        return self._moments[1]

    def log_probability(self, X: Any) -> Array:
        """Logarithm of the probability of each row of `X`."""
        return self.model.log_weight(X) - self.log_partition

    def sample(self, n: int, seed: Seed = None) -> Array:
        """Draw `n` independent rows of labels, without any Markov chain."""
        drawn = np.random.default_rng(seed).choice(len(self.probabilities), size=n, p=self.probabilities)
        return self.model.decode(_codes(drawn, self.model.counts))

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        first, second, at = 0.0, 0.0, 0
        for codes in _chunks(self.model.counts):
            z = self.model.features(codes)
            weighted = z * self.probabilities[at : at + len(z), None]
            first = first + weighted.sum(axis=0)
            second = second + z.T @ weighted
            at += len(z)
        return np.asarray(first), np.asarray(second)


def _codes(numbers: IntArray, counts: IntArray) -> IntArray:
    """Digits of numbers in the mixed base `counts`."""
    codes = np.empty((len(numbers), len(counts)), dtype=np.intp)
    for j in reversed(range(len(counts))):
        numbers, codes[:, j] = np.divmod(numbers, counts[j])
    return codes


def _chunks(counts: IntArray) -> Iterator[IntArray]:
    """Codes of all states, some thousand rows at a time."""
    size = int(np.prod(counts))
    for first in range(0, size, _AT_ONCE):
        yield _codes(np.arange(first, min(first + _AT_ONCE, size)), counts)
