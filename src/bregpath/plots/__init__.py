"""Figures of paths, selections and graphs. Every function takes the thing to draw and returns the Axes.

They need Matplotlib (``pip install bregpath[plot]``). What is drawn is computed apart,
without it, by `path_curves`.
"""

from __future__ import annotations

from bregpath.plots.checks import plot_check
from bregpath.plots.contacts import plot_contacts
from bregpath.plots.graphs import plot_graph, plot_graph_comparison
from bregpath.plots.paths import PathCurves, path_curves, plot_path
from bregpath.plots.selection import plot_selection
from bregpath.plots.stability import plot_stability

__all__ = [
    "PathCurves",
    "path_curves",
    "plot_check",
    "plot_contacts",
    "plot_graph",
    "plot_graph_comparison",
    "plot_path",
    "plot_selection",
    "plot_stability",
]
