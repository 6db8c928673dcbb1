"""Whether a path is that of inverse scale space: its subgradient, rebuilt from nothing but its coefficients."""

from __future__ import annotations

import numpy as np

import bregpath
from tests.fuzz.oracle import Oracle

__all__ = ["assert_subgradient", "knots"]

AT_LIMIT = 1e-9  # of the largest coefficient


def knots(path: bregpath.Path) -> np.ndarray:
    """All times at which something changes, and the end."""
    times = np.unique(np.concatenate([chunk.t for chunk in path.trajectory.chunks])) / path.units.y_unit
    return np.append(times[times < path.t[-1]], path.t[-1])


def assert_subgradient(path: bregpath.Path, oracle: Oracle, tol: float = 1e-6) -> None:
    """Slopes of coefficients that are free to move are zero, and the integral of all slopes is a subgradient of the
    penalty and of its limits; at all times."""
    weights, lower, upper = oracle.weights, oracle.lower, oracle.upper
    penalised, free = np.isfinite(weights) & (weights > 0), weights == 0
    times = oracle.unit * knots(path)
    slope = oracle.speed(oracle.start)
    size, rho = np.abs(slope[penalised]).max(), oracle.t0 * slope
    np.testing.assert_allclose(times[0], oracle.t0, rtol=1e-9)
    for a, b in zip(times[:-1], times[1:], strict=True):
        theta = _inside(path.at(0.5 * (a + b) / oracle.unit), oracle)
        slope = oracle.speed(theta)
        close = AT_LIMIT * np.abs(theta).max()
        at_high, at_low = theta >= upper - close, theta <= lower + close
        moving = ((theta != 0) | free) & ~at_high & ~at_low
        assert np.abs(slope[moving]).max(initial=0.0) <= tol * size, f"slopes between t={a:g} and {b:g}"
        rho = rho + (b - a) * slope
        with np.errstate(invalid="ignore"):
            beyond = np.where(rho > 0, (rho - weights) * (upper > 0), (-rho - weights) * (lower < 0))
            zero, inside = penalised & (theta == 0), penalised & moving
            assert np.all(beyond[zero] <= tol * weights[zero]), f"a zero that should have entered by t={b:g}"
            assert np.all(np.abs(rho - np.sign(theta) * weights)[inside] <= tol * weights[inside]), f"signs at t={b:g}"
            held = penalised & (theta != 0) & ~moving
            assert np.all((np.sign(theta) * rho - weights)[held] >= -tol * weights[held]), f"limits at t={b:g}"


def _inside(point: bregpath.Point, oracle: Oracle) -> np.ndarray:
    """Intercept and coefficients in units of the oracle."""
    coef = point.coef.reshape(len(oracle.scale), -1)
    intercept = np.atleast_1d(point.intercept) + oracle.center @ coef
    return np.vstack([intercept, coef * oracle.scale[:, None]]) / oracle.unit
