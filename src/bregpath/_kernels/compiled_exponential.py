"""The compiled twin of `exponential`: squared loss with the Gram matrix of the columns."""

from __future__ import annotations

from typing import Any

import numpy as np

import bregpath._kernels._core as _core
from bregpath import _interrupts
from bregpath._kernels import crossing, exponential, reference
from bregpath._kernels.compiled import Layout, typed
from bregpath._kernels.exponential_record import Stretch, block_of, rows_behind, write_coordinates
from bregpath._kernels.records import Knot, Memory, StepError, Steps, System
from bregpath._records import changed
from bregpath._typing import Array, IntArray

__all__ = ["advance"]

KNOTS = ("z", "slope", "integral", "t", "value")
CONSTANTS = {
    name: getattr(exponential, name)
    for name in (
        *("MAX_MODES", "MAX_INNER", "MODE_SHARE", "KNOT_SHARE", "START_SHARE", "NEGLIGIBLE", "BREAKDOWN", "SELDOM"),
        *("SHIFT", "LEAST_SHIFT", "SHORTER", "TIE", "LEAST_TRIAL", "LEAST_STEP", "LEAST_SCALE"),
        *("AFTER_EVENT", "AFTER_NONE"),
    )
}
CONSTANTS |= {name: getattr(crossing, name) for name in ("MAX_ROOT", "ROUNDING")}
CONSTANTS |= {name: getattr(reference, name) for name in ("STEP_BITS", "NUDGE")}


def advance(
    system: System, knot: Knot, memory: Memory, until: float, max_steps: int, keep_rows: bool, limit: float = np.inf
) -> Steps:
    """See `exponential.advance`."""
    rows, size, kappa = max_steps + exponential.MAX_INNER + 1, len(knot.z) + 1, system.problem.kappa
    key = f"layout of {max_steps} knots, {keep_rows}"
    if key not in system.cache:
        integrals = 0 if rows_behind(system) is None else size
        shapes = dict(zip(KNOTS, [(rows, size), (rows, size), (rows, integrals), (rows,), (rows,)], strict=True))
        system.cache[key] = Layout({**shapes, "h": (rows,)}, is_one_piece=not keep_rows)
    arrays = system.cache[key].arrays()
    arrays["t"][0], arrays["value"][0], arrays["integral"][0] = knot.t, knot.value, 0.0
    write_coordinates(knot, kappa, arrays["z"][0], arrays["slope"][0])
    cuts, modes = marks = np.empty((2, rows + 1), dtype=np.int64)
    marks[:, 0] = 0
    given = {**arrays, "cuts": cuts[1:], "modes": modes[1:]}
    steps, trouble = _exponential(system).advance(given, memory.h, until, max_steps, limit)
    if trouble == "stalled" and steps == 0:
        raise StepError(f"no step from t={knot.t:g} has few modes")
    h, cuts, modes = arrays["h"], cuts[: steps + 1], modes[: steps + 1].cumsum()
    knots = int(cuts[-1]) + 1

    def remember(k: int) -> Memory:
        step = int(cuts.searchsorted(k))
        gradients = int(modes[step])
        return changed(
            memory,
            h=float(h[step - 1]) if step else memory.h,
            gradients=memory.gradients + gradients,
            products=memory.products + gradients * size,
        )

    z, slope, integral, t, value = (arrays[name][:knots] for name in KNOTS)
    made = Stretch(t.copy(), z, slope, integral, value.copy())  # what is recorded as it is does not keep all the room
    return block_of(system, knot, made, cuts, remember, trouble == "interrupted", keep_rows, _predictors)


def _predictors(system: System, columns: IntArray, alpha: Array, beta: Array) -> Array:
    """See `exponential_record.predictors`."""
    X = rows_behind(system)
    assert X is not None  # somebody asks for rows
    if "columns" not in system.cache:
        system.cache["columns"] = _core.Store(len(X), {"dense": np.asfortranarray(X)})
    out, beta = np.empty((len(alpha), len(X))), np.ascontiguousarray(beta)
    system.cache["columns"].predict({"columns": columns, "alpha": alpha, "beta": beta, "out": out})
    return out


def _exponential(system: System) -> Any:
    """The compiled object of a system, made once."""
    if "exponential" not in system.cache:
        penalty, block, problem = system.penalty.kernel(), system.block.kernel(), system.problem
        assert penalty is not None and block is not None  # exponential.applies() has seen to it
        settings = {"kappa": problem.kappa, "tol": system.tol, "fit_intercept": problem.fit_intercept, **CONSTANTS}
        system.cache["exponential"] = _core.Exponential(
            penalty=typed(penalty).numbers, block=typed(block).numbers, settings=settings, check=_interrupts.check
        )
    return system.cache["exponential"]
