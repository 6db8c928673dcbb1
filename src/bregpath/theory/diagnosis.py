"""`diagnose`: the conditions of the consistency theorem on a simulation, and what it promises against what happens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bregpath import _frames
from bregpath._text import aligned
from bregpath._typing import Array, IntArray
from bregpath.flow.stop import Progress
from bregpath.path import Path, Point
from bregpath.run import TraceOptions
from bregpath.theory.curvature import Restriction
from bregpath.theory.guarantee import NEEDED, Guarantee
from bregpath.theory.oracle import OracleDynamics, oracle_estimator
from bregpath.theory.report import Condition, Finding
from bregpath.theory.signs import sign_intervals
from bregpath.theory.truth import Truth

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Diagnosis", "diagnose"]

SETTLED = 0.01  # of the smallest coefficient: a distance to the oracle estimator at which its dynamics may be left
MAX_RATIO = 1000.0  # times the beginning, at which it is left in any case
BEYOND = 5.0  # times the guaranteed time, to which a first false positive is looked for
TINY = 1e-12
RISE = 1e-8  # of the potential: what counts as a rise


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis:
    """What the consistency theorem says of a simulation, and what happens.

    Attributes
    ----------
    guarantee : Guarantee
        The constants of the theorem: ``convexity``, ``smoothness``, ``irr``, ``irr_bound``, ``eta``, ``noise``, ...
    truth, oracle, model : Point
        The parameters that generated the data, the oracle estimator, and the model of the path at ``tbar`` (where that
        is very late, at a thousand times the first entry).
    dynamics : OracleDynamics
        The oracle dynamics, knot by knot: ``t``, ``theta``, ``dual``, ``distance``, ``potential``.
    path : Path
        The path itself, until after ``tbar`` it has more columns than are true.
    names : list of str
        Of the columns, or of the pairs of nodes.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_linear(2000, 20, 3, r=0.0, seed=0)
    >>> diagnosis = bregpath.theory.diagnose(data)
    >>> diagnosis.conditions[1].name, diagnosis.conditions[1].held
    ('irrepresentable condition', True)
    >>> diagnosis.first_false_positive > diagnosis.tbar
    True
    """

    guarantee: Guarantee
    truth: Point
    oracle: Point
    model: Point
    dynamics: OracleDynamics
    path: Path
    names: list[str]
    title: str

    # --- what is guaranteed ------------------------------------------------------------------------------------------

    @property
    def tbar(self) -> float:
        """The time before which no false positive is guaranteed; 0 where the conditions for that fail."""
        return self.guarantee.tbar

    @property
    def critical(self) -> int:
        """The column outside the support that the oracle dynamics pushes farthest; -1 where there is none."""
        return int(self._outside[self.guarantee.critical]) if len(self._outside) else -1

    @property
    def error_bound(self) -> float:
        """What the theorem allows for `error`."""
        return self.guarantee.error_bound(self.model.t)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Those of the theorem, one by one: name, whether it held, and its numbers."""
        return self.guarantee.conditions(self.model.t, self.names[self.critical])

    @property
    def failed(self) -> tuple[Condition, ...]:
        """The conditions that do not hold."""
        return tuple(condition for condition in self.conditions if not condition.held)

    @property
    def holds(self) -> bool:
        """Whether all conditions do."""
        return not self.failed

    # --- what is seen ------------------------------------------------------------------------------------------------

    @cached_property
    def _outside(self) -> IntArray:
        return np.flatnonzero(self.truth.coef == 0)

    @property
    def first_false_positive(self) -> float:
        """Time at which a column outside the support first enters; inf if none does by the end of the path."""
        return float(np.min(self.path.entry_times[self._outside], initial=np.inf))

    @property
    def error(self) -> float:
        """Euclidean distance of the model at ``tbar`` to the truth."""
        intercept, coef = (np.ravel(a - b) for a, b in zip(self.model[1:], self.truth[1:], strict=True))
        return float(np.linalg.norm(np.concatenate([intercept, coef])))

    @cached_property
    def signs(self) -> Array:
        """The times (k, 2) during which the path has exactly the right signs; see `sign_intervals`."""
        return sign_intervals(self.path, self.truth.coef)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is claimed, whether it is guaranteed, and what was seen."""
        first, t, signs = self.first_false_positive, self.model.t, np.sign(self.truth.coef)
        seen, when = f"none by t = {self.path.t[-1]:.4g}", f"at t = {t:.4g}"
        if np.isfinite(first):
            seen = f"{self.names[self._outside[np.argmin(self.path.entry_times[self._outside])]]} at t = {first:.4g}"
        spans = ", ".join(f"{begin:.4g} to {end:.4g}" for begin, end in self.signs)
        spans = f"from t = {spans}" if spans else "never"
        none, limit, error = f"none before t = {t:.4g}", f"at most {self.error_bound:.4g} {when}", f"{self.error:.4g}"
        if not t > 0:
            none = limit = when = error = "-"
        rows = {
            "no false positive": (none, first > t, seen),
            "l2 error": (limit, self.error <= self.error_bound, error),
            "right signs": (when, np.array_equal(np.sign(self.model.coef), signs), spans),
        }
        held = [condition.held for condition in self.conditions]
        return tuple(Finding(claim, all(held[: NEEDED[claim]]), *row) for claim, row in rows.items())

    @property
    def contradictions(self) -> tuple[Finding, ...]:
        """What is guaranteed and was not seen: nothing, if theory and code are right."""
        return tuple(finding for finding in self.findings if finding.contradicts)

    @property
    def potential_rise(self) -> float:
        """The largest rise of the potential between two knots, relative to its start."""
        potential = self.dynamics.potential
        return float(np.max(np.diff(potential), initial=0.0) / potential[0])

    @property
    def potential_falls(self) -> bool:
        """Whether the potential never rises along the oracle dynamics, up to rounding and the error of the steps."""
        return self.potential_rise <= RISE

    def to_frame(self) -> pd.DataFrame:
        """One row a condition: name, held, value, relation, limit (needs pandas)."""
        columns = ("name", "held", "value", "relation", "limit")
        return _frames.import_pandas("to_frame()").DataFrame(
            {name: [getattr(condition, name) for condition in self.conditions] for name in columns}
        )

    def __repr__(self) -> str:
        never = "never rises" if self.potential_falls else f"rises by {self.potential_rise:.2g} of its start"
        advice = [f"{c.name}: {c.remedy}" for c in self.failed] or ["All conditions hold."]
        return "\n".join([
            self.title,
            "",
            *aligned([("condition", "value", "needed", "held"), *(c.line for c in self.conditions)], left=range(4)),
            "",
            *aligned([("claim", "guaranteed", "predicted", "seen"), *(f.line for f in self.findings)], left=range(4)),
            "",
            f"The potential of the oracle dynamics {never}.",
            *advice,
        ])  # fmt: skip


def diagnose(
    simulation: Any, *, loss: Any = None, kappa: float = 10.0, step: float | str = "adaptive", tol: float = 1e-4
) -> Diagnosis:
    r"""Check the conditions of the consistency theorem on data with a known truth, and what it promises.

    With truth :math:`\theta^*`, support :math:`S` and oracle estimator :math:`\theta^o`, the theorem (Huang & Yao,
    AISTATS 2018) says that no column outside :math:`S` enters before

    .. math:: \bar t = \frac{\eta}{2 (C + 1) \lVert \nabla\ell(\theta^*) \rVert_\infty},

    bounds the error there, and, where the signal is strong enough, that all signs are right. Data are taken as they are
    given (``standardize=False``).

    Parameters
    ----------
    simulation : Simulation or GraphSimulation
        Of a linear, logistic or Poisson model, or of an Ising model.
    loss : str or object, optional
        By default that of the model; "composite" or "mpf" for an Ising model.
    kappa : float, default 10
        ``inf`` is inverse scale space.
    step : "adaptive" or float, default "adaptive"
        Adaptive steps follow the flow itself, to which the theorem applies with a step of zero.
    tol : float, default 1e-4
        Error of adaptive steps.

    Returns
    -------
    Diagnosis

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_logistic(4000, 20, 2, r=0.0, seed=0)
    >>> diagnosis = bregpath.theory.diagnose(data, kappa=20)
    >>> diagnosis.contradictions
    ()
    """
    options, kappa = TraceOptions(step=step, tol=tol, saturation=None).with_kappa(kappa)
    truth = Truth.of(simulation, loss, kappa)
    delta = 0.0 if isinstance(options.step, str) else float(options.step)
    restriction = Restriction(truth.problem, truth.support)
    dynamics = _oracle_dynamics(truth, restriction, options, delta)
    guarantee = Guarantee.measure(restriction, truth.theta, dynamics, delta)
    t = min(guarantee.tbar, MAX_RATIO * float(dynamics.t[1]))
    path = _observe(truth, options, t, max(BEYOND * t, dynamics.t[-1]))
    return Diagnosis(
        guarantee=guarantee,
        truth=truth.model(truth.theta),
        oracle=truth.model(dynamics.optimum),
        model=path.at(t) if t > 0 else path.at(TINY)._replace(t=0.0),
        dynamics=dynamics,
        path=path,
        names=truth.names,
        title=f"{truth.title}, kappa = {path.kappa:g}, {f'steps of {delta:g}' if delta else 'adaptive steps'}",
    )


def _oracle_dynamics(truth: Truth, restriction: Restriction, options: TraceOptions, delta: float) -> OracleDynamics:
    """The flow on the true support, until it is as near to the oracle estimator as the theory says it will be."""
    optimum = oracle_estimator(truth)
    convexity, _ = restriction.extremes(truth.theta, optimum)
    smallest = np.min(np.abs(optimum[restriction.n_alpha :]))
    # The time of convergence, with d(0) < kappa: within the window of the path where the loss is flat.
    settled = -np.log(SETTLED) / truth.problem.kappa + (2 * np.log(len(truth.support)) + 5) / max(smallest, TINY)
    until = settled / max(convexity, TINY) + 4 * delta
    path = truth.trace(replace(options, t_ratio=MAX_RATIO, stop=until), among=truth.support)
    return OracleDynamics.along(path, restriction, optimum, fixed=delta > 0)


def _observe(truth: Truth, options: TraceOptions, t: float, end: float) -> Path:
    """The path itself, to an end, or until after ``t`` it has more columns than are true."""
    s = len(truth.support)

    def has_erred(progress: Progress) -> bool:
        return progress.t > t and progress.n_active > s

    return truth.trace(replace(options, t=[end], stop=has_erred))
