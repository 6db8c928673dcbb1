"""What must hold among the parts of a saved path before it is read."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from bregpath._archive import require
from bregpath._typing import Array
from bregpath.flow.trajectory import Chunk, Trajectory
from bregpath.path import Path, Stats
from bregpath.path_file_eras import check_eras

if TYPE_CHECKING:
    from bregpath.graphs.layouts import AbstractLayout

__all__ = ["check_arrays", "check_encoder", "check_layout", "check_path", "check_sizes", "check_stats"]

# Kind and number of dimensions of every array of a file; all have 8 bytes an entry.
_ARRAYS = {
    "t": ("f", 1), "deviance": ("f", 1), "null_deviance": ("f", 0), "kappa": ("f", 0),
    "alpha_null": ("f", 1), "beta_null": ("f", 2), "weights": ("f", 2), "lower": ("f", 2), "upper": ("f", 2),
    "order": ("i", 1), "events": ("i", 2), "located": ("f", 2), "chunk_shapes": ("i", 2),
    **{f"chunk_{f.name}": ("f", 1) for f in fields(Chunk)},
}  # fmt: skip
_SOMETIMES = {
    "groups": ("i", 1), "center": ("f", 1), "scale": ("f", 1), "y_unit": ("f", 0), "shift": ("f", 1), "mean": ("f", 1),
    "kinds": ("i", 1), "max_counts": ("f", 1),
}  # fmt: skip
_MAY_BE_INFINITE = ("weights", "lower", "upper", "kappa")


def check_arrays(arrays: Mapping[str, Array], extra: set[str], of_eras: Mapping[str, tuple[str, int]]) -> None:
    """All arrays that are needed, each of its kind and shape and with numbers that it may hold."""
    wanted = {**_ARRAYS, **{name: _SOMETIMES[name] for name in extra}, **of_eras}
    require(arrays.keys() == wanted.keys(), f"arrays that lack or are unknown: {sorted(arrays.keys() ^ wanted.keys())}")
    for name, (kind, ndim) in wanted.items():
        array = arrays[name]
        require(array.dtype.kind == kind and array.dtype.itemsize == 8, f"`{name}` of dtype {array.dtype}")
        require(array.ndim == ndim, f"`{name}` of shape {array.shape}")
        bad = np.isnan(array) if name in _MAY_BE_INFINITE else ~np.isfinite(array)
        require(not bad.any(), f"`{name}` with NaN or infinity")
    p, q = arrays["beta_null"].shape
    for name in ("weights", "lower", "upper"):
        require(arrays[name].shape == (p, q), f"`{name}` of shape {arrays[name].shape} for coefficients {(p, q)}")
    own = {"groups"} if "mean" in arrays else {"center", "scale", "groups"}  # of the columns, not of the nodes
    for name in sorted(own):
        if name in arrays:
            require(arrays[name].shape == (p,), f"`{name}` of shape {arrays[name].shape} for {p} columns")
    for name in ("scale", "y_unit", "kappa"):
        require(name not in arrays or (arrays[name] > 0).all(), f"`{name}` that is not positive")
    require((arrays["weights"] >= 0).all(), "negative `weights`")
    require((arrays["lower"] <= 0).all() and (arrays["upper"] >= 0).all(), "limits on the wrong side of zero")
    t = arrays["t"]
    require(len(t) and t[0] > 0 and (np.diff(t) > 0).all(), "times `t` that are not positive and increasing")
    require(arrays["deviance"].shape == t.shape, f"{len(arrays['deviance'])} deviances at {len(t)} times")
    if "groups" in arrays:
        labels = np.unique(arrays["groups"])
        require(np.array_equal(labels, np.arange(len(labels))), "`groups` that are not numbered from 0")
    for name, width in (("events", 4), ("located", 3), ("chunk_shapes", 2)):
        require(arrays[name].shape[1] == width, f"`{name}` of shape {arrays[name].shape}")
    _check_cuts(arrays)


def _check_cuts(arrays: Mapping[str, Array]) -> None:
    """The flat arrays of the chunks are as long as the shapes of the chunks say."""
    q, shapes = arrays["beta_null"].shape[1], arrays["chunk_shapes"]
    require((shapes[:, 0] >= 2).all() and (shapes[:, 1] >= 0).all(), "chunks of fewer than two knots, or of no size")
    cells = sum(knots * columns for knots, columns in shapes.tolist())  # of Python, which does not overflow
    knots, n_alpha = sum(shapes[:, 0].tolist()), len(arrays["alpha_null"])
    sizes = {"t": knots, "value": knots, "alpha": knots * n_alpha, "alpha_slope": knots * n_alpha}
    sizes |= {"z": cells * q, "slope": cells * q}
    for name, size in sizes.items():
        found = len(arrays[f"chunk_{name}"])
        require(found == size, f"`chunk_{name}` of length {found}, where the shapes of the chunks ask for {size}")


def check_stats(record: Any) -> Stats:
    """What a path cost: counts, and seconds."""
    names = {f.name for f in fields(Stats)}
    # Earlier files do not count models.
    require(isinstance(record, dict) and record.keys() | {"models"} == names, "unknown `stats`")
    for name, value in record.items():
        kind = numbers.Real if name == "seconds" else numbers.Integral
        require(isinstance(value, kind) and not isinstance(value, bool), f"`stats` with {name}={value!r}")
        require(0 <= value < np.inf, f"`stats` with {name}={value!r}")
    return Stats(**record)


def check_encoder(record: Any) -> None:
    """Columns of a data frame: names and levels are text, and differ."""
    columns = record.get("columns") if isinstance(record, dict) else None
    require(isinstance(columns, list) and all(isinstance(c, dict) for c in columns), "an `encoder` without columns")
    assert isinstance(columns, list)
    require(all(c.keys() == {"name", "levels"} for c in columns), "an `encoder` with unknown parts")
    _check_names([c["name"] for c in columns], "columns of the `encoder`")
    for column in columns:
        if column["levels"] is not None:
            _check_names(column["levels"], f"levels of column {column['name']!r}")


def _check_names(names: Any, what: str) -> None:
    require(isinstance(names, list) and all(isinstance(name, str) for name in names), f"{what} that are not text")
    require(len(set(names)) == len(names), f"{what} that are the same")


def check_layout(record: Any, kinds: Mapping[str, type[AbstractLayout]]) -> type[AbstractLayout]:
    """The kind of the layout of a graph, which has all of its parts."""
    require(isinstance(record, dict) and record.get("kind") in kinds, "a `layout` of unknown kind")
    kind = kinds[record["kind"]]
    _check_names(record.get("names"), "nodes")
    unknown = record.keys() - {"kind", "names", "levels", *kind.choices}
    require(not unknown, f"unknown parts {sorted(unknown)} of the layout")
    for name, allowed in kind.choices.items():
        value = record.get(name, allowed[0])
        require(value in allowed and type(value) is type(allowed[0]), f"`{name}`={value!r} of the layout")
    if kind.n_levels is not None:
        levels, (least, most) = record.get("levels"), kind.n_levels
        require(isinstance(levels, list) and len(levels) == len(record["names"]), "`levels` of other nodes")
        sizes = [len(labels["values"]) for labels in levels]
        require(all(least <= size <= most for size in sizes), "`levels` of the wrong number")
    return kind


def check_sizes(layout: AbstractLayout, arrays: Mapping[str, Array]) -> None:
    """The layout of a graph fits its arrays; counted before anything of that size is made."""
    shapes = {name: getattr(layout, name).shape for name in layout.array_names}
    wanted_shapes = {name: layout.array_shape(name) for name in layout.array_names}
    require(shapes == wanted_shapes, f"shapes {shapes} of {layout.n_nodes} nodes")
    found, wanted = len(arrays["alpha_null"]), layout.n_alpha
    require(found == wanted, f"{found} fields, where the graph has {wanted}")
    shape, size = arrays["beta_null"].shape, layout.n_coefficients
    require(shape == (size, 1), f"coefficients {shape} of a graph with {size}")


# --- the assembled path ------------------------------------------------------------------------------


def check_path(path: Path, layout: AbstractLayout | None) -> None:
    """The record agrees with itself: knots that join, columns and events that the knots show."""
    trajectory, loss, (p, q) = path.trajectory, path.loss, path.trajectory.beta_null.shape
    n_alpha = len(trajectory.alpha_null)
    require(loss.n_outputs == n_alpha, f"{n_alpha} intercepts of a loss with {loss.n_outputs}")
    if layout is None:
        require(q == n_alpha, f"{n_alpha} intercepts for {q} outputs")
        require(np.shape(path.units.shift) in ((), (q,)), "a `shift` of another shape than the intercepts")
    if path.encoder is not None:
        found = path.encoder.n_design_columns
        require(found == p, f"an `encoder` of {found} columns for {p} coefficients")
    order = np.array(trajectory.order, dtype=int)
    require(((order >= 0) & (order < p)).all() and len(np.unique(order)) == len(order), "an impossible `order`")
    free = trajectory.penalty.free
    require(not trajectory.beta_null[~free].any(), "penalised coefficients in the null model")
    require(np.array_equal(trajectory.penalty.close(free), free), "groups of which a part is free")
    if trajectory.chunks:
        _check_knots(path, order)
        _check_events(trajectory, order)
    else:
        require(not (len(order) or trajectory.events or len(trajectory.located)), "events of a path without steps")


def _check_knots(path: Path, order: Array) -> None:
    trajectory, chunks = path.trajectory, path.trajectory.chunks
    require(path.result.name != "AT_REST", "steps of a path that is at rest")
    require(all((np.diff(chunk.t) > 0).all() for chunk in chunks) and chunks[0].t[0] > 0, "knots out of order")
    for left, right in zip(chunks, chunks[1:], strict=False):
        width = left.z.shape[1]
        joined = left.t[-1] == right.t[0] and width <= right.z.shape[1]
        joined = joined and np.array_equal(left.alpha[-1], right.alpha[0])
        require(joined and np.array_equal(left.z[-1], right.z[0, :width]), "chunks that do not join")
    require(chunks[-1].z.shape[1] == len(order), f"{chunks[-1].z.shape[1]} columns, of which `order` has {len(order)}")
    end = float(path.t[-1]) * path.units.y_unit
    require(end <= trajectory.end * (1 + 1e-9), "times `t` beyond the last knot")
    if trajectory.eras:
        check_eras(trajectory, order)
        return
    # Exponential steps count intercepts in units of kappa, and so round them once.
    begins = np.allclose(chunks[0].alpha[0], trajectory.alpha_null, rtol=1e-12, atol=1e-15)
    require(begins, "a first knot that is not the null model")
    first = order[: chunks[0].z.shape[1]]
    free = trajectory.penalty.free[first]
    require(free.sum() == trajectory.penalty.free.sum(), "free columns that are not in the record")
    travelled = chunks[0].t[0] * chunks[0].slope[0][~free]  # at constant speed
    on_time = np.allclose(chunks[0].z[0][~free], travelled, rtol=1e-9, atol=1e-12)
    require(on_time, "a first knot that was not reached in its time")
    start = trajectory.reading.at_knots(first, chunks[0].z[0])
    require(np.array_equal(start[free], trajectory.beta_null[first][free]), "free columns that start elsewhere")


def _check_events(trajectory: Trajectory, order: Array) -> None:
    """Columns are active from the events that say so on, and beyond their thresholds at the knots in between."""
    place = {column: i for i, column in enumerate(order.tolist())}
    for column, time, _ in trajectory.located.tolist():
        require(column in place and 0 < time <= trajectory.end, f"an event of column {column} at t={time}")
    changes = [np.zeros((len(chunk.t), chunk.z.shape[1]), dtype=int) for chunk in trajectory.chunks]
    for column, i, row, entered in trajectory.events:
        inside = 0 <= i < len(changes) and 0 <= row < len(changes[i]) - 1
        inside = inside and place.get(column, len(order)) < changes[i].shape[1]
        require(inside, f"an event of column {column} at row {row} of chunk {i}, which is not there")
        changes[i][row + 1, place[column]] += 1 if entered else -1
    if len(trajectory.located):  # the knots next to earlier events are gone
        return
    state = trajectory.penalty.free[order].astype(int)
    for chunk, change in zip(trajectory.chunks, changes, strict=True):
        width = change.shape[1]
        active = state[:width] + np.cumsum(change, axis=0)
        penalty = trajectory.penalty.take(order[:width])
        distance = np.min(penalty.entry(chunk.z), axis=2)
        slack = 1e-9 * (1 + np.max(np.abs(chunk.z), axis=2, initial=0.0))  # sums of a group round differently elsewhere
        shown = np.where(active == 1, distance < slack, (active == 0) & (distance > -slack))
        require(shown.all(), "events that the knots do not show")
        state[:width] = active[-1]
