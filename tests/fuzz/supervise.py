"""Checks in worker processes: one that hangs or crashes its interpreter is reported, and the others go on."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from multiprocessing import connection, get_context
from typing import Any

from tests.fuzz.ends import count_ends

__all__ = ["KINDS", "CheckError", "Outcome", "SkipError", "Task", "call", "perform", "supervise"]

# A new kind of check is tried by being here: a function of one integer, for which a failure is an exception.
KINDS: dict[str, str] = {
    "accuracy": "tests.fuzz.paths:accuracy",
    "fixed-steps": "tests.fuzz.paths:fixed_steps",
    "containers": "tests.fuzz.paths:containers",
    "frames": "tests.fuzz.paths:frames",
    "screening": "tests.fuzz.paths:screening",
    "kernels": "tests.fuzz.paths:kernels",
    "copies": "tests.fuzz.paths:copies",
    "means": "tests.fuzz.paths:means",
    "inverse-scale-space": "tests.fuzz.limits:inverse_scale_space",
    "interrupts": "tests.fuzz.paths:interrupts",
    "graphs": "tests.fuzz.graphs:graphs",
    "files": "tests.fuzz.files:files",
}

MEMORY = 2**32  # bytes that a worker may take


class SkipError(Exception):
    """A random problem that is none."""


class CheckError(AssertionError):
    """A failure with something to measure it by."""

    def __init__(self, message: str, result: Any) -> None:
        super().__init__(message)
        self.result = result


@dataclass(frozen=True)
class Task:
    """One check: a kind (or any ``module:function``) and its arguments, the seed first."""

    kind: str
    args: tuple[Any, ...]

    @property
    def replay(self) -> str:
        return f"python -m tests.fuzz --replay {self.kind}:{self.args[0]}"


@dataclass(frozen=True)
class Outcome:
    """What became of a task."""

    task: Task
    status: str  # held, skipped, failed, hung or crashed
    text: str = ""  # of the error
    result: Any = None  # what the function returned
    ends: Counter[str] = field(default_factory=Counter)  # how its paths ended

    @property
    def is_failure(self) -> bool:
        return self.status not in ("held", "skipped")

    @property
    def n_stalled(self) -> int:
        """How many of its paths found no further step."""
        return self.ends["STALLED"]


def call(task: Task) -> Any:
    """Perform a check here and now; warnings are errors."""
    module, name = KINDS.get(task.kind, task.kind).split(":")
    function = getattr(importlib.import_module(module), name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return function(*task.args)


def perform(task: Task) -> Outcome:
    """The same, with its outcome as a value."""
    with count_ends() as ends:
        outcome = _attempt(task)
    return replace(outcome, ends=ends)


def _attempt(task: Task) -> Outcome:
    try:
        return Outcome(task, "held", result=call(task))
    except SkipError as error:
        return Outcome(task, "skipped", str(error))
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = os.sep.join(last.filename.split(os.sep)[-2:])
        message = " ".join(str(error).split())[:300]
        text = f"{type(error).__name__} in {where}:{last.lineno}: {message}"
        return Outcome(task, "failed", text, getattr(error, "result", None))


def supervise(tasks: Iterable[Task], *, jobs: int, limit: float) -> Iterator[Outcome]:
    """Outcomes of all tasks in the order of their ends, with at most ``limit`` seconds for each."""
    queue, workers = iter(tasks), [_Worker() for _ in range(jobs)]
    try:
        for worker in workers:
            worker.give(next(queue, None))
        while busy := [worker for worker in workers if worker.task is not None]:
            patience = min(worker.began for worker in busy) + limit - time.monotonic()
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

    def __init__(self) -> None:
        self.task: Task | None = None
        self._start()

    def _start(self) -> None:
        # A fresh interpreter: nothing of this process is shared, so nothing of it can be damaged.
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        self.pipe.recv()  # ready: the time of the first task does not begin before

    def give(self, task: Task | None) -> None:
        self.task, self.began = task, time.monotonic()
        if task is not None:
            self.pipe.send(task)

    def outcome(self, limit: float) -> Outcome | None:
        """That of the present task, if there is any by now."""
        assert self.task is not None
        try:
            if self.pipe.poll():
                return self.pipe.recv()
            if time.monotonic() - self.began < limit:
                return None
            outcome = Outcome(self.task, "hung", f"no result after {limit:g} s")
        except (EOFError, OSError):
            self.process.join()
            outcome = Outcome(self.task, "crashed", f"the interpreter ended with code {self.process.exitcode}")
        self.end()
        self._start()
        return outcome

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _serve(pipe: connection.Connection) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    pipe.send("ready")
    while True:
        try:
            task = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        pipe.send(perform(task))
