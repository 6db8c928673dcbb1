r"""Missing cells of a table, drawn from a graphical model given what is known of their rows.

Drawn, and not replaced by their most probable value or mean: that would make variables look more alike than they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bregpath._typing import Array, BoolArray, IntArray
from bregpath.graphs.mixed_model import MixedModel
from bregpath.graphs.models import DiscreteModel, GaussianModel, PottsModel, draw_states

__all__ = ["draw_from_margins", "draw_missing"]

SWEEPS = 10  # of a Gibbs sampler over the missing cells


def draw_from_margins(rows: Array, missing: BoolArray, rng: np.random.Generator) -> Array:
    """The rows with missing cells drawn from the known cells of their columns."""
    rows = rows.copy()
    for j in np.flatnonzero(missing.any(axis=0)):
        rows[missing[:, j], j] = rng.choice(rows[~missing[:, j], j], int(missing[:, j].sum()))
    return rows


def draw_missing(model: Any, rows: Array, missing: BoolArray, rng: np.random.Generator) -> Array:
    """The rows with missing cells drawn from a model given the other cells of their rows.

    Exactly for a Gaussian model. For rows of codes of a discrete one, or rows of a mixed one, by some Gibbs sweeps over
    the missing cells, from what they hold.
    """
    if isinstance(model, GaussianModel):
        return _draw_numbers(model, rows, missing, rng)
    if isinstance(model, MixedModel):
        return _draw_mixed(model, rows, missing, rng)
    return _draw_states(model, rows, missing, rng)


def _draw_numbers(model: GaussianModel, rows: Array, missing: BoolArray, rng: np.random.Generator) -> Array:
    r"""Missing given known cells are normal with precision :math:`\Omega_{mm}`."""
    assert model.mean is not None
    rows = rows.copy()
    for i in np.flatnonzero(missing.any(axis=1)):
        lost, known = missing[i], ~missing[i]
        half = np.linalg.cholesky(model.precision[np.ix_(lost, lost)])
        pull = model.precision[np.ix_(lost, known)] @ (rows[i, known] - model.mean[known])
        noise = rng.standard_normal(len(half)) - np.linalg.solve(half, pull)
        rows[i, lost] = model.mean[lost] + np.linalg.solve(half.T, noise)
    return rows


def _draw_mixed(model: MixedModel, rows: Array, missing: BoolArray, rng: np.random.Generator) -> Array:
    rows, features = rows.copy(), model.features(rows)
    for _ in range(SWEEPS):
        for j, at in _cells(missing):
            model.redraw(rows, j, features, at, rng)
    return rows


def _cells(missing: BoolArray) -> list[tuple[int, IntArray]]:
    """Nodes with missing cells, and their rows."""
    return [(j, np.flatnonzero(missing[:, j])) for j in range(missing.shape[1]) if missing[:, j].any()]


def _draw_states(model: DiscreteModel, rows: Array, missing: BoolArray, rng: np.random.Generator) -> Array:
    codes, features = rows.copy(), model.features(rows)
    for _ in range(SWEEPS):
        for j, at in _cells(missing):
            codes[at, j] = draw_states(_log_odds(model, features[at], j), rng)
            features[at] = model.features(codes[at])
    return codes


def _log_odds(model: DiscreteModel, features: Array, j: int) -> Array:
    """Of the states of node j given the features of all others, up to a constant a row."""
    if isinstance(model, PottsModel):
        own = slice(model.offsets[j], model.offsets[j + 1])
        return np.asarray(model.fields[own] + features @ model.couplings[:, own])
    eta = model.fields[j] + features @ model.couplings[:, j]
    return np.column_stack([np.zeros_like(eta), eta])
