"""Penalties: mirror maps of the dual variable, registered in `PENALTIES`."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from bregpath.penalties.base import AbstractPenalty
from bregpath.penalties.group import GroupPenalty, GroupSqrtPenalty
from bregpath.penalties.l1 import L1Penalty

__all__ = ["PENALTIES", "AbstractPenalty", "GroupPenalty", "GroupSqrtPenalty", "L1Penalty", "build_penalty"]

PENALTIES: dict[str, type[AbstractPenalty]] = {cls.name: cls for cls in (L1Penalty, GroupPenalty, GroupSqrtPenalty)}


def build_penalty(penalty: Any, n_columns: int, n_outputs: int, **wishes: Any) -> AbstractPenalty:
    """Penalty object from its name or class and a user's wishes, all checked; or a copy of the given object.

    ``wishes`` are ``groups``, ``penalty_factor``, ``lower`` and ``upper``, as in `bregpath.trace_path`.

    Examples
    --------
    >>> import numpy as np
    >>> build_penalty("l1", 3, 1, penalty_factor=[1, 2, 0]).shrink(np.full((3, 1), 3.0)).ravel()
    array([2., 1., 3.])
    """
    wishes = {name: wish for name, wish in wishes.items() if wish is not None}
    if isinstance(penalty, AbstractPenalty):
        if wishes:
            raise ValueError(f"`{next(iter(wishes))}` belongs to the penalty object that was given; set it there.")
        if penalty.weights.shape != (n_columns, n_outputs):
            raise ValueError(
                f"`penalty` must have weights of shape {(n_columns, n_outputs)}, one a column and output, found "
                f"{penalty.weights.shape}."
            )
        return deepcopy(penalty)  # limits are rescaled in place
    if isinstance(penalty, str) and penalty in PENALTIES:
        penalty = PENALTIES[penalty]
    if not (isinstance(penalty, type) and issubclass(penalty, AbstractPenalty)):
        raise ValueError(
            f"`penalty` must be one of {sorted(PENALTIES)}, or an AbstractPenalty (class or object), found {penalty!r}."
        )
    return penalty.build(n_columns, n_outputs, **wishes)
