"""Checks of graphs and of the parts of graphical models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bregpath._typing import Array, IntArray
from bregpath._validation import unmasked

__all__ = [
    "check_levels",
    "check_names",
    "check_square",
    "check_state_counts",
    "check_symmetric",
    "finite_array",
    "freeze",
]


def freeze(model: Any, **values: Any) -> None:
    """Set fields of a frozen dataclass while it is built; arrays become read-only."""
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
        object.__setattr__(model, name, value)


def finite_array(name: str, value: Any, ndim: int) -> Array:
    """A copy of a vector or matrix of finite floats."""
    value = unmasked(name, value)
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError) as error:
        raise TypeError(f"`{name}` must hold numbers ({error}).") from None
    if array.ndim != ndim or array.size == 0:
        raise ValueError(f"`{name}` must be a non-empty array of {ndim} dimension(s), found shape {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"`{name}` contains NaN or infinity.")
    return array


def check_square(name: str, value: Any, size: int | None) -> Array:
    """A symmetric matrix of finite floats; its halves may differ by rounding."""
    matrix = finite_array(name, value, 2)
    size = len(matrix) if size is None else size
    if matrix.shape != (size, size):
        raise ValueError(f"`{name}` must have shape ({size}, {size}), found {matrix.shape}.")
    check_symmetric(name, matrix)
    return (matrix + matrix.T) / 2.0


def check_symmetric(name: str, matrix: Array) -> None:
    """Refuse halves that differ by more than rounding, 1e-8 of the largest entry."""
    gap = np.abs(matrix - matrix.T)
    if gap.max(initial=0.0) > 1e-8 * np.abs(matrix).max(initial=0.0):
        j, k = (int(i) for i in np.unravel_index(gap.argmax(), gap.shape))
        raise ValueError(
            f"`{name}` must be symmetric, found {name}[{j}, {k}] = {matrix[j, k]:g} but {name}[{k}, {j}] = "
            f"{matrix[k, j]:g}; an undirected graph has one value a pair, for example ({name} + {name}.T) / 2."
        )


def check_names(names: Sequence[str] | None, p: int) -> tuple[str, ...] | None:
    """One name a node, all different."""
    if names is None:
        return None
    if isinstance(names, str):
        raise TypeError(f"`names` must be a list of {p} names, found the text {names!r}.")
    given = tuple(map(str, names))
    if len(given) != p:
        raise ValueError(f"`names` must have one entry for each of the {p} nodes, found {len(given)}.")
    if len(set(given)) < p:
        twice = min(name for name in given if given.count(name) > 1)
        raise ValueError(f"`names` must differ, found {twice!r} more than once; number the copies.")
    return given


def check_state_counts(n_states: Any, size: int) -> IntArray:
    counts = np.asarray(n_states)
    if counts.dtype.kind not in "iu" or counts.ndim > 1 or counts.size == 0 or (counts < 1).any():
        raise ValueError(f"`n_states` must be a positive integer or one for each node, found {n_states!r}.")
    if counts.ndim == 0:
        counts = np.full(max(size // int(counts), 1), counts)
    if counts.sum() != size:
        raise ValueError(f"`n_states` counts {counts.sum()} states in all, but `fields` has {size} entries.")
    return counts.astype(np.intp)


def check_levels(levels: Sequence[Any] | None, counts: IntArray) -> tuple[Array, ...] | None:
    if levels is None:
        return None
    given = tuple(np.array(labels) for labels in levels)
    if len(given) != len(counts):
        raise ValueError(f"`levels` must hold the labels of each of the {len(counts)} nodes, found {len(given)}.")
    for j, (labels, q) in enumerate(zip(given, counts, strict=True)):
        if labels.shape != (q,) or len(set(labels.tolist())) != q:
            raise ValueError(f"`levels[{j}]` must be {q} different labels, found {labels.tolist()}.")
    return given
