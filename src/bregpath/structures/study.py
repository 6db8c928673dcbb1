"""A regression in which not the coefficients are sparse but a linear map of them (Split LBI)."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from bregpath import _validation
from bregpath._typing import Array, IntArray
from bregpath.flow.stop import StopWhenWorse
from bregpath.losses.split import SplitLoss
from bregpath.path import Path, of_its
from bregpath.penalties import AbstractPenalty, build_penalty
from bregpath.problem import Problem
from bregpath.regression import HeldOut, Regression, without_constants
from bregpath.run import Assembled, TraceOptions, Track
from bregpath.stores.split import IdentityBlock, Metric, SplitStore
from bregpath.structures.matrices import Structure, as_structure
from bregpath.structures.path import Layout, StructuredPath
from bregpath.structures.projection import Projection
from bregpath.study import PenalisedStudy
from bregpath.units import Units

__all__ = ["StructuredRegression", "read_study"]


def read_study(X: Any, y: Any, structure: Any = None, nu: Any = None, **options: Any) -> Any:
    """The regression, with or without a structure, that arguments of `trace_path` describe."""
    if structure is not None:
        return StructuredRegression.read(X, y, structure, nu, **options)
    if nu is not None:
        raise ValueError("`nu` is the slack of a `structure`; pass structure= as well, or leave it out.")
    if X is None:
        raise ValueError('`X` is missing; without it y is a signal, and needs a structure, such as structure="fused".')
    return Regression.read(X, y, **options)


@dataclass(frozen=True, eq=False)
class StructuredRegression(PenalisedStudy):
    r"""A regression with coefficients :math:`\alpha` whose :math:`D\alpha` is near a sparse :math:`\gamma`.

    .. math:: \ell(a + X\alpha) + \frac{\mu}{2\nu} |D\alpha - \gamma|^2

    with :math:`\mu` the mean square of the columns of X (about their means, if there is an intercept): so :math:`\nu`
    has no units but those of D. All columns are scaled by one number, the root of the sum of those squares, because D
    compares coefficients with each other. Replicates differ by the weights of the rows alone.
    """

    data: Regression  # its penalty is that of no structure, and not used
    structure: Structure
    nu: float
    penalty: AbstractPenalty  # of the rows of D
    options: TraceOptions
    is_signal: bool  # every row has a coefficient of its own

    @classmethod
    def read(cls, X: Any, y: Any, structure: Any, nu: Any = None, **options: Any) -> StructuredRegression:
        """Check the arguments of `trace_path`, of which ``options`` are any."""
        wishes = {k: options.pop(k, None) for k in ("groups", "penalty_factor", "lower", "upper")}
        penalty, is_signal = options.pop("penalty", "l1"), X is None
        if is_signal:
            from scipy.sparse import eye_array

            X, options["fit_intercept"] = eye_array(1 if y is None else np.size(y), format="csc"), False
        data = Regression.read(X, y, **options)
        if data.options.average is not None:
            raise ValueError("`average` knows no `structure`; leave one of them out.")
        if data.encoder is not None and data.encoder.has_categories:
            raise ValueError("`X` has categorical columns, which no `structure` relates; encode them as numbers first.")
        if not data.store.has_intercepts:
            raise ValueError("`X` is a store with parameters of its own, which `structure` needs for itself; pass X.")
        if isinstance(data.options.stop, StopWhenWorse):
            raise ValueError("`stop`: StopWhenWorse knows no `structure`; choose t by cross_validate(..., structure=).")
        found = as_structure(structure, data.store.shape[1])
        m, q = found.D.shape[0], data.loss.n_outputs
        return cls(
            data=data,
            structure=found,
            nu=found.nu if nu is None else _validation.check_number("nu", nu),
            penalty=build_penalty(penalty, m, q, **wishes),
            options=data.options,
            is_signal=is_signal,
        )

    # --- of the data -----------------------------------------------------------------------------------------

    w = of_its("data.w")
    kappa = of_its("data.kappa")
    response = of_its("data.response")
    loss = of_its("data.loss")
    encoder = of_its("data.encoder")

    def with_kappa(self, kappa: float) -> StructuredRegression:
        return replace(self, data=self.data.with_kappa(kappa))

    def lacking(self, rows: IntArray) -> str:
        return self.data.lacking(rows)

    # --- the problem -----------------------------------------------------------------------------------------

    def on(self, counts: Array | None = None, copies: bool = False) -> Assembled:
        data, D = self.data, self.structure.D / self.structure.unit
        (n, p), m = data.store.shape, D.shape[0]
        w = data.w if counts is None else counts
        w = w / w.sum()
        scan = data.store.scan(w)
        _validation.check_finite_columns(np.isfinite(scan.mean))
        size = float(np.linalg.norm(scan.deviation if data.fit_intercept else scan.size)) or 1.0
        size = 1.0 if self.is_signal else size  # without rounding
        center = scan.mean if data.fit_intercept else np.zeros(p)
        scale = 1.0 if data.standardize is False else size
        y, offset, shift, y_unit = data.y, data.offset, np.zeros(data.loss.n_outputs), data.unit_of(w)
        if data.fit_intercept:
            y, offset, shift = without_constants(y, offset, data.loss, w)
        if y_unit != 1.0:
            y, offset = y / y_unit, offset / y_unit
        nu = self.nu / self.structure.unit**2
        cost = (size / scale) ** 2 / (p * nu)
        X = IdentityBlock(n) if self.is_signal else data.store.fetch(np.arange(p))
        if center.any() or scale != 1.0:
            X = X.standardized(center, np.full(p, scale))
        # With this unit the intercept is as fast as all else.
        store = SplitStore(X, Metric(D, nu), np.sqrt(cost) if data.fit_intercept else 0.0)
        gamma_unit = scale / self.structure.unit
        problem = Problem(
            store, SplitLoss(data.loss, m), self._limited(gamma_unit / y_unit), y, np.append(w, np.full(m, cost)),
            np.concatenate([offset, np.zeros((m, offset.shape[1]))]), data.kappa, True,
        )  # fmt: skip
        layout = Layout(store, Projection(self.structure.D), data.loss.n_outputs, center, scale, shift)
        return Assembled(problem, Units(np.zeros(m), np.full(m, gamma_unit), y_unit), layout)

    def _limited(self, factor: float) -> AbstractPenalty:
        """The penalty with limits in the units of the path; a little tighter, as those of a `Regression`."""
        if not self.penalty.has_limits:
            return self.penalty
        penalty = deepcopy(self.penalty)
        penalty.lower *= (1 - 1e-15) * factor
        penalty.upper *= (1 - 1e-15) * factor
        return penalty

    # --- its paths -------------------------------------------------------------------------------------------

    def report(self, path: Path, track: Track) -> StructuredPath:
        w, unit, rows = track.problem.w[: len(self.w)], path.units.y_unit, np.arange(len(self.w))
        before = 0.5 * min(path.t[0], path.trajectory.start / unit)
        models = track.layout.projected(*path.read(np.append(before, path.t)))
        held, loss = self.data.measured(rows, *self._columns(models)), self.loss
        y = held.coded / unit if loss.has_units else held.coded
        deviance = np.array([unit**2 * loss.deviance(eta / unit, y, w) for eta in held.eta])
        return StructuredPath(path, track.layout, deviance[1:], float(deviance[0]), partial(self.report, track=track))

    def held_out(self, track: Track, rows: IntArray, times: Array) -> HeldOut:
        alpha, active, split = track.read(times)
        restored = track.units.restore(alpha, active, split)
        models = track.layout.projected(restored[0], active, restored[1])
        return self.data.measured(rows, *self._columns(models))

    @staticmethod
    def _columns(models: tuple[Array, Array]) -> tuple[Array, IntArray, Array]:
        """Intercepts, the columns that coefficients belong to (all of them), and coefficients."""
        return models[0], np.arange(models[1].shape[1]), models[1]
