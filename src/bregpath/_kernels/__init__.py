"""The door to the step kernels: the compiled core where it is built and applies, else the NumPy reference.

``BREGPATH_KERNELS=reference`` in the environment switches the compiled core off.
"""

from __future__ import annotations

import os
from types import ModuleType

from bregpath._kernels import reference
from bregpath._kernels.records import BoundaryError, Knot, Memory, StepError, Steps, System, UnstableStepError, cubic
from bregpath._kernels.reference import NOISE, begin
from bregpath._typing import Array

__all__ = [
    "NOISE",
    "BoundaryError",
    "Knot",
    "Memory",
    "StepError",
    "Steps",
    "System",
    "UnstableStepError",
    "advance",
    "begin",
    "cubic",
    "has_compiled",
    "implementation",
    "values",
]


def _find_compiled() -> ModuleType | None:
    if os.environ.get("BREGPATH_KERNELS") == "reference":
        return None
    try:
        from bregpath._kernels import compiled
    except ModuleNotFoundError:  # built without a compiler: slower, and right
        return None
    return compiled


_compiled = _find_compiled()


def has_compiled() -> bool:
    """Whether the compiled core is there."""
    return _compiled is not None


def advance(system: System, knot: Knot, memory: Memory, until: float, max_steps: int, keep_rows: bool) -> Steps:
    """A block of steps by the fastest kernels that know the system; ``keep_rows`` keeps R at every knot."""
    if _compiled is not None and _compiled.supports(system):
        return _compiled.advance(system, knot, memory, until, max_steps, keep_rows)
    return reference.advance(system, knot, memory, until, max_steps)


def values(system: System, alpha: Array, beta: Array) -> Array:
    """Loss at several points: intercepts (T, q) and coefficients (T, m, q) of the working columns."""
    if _compiled is not None and _compiled.supports(system):
        return _compiled.values(system, alpha, beta)
    return reference.values(system, alpha, beta)


def implementation() -> str:
    """Which kernels run: ``"reference"``, or the instruction set of the compiled core.

    Examples
    --------
    >>> implementation() in ("reference", "base", "v3", "v4")
    True
    """
    return "reference" if _compiled is None else _compiled.isa()
