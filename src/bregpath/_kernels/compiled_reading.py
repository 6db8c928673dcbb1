"""The compiled twins of `flow.reading.CubicOfDual`, for the l1 penalty without limits, and of `lines`."""

from __future__ import annotations

from typing import Any

import numpy as np

import bregpath._kernels._core as _core
from bregpath._kernels.lines import Knots, Lines, Points
from bregpath._typing import Array, IntArray
from bregpath.penalties import AbstractPenalty, L1Penalty
from bregpath.penalties.base import ON_IT

__all__ = [
    *("changes", "draw", "give_back", "integrate_cubics", "read_cubics", "supports", "take_columns", "trust_cubics"),
]

Changes = tuple[list[int], list[tuple[int, int, bool]]]


def supports(penalty: AbstractPenalty) -> bool:
    """Whether the compiled core knows the penalty: by its class, since this is asked at every reading."""
    return type(penalty) is L1Penalty and not penalty.has_limits


def read_cubics(
    knots: dict[str, Array], weights: Array, kappa: float, times: Array, visible: float
) -> tuple[Array, Array]:
    """Unpenalised parameters and coefficients at times between knots."""
    alpha, beta = (np.empty((len(times), *knots[name].shape[1:])) for name in ("alpha", "z"))
    arrays = {**_floats({**knots, "weights": weights, "times": times}), "alpha_out": alpha, "beta_out": beta}
    _core.read_cubics(arrays, kappa, visible, ON_IT)
    return alpha, beta


def changes(z: Array, weights: Array) -> Changes:
    """Columns that are active at the first knot, and (knot before, column, whether it enters) of what changes later."""
    return _core.changes(z, weights)  # type: ignore[no-any-return]


def take_columns(x: Array, columns: IntArray) -> Array:
    """``x.take(columns, axis=1)`` of part of an array (d, m, q), which NumPy would copy first."""
    out = np.empty((len(x), len(columns), x.shape[2]))
    _core.take_columns(x, columns, out)
    return out


def give_back() -> None:
    """Give memory that is free back to the system."""
    _core.give_back()


def trust_cubics(knots: dict[str, Array], weights: Array, kappa: float, visible: float) -> Array:
    """Share of the slopes that counts in each step."""
    trust = np.empty(len(knots["t"]) - 1)
    _core.trust_cubics({**_floats({**knots, "weights": weights}), "trust_out": trust}, kappa, visible, ON_IT)
    return trust


def integrate_cubics(
    knots: dict[str, Array], weights: Array, kappa: float, parts: tuple[Array, Array], visible: float,
    power: float, rule: tuple[float, float, float],
) -> tuple[Array, Array]:  # fmt: skip
    """Integrals over parts of steps, and the models at their ends: (2, parts, ...)."""
    low, high = parts
    alpha, beta = (np.empty((2, len(low), *knots[name].shape[1:])) for name in ("alpha", "z"))
    arrays = _floats({**knots, "weights": weights, "low": low, "high": high})
    _core.integrate_cubics({**arrays, "alpha_out": alpha, "beta_out": beta}, kappa, visible, ON_IT, power, *rule)
    return alpha, beta


def draw(knots: Knots, lines: Lines, first: int, holds: bool, is_cubic: bool) -> tuple[Points, Points]:
    """See `lines.draw`."""
    arrays = _floats({name: getattr(knots, name) for name in ("t", "trust", "value", "slope", "room")})
    state = {"line_t": lines.t, "line_value": lines.value, "line_row": lines.row, "low": lines.low, "high": lines.high}
    points, cubics = _core.draw({**arrays, **state}, knots.error, holds, is_cubic, first)
    return Points(*points), Points(*cubics)


def _floats(arrays: dict[str, Array]) -> dict[str, Any]:
    return {name: np.ascontiguousarray(x, dtype=np.float64) for name, x in arrays.items()}
