"""Coefficients of the Runge-Kutta-Chebyshev method of second order.

A stabilised explicit method: ``s`` stages, each one gradient, stay stable for steps up to about ``0.65 s^2 / rate``
where the explicit Euler method needs ``0.5 s^2`` gradients. (Sommeijer, Shampine & Verwer, J. Comput. Appl. Math. 88
(1997) 315-326, equations 2.5 to 2.8.)
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from bregpath._typing import Array

__all__ = ["DAMPING", "MAX_STAGES", "STABILITY", "Stages", "longest_step", "stage_coefficients", "stages_needed"]

MAX_STAGES = 500
DAMPING = 2.0 / 13.0
STABILITY = 1.54  # step times rate over the square of the stages, less one


class Stages(NamedTuple):
    """Stage ``j`` is ``(1 - mu_j - nu_j) Y_0 + mu_j Y_{j-1} + nu_j Y_{j-2} + h (mu1_j F_{j-1} + gamma_j F_0)``."""

    first: float
    mu: Array
    nu: Array
    mu1: Array
    gamma: Array


def stages_needed(step_times_rate: float) -> int:
    """Fewest stages that are stable for a step of this length times the largest decay rate."""
    return max(2, int(np.ceil(np.sqrt(1.0 + STABILITY * step_times_rate))))


def longest_step(stages: int, rate: float) -> float:
    """Longest step that is stable with this many stages."""
    return (stages * stages - 1) / (STABILITY * rate)


@cache
def stage_coefficients(s: int) -> Stages:
    """Coefficients of the method with ``s`` stages."""
    w0 = 1.0 + DAMPING / s**2
    # Chebyshev polynomials T_j and their first two derivatives at w0, by the three-term recursion.
    T, dT, ddT = np.zeros(s + 1), np.zeros(s + 1), np.zeros(s + 1)
    T[:2], dT[:2] = (1.0, w0), (0.0, 1.0)
    for j in range(2, s + 1):
        T[j] = 2 * w0 * T[j - 1] - T[j - 2]
        dT[j] = 2 * w0 * dT[j - 1] - dT[j - 2] + 2 * T[j - 1]
        ddT[j] = 2 * w0 * ddT[j - 1] - ddT[j - 2] + 4 * dT[j - 1]
    w1 = dT[s] / ddT[s]
    b = np.empty(s + 1)
    b[2:] = ddT[2:] / dT[2:] ** 2
    b[:2] = b[2]
    a = 1.0 - b * T
    mu, nu, mu1, gamma = np.zeros((4, s + 1))
    mu[2:] = 2 * b[2:] * w0 / b[1:-1]
    nu[2:] = -b[2:] / b[:-2]
    mu1[2:] = 2 * b[2:] * w1 / b[1:-1]
    gamma[2:] = -a[1:-1] * mu1[2:]
    return Stages(float(b[1] * w1), mu, nu, mu1, gamma)
