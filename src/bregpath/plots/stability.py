"""Stability selection as a figure: how often each variable was selected, over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bregpath._typing import IntArray
from bregpath.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bregpath.selection.stability import Stability

__all__ = ["plot_stability"]


def plot_stability(stability: Stability, ax: Axes | None = None, *, top: int = 15, title: str | None = None) -> Axes:
    """Draw the probability of selection of every variable against time, with the threshold.

    Stable variables are coloured and named at the right, the others are grey. Above is q(t), the mean number of
    variables that a replicate has selected.

    Parameters
    ----------
    stability : Stability
        Of `stability_selection` or `replicate_stability`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    top : int, default 15
        How many of the stable variables are coloured and named, the most probable first.
    title : str, optional
        The number of stable variables and the error bound by default; an empty string for none.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_linear(100, 20, 3, seed=0)
    >>> stability = bregpath.stability_selection(data.X, data.y, n_replicates=20)
    >>> plot_stability(stability).get_ylabel()
    'Probability of selection'
    """
    ax = style.new_axes(ax)
    times, probabilities = stability.times, stability.probabilities
    style.log_time_axis(ax, times)
    stable = _stable(stability)
    named = _order(stability, stable[: max(int(top), 0)])
    styles = [style.curve_style(i) for i in range(len(named))]
    names = stability.item_names
    style.draw_curves(ax, times, probabilities, named, names, styles)
    ax.axhline(stability.threshold, color=style.INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1.5)
    ax.set_ylim(-0.02, 1.02)
    if times[-1] > times[0]:
        ax.set_xlim(times[0], times[-1])
    what = "variables" if stability.edges is None else "edges"
    if title is None:
        title = f"{len(stable)} stable {what}, expected false ones ≤ {stability.error_bound:.2g}"
    style.label_axes(ax, style.TIME_LABEL, "Probability of selection", title)
    style.count_axis(ax, times, np.round(stability.size), f"Mean number of {what} selected")
    style.end_labels(ax, probabilities[-1, named], [names[j] for j in named], styles)
    return ax


def _stable(stability: Stability) -> IntArray:
    """Stable items, the most probable first; of equals the one that was so earlier."""
    best = stability.max_probability
    stable = np.argsort(-best, kind="stable")[: len(stability.selected)]
    return stable[np.lexsort((-stability.probabilities[:, stable].sum(axis=0), -best[stable]))]


def _order(stability: Stability, items: IntArray) -> IntArray:
    """Highest curve at the end first, so that neighbouring names differ in colour."""
    return items[np.argsort(-stability.probabilities[-1, items], kind="stable")]
