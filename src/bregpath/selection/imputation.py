"""Rows with missing cells, completed by the very graph that is learned from them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bregpath._typing import BoolArray
from bregpath.graphs.missing import draw_missing
from bregpath.graphs.study import GraphStudy
from bregpath.selection.graphs import criterion

__all__ = ["complete"]

ROUNDS = 5  # of learning a graph and drawing from it


def complete(study: GraphStudy, missing: BoolArray, gamma: float, rng: np.random.Generator) -> GraphStudy:
    """The study with missing cells of its rows drawn from the graph that EBIC chooses on them, a few times over.

    The rows come with some values in these cells. Nodes that do not vary keep them: there is nothing to draw.
    """
    missing = missing & study.layout.varies(study.rows, study.w)
    for _ in range(ROUNDS if missing.any() else 0):
        chosen = criterion(study, "ebic", gamma)
        model = chosen.path.model(chosen.t)
        study = replace(study, rows=draw_missing(model, study.rows, missing, rng))
    return study
