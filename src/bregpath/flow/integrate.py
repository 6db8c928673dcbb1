"""The only loop over time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from bregpath._kernels import Knot, StepError, Steps
from bregpath._typing import Array
from bregpath.flow.stop import Result
from bregpath.flow.trajectory import Trajectory
from bregpath.flow.working_set import WorkingSet

__all__ = ["Flow", "integrate"]

# Bytes of a record beyond which only the steps at the requested times are kept.
MAX_RECORD = 2**29


class Flow(Protocol):
    """A dynamics: it holds its state and advances it by blocks of steps."""

    knot: Knot
    working: WorkingSet

    def advance(self, until: float) -> Steps:
        """At least one step; the last ends at or beyond ``until``, or the block is full."""
        ...


def integrate(
    flow: Flow,
    trajectory: Trajectory,
    times: Array,
    verdict: Callable[[Steps, Array], tuple[Result, float] | None],
    report: Callable[[float], None],
) -> tuple[Result, float]:
    """Advance ``flow`` to the last of ``times`` and record it; returns how it ended and when.

    ``verdict(steps, n_active)`` is asked after every block and may end the path inside of it. Interrupts are honoured
    between blocks, so that what is recorded is always a valid path.
    """
    until = float(times[-1])
    try:
        while flow.knot.t < until:
            steps = flow.advance(until)
            # The working set grows at its end, so its first columns are those of these steps.
            n_active = trajectory.add(flow.working.columns[: steps.z.shape[1]], steps)
            if trajectory.size > MAX_RECORD:
                trajectory.thin(times)
            ended = verdict(steps, n_active)
            if ended is not None:
                return ended[0], min(ended[1], until)
            report(min(flow.knot.t, until))
    except KeyboardInterrupt:
        return Result.INTERRUPTED, min(trajectory.end, until)
    except StepError:
        return Result.STALLED, min(trajectory.end, until)
    return Result.COMPLETED, until
