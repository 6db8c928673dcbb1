"""Long stretches of a record in a file of a path, and what must hold of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bregpath._archive import require
from bregpath._typing import Array, IntArray
from bregpath.flow.compact import MOST_ROWS, Curves
from bregpath.flow.era import Era
from bregpath.flow.mean import MeanChunk
from bregpath.flow.trajectory import Chunk, Trajectory

__all__ = ["check_eras", "era_arrays", "pack_eras", "unpack_eras"]

KINDS = ("alpha", "z")
SUMS = ("alpha_sum", "beta_sum")
PARTS = {"starts": "i", "row": "i", "value": "f", "bends": "i", "cubics": "f"}  # of curves


def era_arrays(has_sums: bool) -> dict[str, tuple[str, int]]:
    """Kind and number of dimensions of every array of a file that has eras."""
    names = [f"era_{kind}_{part}" for kind in _kinds(has_sums) for part in PARTS]
    kinds = {name: (PARTS[name.rsplit("_", 1)[1]], 1) for name in names}
    ends = {"ends_alpha": ("f", 1), "ends_beta": ("f", 2)} if has_sums else {}
    return {"era_shapes": ("i", 2), **{f"era_{name}": ("f", 1) for name in ("t", "value", "trust")}, **kinds, **ends}


def _kinds(has_sums: bool) -> tuple[str, ...]:
    return KINDS + SUMS if has_sums else KINDS


def pack_eras(trajectory: Trajectory) -> dict[str, Array]:
    """Eras one after the other; knots, columns, and points and cubics of each kind of curves tell where they end."""
    eras, kinds, out = trajectory.eras, _kinds(trajectory.average is not None), dict[str, Array]()
    if isinstance(trajectory.chunks[0], MeanChunk):
        out = {"ends_alpha": trajectory.chunks[0].alpha_sum[0], "ends_beta": trajectory.chunks[0].beta_sum[0]}
    for name in ("t", "value", "trust"):
        out[f"era_{name}"] = np.concatenate([getattr(era, name) for era in eras])
    for kind in kinds:
        for part, letter in PARTS.items():
            flat = np.concatenate([getattr(era.curves[kind], part).ravel() for era in eras])
            out[f"era_{kind}_{part}"] = flat.astype(np.int64 if letter == "i" else np.float64)
    shapes = [
        [len(era.t), era.n_columns, *(len(x) for kind in kinds for x in (era.curves[kind].row, era.curves[kind].bends))]
        for era in eras
    ]
    return {"era_shapes": np.array(shapes, dtype=np.int64), **out}


def unpack_eras(arrays: Mapping[str, Array], n_alpha: int, n_outputs: int, has_sums: bool) -> tuple[Era, ...]:
    """Cut the flat arrays into eras again."""
    kinds, shapes = _kinds(has_sums), arrays["era_shapes"]
    require(shapes.shape[1] == 2 + 2 * len(kinds) and (shapes >= 0).all(), "eras of odd shapes")
    taken = dict.fromkeys(arrays, 0)

    def cut(name: str, size: int) -> Array:
        start = taken[name]
        taken[name] = start + size
        require(taken[name] <= len(arrays[name]), f"`{name}` shorter than the shapes of the eras ask for")
        return arrays[name][start : start + size]

    eras = []
    for d, columns, *counts in shapes.tolist():
        require(2 <= d <= MOST_ROWS, f"an era of {d} knots")
        t, value, trust = cut("era_t", d), cut("era_value", d), cut("era_trust", d - 1)
        curves = {}
        for kind, points, bends in zip(kinds, counts[::2], counts[1::2], strict=True):
            width = n_alpha if kind.startswith("alpha") else columns * n_outputs
            sizes = {"starts": width + 1, "row": points, "value": points, "bends": bends, "cubics": 3 * bends}
            parts: dict[str, Any] = {part: cut(f"era_{kind}_{part}", size) for part, size in sizes.items()}
            _check_curves(parts, d)
            parts |= {"row": parts["row"].astype(np.int16), "cubics": parts["cubics"].reshape(-1, 3)}
            curves[kind] = Curves(**parts)
        eras.append(Era(t, value, trust, n_outputs, curves))
    for name in era_arrays(has_sums):
        whole = taken[name] == len(arrays[name]) or name == "era_shapes" or name.startswith("ends_")
        require(whole, f"`{name}` of another length")
    require(len(eras) > 0, "no eras")
    if has_sums:
        wanted = (n_alpha,), (int(arrays["chunk_shapes"][0, 1]), n_outputs)
        require((arrays["ends_alpha"].shape, arrays["ends_beta"].shape) == wanted, "sums of another shape")
    return tuple(eras)


def _check_curves(parts: dict[str, Array], d: int) -> None:
    """Points of every curve follow each other, and steps that keep their cubics are steps."""
    starts, bends = parts["starts"], parts["bends"]
    ends_well = starts[0] == 0 and starts[-1] == len(parts["row"]) and (np.diff(starts) >= 0).all()
    require(ends_well, "curves of an era that overlap")
    row = np.where(parts["row"] < 0, ~parts["row"], parts["row"])
    key = row + d * np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    require((row < d).all() and (np.diff(key) > 0).all(), "points of an era out of order")
    inside = (bends >= 0).all() and (bends < d * (len(starts) - 1)).all() and (bends % d < d - 1).all()
    require(inside and (np.diff(bends) > 0).all(), "steps of an era out of order")


def check_eras(trajectory: Trajectory, order: IntArray) -> None:
    """Eras join each other and the chunks, begin with the null model, and show the events that are located."""
    eras, reading = trajectory.eras, trajectory.reading
    parts: list[Era | Chunk] = [*eras, trajectory.chunks[0]]
    for left, right in zip(parts, parts[1:], strict=False):
        require(left.t[-1] == right.t[0] and left.n_columns <= right.n_columns, "eras that do not join")
    for era in eras:
        require((np.diff(era.t) > 0).all() and era.t[0] > 0, "knots of an era out of order")
        require(((era.trust >= 0) & (era.trust <= 1)).all(), "slopes of an era that count for more than their step")
    require(eras[-1].n_columns <= len(order), "an era of more columns than there are")
    known = order[: eras[0].n_columns]
    alpha, beta = eras[0].models(reading, known, eras[0].t[:1])
    free = trajectory.penalty.free_among(known)
    begins = np.allclose(alpha[0], trajectory.alpha_null, rtol=1e-12, atol=1e-15)
    require(begins and np.array_equal(beta[0][free], trajectory.beta_null[known][free]), "an era that starts elsewhere")
    if trajectory.beta_null.shape[1] == 1:
        _check_events(trajectory, order)


def _check_events(trajectory: Trajectory, order: IntArray) -> None:
    """Coefficients come from rest and to rest in the steps in which events are located, and in no others."""
    shown = []
    for era in trajectory.eras:
        curves = era.curves["z"]
        at_rest, column = curves.row < 0, np.repeat(np.arange(era.n_columns), np.diff(curves.starts))
        row = np.where(at_rest, ~curves.row, curves.row)
        a = ((column[1:] == column[:-1]) & (row[1:] == row[:-1] + 1) & (at_rest[1:] != at_rest[:-1])).nonzero()[0]
        shown.append(np.stack([order[column[a]], era.t[row[a]], era.t[row[a] + 1], at_rest[a]], axis=1))
    steps = np.concatenate(shown)
    located = trajectory.located[trajectory.located[:, 1] <= trajectory.eras[-1].t[-1]]
    steps, located = (x[np.lexsort((x[:, 1], x[:, 0]))] for x in (steps, located))
    require(len(steps) == len(located), "events that the eras do not show")
    column, begin, end, enters = steps.T
    inside = (begin <= located[:, 1] * (1 + 1e-12)) & (located[:, 1] <= end * (1 + 1e-12))
    right = (column == located[:, 0]) & inside & (enters == located[:, 2])
    require(right.all(), "events that the eras do not show")
