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

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_graph", "plot_graph_comparison"]

POSITIVE, NEGATIVE = style.COLORS[2], style.COLORS[1]  # bluish green and vermilion: apart for every eye
DASH = (0, (3.2, 1.4))  # of negative edges, so that they are told from positive ones in grey too
NODE_COLORS = ("#0072B2", "#E69F00", "#CC79A7", "#56B4E9", "#000000")  # those that no edge has
MARKERS = "osD^vP"  # one more than colours, so that thirty groups look different
QUIET = "#8A8A8A"
SMALLEST_LABEL = 4.0  # points; names that would have to be smaller are left out
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


@dataclass(frozen=True)
class _Arrangement:
    """Where nodes and names are, in points from the lower left corner of the canvas."""

    canvas: tuple[float, float]
    xy: Array
    diameter: Array
    label_xy: Array
    label_size: float  # 0: no names
    rotation: Array


def plot_graph(
    weights: Any,
    names: Sequence[str] | None = None,
    *,
    fields: Any = None,
    groups: Sequence[Any] | None = None,
    group_colors: Mapping[Any, str] | None = None,
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
    look = _look(np.abs(matrix), labels, groups, group_colors, fields, max_width)
    drawn, ax = ax is not None, _blank_axes(ax, len(labels), title)
    if not drawn:
        _figure(ax).draw_without_rendering()  # settles how much room the axes have
    handles = _legend_handles(look, [matrix])
    width, height = _room(ax)
    legend = _legend_options(handles, width)
    foot = 1.6 * style.LABEL_SIZE * -(-len(handles) // legend["ncols"]) + 4.0 if handles else 0.0
    arranged = _arrange(np.abs(matrix), look, layout, (width, height), foot, node_size, label_size, seed)
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
    figure = _figure(axes[0])
    if handles:
        width = 72.0 * figure.get_figwidth()
        figure.legend(handles=handles, loc="outside lower center", **_legend_options(handles, width))
    figure.draw_without_rendering()
    arranged = _arrange(union, look, layout, _room(axes[0]), 0.0, node_size, label_size, seed)
    for ax, matrix in zip(axes, matrices, strict=True):
        _draw(ax, matrix, look, arranged)
    return axes


# --- canvas and legend -------------------------------------------------------------------------------------------


def _look(
    strength: Array, names: list[str], groups: Any, group_colors: Mapping[Any, str] | None, fields: Any, width: Any
) -> _Look:
    p = len(names)
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
    return _Look(names, member, colors, fields, scale, float(width))


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
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("Figures need matplotlib: pip install bregpath[plot]") from None
    columns = min(n, 3)
    rows = -(-n // columns)
    side = 0.8 * _side(p)
    size = (columns * side, rows * side + 0.4) if figsize is None else figsize
    _, grid = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    for ax in grid.ravel()[n:]:
        ax.set_axis_off()
    return grid.ravel()[:n]


def _figure(ax: Axes) -> Any:
    """The figure of axes that we made, so that it is no part of another one."""
    return ax.figure


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
    if any((m > 0).any() for m in matrices):
        handles.append(Line2D([], [], color=POSITIVE, linewidth=2.0, label="positive"))
    if any((m < 0).any() for m in matrices):
        handles.append(Line2D([], [], color=NEGATIVE, linewidth=2.0, linestyle=DASH, label="negative"))
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
    texts = _text_widths([handle.get_label() for handle in handles]) * style.LABEL_SIZE + 37.0
    rows = max(int(np.ceil(texts.sum() / width)), 1)
    look = {"frameon": False, "fontsize": style.LABEL_SIZE, "labelcolor": style.INK}
    return look | {"ncols": -(-len(handles) // rows), "handlelength": 2.2, "columnspacing": 1.3, "handletextpad": 0.6}


def _text_widths(texts: Sequence[str]) -> Array:
    """Widths of texts, in units of the font size."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=10)
    return np.array([text_to_path.get_text_width_height_descent(text, font, False)[0] / 10 for text in texts])


# --- drawing -----------------------------------------------------------------------------------------------------


def _draw(ax: Axes, matrix: Array, look: _Look, arranged: _Arrangement) -> None:
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
    opacity = 0.6 + 0.35 * np.sqrt(part)
    lines = LineCollection(
        list(np.stack([xy[j], xy[k]], axis=1)),
        linewidths=_widths(part, look),
        colors=[to_rgba(POSITIVE if up else NEGATIVE, a) for up, a in zip(positive, opacity, strict=True)],
        linestyles=["-" if up else DASH for up in positive],
        capstyle="butt",
        zorder=2,
    )
    ax.add_collection(lines, autolim=False)


def _draw_nodes(ax: Axes, look: _Look, arranged: _Arrangement, alone: BoolArray) -> None:
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


# --- arranging ---------------------------------------------------------------------------------------------------


def _arrange(
    strength: Array, look: _Look, layout: Any, canvas: tuple[float, float], foot: float, node_size: Any,
    label_size: Any, seed: int,
) -> _Arrangement:  # fmt: skip
    """Place nodes and names above the foot of the canvas; names shrink until they keep apart."""
    p = len(strength)
    low, high = np.array([4.0, foot + 4.0]), np.array(canvas) - 4.0
    ratio = float((high - low)[0] / max((high - low)[1], 1.0))
    start = _start(strength, look.names, layout, ratio, seed)
    node = np.clip(np.sqrt(0.004 * np.prod(high - low) / p), 4.5, 12.0) if node_size is None else float(node_size)
    diameter = np.full(p, node)
    if look.fields is not None:
        share = np.abs(look.fields) / (np.abs(look.fields).max() or 1.0)
        diameter *= (1.0 if node_size is not None else 1.5) * np.sqrt(0.2 + 0.8 * share)
    wide = _text_widths(look.names)
    size = float(np.clip(13.0 - 0.6 * np.sqrt(p), 6.5, 10.0)) if label_size is None else float(label_size)
    kind = layout if isinstance(layout, str) else "given"
    place = {"spring": _place_free, "circle": _place_on_circle if p > 20 else _place_fixed}.get(kind, _place_fixed)
    while size >= SMALLEST_LABEL or label_size is not None:
        half = np.column_stack([0.5 * size * wide + 1.5, np.full(p, 0.55 * size)])
        roomy = 4.0 * half.prod(axis=1).sum() < 0.3 * np.prod(high - low)  # else no need to try
        if roomy or label_size is not None:
            xy, label_xy, rotation, apart = place(strength, start, 0.5 * diameter, half, low, high)
            if apart or label_size is not None:
                return _Arrangement(canvas, xy, diameter, label_xy, size, rotation)
        size *= 0.9
    xy, label_xy, rotation, _ = place(strength, start, 0.5 * diameter, np.zeros((p, 2)), low, high)
    return _Arrangement(canvas, xy, diameter, label_xy, 0.0, rotation)


def _start(strength: Array, names: list[str], layout: Any, ratio: float, seed: int) -> Array:
    """Positions in any units."""
    p = len(names)
    if isinstance(layout, str):
        if layout == "spring":
            return _spring(strength, ratio, seed)
        if layout == "circle":
            angle = np.pi / 2 - 2 * np.pi * np.arange(p) / p
            return np.column_stack([np.cos(angle), np.sin(angle)])
        if layout == "grid":
            columns = int(np.ceil(np.sqrt(p)))
            return np.column_stack([np.arange(p) % columns, -(np.arange(p) // columns)]).astype(float)
        raise ValueError(f"`layout` must be 'spring', 'circle', 'grid' or positions, found {layout!r}.")
    if isinstance(layout, Mapping):
        missing = [name for name in names if name not in layout]
        if missing:
            raise ValueError(f"`layout` has no position for {missing[0]!r}; it needs one for each node.")
        layout = [layout[name] for name in names]
    xy = np.asarray(layout, dtype=float)
    if xy.shape != (p, 2) or not np.isfinite(xy).all():
        raise ValueError(f"`layout` must hold finite x and y of each of the {p} nodes, found shape {xy.shape}.")
    return xy


_Placed = tuple[Array, Array, Array, bool]  # nodes, names, rotation of names, whether names keep apart


def _place_free(strength: Array, start: Array, radius: Array, half: Array, low: Array, high: Array) -> _Placed:
    """Move nodes until their names fit below them; nodes without edges go to rows at the foot."""
    joined = np.count_nonzero(strength, axis=1) > 0
    xy, label_xy, foot = _rows(~joined, radius, half, low, high)
    low = low + [0.0, foot]
    apart = True
    if joined.any():
        shift = np.column_stack([np.zeros(joined.sum()), half[joined, 1] + 0.5])
        box = np.column_stack([np.maximum(half[:, 0], radius) + 1.0, radius + half[:, 1] + 1.5])[joined]
        boxes = _fit(start[joined], low + box.max(axis=0), high - box.max(axis=0), stretch=1.6)
        xy[joined] = _separate(boxes, box, low, high) + shift
        part = strength[np.ix_(joined, joined)]
        label_xy[joined], apart = _choose_sides(part, xy[joined], radius[joined], half[joined], low, high)
    return xy, label_xy, np.zeros(len(xy)), apart and bool((low < high).all())


def _place_fixed(strength: Array, start: Array, radius: Array, half: Array, low: Array, high: Array) -> _Placed:
    """Keep the given proportions."""
    margin = radius.max() + 1.0 + np.array([half[:, 0].max(), 2.0 * half[:, 1].max()])
    xy = _fit(start, low + margin, high - margin, stretch=1.0)
    label_xy, apart = _choose_sides(strength, xy, radius, half, low, high)
    return xy, label_xy, np.zeros(len(xy)), apart


def _place_on_circle(strength: Array, start: Array, radius: Array, half: Array, low: Array, high: Array) -> _Placed:
    """Names outside of the circle, each along its own ray."""
    outer = 0.5 * (high - low).min() - 2.0 * half[:, 0].max() - 2.0 * radius.max() - 2.0
    outer = max(outer, 1.0)
    centre = 0.5 * (low + high)
    label_xy = centre + start * (outer + radius + 3.0 + half[:, 0])[:, None]
    angle = np.degrees(np.arctan2(start[:, 1], start[:, 0]))
    rotation = np.where(np.abs(angle) > 90.0 + 1e-9, angle - 180.0, angle)  # never upside down
    apart = 2 * np.pi * outer / len(start) >= 2.0 * max(half[:, 1].max(), radius.max())
    return centre + start * outer, label_xy, rotation, bool(apart)


def _rows(alone: BoolArray, radius: Array, half: Array, low: Array, high: Array) -> tuple[Array, Array, float]:
    """Rows of nodes with names at their right, at the foot, and the height that they take."""
    xy, label_xy = np.zeros((2, len(alone), 2))
    x, row = 0.0, 0
    step = 2.0 * max(half[:, 1].max(), radius.max())
    for j in np.flatnonzero(alone):
        need = 2.0 * (radius[j] + half[j, 0]) + 2.0
        if x and x + need > high[0] - low[0]:
            x, row = 0.0, row + 1
        xy[j] = low + [x + radius[j], -(row + 0.5) * step]
        x += need + 8.0
    height = (row + 1) * step if alone.any() else 0.0
    xy[alone, 1] += height
    label_xy[alone] = xy[alone] + np.column_stack([radius + 2.0 + half[:, 0], 0.0 * radius])[alone]
    return xy, label_xy, height + 8.0 if height else 0.0


def _fit(xy: Array, low: Array, high: Array, stretch: float) -> Array:
    """Scale positions to a box; one axis may be stretched by some factor to use more of it."""
    span = np.ptp(xy, axis=0)
    scale = np.maximum(high - low, 1.0) / np.where(span > 1e-9 * span.max(), span, np.inf)
    scale[scale == 0.0] = np.inf
    scale = np.minimum(scale, stretch * scale.min()) if np.isfinite(scale.min()) else np.ones(2)
    return 0.5 * (low + high) + (xy - 0.5 * (xy.min(axis=0) + xy.max(axis=0))) * scale


def _separate(centre: Array, half: Array, low: Array, high: Array, n_sweeps: int = 300) -> Array:
    """Push overlapping boxes apart, along the axis on which they overlap less, within bounds."""
    first, last = low + half, np.maximum(high - half, low + half)
    centre = np.clip(centre, first, last)
    for sweep in range(n_sweeps):
        if sweep % 10 == 0:  # all pairs that may meet during the next sweeps
            near = np.abs(centre[:, None] - centre) < half[:, None] + half + 0.5 * half.max(axis=0)
            j, k = np.nonzero(np.triu(near.all(axis=2), 1))
        gap = centre[j] - centre[k]
        overlap = half[j] + half[k] - np.abs(gap)
        hit = (overlap > 0).all(axis=1)
        if not hit.any() and sweep % 10 == 0:
            break
        sideways = overlap[:, 0] < overlap[:, 1]
        push = (0.3 * overlap + 0.01) * np.where(gap < 0, -1.0, 1.0)
        push *= np.column_stack([sideways & hit, ~sideways & hit])
        np.add.at(centre, j, push)
        np.add.at(centre, k, -push)
        centre = np.clip(centre, first, last)
    return centre


_SIDES = np.array([(0, -1), (0, 1), (1, 0), (-1, 0), (0.8, -0.8), (-0.8, -0.8), (0.8, 0.8), (-0.8, 0.8)])


def _choose_sides(
    strength: Array, xy: Array, radius: Array, half: Array, low: Array, high: Array
) -> tuple[Array, bool]:
    """For each name the side of its node where it hits no other name or node, and as few edges as can be."""
    if not half.any():
        return xy, True
    ink, weight = _edge_points(strength, xy)
    reach = 2.0 * (half + radius[:, None] + 1.0)
    chosen = xy + _SIDES[0] * (radius[:, None] + 1.0 + half)
    for _ in range(2):  # a move never adds a clash, so that names that fit below all nodes keep apart
        worst = 0.0
        for j in range(len(xy)):
            centre = xy[j] + _SIDES * (radius[j] + 1.0 + half[j])
            names = (np.abs(centre[:, None] - chosen) < half[j] + half).all(axis=2)
            nodes = (np.abs(centre[:, None] - xy) < half[j] + radius[:, None]).all(axis=2)
            names[:, j] = nodes[:, j] = False
            outside = ((centre - half[j] < low - 3.0) | (centre + half[j] > high + 3.0)).any(axis=1)
            close = (np.abs(ink - xy[j]) < reach[j]).all(axis=1)
            crossed = (np.abs(centre[:, None] - ink[close]) < half[j]).all(axis=2) @ weight[close]
            clash = names.sum(axis=1) + nodes.sum(axis=1) + 1.0 * outside
            best = int(np.argmin(1e6 * clash + crossed + 0.01 * np.arange(len(_SIDES))))
            chosen[j] = centre[best]
            worst = max(worst, clash[best])
    return chosen, worst == 0


def _edge_points(strength: Array, xy: Array, per_edge: int = 40, n_edges: int = 800) -> tuple[Array, Array]:
    """Points along the strongest edges, and how much it matters to cover them."""
    j, k = np.nonzero(np.triu(strength))
    order = np.argsort(-strength[j, k], kind="stable")[:n_edges]
    j, k = j[order], k[order]
    along = np.linspace(0.0, 1.0, per_edge)[:, None]
    points = xy[j, None] * (1 - along) + xy[k, None] * along
    return points.reshape(-1, 2), np.repeat(strength[j, k] / (strength.max(initial=0.0) or 1.0), per_edge)


# --- the spring layout -------------------------------------------------------------------------------------------


def _spring(strength: Array, ratio: float, seed: int) -> Array:
    """Components by least stress, packed into about the wanted ratio of width to height; zeros without edges."""
    from scipy.sparse.csgraph import connected_components, shortest_path

    length = np.where(strength > 0, 1.0 / (0.4 + 0.6 * np.sqrt(strength / (strength.max() or 1.0))), 0.0)
    distance = shortest_path(length, directed=False)
    _, part = connected_components(strength > 0, directed=False)
    rng = np.random.default_rng(seed)
    members = [np.flatnonzero(part == c) for c in range(part.max() + 1)]
    members = sorted((nodes for nodes in members if len(nodes) > 1), key=len, reverse=True)
    blocks = [_least_stress(distance[np.ix_(nodes, nodes)], rng) for nodes in members]
    corners = _pack(np.array([np.ptp(block, axis=0) + 1.0 for block in blocks]).reshape(-1, 2), ratio)
    out = np.zeros((len(strength), 2))
    for nodes, block, corner in zip(members, blocks, corners, strict=True):
        out[nodes] = block - block.min(axis=0) + corner
    return out * [1.0, -1.0]  # the largest at the top left


def _pack(sizes: Array, ratio: float) -> Array:
    """Lower corners of rectangles, each put where the hull of all, of the wanted ratio, grows least."""
    corners = np.zeros_like(sizes)
    for i in range(1, len(sizes)):
        ends = corners[:i] + sizes[:i]
        spots = np.concatenate(
            [np.column_stack([ends[:, 0], corners[:i, 1]]), np.column_stack([corners[:i, 0], ends[:, 1]])]
        )
        taken = ((spots[:, None] < ends - 1e-9) & (spots[:, None] + sizes[i] > corners[:i] + 1e-9)).all(axis=2)
        spots = spots[~taken.any(axis=1)]
        hull = np.maximum(spots + sizes[i], ends.max(axis=0)) / [ratio, 1.0]
        corners[i] = spots[np.lexsort((spots.sum(axis=1), hull.max(axis=1)))[0]]
    return corners


def _least_stress(distance: Array, rng: np.random.Generator, n_sweeps: int = 300) -> Array:
    """Positions of least stress by majorisation, started from classical scaling; longest axis horizontal."""
    n = len(distance)
    square = distance**2
    inner = square.mean(axis=0) + square.mean(axis=1)[:, None] - square - square.mean()
    values, vectors = np.linalg.eigh(0.5 * inner)
    xy = vectors[:, :-3:-1] * np.sqrt(np.maximum(values[:-3:-1], 0.0)) + 0.1 * distance.mean() * rng.normal(size=(n, 2))
    weight = 1.0 / (square + np.eye(n)) - np.eye(n)
    inverse = np.linalg.inv(np.diag(weight.sum(axis=0)) - weight + 1.0 / n)  # 1/n: the Laplacian is singular
    target = weight * distance
    for _ in range(max(min(n_sweeps, 60_000 // n), 30)):  # a large graph has fewer details to show
        pull = target / (np.hypot(*(xy.T[:, :, None] - xy.T[:, None])) + np.eye(n) + 1e-12)
        new = inverse @ (pull.sum(axis=0)[:, None] * xy - pull @ xy)
        moved, xy = np.abs(new - xy).max(), new
        if moved < 1e-4:
            break
    xy = xy - xy.mean(axis=0)
    xy = xy @ np.linalg.svd(xy, full_matrices=False)[2].T
    largest = xy[np.abs(xy).argmax(axis=0), [0, 1]]
    xy = xy * np.where(largest < 0, -1.0, 1.0)  # the axes of a decomposition have no sign of their own
    # Where all are neighbours of all, distances say nothing of the room that so many nodes need.
    span = np.ptp(xy, axis=0)
    return xy * max(np.sqrt(0.9 * max(n - 4, 0) / max(span.prod(), 0.1 * span.max() ** 2)), 1.0)
