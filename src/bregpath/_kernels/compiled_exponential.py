"""The compiled twin of `exponential`: squared loss with the Gram matrix of the columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import bregpath._kernels._core as _core
from bregpath import _interrupts
from bregpath._kernels import exponential, reference
from bregpath._kernels.compiled import room_for, typed
from bregpath._kernels.exponential_record import Stretch, block_of, coordinates, rows_behind
from bregpath._kernels.records import Knot, Memory, Steps, System

__all__ = ["advance"]

CONSTANTS = {
    name: getattr(exponential, name)
    for name in (
        *("MAX_MODES", "MAX_INNER", "MAX_ROOT", "MODE_SHARE", "KNOT_SHARE", "NEGLIGIBLE", "BREAKDOWN"),
        *("TIE", "ROUNDING", "LEAST_TRIAL", "LEAST_STEP", "LEAST_SCALE", "AFTER_EVENT", "AFTER_NONE"),
    )
} | {name: getattr(reference, name) for name in ("STEP_BITS", "NUDGE")}


def advance(system: System, knot: Knot, memory: Memory, until: float, max_steps: int, keep_rows: bool) -> Steps:
    """See `exponential.advance`."""
    rows, kappa = max_steps + exponential.MAX_INNER + 1, system.problem.kappa
    arrays: dict[str, Any] = {name: np.empty(rows) for name in ("t", "h", "value")}
    size = len(knot.z) + 1
    shapes = {"z": (rows, size), "slope": (rows, size), "integral": (rows, 0 if rows_behind(system) is None else size)}
    arrays |= room_for(shapes)
    cuts, modes = np.zeros((2, rows + 1), dtype=np.int64)
    arrays["cuts"], arrays["modes"] = cuts[1:], modes[1:]
    arrays["t"][0], arrays["integral"][0], arrays["value"][0] = knot.t, 0.0, knot.value
    arrays["z"][0], arrays["slope"][0] = coordinates(knot, kappa)
    steps, trouble = _exponential(system).advance(arrays, memory.h, until, max_steps)
    cuts, modes = cuts[: steps + 1], modes[: steps + 1].cumsum()

    def remember(k: int) -> Memory:
        step = int(cuts.searchsorted(k))
        gradients = int(modes[step])
        return replace(
            memory,
            h=float(arrays["h"][step - 1]) if step else memory.h,
            gradients=memory.gradients + gradients,
            products=memory.products + gradients * size,
        )

    made = Stretch(*(arrays[name][: cuts[-1] + 1] for name in Stretch._fields))
    return block_of(system, knot, made, cuts, remember, trouble == "interrupted", keep_rows)


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
