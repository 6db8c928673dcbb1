"""Paths on resampled rows: how rows are drawn, and how what is read from all paths is gathered."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from bregpath._threads import n_threads, threads
from bregpath._typing import Array, IntArray
from bregpath.flow.integrate import integrate
from bregpath.study import AbstractStudy

__all__ = [
    "Trace",
    "check_rows",
    "draw_bootstraps",
    "draw_halves",
    "draw_until",
    "lacks_labels",
    "names_for",
    "read_replicates",
    "traces_of",
]

MIN_ROWS = 4  # halves of two rows: below that nothing can be resampled
MAX_DRAWS = 1000  # attempts to draw rows on which a path can be traced
RARE = "merge rare classes of `y`, or drop columns of `X` that hardly vary"

Trace: TypeAlias = Callable[[float], Any]  # from a time to the path up to there
Lacking: TypeAlias = Callable[[IntArray], str]  # see `AbstractStudy.lacking`


class _Replicate:
    """One path of many, of which only what ``read`` makes of it is kept."""

    value: Any

    def __init__(self, trace: Trace, read: Callable[[Any], Any]) -> None:
        self.trace = trace
        self.read = read

    def reach(self, until: float) -> None:
        self.value = self.read(self.trace(until))
        del self.trace  # it may hold a copy of the data


def read_replicates(traces: Iterable[Trace], until: float, read: Callable[[Any], Any], n_jobs: int | None) -> list[Any]:
    """What ``read`` makes of each path."""
    replicates = [_Replicate(trace, read) for trace in traces]
    with threads(n_jobs) as each:
        integrate(replicates, [until], each=each)
    return [replicate.value for replicate in replicates]


def traces_of(
    study: AbstractStudy, samples: Sequence[IntArray], times: Array, n_jobs: int | None, stop: Any = None
) -> Iterable[Trace]:
    """The paths of a study on samples of its rows."""
    tracks = study.tracks(samples, times, at_once=n_threads(n_jobs), stop=stop)
    return (partial(study.path_to, track) for track in tracks)


# --- draws ---------------------------------------------------------------------------------------------------


def check_rows(rows: IntArray | int) -> IntArray:
    """Rows to draw from, at least four."""
    pool = np.arange(rows) if isinstance(rows, numbers.Integral) else np.asarray(rows)
    if len(pool) < MIN_ROWS:
        raise ValueError(f"`X` has {len(pool)} rows that count; resampling needs at least {MIN_ROWS}.")
    return pool


def lacks_labels(labels: Any) -> Lacking:
    """Which rows lack one of some labels (None: none do)."""
    if labels is None:
        return lambda rows: ""
    classes, codes = np.unique(labels, return_inverse=True)
    every = np.arange(len(classes))

    def lacking(rows: IntArray) -> str:
        missing = np.setdiff1d(every, codes.ravel()[rows])
        return f"no row of class {classes[missing[0]]!r}" if len(missing) else ""

    return lacking


def draw_until(
    draw: Callable[[], tuple[IntArray, ...]], lacking: Lacking, who: str = "resampling", remedy: str = RARE
) -> tuple[IntArray, ...]:
    """Sets of rows, drawn again until none lacks anything."""
    for _ in range(MAX_DRAWS):
        drawn = draw()
        missing = next(filter(None, map(lacking, drawn)), "")
        if not missing:
            return drawn
    raise ValueError(f"{who} draws {len(drawn[0])} rows at a time, which mostly have {missing}; {remedy}.")


def draw_halves(
    rows: IntArray, n_replicates: int, pairs: bool, lacking: Lacking, rng: np.random.Generator, who: str = "resampling"
) -> list[IntArray]:
    """Random halves, the second of each pair from the rows that the first left; all drawn before any path is traced."""
    half = len(rows) // 2

    def draw() -> tuple[IntArray, ...]:
        shuffled = rng.permutation(rows)
        first, second = np.sort(shuffled[:half]), np.sort(shuffled[half : 2 * half])
        return (first, second) if pairs else (first,)

    drawn = [draw_until(draw, lacking, who) for _ in range(n_replicates // 2 if pairs else n_replicates)]
    return [part for parts in drawn for part in parts]


def draw_bootstraps(rows: IntArray, n_replicates: int, lacking: Lacking, rng: np.random.Generator) -> list[IntArray]:
    """Rows drawn with replacement."""
    return [draw_until(lambda: (np.sort(rng.choice(rows, len(rows))),), lacking)[0] for _ in range(n_replicates)]


# --- names ---------------------------------------------------------------------------------------------------


def names_for(names: Sequence[str] | None, path: Any, size: int) -> list[str] | None:
    """Names of ``size`` items: those given, or what the path says of columns, nodes, or states of nodes; else None."""
    given = names is not None
    for found in (names,) if given else (getattr(path, "names", None), getattr(path, "feature_names", None)):
        items = [] if found is None else list(map(str, found))
        if len(items) == size and items:
            return items
        levels = getattr(getattr(path, "layout", None), "levels", ())
        states = [f"{item}[{level}]" for item, labels in zip(items, levels, strict=False) for level in labels]
        if len(states) == size and states:
            return states
    if given:
        raise ValueError(f"`names` must have one entry for each of {size} columns or nodes, found {len(names or ())}.")
    return None
