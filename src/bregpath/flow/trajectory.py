"""The record of a path: knots of the dual variable, read out exactly at any time."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

import numpy as np

from bregpath._kernels import Steps, cubic
from bregpath._typing import Array, BoolArray, IntArray
from bregpath.penalties import AbstractPenalty

__all__ = ["Chunk", "Trajectory"]

VISIBLE = 1e-7  # of the loss: a fall or rise that counts


@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive knots, with the columns that had been active by their end."""

    t: Array  # (d,)
    alpha: Array  # (d, q)
    alpha_slope: Array  # (d, q)
    z: Array  # (d, c, q) for the first c columns of the trajectory's order
    slope: Array  # (d, c, q)
    value: Array  # (d,) loss


@dataclass(frozen=True, eq=False)
class Trajectory:
    """All knots of a path; a record with more of them is a new one.

    Only columns that were ever active are kept, in the order in which they became so. Between two knots every
    coordinate of ``z`` (and the intercept) is a polynomial in ``t``: a straight line when ``degree`` is 1, the cubic
    through values and slopes when it is 3. So ``kappa * shrink(z(t))`` is known, with exact zeros, at every ``t``.
    Slopes are trusted as far as the loss then falls all the way.
    """

    penalty: AbstractPenalty
    kappa: float
    degree: int
    alpha_null: Array  # (q,) before the first knot
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
    def size(self) -> int:
        """Bytes of the record."""
        return sum(chunk.z.nbytes + chunk.slope.nbytes for chunk in self.chunks)

    def thin(self, times: Array) -> Trajectory:
        """Only the steps that hold one of ``times``, and the exact times of all events so far."""
        located = list(zip(*(x.tolist() for x in self.event_times()), strict=True))
        chunks = [_keep(chunk, times) for chunk in self.chunks]
        return replace(self, chunks=chunks, events=[], located=located, is_thinned=True)

    def add(self, columns: IntArray, steps: Steps) -> tuple[Trajectory, Array]:
        """The record with a block of steps on the working ``columns``, and the number of active ones at each knot."""
        penalty = self.penalty.take(columns)
        active = np.any(penalty.entry(steps.z) < 0, axis=2)  # whole groups
        entered = np.argwhere(active[1:] & ~active[:-1])
        left = np.argwhere(~active[1:] & active[:-1])
        first = np.flatnonzero(active[0]) if not self.chunks else np.zeros(0, dtype=int)
        # Active from the start are free columns, and the first entry itself if rounding puts it beyond its threshold.
        tied = first[~penalty.free[first]]
        entered = np.vstack([np.column_stack([np.zeros_like(tied), tied]), entered])
        ever = dict.fromkeys(self.order)
        ever.update(dict.fromkeys(columns[np.concatenate([first, entered[:, 1]])].tolist()))
        order = list(ever)
        events = [
            (int(columns[j]), len(self.chunks), int(k), enters)
            for rows, enters in ((entered, True), (left, False))
            for k, j in rows
        ]
        where = np.full(self.beta_null.shape[0], -1)
        where[columns] = np.arange(len(columns))
        kept = where[order]
        chunk = Chunk(
            t=steps.t,
            alpha=steps.alpha,
            alpha_slope=steps.alpha_slope,
            z=steps.z[:, kept],
            slope=steps.slope[:, kept],
            value=steps.value,
        )
        longer = replace(
            self,
            chunks=[*self.chunks, chunk],
            order=order,
            events=self.events + events,
            n_steps=self.n_steps + len(steps),
        )
        return longer, active.sum(axis=1)

    @property
    def start(self) -> float:
        """Time of the first knot; nothing moves before it."""
        return float(self.chunks[0].t[0]) if self.chunks else np.inf

    @property
    def end(self) -> float:
        """Time of the last knot."""
        return float(self.chunks[-1].t[-1]) if self.chunks else np.inf

    def read(self, times: Array) -> tuple[Array, IntArray, Array]:
        """Intercepts ``(T, q)``, the columns kept ``(E,)``, and their coefficients ``(T, E, q)`` at some times."""
        ever = self.order if self.chunks else np.flatnonzero(np.any(self.beta_null != 0, axis=1))
        columns = np.array(ever, dtype=int)
        alpha = np.repeat(self.alpha_null[None], len(times), axis=0)
        beta = np.repeat(self.beta_null[columns][None], len(times), axis=0)
        starts = np.array([c.t[0] for c in self.chunks])
        holder = np.searchsorted(starts, times, side="right") - 1
        holder[times <= self.start] = -1  # nothing has moved yet
        penalty = self.penalty.take(columns)
        z = np.zeros_like(beta)
        for index in np.unique(holder[holder >= 0]):
            chunk, here = self.chunks[index], np.flatnonzero(holder == index)
            row = np.clip(np.searchsorted(chunk.t, times[here]) - 1, 0, len(chunk.t) - 2)
            h = chunk.t[row + 1] - chunk.t[row]
            theta, reach = (times[here] - chunk.t[row]) / h, self._trust(chunk, row) * h
            both = np.stack([row, row + 1])
            alpha[here] = self._between(chunk.alpha[both], chunk.alpha_slope[both], reach[:, None], theta[:, None])
            reach, theta = reach[:, None, None], theta[:, None, None]
            z[here, : chunk.z.shape[1]] = self._between(chunk.z[both], chunk.slope[both], reach, theta)
        moved = holder >= 0
        beta[moved] = penalty.primal(z[moved], self.kappa)
        return alpha, columns, beta

    def _trust(self, chunk: Chunk, row: IntArray) -> Array:
        """Share of the slopes with which the loss falls all the way in the steps that begin at some knots of a chunk.

        Along the cubic the loss has the values and slopes at the knots that it has along the exact path, but a step may
        be longer than a transient at its start or end, and following that for the whole step leads astray. The cubic
        of the loss itself falls all the way if ``h |(l0', l1')| <= 3 (l0 - l1)`` (Fritsch & Carlson, SIAM J. Numer.
        Anal. 17 (1980) 238-246). Columns that enter or leave in the step bend the loss, not its dual variable, and do
        not count; neither do falls so small that the loss is rounded.
        """
        trust = np.ones(len(row))
        if self.degree == 1:
            return trust
        both = np.stack([row, row + 1])
        h, fall = chunk.t[row + 1] - chunk.t[row], chunk.value[row] - chunk.value[row + 1]
        slope, intercepts = chunk.slope[both], np.sum(chunk.alpha_slope[both] ** 2, axis=2) / self.kappa
        least = np.maximum(3 * fall, VISIBLE * np.abs(chunk.value[row]))
        # The mirror map stretches by kappa at most, which clears nearly all steps.
        bound = h * np.hypot(*(self.kappa * np.einsum("krcq,krcq->kr", slope, slope) + intercepts))
        some = np.flatnonzero(bound > least)
        if len(some):
            penalty = self.penalty.take(np.array(self.order[: chunk.z.shape[1]], dtype=int))
            z, slope, moment = chunk.z[both[:, some]], slope[:, some], 1e-6 * h[some, None, None]
            moved = penalty.primal(z + moment * slope, self.kappa) - penalty.primal(z - moment * slope, self.kappa)
            stays = np.all(penalty.entry(z) < 0, axis=0)
            speed = np.sum(moved / (2 * moment) * slope * stays, axis=(2, 3)) + intercepts[:, some]
            expected, fall = h[some] * np.hypot(*speed), np.maximum(fall[some], 0.0)
            steep = expected > least[some]
            trust[some[steep]] = np.minimum(3 * fall[steep] / expected[steep], 1.0)
        return trust

    def _between(self, ends: Array, slopes: Array, h: Array | float, theta: Array | float) -> Array:
        """Value at fraction ``theta`` of a step in which the slopes count for a time ``h``."""
        if self.degree == 1:
            return ends[0] + theta * (ends[1] - ends[0])
        return cubic(ends, slopes, h, theta)

    def event_times(self) -> tuple[IntArray, Array, BoolArray]:
        """Column, exact time and direction (True: entered) of every change of the support, in order of time.

        All first events of the columns are located at once, then all second ones, and so on: a group moves as one,
        so its threshold is evaluated on whole groups.
        """
        times = np.full(len(self.events), np.nan)
        pending: dict[int, list[int]] = {}
        for i, event in enumerate(self.events):
            pending.setdefault(event[0], []).append(i)
        for turn in range(max(map(len, pending.values()), default=0)):
            batch = [queue[turn] for queue in pending.values() if len(queue) > turn]
            times[batch] = self._locate([self.events[i] for i in batch])
        columns = np.array([e[0] for e in self.located + self.events], dtype=int)
        entered = np.array([e[-1] for e in self.located + self.events], dtype=bool)
        times = np.concatenate([[e[1] for e in self.located], times])
        by_time = np.argsort(times, kind="stable")
        return columns[by_time], times[by_time], entered[by_time]

    def _locate(self, events: list[tuple[int, int, int, bool]]) -> Array:
        """Crossing times of events of different columns: bisection, then one secant."""
        position = {column: i for i, column in enumerate(self.order)}
        columns = np.array([e[0] for e in events])
        rows = [(self.chunks[c], r, position[j]) for j, c, r, _ in events]
        ends = np.stack([chunk.z[r : r + 2, i] for chunk, r, i in rows], axis=1)
        slopes = np.stack([chunk.slope[r : r + 2, i] for chunk, r, i in rows], axis=1)
        begin = np.array([chunk.t[r] for chunk, r, _ in rows])
        h = np.array([chunk.t[r + 1] for chunk, r, _ in rows]) - begin
        reach, where = h.copy(), np.array([(c, r) for _, c, r, _ in events])
        for index in np.unique(where[:, 0]):
            here = where[:, 0] == index
            row, step = np.unique(where[here, 1], return_inverse=True)
            reach[here] *= self._trust(self.chunks[index], row)[step]
        penalty = self.penalty.take(columns)
        entering = np.array([e[3] for e in events])

        def distance(theta: Array) -> Array:
            z = self._between(ends, slopes, reach[:, None], theta[:, None])
            inside = np.min(penalty.entry(z), axis=1)
            return np.where(entering, inside, -inside)

        low, high = np.zeros(len(events)), np.ones(len(events))
        for _ in range(40):
            middle = 0.5 * (low + high)
            crossed = distance(middle) < 0
            low, high = np.where(crossed, low, middle), np.where(crossed, middle, high)
        at_low, at_high = distance(low), distance(high)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(at_low > at_high, at_low / (at_low - at_high), 1.0)
        return begin + h * (low + np.clip(share, 0.0, 1.0) * (high - low))


def _keep(chunk: Chunk, times: Array) -> Chunk:
    """The ends of a chunk, and the steps that hold one of ``times``."""
    inside = times[(times > chunk.t[0]) & (times <= chunk.t[-1])]
    row = np.clip(np.searchsorted(chunk.t, inside) - 1, 0, len(chunk.t) - 2)
    rows = np.unique(np.concatenate([[0, len(chunk.t) - 1], row, row + 1]))
    return Chunk(*(getattr(chunk, f.name)[rows] for f in fields(Chunk))) if len(rows) < len(chunk.t) else chunk
