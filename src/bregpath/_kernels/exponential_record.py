"""What a block of exponential steps hands on: `Steps` from columns and intercept as one vector."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bregpath._kernels.records import Knot, Memory, Steps, System
from bregpath._typing import Array, IntArray

__all__ = ["block_of", "coordinates"]


def coordinates(knot: Knot, kappa: float) -> tuple[Array, Array]:
    """Columns and intercept of a knot as one vector, and its slope."""
    return np.append(knot.z, knot.alpha / kappa), np.append(knot.slope, knot.alpha_slope / kappa)


def block_of(
    system: System,
    knot: Knot,
    t: Array,
    z: Array,
    slope: Array,
    integral: Array,
    cuts: IntArray,
    remember: Callable[[int], Memory],
    interrupted: bool,
    keep_rows: bool,
) -> Steps:
    """A block of steps from all coordinates, their slopes and the integrals of coefficients at its knots."""
    kappa, columns = system.problem.kappa, z[:, :-1, None]
    alpha, beta = kappa * z[:, -1:], system.penalty.primal(columns, kappa)[..., 0]
    # Between two points of a quadratic function the mean of its slopes tells the difference.
    moved, slopes = np.diff(np.column_stack([beta, alpha]), axis=0), slope[1:] + slope[:-1]
    value = np.subtract.accumulate(np.append(knot.value, 0.5 * np.einsum("kj,kj->k", moved, slopes)))
    R, residual = _rows(system, knot, t, alpha, beta, integral, keep_rows)
    return Steps(
        system.columns,
        t=t,
        alpha=alpha,
        alpha_slope=kappa * slope[:, -1:],
        z=columns,
        slope=slope[:, :-1, None],
        R=R,
        residual=residual,
        value=value,
        reach=np.zeros(len(t)),
        memory=remember,
        interrupted=interrupted,
        cuts=cuts,
    )


def _rows(
    system: System, knot: Knot, t: Array, alpha: Array, beta: Array, integral: Array, keep_rows: bool
) -> tuple[Array, Array]:
    """R and residual at every knot or the last; where the matrix stands for all columns nobody asks for them."""
    kernel, problem = system.block.kernel(), system.problem
    X = kernel.numbers.get("dense") if kernel else None
    if X is None:
        return knot.R[None], knot.residual[None]
    at = slice(1, None) if keep_rows else slice(-1, None)
    used = np.flatnonzero(beta[at].any(axis=0) | integral[at, :-1].any(axis=0))
    inside, w, y = X[:, used], problem.w, problem.y - problem.offset[:, 0]
    residual = w * (alpha[at] + beta[at][:, used] @ inside.T - y)
    past = w * (integral[at, -1:] + integral[at][:, used] @ inside.T - (t[at] - t[0])[:, None] * y)
    R, residual = knot.R + past[..., None], residual[..., None]
    if not keep_rows:
        return R, residual
    return np.concatenate([knot.R[None], R]), np.concatenate([knot.residual[None], residual])
