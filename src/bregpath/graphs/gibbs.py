r"""Gibbs sampling of Ising and Potts models.

A sweep draws every node anew from its distribution given the others. Nodes are taken by colour: neighbours never share
one, so all nodes of a colour, in all chains, are drawn at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from bregpath import _kernels
from bregpath._typing import Array, IntArray
from bregpath._validation import check_integer
from bregpath.graphs.models import DiscreteModel, IsingModel, PottsModel, Seed, as_discrete_model

__all__ = ["gibbs"]

MAX_CHAINS = 64  # by default


def gibbs(
    model: Any,
    n: int,
    burn_in: int = 2000,
    thin: int = 10,
    seed: Seed = None,
    chains: int | None = None,
) -> Array:
    r"""Draw `n` rows from an Ising or Potts model by Gibbs sampling.

    Every chain starts at random states, makes `burn_in` sweeps, gives a row, and then another after every `thin`
    sweeps. A sweep draws each node once from its conditional distribution; for the Ising model
    :math:`P(x_j = 1 \mid \mathrm{rest}) = 1 / (1 + \exp(-a_j - \sum_k b_{jk} x_k))`.

    Parameters
    ----------
    model : IsingModel, PottsModel, or an object whose method ``model()`` returns one
        What to draw from; a fitted graph estimator will do.
    n : int
        Number of rows.
    burn_in : int
        Sweeps of each chain before its first row.
    thin : int
        Sweeps between two rows of a chain.
    seed : int, numpy.random.Generator or None
        Source of randomness; the same seed gives the same rows. A generator is advanced by the call.
    chains : int, optional
        Independent chains, by default 64 (or `n` if that is less). Row i comes from chain ``i % chains``.

    Returns
    -------
    ndarray of shape (n, p)
        States: the labels of the model if it has `levels`; else -1 and +1 (int8) for an Ising model and 0, 1, ...
        (int32) for a Potts model.

    Warnings
    --------
    With fewer chains than rows, rows of one chain are dependent: standard errors that take them for independent are too
    small. ``chains=n`` gives independent rows at the price of `burn_in` sweeps each. Strong couplings make chains slow
    to forget where they were, and no setting proves that `burn_in` was enough: compare with more sweeps, or with
    `enumerate_states` where there are few states.

    Notes
    -----
    Cost is proportional to sweeps x chains x (nodes + edges). With the compiled core a million updates of nodes with
    four neighbours take about 10 ms. The NumPy fallback draws from the same distribution, but not the same rows.

    Examples
    --------
    >>> from bregpath.graphs import IsingModel, gibbs
    >>> model = IsingModel(fields=[0.0, 0.0], couplings=[[0.0, 3.0], [3.0, 0.0]])
    >>> X = gibbs(model, 1000, seed=0)
    >>> X.shape, X.dtype.name, bool((X[:, 0] == X[:, 1]).mean() > 0.9)
    ((1000, 2), 'int8', True)
    """
    model = as_discrete_model(model)
    n = check_integer("n", n, 1)
    chains = min(n, MAX_CHAINS) if chains is None else min(n, check_integer("chains", chains, 1))
    plan = _Plan(n, chains, check_integer("burn_in", burn_in, 0), check_integer("thin", thin, 1))
    rng = np.random.default_rng(seed)
    sampler = _compiled if _kernels.has_compiled() else _reference
    codes = sampler(model, plan, rng)
    if model.levels is not None:
        return model.decode(codes)
    return 2 * codes - np.int8(1) if isinstance(model, IsingModel) else codes.astype(np.int32, copy=False)


@dataclass(frozen=True)
class _Plan:
    """Row d * chains + c is draw d of chain c; the last draw may be cut."""

    n: int
    chains: int
    burn_in: int
    thin: int

    def draws(self) -> Iterator[tuple[slice, int]]:
        """Rows of each draw of all chains, and the sweeps before it."""
        for first in range(0, self.n, self.chains):
            yield slice(first, min(first + self.chains, self.n)), self.thin if first else self.burn_in


@dataclass(frozen=True)
class _Schedule:
    """Nodes sorted by colour; colour c are the sorted nodes ``colours[c]`` up to ``colours[c + 1]``."""

    order: IntArray
    colours: IntArray

    @classmethod
    def of(cls, model: DiscreteModel) -> _Schedule:
        """Greedy colouring: each node takes the first colour that no neighbour has."""
        adjacency = model.adjacency
        p = len(adjacency)
        colour = np.full(p, -1)
        for j in range(p):
            taken = np.zeros(p + 1, dtype=bool)
            taken[colour[adjacency[j]]] = True  # the last entry stands for nodes without a colour
            colour[j] = taken[:p].argmin()
        order = np.argsort(colour, kind="stable")
        return cls(order, np.searchsorted(colour[order], np.arange(colour.max() + 2)))

    def sorted_model(self, model: DiscreteModel) -> DiscreteModel:
        """The model with its nodes in the order of the schedule, without labels."""
        if isinstance(model, PottsModel):
            at = np.concatenate([np.arange(model.offsets[j], model.offsets[j + 1]) for j in self.order])
            return PottsModel(model.fields[at], model.couplings[np.ix_(at, at)], model.n_states[self.order])
        return IsingModel(model.fields[self.order], model.couplings[np.ix_(self.order, self.order)])


def _compiled(model: DiscreteModel, plan: _Plan, rng: np.random.Generator) -> Array:
    """Codes (n, p) by the compiled core."""
    import bregpath._kernels._core as _core

    schedule = _Schedule.of(model)
    ordered = schedule.sorted_model(model)
    starts, sites = _neighbours(ordered)
    graph = {"colours": schedule.colours.astype(np.int64), "starts": starts, "sites": sites}
    counts = {"chains": plan.chains, "burn_in": plan.burn_in, "thin": plan.thin}
    seed = int(rng.integers(2**64, dtype=np.uint64))
    codes: Array
    if isinstance(ordered, PottsModel):
        codes = np.empty((plan.n, model.n_nodes), dtype=np.int32)
        offsets = ordered.offsets.astype(np.int64)
        _core.gibbs_potts(ordered.fields, ordered.couplings, offsets, **graph, out=codes, **counts, seed=seed)
    else:
        codes = np.empty((plan.n, model.n_nodes), dtype=np.int8)
        couplings = ordered.couplings[ordered.adjacency]  # row by row, as the neighbours
        _core.gibbs_ising(ordered.fields, couplings, **graph, out=codes, **counts, seed=seed)
    result = np.empty_like(codes)
    result[:, schedule.order] = codes
    return result


def _neighbours(model: DiscreteModel) -> tuple[Array, Array]:
    """Neighbours of node j: ``sites[starts[j]:starts[j + 1]]``."""
    rows, sites = np.nonzero(model.adjacency)
    starts = np.searchsorted(rows, np.arange(model.n_nodes + 1))
    return starts.astype(np.int64), sites.astype(np.int32)


def _reference(model: DiscreteModel, plan: _Plan, rng: np.random.Generator) -> Array:
    """Codes (n, p) by NumPy, all chains at once."""
    schedule = _Schedule.of(model)
    groups = [schedule.order[i:j] for i, j in pairwise(schedule.colours)]
    block = _PottsChains if isinstance(model, PottsModel) else _IsingChains
    chains = block(model, groups, plan.chains, rng)
    codes = np.empty((plan.n, model.n_nodes), dtype=np.int32 if isinstance(model, PottsModel) else np.int8)
    for rows, sweeps in plan.draws():
        for _ in range(sweeps):
            chains.sweep(rng)
        codes[rows] = chains.codes()[: rows.stop - rows.start]
    return codes


class _IsingChains:
    """States -1 and +1 of all chains (p, chains)."""

    def __init__(self, model: Any, groups: list[IntArray], chains: int, rng: np.random.Generator) -> None:
        from scipy.sparse import csr_array

        self.groups = [(nodes, model.fields[nodes, None], csr_array(model.couplings[nodes])) for nodes in groups]
        self.x = np.where(rng.random((model.n_nodes, chains)) < 0.5, -1.0, 1.0)

    def sweep(self, rng: np.random.Generator) -> None:
        for nodes, fields, couplings in self.groups:
            eta = fields + couplings @ self.x
            # u < 1 / (1 + exp(-eta)), with the logarithm on the side of u, where nothing can overflow
            u = rng.random(eta.shape)
            self.x[nodes] = np.where(_logit(u) < eta, 1.0, -1.0)

    def codes(self) -> Array:
        return self.x.T > 0


class _PottsChains:
    """Indicators of the states of all chains (p, q, chains); nodes with fewer states than q never use the rest."""

    def __init__(self, model: Any, groups: list[IntArray], chains: int, rng: np.random.Generator) -> None:
        from scipy.sparse import csr_array

        p, q, size = model.n_nodes, int(model.n_states.max()), len(model.fields)
        node = np.repeat(np.arange(p), model.n_states)
        place = node * q + np.arange(size) - model.offsets[node]  # of a flat entry among p x q
        fields = np.full(p * q, -np.inf)
        fields[place] = model.fields
        entries = csr_array(model.couplings).tocoo()
        couplings = csr_array((entries.data, (place[entries.row], place[entries.col])), shape=(p * q, p * q))
        self.groups = []
        for nodes in groups:
            rows = (nodes[:, None] * q + np.arange(q)).ravel()
            self.groups.append((nodes, fields[rows, None], couplings[rows]))
        self.z = np.zeros((p, q, chains))
        self._set(np.arange(p), (rng.random((p, chains)) * model.n_states[:, None]).astype(np.intp))

    def sweep(self, rng: np.random.Generator) -> None:
        p, q, chains = self.z.shape
        for nodes, fields, couplings in self.groups:
            eta = (fields + couplings @ self.z.reshape(p * q, chains)).reshape(len(nodes), q, chains)
            # The largest of eta + Gumbel noise is state l with probability exp(eta_l) / sum_k exp(eta_k).
            self._set(nodes, (eta + rng.gumbel(size=eta.shape)).argmax(axis=1))

    def codes(self) -> Array:
        return self.z.argmax(axis=1).T

    def _set(self, nodes: IntArray, states: IntArray) -> None:
        self.z[nodes] = states[:, None, :] == np.arange(self.z.shape[1])[:, None]


def _logit(u: Array) -> Array:
    u = np.maximum(u, 2.0**-54)  # 0 is drawn once in 2^53
    return np.log(u) - np.log1p(-u)
