"""Data for the command line."""

from __future__ import annotations

import csv
import importlib.util
from dataclasses import dataclass
from typing import Any

import numpy as np

from bregpath._typing import Array

__all__ = ["Data", "read_csv"]


@dataclass(frozen=True)
class Data:
    """Columns, target and names."""

    X: Any
    y: Array
    names: list[str]


def read_csv(file: str, target: str, drop: list[str]) -> Data:
    """The columns of a CSV file; as a data frame where pandas and narwhals are there."""
    frames = all(importlib.util.find_spec(name) is not None for name in ("pandas", "narwhals"))
    if frames:
        import pandas as pd

        try:
            frame = pd.read_csv(file, skipinitialspace=True)
        except ValueError as error:  # all of pandas' own errors are
            raise ValueError(f"{file} cannot be read as CSV: {error}") from None
        columns = {str(name): frame[name] for name in frame.columns}
    else:
        columns = _plain_columns(file)
    for option, wanted in [("--target", target), *(("--drop", name) for name in drop)]:
        if wanted not in columns:
            known = ", ".join(list(columns)[:12]) + (" and others" if len(columns) > 12 else "")
            raise ValueError(f"{option} {wanted!r} is no column of {file}; it has {known}.")
    names = [name for name in columns if name != target and name not in drop]
    if not names:
        raise ValueError(f"{file} has no column besides the target {target!r}; a path needs at least one.")
    y = columns[target]
    if frames:
        missing = int(y.isna().sum())
        if missing:
            raise ValueError(f"--target {target!r} has {missing} missing values; drop these rows from {file}.")
        return Data(frame[names], y.to_numpy(), names)
    text = [name for name in names if columns[name].dtype.kind == "U"]
    if text:
        raise ValueError(
            f"column {text[0]!r} of {file} holds text or missing values; text needs pandas and narwhals "
            f"(pip install pandas narwhals), or leave it out with --drop {text[0]}."
        )
    return Data(np.column_stack([columns[name] for name in names]), y, names)


def _plain_columns(file: str) -> dict[str, Array]:
    """Columns of a CSV file read without pandas: numbers where all cells are, else text."""
    with open(file, newline="", encoding="utf-8-sig") as stream:
        rows = [row for row in csv.reader(stream, skipinitialspace=True) if row]
    if len(rows) < 2:
        raise ValueError(f"{file} has no data rows; the first row holds names, the others numbers.")
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
