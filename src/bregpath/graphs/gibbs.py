r"""Sampling of Ising and Potts models: Gibbs sweeps, and parallel tempering where they are stuck."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from bregpath._typing import Array, Seed
from bregpath._validation import check_integer
from bregpath.graphs.base_model import DiscreteModel, as_discrete_model
from bregpath.graphs.chains import Plan, Run, run_chains
from bregpath.graphs.mixing import SampleDiagnostics, effective_size, memory, split_r_hat
from bregpath.graphs.models import IsingModel
from bregpath.graphs.tempering import MAX_TEMPERATURES, start_from, temper

__all__ = ["gibbs"]

MAX_CHAINS = {"gibbs": 64, "tempering": 16}  # by default
METHODS = ("auto", "gibbs", "tempering")


def gibbs(
    model: Any,
    n: int,
    burn_in: int = 2000,
    thin: int = 10,
    seed: Seed = None,
    chains: int | None = None,
    *,
    method: str = "auto",
    temperatures: int | None = None,
    start: Any = None,
    return_diagnostics: bool = False,
) -> Any:
    r"""Draw `n` rows from an Ising or Potts model by Gibbs sampling or parallel tempering.

    Every chain starts at random states, makes `burn_in` sweeps, gives a row, and then another after every `thin`
    sweeps. A sweep draws each node once from its conditional distribution; for the Ising model
    :math:`P(x_j = 1 \mid \mathrm{rest}) = 1 / (1 + \exp(-a_j - \sum_k b_{jk} x_k))`.

    Polarised models have modes that single nodes cannot leave, and plain chains stay where they began. Tempered chains
    have replicas at higher temperatures, down to pure noise, which trade places after every sweep, so that rows are
    fresh arrivals from noise.

    Parameters
    ----------
    model : IsingModel, PottsModel, or an object whose method ``model()`` returns one
        What to draw from; a fitted graph estimator will do.
    n : int
        Number of rows.
    burn_in : int
        Sweeps of each chain before its first row. The first half of those of tempered chains chooses temperatures.
    thin : int
        Sweeps between two rows of a chain.
    seed : int, numpy.random.Generator or None
        Source of randomness; the same seed gives the same rows. A generator is advanced by the call.
    chains : int, optional
        Independent chains, by default 64 plain or 16 tempered ones (or `n` if that is less). Row i comes from chain
        ``i % chains``.
    method : {"auto", "gibbs", "tempering"}, default "auto"
        ``"gibbs"`` are plain chains, with a warning if they are stuck. ``"auto"`` draws by plain chains, and by
        tempered ones instead if those are stuck.
    temperatures : int, optional
        Number of temperatures, which asks for tempering; by default as many as let about half of all swaps succeed.
    start : array-like of shape (m, p), optional
        Rows of labels, data for example; chains and replicas start at some of them.
    return_diagnostics : bool, default False
        Whether to return how the chains have mixed as well.

    Returns
    -------
    ndarray of shape (n, p)
        States: the labels of the model if it has `levels`; else -1 and +1 (int8) for an Ising model and 0, 1, ...
        (int32) for a Potts model.
    SampleDiagnostics
        If `return_diagnostics`: split R-hat, effective sizes, memory of the burn-in, swaps and restarts.

    Warnings
    --------
    With fewer chains than rows, rows of one chain are dependent: standard errors that take them for independent are too
    small; the effective size says by how much. ``chains=n`` gives independent rows at the price of `burn_in` sweeps
    each. Plain chains that all began near one mode cannot know of others, and few chains of few rows (fewer than a
    hundred rows in all) cannot show that they are stuck: where weights of modes matter, ask for ``"tempering"``.

    Notes
    -----
    Cost is proportional to sweeps x chains x temperatures x (nodes + edges). With the compiled core a million updates
    of nodes with four neighbours take about 10 ms. The NumPy fallback draws from the same distribution, but not the
    same rows.

    Examples
    --------
    >>> from bregpath.graphs import IsingModel, gibbs
    >>> model = IsingModel(fields=[0.0, 0.0], couplings=[[0.0, 3.0], [3.0, 0.0]])
    >>> X = gibbs(model, 1000, seed=0)
    >>> X.shape, X.dtype.name, bool((X[:, 0] == X[:, 1]).mean() > 0.9)
    ((1000, 2), 'int8', True)

    Two blocs that hardly ever part, the second mode three times as heavy:

    >>> polarised = IsingModel([0.11] * 10, 0.8 - 0.8 * np.eye(10))
    >>> X, mixed = gibbs(polarised, 4000, seed=0, return_diagnostics=True)
    >>> mixed.method, float((X.sum(axis=1) > 0).mean().round(1))
    ('tempering', 0.8)
    """
    model, rng = as_discrete_model(model), np.random.default_rng(seed)
    n, burn_in, thin = check_integer("n", n, 1), check_integer("burn_in", burn_in, 0), check_integer("thin", thin, 1)
    if method not in METHODS:
        raise ValueError(f"`method` must be one of {', '.join(map(repr, METHODS))}, found {method!r}.")
    levels = _check_temperatures(temperatures, method)
    rows = None if start is None else _check_start(model, start)

    def draw(kind: str) -> tuple[Run, SampleDiagnostics]:
        count = min(n, MAX_CHAINS[kind] if chains is None else check_integer("chains", chains, 1))
        plan = Plan(n, count, burn_in, thin)
        if kind == "tempering":
            run, betas = temper(model, plan, rng, levels, rows)
        else:
            run = run_chains(model, plan, rng, start=None if rows is None else start_from(rows, count, 1, rng))
            betas = np.ones(1)
        return run, diagnose(model, plan, run, betas)

    first = "gibbs" if method == "gibbs" or (method == "auto" and levels is None) else "tempering"
    run, mixed = draw(first)
    if method == "auto" and mixed.is_stuck and mixed.method == "gibbs":
        run, mixed = draw("tempering")
    if mixed.is_stuck:
        warnings.warn(mixed.advice(), UserWarning, stacklevel=2)
    X = _labelled(model, run.codes)
    return (X, mixed) if return_diagnostics else X


def diagnose(model: DiscreteModel, plan: Plan, run: Run, betas: Array) -> SampleDiagnostics:
    """How well the chains of a run have mixed; draws that not all chains have given are left out."""
    draws = plan.n // plan.chains
    z = model.features(run.codes[: draws * plan.chains].astype(np.intp))
    values = z.reshape(draws, plan.chains, -1).swapaxes(0, 1)
    halfway = model.features(run.halfway.astype(np.intp))
    return SampleDiagnostics(
        method="tempering" if len(betas) > 1 else "gibbs",
        chains=plan.chains,
        draws=draws,
        r_hat=split_r_hat(values),
        ess=effective_size(values),
        memory=memory(halfway, values[:, 0]) if plan.burn_in else np.nan,
        betas=betas,
        swap_rate=1.0 - run.rejected,
        round_trips=int(run.trips.sum()),
    )


def _labelled(model: DiscreteModel, codes: Array) -> Array:
    if model.levels is not None:
        return model.decode(codes)
    return 2 * codes - np.int8(1) if isinstance(model, IsingModel) else codes


def _check_temperatures(temperatures: int | None, method: str) -> int | None:
    if temperatures is None:
        return None
    if method == "gibbs":
        raise ValueError('`temperatures` are for `method`="tempering", found "gibbs"; leave one of both out.')
    levels = check_integer("temperatures", temperatures, 2)
    if levels > MAX_TEMPERATURES:
        raise ValueError(f"`temperatures` must be at most {MAX_TEMPERATURES}, found {levels}.")
    return levels


def _check_start(model: DiscreteModel, start: Any) -> Array:
    try:
        codes = model.encode(start)
    except ValueError as error:
        raise ValueError(str(error).replace("`X`", "`start`", 1)) from None
    if not len(codes):
        raise ValueError("`start` has no rows; pass at least one, or leave it out.")
    return codes
