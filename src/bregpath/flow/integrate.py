"""The only loop over time: of one path, or of many on one clock."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from bregpath import _interrupts
from bregpath._kernels import BoundaryError, StepError, Steps, UnboundedError, UnstableStepError
from bregpath._threads import Each, one_by_one
from bregpath._typing import Array
from bregpath.flow.base import AbstractFlow, State
from bregpath.flow.stop import Result
from bregpath.flow.trajectory import Trajectory

__all__ = ["AbstractTrack", "Advances", "Record", "integrate"]

# A path whose t grows by less than this share in so many steps will not end.
MIN_PROGRESS, PROGRESS_STEPS = 1e-9, 100
# How a path ends that finds no further step.
RESULTS = {BoundaryError: Result.INDEFINITE, UnboundedError: Result.UNBOUNDED}


class Advances(Protocol):
    """What takes part in `integrate`."""

    def reach(self, until: float) -> None:
        """Advance to a time."""


def integrate(
    tracks: Sequence[Advances],
    ticks: Iterable[float],
    verdict: Callable[[float], bool] | None = None,
    each: Each = one_by_one,
) -> None:
    """Advance all tracks together, from tick to tick, until ``verdict(tick)`` says that it is enough.

    A single path is one track with one tick. Tracks do not know of each other, so that ``each`` may share them out to
    threads; an error or Ctrl-C in one of them ends all.
    """
    for tick in ticks:
        each(lambda track, until=tick: track.reach(until), tracks)  # type: ignore[misc]
        if verdict is not None and verdict(tick):
            break


class Record(NamedTuple):
    """A path so far: the state it has reached, how it came there, and whether it has ended by itself."""

    state: State
    trajectory: Trajectory
    result: Result | None = None  # None: it goes on
    end: float = np.inf  # when it ended


class AbstractTrack(ABC):
    """A path in the making, which goes on to later times as often as it is asked.

    Nothing of a record is ever changed, and one name is bound to the next one: an interrupt, whenever it comes, leaves
    a valid path. The clock is in the user's units, records in those of the flow.

    Attributes
    ----------
    flow : AbstractFlow or None
    record : Record
    unit : float
        Time of the flow over that of the clock.
    is_watched : bool
        Whether blocks are short, because somebody wants to see every few steps.
    report : callable
        Is told the time of the flow after each block.
    """

    flow: AbstractFlow | None = None
    record: Record
    unit: float
    is_watched: bool = False
    report: Callable[[float], None] | None = None

    @abstractmethod
    def start(self) -> None:
        """Set flow, record and unit; called when the first time is asked for."""

    @abstractmethod
    def judge(self, record: Record, steps: Steps, count: Callable[[], Array]) -> tuple[Result, float] | None:
        """After every block: None, or how and when inside of it the path ends by itself."""

    def reach(self, until: float) -> None:
        """Advance to a time of the clock; a path that has ended by itself stays as it is."""
        if self.flow is None:
            self.start()
        if self.record.result is not None:
            return
        try:
            self._advance(until * self.unit)
        except UnstableStepError as error:
            raise error.in_units(self.unit) from None
        except StepError as error:
            result = RESULTS.get(type(error), Result.STALLED)
            self.record = self.record._replace(result=result, end=self.record.state.knot.t)

    def _advance(self, until: float) -> None:
        assert self.flow is not None
        mark_step, mark_t = self.record.trajectory.n_steps, self.record.state.knot.t
        while self.record.state.knot.t < until:
            _interrupts.check()
            state, steps = self.flow.advance(self.record.state, until, self.is_watched)
            trajectory, count = self.record.trajectory.add(steps)
            longer = Record(state, trajectory.compacted())
            ended = self.judge(longer, steps, count)
            if ended is not None and ended[0] is Result.STOPPED and ended[1] > until * (1 + 1e-12):
                ended = None  # the rule objects only to what was not asked for
            if ended is None:
                self.record = longer
            if steps.interrupted:
                raise KeyboardInterrupt
            if ended is not None:
                self.record = longer._replace(result=ended[0], end=ended[1])
                return
            if trajectory.n_steps >= mark_step + PROGRESS_STEPS:
                if state.knot.t < mark_t * (1 + MIN_PROGRESS):
                    raise StepError(f"no progress at t={state.knot.t:g}")
                mark_step, mark_t = trajectory.n_steps, state.knot.t
            if self.report is not None:
                self.report(min(state.knot.t, until))
