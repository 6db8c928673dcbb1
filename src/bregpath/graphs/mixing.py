r"""Have chains forgotten where they started? Split R-hat, effective sizes, and the memory of the burn-in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bregpath._typing import Array

__all__ = ["SampleDiagnostics", "effective_size", "memory", "split_r_hat"]

MAX_R_HAT = 1.1
_LONG_HALF = 25  # draws of half a chain; in shorter ones R-hat exceeds 1.1 for rows that are a little dependent
_MIN_ROWS, _MIN_DRAWS = 100, 4  # below which R-hat is mostly noise


@dataclass(frozen=True, eq=False)
class SampleDiagnostics:
    r"""How well the chains of a sampler have mixed.

    Attributes
    ----------
    method : {"gibbs", "tempering"}
        The sampler that was used.
    chains, draws : int
        Number of chains, and of rows that each has given.
    r_hat : ndarray
        Split R-hat of every feature: a node of an Ising model, a state of a node of a Potts model. 1 if halves of
        chains agree; nan with fewer than four rows a chain.
    ess : ndarray
        Effective sample size of every feature: as many independent rows would know its mean as well.
    memory : float
        Largest correlation, over chains, of a feature after half of the burn-in and after all of it, lowered for
        features that few chains show. Near 0 if the burn-in was long enough, near 1 if chains are where they began. nan
        without a burn-in.
    betas : ndarray
        Inverse temperatures of the replicas; 1 alone without tempering.
    swap_rate : ndarray
        Share of swaps between neighbouring temperatures that were accepted.
    round_trips : int
        How often a replica came from the hottest temperature, which is noise, to the model: independent restarts.

    Examples
    --------
    >>> from bregpath.graphs import IsingModel, gibbs
    >>> model = IsingModel([0.3, -0.3], [[0.0, 0.8], [0.8, 0.0]])
    >>> rows, diagnostics = gibbs(model, 500, seed=0, return_diagnostics=True)
    >>> diagnostics.method, bool(diagnostics.r_hat.max() < 1.1)
    ('gibbs', True)
    """

    method: str
    chains: int
    draws: int
    r_hat: Array
    ess: Array
    memory: float
    betas: Array
    swap_rate: Array
    round_trips: int

    @property
    def is_stuck(self) -> bool:
        """Whether chains have not forgotten where they began, as far as this can be told.

        True if `memory` exceeds 0.1 by more than four standard errors, or R-hat 1.1 (more for fewer than 50 rows a
        chain); of tempered chains also if fewer restarts than chains arrived. A mode that no chain has seen leaves no
        trace.
        """
        remembers = self.memory > 0.1 + 4.0 / np.sqrt(self.chains)
        restarts_fail = len(self.betas) > 1 and self.round_trips < self.chains
        return bool(remembers or restarts_fail or self._chains_differ)

    @property
    def _chains_differ(self) -> bool:
        """Whether the variance between halves of chains is far above that within, as 25 draws of a half measure it."""
        if self.draws < _MIN_DRAWS or self.draws * self.chains < _MIN_ROWS:
            return False
        limit = 1.0 + (MAX_R_HAT**2 - 1.0) * max(1.0, _LONG_HALF / (self.draws // 2))
        return bool(self._worst_r_hat**2 > limit)

    @property
    def _worst_r_hat(self) -> float:
        return float(np.max(self.r_hat))

    def advice(self) -> str:
        """What is wrong and what to do, in a sentence or two."""
        found = f"memory of the burn-in {self.memory:.2f}, R-hat up to {self._worst_r_hat:.2f}"
        if self.method == "gibbs":
            return (
                f"Gibbs chains are stuck or slow ({found}), so weights of modes may be wrong; "
                'use `method`="tempering".'
            )
        return (
            f"Tempered chains have not mixed ({found}, {self.round_trips} restarts of {self.chains} chains arrived); "
            f"use a larger `burn_in` and `thin`, or more than {len(self.betas)} `temperatures`."
        )

    def __repr__(self) -> str:
        lines = [
            f"SampleDiagnostics of {self.method}: {self.chains} chains of {self.draws} rows, "
            + ("stuck" if self.is_stuck else "no sign of being stuck"),
            f"  split R-hat         at most {self._worst_r_hat:.3f}",
            f"  effective size      at least {np.min(self.ess):.0f} of {self.chains * self.draws}",
            f"  memory of burn-in   {self.memory:.2f}",
        ]
        if len(self.betas) > 1:
            low, high = self.swap_rate.min(), self.swap_rate.max()
            lines.append(f"  temperatures        {len(self.betas)}, swaps accepted {low:.2f} to {high:.2f}")
            lines.append(f"  restarts            {self.round_trips}")
        return "\n".join(lines)


def split_r_hat(values: Array) -> Array:
    r"""Split R-hat of values (chains, draws, k).

    Halves of chains count as chains: with B and W the variances between and within them,
    :math:`\hat R^2 = (n - 1) / n + B / (n W)`. Values that never change have 1, chains that differ and
    never change infinity.
    """
    half = values.shape[1] // 2
    if half < 2:
        return np.full(values.shape[2], np.nan)
    halves = np.concatenate([values[:, :half], values[:, -half:]])
    between, within = half * halves.mean(axis=1).var(axis=0, ddof=1), halves.var(axis=1, ddof=1).mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        r_hat = np.sqrt((half - 1) / half + between / (half * within))
    return np.where(between + within == 0.0, 1.0, r_hat)


def effective_size(values: Array) -> Array:
    r"""Effective number of independent draws among values (chains, draws, k).

    Autocorrelations of all chains together, :math:`\rho_t = 1 - (W - \bar\gamma_t) / V` with V the variance over all,
    are summed as long as pairs of them are positive, and made to fall (Geyer's initial monotone sequence).
    """
    chains, draws, k = values.shape
    if draws < 4:
        return np.full(k, np.nan)
    means = values.mean(axis=1, keepdims=True)
    size = 2 ** int(np.ceil(np.log2(2 * draws)))
    spectrum = np.abs(np.fft.rfft(values - means, size, axis=1)) ** 2
    covariance = np.fft.irfft(spectrum.mean(axis=0), size, axis=0)[:draws] / draws
    within = covariance[0] * draws / (draws - 1)
    total = covariance[0] + (means[:, 0].var(axis=0, ddof=1) if chains > 1 else 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = 1.0 - (within - covariance) / total
    rho[0] = 1.0
    even = len(rho) // 2 * 2
    pairs = np.minimum.accumulate(rho[:even].reshape(-1, 2, k).sum(axis=1), axis=0)
    tau = np.maximum(2.0 * np.where(pairs > 0.0, pairs, 0.0).sum(axis=0) - 1.0, 1.0)
    return np.where(total > 0.0, chains * draws / tau, float(chains * draws))


def memory(before: Array, after: Array) -> float:
    """Largest correlation of a feature between two times (chains, k), lowered where few chains show it."""
    before, after = before - before.mean(axis=0), after - after.mean(axis=0)
    covariance = (before * after).mean(axis=0)
    spread = np.sqrt((before**2).mean(axis=0) * (after**2).mean(axis=0))
    # By chance one chain in the same rare state twice would be a correlation of 1; as a deviation it is 1 / chains.
    largest = np.maximum((after**2).max(axis=0), (before**2).max(axis=0))
    return float(np.max(covariance / (spread + 4.0 * largest / len(before) + 1e-300), initial=0.0))
