"""What lies between two knots of a path, and so what is read at any time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bregpath._kernels import cubic, cubics_of
from bregpath._typing import Array, BoolArray, IntArray
from bregpath.penalties import AbstractPenalty

__all__ = [
    "READINGS", "AbstractReading", "Chunk", "CubicOfDual", "LineOfDual", "Models", "Passages", "StepOfPrimal", "radau",
]  # fmt: skip

VISIBLE = 1e-7  # of the loss: a fall or rise that counts
BISECTIONS = 40
ENDS = np.array([[0], [1]])  # of a step that begins at a row
# Radau's rule on [0, 1] has this node and the end, where a column that has just entered is seen, but not the start, at
# which coefficients that jump have still the value from before.
NODE, WEIGHTS = 1 / 3, (0.75, 0.25)

Models = tuple[Array, Array]  # unpenalised parameters (T, a) and coefficients (T, c, q)
# Of some columns, by their positions: those active at the first knot; knot before, column, whether it enters.
Changes = tuple[list[int], list[tuple[int, int, bool]]]


@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive knots, with the columns that had been active by their end."""

    t: Array  # (d,)
    alpha: Array  # (d, a)
    alpha_slope: Array  # (d, a)
    z: Array  # (d, c, q) for the first c columns of the trajectory's order
    slope: Array  # (d, c, q)
    value: Array  # (d,) loss

    @property
    def n_columns(self) -> int:
        return self.z.shape[1]

    def models(self, reading: AbstractReading, columns: IntArray, times: Array) -> Models:
        """Unpenalised parameters and coefficients of the columns at some times."""
        return reading.between(self, columns, times)

    def row_of(self, times: Array) -> IntArray:
        """The knots at which the steps begin that hold some times; the first and the last step go on outside."""
        return self.t[1:-1].searchsorted(times)  # type: ignore[no-any-return]


class Passages(NamedTuple):
    """Columns that become active or cease to be, each with the step in which it does."""

    column: IntArray  # (n,)
    enters: BoolArray
    begin: Array
    h: Array
    reach: Array  # time for which the slopes count
    ends: Array  # (2, n, q)
    slopes: Array

    @classmethod
    def joined(cls, some: Sequence[Passages]) -> Passages:
        """Some sets of them as one."""
        parts = [np.concatenate(one, axis=int(one[0].ndim > 1)) for one in zip(*some, strict=True)]
        return cls(*parts)

    def take(self, which: IntArray) -> Passages:
        """Some of them."""
        parts: list[Any] = [part.take(which, axis=int(part.ndim > 1)) for part in self]
        return Passages(*parts)


class AbstractReading(ABC):
    """Turns knots into intercepts and coefficients: at a knot, and between two of them.

    Parameters
    ----------
    penalty : AbstractPenalty
        Of all columns.
    kappa : float
    """

    degree: ClassVar[int]  # its number in files
    knows_losses: ClassVar[bool] = False  # whether the loss at any time follows from that at the knots
    holds: ClassVar[bool] = False  # whether a knot holds from the one before on

    def __init__(self, penalty: AbstractPenalty, kappa: float) -> None:
        self.penalty = penalty
        self.kappa = kappa

    @abstractmethod
    def at_knots(self, columns: IntArray, z: Array) -> Array:
        """Coefficients of some columns (whole groups) at their ``z``, which may have leading axes."""

    @abstractmethod
    def active(self, columns: IntArray, z: Array) -> BoolArray:
        """Which columns (whole groups) are active at their ``z`` (d, c, q): (d, c)."""

    def changes(self, columns: IntArray, z: Array) -> Changes:
        """What happens to some columns (whole groups) at their ``z`` (d, c, q)."""
        active = self.active(columns, z)
        changed = (active[1:] != active[:-1]).ravel().nonzero()[0]
        row, position = np.divmod(changed, active.shape[1])
        enters = active[1:].ravel()[changed]
        later = list(zip(row.tolist(), position.tolist(), enters.tolist(), strict=True))
        return active[0].nonzero()[0].tolist(), later

    @abstractmethod
    def between(self, chunk: Chunk, columns: IntArray, times: Array) -> Models:
        """Unpenalised parameters and coefficients at times inside a chunk."""

    def integrals(
        self, chunk: Chunk, columns: IntArray, low: Array, high: Array, power: float
    ) -> tuple[Models, Models]:
        """Integrals of ``s^power`` times the models over some parts of steps, and the models at their ends."""
        return radau(lambda times: self.between(chunk, columns, times), low, high, power)

    def trust(self, chunk: Chunk, columns: IntArray, row: IntArray | None = None) -> Array:
        """Share of the slopes that counts in the steps of a chunk, or in those that begin at some rows."""
        return np.ones(len(chunk.t) - 1 if row is None else len(row))

    def curve(self, ends: Array, slopes: Array, h: Array, theta: Array) -> Array:
        """Value of what knots hold at fraction ``theta`` of a step in which the slopes count for a time ``h``."""
        return ends[1]  # type: ignore[no-any-return]

    def onset(self, t: Array) -> Array:
        """From when on each of some consecutive knots holds."""
        return t

    def losses(self, chunk: Any, times: Array) -> Array:
        """Loss at times inside a chunk or an era, if it follows from that at the knots."""
        raise NotImplementedError

    def passages(
        self, chunk: Chunk, columns: IntArray, row: IntArray, position: IntArray, enters: BoolArray,
        trust: Array | None = None,
    ) -> Passages:  # fmt: skip
        """Changes of the columns at some positions, in the steps that begin at some rows; ``trust`` of all steps."""
        some, step = np.unique(row, return_inverse=True)
        share = self.trust(chunk, columns, some)[step] if trust is None else trust[row]
        both = row + ENDS
        h = chunk.t[row + 1] - chunk.t[row]
        ends, slopes = chunk.z[both, position], chunk.slope[both, position]
        return Passages(columns[position], enters, chunk.t[row], h, h * share, ends, slopes)

    @abstractmethod
    def locate(self, passages: Passages) -> Array:
        """The exact times of some changes of different columns."""


