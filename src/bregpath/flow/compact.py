"""What a long record keeps of curves: the few points that they need.

A curve is drawn by straight lines that pass all its knots at a small distance. A line goes on as long as one from where
it began still does (the swing filter: Elmeleegy et al., PVLDB 2 (2009) 145-156), so that a knot is looked at once and
forgotten. A step that bends too much for a line keeps its cubic, and so does one in which a curve comes to rest or
leaves it: entry and exit times stay what they are. What is at rest needs no points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bregpath._kernels import Knots, Lines, Points, draw, joined
from bregpath._typing import Array, BoolArray, IntArray

__all__ = ["MOST_ROWS", "Curves", "Grid", "Sketch"]

# Value at fraction theta of a step of which the slopes count for a time: (ends, slopes, time, theta).
Curve = Callable[[Array, Array, Array, Array], Array]

MOST_ROWS = 2**15 - 1  # numbers of knots have two bytes, and a sign
ONCE = 2**17  # numbers that are read at once


class Grid(NamedTuple):
    """Times of consecutive knots, and the share of the slopes that counts in each step between them."""

    t: Array  # (d,)
    trust: Array  # (d - 1,)


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
            # What holds up to the first knot of all is its own value.
            found = np.where(theta > 0, ends[1], ends[0]) if holds else ends[0] + theta * (ends[1] - ends[0])
            place = self.bends.searchsorted(number)
            bent = (np.append(self.bends, -1)[place] == number).nonzero()[0]
            start, *slopes = self.cubics[place[bent]].T
            reach = length[bent] * grid.trust[row[a[bent]]]
            found[bent] = curve(np.stack([start, ends[1][bent]]), np.stack(slopes), reach, theta[bent])
            out[first + which, column] = found
            moves[first + which, column] = (self.row[a] >= 0) | (self.row[a + 1] >= 0)
        return out, moves


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
    size: int = 0  # bytes of both

    def drawn(self, knots: Knots) -> Sketch:
        """The curves on to further knots, of which the first is the last one so far."""
        begun, points = Lines.of(knots.value.shape[1], self.lines), self.points
        if self.lines is None:
            which = (knots.room[0] > 0).nonzero()[0]
            begun.begin(which, 0, knots.t[0], 0.0 if self.holds else knots.value[0, which])
            points = (Points(which.astype(np.int32), np.zeros(len(which), dtype=np.int16), knots.value[0, which]),)
        new, cubics = draw(knots, begun, self.rows, self.holds, self.is_cubic)
        return replace(
            self,
            rows=self.rows + len(knots.trust),
            t=float(knots.t[-1]),
            moves=knots.room[-1] > 0,
            lines=begun,
            points=(*points, new),
            cubics=(*self.cubics, cubics),
            size=self.size + sum(x.nbytes for x in (*new, *cubics)),
        )

    def curves(self) -> Curves:
        """What has been drawn."""
        assert self.lines is not None and self.moves is not None
        on = (self.moves & (self.lines.row < self.rows)).nonzero()[0]
        ends = self.lines.at(on, self.t, self.holds)
        last = Points(on.astype(np.int32), np.full(len(on), self.rows, dtype=np.int16), ends)
        column, row, value = joined([*self.points, last])
        order = column.argsort(kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(column, minlength=len(self.moves)))])
        bent, step, cubics = joined(self.cubics, 3)
        bends = step + (self.rows + 1) * bent.astype(np.int64)
        by_curve = bends.argsort()
        return Curves(starts, row[order], value[order], bends[by_curve], cubics[by_curve])
