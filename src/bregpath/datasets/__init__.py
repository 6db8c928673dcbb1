"""Data with known truth: simulators of the sparse models that the paths are meant to recover."""

from __future__ import annotations

from .simulate import Simulation, make_linear, make_logistic, make_multinomial, make_poisson
from .simulate_graphs import GraphSimulation, make_gaussian_graph, make_ising_grid, make_potts
from .simulate_mixed import make_mixed_graph

__all__ = [
    "GraphSimulation",
    "Simulation",
    "make_gaussian_graph",
    "make_ising_grid",
    "make_linear",
    "make_logistic",
    "make_mixed_graph",
    "make_multinomial",
    "make_poisson",
    "make_potts",
]
