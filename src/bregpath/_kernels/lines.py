"""Lines through the knots of curves, in NumPy: see `bregpath.flow.compact`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bregpath._typing import Array, BoolArray, IntArray

__all__ = ["Knots", "Lines", "Points", "draw", "joined"]


class Knots(NamedTuple):
    """Some consecutive knots ``(d, c)`` of curves."""

    t: Array  # (d,)
    trust: Array  # (d - 1,) share of the slopes that counts in each step
    value: Array
    slope: Array
    room: Array  # distance of the value from where the curve comes to rest; 0 at rest
    error: float  # that may be made of them


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

    @classmethod
    def of(cls, count: int, earlier: Lines | None) -> Lines:
        """Lines of so many curves to draw on, of which those ``earlier`` have begun."""
        t, value, low, high = np.zeros((4, count))
        out = cls(t, value, np.full(count, -1, dtype=np.int64), low, high)
        for new, old in zip(out, earlier or (), strict=False):
            new[: len(old)] = old
        return out


def draw(knots: Knots, lines: Lines, first: int, holds: bool, is_cubic: bool) -> tuple[Points, Points]:
    """Points, and steps that keep their cubics, up to the last knot; ``first`` is the number of the first one.

    Where lines have got to is written to them.
    """
    pen = _Pen(knots, lines, first, holds, is_cubic)
    for k in range(len(knots.trust)):
        pen.step(k)
    return joined(pen.points), joined(pen.cubics, 3)


class _Pen:
    """Draws from knot to knot."""

    def __init__(self, knots: Knots, lines: Lines, first: int, holds: bool, is_cubic: bool) -> None:
        t, trust, value, slope, room, error = knots
        self.knots, self.lines, self.first, self.holds, self.moves = knots, lines, first, holds, room > 0
        self.points, self.cubics = list[Points](), list[Points]()
        # A line passes between knots at the distance it has from them, and by the bend of the step.
        bend = np.zeros_like(slope[1:])
        if is_cubic:
            h, rise = (np.diff(t) * trust)[:, None], np.diff(value, axis=0)
            # A cubic is at most so far from the line between its ends.
            bend = 0.25 * np.maximum(np.abs(h * slope[:-1] - rise), np.abs(h * slope[1:] - rise))
        self.bent = (bend > 0.5 * error) & self.moves[1:] | (self.moves[1:] != self.moves[:-1])
        self.slack = np.minimum(np.maximum(error - bend, 0.5 * error), 0.5 * room[1:])

    def step(self, k: int) -> None:
        """From a knot to the next."""
        knots, lines = self.knots, self.lines
        t, bent = knots.t, self.bent[k]
        low, high = self._slopes(k, slice(None))
        np.maximum(low, lines.low, out=low)
        np.minimum(high, lines.high, out=high)
        over = ((low > high) & self.moves[k] & ~bent).nonzero()[0]
        if len(over):
            end = lines.at(over, t[k], self.holds)
            self._put(over, k, end)
            self._begin(over, k, end)
            low[over], high[over] = self._slopes(k, over)
        on = (self.moves[k] & ~bent).nonzero()[0]
        lines.low[on], lines.high[on] = low[on], high[on]
        which = bent.nonzero()[0]
        if len(which):
            before = which[lines.row[which] != self.first + k]
            moves, end = self.moves[k, before], knots.value[k, before]
            end[moves] = lines.at(before[moves], t[k], self.holds)
            self._put(before, k, end, ~moves)
            self._put(which, k + 1, knots.value[k + 1, which], ~self.moves[k + 1, which])
            if not self.holds:
                kept = knots.value[k, which], knots.slope[k, which], knots.slope[k + 1, which]
                number = _numbers(which, self.first + k)
                self.cubics.append(Points(which.astype(np.int32), number, np.stack(kept, axis=1)))
            self._begin(which, k + 1, knots.value[k + 1, which])

    def _slopes(self, k: int, which: IntArray | slice) -> tuple[Array, Array]:
        """Between which slopes lines pass the end of a step."""
        lever = 1.0 if self.holds else self.knots.t[k + 1] - self.lines.t[which]
        middle = (self.knots.value[k + 1, which] - self.lines.value[which]) / lever
        half = self.slack[k, which] / lever
        return middle - half, middle + half

    def _begin(self, which: IntArray, k: int, value: Array) -> None:
        self.lines.begin(which, self.first + k, self.knots.t[k], 0.0 if self.holds else value)

    def _put(self, which: IntArray, k: int, value: Array, at_rest: BoolArray | None = None) -> None:
        row = _numbers(which, self.first + k)
        row = row if at_rest is None else np.where(at_rest, ~row, row)
        self.points.append(Points(which.astype(np.int32), row, value))


def _numbers(which: IntArray, row: int) -> Array:
    return np.full(len(which), row, dtype=np.int16)


def joined(points: Sequence[Points], width: int | None = None) -> Points:
    """Some sets of points as one."""
    none = Points(np.zeros(0, np.int32), np.zeros(0, np.int16), np.zeros(0 if width is None else (0, width)))
    return Points(*(np.concatenate(parts) for parts in zip(none, *points, strict=True)))
