r"""Missing cells of a table, drawn from a graphical model given what is known of their rows.

Drawn, and not replaced by their most probable value or mean: that would make variables look more alike than they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bregpath._typing import Array, BoolArray
from bregpath.graphs.models import GaussianModel

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
    rows, features = rows.copy(), model.features(rows)
    cells = [(j, np.flatnonzero(missing[:, j])) for j in np.flatnonzero(missing.any(axis=0))]
    for _ in range(SWEEPS):
        for j, at in cells:
            model.redraw(rows, j, features, at, rng)
    return rows


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
