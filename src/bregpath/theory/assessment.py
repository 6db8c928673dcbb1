"""`assess`: whether a path could have found the model that was chosen on it, had that been the truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bregpath import _frames
from bregpath._text import aligned
from bregpath._typing import Array, IntArray
from bregpath.path import Path, Point
from bregpath.regression import Regression
from bregpath.theory.curvature import SINGULAR, Restriction
from bregpath.units import Units

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Assessment", "assess"]

COLLINEAR = 100.0  # ratio of eigenvalues from which columns count as nearly collinear
LISTED = 5  # outsiders that are printed


@dataclass(frozen=True, eq=False, repr=False)
class Assessment:
    """How well the columns of a chosen model can be told from all others, and from each other.

    Attributes
    ----------
    t : float
    support : ndarray of shape (s,)
        The columns of the model.
    outside : ndarray of shape (k,)
        All columns that might have entered as well.
    push : ndarray of shape (k,)
        How far the model, had it no noise, pushes each of them towards its threshold: 1 is the threshold itself.
    push_of_any_signs : ndarray of shape (k,)
        The same for the worst signs that the coefficients of the model could have.
    convexity, smoothness : float
        Smallest and largest eigenvalue of the Hessian on the model, in the units of the path.
    names : list of str
        Of all columns.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_linear(200, 20, 3, seed=0)
    >>> path = bregpath.trace_path(data.X, data.y)
    >>> assessment = bregpath.theory.assess(path, 2 * path.t[0], data.X, data.y)
    >>> assessment.is_irrepresentable
    True
    """

    t: float
    support: IntArray
    outside: IntArray
    push: Array
    push_of_any_signs: Array
    convexity: float
    smoothness: float
    names: list[str]

    @property
    def irr(self) -> float:
        """The largest push; below 1 the irrepresentable condition holds for the signs of the model."""
        return float(np.max(self.push, initial=0.0))

    @property
    def irr_of_any_signs(self) -> float:
        """The largest push of any signs: the classical irrepresentable value."""
        return float(np.max(self.push_of_any_signs, initial=0.0))

    @property
    def critical(self) -> int:
        """The column that is pushed farthest; -1 where there is none."""
        return int(self.outside[np.argmax(self.push)]) if len(self.outside) else -1

    @property
    def is_irrepresentable(self) -> bool:
        """Whether no column outside imitates the model."""
        return self.irr < 1

    @property
    def condition_number(self) -> float:
        """Largest over smallest eigenvalue."""
        return self.smoothness / self.convexity if self.convexity > SINGULAR * self.smoothness else np.inf

    @property
    def verdict(self) -> str:
        """What it means, in a sentence or two."""
        if np.isinf(self.condition_number):
            return (
                "The columns of the model depend on each other linearly, so that they cannot be told apart; choose an "
                "earlier t, or drop columns that are copies or sums of others."
            )
        name, size = self.names[self.critical], len(self.support)
        if not len(self.outside):
            text = "No column is left outside the model."
        elif self.irr_of_any_signs < 1:
            text = (
                f"If the {size} columns of the model are the true ones, no other column imitates them, whatever their "
                f"signs: the nearest, {name}, is pushed to {self.irr:.2f} of its threshold. With enough rows the path "
                "finds them alone."
            )
        elif self.is_irrepresentable:
            text = (
                f"If the {size} columns of the model are the true ones, with these signs, no other column imitates "
                f"them: the nearest, {name}, is pushed to {self.irr:.2f} of its threshold. With other signs one could "
                f"be pushed to {self.irr_of_any_signs:.2f}."
            )
        else:
            others = int(np.sum(self.push >= 1)) - 1
            more = f" (and {others} more)" if others else ""
            text = (
                f"{name}{more} imitates the model: if its {size} columns were the true ones, {name} would be pushed to "
                f"{self.irr:.2f} times its threshold without any noise, and enter. More rows do not help; read the "
                "model as one of several that fit alike."
            )
        if self.condition_number > COLLINEAR:
            text += (
                f" Its columns are nearly collinear (condition number {self.condition_number:.3g}): their sum is known "
                "better than each of them."
            )
        return text

    def to_frame(self) -> pd.DataFrame:
        """One row a column outside, those pushed farthest first: name, push, push of any signs (needs pandas)."""
        order = np.argsort(-self.push, kind="stable")
        table = {
            "name": [self.names[j] for j in self.outside[order]],
            "push": self.push[order],
            "push_of_any_signs": self.push_of_any_signs[order],
        }
        return _frames.import_pandas("to_frame()").DataFrame(table)

    def __repr__(self) -> str:
        nearest = np.argsort(-self.push, kind="stable")[:LISTED]
        rows = [("nearest outside", "push", "of any signs")]
        for i in nearest:
            rows.append((self.names[self.outside[i]], f"{self.push[i]:.3f}", f"{self.push_of_any_signs[i]:.3f}"))
        head = f"Model of {len(self.support)} columns at t = {self.t:.4g}"
        span = f"Eigenvalues of its Hessian: {self.convexity:.4g} to {self.smoothness:.4g}."
        return "\n".join([head, "", *aligned(rows, left=range(3)), "", span, self.verdict])


def assess(path: Path, t: float, X: Any, y: Any, *, sample_weight: Any = None, offset: Any = None) -> Assessment:
    r"""Ask whether a path could have found the model at ``t``, had that been the truth.

    With S the columns of the model, intercept included, and H the Hessian of the loss at the model, in the units in
    which the path was traced, a column j outside is pushed by

    .. math:: \lvert H_{jS} H_{SS}^{-1}\, \mathrm{sign}(\beta_S) \rvert

    (thresholds by ``penalty_factor`` in their places). Below 1 for every j the irrepresentable condition holds: without
    noise no other column would enter. The sum of :math:`\lvert H_{jS} H_{SS}^{-1} \rvert` is that of any signs.

    Parameters
    ----------
    path : Path
        With the l1 penalty and one output.
    t : float
        Where the model is read.
    X, y
        The data of the path.
    sample_weight, offset
        As in `bregpath.trace_path`.

    Returns
    -------
    Assessment

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_logistic(400, 20, 3, seed=0)
    >>> path = bregpath.trace_path(data.X, data.y, loss="logistic")
    >>> bregpath.theory.assess(path, 3 * path.t[0], data.X, data.y).support.tolist()
    [0, 1, 2]
    """
    _check(path)
    point, penalty = path.at(t), path.trajectory.penalty
    inside = (point.coef != 0) | penalty.free
    if not np.any(point.coef):
        raise ValueError(f"`t`={point.t:g} is before any column enters: there is no model to assess; choose a later t.")
    study = Regression.read(
        path.encode(X), y, loss=path.loss, penalty=penalty, kappa=path.kappa, standardize=_standardized(path.units),
        fit_intercept=bool(path.intercept.any()), sample_weight=sample_weight, offset=offset,
    )  # fmt: skip
    problem, units, _ = study.on()
    support = np.flatnonzero(inside)
    restriction = Restriction(problem, support)
    weights = restriction.weights(_inside(point, units, restriction))
    outside, slopes = restriction.outside, restriction.regressions(weights)[:, restriction.n_alpha :]
    thresholds = penalty.weights[:, 0]
    allowed = np.isfinite(thresholds[outside])
    outside, slopes = outside[allowed], slopes[allowed] * thresholds[support]
    signed = slopes @ np.sign(point.coef[support]) if np.isfinite(slopes).all() else np.full(len(outside), np.inf)
    low, high = np.linalg.eigvalsh(restriction.hessian(weights))[[0, -1]]
    return Assessment(
        t=point.t,
        support=support,
        outside=outside,
        push=np.abs(penalty.take(outside).allowed(signed[:, None])[:, 0]) / thresholds[outside],
        push_of_any_signs=np.abs(slopes).sum(axis=1) / thresholds[outside],
        convexity=float(low),
        smoothness=float(high),
        names=path.feature_names,
    )


def _check(path: Any) -> None:
    if not isinstance(path, Path):
        raise TypeError(
            f"`path` must be a Path of trace_path, found {type(path).__name__}; of a selection or an estimator take "
            "its path, and for graphs see the stability of their edges."
        )
    if path.average is not None:
        raise ValueError("`path` is a mean over time, which no subgradient belongs to; trace it without `average`.")
    if path.n_outputs != 1:
        raise ValueError(
            f"`path` has {path.n_outputs} outputs, and only differences between them count; assess one class against "
            'the others with loss="logistic".'
        )
    if path.trajectory.penalty.name != "l1":
        raise ValueError(
            f"`path` has the penalty {path.trajectory.penalty.name!r}; only single columns are assessed. Trace it with "
            'penalty="l1", and categorical columns of a frame as indicators of your own (less one level each).'
        )


def _standardized(units: Units) -> bool | str:
    """How the path was traced, as `trace_path` takes it."""
    if units.y_unit != 1.0:
        return True
    return False if np.all(units.scale == 1.0) else "X"


def _inside(point: Point, units: Units, restriction: Restriction) -> Array:
    """The parameters of a model, in the units of a problem."""
    alpha = (point.intercept - np.ravel(units.shift) + units.center @ point.coef) / units.y_unit
    beta = (point.coef * units.scale / units.y_unit)[restriction.columns]
    return np.concatenate([np.ravel(alpha)[: restriction.n_alpha], beta])
