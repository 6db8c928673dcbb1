"""A long stretch of a record, of which each curve keeps the points that it needs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from bregpath._kernels import Knots
from bregpath._typing import Array, IntArray
from bregpath.flow.compact import MOST_ROWS, Curves, Grid, Sketch
from bregpath.flow.reading import AbstractReading, Chunk, Models, radau

__all__ = ["Era", "Opened", "knots_of"]

MOST_BYTES = 2**23  # of an era, which is sorted when it ends


@dataclass(frozen=True, eq=False)
class Era:
    """Consecutive knots, with the columns that had been active by their end; ``c`` columns of ``q`` outputs."""

    t: Array  # (d,)
    value: Array  # (d,) loss
    trust: Array  # (d - 1,) share of the slopes that counts in each step
    n_outputs: int
    curves: dict[str, Curves] = field(repr=False)  # alpha (a,), z (c * q,), and for means what both add up to

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(x.nbytes for x in (self.t, self.value, self.trust)) + sum(x.size for x in self.curves.values())

    @property
    def n_columns(self) -> int:
        return (len(self.curves["z"].starts) - 1) // self.n_outputs

    def row_of(self, times: Array) -> IntArray:
        """As of `Chunk`."""
        return self.t[1:-1].searchsorted(times)

    def models(self, reading: AbstractReading, columns: IntArray, times: Array) -> Models:
        """Unpenalised parameters and coefficients of the columns at some times."""
        alpha, _ = self._read("alpha", reading, times)
        z, moves = (x.reshape(len(times), -1, self.n_outputs) for x in self._read("z", reading, times))
        return alpha, np.where(moves, reading.at_knots(columns, z), 0.0)

    def integrals(
        self, reading: AbstractReading, columns: IntArray, times: Array, power: float
    ) -> tuple[Models, Models]:
        """Integrals up to some times, as of `AbstractReading.integrals` from 0 on, and the models there."""
        start = self.t[self.row_of(times)]
        alpha, beta = self.sums(reading, start)
        (of_alpha, of_beta), ends = radau(lambda t: self.models(reading, columns, t), start, times, power)
        return (alpha + of_alpha, beta + of_beta), ends

    def sums(self, reading: AbstractReading, times: Array) -> Models:
        """Integrals up to some knots."""
        alpha, beta = (self._read(name, reading, times)[0] for name in ("alpha_sum", "beta_sum"))
        return alpha, beta.reshape(len(times), -1, self.n_outputs)

    def _read(self, name: str, reading: AbstractReading, times: Array) -> tuple[Array, Array]:
        curves, grid = self.curves[name], Grid(self.t, self.trust)
        if name.endswith("_sum"):  # read at knots only
            return curves.read(grid, times, _line, holds=False)
        return curves.read(grid, times, reading.curve, reading.holds)


def _line(ends: Array, slopes: Array, h: Array, theta: Array) -> Array:
    return ends[0] + theta * (ends[1] - ends[0])  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class Opened:
    """An era that goes on."""

    n_outputs: int
    t: tuple[Array, ...] = ()
    value: tuple[Array, ...] = ()
    trust: tuple[Array, ...] = ()
    sketches: dict[str, Sketch] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        """Whether it is time for the next one."""
        rows = sum(len(t) for t in self.t)
        return rows > MOST_ROWS // 2 or self.size > MOST_BYTES

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(sketch.size for sketch in self.sketches.values())

    @cached_property
    def era(self) -> Era:
        """As far as it goes."""
        t, value, trust = (np.concatenate(parts) for parts in (self.t, self.value, self.trust))
        return Era(t, value, trust, self.n_outputs, {name: sketch.curves() for name, sketch in self.sketches.items()})

    def followed_by(self, chunk: Chunk, knots: dict[str, Knots], reading: AbstractReading) -> Opened:
        """The era with another chunk, whose knots are those of its curves."""
        started, sketches = 1 if self.t else 0, {}
        for name, some in knots.items():
            is_sum = name.endswith("_sum")  # read at knots only
            begun = Sketch(reading.holds and not is_sum, reading.degree == 3 and not is_sum)
            sketches[name] = self.sketches.get(name, begun).drawn(some)
        return replace(
            self,
            t=(*self.t, chunk.t[started:]),
            value=(*self.value, chunk.value[started:]),
            trust=(*self.trust, knots["z"].trust),
            sketches=sketches,
        )


def knots_of(chunk: Chunk, reading: AbstractReading, columns: IntArray, trust: Array, tol: float) -> dict[str, Knots]:
    """What the curves of a chunk pass; coefficients may err by ``tol`` of the largest one."""
    d, q = len(chunk.t), chunk.z.shape[2]
    beta = reading.at_knots(columns, chunk.z).reshape(d, -1)
    error, unit = tol * float(np.max(np.abs(beta), initial=0.0)), 1.0 if reading.holds else reading.kappa
    room = np.abs(beta) / unit
    room[:, np.repeat(reading.penalty.free_among(columns), q)] = np.inf
    everywhere = np.full(chunk.alpha.shape, np.inf)
    return {
        "alpha": Knots(chunk.t, trust, chunk.alpha, chunk.alpha_slope, everywhere, error),
        "z": Knots(chunk.t, trust, chunk.z.reshape(d, -1), chunk.slope.reshape(d, -1), room, error / unit),
    }
