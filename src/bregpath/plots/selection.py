"""A selection as a figure: the curve by which a time on the path was chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bregpath._typing import Array
from bregpath.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bregpath.selection.result import KappaCurve, Selection

__all__ = ["plot_selection"]


def plot_selection(
    selection: Selection,
    ax: Axes | None = None,
    *,
    train: bool = False,
    color: str = style.COLORS[0],
    title: str | None = None,
) -> Axes:
    """Draw the curve by which t was chosen, standard errors, the chosen times and the number of variables.

    The dotted line is one standard error above the best time (below it, where larger is better): by glmnet's rule the
    first time on the curve that gets there is ``t_1se``. Of several kappas there is a curve each, with a dot at its
    best time; the chosen one has error bars.

    Parameters
    ----------
    selection : Selection
        Of `cross_validate`, an information criterion, or any other rule.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    train : bool, default False
        Draw the mean score of the training rows too, in another colour (cross-validation only).
    color : str, optional
        Colour of the curve.
    title : str, optional
        The rule by default; an empty string for none.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import bregpath
    >>> from bregpath.selection.criteria import information_criterion
    >>> data = bregpath.datasets.make_linear(100, 20, 4, seed=0)
    >>> path = bregpath.trace_path(data.X, data.y)
    >>> ax = plot_selection(information_criterion(path, "bic", n=100))
    >>> ax.get_ylabel()
    'BIC'
    """
    ax = style.new_axes(ax)
    times, mean = np.asarray(selection.times), np.asarray(selection.mean, dtype=float)
    shown = np.where(np.isfinite(mean), mean, np.nan)
    dashes, label, span = "-", "held-out rows", times
    if selection.surface:
        chosen = next(one for one in selection.curves_of_kappas() if one.is_chosen)
        color, dashes, span = _kappa_colors(selection)[chosen.kappa], _dashes(chosen), _all_times(selection)
        label = label if train else "_"  # one of the kappas, which have names
        _draw_kappas(ax, selection)
    style.log_time_axis(ax, span)
    if selection.se is not None:
        se = np.where(np.isfinite(mean), selection.se, np.nan)
        ax.errorbar(times, shown, se, fmt="none", ecolor=style.FAINT, elinewidth=0.9, capsize=1.6, zorder=2)
        best = int(np.argmin(np.abs(times - selection.t_min)))
        limit = mean[best] - se[best] if selection.larger_is_better else mean[best] + se[best]
        ax.axhline(limit, color=style.INK, linewidth=0.7, linestyle=(0, (1, 2)), zorder=1.5)
    ax.plot(times, shown, dashes, color=color, linewidth=1.4, marker="o", markersize=2.8, zorder=3, label=label)
    if train:
        ax.plot(times, selection.train_mean, color=style.COLORS[1], linewidth=1.2, zorder=2.5, label="training rows")
    if train or selection.surface:
        beside: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
        place = beside if selection.surface else {"loc": "lower left"}
        ax.legend(frameon=False, fontsize=style.LABEL_SIZE, labelcolor=style.INK, **place)
    if selection.surface:
        _frame_kappas(ax, selection)
    elif times[-1] > times[0]:
        ax.set_xlim(times[0] * 0.97, times[-1] * 1.03)
    title = f"Chosen by {selection.rule}" if title is None else title
    style.label_axes(ax, style.TIME_LABEL, _measure(selection), title)
    count, label = _variables(selection)
    if count is not None and not selection.surface:
        style.count_axis(ax, times, count, label)
    if not selection.surface:
        style.mark_times(ax, _chosen(selection), at="top")
    return ax


def _kappa_colors(selection: Selection) -> dict[float | None, str]:
    """From green for small kappas to violet for large ones."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    shades = np.linspace(0.85, 0.0, len(selection.surface))
    return {kappa: to_hex(colormaps["viridis"](x)) for kappa, x in zip(selection.surface, shades, strict=True)}


