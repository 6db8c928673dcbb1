"""Fewer variables still: a chosen model without those that it can do without."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from bregpath import _validation
from bregpath._records import changed
from bregpath._typing import Array, IntArray
from bregpath.losses.tilted import TiltedLoss
from bregpath.path import Path
from bregpath.point import Point
from bregpath.problem import Problem
from bregpath.regression import Regression
from bregpath.selection.curves import aggregate, choose, curve_of
from bregpath.selection.damped import DampedFit
from bregpath.selection.derived import AbstractDerived
from bregpath.selection.scores import Scorer
from bregpath.units import Units

if TYPE_CHECKING:
    from bregpath.selection.blending import Blend
    from bregpath.selection.result import Selection

__all__ = ["Pruned", "project", "prune"]

MOST = 60  # variables to begin with: of larger models, those with the largest effects
DROPPED = 0.1  # share of the variables that is left out before the others are fitted again
RIDGES = (1e-4, 1e-3, 1e-2, 1e-1)  # in units of the variance of a column
TOL = 1e-10  # of the objective

Small = tuple[Array, IntArray, Array]  # intercepts (q,), columns (k,) and their coefficients (k, q)
Model = tuple[Array, Array]  # intercepts (q,), coefficients (p, q)


@dataclass(frozen=True, eq=False, repr=False)
class Pruned(AbstractDerived):
    """A chosen model, and what is left of it as variables are taken away; see `Selection.prune`.

    Attributes
    ----------
    selection : Selection
        Whose model is pruned.
    size : int
        Number of variables that are kept.
    sizes : ndarray of shape (m,)
        All that were tried, in decreasing order.
    mean, se : ndarray of shape (m,)
        Mean score of the held-out rows, by size, and its standard error.
    fold_scores : ndarray of shape (n_folds, m)
    ridge : float
        How much coefficients are damped.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_logistic(300, 40, 4, seed=1)
    >>> pruned = bregpath.cross_validate(data.X, data.y, loss="logistic").prune()
    >>> pruned.support.tolist(), pruned.predict(data.X).shape
    ([0, 1, 2, 3], (300,))
    """

    selection: Selection
    size: int
    sizes: IntArray
    mean: Array
    se: Array
    fold_scores: Array
    ridge: float
    _models: tuple[Small, ...]

    @property
    def model(self) -> Point:
        """The model with the variables that are kept."""
        return self.at(self.size)

    @property
    def support(self) -> IntArray:
        """Its columns, those that are never penalised among them."""
        return np.sort(self._models[self._place(self.size)][1])

    def at(self, size: int) -> Point:
        """The model with so many variables, one of `sizes`."""
        intercept, columns, values = self._models[self._place(size)]
        coef = np.zeros((self.selection.path.n_features, len(intercept)))
        coef[columns] = values
        return self._point(self.selection.t, intercept, coef)

    def _place(self, size: int) -> int:
        found = np.flatnonzero(self.sizes == size)
        if not len(found):
            raise ValueError(f"`size` must be one of {self.sizes.tolist()}, found {size!r}.")
        return int(found[0])

    def __repr__(self) -> str:
        table, i, measure = self.model.table, self._place(self.size), self.selection.measure
        assert table is not None
        head = f"Pruned from {self.sizes[0]} to {self.size} variables, ridge {self.ridge:g}: "
        head += f"{measure} {self.mean[i] + 0.0:.4g} (se {self.se[i]:.4g}), {self.mean[0] + 0.0:.4g} with all of them"
        return "\n".join([head, *table.lines()])


def prune(selection: Selection, margin: float) -> Pruned:
    """What `Selection.prune` does."""
    folds, scorer = _check(selection)
    begun = [selection.coef, *selection.fold_coef()]
    return _prune(selection, folds, scorer, [None] * len(begun), begun, margin)


def project(blend: Blend, margin: float) -> Pruned:
    """What `Blend.prune` does."""
    folds, scorer = _check(blend.selection)
    models = [(blend._intercept, blend._coef), *blend.fold_models()]
    return _prune(blend.selection, folds, scorer, models, [coef for _, coef in models], margin)


def _prune(
    selection: Selection, folds: Any, scorer: Scorer, targets: Sequence[Model | None], begun: Sequence[Array],
    margin: float,
) -> Pruned:  # fmt: skip
    """Eliminate variables on all rows and on those of each fold; what is left is fitted to a target or the response."""
    margin = 0.0 if margin == 0 else _validation.check_number("margin", margin)
    study = folds[0].study
    samples = [None, *(fold.train for fold in folds)]
    whole, *pruners = (_Pruner(study, *one) for one in zip(samples, begun, targets, strict=True))
    sizes = whole.sizes()
    weights, sign = selection.fold_weights, -1.0 if scorer.larger_is_better else 1.0
    assert weights is not None

    def scores(ridge: float, some: IntArray) -> Array:
        return np.array(
            [_score(study, fold.test, pruner.models(ridge, some), scorer)
             for fold, pruner in zip(folds, pruners, strict=True)]
        )  # fmt: skip

    # How much to damp is told by the whole model: a ridge for every size would be chosen by luck.
    of_ridges = np.concatenate([scores(ridge, sizes[:1]) for ridge in RIDGES], axis=1)
    ridge = RIDGES[int(curve_of(sign * of_ridges, weights).argmin())]
    by_fold = scores(ridge, sizes)
    mean, se = aggregate(by_fold, weights)
    _, kept = choose(sizes, mean, se, larger_is_better=scorer.larger_is_better, folds=(by_fold, weights), margin=margin)
    models = tuple(whole.models(ridge, sizes))
    return Pruned(selection, int(sizes[kept]), sizes, mean, se, by_fold, ridge, models)


def _check(selection: Selection) -> tuple[Any, Scorer]:
    """The folds and the measure of a selection that can be pruned."""
    rows = selection._rows
    if not selection.fold_paths or rows is None or not rows.has_data:
        raise ValueError(
            "A selection without folds, or one that was unpickled, has no rows to prune by; call cross_validate()."
        )
    folds = rows.folds
    study = folds[0].study
    if not isinstance(study, Regression) or not isinstance(selection.path, Path):
        raise TypeError("Only models whose variables are columns can be pruned: no graphs, and no `structure`.")
    if study.penalty.has_limits:
        raise ValueError("Models with limits (`lower`, `upper`) cannot be pruned: what is fitted again knows none.")
    return folds, next(scorer for scorer in folds[0].scorers if scorer.name == selection.measure)


def _score(study: Regression, rows: IntArray, models: list[Small], scorer: Scorer) -> Array:
    """Scores of models on some rows."""
    columns = np.unique(np.concatenate([model[1] for model in models]))
    coef = np.zeros((len(models), len(columns), study.loss.n_outputs))
    for i, (_, active, values) in enumerate(models):
        coef[i, np.searchsorted(columns, active)] = values
    return scorer.score(study.measured(rows, np.array([model[0] for model in models]), columns, coef))


def _aimed_at(problem: Problem, units: Units, intercept: Array, coef: Array) -> Problem:
    """The problem whose best model is this one."""
    columns = np.flatnonzero(coef.any(axis=1))
    alpha, beta = units.inside(intercept, columns, coef[columns])
    eta = problem.predictor(problem.store.fetch(columns), alpha, beta)
    tilt = problem.residual(eta)
    return changed(problem, loss=TiltedLoss(problem.loss, tilt[:, 0] if tilt.shape[1] == 1 else tilt))


class _Pruner:
    """Models of fewer and fewer variables on some rows (None: all of them), beginning with those of one model.

    They are fitted to the response, or to what a ``target`` predicts.
    """

    problem: Problem
    units: Units

    def __init__(self, study: Regression, rows: IntArray | None, coef: Array, target: Model | None) -> None:
        counts = study.w if rows is None else np.bincount(rows, minlength=len(study.w)) * study.w
        self.problem, self.units, _ = study.on(counts, copies=rows is not None)
        if target is not None:
            self.problem = _aimed_at(self.problem, self.units, *target)
        effects = np.linalg.norm(coef.reshape(len(coef), -1), axis=1) * self.units.scale
        free, variables = self.problem.penalty.free, self.problem.penalty.variables
        # Variables are columns, or groups of them; those that are never penalised stay.
        strength = np.bincount(variables, np.where(free, 0.0, effects**2))
        chosen = np.argsort(-strength, kind="stable")[: min(MOST, np.count_nonzero(strength))]
        self.columns = np.flatnonzero((free | np.isin(variables, chosen)) & (effects > 0))
        self.variables = np.where(free, -1, variables)[self.columns]
        self.n_free = len(np.unique(variables[free & (effects > 0)]))

    def sizes(self) -> IntArray:
        """Numbers of variables, in decreasing order."""
        most = len(np.unique(self.variables[self.variables >= 0]))
        fewer = accumulate(range(most), lambda size, _: max(0, size - max(1, int(DROPPED * size))), initial=most)
        return np.unique(list(fewer))[::-1] + self.n_free

    def models(self, ridge: float, sizes: IntArray) -> list[Small]:
        """Those with so many variables; a model that never had as many is taken whole."""
        return list(self._eliminate(ridge, sizes))

    def _eliminate(self, ridge: float, sizes: IntArray) -> Iterator[Small]:
        problem, columns, variables = self.problem, self.columns, self.variables
        inside = problem.store.fetch(columns).matvec(np.eye(len(columns)))
        has_intercept = problem.fit_intercept
        variance = problem.w @ (inside - problem.w @ inside) ** 2
        weights = np.where(variables < 0, 0.0, ridge * variance)
        if has_intercept:
            inside, weights = np.column_stack([np.ones(len(inside)), inside]), np.append(0.0, weights)
        first = int(has_intercept)
        fit = DampedFit(problem, inside, weights)
        fit.optimise(TOL)
        for size in sizes:
            left = np.unique(variables[variables >= 0])
            for _ in range(len(left) + self.n_free - size):
                places = [first + np.flatnonzero(variables == one) for one in left]
                least = min(range(len(left)), key=lambda i: fit.importance(places[i]))
                fit.drop(places[least])
                kept = variables != left[least]
                columns, variables, left = columns[kept], variables[kept], np.delete(left, least)
            fit.optimise(TOL)
            parameters = fit.by_column()
            alpha = parameters[0] if has_intercept else np.zeros(problem.n_alpha)
            intercept, coef = self.units.restore(alpha, columns, parameters[first:])
            yield intercept + 0.0, columns, coef + 0.0
