"""The compiled twin of `inverse_scale_space`: squared loss with the Gram matrix of the columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import bregpath._kernels._core as _core
from bregpath._kernels import inverse_scale_space, restricted
from bregpath._kernels.compiled import typed
from bregpath._kernels.inverse_scale_space import Position
from bregpath._kernels.records import Knot, StepError, Steps, System
from bregpath._known_to_core import is_known_as
from bregpath._typing import Array

__all__ = ["advance", "supports"]

CONSTANTS = {name: getattr(restricted, name) for name in ("TOL", "NOISE", "SINGULAR", "TIED", "MAX_STEPS")}


def supports(system: System) -> bool:
    """Whether the compiled core knows penalty and block."""
    return is_known_as(system.penalty, "l1") and is_known_as(system.block, "gram", "sparse-gram")


def advance(
    system: System, knot: Knot, memory: Position, until: float, limit: float, max_steps: int
) -> Steps | None:
    """See `inverse_scale_space.advance`; None where columns depend on each other, which the reference takes care of."""
    arrays: dict[str, Any] = {}
    for owner, names in ((knot, ("t", "alpha", "value", "slope")), (memory, ("rho", "beta"))):
        for name in names:
            start = getattr(owner, name)
            arrays[name] = np.empty((max_steps + 1, *np.shape(start)))
            arrays[name][0] = start
    done, trouble, solutions = _space(system, memory).advance(arrays, min(until, limit), limit, max_steps)
    if done == 0 and trouble == "singular":
        return None
    if done == 0 and trouble == "stalled":
        raise StepError("no optimum between two events")
    arrays = {name: array[: done + 1] for name, array in arrays.items()}
    rho, beta = arrays.pop("rho"), arrays.pop("beta")
    products = 2 * len(memory.rho) * solutions

    def remember(k: int) -> Position:
        share = k / done
        return replace(
            memory,
            rho=rho[k],
            beta=beta[k],
            gradients=memory.gradients + round(share * solutions),
            products=memory.products + round(share * products),
        )

    R, residual = _rows(system, knot, arrays["t"], arrays["alpha"], beta)
    return Steps(
        system.columns,
        **arrays,
        alpha_slope=np.zeros_like(arrays["alpha"]),
        z=rho + beta,
        R=R,
        residual=residual,
        reach=np.zeros(done + 1),
        memory=remember,
    )


def _rows(system: System, knot: Knot, t: Array, alpha: Array, beta: Array) -> tuple[Array, Array]:
    """R and residual at every knot; where the matrix stands for all columns nobody asks, and they stay as they were."""
    kernel, problem = system.block.kernel(), system.problem
    if kernel is None or not {"dense", "values"} & set(kernel.numbers):
        return knot.R[None], knot.residual[None]
    used = np.flatnonzero(beta[1:].any(axis=(0, 2)))
    eta = alpha[1:, 0] + system.block.columns(used).matvec(beta[1:, used, 0].T)
    residual = (problem.w[:, None] * (eta - (problem.y - problem.offset[:, 0])[:, None])).T[..., None]
    R = knot.R + np.cumsum(np.diff(t)[:, None, None] * residual, axis=0)
    return np.concatenate([knot.R[None], R]), np.concatenate([knot.residual[None], residual])


def _space(system: System, memory: Position) -> Any:
    """The compiled object of a system, made once."""
    if "space" not in system.cache:
        penalty, block = system.penalty.kernel(), system.block.kernel()
        assert penalty is not None and block is not None  # supports() has seen to it
        settings = {"fit_intercept": system.problem.fit_intercept, "scale": memory.scale, "enough": memory.enough}
        settings |= CONSTANTS | {"TIE": inverse_scale_space.TIE}
        numbers = typed(penalty).numbers, typed(block).numbers
        system.cache["space"] = _core.InverseScaleSpace(penalty=numbers[0], block=numbers[1], settings=settings)
    return system.cache["space"]
