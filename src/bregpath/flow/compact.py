"""What a long record keeps of curves: the few points that they need.

A curve is drawn by straight lines that pass all its knots at a small distance. A line goes on as long as one from where
it began still does (the swing filter: Elmeleegy et al., PVLDB 2 (2009) 145-156), so that a knot is looked at once and
forgotten. A step that bends too much for a line keeps its cubic, and so does one in which a curve comes to rest or
leaves it: entry and exit times stay what they are. What is at rest needs no points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bregpath._typing import Array, BoolArray, IntArray

__all__ = ["MOST_ROWS", "Curves", "Grid", "Knots", "Sketch"]

# Value at fraction theta of a step of which the slopes count for a time: (ends, slopes, time, theta).
Curve = Callable[[Array, Array, Array, Array], Array]

MOST_ROWS = 2**15 - 1  # numbers of knots have two bytes, and a sign
ONCE = 2**17  # numbers that are read at once


class Grid(NamedTuple):
    """Times of consecutive knots, and the share of the slopes that counts in each step between them."""

    t: Array  # (d,)
    trust: Array  # (d - 1,)


class Knots(NamedTuple):
    """Some consecutive knots ``(d, c)`` of curves."""

    grid: Grid
    value: Array
    slope: Array
    room: Array  # distance of the value from where the curve comes to rest; 0 at rest
    error: float  # that may be made of them


@dataclass(frozen=True, eq=False)
class Curves:
    """Functions of time, each by points on a grid of its own choice."""

    starts: IntArray  # (c + 1,) where each curve begins in the next two
    row: Array  # numbers of the knots; ``~row`` where the curve is at rest
    value: Array
    bends: IntArray  # curve times knots plus knot of the steps that keep their cubics, in order
    cubics: Array  # (..., 3) value at their start, slopes at both ends

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(x.nbytes for x in vars(self).values())

    def read(self, grid: Grid, times: Array, curve: Curve, holds: bool) -> tuple[Array, BoolArray]:
        """Values ``(T, c)`` at some times, and which of them move; zero where they are at rest and nothing is kept.

        Between two points there is a line, or, where a value ``holds``, the second one.
        """
        count, d = len(self.starts) - 1, len(grid.t)
        out, moves = np.zeros((len(times), count)), np.zeros((len(times), count), dtype=bool)
        row = np.where(self.row < 0, ~self.row, self.row).astype(np.int64)
        key = row + d * np.repeat(np.arange(count), np.diff(self.starts))
        step, batch = grid.t[1:-1].searchsorted(times), max(ONCE // max(count, 1), 1)
        for first in range(0, len(times), batch):
            wanted = step[first : first + batch, None] + d * np.arange(count)
            last = key.searchsorted(wanted, side="right") - 1
            which, column = ((last >= self.starts[:-1]) & (last + 1 < self.starts[1:])).nonzero()
            a, number = last[which, column], wanted[which, column]
            ends, both = self.value[[a, a + 1]], grid.t[row[[a, a + 1]]]
            length = both[1] - both[0]
            theta = (times[first + which] - both[0]) / length
            found = ends[1] if holds else ends[0] + theta * (ends[1] - ends[0])
            place = self.bends.searchsorted(number)
            bent = (np.append(self.bends, -1)[place] == number).nonzero()[0]
            start, *slopes = self.cubics[place[bent]].T
            reach = length[bent] * grid.trust[row[a[bent]]]
            found[bent] = curve(np.stack([start, ends[1][bent]]), np.stack(slopes), reach, theta[bent])
            out[first + which, column] = found
            moves[first + which, column] = (self.row[a] >= 0) | (self.row[a + 1] >= 0)
        return out, moves


class Points(NamedTuple):
    """Points of curves, in the order of time."""

    column: Array  # four bytes each
    row: Array  # two
    value: Array  # or what is kept of a step


class Lines(NamedTuple):
    """The lines that are being drawn, one a curve: where they begin, and between which slopes they pass all knots."""

    t: Array
    value: Array
    row: IntArray  # -1: none yet
    low: Array
    high: Array

    def at(self, which: IntArray, t: float, holds: bool) -> Array:
        """Where some of them are."""
        lever = 1.0 if holds else t - self.t[which]
        return self.value[which] + lever * 0.5 * (self.low[which] + self.high[which])  # type: ignore[no-any-return]

    def begin(self, which: IntArray, row: int, t: float, value: Array | float) -> None:
        """Start some of them anew."""
        self.t[which], self.value[which], self.row[which] = t, value, row
        self.low[which], self.high[which] = -np.inf, np.inf


@dataclass(frozen=True, eq=False)
class Sketch:
    """Curves that are being drawn, from the first knot of a grid on."""

    holds: bool = False  # whether values hold from the knot before on
    is_cubic: bool = True  # whether there are cubics between knots, or straight lines
    rows: int = 0  # steps so far ...
    t: float = 0.0  # ... and the time reached
    moves: BoolArray | None = None  # which curves move there
    lines: Lines | None = None
    points: tuple[Points, ...] = ()
    cubics: tuple[Points, ...] = ()

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(x.nbytes for some in (*self.points, *self.cubics) for x in some)

    def drawn(self, knots: Knots) -> Sketch:
        """The curves on to further knots, of which the first is the last one so far."""
        pen, steps = _Pen(self, knots), len(knots.grid.trust)
        for k in range(steps):
            pen.step(k)
        return replace(
            self,
            rows=self.rows + steps,
            t=float(knots.grid.t[-1]),
            moves=pen.moves[-1],
            lines=pen.lines,
            points=(*self.points, _joined(pen.points)),
            cubics=(*self.cubics, _joined(pen.cubics, 3)),
        )

    def curves(self) -> Curves:
        """What has been drawn."""
        assert self.lines is not None and self.moves is not None
        on = (self.moves & (self.lines.row < self.rows)).nonzero()[0]
        last = Points(on.astype(np.int32), _numbers(on, self.rows), self.lines.at(on, self.t, self.holds))
        column, row, value = _joined([*self.points, last])
        order = column.argsort(kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(column, minlength=len(self.moves)))])
        bent, step, cubics = _joined(self.cubics, 3)
        bends = step + (self.rows + 1) * bent.astype(np.int64)
        by_curve = bends.argsort()
        return Curves(starts, row[order], value[order], bends[by_curve], cubics[by_curve])


class _Pen:
    """Draws from knot to knot."""

    def __init__(self, sketch: Sketch, knots: Knots) -> None:
        (t, trust), value, slope, room, error = knots
        self.sketch, self.knots, self.moves = sketch, knots, room > 0
        self.points, self.cubics = list[Points](), list[Points]()
        count = value.shape[1]
        self.lines = Lines(*(np.full(count, -1 if name == "row" else 0.0) for name in Lines._fields))
        self.lines = self.lines._replace(row=np.full(count, -1))
        if sketch.lines is None:
            which = self.moves[0].nonzero()[0]
            self._put(which, 0, value[0, which])
            self._begin(which, 0, value[0, which])
        else:
            for new, old in zip(self.lines, sketch.lines, strict=True):
                new[: len(old)] = old
        # A line passes between knots at the distance it has from them, and by the bend of the step.
        bend = np.zeros_like(slope[1:])
        if sketch.is_cubic:
            np.abs(np.subtract(slope[1:], slope[:-1], out=bend), out=bend)
            bend *= (np.diff(t) * trust / 8)[:, None]
        self.bent = (bend > 0.5 * error) & self.moves[1:]
        self.bent |= self.moves[1:] != self.moves[:-1]
        self.slack = np.minimum(np.maximum(error - bend, 0.5 * error), 0.5 * room[1:])

    def step(self, k: int) -> None:
        """From a knot to the next."""
        knots, lines, holds = self.knots, self.lines, self.sketch.holds
        t, bent = knots.grid.t, self.bent[k]
        low, high = self._slopes(k, slice(None))
        np.maximum(low, lines.low, out=low)
        np.minimum(high, lines.high, out=high)
        over = ((low > high) & self.moves[k] & ~bent).nonzero()[0]
        if len(over):
            end = lines.at(over, t[k], holds)
            self._put(over, k, end)
            self._begin(over, k, end)
            low[over], high[over] = self._slopes(k, over)
        which = bent.nonzero()[0]
        if len(which):
            before = which[lines.row[which] != self.sketch.rows + k]
            line = self.moves[k, before]
            self._put(before, k, np.where(line, lines.at(before, t[k], holds), knots.value[k, before]), ~line)
            self._put(which, k + 1, knots.value[k + 1, which], ~self.moves[k + 1, which])
            if not holds:
                kept = knots.value[k, which], knots.slope[k, which], knots.slope[k + 1, which]
                number = _numbers(which, self.sketch.rows + k)
                self.cubics.append(Points(which.astype(np.int32), number, np.stack(kept, axis=1)))
            self._begin(which, k + 1, knots.value[k + 1, which])
            low[which], high[which] = -np.inf, np.inf
        self.lines = lines._replace(low=low, high=high)

    def _slopes(self, k: int, which: IntArray | slice) -> tuple[Array, Array]:
        """Between which slopes lines pass the end of a step."""
        lever = 1.0 if self.sketch.holds else self.knots.grid.t[k + 1] - self.lines.t[which]
        middle = (self.knots.value[k + 1, which] - self.lines.value[which]) / lever
        half = self.slack[k, which] / lever
        return middle - half, middle + half

    def _begin(self, which: IntArray, k: int, value: Array) -> None:
        self.lines.begin(which, self.sketch.rows + k, self.knots.grid.t[k], 0.0 if self.sketch.holds else value)

    def _put(self, which: IntArray, k: int, value: Array, at_rest: BoolArray | None = None) -> None:
        row = _numbers(which, self.sketch.rows + k)
        row = row if at_rest is None else np.where(at_rest, ~row, row)
        self.points.append(Points(which.astype(np.int32), row, value))


def _numbers(which: IntArray, row: int) -> Array:
    return np.full(len(which), row, dtype=np.int16)


def _joined(points: Sequence[Points], width: int | None = None) -> Points:
    none = Points(np.zeros(0, np.int32), np.zeros(0, np.int16), np.zeros(0 if width is None else (0, width)))
    return Points(*(np.concatenate(parts) for parts in zip(none, *points, strict=True)))
