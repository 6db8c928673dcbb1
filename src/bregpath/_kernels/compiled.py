"""The compiled core behind the interface of the reference."""

from __future__ import annotations

from typing import Any

import numpy as np

import bregpath._kernels._core as _core
from bregpath import _interrupts
from bregpath._kernel import Kernel
from bregpath._kernels.records import Knot, Memory, StepError, Steps, System, UnstableStepError
from bregpath._typing import Array

__all__ = ["advance", "isa", "supports", "values"]

isa = _core.isa
# Loss of cpp/kernels.hpp.
LOSSES = {"gaussian": 0, "logistic": 1, "poisson": 2, "huber": 3, "multinomial": 4, "user": 5, "ising-flow": 6}


def supports(system: System) -> bool:
    """Whether the compiled core knows the penalty and can read the block; losses it does not know are called back."""
    if system.cache is not None:
        return True
    block = system.block.kernel()
    if block is None or system.penalty.kernel() is None or not system.problem.store.has_intercepts:
        return False
    return block.name != "pairwise" or system.problem.loss.kernel() is not None


def advance(system: System, knot: Knot, memory: Memory, until: float, max_steps: int, keep_rows: bool) -> Steps:
    """See `reference.advance`; without ``keep_rows`` only the last ``R``, ``residual`` and ``frozen`` are kept."""
    m, c = knot.z.shape
    n, q = knot.R.shape
    size = max_steps + 1
    rows = size if keep_rows else 1
    t, value, h, reach = np.empty((4, size))
    extra = np.zeros((size, 5))  # gradients, products, rate, age, time of the frozen curvature
    alpha, alpha_slope, alpha_direction = np.empty((3, size, len(knot.alpha)))
    z, slope, direction = np.empty((3, size, m, c))
    R, residual = np.empty((2, rows, n, q))
    extra[0, 2:] = memory.rate, memory.age, memory.frozen_t
    frozen = np.empty((rows, *memory.frozen.shape))
    t[0], value[0], h[0], reach[0] = knot.t, knot.value, memory.h, 0.0
    alpha[0], alpha_slope[0], z[0], slope[0] = knot.alpha, knot.alpha_slope, knot.z, knot.slope
    direction[0], alpha_direction[0] = memory.direction, memory.alpha_direction
    R[0], residual[0], frozen[0] = knot.R, knot.residual, memory.frozen
    done, trouble, largest = _stepper(system).advance(
        knot.t, knot.value, memory.h, memory.rate, memory.age,
        z[0], slope[0], alpha[0], alpha_slope[0], R[0], residual[0], direction[0], alpha_direction[0],
        frozen[0], memory.frozen_t,
        until, max_steps, keep_rows,
        t, value, h, reach, extra, alpha, alpha_slope, z, slope, direction, alpha_direction, R, residual, frozen,
    )  # fmt: skip
    if trouble == "unstable":
        raise UnstableStepError(system.step or 0.0, system.problem.kappa, float(t[done]), largest)
    if trouble == "stalled" and done == 0:
        raise StepError(f"no step from t={knot.t:g} is accurate")
    end = done + 1

    def remember(k: int) -> Memory:
        gradients, products, rate, age, frozen_t = extra[k].tolist()
        return Memory(
            h=float(h[k]),
            direction=direction[k],
            alpha_direction=alpha_direction[k],
            rate=rate,
            age=int(age),
            gradients=memory.gradients + int(gradients),
            products=memory.products + int(products),
            frozen=frozen[min(k, rows - 1)],
            frozen_t=frozen_t,
        )

    return Steps(
        columns=system.columns,
        t=t[:end],
        alpha=alpha[:end],
        alpha_slope=alpha_slope[:end],
        z=z[:end],
        slope=slope[:end],
        R=R[:end],
        residual=residual[:end],
        value=value[:end],
        reach=reach[:end],
        memory=remember,
        interrupted=trouble == "interrupted",
    )


def values(system: System, alpha: Array, beta: Array) -> Array:
    """See `reference.values`."""
    out = np.empty(len(alpha))
    _stepper(system).values(_floats(alpha), _floats(beta), out)
    return out


def _stepper(system: System) -> Any:
    """The compiled stepper of a system, made once."""
    if system.cache is None:
        object.__setattr__(system, "cache", _make_stepper(system))
    return system.cache


def _make_stepper(system: System) -> Any:
    problem, penalty, block = system.problem, system.penalty, system.block.kernel()
    arrays = ("dense", "values", "indices", "indptr", "center", "scale", "gram", "gram_mean", "gram_target")
    names = (*arrays, "user_evaluate", "user_bend", "source", "target", "node_states")
    parts: dict[str, Any] = {**dict.fromkeys(names), "y_mean": 0.0, "y_square": 0.0, **block.numbers}
    loss, mirror, y = problem.loss.kernel() or Kernel("user", {}), penalty.kernel(), problem.y
    if block.name == "pairwise":  # a regression a node, on the data of that node
        y = np.ravel(problem.y, order="F")
        parts["node_states"] = loss.numbers["nodes"]
        parts.update(source=_integers(parts["source"]), target=_integers(parts["target"]))
    elif loss.name == "user":
        parts.update(zip(("user_evaluate", "user_bend"), _callbacks(problem), strict=True))
    return _core.Stepper(
        loss=LOSSES[loss.name],
        parameter=float(loss.numbers.get("threshold", 0.0)),
        y=_floats(y),
        w=_floats(problem.w),
        offset=_floats(problem.offset) if problem.offset.any() else None,
        weights=_floats(penalty.weights),
        lower=_floats(penalty.lower),
        upper=_floats(penalty.upper),
        groups=_integers(mirror.numbers["groups"]) if mirror.name == "group" else None,
        kappa=problem.kappa,
        fit_intercept=problem.fit_intercept,
        fixed_step=system.step or 0.0,
        tol=system.tol,
        linear_stages=system.has_linear_stages,
        check=_interrupts.check,
        **parts,
    )


def _callbacks(problem: Any) -> tuple[Any, Any]:
    """Value and residual, and curvature, of a loss written in Python; results go into the second argument."""

    def evaluate(eta: Array, residual: Array) -> float:
        residual[...] = problem.residual(eta)
        return float(problem.value(eta))

    def bend(eta: Array, direction: Array) -> float:
        direction[...] = problem.curvature(eta, direction)
        return 0.0

    return evaluate, bend


def _integers(x: Array) -> Array:
    return np.ascontiguousarray(x, dtype=np.int64)


def _floats(x: Array) -> Array:
    return np.ascontiguousarray(x, dtype=np.float64)
