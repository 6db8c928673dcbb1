"""Where the nodes of a graph and their names go, so that names keep apart and edges can be followed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bregpath._typing import Array, BoolArray
from bregpath.graphs.export import strongest_edges

__all__ = ["Arrangement", "arrange", "text_widths"]

SMALLEST_LABEL = 4.0  # points; names that would have to be smaller are left out
MOST_SWEEPS = 300  # over all pairs of boxes that overlap, or of nodes
MOST_EDGES, PER_EDGE = 800, 40  # the strongest edges that names keep off, and points on each


@dataclass(frozen=True)
class Arrangement:
    """Where nodes and names are, in points from the lower left corner of the canvas."""

    canvas: tuple[float, float]
    xy: Array
    diameter: Array
    label_xy: Array
    label_size: float  # 0: no names
    rotation: Array


def arrange(
    strength: Array,
    names: list[str],
    fields: Array | None,
    layout: Any,
    canvas: tuple[float, float],
    foot: float,
    node_size: Any,
    label_size: Any,
    seed: int,
) -> Arrangement:
    """Place nodes and names above the foot of the canvas; names shrink until they keep apart."""
    p = len(strength)
    low, high = np.array([4.0, foot + 4.0]), np.array(canvas) - 4.0
    ratio = float((high - low)[0] / max((high - low)[1], 1.0))
    start = _start(strength, names, layout, ratio, seed)
    node = np.clip(np.sqrt(0.004 * np.prod(high - low) / p), 4.5, 12.0) if node_size is None else float(node_size)
    diameter = np.full(p, node)
    if fields is not None:
        share = np.abs(fields) / (np.abs(fields).max() or 1.0)
        diameter *= (1.0 if node_size is not None else 1.5) * np.sqrt(0.2 + 0.8 * share)
    wide = text_widths(names)
    size = float(np.clip(13.0 - 0.6 * np.sqrt(p), 6.5, 10.0)) if label_size is None else float(label_size)
    kind = layout if isinstance(layout, str) else "given"
    place = {"spring": _place_free, "circle": _place_on_circle if p > 20 else _place_fixed}.get(kind, _place_fixed)
    while size >= SMALLEST_LABEL or label_size is not None:
        half = np.column_stack([0.5 * size * wide + 1.5, np.full(p, 0.55 * size)])
        roomy = 4.0 * half.prod(axis=1).sum() < 0.3 * np.prod(high - low)  # else no need to try
        if roomy or label_size is not None:
            xy, label_xy, rotation, apart = place(strength, start, 0.5 * diameter, half, low, high)
            if apart or label_size is not None:
                return Arrangement(canvas, xy, diameter, label_xy, size, rotation)
        size *= 0.9
    xy, label_xy, rotation, _ = place(strength, start, 0.5 * diameter, np.zeros((p, 2)), low, high)
    return Arrangement(canvas, xy, diameter, label_xy, 0.0, rotation)


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


def _separate(centre: Array, half: Array, low: Array, high: Array) -> Array:
    """Push overlapping boxes apart, along the axis on which they overlap less, within bounds."""
    first, last = low + half, np.maximum(high - half, low + half)
    centre = np.clip(centre, first, last)
    for sweep in range(MOST_SWEEPS):
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


def _edge_points(strength: Array, xy: Array) -> tuple[Array, Array]:
    """Points along the strongest edges, and how much it matters to cover them."""
    j, k = (ends[:MOST_EDGES] for ends in strongest_edges(strength))
    along = np.linspace(0.0, 1.0, PER_EDGE)[:, None]
    points = xy[j, None] * (1 - along) + xy[k, None] * along
    return points.reshape(-1, 2), np.repeat(strength[j, k] / (strength.max(initial=0.0) or 1.0), PER_EDGE)


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


def _least_stress(distance: Array, rng: np.random.Generator) -> Array:
    """Positions of least stress by majorisation, started from classical scaling; longest axis horizontal."""
    n = len(distance)
    square = distance**2
    inner = square.mean(axis=0) + square.mean(axis=1)[:, None] - square - square.mean()
    values, vectors = np.linalg.eigh(0.5 * inner)
    xy = vectors[:, :-3:-1] * np.sqrt(np.maximum(values[:-3:-1], 0.0)) + 0.1 * distance.mean() * rng.normal(size=(n, 2))
    weight = 1.0 / (square + np.eye(n)) - np.eye(n)
    inverse = np.linalg.inv(np.diag(weight.sum(axis=0)) - weight + 1.0 / n)  # 1/n: the Laplacian is singular
    target = weight * distance
    for _ in range(max(min(MOST_SWEEPS, 60_000 // n), 30)):  # a large graph has fewer details to show
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


def text_widths(texts: Sequence[str]) -> Array:
    """Widths of texts, in units of the font size."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=10)
    return np.array([text_to_path.get_text_width_height_descent(text, font, False)[0] / 10 for text in texts])
