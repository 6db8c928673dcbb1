"""The record of a path: all its knots, from which it is read at any time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from operator import itemgetter

import numpy as np

from bregpath import _kernels
from bregpath._kernels import Knots, Steps, take_columns
from bregpath._records import changed
from bregpath._typing import Array, BoolArray, IntArray
from bregpath.flow.era import Era, Opened, knots_of
from bregpath.flow.reading import AbstractReading, Chunk, Passages
from bregpath.penalties import AbstractPenalty

__all__ = ["Chunk", "Trajectory"]

# Bytes of all knots beyond which earlier ones become eras.
MOST_BYTES = 2**27
# Of `tol`: what the coefficients of eras may err.
ERA_SHARE = 0.1
# Steps after which a long record gives back to the system what is free.
GIVE_BACK_STEPS = 256
# Numbers of each kind that are made points of at once.
ERA_NUMBERS = 2**16


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
    order: IntArray = field(default_factory=lambda: np.zeros(0, dtype=int))
    # Changes of support: column, chunk and row of the knot after which it changed, entered or left.
    events: list[tuple[int, int, int, bool]] = field(default_factory=list)
    # Before the chunks: stretches of which only what moves is kept, the last of which may go on, and their events.
    eras: tuple[Era, ...] = ()
    opened: Opened | None = None
    passed: tuple[Passages, ...] = ()
    located: Array = field(default_factory=lambda: np.zeros((0, 3)))  # or column, time, entered or left
    tol: float = 0.0  # of the coefficients
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
    def is_whole(self) -> bool:
        """Whether all knots are there, of which other means over time can be made."""
        return not self.eras and self.opened is None

    @property
    def size(self) -> int:
        """Bytes of the record."""
        opened = 0 if self.opened is None else self.opened.size
        return self._chunk_bytes + opened + sum(era.size for era in self.eras)

    @property
    def _chunk_bytes(self) -> int:
        return sum(chunk.z.nbytes + chunk.slope.nbytes for chunk in self.chunks)

    @property
    def parts(self) -> list[Era | Chunk]:
        """All of the record, in order of time."""
        opened = () if self.opened is None or not self.opened.t else (self.opened.era,)
        return [*self.eras, *opened, *self.chunks]

    def compacted(self) -> Trajectory:
        """The record, of whose earlier knots only what moves is kept once all of them are many."""
        if len(self.chunks) < 2 or not (self.eras or self.opened is not None or self._chunk_bytes > MOST_BYTES):
            return self
        out = self
        for chunk in self.chunks[:-1]:
            out = out._with_past(chunk)
        # Blocks of steps come and go, each a little larger than the one before, between what is kept: without this
        # holes took as much as the record.
        if self.n_steps // GIVE_BACK_STEPS != (self.n_steps - len(self.chunks[-1].t)) // GIVE_BACK_STEPS:
            _kernels.give_back()
        return replace(out, chunks=self.chunks[-1:])

    def closed(self) -> Trajectory:
        """The same record, of which no era goes on."""
        if self.opened is None:
            return self
        eras = [part for part in self.parts if isinstance(part, Era)]
        located = self._located(list(self.passed))
        return replace(self, eras=tuple(eras), opened=None, passed=(), located=located)

    def _with_past(self, chunk: Chunk) -> Trajectory:
        """The record whose first chunk is a part of eras; what it counts as chunks are those behind it."""
        columns = self.order[: chunk.z.shape[1]]
        trust = self.reading.trust(chunk, columns)
        passed = self._passages([event for event in self.events if event[1] == 0], trust)
        later = [(column, number - 1, row, up) for column, number, row, up in self.events if number]
        eras, opened = self.eras, self.opened or Opened(chunk.z.shape[2])
        step = max(ERA_NUMBERS // max(chunk.z[0].size, 1), 1)
        for first in range(0, len(trust), step):
            rows, steps = slice(first, first + step + 1), slice(first, first + step)
            part = replace(chunk, **{f.name: getattr(chunk, f.name)[rows] for f in fields(chunk)})
            opened = opened.followed_by(part, self.knots(part, columns, trust[steps]), self.reading)
            if opened.is_full:
                eras, opened = (*eras, opened.era), Opened(opened.n_outputs)
        return replace(
            self, chunks=self.chunks[1:], events=later, eras=eras, opened=opened, passed=(*self.passed, *passed)
        )

    def knots(self, chunk: Chunk, columns: IntArray, trust: Array) -> dict[str, Knots]:
        """What the curves of an era pass."""
        return knots_of(chunk, self.reading, columns, trust, ERA_SHARE * self.tol)

    def add(self, steps: Steps) -> tuple[Trajectory, Callable[[], Array]]:
        """The record with a block of steps, and what counts the active columns at each of its knots."""
        columns = steps.columns
        active, changes = self.reading.changes(columns, steps.z)
        number = len(self.chunks)
        named = columns.take([j for _, j, _ in changes]).tolist() if changes else ()
        events = [(column, number, k, enters) for (k, _, enters), column in zip(changes, named, strict=True)]
        events.sort(key=itemgetter(3), reverse=True)  # first what enters
        new = [column for column, _, _, enters in events if enters]
        if not number and active:
            # Free columns, and the first entry itself if rounding puts it beyond its threshold.
            first = columns[active]
            events[:0] = [(j, 0, 0, True) for j in first[~self.penalty.free_among(first)].tolist()]
            new[:0] = first.tolist()
        order = self._order_with(new) if new else self.order
        place = np.empty(len(self.penalty.weights), dtype=int)
        place[columns] = np.arange(len(columns))
        kept = place[order]
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

    def _order_with(self, columns: list[int]) -> IntArray:
        """The columns so far, and behind them those of some that are new, in their order."""
        known = np.zeros(len(self.penalty.weights), dtype=bool)
        known[self.order] = True
        new = [column for column in dict.fromkeys(columns) if not known[column]]
        return np.concatenate([self.order, new]) if new else self.order

    def finished(self, chunk: Chunk, order: IntArray) -> Chunk:
        """The next chunk as it is kept; ``order`` has its columns."""
        return chunk

    @property
    def start(self) -> float:
        """Time of the first knot; nothing moves before it."""
        if self.eras:
            return float(self.eras[0].t[0])
        if self.opened is not None and self.opened.t:
            return float(self.opened.t[0][0])
        return float(self.chunks[0].t[0]) if self.chunks else np.inf

    @property
    def end(self) -> float:
        """Time of the last knot."""
        return float(self.chunks[-1].t[-1]) if self.chunks else np.inf

    def read(self, times: Array) -> tuple[Array, IntArray, Array]:
        """Intercepts ``(T, a)``, the columns kept ``(E,)``, and their coefficients ``(T, E, q)`` at some times."""
        alpha, columns, beta = self._null(len(times))
        for part, here in self._holders(times):
            known = part.n_columns
            alpha[here], beta[here, :known] = part.models(self.reading, columns[:known], times[here])
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
        out = np.full(len(times), self.parts[0].value[0])
        for part, here in self._holders(times):
            out[here] = self.reading.losses(part, times[here])
        return out

    def _holders(self, times: Array) -> Iterator[tuple[Era | Chunk, IntArray | slice]]:
        """Parts with the numbers of the times inside them; not those before the first knot, where nothing moves."""
        parts = self.parts
        if not parts:
            return
        in_order = (times[1:] >= times[:-1]).all()
        by_time = times if in_order else times[order := times.argsort(kind="stable")]
        firsts = by_time.searchsorted([part.t[0] for part in parts]).tolist()
        firsts[0] = int(by_time.searchsorted(parts[0].t[0], side="right"))
        for part, first, end in zip(parts, firsts, [*firsts[1:], len(times)], strict=True):
            if first < end:
                yield part, slice(first, end) if in_order else order[first:end]

    def event_times(self) -> tuple[IntArray, Array, BoolArray]:
        """Column, exact time and direction (True: entered) of every change of the support, in order of time."""
        columns, times, entered = self._located([*self.passed, *self._passages(self.events)]).T
        by_time = np.argsort(times, kind="stable")
        return columns[by_time].astype(int), times[by_time], entered[by_time] != 0

    def _located(self, some: list[Passages]) -> Array:
        """Column, exact time and direction of what is located already and of some other events.

        All first events of the columns are located at once, then all second ones, and so on: a group moves as one,
        so its threshold is evaluated on whole groups.
        """
        if not some:
            return self.located
        passages = Passages.joined(some)
        times = np.empty(len(passages.column))
        by_column = np.argsort(passages.column, kind="stable")
        first = np.searchsorted(passages.column[by_column], passages.column[by_column])
        turn = np.empty(len(times), dtype=int)
        turn[by_column] = np.arange(len(times)) - first
        for k in range(int(turn.max()) + 1):
            batch = (turn == k).nonzero()[0]
            times[batch] = self.reading.locate(passages.take(batch))
        return np.concatenate([self.located, np.stack([passages.column, times, passages.enters], axis=1)])

    def _passages(self, events: list[tuple[int, int, int, bool]], trust: Array | None = None) -> list[Passages]:
        """Some events with their steps; ``trust`` of the chunk where they are all of one."""
        place, by_chunk = np.empty(len(self.penalty.weights), dtype=int), dict[int, list[tuple[int, int, bool]]]()
        place[self.order] = np.arange(len(self.order))
        for column, number, row, enters in events:
            by_chunk.setdefault(number, []).append((column, row, enters))
        out = []
        for number, some in by_chunk.items():
            of, rows, up = (np.array(part) for part in zip(*some, strict=True))
            chunk = self.chunks[number]
            known = self.order[: chunk.z.shape[1]]
            out.append(self.reading.passages(chunk, known, rows, place[of], up, trust))
        return out
