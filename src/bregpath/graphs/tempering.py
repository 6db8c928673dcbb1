r"""Parallel tempering: replicas of a chain at higher temperatures carry it from mode to mode.

A chain has replicas at inverse temperatures :math:`0 = \beta_1 < \dots < \beta_K = 1` with distributions
:math:`\propto \exp(\beta w(x))`. The hottest is fresh noise at every sweep; neighbours trade places with probability
:math:`\min(1, \exp((\beta_k - \beta_{k+1})(w_{k+1} - w_k)))`, which leaves all distributions as they are. What arrives
at :math:`\beta = 1` came from noise, whatever barriers there are between modes.

Temperatures are chosen in the burn-in: the shares of refused swaps add up to a *barrier*, which is divided evenly, with
about one swap in two refused (Syed, Bouchard-Cote, Deligiannidis and Doucet, 2022).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bregpath._typing import Array, IntArray
from bregpath.graphs.base_model import DiscreteModel
from bregpath.graphs.chains import Plan, Run, run_chains

__all__ = ["MAX_TEMPERATURES", "temper"]

MAX_TEMPERATURES = 128
_FIRST, _FEWEST = 16, 4  # temperatures of the first round, and at least
_ROUNDS = (1 / 16, 1 / 16, 1 / 8, 1 / 4)  # shares of the burn-in after which temperatures are chosen anew


def temper(
    model: DiscreteModel, plan: Plan, rng: np.random.Generator, temperatures: int | None, start: Array | None
) -> tuple[Run, Array]:
    """Run tempered chains; returns the run, and the inverse temperatures that were chosen.

    ``temperatures`` is their number, by default as many as the barrier asks for. ``start`` are codes of rows.
    """
    betas = np.linspace(0.0, 1.0, temperatures or _FIRST)
    states = None if start is None else start_from(start, plan.chains, len(betas), rng)
    spent = 0
    for sweeps in _rounds(plan.burn_in):
        run = run_chains(model, Plan(0, plan.chains, sweeps, 1), rng, betas, states)
        betas, nearest = _spread(betas, run.rejected, temperatures)
        states = run.ends[:, nearest]
        spent += sweeps
    return run_chains(model, replace(plan, burn_in=plan.burn_in - spent), rng, betas, states), betas


def start_from(rows: Array, chains: int, levels: int, rng: np.random.Generator) -> Array:
    """Codes (chains, levels, p) of replicas, drawn from rows; all rows are used before any comes twice."""
    size = chains * levels
    order = np.concatenate([rng.permutation(len(rows)) for _ in range(-(-size // len(rows)))])[:size]
    return rows[order].reshape(chains, levels, -1)


def _rounds(burn_in: int) -> Iterator[int]:
    """Sweeps of each round; in less than two not all pairs have tried to trade."""
    return (sweeps for share in _ROUNDS if (sweeps := int(share * burn_in)) >= 2)


def _spread(betas: Array, rejected: Array, temperatures: int | None) -> tuple[Array, IntArray]:
    """Inverse temperatures that divide the barrier evenly, and the old ones nearest to them."""
    barrier = np.append(0.0, np.cumsum(rejected + 1e-3))  # it must grow, if only a little, to be inverted
    levels = temperatures or int(np.clip(np.ceil(2.0 * barrier[-1]) + 1, _FEWEST, MAX_TEMPERATURES))
    spread = np.interp(np.linspace(0.0, barrier[-1], levels), barrier, betas)
    spread[[0, -1]] = 0.0, 1.0
    return spread, np.abs(spread[:, None] - betas).argmin(axis=1)
