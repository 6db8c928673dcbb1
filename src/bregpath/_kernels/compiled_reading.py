"""The compiled twin of `flow.reading.CubicOfDual.between`, for the l1 penalty without limits."""

from __future__ import annotations

from typing import Any

import numpy as np

import bregpath._kernels._core as _core
from bregpath._typing import Array
from bregpath.penalties import AbstractPenalty
from bregpath.penalties.base import ON_IT

__all__ = ["read_cubics", "supports"]


def supports(penalty: AbstractPenalty) -> bool:
    """Whether the compiled core knows the penalty."""
    kernel = penalty.kernel()
    return kernel is not None and kernel.name == "l1" and not penalty.has_limits


def read_cubics(
    knots: dict[str, Array], penalty: AbstractPenalty, kappa: float, times: Array, visible: float
) -> tuple[Array, Array]:
    """Unpenalised parameters and coefficients at times between knots."""
    arrays: dict[str, Any] = {**knots, "weights": penalty.weights, "times": times}
    arrays = {name: np.ascontiguousarray(x, dtype=np.float64) for name, x in arrays.items()}
    alpha, beta = (np.empty((len(times), *knots[name].shape[1:])) for name in ("alpha", "z"))
    _core.read_cubics({**arrays, "alpha_out": alpha, "beta_out": beta}, kappa, visible, ON_IT)
    return alpha, beta
