"""Markov chains of Ising and Potts models, alone or with replicas at several temperatures: the compiled core and NumPy.

A sweep draws every node anew from its distribution given the others. Nodes are taken by colour: neighbours never share
one, so all nodes of a colour, in all chains, are drawn at once. At inverse temperature beta the distribution is
proportional to ``exp(beta w(x))``, with w the logarithm of the weight of the model: beta = 0 is all noise, 1 the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from bregpath import _kernels
from bregpath._typing import Array, IntArray
from bregpath.graphs.base_model import DiscreteModel, draw_states
from bregpath.graphs.models import IsingModel, PottsModel

__all__ = ["Plan", "Run", "Schedule", "run_chains"]

ONE = np.ones(1)  # inverse temperatures of chains without replicas


@dataclass(frozen=True)
class Plan:
    """Row d * chains + c is draw d of chain c; the last draw may be cut."""

    n: int
    chains: int
    burn_in: int
    thin: int

    def draws(self) -> Iterator[tuple[slice, int]]:
        """Rows of each draw of all chains, and the sweeps before it."""
        for first in range(0, self.n, self.chains):
            yield slice(first, min(first + self.chains, self.n)), self.thin if first else 0

    @property
    def sweeps(self) -> int:
        """Of a chain, in all."""
        return self.burn_in + self.thin * max(-(-self.n // self.chains) - 1, 0)


@dataclass(frozen=True, eq=False)
class Run:
    """What chains gave: codes of states, and how their replicas traded places."""

    codes: Array  # (n, p)
    halfway: Array  # (chains, p): where chains were after half of the burn-in
    ends: Array  # (chains, levels, p): where all replicas ended
    rejected: Array  # (levels - 1,): share of swaps of neighbours in temperature that were refused
    trips: IntArray  # (chains,): how often a replica came from the hottest temperature to the model's


def run_chains(
    model: DiscreteModel, plan: Plan, rng: np.random.Generator, betas: Array = ONE, start: Array | None = None
) -> Run:
    """Run chains with replicas at increasing inverse temperatures, of which the last gives the rows.

    Chains begin at the codes ``start`` (chains, levels, p), or at random.
    """
    sampler = _compiled if _kernels.has_compiled() else _reference
    run = sampler(model, plan, rng, betas, start)
    pairs = np.arange(len(betas) - 1)
    trials = plan.chains * ((plan.sweeps + 1 - pairs % 2) // 2)  # even and odd pairs trade in turn
    return Run(run.codes, run.halfway, run.ends, run.rejected / np.maximum(trials, 1), run.trips)


def _empty_run(model: DiscreteModel, plan: Plan, levels: int) -> Run:
    p, dtype = model.n_nodes, np.int32 if isinstance(model, PottsModel) else np.int8
    shapes = (plan.n, p), (plan.chains, p), (plan.chains, levels, p)
    codes, halfway, ends = (np.empty(shape, dtype=dtype) for shape in shapes)
    return Run(codes, halfway, ends, np.zeros(levels - 1), np.zeros(plan.chains, dtype=np.int64))


@dataclass(frozen=True)
class Schedule:
    """Nodes sorted by colour; colour c are the sorted nodes ``colours[c]`` up to ``colours[c + 1]``."""

    order: IntArray
    colours: IntArray

    @classmethod
    def of(cls, model: DiscreteModel) -> Schedule:
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


# --- the compiled core -------------------------------------------------------------------------------------------


def _compiled(model: DiscreteModel, plan: Plan, rng: np.random.Generator, betas: Array, start: Array | None) -> Run:
    import bregpath._kernels._core as _core

    schedule = Schedule.of(model)
    ordered = schedule.sorted_model(model)
    starts, sites = _neighbours(ordered)
    run = _empty_run(model, plan, len(betas))
    options = {"betas": betas, "halfway": run.halfway, "ends": run.ends, "rejected": run.rejected, "trips": run.trips}
    if start is not None:
        options["start"] = np.ascontiguousarray(start[..., schedule.order], dtype=run.ends.dtype)
    arguments: dict[str, Any] = {
        "fields": ordered.fields, "colours": schedule.colours.astype(np.int64), "starts": starts, "sites": sites,
        "out": run.codes, "chains": plan.chains, "burn_in": plan.burn_in, "thin": plan.thin,
        "seed": int(rng.integers(2**64, dtype=np.uint64)), "options": options,
    }  # fmt: skip
    if isinstance(ordered, PottsModel):
        _core.gibbs_potts(couplings=ordered.couplings, offsets=ordered.offsets.astype(np.int64), **arguments)
    else:
        couplings = ordered.couplings[ordered.adjacency]  # row by row, as the neighbours
        _core.gibbs_ising(couplings=couplings, **arguments)
    back = np.argsort(schedule.order)
    codes, halfway, ends = (values[..., back] for values in (run.codes, run.halfway, run.ends))
    return Run(codes, halfway, ends, run.rejected, run.trips)


def _neighbours(model: DiscreteModel) -> tuple[Array, Array]:
    """Neighbours of node j: ``sites[starts[j]:starts[j + 1]]``."""
    rows, sites = np.nonzero(model.adjacency)
    starts = np.searchsorted(rows, np.arange(model.n_nodes + 1))
    return starts.astype(np.int64), sites.astype(np.int32)


# --- NumPy -------------------------------------------------------------------------------------------------------


def _reference(model: DiscreteModel, plan: Plan, rng: np.random.Generator, betas: Array, start: Array | None) -> Run:
    run = _empty_run(model, plan, len(betas))
    replicas = _Replicas(model, plan.chains, betas, start, run, rng)
    replicas.advance(plan.burn_in // 2)
    run.halfway[:] = replicas.rows()
    replicas.advance(plan.burn_in - plan.burn_in // 2)
    for rows, sweeps in plan.draws():
        replicas.advance(sweeps)
        run.codes[rows] = replicas.rows()[: rows.stop - rows.start]
    run.ends[:] = replicas.block.codes()[replicas.at]
    return run


class _Replicas:
    """Chains with a replica at each temperature, which trade places after every sweep."""

    def __init__(
        self, model: DiscreteModel, chains: int, betas: Array, start: Array | None, run: Run, rng: np.random.Generator
    ) -> None:
        self.model, self.betas, self.run, self.rng = model, betas, run, rng
        self.at = np.arange(chains * len(betas)).reshape(chains, len(betas))  # the replica at each temperature
        self.was_hot = np.zeros(self.at.size, dtype=bool)
        self.odd = 0
        schedule = Schedule.of(model)
        groups = [schedule.order[i:j] for i, j in pairwise(schedule.colours)]
        block = _PottsChains if isinstance(model, PottsModel) else _IsingChains
        self.block = block(model, groups, self.at.size, rng)
        self.block.beta[self.at] = betas
        if start is not None:
            self.block.set_codes(start.reshape(self.at.size, -1))

    def advance(self, sweeps: int) -> None:
        for _ in range(sweeps):
            self.block.sweep(self.rng)
            if len(self.betas) > 1:
                self.exchange()

    def rows(self) -> Array:
        return self.block.codes()[self.at[:, -1]]

    def exchange(self) -> None:
        """Neighbours in temperature trade places: those with an even lower one and those with an odd one in turn."""
        weight = self.model.log_weight_of_codes(self.block.codes())
        low = np.arange(self.odd, len(self.betas) - 1, 2)
        hot, cold = self.at[:, low], self.at[:, low + 1]
        gain = (self.betas[low] - self.betas[low + 1]) * (weight[cold] - weight[hot])
        accepted = np.exp(np.minimum(gain, 0.0))
        self.run.rejected[low] += (1.0 - accepted).sum(axis=0)
        swap = self.rng.random(gain.shape) < accepted
        self.at[:, low], self.at[:, low + 1] = np.where(swap, cold, hot), np.where(swap, hot, cold)
        self.block.beta[self.at] = self.betas
        self.was_hot[self.at[:, 0]] = True
        self.run.trips[:] += self.was_hot[self.at[:, -1]]
        self.was_hot[self.at[:, -1]] = False
        self.odd = 1 - self.odd


class _IsingChains:
    """States -1 and +1 of all chains (p, chains)."""

    def __init__(self, model: Any, groups: list[IntArray], chains: int, rng: np.random.Generator) -> None:
        from scipy.sparse import csr_array

        self.groups = [(nodes, model.fields[nodes, None], csr_array(model.couplings[nodes])) for nodes in groups]
        self.beta = np.ones(chains)
        self.x = np.where(rng.random((model.n_nodes, chains)) < 0.5, -1.0, 1.0)

    def sweep(self, rng: np.random.Generator) -> None:
        for nodes, fields, couplings in self.groups:
            eta = self.beta * (fields + couplings @ self.x)
            # u < 1 / (1 + exp(-eta)), with the logarithm on the side of u, where nothing can overflow
            u = rng.random(eta.shape)
            self.x[nodes] = np.where(_logit(u) < eta, 1.0, -1.0)

    def codes(self) -> Array:
        return self.x.T > 0

    def set_codes(self, codes: Array) -> None:
        self.x = np.where(codes.T > 0, 1.0, -1.0)


class _PottsChains:
    """Indicators of the states of all chains (p, q, chains); nodes with fewer states than q never use the rest."""

    def __init__(self, model: Any, groups: list[IntArray], chains: int, rng: np.random.Generator) -> None:
        from scipy.sparse import csr_array

        p, q, size = model.n_nodes, int(model.n_states.max()), len(model.fields)
        node = np.repeat(np.arange(p), model.n_states)
        place = node * q + np.arange(size) - model.offsets[node]  # of a flat entry among p x q
        fields, unused = np.zeros(p * q), np.full(p * q, -np.inf)
        fields[place], unused[place] = model.fields, 0.0
        entries = csr_array(model.couplings).tocoo()
        couplings = csr_array((entries.data, (place[entries.row], place[entries.col])), shape=(p * q, p * q))
        self.groups = []
        for nodes in groups:
            rows = (nodes[:, None] * q + np.arange(q)).ravel()
            self.groups.append((nodes, fields[rows, None], unused[rows, None], couplings[rows]))
        self.beta = np.ones(chains)
        self.z = np.zeros((p, q, chains))
        self._set(np.arange(p), (rng.random((p, chains)) * model.n_states[:, None]).astype(np.intp))

    def sweep(self, rng: np.random.Generator) -> None:
        p, q, chains = self.z.shape
        for nodes, fields, unused, couplings in self.groups:
            eta = self.beta * (fields + couplings @ self.z.reshape(p * q, chains)) + unused
            eta = eta.reshape(len(nodes), q, chains)
            self._set(nodes, draw_states(eta, rng))

    def codes(self) -> Array:
        return self.z.argmax(axis=1).T

    def set_codes(self, codes: Array) -> None:
        self._set(np.arange(len(self.z)), codes.T)

    def _set(self, nodes: IntArray, states: IntArray) -> None:
        self.z[nodes] = states[:, None, :] == np.arange(self.z.shape[1])[:, None]


def _logit(u: Array) -> Array:
    u = np.maximum(u, 2.0**-54)  # 0 is drawn once in 2^53
    return np.log(u) - np.log1p(-u)
