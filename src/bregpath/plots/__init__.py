"""Figures of paths and selections. Every function takes the thing to draw and returns the Axes.

They need Matplotlib (``pip install bregpath[plot]``). What is drawn is computed apart,
without it, by `path_curves`.
"""

from __future__ import annotations

from bregpath.plots.paths import PathCurves, path_curves, plot_path
from bregpath.plots.selection import plot_selection

__all__ = ["PathCurves", "path_curves", "plot_path", "plot_selection"]
