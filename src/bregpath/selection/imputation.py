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
AROUND = 4.0  # times the time of the last graph: how far the next is looked for


def complete(study: GraphStudy, missing: BoolArray, gamma: float, rng: np.random.Generator) -> GraphStudy:
    """The study with missing cells of its rows drawn from the graph that EBIC chooses on them, a few times over.

    The rows come with some values in these cells. Nodes that do not vary keep them: there is nothing to draw.
    """
    missing = missing & study.layout.varies(study.rows, study.w)
    looked_at = study
    for _ in range(ROUNDS if missing.any() else 0):
        chosen = criterion(looked_at, "ebic", gamma)
        rows = draw_missing(chosen.path.model(chosen.t), looked_at.rows, missing, rng)
        study = replace(study, rows=rows)
        # Late times cost most, and are not chosen: the next graph is looked for around this one.
        times = chosen.path.t
        looked_at = study.with_options(t=times[times <= AROUND * chosen.t])
    return study
