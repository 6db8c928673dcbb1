"""How well graphs describe rows that they were not learned from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bregpath._typing import Array, IntArray
from bregpath.graphs.layouts import AbstractLayout
from bregpath.problem import Problem

__all__ = ["HeldOutRows"]


@dataclass(frozen=True, eq=False)
class HeldOutRows:
    """Some rows, codes of states or numbers, and the graphs at some times of a path."""

    layout: AbstractLayout
    kappa: float
    rows: Array
    w: Array
    models: tuple[Array, IntArray, Array]  # as a trajectory reads them
    keeps_eta: bool = False

    @cached_property
    def _problem(self) -> Problem:
        layout = self.layout.likelihood
        ones = np.ones((layout.n_nodes, layout.n_nodes))
        return layout.problem(layout.as_data(self.rows, self.w), self.w / self.w.sum(), ones, self.kappa)

    def _predictors(self) -> Iterator[Array]:
        alpha, columns, beta = self.models
        block = self._problem.store.fetch(columns)
        return (self._problem.predictor(block, a, b) for a, b in zip(alpha, beta, strict=True))

    @cached_property
    def eta(self) -> Array | None:
        """Predictors (T, n, k) of the nodes, or their states; None where they are not kept."""
        return np.stack(list(self._predictors())) if self.keeps_eta else None

    @property
    def deviance(self) -> Array:
        """Twice the negative mean log-likelihood at each time, without constants that do not depend on the model.

        Composite, unless the loss of the graph is the likelihood.
        """
        etas = self._predictors() if self.eta is None else self.eta
        return self._problem.loss.deviance_factor * np.array([self._problem.value(eta) for eta in etas])

    def graphical_models(self) -> Iterator[Any]:
        """The model at each time."""
        return (self.layout.model(alpha, beta) for alpha, beta in self.layout.each_time(*self.models))
