"""Tasks in worker processes: one that hangs or crashes its interpreter is reported, and the others go on."""

from __future__ import annotations

import importlib
import signal
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing import connection, get_context
from typing import Any

__all__ = ["Outcome", "Skipped", "perform", "supervise"]


class Skipped(Exception):
    """A random problem that is none."""


@dataclass(frozen=True)
class Outcome:
    """What became of a task."""

    task: tuple[Any, ...]
    status: str  # held, failed, skipped, hung or crashed
    text: str = ""  # of the error
    result: Any = field(default=None)  # what the function returned
    seconds: float = 0.0


def perform(function: str, task: tuple[Any, ...]) -> Outcome:
    """Call ``module:function`` here and now; warnings are errors."""
    module, name = function.split(":")
    began = time.perf_counter()
    status, text, result = "held", "", None
    try:
        call = getattr(importlib.import_module(module), name)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = call(*task)
    except Skipped as error:
        status, text = "skipped", str(error)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{'/'.join(last.filename.split('/')[-2:])}:{last.lineno}"
        status, text = "failed", f"{type(error).__name__}: {error} ({where})"
    return Outcome(task, status, text, result, time.perf_counter() - began)


def supervise(function: str, tasks: Iterable[tuple[Any, ...]], *, jobs: int, limit: float) -> Iterator[Outcome]:
    """Outcomes of all tasks in the order of their ends, with at most ``limit`` seconds for each."""
    queue, workers = iter(tasks), [_Worker(function) for _ in range(jobs)]
    try:
        for worker in workers:
            worker.give(next(queue, None))
        while busy := [worker for worker in workers if worker.task is not None]:
            patience = min(worker.began + limit for worker in busy) - time.monotonic()
            connection.wait([worker.pipe for worker in busy], timeout=max(patience, 0.0))
            for worker in busy:
                outcome = worker.outcome(limit)
                if outcome is not None:
                    yield outcome
                    worker.give(next(queue, None))
    finally:
        for worker in workers:
            worker.end()


class _Worker:
    """A process that performs one task after the other."""

    def __init__(self, function: str) -> None:
        self.function = function
        self.task: tuple[Any, ...] | None = None
        self.start()

    def start(self) -> None:
        # A fresh interpreter: nothing of this process is shared, so nothing of it can be damaged.
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(self.function, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def give(self, task: tuple[Any, ...] | None) -> None:
        self.task, self.began = task, time.monotonic()
        if task is not None:
            self.pipe.send(task)

    def outcome(self, limit: float) -> Outcome | None:
        """That of the present task, if there is any by now."""
        assert self.task is not None
        seconds = time.monotonic() - self.began
        try:
            if self.pipe.poll():
                return self.pipe.recv()
        except EOFError:
            self.process.join()
            outcome = Outcome(self.task, "crashed", f"the interpreter ended with code {self.process.exitcode}")
        else:
            if seconds < limit:
                return None
            outcome = Outcome(self.task, "hung", f"no result after {limit:g} s", seconds=seconds)
        self.end()
        self.start()
        return outcome

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _serve(function: str, pipe: connection.Connection) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    while True:
        try:
            task = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        pipe.send(perform(function, task))
