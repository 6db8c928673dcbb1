"""A graph as a figure: nodes with names, edges whose colour is the sign and whose width is the strength.

Everything is arranged in points (1/72 inch) of the axes that are drawn on, so that names keep apart at the size at
which they are read. Nothing is random but a small shift of the starting positions, by ``seed``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bregpath._typing import Array, BoolArray
from bregpath.graphs.export import check_graph
from bregpath.plots import style
from bregpath.plots.arrange import Arrangement, arrange, text_widths

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_graph", "plot_graph_comparison"]

POSITIVE, NEGATIVE = style.COLORS[2], style.COLORS[1]  # bluish green and vermilion: apart for every eye
DASH = (0, (3.2, 1.4))  # of negative edges, so that they are told from positive ones in grey too
NODE_COLORS = ("#0072B2", "#E69F00", "#CC79A7", "#56B4E9", "#000000")  # those that no edge has
MARKERS = "osD^vP"  # one more than colours, so that thirty groups look different
QUIET = "#8A8A8A"
PALE = 0.35  # opacity of nodes without edges
THINNEST = 0.7  # points; every edge must be seen, however weak


@dataclass(frozen=True)
class _Look:
    """What the nodes of all panels share."""

    names: list[str]
    groups: list[str] | None
    colors: dict[str, str]
    fields: Array | None
    scale: float  # the strength that gets the largest width
    max_width: float
    has_sign: BoolArray  # (p, p)


def plot_graph(
    weights: Any,
    names: Sequence[str] | None = None,
    *,
    fields: Any = None,
    groups: Sequence[Any] | None = None,
    group_colors: Mapping[Any, str] | None = None,
    has_sign: Any = None,
    layout: Any = "spring",
    ax: Axes | None = None,
    max_width: float | None = None,
    min_weight: float = 0.0,
    node_size: float | None = None,
    label_size: float | None = None,
    seed: int = 0,
    title: str | None = None,
) -> Axes:
    """Draw a graph: positive edges green, negative ones red and dashed, as wide as they are strong.

    Parameters
    ----------
    weights : array-like of shape (p, p)
        Symmetric, zero diagonal: couplings, partial correlations, norms of blocks.
    names : sequence of str, optional
        Nodes; ``x0, x1, ...`` by default.
    fields : array-like of shape (p,), optional
        The area of a node grows with its absolute field; nodes with a negative one are hollow.
    groups : sequence of length p, optional
        A label for each node (party, community), shown by colour and shape, with a legend.
    group_colors : dict, optional
        Colours of the groups.
    has_sign : array-like of bool of shape (p, p), optional
        Edges that have none, norms of blocks among signed weights, are grey. By default all have one.
    layout : {"spring", "circle", "grid"}, dict or array of shape (p, 2), default "spring"
        ``"spring"`` minimises the stress ``sum_{j<k} (|x_j - x_k| - d_jk)^2 / d_jk^2``, where ``d`` is the length of
        the shortest path and strong edges are short, sets components side by side, moves nodes until no names
        overlap, and puts nodes without edges aside, below. ``"grid"`` goes row by row. Positions may be given, by
        name or in order.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    max_width : float, optional
        Width in points of the strongest edge; other widths are in proportion, but never below 0.7 points.
    min_weight : float, default 0
        Edges at or below this strength are left out.
    node_size, label_size : float, optional
        Diameter of nodes and size of names, in points; by default as large as there is room for.
    seed : int, default 0
        Other seeds may give other layouts; the same one always gives the same.
    title : str, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> weights = np.zeros((4, 4))
    >>> weights[0, 1] = weights[1, 0] = 0.8
    >>> weights[1, 2] = weights[2, 1] = -0.4
    >>> ax = plot_graph(weights, names=["raf", "mek", "erk", "akt"])
    >>> ax.collections[0].get_linewidth()
    array([3., 6.])
    """
    matrix, labels = check_graph(weights, names)
    matrix = np.where(np.abs(matrix) > min_weight, matrix, 0.0)
    look = _look(np.abs(matrix), labels, groups, group_colors, fields, max_width, has_sign)
    drawn, ax = ax is not None, _blank_axes(ax, len(labels), title)
    if not drawn:
        ax.figure.draw_without_rendering()  # type: ignore[union-attr]  # settles how much room the axes have
    handles = _legend_handles(look, [matrix])
    width, height = _room(ax)
    legend = _legend_options(handles, width)
    foot = 1.6 * style.LABEL_SIZE * -(-len(handles) // legend["ncols"]) + 4.0 if handles else 0.0
    canvas = width, height
    arranged = arrange(np.abs(matrix), look.names, look.fields, layout, canvas, foot, node_size, label_size, seed)
    _draw(ax, matrix, look, arranged)
    if handles:
        ax.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 0.0), borderaxespad=0.0, **legend)
    return ax


def plot_graph_comparison(
    graphs: Mapping[str, Any],
    names: Sequence[str] | None = None,
    *,
    fields: Any = None,
    groups: Sequence[Any] | None = None,
    group_colors: Mapping[Any, str] | None = None,
    layout: Any = "spring",
    max_width: float | None = None,
    min_weight: float = 0.0,
    node_size: float | None = None,
    label_size: float | None = None,
    seed: int = 0,
    figsize: tuple[float, float] | None = None,
) -> Array:
    """Draw several graphs of the same nodes side by side, with one layout and one scale of widths.

    Nodes are where the union of all graphs puts them, so that panels differ by their edges only; nodes without
    edges in a panel are pale there.

    Parameters
    ----------
    graphs : dict of array-likes of shape (p, p)
        Weights by title, ``{"composite": ..., "MPF": ..., "l1": ...}``.
    names, fields, groups, group_colors, layout, max_width, min_weight, node_size, label_size, seed
        As in `plot_graph`.
    figsize : tuple of float, optional
        Width and height of the figure in inches.

    Returns
    -------
    ndarray of matplotlib Axes, in the order of ``graphs``

    Examples
    --------
    >>> import numpy as np
    >>> weights = np.ones((4, 4)) - np.eye(4)
    >>> axes = plot_graph_comparison({"all": weights, "strong": np.where(weights > 2, weights, 0)})
    >>> [ax.get_title(loc="left") for ax in axes]
    ['all', 'strong']
    """
    if not isinstance(graphs, Mapping) or not graphs:
        raise TypeError(f"`graphs` must be a dict of weights by title, found {type(graphs).__name__}: {graphs!r:.40}")
    checked = [check_graph(weights, names) for weights in graphs.values()]
    labels = checked[0][1]
    if any(len(other) != len(labels) for _, other in checked):
        sizes = [len(other) for _, other in checked]
        raise ValueError(f"`graphs` must all have the same nodes, found {sizes} nodes.")
    matrices = [np.where(np.abs(matrix) > min_weight, matrix, 0.0) for matrix, _ in checked]
    union = np.max(np.abs(matrices), axis=0)
    look = _look(union, labels, groups, group_colors, fields, max_width)
    axes = _panels(len(matrices), len(labels), figsize)
    for ax, name in zip(axes, graphs, strict=True):
        _blank_axes(ax, len(labels), name)
    handles = _legend_handles(look, matrices)
    figure = axes[0].figure
    if handles:
        width = 72.0 * figure.get_figwidth()
        figure.legend(handles=handles, loc="outside lower center", **_legend_options(handles, width))
    figure.draw_without_rendering()
    arranged = arrange(union, look.names, look.fields, layout, _room(axes[0]), 0.0, node_size, label_size, seed)
    for ax, matrix in zip(axes, matrices, strict=True):
        _draw(ax, matrix, look, arranged)
    return axes


# --- canvas and legend -------------------------------------------------------------------------------------------


def _look(
    strength: Array, names: list[str], groups: Any, group_colors: Mapping[Any, str] | None, fields: Any, width: Any,
    has_sign: Any = None,
) -> _Look:  # fmt: skip
    p = len(names)
    signed = np.ones((p, p), dtype=bool) if has_sign is None else np.asarray(has_sign, dtype=bool)
    if signed.shape != (p, p):
        raise ValueError(f"`has_sign` must have an entry a pair of nodes, shape ({p}, {p}), found {signed.shape}.")
    for name, values in (("groups", groups), ("fields", fields)):
        if values is not None and np.shape(values) != (p,):
            raise ValueError(f"`{name}` must have one entry for each of the {p} nodes, found shape {np.shape(values)}.")
    fields = None if fields is None else np.asarray(fields, dtype=float)
    if fields is not None and not np.isfinite(fields).all():
        raise ValueError("`fields` contains NaN or infinity; every node needs a number.")
    member = None if groups is None else [str(g) for g in groups]
    wanted = {str(g): color for g, color in (group_colors or {}).items()}
    kinds = sorted(set(member or []))
    colors = {kind: wanted.get(kind, NODE_COLORS[i % len(NODE_COLORS)]) for i, kind in enumerate(kinds)}
    scale = float(strength.max(initial=0.0)) or 1.0
    if width is None:  # less where many nodes or many edges at each would make one blot
        crowd = max(np.count_nonzero(strength) / (6.0 * p), 1.0)
        width = np.clip(18.0 / np.sqrt(p), 3.0, 6.0) / min(crowd, 3.0)
    return _Look(names, member, colors, fields, scale, float(width), signed)


def _side(p: int) -> float:
    """Inches that a graph of p nodes should have."""
    return float(np.clip(3.0 + 0.55 * np.sqrt(p), 4.2, 9.0))


def _blank_axes(ax: Axes | None, p: int, title: str | None) -> Axes:
    ax = style.new_axes(ax, figsize=(1.2 * _side(p), _side(p)))
    ax.set_axis_off()
    if title:
        ax.set_title(title, loc="left", fontsize=11, color=style.INK)
    return ax


def _panels(n: int, p: int, figsize: tuple[float, float] | None) -> Array:
    columns = min(n, 3)
    rows = -(-n // columns)
    side = 0.8 * _side(p)
    size = (columns * side, rows * side + 0.4) if figsize is None else figsize
    grid = style.subplots(rows, columns, figsize=size)
    for ax in grid.ravel()[n:]:
        ax.set_axis_off()
    return grid.ravel()[:n]


def _room(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes in points."""
    extent = ax.get_window_extent()
    return extent.width * 72 / ax.figure.dpi, extent.height * 72 / ax.figure.dpi