class LineOfDual(AbstractReading):
    """``beta = kappa shrink(z)`` with ``z`` (and alpha) a straight line between two knots: fixed steps."""

    degree = 1

    def at_knots(self, columns: IntArray, z: Array) -> Array:
        return self.penalty.take(columns).primal(z, self.kappa)

    def active(self, columns: IntArray, z: Array) -> BoolArray:
        return self.penalty.take(columns).active(z)

    def between(self, chunk: Chunk, columns: IntArray, times: Array) -> Models:
        row, penalty = chunk.row_of(times), self.penalty.take(columns)
        # What belongs to a step is computed once for all times inside of it that follow each other.
        first = np.diff(row, prepend=-1) != 0
        step, both = np.cumsum(first) - 1, row[first] + ENDS
        (begin, end), ends, slopes = chunk.t[both], chunk.z.take(both, axis=0), chunk.slope.take(both, axis=0)
        h = end - begin
        theta, reach = (times - begin[step]) / h[step], (h * self._trust(chunk, both, penalty, ends, slopes))[step]
        # What is zero at both ends stays so: a column enters by a knot, and where none is recorded there is no curve.
        moves = np.any(penalty.active(ends), axis=0)[step]
        both, ends, slopes = both[:, step], ends.take(step, axis=1), slopes.take(step, axis=1)
        alpha = self.curve(chunk.alpha[both], chunk.alpha_slope[both], reach[:, None], theta[:, None])
        z = self.curve(ends, slopes, reach[:, None, None], theta[:, None, None])
        return alpha, np.where(moves[..., None], penalty.primal(z, self.kappa), 0.0)

    def curve(self, ends: Array, slopes: Array, h: Array, theta: Array) -> Array:
        return ends[0] + theta * (ends[1] - ends[0])

    def _trust(self, chunk: Chunk, both: IntArray, penalty: AbstractPenalty, z: Array, slope: Array) -> Array:
        """Share of the slopes that counts in the steps between ``both`` rows (2, r), which have ``z`` and ``slope``."""
        return np.ones(both.shape[1])

    def locate(self, passages: Passages) -> Array:
        column, entering, begin, h, reach, ends, slopes = passages
        penalty = self.penalty.take(column)

        def distance(theta: Array) -> Array:
            inside = np.min(penalty.entry(self.curve(ends, slopes, reach[:, None], theta[:, None])), axis=1)
            return np.where(entering, inside, -inside)

        return begin + h * _first_below_zero(distance, len(column))


