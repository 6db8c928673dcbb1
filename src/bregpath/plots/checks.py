"""Data and samples of a model as a figure: margins, pairs, triplets and the number of active nodes."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from bregpath._typing import Array
from bregpath.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bregpath.graphs.check import Comparison, ModelCheck

__all__ = ["plot_check"]

DATA, MODEL = style.INK, style.COLORS[0]


def plot_check(check: ModelCheck, *, figsize: tuple[float, float] = (9.0, 7.6)) -> Array:
    """Draw each statistic of the model against that of the data, and both distributions of active nodes.

    Points on the diagonal agree; the band is twice the root mean square difference by chance to either side. Titles of
    what chance does not explain are red, the verdict stands above.

    Parameters
    ----------
    check : ModelCheck
        Of ``graph.check(X)`` or `bregpath.graphs.check_model`.
    figsize : tuple of float
        Width and height in inches.

    Returns
    -------
    ndarray of matplotlib Axes, of shape (2, 2)

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_ising_grid(3, T=1.5, n=300, seed=0)
    >>> axes = plot_check(bregpath.graphs.check_model(data.model, data.X))
    >>> axes[0, 1].get_xlabel()
    'pairs of the data'
    """
    axes: Array = style.subplots(2, 2, figsize=figsize)
    for ax, part in zip(axes.ravel(), (check.margins, check.pairs, check.triplets), strict=False):
        _scatter(style.new_axes(ax), part)
    _distributions(style.new_axes(axes[1, 1]), check)
    axes[0, 0].figure.suptitle(fill(check.verdict, 110), fontsize=10, color=style.INK, x=0.01, ha="left")
    return axes


def _scatter(ax: Axes, part: Comparison) -> None:
    low, high = _limits(part)
    band = 2.0 * float(part.by_chance.mean())
    ax.fill_between([low, high], [low - band, high - band], [low + band, high + band], color=style.GRID, zorder=1)
    ax.plot([low, high], [low, high], color=style.FAINT, linewidth=1.0, zorder=1.5)
    ax.plot(part.data, part.model, ".", color=MODEL, markersize=4.0, alpha=0.5, markeredgewidth=0.0, zorder=2)
    ax.set_xlim(low, high)
    ax.set_ylim(low, high)
    ax.grid(False)
    style.label_axes(ax, f"{part.name} of the data", "of the model", None)
    _title(ax, part)


def _limits(part: Comparison) -> tuple[float, float]:
    values = np.concatenate([part.data, part.model]) if len(part.data) else np.array([0.0, 1.0])
    pad = 0.05 * float(np.ptp(values)) or 0.5
    return float(values.min()) - pad, float(values.max()) + pad


def _distributions(ax: Axes, check: ModelCheck) -> None:
    part = check.active
    number = np.arange(len(part.data))
    ax.step(number, part.data, where="mid", color=DATA, linewidth=1.4, label="data")
    ax.step(number, part.model, where="mid", color=MODEL, linewidth=1.4, linestyle=(0, (4, 1.5)), label="model")
    ax.set_ylim(bottom=0.0)
    ax.legend(frameon=False, fontsize=style.LABEL_SIZE, labelcolor=style.INK)
    style.label_axes(ax, "active nodes in a row", "share of rows", None)
    _title(ax, part)


def _title(ax: Axes, part: Comparison) -> None:
    color = style.INK if part.agrees else style.COLORS[1]
    ax.set_title(f"{part.name}: {part.ratio:.2g} times chance", loc="left", fontsize=11, color=color)
