"""Work over threads, all of it or nothing; the one place where threads begin and end."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any, TypeAlias

from bregpath import _interrupts

__all__ = ["Each", "n_threads", "one_by_one", "threads"]

# ``each(function, items)`` is ``[function(item) for item in items]``, in that order.
Each: TypeAlias = Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]]


def one_by_one(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """One item after the other, in this thread."""
    return [function(item) for item in items]


def n_threads(n_jobs: Any) -> int:
    """The number of threads that was asked for; -1 is one for each processor."""
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, numbers.Integral) or n_jobs == 0):
        raise ValueError(f"`n_jobs` must be a number of threads, -1 for all processors, or None; found {n_jobs!r}.")
    jobs = 1 if n_jobs is None else int(n_jobs)
    return jobs if jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + jobs)


@contextmanager
def threads(n_jobs: Any, most: int | None = None) -> Iterator[Each]:
    """An `Each` over ``n_jobs`` threads, at most so many; results come in order, so their number changes nothing.

    An error or Ctrl-C ends all of them promptly.
    """
    jobs = n_threads(n_jobs)
    if jobs == 1 or most == 1:
        with _interrupts.all_or_nothing():
            yield one_by_one
        return
    from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

    unwanted = Event()
    with ThreadPoolExecutor(min(jobs, most or jobs)) as pool:

        def each(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
            def call(item: Any) -> Any:
                with _interrupts.all_or_nothing(unwanted):
                    _interrupts.check()
                    return function(item)

            futures = [pool.submit(call, item) for item in items]
            done = wait(futures, return_when=FIRST_EXCEPTION).done
            return [future.result() for future in futures if future in done]  # raises, if not all are done

        try:
            with _interrupts.all_or_nothing():
                yield each
        except BaseException:
            unwanted.set()  # before the pool waits for its threads
            raise
