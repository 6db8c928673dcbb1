"""Results as text: columns that are aligned, and long tables and lists cut short."""

from __future__ import annotations

from collections.abc import Collection, Sequence

__all__ = ["aligned", "listed", "shortened"]


def aligned(rows: Sequence[Sequence[str]], left: Collection[int]) -> list[str]:
    """Lines of cells in columns, some of them flush left and the others flush right.

    Examples
    --------
    >>> print(*aligned([["name", "value"], ["a", "1"]], left={0}), sep="\\n")
    name  value
    a         1
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    columns = [(str.ljust if i in left else str.rjust, width) for i, width in enumerate(widths)]
    return ["  ".join(pad(cell, n) for cell, (pad, n) in zip(row, columns, strict=True)).rstrip() for row in rows]


def listed(names: Sequence[str], most: int = 5) -> str:
    """The first of some names in a line, and how many more there are.

    Examples
    --------
    >>> listed(["a", "b", "c", "d"], most=2)
    'a, b and 2 more'
    """
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def shortened(lines: list[str], most: int) -> list[str]:
    """The first lines of a table, and how many more there are."""
    return lines if len(lines) <= most else [*lines[:most], f"... and {len(lines) - most} more"]
