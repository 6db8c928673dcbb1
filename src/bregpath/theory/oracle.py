"""The estimator, and the dynamics, of an oracle that knows which coefficients are not zero."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bregpath._typing import Array
from bregpath.path import Path
from bregpath.problem import null_model
from bregpath.theory.curvature import Restriction
from bregpath.theory.truth import Truth

__all__ = ["OracleDynamics", "oracle_estimator"]

MAX_STAGES = 300  # of the dynamics, in each of which its curvature is looked at once


def oracle_estimator(truth: Truth) -> Array:
    """The parameters ``theta`` that minimise the loss with all coefficients outside the true support at zero."""
    penalty = deepcopy(truth.problem.penalty)
    penalty.weights[:] = np.inf
    penalty.weights[truth.support] = 0.0
    try:
        model = null_model(replace(truth.problem, penalty=penalty))
    except ValueError:
        raise ValueError(
            "`simulation` has no oracle estimator: on the true columns the loss has no finite minimum (classes that "
            "they separate); simulate more rows or a smaller signal M."
        ) from None
    return np.concatenate([model.alpha, model.beta[truth.support, 0]])


@dataclass(frozen=True, eq=False)
class OracleDynamics:
    """The flow restricted to the true support, knot by knot, from t = 0 on.

    Attributes
    ----------
    t : ndarray of shape (K,)
    theta : ndarray of shape (K, m)
        Unpenalised parameters, then the coefficients of the support.
    during : ndarray of shape (K - 1, m)
        The same inside each step: at its start where steps are fixed, else in its middle.
    dual : ndarray of shape (K, m)
        What moves at the speed of minus the gradient: ``alpha / kappa``, then ``z``.
    optimum : ndarray of shape (m,)
        Where the dynamics ends: the oracle estimator.
    n_alpha : int
        Number of unpenalised parameters.
    kappa : float

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_linear(500, 10, 2, r=0.0, seed=0)
    >>> dynamics = bregpath.theory.diagnose(data).dynamics
    >>> bool(dynamics.potential[-1] < 1e-6 * dynamics.potential[0])
    True
    """

    t: Array
    theta: Array
    during: Array
    dual: Array
    optimum: Array
    n_alpha: int
    kappa: float

    @classmethod
    def along(cls, path: Path, restriction: Restriction, optimum: Array, fixed: bool) -> OracleDynamics:
        """Read it from a path on which only the true columns may enter, with ``fixed`` or adaptive steps."""
        a, kappa = restriction.n_alpha, path.kappa
        t = np.unique(np.concatenate([[0.0], *(part.t for part in path.trajectory.parts)]))
        theta, during = (_read(path, restriction, times) for times in (t, t[:-1] if fixed else (t[:-1] + t[1:]) / 2))
        mean = _gradients(restriction, during)
        # Fixed steps follow the gradient at their start, and inverse scale space has one gradient between two events.
        if not fixed and np.isfinite(kappa):
            at_knots = _gradients(restriction, theta)
            mean = (at_knots[:-1] + 4 * mean + at_knots[1:]) / 6  # Simpson's rule
        moved = -np.cumsum(np.diff(t)[:, None] * mean[:, a:], axis=0)
        beta = theta[:, a:]
        waiting = np.clip(np.concatenate([np.zeros((1, beta.shape[1])), moved]), -1.0, 1.0)
        z = np.where(beta != 0, np.sign(beta) + beta / kappa, waiting)
        return cls(t, theta, during, np.hstack([theta[:, :a] / kappa, z]), optimum, a, kappa)

    @cached_property
    def distance(self) -> Array:
        """Distance ``d`` to the oracle estimator (K,)."""
        return np.linalg.norm(self.theta - self.optimum, axis=1)

    @cached_property
    def potential(self) -> Array:
        r"""What never rises, :math:`\lVert\beta^o\rVert_1 - \langle\beta^o, \rho\rangle + d^2 / 2\kappa` (K,)."""
        goal, rho = self.optimum[self.n_alpha :], np.clip(self.dual[:, self.n_alpha :], -1.0, 1.0)
        return np.abs(goal).sum() - rho @ goal + self.distance**2 / (2 * self.kappa)

    @cached_property
    def stages(self) -> tuple[Array, Array]:
        """Some ``theta`` evenly along the way, the last at its end, and the moves of the dual around them."""
        a, goal = self.n_alpha, self.optimum
        end = np.concatenate([goal[:a] / self.kappa, np.sign(goal[a:]) + goal[a:] / self.kappa])
        moves, thetas = np.diff(np.vstack([self.dual, end]), axis=0), np.vstack([self.during, goal])
        way = np.cumsum(np.abs(moves).sum(axis=1))
        stage = np.ceil(MAX_STAGES * way / way[-1])
        first = np.flatnonzero(np.diff(stage, prepend=-1.0))
        last = np.append(first[1:], len(stage)) - 1
        return thetas[(first + last + 1) // 2], np.add.reduceat(moves, first, axis=0)


def _read(path: Path, restriction: Restriction, times: Array) -> Array:
    alpha, columns, beta = path.trajectory.read(times)
    every = np.zeros((len(times), path.n_features))
    every[:, columns] = beta[:, :, 0]
    return np.hstack([alpha, every[:, restriction.columns]])


def _gradients(restriction: Restriction, thetas: Array) -> Array:
    return np.stack([restriction.gradient(theta) for theta in thetas])
