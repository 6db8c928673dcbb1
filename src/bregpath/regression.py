"""The arguments of a regression path, checked once: of `trace_path`, and of all that traces it on other rows."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from bregpath import _frames, _kernels, _validation
from bregpath._known_to_core import is_known_as
from bregpath._sums import dot
from bregpath._typing import Array, IntArray
from bregpath.flow.gram import CentralMoments
from bregpath.flow.moments import Left, Moments, moments_at_once, moments_of_most
from bregpath.losses import AbstractLoss, as_loss
from bregpath.penalties import AbstractPenalty, build_penalty
from bregpath.problem import Problem
from bregpath.row_moments import RowMoments
from bregpath.run import Assembled, TraceOptions, Track
from bregpath.stores import AbstractStore, Scan, StandardizedStore, as_store
from bregpath.study import PenalisedStudy, Source
from bregpath.units import Units

__all__ = ["HeldOut", "Regression", "without_constants"]

# Beyond it a coefficient is a difference of so few digits of z that rounding decides how far it has moved.
LARGEST_KAPPA = 1e7
TRACING = tuple(field.name for field in fields(TraceOptions))


class HeldOut(NamedTuple):
    """Some rows, with their linear predictors at some times: what a score is computed from.

    Where only the deviance is asked for, and is known to be a squared error, there are no predictors.
    """

    loss: AbstractLoss
    unit: float  # of y, in which losses with units count
    y: Array  # as the user gave it
    coded: Array  # as the loss takes it
    w: Array  # how much each row counts
    weighted: bool  # whether the user gave weights
    eta: Array  # (T, n) or (T, n, q)
    squared_error: Array | None = None  # (T,)


@dataclass(frozen=True, eq=False)
class Regression(PenalisedStudy):
    """A regression of y on the columns of a store; see `AbstractStudy`.

    ``y`` is as the loss takes it, ``response`` as the user gave it; data are in the user's units.
    """

    store: AbstractStore
    y: Array
    response: Array
    w: Array
    weighted: bool
    offset: Array
    loss: AbstractLoss
    penalty: AbstractPenalty
    kappa: float
    fit_intercept: bool
    standardize: bool | str
    options: TraceOptions
    encoder: _frames.ColumnEncoder | None = None

    def __post_init__(self) -> None:
        if self.standardize is True and LARGEST_KAPPA < self.kappa < np.inf:
            raise ValueError(
                f"`kappa`={self.kappa:g} is beyond {LARGEST_KAPPA:g}, where rounding decides how far coefficients have "
                "moved; use `kappa=np.inf`, the limit (inverse scale space)."
            )

    @classmethod
    def read(cls, X: Any, y: Any, **options: Any) -> Regression:
        """Check the arguments of `trace_path`, of which ``options`` are any."""
        tracing = {name: options.pop(name) for name in TRACING if name in options}
        return cls._read(X, y, TraceOptions(**tracing), **options)

    @classmethod
    def _read(
        cls, X: Any, y: Any, options: TraceOptions, *, loss: Any = "gaussian", penalty: Any = "l1", groups: Any = None,
        penalty_factor: Any = None, lower: Any = None, upper: Any = None, kappa: float = 10.0,
        sample_weight: Any = None, offset: Any = None, fit_intercept: bool = True, standardize: bool | str = True,
        feature_names: Any = None,
    ) -> Regression:  # fmt: skip
        X, encoder = _encoded(X, feature_names)
        if encoder is not None and encoder.has_categories and groups is None:
            groups = encoder.groups
            penalty = "group" if penalty == "l1" else penalty
        loss = as_loss(loss)
        store = as_store(X, passes_over_rows=loss.name != "gaussian")  # which has a Gram matrix instead
        n, p = store.shape
        if feature_names is not None:
            encoder = _frames.ColumnEncoder.of_numbers(feature_names, p)
        if y is None:
            raise ValueError("`y` is missing; a regression path needs a response.")
        y = _frames.series_to_numpy(y)
        if len(y) != n:
            raise ValueError(f"`X` and `y` differ in length: {n} rows and {len(y)} responses.")
        counts = _validation.check_counts(sample_weight, n)
        coded = loss.encode(y, counts / counts.sum())
        if not (standardize is True or standardize is False or standardize == "X"):
            raise ValueError(f'`standardize` must be True, "X" or False, found {standardize!r}.')
        if isinstance(kappa, str) or np.ndim(kappa) > 0:
            raise TypeError(
                f"`kappa` must be a number, found {kappa!r}; cross_validate() and the estimators choose among several."
            )
        options, kappa = options.with_kappa(kappa)
        # Copies: a path goes on, and finds its deviance, when its user may long have changed these arrays.
        return cls(
            store=store,
            y=np.array(coded),
            response=y,
            w=counts,
            weighted=sample_weight is not None,
            offset=np.array(_validation.check_offset(offset, n, loss.n_outputs)),
            loss=loss,
            penalty=build_penalty(
                penalty, p, loss.n_outputs, groups=groups, penalty_factor=penalty_factor, lower=lower, upper=upper
            ),
            kappa=kappa,
            fit_intercept=bool(fit_intercept),
            standardize=standardize,
            options=options,
            encoder=encoder,
        )

    @property
    def nbytes(self) -> float:
        return self.store.nbytes

    def _on_rows(self, rows: IntArray, copies: bool, whole: Track | None) -> Assembled:
        counts = np.bincount(rows, minlength=len(self.w))
        is_most = copies and counts.max() <= 1 and 2 * len(rows) >= len(self.pool)
        if whole is None or whole.gram is None or not is_most:
            return self.on(counts * self.w, copies)
        return self.on(counts * self.w, whole=whole)

    def on(self, counts: Array | None = None, copies: bool = False, whole: Track | None = None) -> Assembled:
        """See `AbstractStudy.on`; of most rows moments follow from those of the ``whole``."""
        store, y, offset, counts = self.store, self.y, self.offset, self.w if counts is None else counts
        if copies and not counts.all():
            rows = np.flatnonzero(counts)
            store, y, offset, counts = store.rows(rows), y[rows], offset[rows], counts[rows]
        w, loss = counts / counts.sum(), self.loss
        y_unit, shift = self._unit_of(y, offset, w), np.zeros(loss.n_outputs)
        if self.fit_intercept and store.has_intercepts:
            y, offset, shift = without_constants(y, offset, loss, w)
        if y_unit != 1.0:
            y, offset = y / y_unit, offset / y_unit
        known = self._moments(store, y, w, offset, y_unit, whole)
        scan = (_kernels.columns_of(store) or store).scan(w) if known is None else known.scan
        inside, scan, penalty, center, scale = _standardize(
            store, scan, self.penalty, self.fit_intercept, self.standardize
        )
        _validation.check_scales(scale, y_unit)
        if penalty.has_limits:
            # A little tighter, so that rounding on the way back to the user's units cannot break them.
            factor = (1 - 1e-15) * (scale / y_unit)[:, None]
            penalty = deepcopy(penalty) if penalty is self.penalty else penalty
            penalty.lower *= factor
            penalty.upper *= factor
        if known is not None:
            matrix, target = known.scaled(scale)
            moments, slope = Moments(matrix=matrix), target[:, None]
        else:
            moments, slope = Moments() if whole is None else Moments(whole.gram, whole.units.scale / scale), None
        problem = Problem(inside, loss, penalty, y, w, offset, self.kappa, self.fit_intercept, scan, moments, slope)
        return Assembled(problem, Units(center, scale, y_unit, shift))

    def _moments(
        self, store: AbstractStore, y: Array, w: Array, offset: Array, y_unit: float, whole: Track | None
    ) -> CentralMoments | Left | None:
        """Of all columns as the user knows them, where a path works with nothing else and begins with their products
        with ``y``.
        """
        is_squared = is_known_as(self.loss, "gaussian") and self.options.step == "adaptive"
        is_plain = self.fit_intercept and not offset.any() and not self.penalty.free.any()
        if not (is_squared and is_plain):
            return None
        if whole is not None:
            assert whole.gram is not None  # _on_rows() has seen to it
            left, units = moments_of_most(whole.gram, w), whole.units
            return left and left.restored(units.center, units.scale, units.y_unit / y_unit)
        return moments_at_once(store, w, y - dot(w, y)) if w.all() else None

    def _unit_of(self, y: Array, offset: Array, w: Array) -> float:
        """The unit of y in which a path is traced."""
        if not self.loss.has_units:
            return 1.0
        unit = _validation.check_unit(self.loss.unit(y - offset[:, 0], w))
        return unit if self.standardize is True else 1.0

    def unit_of(self, w: Array) -> float:
        """That of a path on all rows with some weights, which sum to one."""
        return self._unit_of(self.y, self.offset, w)

    @cached_property
    def unit(self) -> float:
        """That of the path on all rows."""
        return self.unit_of(self.w / self.w.sum())

    def lacking(self, rows: IntArray) -> str:
        if self.loss.classes is None:
            return self.loss.lacking(self.y[rows], self.w[rows])
        missing = np.setdiff1d(self.y[self.pool], self.y[rows])
        if not len(missing):
            return ""
        label = self.response[self.y == missing[0]][0]
        return f"no row of class {label.item() if isinstance(label, np.generic) else label!r}"

    def held_out(self, track: Track, rows: IntArray, times: Array) -> HeldOut:
        """Predictors are one product with the columns that were ever active."""
        return self.measured(rows, *track.models(times))

    def reader(self, rows: IntArray, source: Source | None = None) -> Callable[[Track, Array], HeldOut]:
        measure = self._measure(rows)
        if source is None or not is_known_as(self.loss, "gaussian") or not RowMoments.pays(self.store, rows):
            return lambda track, times: measure(*track.models(times))
        known = self._known(rows)
        moments = source.beside(lambda: RowMoments(self.store, rows, known.coded - self.offset[rows, 0], known.w))

        def read(track: Track, times: Array) -> HeldOut:
            models = intercept, columns, coef = track.models(times)
            error = moments.squared_error(intercept[:, 0], columns, coef[:, :, 0], track.units.center)
            if error is None:
                return measure(*models)
            return known._replace(eta=np.empty((len(times), 0)), squared_error=error)

        return read

    def measured(self, rows: IntArray, intercept: Array, columns: IntArray, coef: Array) -> HeldOut:
        """Some rows, with their predictors by models (T, q) and (T, E, q) on some columns."""
        return self._measure(rows)(intercept, columns, coef)

    def _measure(self, rows: IntArray) -> Callable[[Array, IntArray, Array], HeldOut]:
        """`measured` of some rows, asked again and again."""
        predict, offset = self.store.reader(rows), self.offset[rows]
        has_offset = offset.any()
        known = self._known(rows)

        def measure(intercept: Array, columns: IntArray, coef: Array) -> HeldOut:
            T, E, q = coef.shape
            side_by_side = coef.transpose(1, 0, 2).reshape(E, T * q)
            eta = predict(side_by_side, columns).reshape(len(rows), T, q).transpose(1, 0, 2)
            eta = np.add(eta, intercept[:, None], order="C")  # one model after the other, as scores read them
            eta = eta + offset if has_offset else eta
            return known._replace(eta=eta[:, :, 0] if q == 1 else eta)

        return measure

    def _known(self, rows: IntArray) -> HeldOut:
        """What is known of some rows without a model."""
        nothing = np.empty((0, len(rows)))
        return HeldOut(
            self.loss, self.unit, self.response[rows], self.y[rows], self.w[rows], self.weighted, nothing
        )


def _encoded(X: Any, feature_names: Any) -> tuple[Any, _frames.ColumnEncoder | None]:
    """A data frame as an array, and how it became one; anything else as it is."""
    if not _frames.is_frame(X):
        return X, None
    if feature_names is not None:
        raise ValueError("`feature_names` are for arrays; `X` is a data frame, rename its columns instead.")
    encoder = _frames.ColumnEncoder.from_frame(X)
    X = encoder.encode(X)
    n_labels = {spec.name: len(spec.levels) for spec in encoder.columns if spec.levels is not None}
    remedy = "Drop identifiers, and convert numbers and dates that are text."
    _validation.tell_unrepeated(n_labels, len(X), remedy, stacklevel=6)
    return X, encoder


def without_constants(y: Array, offset: Array, loss: AbstractLoss, w: Array) -> tuple[Array, Array, Array]:
    """``y`` and offset without what an intercept absorbs (next to which all else would round away), and that."""
    shift = np.zeros(loss.n_outputs)
    if offset.any():
        level = loss.offset_level(offset, w)
        offset, shift = offset - level, shift - level
    if vars(type(loss)).get("is_location", False):  # of this very class: a subclass may have changed the formulas
        counted = y[w > 0]
        varies = (counted != counted[0]).any()
        level = loss.null(y, w) if varies else counted[:1]  # a constant y leaves nothing, not rounding
        y, shift = y - level[0], shift + level
    return y, offset, shift


def _standardize(
    base: AbstractStore, scan: Scan, penalty: AbstractPenalty, fit_intercept: bool, standardize: bool | str
) -> tuple[AbstractStore, Scan, AbstractPenalty, Array, Array]:
    """Centre and scale columns implicitly, and exclude those that are constant; centers and scales come last."""
    mean, deviation = scan.mean, scan.deviation
    _validation.check_finite_columns(np.isfinite(mean))
    fit_intercept = fit_intercept and base.has_intercepts
    is_still = deviation <= 1e-13 * np.abs(mean)  # constant up to the rounding of its mean
    constant = is_still if fit_intercept else (deviation == 0) & (mean == 0)
    if constant.any():
        whole, penalty = penalty.close(~constant), deepcopy(penalty)
        penalty.weights[constant & ~whole] = np.inf  # a group stays as long as one of its columns varies
        penalty.hold_at_zero(constant & whole)
    if standardize is False:
        _validation.check_sizes(scan.size)
        # A constant inside a group is as good as zero, since the intercept takes its place.
        center, scale = np.where(constant, mean, 0.0), np.ones_like(mean)
        if not constant.any():
            return base, scan, penalty, center, scale
    elif fit_intercept:
        center, scale = mean, np.where(is_still, 1.0, deviation)
    else:  # a constant column takes the place of the intercept, and is measured by what it is
        center, scale = np.zeros_like(mean), np.where(is_still, np.where(mean != 0, np.abs(mean), 1.0), deviation)
    return StandardizedStore(base, center, scale), scan.standardized(center, scale), penalty, center, scale
