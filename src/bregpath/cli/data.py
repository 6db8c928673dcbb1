"""Data for the command line."""

from __future__ import annotations

import csv
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bregpath._typing import Array

__all__ = ["Data", "Table", "read_csv", "regression_data"]

OTHER_MARKS = {";": "semicolons", "\t": "tabs"}  # between the cells of files that are no CSV


@dataclass(frozen=True)
class Data:
    """Columns, target and names; and how much each row counts, if not one."""

    X: Any
    y: Array
    names: list[str]
    weights: Array | None = None


@dataclass(frozen=True)
class Table:
    """The columns of a CSV file by name, and as a data frame where pandas and narwhals are there."""

    file: str
    columns: dict[str, Any]
    frame: Any = None

    def require(self, option: str, name: str) -> None:
        """Refuse a column that an option names and the file does not have."""
        if name not in self.columns:
            known = ", ".join(list(self.columns)[:12]) + (" and others" if len(self.columns) > 12 else "")
            raise ValueError(f"{option} {name!r} is no column of {self.file}; it has {known}.")

    def without(self, drop: Sequence[str]) -> list[str]:
        """Names of the columns that are left."""
        for name in drop:
            self.require("--drop", name)
        return [name for name in self.columns if name not in drop]

    def select(self, names: Sequence[str]) -> Any:
        """Some columns: a data frame, or an array of numbers."""
        if self.frame is not None:
            return self.frame[list(names)]
        text = [name for name in names if self.columns[name].dtype.kind == "U"]
        if text:
            raise ValueError(
                f"column {text[0]!r} of {self.file} holds text or missing values; text needs pandas and narwhals "
                f"(pip install pandas narwhals), or leave it out of the fit with --drop {text[0]}."
            )
        return np.column_stack([self.columns[name] for name in names])

    def whole(self, option: str, name: str) -> Array:
        """The column that an option names, which must have no missing values."""
        self.require(option, name)
        column = self.columns[name]
        if self.frame is None:
            return np.asarray(column)
        missing = int(column.isna().sum())
        if missing:
            raise ValueError(f"{option} {name!r} has {missing} missing values; drop these rows from {self.file}.")
        return np.asarray(column.to_numpy())


def regression_data(table: Table, target: str, drop: Sequence[str], weights: str | None = None) -> Data:
    """The target, the weights, and all other columns as predictors."""
    table.require("--target", target)
    kept = table.without(drop)
    if weights is not None:
        table.require("--weights", weights)
        if weights == target:
            raise ValueError(f"--weights {weights!r} is the target; weights are a column of their own.")
    names = [name for name in kept if name not in (target, weights)]
    if not names:
        others = f"the target {target!r}" + ("" if weights is None else f" and the weights {weights!r}")
        raise ValueError(f"{table.file} has no column besides {others}; a path needs at least one.")
    y = table.whole("--target", target)
    return Data(table.select(names), y, names, None if weights is None else _numbers(table, "--weights", weights))


def _numbers(table: Table, option: str, name: str) -> Array:
    column = table.whole(option, name)
    if column.dtype.kind not in "biuf":
        raise ValueError(f"{option} {name!r} must hold numbers, found {str(column[0])!r}.")
    return column.astype(float)


def read_csv(file: str) -> Table:
    """The columns of a CSV file."""
    has_frames = all(importlib.util.find_spec(name) is not None for name in ("pandas", "narwhals"))
    try:
        return _frame(file) if has_frames else Table(file, _plain_columns(file))
    except UnicodeDecodeError:
        raise ValueError(f"{file} is no text in UTF-8; if it is a CSV file, save it in this encoding.") from None


def _frame(file: str) -> Table:
    """A CSV file read with pandas."""
    import pandas as pd

    try:
        frame = pd.read_csv(file, skipinitialspace=True)
    except UnicodeDecodeError:
        raise
    except ValueError as error:  # all of pandas' own errors are
        raise ValueError(f"{file} cannot be read as CSV: {error}") from None
    columns = {str(name): frame[name] for name in frame.columns}
    _check_marks(file, list(columns))
    return Table(file, columns, frame)


def _check_marks(file: str, names: Sequence[str]) -> None:
    """Names that were taken for a single one say what stands between them."""
    found = next((said for mark, said in OTHER_MARKS.items() if mark in names[0]), None)
    if len(names) == 1 and found:
        raise ValueError(f"{file} has cells that are separated by {found}; save it with commas (and decimal points).")


def _plain_columns(file: str) -> dict[str, Array]:
    """Columns of a CSV file read without pandas: numbers where all cells are, else text."""
    with open(file, newline="", encoding="utf-8-sig") as stream:
        rows = [row for row in csv.reader(stream, skipinitialspace=True) if row]
    if len(rows) < 2:
        raise ValueError(f"{file} has no data rows; the first row holds names, the others numbers.")
    _check_marks(file, rows[0])
    uneven = [i + 1 for i, row in enumerate(rows) if len(row) != len(rows[0])]
    if uneven:
        raise ValueError(f"{file} has {len(rows[0])} names, but another number of cells in row {uneven[0]}.")
    columns: dict[str, Array] = {}
    for name, cells in zip(rows[0], np.array(rows[1:]).T, strict=True):
        try:
            columns[name] = cells.astype(float)
        except ValueError:
            columns[name] = cells
    return columns