def _legend_handles(look: _Look, matrices: list[Array]) -> list[Any]:
    """What colours, shapes, dashes and widths mean, as far as they occur."""
    from matplotlib.lines import Line2D

    dot: dict[str, Any] = {"linestyle": "none", "markersize": 6.5}
    handles = []
    for i, (kind, color) in enumerate(look.colors.items()):
        handles.append(Line2D([], [], marker=MARKERS[i % len(MARKERS)], color=color, label=kind, **dot))
    if look.fields is not None and (look.fields > 0).any():
        handles.append(Line2D([], [], marker="o", color=QUIET, label="field > 0", **dot))
    if look.fields is not None and (look.fields < 0).any():
        handles.append(Line2D([], [], marker="o", color=QUIET, markerfacecolor="white", label="field < 0", **dot))
    if any((m[look.has_sign] > 0).any() for m in matrices):
        handles.append(Line2D([], [], color=POSITIVE, linewidth=2.0, label="positive"))
    if any((m < 0).any() for m in matrices):
        handles.append(Line2D([], [], color=NEGATIVE, linewidth=2.0, linestyle=DASH, label="negative"))
    if any(m[~look.has_sign].any() for m in matrices):
        handles.append(Line2D([], [], color=QUIET, linewidth=2.0, label="no sign"))
    if any(m.any() for m in matrices):
        for value in sorted({float(f"{part * look.scale:.1g}") for part in (0.25, 1.0)}):
            width = _widths(value / look.scale, look)
            handles.append(Line2D([], [], color=QUIET, linewidth=width, label=f"|w| = {value:g}"))
        if any((~m.any(axis=1)).any() for m in matrices):
            dot["markersize"] = 4.5
            handles.append(Line2D([], [], marker="o", color=QUIET, alpha=PALE, label="no edges", **dot))
    return handles


