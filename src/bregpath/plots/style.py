"""What all figures share: colours, axes, labels that keep apart. Matplotlib's settings stay untouched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bregpath._typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "COLORS",
    "count_axis",
    "curve_style",
    "draw_curves",
    "end_labels",
    "label_axes",
    "log_time_axis",
    "mark_times",
    "new_axes",
    "spread",
    "subplots",
]

# Okabe and Ito's colours, which people with any colour blindness tell apart, without the pale yellow.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# Beyond seven curves the colours come again with another dash.
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)))

INK = "#333333"
FAINT = "#C4C4C4"
GRID = "#ECECEC"
LABEL_SIZE = 8.5
TIME_LABEL = "Time t (weaker regularisation →)"


def subplots(rows: int = 1, columns: int = 1, **options: Any) -> Any:
    """Axes (rows, columns) of a new figure."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("Figures need matplotlib: pip install bregpath[plot]") from None
    return plt.subplots(rows, columns, layout="constrained", squeeze=False, **options)[1]


def new_axes(ax: Axes | None, figsize: tuple[float, float] = (7.0, 4.4)) -> Axes:
    """The given axes, or those of a new figure, cleaned of everything that carries no information."""
    if ax is None:
        ax = subplots(figsize=figsize)[0, 0]
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(INK)
    ax.spines[["left", "bottom"]].set_linewidth(0.8)
    ax.tick_params(colors=INK, labelsize=LABEL_SIZE, width=0.8, length=3)
    ax.grid(True, axis="y", color=GRID, linewidth=0.8)
    ax.set_axisbelow(True)
    return ax


def curve_style(i: int) -> dict[str, Any]:
    """Colour and dash of the i-th curve."""
    return {"color": COLORS[i % len(COLORS)], "linestyle": DASHES[(i // len(COLORS)) % len(DASHES)]}


def draw_curves(ax: Axes, x: Array, y: Array, named: Array, names: Sequence[str], styles: Sequence[Any]) -> None:
    """Columns of ``y``: those that are named in their styles, above the others in grey."""
    others = np.setdiff1d(np.flatnonzero(y.any(axis=0)), named)
    if len(others):
        ax.plot(x, y[:, others], color=FAINT, linewidth=0.9, zorder=2)
    for j, look in zip(named, styles, strict=True):
        ax.plot(x, y[:, j], label=names[j], linewidth=1.6, zorder=3, **look)


def label_axes(ax: Axes, x: str, y: str, title: str | None) -> None:
    """Words at the axes, and above if there are any."""
    ax.set_xlabel(x, color=INK)
    ax.set_ylabel(y, color=INK)
    if title:
        ax.set_title(title, loc="left", fontsize=11, color=INK)


def log_time_axis(ax: Axes, t: Array) -> None:
    """A logarithmic axis of times with plain numbers: 1, 2, 5, 10, ..."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax.set_xscale("log")
    decades = np.log10(t[-1] / t[0])
    subs = (1.0, 2.0, 5.0) if decades < 3.5 else (1.0,)
    ax.xaxis.set_major_locator(LogLocator(base=10, subs=subs, numticks=30))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.xaxis.set_tick_params(which="minor", length=0)


def count_axis(ax: Axes, x: Array, count: Array, label: str = "Number of variables", n_ticks: int = 9) -> Any:
    """A top axis that tells how many variables are in the model at places along the x axis."""
    low, high = ax.get_xlim()
    if ax.get_xscale() == "log":
        ticks = np.geomspace(max(low, x.min()), min(high, x.max()), n_ticks)
    else:
        ticks = np.linspace(max(low, x.min()), min(high, x.max()), n_ticks)
    # x need not grow along the path (a norm may fall): the first time it gets there.
    furthest = np.maximum.accumulate(x)
    counts = count[np.minimum(np.searchsorted(furthest, ticks * (1 - 1e-9)), len(x) - 1)]
    top = ax.secondary_xaxis("top")
    top.set_xticks(ticks, [str(int(c)) for c in counts])
    top.minorticks_off()
    top.tick_params(colors=INK, labelsize=LABEL_SIZE, width=0.8, length=3)
    top.spines["top"].set_visible(False)
    top.set_xlabel(label, fontsize=LABEL_SIZE, color=INK)
    return top


def mark_times(ax: Axes, places: Mapping[str, float], at: str = "foot") -> None:
    """Vertical lines with their names at the foot or top; names that would touch go one above the other."""
    taken: list[float] = []
    for name, x in sorted(places.items(), key=lambda item: item[1]):
        ax.axvline(x, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1.5)
        where = float(ax.transAxes.inverted().transform(ax.transData.transform((x, 0.0)))[0])
        shift = 4 + 12 * sum(abs(where - other) < 0.15 for other in taken)
        taken.append(where)
        left = where > 0.85  # no room at the right of the line
        ax.annotate(
            name,
            xy=(x, 0.0 if at == "foot" else 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(-3 if left else 3, shift if at == "foot" else -shift),
            textcoords="offset points",
            ha="right" if left else "left",
            va="bottom" if at == "foot" else "top",
            fontsize=LABEL_SIZE,
            color=INK,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.6},
            zorder=4,
        )


def spread(wanted: Sequence[float] | Array, gap: float, low: float = -np.inf, high: float = np.inf) -> Array:
    """Positions near to the wanted ones (least squares), in the same order, at least ``gap`` apart.

    Less rank times gap, positions must not fall: isotonic regression.

    Examples
    --------
    >>> spread([0.0, 0.1, 5.0], gap=1.0)
    array([-0.45,  0.55,  5.  ])
    """
    from scipy.optimize import isotonic_regression

    target = np.asarray(wanted, dtype=float)
    order = np.argsort(target, kind="stable")
    ranks = np.arange(len(target)) * gap
    level = isotonic_regression(target[order] - ranks).x
    out = np.empty(len(target))
    # Clipping the shifted positions keeps the gaps; where all do not fit, the bottom gives way.
    out[order] = np.minimum(np.maximum(level, low), high - ranks[-1:].max(initial=0.0)) + ranks
    return out


def end_labels(ax: Axes, ends: Array, names: Sequence[str], styles: Sequence[dict[str, Any]]) -> None:
    """Names at the right of the axes where curves end, moved apart, with a thin line to each end."""
    if not len(ends):
        return
    height = ax.get_window_extent().height * 72 / ax.figure.dpi  # points
    low, high = ax.get_ylim()
    fraction = (np.asarray(ends) - low) / (high - low)
    gap = min(1.25 * LABEL_SIZE / height, 1.0 / max(len(ends) - 1, 1))
    places = spread(fraction, gap, low=0.0, high=1.0)
    for start, place, name, style in zip(fraction, places, names, styles, strict=True):
        look = {"transform": ax.transAxes, "color": style["color"]}
        ax.plot([1.0, 1.018, 1.03], [start, place, place], linewidth=0.7, clip_on=False, scalex=False, **look)
        ax.text(1.037, place, name, fontsize=LABEL_SIZE, va="center", ha="left", **look)
