"""The only loop over time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from bregpath._kernels import Knot, StepError
from bregpath._typing import IntArray
from bregpath.flow.stop import Result
from bregpath.flow.trajectory import Trajectory

__all__ = ["Flow", "integrate"]


class _Working(Protocol):
    columns: IntArray


class Flow(Protocol):
    """A dynamics: it holds its state and advances it by blocks of steps."""

    knot: Knot
    working: _Working

    def advance(self, until: float) -> list[Knot]:
        """The present knot and those after it, at least one, the last at or beyond ``until`` or at a block's end."""
        ...


def integrate(
    flow: Flow,
    trajectory: Trajectory,
    until: float,
    verdict: Callable[[Knot, int], Result | None],
    report: Callable[[float], None],
) -> tuple[Result, float]:
    """Advance ``flow`` to ``until`` and record it; returns how it ended and the time at which the path ends.

    ``verdict(knot, n_active)`` is asked after every step. Interrupts are honoured between blocks, so that what is
    recorded is always a valid path.
    """
    last = flow.knot.t
    try:
        while flow.knot.t < until:
            knots = flow.advance(until)
            # The working set grows at its end, so its first columns are those of these knots.
            active = trajectory.add(flow.working.columns[: len(knots[0].z)], knots)
            for knot, n_active in zip(knots[1:], active[1:], strict=True):
                result = verdict(knot, int(n_active))
                if result is not None:
                    overshoots = result is Result.STOPPED and getattr(verdict, "overshoots", False)
                    return result, last if overshoots else min(knot.t, until)
                last = knot.t
            report(min(last, until))
    except KeyboardInterrupt:
        return Result.INTERRUPTED, min(last, until)
    except StepError:
        return Result.STALLED, min(last, until)
    return Result.COMPLETED, until
