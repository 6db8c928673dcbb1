"""Penalties: mirror maps of the dual variable. `PENALTIES` names them; `build_penalty` reads a user's wishes."""

from __future__ import annotations

from typing import Any

import numpy as np

from bregpath import _validation
from bregpath._typing import Array, IntArray
from bregpath.penalties.base import AbstractPenalty
from bregpath.penalties.group import GroupPenalty
from bregpath.penalties.l1 import L1Penalty

__all__ = ["PENALTIES", "AbstractPenalty", "GroupPenalty", "L1Penalty", "build_penalty"]

PENALTIES: dict[str, str] = {
    "l1": "every coefficient for itself",
    "group": "groups enter together, threshold 1 on the l2 norm of a group",
    "group-sqrt": "groups enter together, threshold sqrt(size of the group)",
}


def build_penalty(
    penalty: str,
    n_columns: int,
    n_outputs: int,
    *,
    groups: Any = None,
    penalty_factor: Any = None,
    lower: Any = None,
    upper: Any = None,
) -> AbstractPenalty:
    """Penalty object from its name, group labels, factors and limits, all checked.

    Without ``groups`` a group penalty makes one group of each column, over all outputs: the natural choice for
    several outputs (multinomial), and the l1 penalty for one.

    Examples
    --------
    >>> build_penalty("l1", 3, 1, penalty_factor=[1, 2, 0]).shrink(np.full((3, 1), 3.0)).ravel()
    array([2., 1., 3.])
    """
    if penalty not in PENALTIES:
        raise ValueError(f"`penalty` must be one of {sorted(PENALTIES)}, found {penalty!r}.")
    limits = (
        _limit("lower", lower, n_columns, n_outputs, default=-np.inf),
        _limit("upper", upper, n_columns, n_outputs, default=np.inf),
    )
    if penalty == "l1":
        if groups is not None:
            raise ValueError('`groups` needs penalty="group" or "group-sqrt", found penalty="l1".')
        factor = _factor(penalty_factor, n_columns, "column")
        return L1Penalty(np.repeat(factor[:, None], n_outputs, axis=1), *limits)
    labels = _group_labels(groups, n_columns)
    weights = _group_weights(penalty_factor, labels)
    if penalty == "group-sqrt":
        weights = weights * np.sqrt(np.bincount(labels) * n_outputs)[labels]
    return GroupPenalty(np.repeat(weights[:, None], n_outputs, axis=1), *limits, groups=labels)


def _factor(penalty_factor: Any, size: int, what: str) -> Array:
    if penalty_factor is None:
        return np.ones(size)
    factor = _validation.as_array("penalty_factor", penalty_factor, float)
    if factor.shape != (size,):
        raise ValueError(f"`penalty_factor` must have one entry a {what} ({size}), found shape {factor.shape}.")
    if np.isnan(factor).any() or (factor < 0).any():
        raise ValueError("`penalty_factor` must be non-negative (0 = never penalised, inf = never enters) and not NaN.")
    return factor


def _group_labels(groups: Any, n_columns: int) -> IntArray:
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


def _group_weights(penalty_factor: Any, labels: IntArray) -> Array:
    """Weight of its group at each column, from one factor a group or one a column (equal inside a group)."""
    n_columns, n_groups = len(labels), int(labels.max(initial=-1)) + 1
    if penalty_factor is not None:
        penalty_factor = _validation.as_array("penalty_factor", penalty_factor, float)
    if penalty_factor is not None and penalty_factor.shape == (n_groups,) and n_groups != n_columns:
        return _factor(penalty_factor, n_groups, "group")[labels]
    factor = _factor(penalty_factor, n_columns, "column or group")
    first = np.unique(labels, return_index=True)[1]
    if not np.array_equal(factor, factor[first][labels]):
        raise ValueError("`penalty_factor` differs inside a group; give one factor a group.")
    return factor


def _limit(name: str, limit: Any, n_columns: int, n_outputs: int, default: float) -> Array:
    if limit is None:
        limit = default
    values = _validation.as_array(name, limit, float)
    if values.shape not in {(), (n_columns,)}:
        raise ValueError(f"`{name}` must be a number or one number a column ({n_columns}), found shape {values.shape}.")
    values = values.reshape(-1, 1)
    wrong, rule = (values > 0, "<= 0") if name == "lower" else (values < 0, ">= 0")
    if np.isnan(values).any() or wrong.any():
        raise ValueError(f"`{name}` must be {rule} in every column: zero is where a path starts.")
    return np.broadcast_to(values, (n_columns, n_outputs)).copy()