def _dashes(one: KappaCurve) -> str:
    """Where curves are those of means over time, those of chosen paths themselves are dashed."""
    return "--" if one.is_plain else "-"


def _draw_kappas(ax: Axes, selection: Selection) -> None:
    """A curve a kappa, and its best point; rings around the best of all and the sparse choice."""
    colors, curves = _kappa_colors(selection), selection.curves_of_kappas()
    named = sorted((one for one in curves if one.names), key=lambda one: one.curve.t_min)
    for one in curves:
        curve, color = one.curve, colors[one.kappa]
        mean = np.where(np.isfinite(curve.mean), curve.mean, np.nan)
        label = f"κ = {one.kappa:g}" + ", path itself" * one.is_plain
        ax.plot(curve.times, mean, _dashes(one), color=color, linewidth=1.1, zorder=2.5, label=label)
        best = (curve.t_min, mean[curve.best])
        ax.plot(*best, "o", color=color, markersize=4.5, zorder=3.5)
        if not one.names:
            continue
        ax.plot(*best, "o", markerfacecolor="none", markeredgecolor=style.INK, markersize=10, zorder=3.6)
        # Outside the valley (or hill), and two names away from each other.
        away = "center" if len(named) == 1 else "right" if one is named[0] else "left"
        shift, at = (8, "bottom") if curve.larger_is_better else (-8, "top")
        ax.annotate(
            ", ".join(one.names), best, (0, shift), textcoords="offset points", ha=away, va=at,
            fontsize=style.LABEL_SIZE, color=style.INK, zorder=4,
        )  # fmt: skip


def _all_times(selection: Selection) -> Array:
    """Of all kappas."""
    return np.unique(np.concatenate([one.curve.times for one in selection.curves_of_kappas()]))


def _frame_kappas(ax: Axes, selection: Selection) -> None:
    """All times of all kappas, and scores from the best halfway to that of the null model.

    Where nothing is better than the null model, what is to be seen is how far the errors reach.
    """
    curves, times = [one.curve for one in selection.curves_of_kappas()], _all_times(selection)
    ax.set_xlim(times[0] * 0.9, times[-1] * 1.1)
    sign = -1.0 if selection.larger_is_better else 1.0
    levels = sign * np.concatenate([curve.mean for curve in curves])
    low, null = float(np.min(levels[np.isfinite(levels)])), float(max(sign * curve.mean[0] for curve in curves))
    error = float(max(curve.se[curve.best] for curve in curves))
    span = max(0.5 * (null - low), 1.5 * error if np.isfinite(error) else 0.0)
    if np.isfinite(span) and span > 0:
        ax.set_ylim(*sorted((sign * (low - 0.2 * span), sign * (low + span))))


def _chosen(selection: Selection) -> dict[str, float]:
    """The times to mark, by name; one line where rules agree."""
    marks = {}
    if selection.t_1se is not None and selection.t_1se != selection.t_min:
        marks["t_1se"] = float(selection.t_1se)
        marks["t_min"] = float(selection.t_min)
    else:
        marks["t_min" if selection.t_1se is None else "t_min = t_1se"] = float(selection.t_min)
    if selection.t not in marks.values():
        marks["t"] = float(selection.t)
    return marks


def _measure(selection: Selection) -> str:
    name = selection.measure
    acronyms = ("aic", "aicc", "bic", "ebic", "gic", "auc", "mse", "mae")
    name = name.upper() if name in acronyms else name[:1].upper() + name[1:]
    return name if selection.se is None else f"{name} ± standard error"


def _variables(selection: Selection) -> tuple[Array | None, str]:
    """Number of variables at the times of the curve: those of the path on all rows, if it is there."""
    path = selection.path
    if path is not None:
        coef = path.read(np.minimum(selection.times, path.t[-1]))[2]
        return np.count_nonzero(coef.any(axis=2), axis=1), f"Number of {path.counts}"
    df = selection.curves.get("df")
    return (None, "") if df is None else (np.round(df), "Degrees of freedom")
