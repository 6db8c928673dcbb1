"""Means over time of a path, whose coefficients are shrunken as those of the lasso are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np

from bregpath._kernels import Steps
from bregpath._typing import Array, BoolArray, IntArray
from bregpath.flow.reading import Chunk
from bregpath.flow.trajectory import Trajectory

__all__ = ["AVERAGES", "MeanChunk", "MeanTrajectory"]

# Power of s by which the model of time s counts in a mean.
AVERAGES = {"uniform": 0.0, "linear": 1.0}
# Radau's rule on [0, 1] has this node and the end, where a column that has just entered is seen, but not the start, at
# which coefficients that jump have still the value from before.
NODE, WEIGHTS = 1 / 3, (0.75, 0.25)


@dataclass(frozen=True, eq=False)
class MeanChunk(Chunk):
    r"""Knots with the integrals :math:`\int_0^t s^m \alpha(s) ds` and :math:`\int_0^t s^m \beta(s) ds` up to them."""

    alpha_sum: Array  # (d, a)
    beta_sum: Array  # (d, c, q)


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
    def of(cls, record: Trajectory, power: float) -> MeanTrajectory:
        """The mean of what has been recorded."""
        parts = {f.name: getattr(record, f.name) for f in fields(Trajectory)}
        out = cls(**{**parts, "chunks": []}, power=power)
        for chunk in record.chunks:
            out = replace(out, chunks=[*out.chunks, out._summed(chunk)])
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
        chunk = self._summed(longer.chunks[-1], longer.order)
        longer = replace(longer, chunks=[*self.chunks, chunk])
        return longer, lambda: np.count_nonzero(np.any(chunk.beta_sum != 0, axis=2), axis=1)

    def _summed(self, chunk: Chunk, order: list[int] | None = None) -> MeanChunk:
        """The next chunk with its integrals; ``order`` is that of a record which has it already."""
        alpha_sum, beta_sum = np.zeros_like(chunk.alpha), np.zeros_like(chunk.z)
        columns = np.array(self.order if order is None else order, dtype=int)[: chunk.z.shape[1]]
        if self.chunks:
            last = self.chunks[-1]
            assert isinstance(last, MeanChunk)
            alpha_sum[:], beta_sum[:, : last.z.shape[1]] = last.alpha_sum[-1], last.beta_sum[-1]
        else:
            share = chunk.t[0] ** (self.power + 1) / (self.power + 1)
            alpha_sum[:], beta_sum[:] = share * self.alpha_null, share * self.beta_null[columns]
        ends = chunk.alpha[1:], self.reading.at_knots(columns, chunk.z[1:])
        alpha, beta = self._integrals(chunk, columns, chunk.t[:-1], chunk.t[1:], ends)
        alpha_sum[1:] += alpha.cumsum(axis=0)
        beta_sum[1:] += beta.cumsum(axis=0, out=beta)
        knots = {f.name: getattr(chunk, f.name) for f in fields(Chunk)}
        return MeanChunk(**knots, alpha_sum=alpha_sum, beta_sum=beta_sum)

    def _integrals(
        self, chunk: Chunk, columns: IntArray, low: Array, high: Array, ends: tuple[Array, Array] | None = None
    ) -> tuple[Array, Array]:
        """Over some parts of steps; ``ends`` are the models there, if they are known."""
        inside = low + NODE * (high - low)
        if ends is None:
            both = self.reading.between(chunk, columns, np.stack([inside, high], axis=1).ravel())
            models, ends = (both[0][::2], both[1][::2]), (both[0][1::2], both[1][1::2])
        else:
            models = self.reading.between(chunk, columns, inside)
        early, late = (share * (high - low) * t**self.power for share, t in zip(WEIGHTS, (inside, high), strict=True))
        # In place, as above: arrays of this size cost more than the arithmetic.
        alpha, beta = models[0] * early[:, None], np.multiply(models[1], early[:, None, None], out=models[1])
        beta += np.multiply(ends[1], late[:, None, None], out=ends[1])
        return alpha + late[:, None] * ends[0], beta

    def read(self, times: Array) -> tuple[Array, IntArray, Array]:
        """As of `Trajectory`."""
        alpha, columns, beta = self._null(times)
        for chunk, here in self._holders(times):
            assert isinstance(chunk, MeanChunk)
            t, known = times[here], chunk.z.shape[1]
            row = chunk.row_of(t)
            more = self._integrals(chunk, columns[:known], chunk.t[row], t)
            share = (self.power + 1) / t ** (self.power + 1)
            alpha[here] = share[:, None] * (chunk.alpha_sum[row] + more[0])
            beta[here, :known] = share[:, None, None] * (chunk.beta_sum[row] + more[1])
        if not self.has_plain:
            return alpha, columns, beta
        plain_alpha, _, plain_beta = self.plain.read(times)
        return np.concatenate([alpha, plain_alpha]), columns, np.concatenate([beta, plain_beta])

    def losses(self, times: Array) -> Array | None:
        """What is known of the loss is not of the mean."""
        return None

    def event_times(self) -> tuple[IntArray, Array, BoolArray]:
        """As of `Trajectory`; nothing ever leaves a mean."""
        columns, times, entered = super().event_times()
        kept = np.flatnonzero(entered)
        kept = np.sort(kept[np.unique(columns[kept], return_index=True)[1]])
        return columns[kept], times[kept], entered[kept]
