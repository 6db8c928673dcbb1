"""What every flow promises: a dynamics advances a state by blocks of steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from bregpath._kernels import Knot, Steps
from bregpath._typing import Array, IntArray
from bregpath.flow.reading import AbstractReading
from bregpath.problem import Problem

__all__ = ["AbstractFlow", "Costs", "State"]


@dataclass(frozen=True)
class State:
    """All that a flow goes on from. It is never changed: a block of steps ends in another one.

    It can be pickled, and another process that has the same problem goes on from it.
    """

    knot: Knot
    columns: IntArray  # the working columns; more are only ever put behind them
    lowest: float  # loss so far
    memory: Any = None  # what the stepping method remembers: its own affair
    workplace: Any = None  # what the flow has made of the columns; not pickled, since it can be made again

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)} | {"workplace": None}

    def copy(self) -> State:
        """The same state to go on from independently, in another thread for example."""
        return self if self.workplace is None else replace(self, workplace=self.workplace.copy())


@dataclass(frozen=True)
class Costs:
    """What it took to reach a state."""

    gradients: int = 0
    column_products: int = 0
    refreshes: int = 0
    working_columns: int = 0
    models: int = 0


class AbstractFlow(ABC):
    """A dynamics on a problem.

    Parameters
    ----------
    problem : Problem
        What is integrated.
    step : float or None
        Fixed step, or None for adaptive ones.
    tol : float
        Error of the coefficients allowed to adaptive steps, relative to the largest coefficient.
    screening : bool
        Work on few columns where the store is large.
    """

    name: ClassVar[str]
    takes_kappa: ClassVar[bool] = True  # or has none, being a limit
    reading: AbstractReading  # what lies between two knots

    def __init__(self, problem: Problem, step: float | None, tol: float, screening: bool = True) -> None:
        self.problem = problem
        self.step = step
        self.tol = tol
        self.screening = screening

    @abstractmethod
    def start(self) -> State:
        """The state at the first entry time, before which nothing happens; at ``inf`` where nothing can ever enter."""

    @abstractmethod
    def advance(self, state: State, until: float, is_watched: bool = False) -> tuple[State, Steps]:
        """At least one step; the last ends at or beyond ``until``, or the block is full.

        Blocks are short where ``is_watched``: a stop rule or a progress bar wants to see every few steps.
        """

    def values(self, state: State, alpha: Array, columns: IntArray, beta: Array) -> Array:
        """Loss at some points of the path: alpha (T, a) and coefficients (T, E, q) of working columns (E,)."""
        problem, block = self.problem, self.problem.store.fetch(columns)
        pairs = zip(alpha, beta, strict=True)
        return np.array([problem.value(problem.predictor(block, a, b)) for a, b in pairs])

    def costs(self, state: State) -> Costs:
        """What it took to reach a state."""
        return Costs(working_columns=len(state.columns))
