"""What the command line prints and draws."""

from __future__ import annotations

import errno
import importlib.util
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from bregpath._text import aligned
from bregpath.path import Path, percent

__all__ = ["check_files", "print_model", "print_path", "save_figure", "size"]

MAX_ROWS = 12


def check_files(source: str, *files: str | None, plot: str | None = None) -> None:
    """Refuse files that could not be written, or would replace the one that is read, before anything is computed."""
    for file in filter(None, (*files, plot)):
        if os.path.isdir(file):
            raise IsADirectoryError(errno.EISDIR, "Is a directory", file)
        if not os.path.isdir(os.path.dirname(os.path.abspath(file))):
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", file)
        if os.path.realpath(file) == os.path.realpath(source):
            raise ValueError(f"{file} is the file that is read; write to another one.")
    if plot is not None:
        known = sorted(_new_figure().canvas.get_supported_filetypes())
        if os.path.splitext(plot)[1][1:].lower() not in known:
            endings = ", ".join(known)
            raise ValueError(f"--plot must name a figure, such as path.png, found {plot!r}; endings may be {endings}.")


def size(path: Path, t: float) -> str:
    """How many variables a model has, in words."""
    table = path.at(t).table
    assert table is not None
    return table.size


def print_path(path: Path) -> None:
    """Sizes, deviance and the names of those that enter, where the support changes (a dozen rows at most)."""
    supports = [set(path.support(t).tolist()) for t in path.t]
    changes = [i for i in range(1, len(supports)) if supports[i] != supports[i - 1]]
    if len(changes) > MAX_ROWS:
        changes = [changes[i] for i in np.linspace(0, len(changes) - 1, MAX_ROWS).round().astype(int)]
    rows, before, names = [], supports[0], path.feature_names
    for i in sorted({0, *changes, len(supports) - 1}):
        moves = [names[j] for j in sorted(supports[i] - before, key=lambda j: path.entry_times[j])]
        moves += [f"-{names[j]}" for j in sorted(before - supports[i])]
        more = f", ... {len(moves) - 5} more" if len(moves) > 5 else ""
        share = percent(path.deviance_ratio[i])
        rows.append([str(path.df[i]), share, f"{path.t[i]:.4g}", ", ".join(moves[:5]) + more])
        before = supports[i]
    _print_table(["Df", "%Dev", "t", "enters (-leaves)"], rows, left={3})
    print(path.result)


def print_model(path: Path, t: float) -> None:
    """Coefficients on the original scale, those with the largest effect first."""
    table = path.at(t).table
    assert table is not None
    _print_table(table.rows[0], table.rows[1:], left={0})
    if path.classes is not None and path.n_outputs == 1:
        print(f"Positive coefficients speak for {path.classes[1]}, negative ones for {path.classes[0]}.")


def _print_table(header: list[str], rows: list[list[str]], left: set[int]) -> None:
    """A table: by rich on a terminal, else in plain text that other programs can read."""
    if sys.stdout.isatty() and importlib.util.find_spec("rich") is not None:
        from rich import box
        from rich.console import Console
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for i, name in enumerate(header):
            table.add_column(name, justify="left" if i in left else "right", overflow="fold")
        for row in rows:
            table.add_row(*(cell.replace("[", r"\[") for cell in row))
        Console().print(table)
        return
    print(*aligned([header, *rows], left), sep="\n")


def save_figure(draw: Callable[[Any], Any], file: str, inches: tuple[float, float] = (7.5, 4.8)) -> None:
    """Draw into a file, without a window and without pyplot."""
    figure = _new_figure(inches)
    draw(figure.subplots())
    figure.savefig(file, dpi=150)
    print(f"Figure saved in {file}.")


def _new_figure(inches: tuple[float, float] = (7.5, 4.8)) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("Figures need matplotlib: pip install bregpath[plot]") from None
    return Figure(figsize=inches, layout="constrained")
