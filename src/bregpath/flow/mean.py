"""Means over time of a path, whose coefficients are shrunken as those of the lasso are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from bregpath._kernels import Knots, Steps
from bregpath._records import changed
from bregpath._typing import Array, BoolArray, IntArray
from bregpath.flow.era import Era
from bregpath.flow.reading import AbstractReading, Chunk, Models
from bregpath.flow.trajectory import Trajectory

__all__ = ["AVERAGES", "MeanChunk", "MeanTrajectory"]

# Power of s by which the model of time s counts in a mean.
AVERAGES = {"uniform": 0.0, "linear": 1.0}


@dataclass(frozen=True, eq=False)
class MeanChunk(Chunk):
    r"""Knots with the integrals :math:`\int_0^t s^m \alpha(s) ds` and :math:`\int_0^t s^m \beta(s) ds` up to them."""

    alpha_sum: Array  # (d, a)
    beta_sum: Array  # (d, c, q)

    def integrals(
        self, reading: AbstractReading, columns: IntArray, times: Array, power: float
    ) -> tuple[Models, Models]:
        """Integrals up to some times, and the models there."""
        row = self.row_of(times)
        (alpha, beta), ends = reading.integrals(self, columns, self.t[row], times, power)
        beta += self.beta_sum.take(row, axis=0)  # in place: arrays of this size cost more than the arithmetic
        return (self.alpha_sum[row] + alpha, beta), ends


@dataclass(frozen=True, eq=False)
class MeanTrajectory(Trajectory):
    r"""A record that is read as its mean over time,

    .. math:: \bar\beta(t) = \frac{m + 1}{t^{m + 1}} \int_0^t s^m \beta(s) ds .

    Where columns are orthogonal and kappa is large, a coefficient is zero up to its entry time :math:`\tau = 1 / |b|`
    and b from then on: a hard threshold. Its mean is :math:`b (1 - (\tau / t)^{m + 1})`, the soft threshold of the
    lasso with :math:`\lambda = 1 / t` for m = 0, and Breiman's nonnegative garrote for m = 1. For squared loss z(t) / t
    is the gradient at the plain mean (m = 0), which is therefore the lasso itself as long as no sign changes.
    """

    power: float = 1.0
    has_plain: bool = False  # whether models without an average are read too, behind the others

    @classmethod
    def of(cls, record: Trajectory, power: float, begun: Models | None = None) -> MeanTrajectory:
        """The mean of what has been recorded; of eras the integrals are known, ``begun`` up to their end."""
        out = cls(**{f.name: getattr(record, f.name) for f in fields(record)} | {"chunks": []}, power=power)
        for chunk in record.chunks:
            out = changed(out, chunks=[*out.chunks, out.finished(chunk, out.order, begun)])
        return out

    @property
    def plain(self) -> Trajectory:
        """The record as it is."""
        return Trajectory(**{f.name: getattr(self, f.name) for f in fields(Trajectory)})

    @property
    def average(self) -> str:
        return next(name for name, power in AVERAGES.items() if power == self.power)

    def add(self, steps: Steps) -> tuple[Trajectory, Callable[[], Array]]:
        """As of `Trajectory`; a column that was ever active counts."""
        longer, _ = super().add(steps)
        chunk = longer.chunks[-1]
        assert isinstance(chunk, MeanChunk)
        return longer, lambda: np.count_nonzero(np.any(chunk.beta_sum != 0, axis=2), axis=1)

    def finished(self, chunk: Chunk, order: IntArray, begun: Models | None = None) -> MeanChunk:
        """The next chunk with its integrals, ``begun`` where there is none before it."""
        alpha_sum, beta_sum = np.empty_like(chunk.alpha), np.empty_like(chunk.z)
        columns = order[: chunk.z.shape[1]]
        if self.chunks:
            last = self.chunks[-1]
            assert isinstance(last, MeanChunk)
            begun = last.alpha_sum[-1], last.beta_sum[-1]
        if begun is not None:
            alpha_sum[0], beta_sum[0], beta_sum[0, : len(begun[1])] = begun[0], 0.0, begun[1]
        else:
            share = chunk.t[0] ** (self.power + 1) / (self.power + 1)
            alpha_sum[0], beta_sum[0] = share * self.alpha_null, share * self.beta_null[columns]
        (alpha, beta), _ = self.reading.integrals(chunk, columns, chunk.t[:-1], chunk.t[1:], self.power)
        for total, part in ((alpha_sum, alpha), (beta_sum, beta)):
            np.cumsum(part, axis=0, out=total[1:])
            total[1:] += total[0]
        knots = {f.name: getattr(chunk, f.name) for f in fields(Chunk)}  # of which there may be another mean
        return MeanChunk(**knots, alpha_sum=alpha_sum, beta_sum=beta_sum)

    def knots(self, chunk: Chunk, columns: IntArray, trust: Array) -> dict[str, Knots]:
        """As of `Trajectory`, with the integrals, of which the mean may err as much as its coefficients do."""
        assert isinstance(chunk, MeanChunk)
        curves, d, exponent = super().knots(chunk, columns, trust), len(chunk.t), self.power + 1
        error = curves["alpha"].error * chunk.t[0] ** exponent / exponent
        for name in ("alpha_sum", "beta_sum"):
            total = getattr(chunk, name).reshape(d, -1)
            curves[name] = Knots(chunk.t, trust, total, total, np.where(total != 0, np.inf, 0.0), error)
        return curves

    def read(self, times: Array) -> tuple[Array, IntArray, Array]:
        """As of `Trajectory`."""
        alpha, columns, beta = self._null((1 + self.has_plain) * len(times))
        plain_alpha, plain_beta = alpha[len(times) :], beta[len(times) :]
        for part, here in self._holders(times):
            assert isinstance(part, MeanChunk | Era)
            t, known = times[here], part.n_columns
            (of_alpha, of_beta), ends = part.integrals(self.reading, columns[:known], t, self.power)
            share = (self.power + 1) / t ** (self.power + 1)
            alpha[here] = share[:, None] * of_alpha
            of_beta *= share[:, None, None]
            beta[here, :known] = of_beta
            if self.has_plain:
                plain_alpha[here], plain_beta[here, :known] = ends
        return alpha, columns, beta

    def losses(self, times: Array) -> Array | None:
        """What is known of the loss is not of the mean."""
        return None

    def event_times(self) -> tuple[IntArray, Array, BoolArray]:
        """As of `Trajectory`; nothing ever leaves a mean."""
        columns, times, entered = super().event_times()
        kept = np.flatnonzero(entered)
        kept = np.sort(kept[np.unique(columns[kept], return_index=True)[1]])
        return columns[kept], times[kept], entered[kept]
