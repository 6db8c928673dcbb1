"""What a block of exponential steps hands on: `Steps` from columns and intercept as one vector; and losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bregpath._kernels.records import Knot, Memory, Steps, System
from bregpath._typing import Array, IntArray

__all__ = ["Stretch", "block_of", "coordinates", "predictors", "rows_behind", "values", "write_coordinates"]


class Stretch(NamedTuple):
    """Consecutive knots: coordinates, their slopes, integrals of coefficients since the block began, and the loss."""

    t: Array  # (k,)
    z: Array  # (k, m + 1)
    slope: Array  # (k, m + 1)
    integral: Array  # (k, m + 1), or nothing where nobody asks for R
    value: Array  # (k,)

    @classmethod
    def start(cls, t: float, z: Array, slope: Array, value: float) -> Stretch:
        return cls(np.array([t]), z[None], slope[None], np.zeros((1, len(z))), np.array([value]))


def rows_behind(system: System) -> Array | None:
    """The columns behind a Gram matrix, looked up once; where it stands for all of them nobody asks for rows."""
    if "rows behind" not in system.cache:
        kernel = system.block.kernel()
        system.cache["rows behind"] = kernel.numbers.get("dense") if kernel else None
    return system.cache["rows behind"]  # type: ignore[no-any-return]


def predictors(system: System, columns: IntArray, alpha: Array, beta: Array) -> Array:
    """Those of all rows for several intercepts and sets of coefficients of some columns."""
    X = rows_behind(system)
    assert X is not None  # somebody asks for rows
    return alpha[:, None] + beta @ X[:, columns].T  # type: ignore[no-any-return]


Predict = Callable[[System, IntArray, Array, Array], Array]


def coordinates(knot: Knot, kappa: float) -> tuple[Array, Array]:
    """Columns and intercept of a knot as one vector, and its slope."""
    z, slope = np.empty((2, len(knot.z) + 1))
    write_coordinates(knot, kappa, z, slope)
    return z, slope


def write_coordinates(knot: Knot, kappa: float, z: Array, slope: Array) -> None:
    """The same, to where they shall be."""
    z[:-1], z[-1] = knot.z[:, 0], knot.alpha[0] / kappa
    slope[:-1], slope[-1] = knot.slope[:, 0], knot.alpha_slope[0] / kappa


def block_of(
    system: System,
    knot: Knot,
    knots: Stretch,
    cuts: IntArray,
    remember: Callable[[int], Memory],
    interrupted: bool,
    keep_rows: bool,
    predict: Predict = predictors,
) -> Steps:
    """A block of steps from its knots, of which ``knot`` is the first."""
    kappa, columns = system.problem.kappa, knots.z[:, :-1, None]
    alpha = kappa * knots.z[:, -1:]
    R, residual = _rows(system, knot, knots, alpha, columns, keep_rows, predict)
    return Steps(
        system.columns,
        t=knots.t,
        alpha=alpha,
        alpha_slope=kappa * knots.slope[:, -1:],
        z=columns,
        slope=knots.slope[:, :-1, None],
        R=R,
        residual=residual,
        value=knots.value,
        reach=np.zeros(len(knots.t)),
        memory=remember,
        interrupted=interrupted,
        cuts=cuts,
    )


def _rows(
    system: System, knot: Knot, knots: Stretch, alpha: Array, z: Array, keep_rows: bool, predict: Predict
) -> tuple[Array, Array]:
    """R and residual at every knot or the last."""
    X, problem, t, integral = rows_behind(system), system.problem, knots.t, knots.integral
    if X is None:
        return knot.R[None], knot.residual[None]
    at = slice(1, None) if keep_rows else slice(-1, None)
    beta = system.penalty.primal(z[at], problem.kappa)[..., 0]
    used = np.flatnonzero(beta.any(axis=0) | integral[at, :-1].any(axis=0))
    sets = np.concatenate([beta[:, used], integral[at][:, used]])
    now, past = np.split(predict(system, used, np.concatenate([alpha[at, 0], integral[at, -1]]), sets), 2)
    y = problem.y - problem.offset[:, 0]
    now -= y
    past -= (t[at] - t[0])[:, None] * y
    now *= problem.w
    past *= problem.w
    R, residual = knot.R + past[..., None], now[..., None]
    if not keep_rows:
        return R, residual
    return np.concatenate([knot.R[None], R]), np.concatenate([knot.residual[None], residual])


def values(system: System, alpha: Array, beta: Array) -> Array:
    """Loss at coefficients (T, m, 1) of the working columns and intercepts (T, 1), from the moments alone."""
    kernel = system.block.kernel()
    assert kernel is not None  # exponential.applies() has seen to it
    moments, beta = kernel.numbers, beta[..., 0]
    used = np.flatnonzero(beta.any(axis=0))  # the others may have no row in the matrix
    beta, gram = beta[:, used], moments["gram"][used[:, None], used]
    u = alpha[:, 0] + beta @ moments["gram_mean"][used] - moments["y_mean"]
    spread = moments["y_square"] + (beta * (beta @ gram - 2 * moments["gram_target"][used])).sum(axis=1)
    return 0.5 * (spread + u * u)  # type: ignore[no-any-return]
