r"""The constants of the consistency theorem on one problem, its conditions, and what it promises.

With :math:`S_\alpha` the unpenalised parameters and the true columns, :math:`\theta(t)` the oracle dynamics,
:math:`u = (\alpha/\kappa, z_S)` its dual, and :math:`\bar H(\theta)` the mean Hessian between truth and :math:`\theta`:

* :math:`\lambda I \preceq \nabla^2_{S_\alpha S_\alpha}\ell \preceq \Lambda I` between :math:`\theta(t)` and
  :math:`\theta^o`, and between :math:`\theta^*` and :math:`\theta^o`;
* :math:`\mathrm{irr} = \bar H_{S^c S_\alpha} \bar H_{S_\alpha S_\alpha}^{-1}` at :math:`\theta(t)`, with
  :math:`\sup_T \lVert \int_0^T \mathrm{irr}\, du \rVert_\infty \le 1 - \eta/2` and
  :math:`\lVert\mathrm{irr}\rVert_\infty \le C`;
* :math:`\kappa \ge 2 d(0)`, where :math:`d` is the distance to :math:`\theta^o`; and
  :math:`\lambda' = \lambda (1 - \kappa\delta\Lambda/2) > 0` for steps :math:`\delta`.

The paper has :math:`2 \lVert\theta^o\rVert` for :math:`2 d(0)`: the same for a start at zero. A path starts at the null
model, and then :math:`d(0)` is what the proof uses.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bregpath._typing import Array
from bregpath.theory.curvature import SINGULAR, Restriction
from bregpath.theory.oracle import OracleDynamics
from bregpath.theory.report import Condition

__all__ = ["NEEDED", "Guarantee"]

# How many of the conditions, in their order, each claim needs.
NEEDED = {"no false positive": 3, "l2 error": 5, "right signs": 7}


@dataclass(frozen=True, eq=False)
class Guarantee:
    """The theorem in numbers: constants that were measured, and what follows from them.

    Attributes
    ----------
    n_alpha, s : int
        Number of unpenalised parameters, and of true columns.
    kappa, step : float
        Of the dynamics; a step of 0 is the flow itself.
    convexity, smoothness : float
        Smallest and largest eigenvalue of the Hessian on the support, along the dynamics.
    irr : float
        How far, in units of the threshold, the oracle dynamics pushes a column outside without any noise.
    irr_bound : float
        Largest sum of the sizes of the coefficients with which a column outside is explained by the support: C.
    critical : int
        Position, among the columns outside, of the one that is pushed farthest; -1 where there is none.
    noise : float
        Largest entry of the gradient of the loss at the truth.
    start : float
        Distance from the null model to the oracle estimator: d(0).
    signal, oracle_error : float
        Smallest true coefficient, and largest error of a coefficient of the oracle estimator.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_linear(500, 10, 2, r=0.0, seed=0)
    >>> guarantee = bregpath.theory.diagnose(data).guarantee
    >>> guarantee.tbar == guarantee.eta / (2 * (guarantee.irr_bound + 1) * guarantee.noise)
    True
    """

    n_alpha: int
    s: int
    kappa: float
    step: float
    convexity: float
    smoothness: float
    irr: float
    irr_bound: float
    critical: int
    noise: float
    start: float
    signal: float
    oracle_error: float

    @classmethod
    def measure(cls, restriction: Restriction, truth: Array, dynamics: OracleDynamics, step: float) -> Guarantee:
        """Look at the oracle dynamics of a problem whose true parameters are ``truth``."""
        a, optimum = restriction.n_alpha, dynamics.optimum
        extremes = [restriction.extremes(theta, optimum) for theta in [truth, dynamics.theta[0], *dynamics.stages[0]]]
        push, bound = _push(restriction, truth, dynamics)
        gradient = np.concatenate([restriction.gradient(truth), restriction.gradient_outside(truth)])
        return cls(
            n_alpha=a,
            s=len(truth) - a,
            kappa=dynamics.kappa,
            step=step,
            convexity=min(low for low, _ in extremes),
            smoothness=max(high for _, high in extremes),
            irr=float(np.max(push, initial=0.0)),
            irr_bound=bound,
            critical=int(np.argmax(push)) if len(push) else -1,
            noise=float(np.max(np.abs(gradient))),
            start=float(dynamics.distance[0]),
            signal=float(np.min(np.abs(truth[a:]))),
            oracle_error=float(np.max(np.abs(optimum - truth)[a:])),
        )

    @property
    def is_convex(self) -> bool:
        return self.convexity > SINGULAR * self.smoothness

    @property
    def eta(self) -> float:
        """The largest that the irrepresentable condition allows."""
        return float(np.clip(2 * (1 - self.irr), 0.0, 1.0))

    @property
    def tbar(self) -> float:
        """The time up to which there is no false positive."""
        if not self.is_convex or self.eta == 0.0:
            return 0.0
        return self.eta / (2 * (self.irr_bound + 1) * self.noise) if self.noise > 0 else np.inf

    @property
    def contraction(self) -> float:
        """The convexity that is left to steps of finite length: lambda'."""
        return max(self.convexity * (1 - self.stiffness / 2), 0.0)

    @property
    def stiffness(self) -> float:
        """The length of a step in units of what the curvature of the loss allows: stable below 2."""
        return self.kappa * self.step * self.smoothness if self.step else 0.0

    def error_bound(self, t: float) -> float:
        """Of the Euclidean distance to the truth at a time up to ``tbar``.

        The theorem has 10 for 9 + 1; the one is larger where there are more than 3 s unpenalised parameters.
        """
        root = np.sqrt(self.s)
        return _ratio(9 * root + max(root, np.sqrt(self.s + self.n_alpha) / 2), self.contraction * t)

    def signal_needed(self, t: float) -> float:
        """The smallest coefficient whose sign is sure to be right at a time up to ``tbar``."""
        return _ratio(4 * np.log(self.s) + 9, self.contraction * max(t - 4 * self.step, 0.0))

    def conditions(self, t: float, critical: str) -> tuple[Condition, ...]:
        """All of them, for claims about a time ``t``; ``critical`` is the name of the critical column."""
        needed = self.signal_needed(t)
        longest = _ratio(2.0, self.kappa * self.smoothness)
        return (
            Condition(
                "restricted strong convexity", self.is_convex, self.convexity, ">", 0.0,
                "on the true columns the loss is flat in some direction; take more rows, or drop columns that are "
                "combinations of others.",
            ),
            Condition(
                "irrepresentable condition", self.irr < 1, self.irr, "<", 1.0,
                f"{critical} imitates the true columns: even without noise it is pushed to {self.irr:.3g} times its "
                "threshold." if np.isfinite(self.irr) else "it has no value where the loss is flat.",
            ),
            Condition(
                "irrepresentable bound C", bool(np.isfinite(self.irr_bound)), self.irr_bound, "<", np.inf,
                "it has no value where the loss is flat.",
            ),
            Condition(
                "damping kappa", self.kappa >= 2 * self.start, self.kappa, ">=", 2 * self.start,
                f"kappa is small for the size of the coefficients; take {2 * self.start:.3g} or more.",
            ),
            Condition(
                "step * kappa * Lambda", self.stiffness < 2, self.stiffness, "<", 2.0,
                f"the step is too long for the curvature of the loss; take less than {longest:.3g}.",
            ),
            Condition(
                "oracle near the truth", self.signal >= 2 * self.oracle_error, self.signal, ">=", 2 * self.oracle_error,
                "the noise is so large that even the oracle estimator may lose a sign; more rows, or less noise.",
            ),
            Condition(
                "signal", self.signal >= needed, self.signal, ">=", needed,
                "the smallest true coefficient is below what the theorem resolves in the guaranteed time; more rows, "
                "less noise or less correlation.",
            ),
        )  # fmt: skip


def _push(restriction: Restriction, truth: Array, dynamics: OracleDynamics) -> tuple[Array, float]:
    """How far each column outside is pushed along the oracle dynamics without noise, and the bound C."""
    now, farthest, bound = np.zeros(len(restriction.outside)), np.zeros(len(restriction.outside)), 0.0
    before: Array | None = None
    for theta, move in zip(*dynamics.stages, strict=True):
        weights = restriction.mean_weights(truth, theta)
        if before is None or not np.array_equal(weights, before):  # those of squared loss are always the same
            slopes, before = restriction.regressions(weights), weights
            bound = max(bound, float(np.abs(slopes).sum(axis=1).max(initial=0.0)))
        if np.isinf(bound):
            return np.full_like(now, np.inf), bound
        now += slopes @ move
        farthest = np.maximum(farthest, np.abs(now))
    return farthest, bound


def _ratio(numerator: float, denominator: float) -> float:
    return float(numerator / denominator) if denominator > 0 else np.inf
