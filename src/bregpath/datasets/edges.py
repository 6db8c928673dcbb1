"""Which nodes of a simulated graph are joined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np

from bregpath._typing import IntArray

__all__ = ["GraphKind", "draw_edges", "grid"]

GraphKind: TypeAlias = Literal["chain", "grid", "hub", "random", "scale-free"]

_HUB_SIZE = 10
_RANDOM_DEGREE = 3.0


def draw_edges(graph: str, p: int, rng: np.random.Generator) -> IntArray:
    """Pairs of joined nodes, (edges, 2)."""
    if graph not in _GRAPHS:
        raise ValueError(f"graph={graph!r} is not known; use one of {', '.join(map(repr, _GRAPHS))}.")
    return _GRAPHS[graph](p, rng)


def _chain(p: int, rng: np.random.Generator) -> IntArray:
    return np.stack([np.arange(p - 1), np.arange(1, p)], axis=1)


def grid(p: int, rng: np.random.Generator) -> IntArray:
    """Neighbours to the right and below, row by row of a square that the last row may not fill."""
    width = int(np.ceil(np.sqrt(p)))
    node = np.arange(p)
    right = node[(node % width < width - 1) & (node + 1 < p)]
    below = node[node + width < p]
    return np.concatenate([np.stack([right, right + 1], axis=1), np.stack([below, below + width], axis=1)])


def _hub(p: int, rng: np.random.Generator) -> IntArray:
    node = np.arange(p)
    leaves = node[node % _HUB_SIZE > 0]
    return np.stack([leaves - leaves % _HUB_SIZE, leaves], axis=1)


def _random(p: int, rng: np.random.Generator) -> IntArray:
    pairs = np.stack(np.triu_indices(p, 1), axis=1)
    return pairs[rng.random(len(pairs)) * max(p - 1, 1) < _RANDOM_DEGREE]


def _scale_free(p: int, rng: np.random.Generator) -> IntArray:
    ends = [0, 1]  # both ends of each edge: a node is in the list as often as it has neighbours
    for node in range(2, p):
        ends += [ends[rng.integers(len(ends))], node]
    return np.array(ends if p > 1 else [], dtype=np.intp).reshape(-1, 2)


_GRAPHS: dict[str, Callable[[int, np.random.Generator], IntArray]] = {
    "chain": _chain,
    "grid": grid,
    "hub": _hub,
    "random": _random,
    "scale-free": _scale_free,
}
