"""What paths are traced on: checked data, model and options, on all rows or on others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from threading import Lock
from typing import Any, ClassVar, TypeVar

import numpy as np

from bregpath import _frames
from bregpath._records import changed
from bregpath._typing import Array, BoolArray, IntArray
from bregpath.path import Path
from bregpath.penalties import AbstractPenalty
from bregpath.run import Assembled, TraceOptions, Track, run

__all__ = ["AbstractStudy", "PenalisedStudy", "Source"]

# Beyond this size in all, replicates do not copy their rows: they share the data, other rows having weight zero.
COPY_BYTES = 2**30

T = TypeVar("T")


class Source:
    """Some rows, ready to be traced: copied, scanned and fitted by the null model once, by the first track that starts,
    whatever its kappa.
    """

    def __init__(self, assemble: Callable[[], Assembled]) -> None:
        self._assemble, self._lock = assemble, Lock()
        self._made: Assembled | None = None
        self._beside: Any = None

    def beside(self, make: Callable[[], T]) -> T:
        """Something that goes with these rows, whatever the kappa: made for the first who asks."""
        with self._lock:
            if self._beside is None:
                self._beside = make()
            return self._beside  # type: ignore[no-any-return]

    def at(self, kappa: float) -> Callable[[], Assembled]:
        """What a track of this kappa is assembled by."""

        def assemble() -> Assembled:
            with self._lock:
                self._made = made = self._made or self._assemble()
                return made._replace(problem=made.problem.at_kappa(kappa))

        return assemble


class AbstractStudy(ABC):
    """Everything a path is made of but the rows it is traced on.

    Folds, halves, bootstraps and subsamples are the same study on other rows: data are read, encoded and checked once.

    Attributes
    ----------
    w : ndarray of shape (n,)
        How much each row counts: its weight as given, or one.
    kappa : float
    options : TraceOptions
    stops_replicates : bool
        Whether the stop rule acts on replicates too, or only on the path of all rows.
    """

    w: Array
    kappa: float
    options: TraceOptions
    encoder: _frames.ColumnEncoder | None = None
    stops_replicates: ClassVar[bool] = False

    @cached_property
    def pool(self) -> IntArray:
        """The rows that count, from which others may be drawn."""
        return np.flatnonzero(self.w > 0)

    @property
    def nbytes(self) -> float:
        """Size of a copy of all rows; infinite where rows cannot be copied."""
        return np.inf

    @property
    def step_bytes(self) -> float:
        """What a step of a path has to read, at least."""
        return self.nbytes

    @abstractmethod
    def on(self, counts: Array | None = None, copies: bool = False) -> Assembled:
        """The problem in which each row counts as often as said (None: as given).

        With ``copies`` rows that count nothing are left out; else they have weight zero.
        """

    def lacking(self, rows: IntArray) -> str:
        """What some rows lack for a path to be traced on them, in words; nothing if they will do."""
        return ""

    @abstractmethod
    def held_out(self, track: Track, rows: IntArray, times: Array) -> Any:
        """Some rows with all that a score needs to know of them, and of the models of a track at some times."""

    def reader(self, rows: IntArray, source: Source | None = None) -> Callable[[Track, Array], Any]:
        """`held_out` of some rows, asked again and again, at later and later times of one track.

        Where tracks of several kappas do so, and only for the deviance, ``source`` is what they have in common.
        """
        return lambda track, times: self.held_out(track, rows, times)

    @abstractmethod
    def sizes(self, path: Path) -> Array:
        """Number of variables, or edges, at each time of a path."""

    @property
    @abstractmethod
    def variables(self) -> IntArray:
        """Number of the variable, or edge, to which each coefficient (or column, with several outputs) belongs."""

    @property
    def n_needed(self) -> int:
        """How many of its coefficients a variable needs to have entered."""
        return 1

    @property
    def groups(self) -> IntArray | None:
        """`variables` where some of the columns that are reported one by one enter together; else None."""
        return None

    def as_reported(self, mask: BoolArray) -> BoolArray:
        """Yes or no for each coefficient, in the shape of the entry times of a path."""
        return mask

    def with_options(self, **changes: Any) -> Any:
        """The same study, traced in another way."""
        return replace(self, options=replace(self.options, **changes))  # type: ignore[type-var]

    def with_kappa(self, kappa: float) -> Any:
        """The same study, damped in another way."""
        return replace(self, kappa=kappa)  # type: ignore[type-var]

    def track(self, source: Source | None = None) -> Track:
        """The path on all rows, not yet traced; ``source`` has them, if other tracks have them too."""
        return Track(self.on if source is None else source.at(self.kappa), self.options, self.encoder)

    def trace(self, **changes: Any) -> Any:
        """The path on all rows; ``changes`` stand in for options."""
        track = self.with_options(**changes).track() if changes else self.track()
        return self.report(run(track), track)

    def report(self, path: Path, track: Track) -> Any:
        """The path of a track as the user knows it."""
        return path

    def path_to(self, track: Track, until: float) -> Any:
        """Advance a track, and what it has become."""
        track.reach(until)
        return self.report(track.path(np.array([until])), track)

    def tracks(
        self, samples: Sequence[IntArray], times: Array, *, at_once: int | None = None, stop: Any = None,
        sources: Sequence[Source] | None = None,
    ) -> list[Track]:  # fmt: skip
        """Paths to some times on samples of rows, which may repeat, not yet traced.

        ``at_once`` is how many of them are needed at the same time; all by default. ``sources`` are those of the
        samples, if other tracks have them too.
        """
        stop = self.options.stop if stop is None and self.stops_replicates else stop
        options = changed(self.options, t=times, stop=stop, progress=False)
        sources = self.sources(samples, at_once) if sources is None else sources
        return [Track(source.at(self.kappa), options, self.encoder) for source in sources]

    def sources(
        self, samples: Sequence[IntArray], at_once: int | None = None, whole: Track | None = None
    ) -> list[Source]:
        """Samples of rows, to be traced as often as wanted.

        ``whole`` is the path on all rows, if it has started: samples of most of them may use what it works on.
        """
        live = len(samples) if at_once is None else min(at_once, len(samples))
        copies = self.can_copy(live * float(np.mean([len(rows) for rows in samples])) / len(self.w))
        return [Source(lambda rows=rows: self._on_rows(rows, copies, whole)) for rows in samples]  # type: ignore[misc]

    def can_copy(self, times: float) -> bool:
        """Whether there is room for so many copies of all rows."""
        return bool(times * self.nbytes <= COPY_BYTES)

    def _on_rows(self, rows: IntArray, copies: bool, whole: Track | None) -> Assembled:
        return self.on(np.bincount(rows, minlength=len(self.w)) * self.w, copies)


class PenalisedStudy(AbstractStudy):
    """A study whose variables are the columns of its penalty, in their groups."""

    penalty: AbstractPenalty

    def sizes(self, path: Any) -> Array:
        return path.df  # type: ignore[no-any-return]

    @property
    def groups(self) -> IntArray | None:
        return getattr(self.penalty, "groups", None)

    @property
    def variables(self) -> IntArray:
        return np.arange(len(self.penalty.weights)) if self.groups is None else self.groups