class CubicOfDual(LineOfDual):
    """``beta = kappa shrink(z)`` with ``z`` (and alpha) the cubic through values and slopes: adaptive steps.

    Slopes are trusted as far as the loss then falls all the way.
    """

    degree = 3

    def changes(self, columns: IntArray, z: Array) -> Changes:
        core = cubics_of(self.penalty)
        return super().changes(columns, z) if core is None else core.changes(z, self._weights(columns))

    def between(self, chunk: Chunk, columns: IntArray, times: Array) -> Models:
        core = cubics_of(self.penalty)
        if core is None:
            return super().between(chunk, columns, times)
        return core.read_cubics(vars(chunk), self._weights(columns), self.kappa, times, VISIBLE)  # type: ignore[no-any-return]

    def integrals(
        self, chunk: Chunk, columns: IntArray, low: Array, high: Array, power: float
    ) -> tuple[Models, Models]:
        core = cubics_of(self.penalty)
        if core is None:
            return super().integrals(chunk, columns, low, high, power)
        weights, rule = self._weights(columns), (NODE, *WEIGHTS)
        alpha, beta = core.integrate_cubics(vars(chunk), weights, self.kappa, (low, high), VISIBLE, power, rule)
        return (alpha[0], beta[0]), (alpha[1], beta[1])

    def _weights(self, columns: IntArray) -> Array:
        return self.penalty.weights.take(columns, axis=0)

    def curve(self, ends: Array, slopes: Array, h: Array, theta: Array) -> Array:
        return cubic(ends, slopes, h, theta)

    def trust(self, chunk: Chunk, columns: IntArray, row: IntArray | None = None) -> Array:
        core = cubics_of(self.penalty)
        if row is None and core is not None:
            return core.trust_cubics(vars(chunk), self._weights(columns), self.kappa, VISIBLE)  # type: ignore[no-any-return]
        both = (np.arange(len(chunk.t) - 1) if row is None else row) + ENDS
        return self._trust(
            chunk, both, self.penalty.take(columns), chunk.z.take(both, axis=0), chunk.slope.take(both, axis=0)
        )

    def _trust(self, chunk: Chunk, both: IntArray, penalty: AbstractPenalty, z: Array, slope: Array) -> Array:
        """Share of the slopes with which the loss falls all the way.

        Along the cubic the loss has the values and slopes at the knots that it has along the exact path, but a step may
        be longer than a transient at its start or end, and following that for the whole step leads astray. The cubic
        of the loss itself falls all the way if ``h |(l0', l1')| <= 3 (l0 - l1)`` (Fritsch & Carlson, SIAM J. Numer.
        Anal. 17 (1980) 238-246). Columns that enter or leave in the step bend the loss, not its dual variable, and do
        not count; neither do falls so small that the loss is rounded.
        """
        (begin, end), (before, after) = chunk.t[both], chunk.value[both]
        trust, h, fall = np.ones(both.shape[1]), end - begin, before - after
        of_alpha = np.sum(chunk.alpha_slope[both] ** 2, axis=2) / self.kappa
        least = np.maximum(3 * fall, VISIBLE * np.abs(before))
        # The mirror map stretches by kappa at most, which clears nearly all steps.
        bound = h * np.hypot(*(self.kappa * np.einsum("krcq,krcq->kr", slope, slope) + of_alpha))
        some = np.flatnonzero(bound > least)
        if len(some):
            speed = penalty.pace(z[:, some], slope[:, some], self.kappa) + of_alpha[:, some]
            expected, fall = h[some] * np.hypot(*speed), np.maximum(fall[some], 0.0)
            steep = expected > least[some]
            trust[some[steep]] = np.minimum(3 * fall[steep] / expected[steep], 1.0)
        return trust


class StepOfPrimal(AbstractReading):
    """Coefficients that are constant between two knots, at each of which ``z`` holds them and their subgradient.

    Those of a knot hold from the one before, excluded, to its own time, included: at its entry time a column is still
    zero, as it is where coefficients are continuous.
    """

    degree = 0
    knows_losses = True
    holds = True

    def at_knots(self, columns: IntArray, z: Array) -> Array:
        return self.penalty.take(columns).primal(z, 1.0)

    def active(self, columns: IntArray, z: Array) -> BoolArray:
        return self.penalty.take(columns).active(z)

    def between(self, chunk: Chunk, columns: IntArray, times: Array) -> Models:
        row = self._row(chunk, times)
        return chunk.alpha[row], self.at_knots(columns, chunk.z[row])

    def losses(self, chunk: Any, times: Array) -> Array:
        return chunk.value[self._row(chunk, times)]

    def _row(self, chunk: Any, times: Array) -> IntArray:
        return np.minimum(np.searchsorted(chunk.t, times), len(chunk.t) - 1)

    def onset(self, t: Array) -> Array:
        return np.concatenate([t[:1], t[:-1]])

    def locate(self, passages: Passages) -> Array:
        return passages.begin


def radau(
    models: Callable[[Array], Models], low: Array, high: Array, power: float
) -> tuple[Models, Models]:
    """Integrals of ``s^power`` times models over some parts of steps, and the models at their ends."""
    inside = low + NODE * (high - low)
    # The two times of a part one after the other, so that what belongs to its step is computed once.
    alpha, beta = models(np.stack([inside, high], axis=1).ravel())
    early, late = (share * (high - low) * t**power for share, t in zip(WEIGHTS, (inside, high), strict=True))
    # In place: arrays of this size cost more than the arithmetic.
    sums = alpha[::2], np.multiply(beta[::2], early[:, None, None], out=beta[::2])
    np.add(sums[1], late[:, None, None] * beta[1::2], out=sums[1])
    return (early[:, None] * sums[0] + late[:, None] * alpha[1::2], sums[1]), (alpha[1::2], beta[1::2])


READINGS: dict[int, type[AbstractReading]] = {cls.degree: cls for cls in (StepOfPrimal, LineOfDual, CubicOfDual)}


def _first_below_zero(distance: Callable[[Array], Array], size: int) -> Array:
    """Where functions of [0, 1] that end below zero get there: bisection, then one secant."""
    low, high = np.zeros(size), np.ones(size)
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        crossed = distance(middle) < 0
        low, high = np.where(crossed, low, middle), np.where(crossed, middle, high)
    at_low, at_high = distance(low), distance(high)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(at_low > at_high, at_low / (at_low - at_high), 1.0)
    return low + np.clip(share, 0.0, 1.0) * (high - low)
