"""What Ctrl-C does; the one place that decides it.

`trace_path` returns an interrupted path as far as it is valid. Parts of a cross-validation, of a resampling or of a
fitted estimator are worth nothing: inside `all_or_nothing` an interrupted path raises KeyboardInterrupt instead. Python
tells the main thread alone about signals, so threads that work for it look whether they are still wanted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event

__all__ = ["all_or_nothing", "check", "keeps_parts"]

_unwanted: ContextVar[Event | None] = ContextVar("_unwanted", default=None)


@contextmanager
def all_or_nothing(unwanted: Event | None = None) -> Iterator[None]:
    """Paths traced inside are not returned in part; ``unwanted`` ends them when another thread sets it.

    Examples
    --------
    >>> with all_or_nothing():
    ...     keeps_parts()
    False
    """
    token = _unwanted.set(unwanted or _unwanted.get() or Event())
    try:
        yield
    finally:
        _unwanted.reset(token)


def keeps_parts() -> bool:
    """Whether an interrupted path is returned as far as it is valid."""
    return _unwanted.get() is None


def check() -> None:
    """Raise KeyboardInterrupt where nobody waits any more for what this thread does."""
    unwanted = _unwanted.get()
    if unwanted is not None and unwanted.is_set():
        raise KeyboardInterrupt
