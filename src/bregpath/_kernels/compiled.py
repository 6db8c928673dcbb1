"""The compiled core behind the interface of the reference."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

import numpy as np

import bregpath._kernels._core as _core
from bregpath import _interrupts
from bregpath._kernels import chebyshev, curvature, reference
from bregpath._kernels.records import BoundaryError, Knot, Memory, StepError, Steps, System, UnstableStepError
from bregpath._known_to_core import Kernel
from bregpath._typing import Array
from bregpath.problem import Problem

__all__ = ["advance", "isa", "look", "needs_rows", "supports", "typed", "values"]

isa = _core.isa
# Of the stepping method, by their names in the modules that explain them.
CONSTANTS = {
    name: vars(module)[name]
    for module, names in (
        (reference, ("SAFETY", "RATE_MARGIN", "RATE_STEPS", "RATE_SHARE", "ENTRY_SHARE", "ENTRY_FLOOR")),
        (reference, ("ENTRY_AHEAD", "FREEZE_GROWTH", "MAX_ATTEMPTS", "MIN_PROGRESS", "ROUNDING", "NOISE")),
        (curvature, ("SEEN",)),
        (reference, ("INSIDE", "FIRST", "STEP_BITS", "NUDGE", "WATCH_GROWTH")),
        (chebyshev, ("MAX_STAGES", "DAMPING", "STABILITY")),
    )
    for name in names
}
# What a block of steps is made of: numbers of each step, rows of one array, in the order in which the core takes them
# (one of the step, two of `Knot`, then those of `Memory`), and arrays.
NUMBERS = (
    *("reach", "t", "value"),
    *("h", "rate", "frozen_t", "watched_t", "age", "gradients", "products", "watched_products", "is_stiff"),
)
COUNTS = ("age", "gradients", "products", "watched_products")
OF_KNOT = ("alpha", "alpha_slope", "z", "slope", "R", "residual")
OF_MEMORY = ("alpha_direction", "direction", "frozen")
LAST = ("direction", "R", "residual", "frozen")
INTEGERS = {"indices": np.int32, **dict.fromkeys(("above", "groups", "indptr", "nodes", "source", "target"), np.int64)}


def supports(system: System) -> bool:
    """Whether the compiled core knows penalty and block, and the loss; one that says nothing is called back."""
    if "stepper" in system.cache:
        return True
    problem, penalty, block = system.problem, system.penalty.kernel(), system.block.kernel()
    if penalty is None or block is None or not problem.store.has_intercepts:
        return False
    if problem.loss.has_domain != (block.name == "precision"):
        return False
    loss = problem.loss.kernel() or Kernel("user", {})
    has_nodes = "nodes" in loss.numbers
    return has_nodes == (block.name in ("pairwise", "states")) and _core.knows(loss.name, penalty.name, block.name)


def needs_rows(system: System) -> bool:
    """Whether steps are made with ``R`` and the residual, or without anything of their size."""
    block = system.block.kernel()
    return block is None or block.name != "states" or not supports(system)


def advance(
    system: System, knot: Knot, memory: Memory, until: float, max_steps: int, keep_rows: bool,
    most_products: float = math.inf,
) -> Steps:  # fmt: skip
    """See `reference.advance`; of what is in ``LAST`` the last is kept without ``keep_rows``."""
    starts = {name: vars(knot)[name] for name in OF_KNOT} | {name: vars(memory)[name] for name in OF_MEMORY}
    key = f"layout of {max_steps} steps, {keep_rows}"
    if key not in system.cache:
        last = () if keep_rows else LAST
        rows = {name: 1 if name in last else max_steps + 1 for name in starts}
        shapes = {name: (rows[name], *start.shape) for name, start in starts.items()}
        system.cache[key] = Layout(shapes, is_one_piece=not keep_rows)
    arrays = system.cache[key].arrays()
    for name, start in starts.items():
        arrays[name][0] = start
    numbers = np.empty((len(NUMBERS), max_steps + 1))
    known = {"reach": 0.0, **vars(knot), **vars(memory)}
    numbers[:, 0] = [known[name] for name in NUMBERS]
    given = {**arrays, "numbers": numbers}
    done, trouble, largest = _stepper(system).advance(given, until, max_steps, keep_rows, most_products)
    if trouble == "unstable":
        raise UnstableStepError(system.step or 0.0, system.problem.kappa, float(numbers[1, done]), largest)
    if trouble in ("stalled", "outside") and done == 0:
        kind = BoundaryError if trouble == "outside" else StepError
        raise kind(f"no step from t={knot.t:g} is accurate")

    def remember(k: int) -> Memory:
        at_knot = {name: arrays[name][min(k, len(arrays[name]) - 1)].copy() for name in OF_MEMORY}
        values = dict(zip(NUMBERS[3:], numbers[3:, k].tolist(), strict=True))
        counts = {name: int(values[name]) for name in COUNTS}
        return Memory(**{**at_knot, **values, **counts, "is_stiff": bool(values["is_stiff"])}, models=memory.models)

    # What is recorded as it is does not keep all the room.
    reach, t, value = numbers[:3, : done + 1].copy()
    alpha, alpha_slope = (arrays[name][: done + 1].copy() for name in ("alpha", "alpha_slope"))
    z, slope, R, residual = (arrays[name][: done + 1] for name in ("z", "slope", "R", "residual"))
    interrupted = trouble == "interrupted"
    return Steps(system.columns, t, alpha, alpha_slope, z, slope, R, residual, value, reach, remember, interrupted)


class Layout:
    """Arrays of one block of steps.

    Those of many steps lie in one piece of memory, which the next path gets again: several would be new pages each
    time. Those of few do not: large pieces that come and go would leave holes between what is kept.
    """

    def __init__(self, shapes: Mapping[str, tuple[int, ...]], is_one_piece: bool) -> None:
        sizes = [math.prod(shape) for shape in shapes.values()]
        ends = list(accumulate(sizes))
        begins = [end - size for size, end in zip(sizes, ends, strict=True)]
        self.size = ends[-1] if is_one_piece else None
        self.parts = list(zip(shapes, begins, ends, shapes.values(), strict=True))

    def arrays(self) -> dict[str, Array]:
        """New ones."""
        if self.size is None:
            return {name: np.empty(shape) for name, _, _, shape in self.parts}
        whole = np.empty(self.size)
        return {name: whole[begin:end].reshape(shape) for name, begin, end, shape in self.parts}


def values(system: System, alpha: Array, beta: Array) -> Array:
    """See `reference.values`."""
    out = np.empty(len(alpha))
    _stepper(system).values({"alpha": _floats(alpha), "beta": _floats(beta), "out": out})
    return out


def look(system: System, alpha: Array, beta: Array) -> tuple[float, Array, Array, Array]:
    """See `reference.look`."""
    residual = np.empty((system.block.shape[0], len(alpha)))
    slope, alpha_slope = np.empty_like(beta), np.empty_like(alpha)
    at = {"alpha": _floats(alpha), "beta": _floats(beta)}
    value = _stepper(system).look({**at, "residual": residual, "slope": slope, "alpha_slope": alpha_slope})
    return value, residual, slope, alpha_slope


def _stepper(system: System) -> Any:
    """The compiled stepper of a system, made once."""
    if "stepper" not in system.cache:
        system.cache["stepper"] = _make_stepper(system)
    return system.cache["stepper"]


def _make_stepper(system: System) -> Any:
    problem, penalty, block = system.problem, system.penalty.kernel(), system.block.kernel()
    assert penalty is not None and block is not None  # supports() has seen to it
    y = np.ravel(problem.y, order="F")  # in a graph: one node after the other
    data: dict[str, Any] = {"y": _floats(y), "w": _floats(problem.w), "offset": None}
    if problem.offset.any():
        data["offset"] = _floats(problem.offset)
    return _core.Stepper(
        loss=typed(problem.loss.kernel() or _called_back(problem)),
        penalty=typed(penalty),
        block=typed(block),
        data=data,
        settings={
            "kappa": problem.kappa,
            "fit_intercept": problem.fit_intercept,
            "step": system.step or 0.0,
            "tol": system.tol,
            "linear_stages": system.has_linear_stages,
            "looks_inside": problem.loss.looks_inside,
            **CONSTANTS,
        },
        check=_interrupts.check,
    )


def _called_back(problem: Problem) -> Kernel:
    """A loss written in Python: value and residual, and curvature; arrays go into the second argument."""

    def evaluate(eta: Array, residual: Array) -> float:
        residual[...] = problem.residual(eta)
        return float(problem.value(eta))

    def curvature(eta: Array, direction: Array) -> float:
        direction[...] = problem.curvature(eta, direction)
        return 0.0

    return Kernel("user", {"evaluate": evaluate, "curvature": curvature})


def typed(kernel: Kernel) -> Kernel:
    """The same with arrays of the types and orders that the core takes."""
    numbers = dict(kernel.numbers)
    for name, value in numbers.items():
        if isinstance(value, np.ndarray) and name != "gram":  # part of a larger matrix
            numbers[name] = np.asarray(value, INTEGERS.get(name, np.float64), order="F" if name == "dense" else "C")
    return Kernel(kernel.name, numbers)


def _floats(x: Array) -> Array:
    return np.ascontiguousarray(x, dtype=np.float64)
