"""The door to the step kernels: the compiled core where it is built and applies, else the NumPy reference.

``BREGPATH_KERNELS=reference`` in the environment switches the compiled core off.
"""

from __future__ import annotations

import os
from dataclasses import replace
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from bregpath._kernels import (
    exponential,
    exponential_record,
    inverse_scale_space,
    lines,
    quadratic,
    reference,
    screening,
)
from bregpath._kernels.exponential import takes_moments
from bregpath._kernels.inverse_scale_space import Position
from bregpath._kernels.inverse_scale_space import begin as begin_events
from bregpath._kernels.lines import Knots, Lines, Points, joined
from bregpath._kernels.records import (
    BoundaryError,
    Knot,
    Memory,
    StepError,
    Steps,
    System,
    UnboundedError,
    UnstableStepError,
    cubic,
)
from bregpath._kernels.reference import NOISE, begin
from bregpath._typing import Array, IntArray
from bregpath.losses import AbstractLoss
from bregpath.penalties import AbstractPenalty
from bregpath.stores import AbstractBlock, AbstractStore

__all__ = [
    "NOISE",
    "BoundaryError",
    "Knot",
    "Knots",
    "Lines",
    "Memory",
    "Points",
    "StepError",
    "Steps",
    "System",
    "UnboundedError",
    "UnstableStepError",
    "Position",
    "advance",
    "begin",
    "begin_events",
    "block_products",
    "columns_of",
    "cubic",
    "cubics_of",
    "draw",
    "give_back",
    "has_compiled",
    "implementation",
    "joined",
    "losses",
    "needs_rows",
    "next_events",
    "passes",
    "take_columns",
    "takes_moments",
    "values",
]


class _Compiled(NamedTuple):
    """The compiled twins."""

    stages: ModuleType
    events: ModuleType
    exponential: ModuleType
    reading: ModuleType
    screening: ModuleType
    scores: ModuleType


def _find_compiled() -> _Compiled | None:
    if os.environ.get("BREGPATH_KERNELS") == "reference":
        return None
    try:
        from bregpath._kernels import compiled
    except ModuleNotFoundError:  # built without a compiler: slower, and right
        return None
    from bregpath._kernels import (
        compiled_events,
        compiled_exponential,
        compiled_reading,
        compiled_scores,
        compiled_screening,
    )

    return _Compiled(
        compiled, compiled_events, compiled_exponential, compiled_reading, compiled_screening, compiled_scores
    )


_compiled = _find_compiled()


def has_compiled() -> bool:
    """Whether the compiled core is there."""
    return _compiled is not None


def needs_rows(system: System) -> bool:
    """Whether steps are made with ``R`` and the residual; if not, knots hold none of their rows."""
    return _compiled is None or _compiled.stages.needs_rows(system)


def advance(system: System, knot: Knot, memory: Memory, until: float, max_steps: int, keep_rows: bool) -> Steps:
    """A block of steps by the fastest kernels that know the system; ``keep_rows`` keeps R at every knot."""
    if exponential.applies(system):
        if _compiled is None:
            return exponential.advance(system, knot, memory, until, max_steps, keep_rows)
        return _compiled.exponential.advance(system, knot, memory, until, max_steps, keep_rows)
    stages = _compiled.stages if _compiled is not None and _compiled.stages.supports(system) else reference
    if memory.is_stiff:
        tools = quadratic.Tools(exponential if _compiled is None else _compiled.exponential, stages, columns_of)
        steps = quadratic.advance(system, knot, memory, until, max_steps, tools)
        if steps is not None:
            return steps
        memory = quadratic.given_up(memory)
    return stages.advance(system, knot, memory, until, max_steps, keep_rows, quadratic.most_products(system))  # type: ignore[no-any-return]


def values(system: System, alpha: Array, beta: Array) -> Array:
    """Loss at several points: intercepts (T, q) and coefficients (T, m, q) of the working columns."""
    if exponential.applies(system):
        return exponential_record.values(system, alpha, beta)
    if _compiled is not None and _compiled.stages.supports(system):
        return _compiled.stages.values(system, alpha, beta)
    return reference.values(system, alpha, beta)


def next_events(
    system: System, knot: Knot, memory: Position, until: float, limit: float, max_steps: int
) -> Steps:
    """A block of the events of inverse scale space, by the fastest kernels that know the system."""
    if _compiled is not None and _compiled.events.supports(system):
        steps = _compiled.events.advance(system, knot, memory, until, limit, max_steps)
        if steps is not None:
            return steps
        block = system.block.columns(np.arange(len(system.columns)))  # the rows behind the Gram matrix
        system = system.cache.setdefault("rows", replace(system, block=block, cache={}))
    return inverse_scale_space.advance(system, knot, memory, until, limit, max_steps)


def cubics_of(penalty: AbstractPenalty) -> Any:
    """The functions `read_cubics` and `integrate_cubics` of the compiled core, if it knows the penalty; else None."""
    return _compiled.reading if _compiled is not None and _compiled.reading.supports(penalty) else None


def take_columns(x: Array, columns: IntArray) -> Array:
    """Some of the columns of what knots hold: (d, m, q)."""
    return x.take(columns, axis=1) if _compiled is None else _compiled.reading.take_columns(x, columns)  # type: ignore[no-any-return]


def losses(loss: AbstractLoss, eta: Array, y: Array, w: Array) -> Array | None:
    """Losses at several ``eta`` (T, n) by the compiled core; None where it has none that needs no constants."""
    if _compiled is None or not _compiled.scores.supports(loss):
        return None
    return _compiled.scores.losses(loss, eta, y, w)  # type: ignore[no-any-return]


def passes() -> Any:
    """The functions `lengths`, `may_cross` and `lessen` of the fastest kernels; see `screening`."""
    return screening if _compiled is None else _compiled.screening


def draw(knots: Knots, begun: Lines, first: int, holds: bool, is_cubic: bool) -> tuple[Points, Points]:
    """See `lines.draw`."""
    module = lines if _compiled is None else _compiled.reading
    return module.draw(knots, begun, first, holds, is_cubic)  # type: ignore[no-any-return]


def give_back() -> None:
    """Give memory that is free back to the system; nothing without the compiled core."""
    if _compiled is not None:
        _compiled.reading.give_back()


def columns_of(store: AbstractStore | AbstractBlock) -> Any:
    """The columns of a store or block, for `products`, `scan` and `moments`; None where the core does not know it."""
    kernel = None if _compiled is None else store.kernel()
    if kernel is None or kernel.name not in ("dense", "csc"):
        return None
    return _compiled.screening.Columns(store)  # type: ignore[union-attr]


def block_products(block: AbstractBlock, rows: Array) -> Array:
    """`AbstractBlock.rmatvec_many`, by the core if it knows the columns: BLAS may wait for its threads."""
    columns = columns_of(block)
    return block.rmatvec_many(rows) if columns is None else columns.products(rows)  # type: ignore[no-any-return]


def implementation() -> str:
    """Which kernels run: ``"reference"``, or the instruction set of the compiled core.

    Examples
    --------
    >>> implementation() in ("reference", "base", "v3", "v4")
    True
    """
    return "reference" if _compiled is None else _compiled.stages.isa()
