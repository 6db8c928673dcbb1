"""A path as a figure: every coefficient against time, the l1 norm, or the deviance explained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from bregpath._typing import Array, BoolArray, IntArray
from bregpath.graphs.path import GraphPath
from bregpath.path import Path
from bregpath.plots import style
from bregpath.structures.path import StructuredPath

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PathCurves", "path_curves", "plot_path"]

AnyPath: TypeAlias = Path | GraphPath | StructuredPath

XVARS = {
    "t": style.TIME_LABEL,
    "norm": "L1 norm of the coefficients",
    "deviance": "Share of deviance explained",
}


@dataclass(frozen=True)
class PathCurves:
    """What `plot_path` draws: ``k`` columns that were ever active, at ``m`` times.

    Attributes
    ----------
    t : ndarray of shape (m,)
        Times: a fine grid and every time at which a column enters or leaves.
    x : ndarray of shape (m,)
        The horizontal axis at these times.
    coef : ndarray of shape (m, k)
        Coefficients, or their norms over classes.
    columns : ndarray of shape (k,)
        Columns of the design, in the order in which they entered.
    names : list of str
    active : ndarray of shape (m, k)
        Whether a column is in the model.
    n_variables : ndarray of shape (m,)
        Number of columns in the model.
    xlabel, ylabel : str

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_linear(100, 20, 3, seed=0)
    >>> curves = bregpath.plots.path_curves(bregpath.trace_path(data.X, data.y, t_ratio=3))
    >>> curves.coef.shape == (len(curves.t), len(curves.names))
    True
    """

    t: Array
    x: Array
    coef: Array
    columns: IntArray
    names: list[str]
    active: BoolArray
    n_variables: Array
    xlabel: str
    ylabel: str

    def x_at(self, t: float) -> float:
        """Place of a time on the horizontal axis."""
        return float(np.interp(t, self.t, self.x))


def path_curves(
    path: AnyPath, xvar: str = "t", *, output: Any = None, standardized: bool = False, n_points: int = 400
) -> PathCurves:
    """The curves of a path, to be drawn by any tool.

    Coefficients come from the exact dense output of the path, so that curves are smooth and turn exactly
    where a variable enters.

    Parameters
    ----------
    path : Path, GraphPath or StructuredPath
    xvar : {"t", "norm", "deviance"}, default "t"
        Horizontal axis: time, the l1 norm of all coefficients, or the share of the deviance explained (known
        at the times of the path, interpolated between).
    output : optional
        Class label (or index of an output) of a path with several; None gives the norm over all of them.
    standardized : bool, default False
        Coefficients of columns scaled as they were inside the path, so that their sizes can be compared.
    n_points : int, default 400
        Points of the grid.

    Returns
    -------
    PathCurves

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_linear(100, 10, 3, seed=0)
    >>> path = bregpath.trace_path(data.X, data.y, t_ratio=2)
    >>> curves = bregpath.plots.path_curves(path)
    >>> sorted(curves.names), curves.coef.shape == (len(curves.t), 3)
    (['x0', 'x1', 'x2'], True)
    """
    if xvar not in XVARS:
        raise ValueError(f"`xvar` must be one of {sorted(XVARS)}, found {xvar!r}.")
    which = _output_index(path, output)
    t = _grid(path, n_points)
    _, columns, full = path.read(t)
    if standardized:
        full *= path.scale[columns, None]
    active = np.any(full != 0, axis=2)
    column = 0 if path.n_outputs == 1 else which
    coef = np.linalg.norm(full, axis=2) if column is None else full[:, :, column]
    if xvar == "t":
        x = t
    elif xvar == "norm":
        x = np.abs(full).sum(axis=(1, 2))
    else:
        x = _deviance_at(path, t)
    names = path.feature_names
    return PathCurves(
        t, x, coef, columns, [names[j] for j in columns], active, active.sum(axis=1), XVARS[xvar],
        _ylabel(path, which, standardized),
    )  # fmt: skip


def plot_path(
    path: AnyPath,
    ax: Axes | None = None,
    *,
    xvar: str = "t",
    top: int = 10,
    mark: float | Mapping[str, float] | None = None,
    output: Any = None,
    standardized: bool = False,
    colors: Sequence[str] | None = None,
    title: str | None = None,
) -> Axes:
    """Draw every coefficient of a path, with the number of variables above and the largest named at right.

    Parameters
    ----------
    path : Path, GraphPath or StructuredPath
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    xvar, output, standardized
        As in `path_curves`.
    top : int, default 10
        How many of the largest coefficients at the end of the path are coloured and named; others are grey.
    mark : float or dict, optional
        A time to mark with a vertical line, or several with their names, ``{"t_min": 3.1, "t_1se": 1.2}``.
    colors : sequence of colours, optional
        Colours of the named curves, used in turn.
    title : str, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_linear(100, 10, 3, seed=0)
    >>> path = bregpath.trace_path(data.X, data.y)
    >>> ax = plot_path(path, mark=2 * path.t[0])
    >>> ax.get_ylabel()
    'Coefficient'
    """
    curves = path_curves(path, xvar, output=output, standardized=standardized)
    ax = style.new_axes(ax)
    marks = _marks(path, mark)
    if xvar == "t":
        style.log_time_axis(ax, curves.t)
    named = _largest(curves.coef, top)
    styles = [_named_style(i, colors) for i in range(len(named))]
    _draw(ax, curves, named, styles)
    low, high = float(curves.x.min()), float(curves.x.max())
    if high > low:
        ax.set_xlim(low, high)
    style.label_axes(ax, curves.xlabel, curves.ylabel, title)
    style.count_axis(ax, curves.x, curves.n_variables, f"Number of {path.counts}")
    style.mark_times(ax, {name: curves.x_at(t) for name, t in marks.items()})
    style.end_labels(ax, curves.coef[-1, named], [curves.names[j] for j in named], styles)
    if not len(curves.columns):
        ax.text(0.5, 0.6, "no variable enters", transform=ax.transAxes, ha="center", color=style.INK)
    return ax


def _draw(ax: Axes, curves: PathCurves, named: IntArray, styles: list[dict[str, Any]]) -> None:
    """Grey curves below, the named ones above; a curve shows only while its variable is in the model."""
    inside = curves.active.copy()
    inside[:-1] |= curves.active[1:]  # the zero from which a curve starts,
    inside[1:] |= curves.active[:-1]  # and the one to which it returns
    shown = np.where(inside, curves.coef, np.nan)
    ax.axhline(0.0, color=style.INK, linewidth=0.8, zorder=1)
    style.draw_curves(ax, curves.x, shown, named, curves.names, styles)


def _marks(path: AnyPath, mark: float | Mapping[str, float] | None) -> dict[str, float]:
    """Times to mark, by the text at their lines."""
    if mark is None:
        return {}
    marks = dict(mark) if isinstance(mark, Mapping) else {f"t = {mark:.3g}": float(mark)}
    for t in marks.values():
        path.at(t)  # an error for a time beyond the end
    return marks


def _named_style(i: int, colors: Sequence[str] | None) -> dict[str, Any]:
    return style.curve_style(i) if colors is None else {"color": colors[i % len(colors)], "linestyle": "-"}


def _largest(coef: Array, top: int) -> IntArray:
    """The largest coefficients at the end, highest first, so that neighbours differ in colour."""
    end = coef[-1]
    chosen = np.argsort(-np.abs(end), kind="stable")[: max(int(top), 0)]
    chosen = chosen[end[chosen] != 0]
    return chosen[np.argsort(-end[chosen], kind="stable")]


def _grid(path: AnyPath, n_points: int) -> Array:
    """Log-spaced times over the path and all times at which its support changes."""
    end = float(path.t[-1])
    events = path.event_times
    start = float(path.t[0]) if path.t[0] < end else min(events.min(initial=end), 0.1 * end)
    grid = np.geomspace(start, end, n_points)
    grid[0], grid[-1] = start, end  # geomspace rounds
    if np.isinf(path.kappa):  # coefficients jump there
        events = np.concatenate([events, events * (1 + 1e-9)])
    return np.unique(np.concatenate([grid, events[(events > start) & (events < end)]]))


def _deviance_at(path: AnyPath, t: Array) -> Array:
    """Share of the deviance explained between the times of the path: monotone cubics in log t."""
    if len(path.t) == 1:
        return np.interp(t, [0.0, path.t[0]], [0.0, path.deviance_ratio[0]])
    from scipy.interpolate import PchipInterpolator

    return PchipInterpolator(np.log(path.t), path.deviance_ratio)(np.log(t))


def _output_index(path: Any, output: Any) -> int | None:
    """Which output a label or index means; None for the norm over all."""
    if output is None:
        return None
    if path.n_outputs == 1:
        raise ValueError(f"`output`={output!r} was given, but this path has one output; leave it out.")
    labels = [] if path.classes is None else path.classes.tolist()
    if output in labels:
        return labels.index(output)
    if isinstance(output, int | np.integer) and 0 <= output < path.n_outputs:
        return int(output)
    known = labels or list(range(path.n_outputs))
    raise ValueError(f"`output` must be one of {known} (or its index), found {output!r}.")


def _ylabel(path: Any, which: int | None, standardized: bool) -> str:
    per = " per standard deviation" if standardized and (path.scale != 1).any() else ""
    if path.n_outputs == 1:
        return f"{path.value_name}{per}"
    if which is None:
        return f"Norm of coefficients over classes{per}"
    return f"Coefficient for class {path.output_names[which]}{per}"
