"""Simulations as problems whose true parameters are known, in the units of the data."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from bregpath._typing import Array, IntArray
from bregpath.datasets import GraphSimulation, Simulation
from bregpath.graphs import IsingModel
from bregpath.graphs.problems import all_pairs, ising_problem
from bregpath.path import Path, Point, of_its
from bregpath.regression import Regression
from bregpath.run import Assembled, TraceOptions, Track, run
from bregpath.units import Units

__all__ = ["Truth"]

ISING_LOSSES = ("composite", "mpf")


@dataclass(frozen=True, eq=False)
class Truth:
    """A problem with an l1 penalty, data as given, and the parameters that generated the data."""

    assembled: Assembled
    alpha: Array  # (a,) unpenalised parameters, as the problem counts them
    beta: Array  # (p,)
    names: list[str]
    title: str

    @classmethod
    def of(cls, simulation: Any, loss: Any, kappa: float) -> Truth:
        """Read a simulation; ``loss=None`` is the one that belongs to its model."""
        if isinstance(simulation, Simulation):
            truth = _of_regression(simulation, loss, kappa)
        elif isinstance(simulation, GraphSimulation):
            truth = _of_ising(simulation, loss, kappa)
        else:
            raise TypeError(
                "`simulation` must be a Simulation or GraphSimulation of bregpath.datasets, which know their truth; "
                f"found {type(simulation).__name__}. For data without a known truth use bregpath.theory.assess."
            )
        if not len(truth.support):
            raise ValueError("`simulation` has no true coefficients, so there is nothing to find; take s >= 1.")
        return truth

    problem = of_its("assembled.problem")

    @cached_property
    def support(self) -> IntArray:
        """The true columns."""
        return np.flatnonzero(self.beta)

    @property
    def theta(self) -> Array:
        """What an oracle would fit: unpenalised parameters, then the coefficients of the true columns."""
        return np.concatenate([self.alpha, self.beta[self.support]])

    def model(self, theta: Array) -> Point:
        """A model on the true columns, as a path would report it at the end of time."""
        a, coef = len(self.alpha), np.zeros(len(self.beta))
        intercept, values = self.assembled.units.restore(theta[:a], self.support, theta[a:, None])
        coef[self.support] = values[:, 0]
        return Point(np.inf, float(intercept[0]) if a == 1 else intercept, coef)

    def trace(self, options: TraceOptions, among: IntArray | None = None) -> Path:
        """The path of the problem, with no columns entering but those ``among`` some."""
        assembled = self.assembled
        if among is not None:
            penalty = deepcopy(self.problem.penalty)
            excluded = np.ones(len(self.beta), dtype=bool)
            excluded[among] = False
            penalty.weights[excluded] = np.inf
            assembled = assembled._replace(problem=replace(self.problem, penalty=penalty))
        return run(Track(lambda: assembled, options))


def _of_regression(simulation: Simulation, loss: Any, kappa: float) -> Truth:
    if simulation.coef.ndim == 2:
        raise ValueError(
            "`simulation` has several outputs: adding the same to all of them changes nothing, so the loss is not "
            "strongly convex on any support and the theory is silent; diagnose make_logistic instead."
        )
    loss = _own_loss(simulation.y) if loss is None else loss
    assembled = Regression.read(simulation.X, simulation.y, loss=loss, kappa=kappa, standardize=False).on()
    if assembled.problem.loss.n_outputs != 1:
        raise ValueError(f"`loss`={assembled.problem.loss.name!r} has several outputs; choose one that has one.")
    beta, units = np.asarray(simulation.coef, dtype=float), assembled.units
    constant = np.flatnonzero(np.isinf(assembled.problem.penalty.weights[:, 0]) & (beta != 0))
    if len(constant):
        raise ValueError(f"`simulation`: the true column x{constant[0]} is constant, so nothing can find it; drop it.")
    # Constants that the intercept absorbs are left out inside.
    alpha = np.atleast_1d(simulation.intercept - units.shift + units.center @ beta)
    n, p = simulation.X.shape
    title = f"{assembled.problem.loss.name}, n = {n}, p = {p}, s = {np.count_nonzero(beta)}"
    return Truth(assembled, alpha, beta, [f"x{j}" for j in range(p)], title)


def _own_loss(y: Array) -> str:
    """The loss of the simulator that made a response: numbers, labels -1 and +1, or counts."""
    if y.dtype.kind == "f":
        return "gaussian"
    return "logistic" if y.min() < 0 else "poisson"


def _of_ising(simulation: GraphSimulation, loss: Any, kappa: float) -> Truth:
    if not isinstance(simulation.model, IsingModel):
        raise ValueError(
            f"`simulation` is of a {type(simulation.model).__name__}; of graphs, only Ising models are diagnosed "
            "(make_ising_grid)."
        )
    loss = "composite" if loss is None else loss
    if loss not in ISING_LOSSES:
        raise ValueError(f"`loss` of an Ising model must be one of {ISING_LOSSES}, found {loss!r}.")
    spins, p = simulation.X.astype(float), simulation.X.shape[1]
    constant = np.flatnonzero(np.ptp(spins, axis=0) == 0)
    if len(constant):
        raise ValueError(f"`simulation` has one value only of node {constant[0]}, whose field is then infinite.")
    problem = ising_problem(spins, np.full(len(spins), 1 / len(spins)), np.ones((p, p)), kappa, loss, True)
    pairs = all_pairs(p)
    beta = simulation.couplings[pairs[:, 0], pairs[:, 1]]
    return Truth(
        Assembled(problem, Units.none(len(pairs))),
        np.asarray(simulation.fields, dtype=float),
        beta,
        [f"{j}-{k}" for j, k in pairs],
        f"Ising model ({loss}), n = {len(spins)}, {p} nodes, {np.count_nonzero(beta)} edges",
    )
