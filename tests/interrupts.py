"""Ctrl-C at any moment: real signals, and interrupts injected before the k-th line that is run.

A path that was interrupted must be a beginning of the whole one, and its extension must be the whole one:
`assert_beginning_of` says so. `interrupt_and_extend` does all of it for one random moment.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np
from numpy.testing import assert_allclose

from bregpath import Path, Result

Trace = Callable[[], Path]


@contextmanager
def ctrl_c_after(seconds: float) -> Iterator[None]:
    """A signal that is handled like Ctrl-C after some time, unless the block ends before; main thread only."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@dataclass
class Lines:
    """How many lines were run, and where the interrupt came, once it has."""

    count: int = 0
    place: str = ""


@contextmanager
def ctrl_c_at_line(k: int | None, *modules: str) -> Iterator[Lines]:
    """KeyboardInterrupt before the k-th line (None: never) that is run in some modules and what lies under them."""
    lines = Lines()

    def on_line(frame: FrameType, event: str, _: Any) -> Any:
        if event in ("line", "return"):
            lines.count += 1
            if lines.count == k:
                sys.settrace(None)
                lines.place = f"{frame.f_globals['__name__']}:{frame.f_lineno}"
                raise KeyboardInterrupt
        return on_line

    def on_call(frame: FrameType, event: str, _: Any) -> Any:
        name = frame.f_globals.get("__name__", "")
        return on_line if any(name == m or name.startswith(f"{m}.") for m in modules) else None

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        yield lines
    finally:
        sys.settrace(before)


def result_of(trace: Trace) -> Path | None:
    """The path, or None where KeyboardInterrupt was raised."""
    try:
        return trace()
    except KeyboardInterrupt:
        return None


def assert_beginning_of(
    path: Path, whole: Path, rtol: float = 1e-10, by_rounding: Callable[[], float] = lambda: 0.0
) -> None:
    """Times increase, entries are known, and the models are those of the whole path.

    To ``rtol`` of the largest; or to what ``by_rounding`` says, which is asked only where they are farther apart.
    """
    assert path.t[-1] <= whole.t[-1] * (1 + 1e-12)
    assert np.all(np.diff(path.t) > 0)
    assert len(path.deviance) == len(path.t)
    times = np.unique(np.concatenate([path.t, np.geomspace(path.t[0], path.t[-1], 7)]))
    for one, other in zip(tables(path, times), tables(whole, times), strict=True):
        apart = float(np.abs(one - other).max() / max(np.abs(other).max(), 1e-300))
        assert apart <= rtol or apart <= by_rounding(), f"models differ by {apart:.2g}"
    first, last = np.minimum(whole.entry_times, path.t[-1] * (1 + 1e-12)), path.t[-1] * (1 - 1e-9)
    assert_allclose(path.entry_times[first < last], first[first < last], rtol=1e-8)
    assert np.all(path.entry_times[whole.entry_times > path.t[-1] * (1 + 1e-9)] > last)


def tables(path: Path, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Intercepts and all coefficients at some times."""
    intercept, columns, values = path.read(times)
    coef = np.zeros((len(times), path.trajectory.beta_null.shape[0], values.shape[2]))
    coef[:, columns] = values
    return intercept, coef


def assert_extends_to(
    path: Path, whole: Path, rtol: float = 1e-8, by_rounding: Callable[[], float] = lambda: 0.0
) -> None:
    """The path, traced on, is the whole one."""
    if path.t[-1] < whole.t[-1]:
        path = path.extend(float(whole.t[-1]))
        assert path.result is whole.result
    assert_allclose(path.t[-1], whole.t[-1], rtol=1e-12)
    assert_beginning_of(path, whole, rtol, by_rounding)
    assert_allclose(path.entry_times, whole.entry_times, rtol=1e-8)
    assert_allclose(path.exit_times, whole.exit_times, rtol=1e-8)


def interrupt_and_extend(
    trace: Trace, whole: Path, rng: np.random.Generator, again: int = 2, rtol: float = 1e-8,
    by_rounding: Callable[[], float] = lambda: 0.0,
) -> str:  # fmt: skip
    """Press Ctrl-C at a random moment while a path is traced, look at what is left, and go on to its end.

    Parameters
    ----------
    trace : callable
        ``trace()`` traces the path.
    whole : Path
        The same path, undisturbed.
    rng : Generator
        Chooses the moment: between now and a little more than the path takes.
    again : int, default 2
        How often, at most, the extension is interrupted as well.
    rtol : float, default 1e-8
        How far, relative to the largest coefficient, an extension may be from the whole path.
    by_rounding : callable, optional
        The same where rounding decides on a step.

    Returns
    -------
    str
        "raised" where nothing was there to be returned, "whole" where the interrupt came too late, "extended" else.
    """
    path, longest = _press(trace, 1.2 * whole.stats.seconds * rng.random())
    if path is None:
        return "raised"
    assert path.result in (Result.INTERRUPTED, whole.result)
    assert_beginning_of(path, whole)
    found = "whole" if path.result is whole.result else "extended"
    while again and path.t[-1] < whole.t[-1]:
        again -= 1
        part = path
        later, longest = _press(lambda part=part: part.extend(float(whole.t[-1])), longest * rng.random())
        if later is not None:
            assert later.t[-1] >= path.t[-1]
            assert_beginning_of(later, whole, rtol, by_rounding)
            path = later
    assert_extends_to(path, whole, rtol, by_rounding)
    return found


def _press(trace: Trace, seconds: float) -> tuple[Path | None, float]:
    """What is left of a path after Ctrl-C, and how long it took."""
    began = time.perf_counter()
    try:
        with ctrl_c_after(max(seconds, 1e-6)):
            path = result_of(trace)
    except KeyboardInterrupt:  # it came after the path had been returned
        path = None
    return path, time.perf_counter() - began
