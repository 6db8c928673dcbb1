"""A user's wishes for a penalty, checked: factors, groups and limits."""

from __future__ import annotations

from typing import Any

import numpy as np

from bregpath import _validation
from bregpath._typing import Array, IntArray

__all__ = ["check_factor", "check_group_factor", "check_groups", "check_limit"]


def check_factor(penalty_factor: Any, size: int, what: str) -> Array:
    """Relative thresholds, one a column (or group)."""
    if penalty_factor is None:
        return np.ones(size)
    factor = _validation.as_array("penalty_factor", penalty_factor, float)
    if factor.shape != (size,):
        raise ValueError(f"`penalty_factor` must have one entry a {what} ({size}), found shape {factor.shape}.")
    if np.isnan(factor).any() or (factor < 0).any():
        raise ValueError("`penalty_factor` must be non-negative (0 = never penalised, inf = never enters) and not NaN.")
    return factor


def check_groups(groups: Any, n_columns: int) -> IntArray:
    """Group of each column, numbered from 0; without labels every column is a group of its own."""
    if groups is None:
        return np.arange(n_columns)
    labels = _validation.as_array("groups", groups)
    if labels.shape != (n_columns,):
        raise ValueError(
            f"`groups` must give one label for each of the {n_columns} columns, found shape {labels.shape}; "
            "a column of its own gets a label of its own."
        )
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise ValueError("`groups` contains NaN; every column needs a label.")
    return np.unique(labels, return_inverse=True)[1].ravel()


def check_group_factor(penalty_factor: Any, labels: IntArray) -> Array:
    """Factor of its group at each column, from one factor a group or one a column (equal inside a group)."""
    n_columns, n_groups = len(labels), int(labels.max(initial=-1)) + 1
    if penalty_factor is not None:
        penalty_factor = _validation.as_array("penalty_factor", penalty_factor, float)
    if penalty_factor is not None and penalty_factor.shape == (n_groups,) and n_groups != n_columns:
        return check_factor(penalty_factor, n_groups, "group")[labels]
    factor = check_factor(penalty_factor, n_columns, "column or group")
    first = np.unique(labels, return_index=True)[1]
    if not np.array_equal(factor, factor[first][labels]):
        raise ValueError("`penalty_factor` differs inside a group; give one factor a group.")
    return factor


def check_limit(name: str, limit: Any, n_columns: int, n_outputs: int) -> Array:
    """A limit of every coefficient, ``lower`` or ``upper``."""
    if limit is None:
        return np.full((n_columns, n_outputs), -np.inf if name == "lower" else np.inf)
    values = _validation.as_array(name, limit, float)
    if values.shape not in {(), (n_columns,)}:
        raise ValueError(f"`{name}` must be a number or one number a column ({n_columns}), found shape {values.shape}.")
    values = values.reshape(-1, 1)
    wrong, rule = (values > 0, "<= 0") if name == "lower" else (values < 0, ">= 0")
    if np.isnan(values).any() or wrong.any():
        raise ValueError(f"`{name}` must be {rule} in every column: zero is where a path starts.")
    return np.broadcast_to(values, (n_columns, n_outputs)).copy()
