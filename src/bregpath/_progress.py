"""A progress bar for long paths."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(show: bool | None, start: float, end: float) -> Iterator[Callable[[float], None]]:
    """A function that reports the time reached; it draws a bar over log time when wanted (None: on a terminal)."""
    if show is None:
        show = sys.stderr.isatty()
    if not show:
        yield lambda t: None
        return
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        raise ImportError("progress=True needs rich: pip install bregpath[progress]") from None
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("tracing the path", total=math.log(end / start))
        yield lambda t: bar.update(task, completed=math.log(t / start))
