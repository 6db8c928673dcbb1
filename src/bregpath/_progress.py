"""A progress bar for long paths."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress_bar", "work_bar"]


@contextmanager
def progress_bar(show: bool | None, start: float, end: float) -> Iterator[Callable[[float], None]]:
    """A function that reports the time reached; it draws a bar over log time when wanted (None: on a terminal)."""
    with work_bar(show, "tracing the path", end, lambda t: math.log(t / start)) as report:
        yield report


@contextmanager
def work_bar(
    show: bool | None, label: str, end: float, length: Callable[[float], float] = float
) -> Iterator[Callable[[float], None]]:
    """A function that reports how far work has come; it draws a bar when wanted (None: on a terminal)."""
    if show is None:
        show = sys.stderr.isatty()
    if not show:
        yield lambda done: None
        return
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        raise ImportError("progress=True needs rich: pip install bregpath[progress]") from None
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=length(end))
        yield lambda done: bar.update(task, completed=length(done))
