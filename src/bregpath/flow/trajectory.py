"""The record of a path: all its knots, from which it is read at any time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace

import numpy as np

from bregpath._kernels import Steps, take_columns
from bregpath._records import changed
from bregpath._typing import Array, BoolArray, IntArray
from bregpath.flow.reading import AbstractReading, Chunk, Event
from bregpath.penalties import AbstractPenalty

__all__ = ["Chunk", "Trajectory"]


@dataclass(frozen=True, eq=False)
class Trajectory:
    """All knots of a path; a record with more of them is a new one.

    Only columns that were ever active are kept, in the order in which they became so. What lies between two knots the
    `reading` knows.
    """

    reading: AbstractReading
    alpha_null: Array  # (a,) before the first knot
    beta_null: Array  # (p, q) free coefficients before the first knot
    chunks: list[Chunk] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    # Changes of support: column, chunk and row of the knot after which it changed, entered or left.
    events: list[tuple[int, int, int, bool]] = field(default_factory=list)
    # Events of chunks that were thinned: column, time, entered or left.
    located: list[tuple[int, float, bool]] = field(default_factory=list)
    is_thinned: bool = False
    n_steps: int = 0

    @property
    def penalty(self) -> AbstractPenalty:
        return self.reading.penalty

    @property
    def kappa(self) -> float:
        return self.reading.kappa

    @property
    def average(self) -> str | None:
        """How models of different times are averaged, if they are."""
        return None

    @property
    def plain(self) -> Trajectory:
        """The record without an average."""
        return self

    @property
    def size(self) -> int:
        """Bytes of the record."""
        return sum(chunk.z.nbytes + chunk.slope.nbytes for chunk in self.chunks)

    def thin(self, times: Array) -> Trajectory:
        """Only the steps that hold one of ``times``, and the exact times of all events so far."""
        located = list(zip(*(x.tolist() for x in self.event_times()), strict=True))
        chunks = [_keep(chunk, times) for chunk in self.chunks]
        return replace(self, chunks=chunks, events=[], located=located, is_thinned=True)

    def add(self, steps: Steps) -> tuple[Trajectory, Callable[[], Array]]:
        """The record with a block of steps, and what counts the active columns at each of its knots."""
        columns = steps.columns
        active, changes = self.reading.changes(columns, steps.z)
        first, entered = list[int](), list[tuple[int, int]]()
        if not self.chunks:
            # Free columns, and the first entry itself if rounding puts it beyond its threshold.
            at_once = columns[active]
            first = at_once.tolist()
            entered += [(0, column) for column in at_once[~self.penalty.free_among(at_once)].tolist()]
        named = columns.take([j for _, j, _ in changes]).tolist() if changes else ()
        entered += [(k, column) for (k, _, enters), column in zip(changes, named, strict=True) if enters]
        left = [(k, column) for (k, _, enters), column in zip(changes, named, strict=True) if not enters]
        order = list(dict.fromkeys([*self.order, *first, *(column for _, column in entered)]))
        number = len(self.chunks)
        events = [(column, number, k, up) for up, some in ((True, entered), (False, left)) for k, column in some]
        sorter = columns.argsort()
        kept = sorter[columns.searchsorted(order, sorter=sorter)]
        chunk = Chunk(
            t=steps.t,
            alpha=steps.alpha,
            alpha_slope=steps.alpha_slope,
            z=take_columns(steps.z, kept),
            slope=take_columns(steps.slope, kept),
            value=steps.value,
        )
        longer = changed(
            self,
            chunks=[*self.chunks, self.finished(chunk, order)],
            order=order,
            events=self.events + events,
            n_steps=self.n_steps + steps.n_steps,
        )
        return longer, lambda: np.count_nonzero(self.reading.active(columns, steps.z), axis=1)

    def finished(self, chunk: Chunk, order: list[int]) -> Chunk:
        """The next chunk as it is kept; ``order`` has its columns."""
        return chunk

    @property
    def start(self) -> float:
        """Time of the first knot; nothing moves before it."""
        return float(self.chunks[0].t[0]) if self.chunks else np.inf

    @property
    def end(self) -> float:
        """Time of the last knot."""
        return float(self.chunks[-1].t[-1]) if self.chunks else np.inf

    def read(self, times: Array) -> tuple[Array, IntArray, Array]:
        """Intercepts ``(T, a)``, the columns kept ``(E,)``, and their coefficients ``(T, E, q)`` at some times."""
        alpha, columns, beta = self._null(len(times))
        for chunk, here in self._holders(times):
            known = chunk.z.shape[1]
            alpha[here], beta[here, :known] = self.reading.between(chunk, columns[:known], times[here])
        return alpha, columns, beta

    def _null(self, count: int) -> tuple[Array, IntArray, Array]:
        """What `read` returns of so many times before the first knot."""
        ever = self.order if self.chunks else np.flatnonzero(np.any(self.beta_null != 0, axis=1))
        columns = np.array(ever, dtype=int)
        null = self.beta_null[columns]
        alpha, beta = np.empty((count, *self.alpha_null.shape)), np.empty((count, *null.shape))
        alpha[:], beta[:] = self.alpha_null, null
        return alpha, columns, beta

    def losses(self, times: Array) -> Array | None:
        """Loss at some times, if it follows from that at the knots."""
        if not (self.reading.knows_losses and self.chunks):
            return None
        out = np.full(len(times), self.chunks[0].value[0])
        for chunk, here in self._holders(times):
            out[here] = self.reading.losses(chunk, times[here])
        return out

    def _holders(self, times: Array) -> Iterator[tuple[Chunk, IntArray | slice]]:
        """Chunks with the numbers of the times inside them; not those before the first knot, where nothing moves."""
        if not self.chunks:
            return
        starts = np.array([c.t[0] for c in self.chunks])
        holder = starts.searchsorted(times, side="right") - 1
        holder[times <= starts[0]] = -1
        for index in sorted(set(holder.tolist()) - {-1}):
            here = (holder == index).nonzero()[0]
            first, end = int(here[0]), int(here[-1]) + 1
            yield self.chunks[index], slice(first, end) if end - first == len(here) else here

    def event_times(self) -> tuple[IntArray, Array, BoolArray]:
        """Column, exact time and direction (True: entered) of every change of the support, in order of time.

        All first events of the columns are located at once, then all second ones, and so on: a group moves as one,
        so its threshold is evaluated on whole groups.
        """
        times = np.full(len(self.events), np.nan)
        position = {column: i for i, column in enumerate(self.order)}
        pending: dict[int, list[int]] = {}
        for i, event in enumerate(self.events):
            pending.setdefault(event[0], []).append(i)
        order = np.array(self.order, dtype=int)
        for turn in range(max(map(len, pending.values()), default=0)):
            batch = [queue[turn] for queue in pending.values() if len(queue) > turn]
            events = [Event(self.chunks[c], r, position[j], up) for j, c, r, up in (self.events[i] for i in batch)]
            times[batch] = self.reading.locate(events, order)
        columns = np.array([e[0] for e in self.located + self.events], dtype=int)
        entered = np.array([e[-1] for e in self.located + self.events], dtype=bool)
        times = np.concatenate([[e[1] for e in self.located], times])
        by_time = np.argsort(times, kind="stable")
        return columns[by_time], times[by_time], entered[by_time]


def _keep(chunk: Chunk, times: Array) -> Chunk:
    """The ends of a chunk, and the steps that hold one of ``times``."""
    inside = times[(times > chunk.t[0]) & (times <= chunk.t[-1])]
    row = chunk.row_of(inside)
    rows = np.unique(np.concatenate([[0, len(chunk.t) - 1], row, row + 1]))
    if len(rows) == len(chunk.t):
        return chunk
    return replace(chunk, **{f.name: getattr(chunk, f.name)[rows] for f in fields(chunk)})
