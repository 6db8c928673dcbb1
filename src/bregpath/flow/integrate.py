"""The only loop over time."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bregpath import _interrupts
from bregpath._kernels import BoundaryError, StepError, Steps
from bregpath._typing import Array
from bregpath.flow.base import AbstractFlow, State
from bregpath.flow.stop import Result
from bregpath.flow.trajectory import Trajectory

__all__ = ["Record", "integrate"]

# Bytes of a record beyond which only the steps at the requested times are kept.
MAX_RECORD = 2**29
# A path whose t grows by less than this share in so many steps will not end.
MIN_PROGRESS, PROGRESS_STEPS = 1e-9, 100


class Record(NamedTuple):
    """A path so far: the state it has reached, and how it came there."""

    state: State
    trajectory: Trajectory


Verdict = Callable[[Record, Steps, Array], tuple[Result, float] | None]


def integrate(
    flow: AbstractFlow,
    record: Record,
    times: Array,
    verdict: Verdict,
    report: Callable[[float], None],
    is_watched: bool,
) -> tuple[Result, float, Record]:
    """Advance ``record`` to the last of ``times``; returns how that ended, when, and the longer record.

    ``verdict(record, steps, n_active)`` is asked after every block and may end the path inside of it. Nothing of a
    record is ever changed, and one name is bound to the next one: an interrupt, whenever it comes, finds a valid path.
    """
    until = float(times[-1])
    try:
        mark_step, mark_t = record.trajectory.n_steps, record.state.knot.t
        while record.state.knot.t < until:
            _interrupts.check()
            state, steps = flow.advance(record.state, until, is_watched)
            trajectory, n_active = record.trajectory.add(steps)
            if trajectory.size > MAX_RECORD:
                trajectory = trajectory.thin(times)
            longer = Record(state, trajectory)
            ended = verdict(longer, steps, n_active)
            if ended is not None and ended[0] is Result.STOPPED and ended[1] > until * (1 + 1e-12):
                ended = None  # the rule objects only to what was not asked for
            if ended is None:
                record = longer
            if steps.interrupted:
                raise KeyboardInterrupt
            if ended is not None:
                return ended[0], min(ended[1], until), longer
            if trajectory.n_steps >= mark_step + PROGRESS_STEPS:
                if state.knot.t < mark_t * (1 + MIN_PROGRESS):
                    raise StepError(f"no progress at t={state.knot.t:g}")
                mark_step, mark_t = trajectory.n_steps, state.knot.t
            report(min(state.knot.t, until))
        return Result.COMPLETED, until, record
    except KeyboardInterrupt:
        if not (_interrupts.keeps_parts() and record.trajectory.chunks):
            raise
        return Result.INTERRUPTED, min(record.trajectory.end, until), record
    except StepError as error:
        result = Result.INDEFINITE if isinstance(error, BoundaryError) else Result.STALLED
        return result, min(record.state.knot.t, until), record
