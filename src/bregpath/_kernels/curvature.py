"""The largest curvature of a loss along a path, by power iteration, in NumPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bregpath._kernels.records import Knot, Memory, System
from bregpath._typing import BoolArray

__all__ = ["curvature_on"]

SEEN = 1e-300  # direction of a column without curvature: not new, and nothing else


def curvature_on(system: System, knot: Knot, memory: Memory, columns: BoolArray, iterations: int = 2) -> Memory:
    """Leading direction and size of the curvature on some columns and the intercept, by power iteration."""
    problem = system.problem
    index = np.flatnonzero(system.penalty.close(columns))
    block, penalty = system.block.columns(index), system.penalty.take(index)
    eta = memory.frozen  # the stages have this curvature, if any is frozen
    if memory.frozen_t == 0:
        eta = problem.predictor(block, knot.alpha, penalty.primal(knot.z[index], problem.kappa))
    v = memory.direction[index]
    # Columns that are new to the direction get a small share, or the iteration would never see them, in proportion to
    # z: equal shares of all classes would have no curvature, and the sign of a column must not matter.
    size = max(float(np.max(np.abs(v), initial=0.0)), 1e-3)
    largest_z = float(np.max(np.abs(knot.z[index]), initial=0.0))
    v = np.where(v == 0, 0.1 * size * (knot.z[index] / largest_z if largest_z > 0 else 1.0), v)
    v0, rate = memory.alpha_direction, 0.0
    # Of the dynamics, which are those of z: a loss is to fall at every fixed step, along any direction.
    adaptive = system.step is None
    for _ in range(iterations):
        norm = float(np.sqrt(np.sum(v * v) + np.sum(v0 * v0)))
        if not norm > 0:
            break
        v, v0 = v / norm, v0 / norm
        v = penalty.root(knot.z[index], v) if adaptive else v
        product = problem.curvature(eta, problem.predictor(block, v0, v, offset=False))
        v = block.rmatvec(product)
        v = penalty.root(knot.z[index], v) if adaptive else v
        v0 = problem.alpha_gradient(product)
        rate = float(np.sqrt(np.sum(v * v) + np.sum(v0 * v0)))
    # Intercepts that no column is coupled to are not in that direction: their own curvature.
    nothing = problem.predictor(block, np.ones_like(v0), np.zeros_like(v), offset=False)
    rate = max(rate, float(np.max(np.abs(problem.alpha_gradient(problem.curvature(eta, nothing))), initial=0.0)))
    direction = np.zeros_like(memory.direction)
    direction[index] = np.where(v == 0, SEEN, v)
    return replace(memory, direction=direction, alpha_direction=v0, rate=max(rate, 1e-12), age=0)