def _widths(part: Any, look: _Look) -> Any:
    """Widths of edges, from their share of the largest strength."""
    return np.maximum(look.max_width * part, min(THINNEST, look.max_width))


def _legend_options(handles: list[Any], width: float) -> dict[str, Any]:
    texts = text_widths([handle.get_label() for handle in handles]) * style.LABEL_SIZE + 37.0
    rows = max(int(np.ceil(texts.sum() / width)), 1)
    look = {"frameon": False, "fontsize": style.LABEL_SIZE, "labelcolor": style.INK}
    return look | {"ncols": -(-len(handles) // rows), "handlelength": 2.2, "columnspacing": 1.3, "handletextpad": 0.6}


# --- drawing -----------------------------------------------------------------------------------------------------


def _draw(ax: Axes, matrix: Array, look: _Look, arranged: Arrangement) -> None:
    from matplotlib.patheffects import withStroke

    ax.set_xlim(0.0, arranged.canvas[0])
    ax.set_ylim(0.0, arranged.canvas[1])
    ax.set_aspect("equal", adjustable="box")
    _draw_edges(ax, matrix, look, arranged.xy)
    alone = np.count_nonzero(matrix, axis=1) == 0
    _draw_nodes(ax, look, arranged, alone)
    if alone.all():
        ax.text(0.5, 0.6, "no edges", transform=ax.transAxes, ha="center", color=style.INK)
    if not arranged.label_size:
        return
    for j, name in enumerate(look.names):
        x, y = arranged.label_xy[j]
        ax.text(
            x, y, name, ha="center", va="center_baseline", rotation=arranged.rotation[j], rotation_mode="anchor",
            fontsize=arranged.label_size, color=QUIET if alone[j] else style.INK, parse_math=False, zorder=4,
            path_effects=[withStroke(linewidth=1.4, foreground="white")],
        )  # fmt: skip


def _draw_edges(ax: Axes, matrix: Array, look: _Look, xy: Array) -> None:
    """Straight lines, the strongest on top."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba

    j, k = np.nonzero(np.triu(matrix))
    order = np.argsort(np.abs(matrix[j, k]), kind="stable")
    j, k = j[order], k[order]
    part = np.abs(matrix[j, k]) / look.scale
    positive = matrix[j, k] > 0
    colors = np.where(look.has_sign[j, k], np.where(positive, POSITIVE, NEGATIVE), QUIET)
    opacity = 0.6 + 0.35 * np.sqrt(part)
    lines = LineCollection(
        list(np.stack([xy[j], xy[k]], axis=1)),
        linewidths=_widths(part, look),
        colors=[to_rgba(str(color), a) for color, a in zip(colors, opacity, strict=True)],
        linestyles=["-" if up else DASH for up in positive],
        capstyle="butt",
        zorder=2,
    )
    ax.add_collection(lines, autolim=False)


def _draw_nodes(ax: Axes, look: _Look, arranged: Arrangement, alone: BoolArray) -> None:
    """Nodes, in one collection for each group; those without edges are pale and small."""
    from matplotlib.colors import to_rgba

    member = np.array(look.groups or [""] * len(alone))
    colors = look.colors or {"": NODE_COLORS[0]}
    hollow = np.zeros(len(alone), dtype=bool) if look.fields is None else look.fields < 0
    for i, (kind, color) in enumerate(colors.items()):
        at = np.flatnonzero(member == kind)
        rim = [to_rgba(color, PALE if alone[j] else 1.0) for j in at]
        fill = ["white" if hollow[j] else rim[n] for n, j in enumerate(at)]
        area = np.where(alone[at], 0.45, 1.0) * arranged.diameter[at] ** 2
        x, y = arranged.xy[at].T
        ax.scatter(x, y, s=area, marker=MARKERS[i % len(MARKERS)], c=fill, edgecolors=rim, linewidths=1.0, zorder=3)
