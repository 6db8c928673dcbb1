"""How the paths of a check end, whoever traces them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from bregpath.flow.integrate import AbstractTrack
from bregpath.run import Track

__all__ = ["BEGUN", "count_ends"]

BEGUN = "begun"  # what all paths are counted as, whether they end by themselves or where they were asked to


@contextmanager
def count_ends() -> Iterator[Counter[str]]:
    """Count the paths that begin meanwhile, and by the names of their results those that end by themselves."""
    counts: Counter[str] = Counter()
    start, reach = Track.start, AbstractTrack.reach

    def count_start(track: Track) -> None:
        counts[BEGUN] += 1
        start(track)

    def count_end(track: AbstractTrack, until: float) -> None:
        goes_on = track.flow is None or track.record.result is None
        reach(track, until)
        if goes_on and track.record.result is not None:
            counts[track.record.result.name] += 1

    with patch.object(Track, "start", count_start), patch.object(AbstractTrack, "reach", count_end):
        yield counts
