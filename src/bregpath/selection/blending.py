"""The best predictions: models of several kappas and means over time, averaged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import minimize

from bregpath._text import aligned
from bregpath._typing import Array
from bregpath.flow.mean import AVERAGES
from bregpath.path import Path
from bregpath.point import Point
from bregpath.regression import HeldOut, Regression
from bregpath.selection.curves import aggregate, curve_of, is_clearly_better
from bregpath.selection.derived import AbstractDerived
from bregpath.selection.fold_curves import FoldCurves

if TYPE_CHECKING:
    from bregpath.run import Track
    from bregpath.selection.pruning import Pruned
    from bregpath.selection.result import Selection

__all__ = ["Blend", "BlendPart", "blend"]

NEGLIGIBLE = 1e-3  # weights below are none
TOL = 1e-10  # of the deviance, relative to how much single models differ


class BlendPart(NamedTuple):
    """One of the models that are averaged: a path, read as a mean over time, at one time; or the null model, at 0."""

    kappa: float
    average: str | None
    t: float
    weight: float
    score: float  # of the rows held out, by this part alone
    variables: int


@dataclass(frozen=True, eq=False, repr=False)
class Blend(AbstractDerived):
    r"""An average of the models that a cross-validation has found good; see `Selection.blend`.

    Attributes
    ----------
    selection : Selection
        Whose folds are blended.
    parts : tuple of BlendPart
        What was blended, with the weights, which sum to one.
    mean, se : float
        Score of the rows held out, and its standard error.
    fold_scores : ndarray of shape (n_folds,)

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_logistic(200, 30, 10, seed=1)
    >>> selection = bregpath.cross_validate(data.X, data.y, loss="logistic", kappa="cv")
    >>> blend = selection.blend()
    >>> blend.predict(data.X).shape, bool(blend.mean <= min(part.score for part in blend.parts))
    ((200,), True)
    """

    selection: Selection
    parts: tuple[BlendPart, ...]
    mean: float
    se: float
    fold_scores: Array
    _intercept: Array  # (q,)
    _coef: Array  # (p, q)

    @property
    def model(self) -> Point:
        """The average, which belongs to no one time."""
        return self._point(np.nan, self._intercept, self._coef)

    def prune(self, margin: float = 1.0) -> Pruned:
        """A model with fewer variables that predicts as the blend does.

        Variables are taken away one by one, as by `Selection.prune`, but the others are fitted to what the blend
        predicts instead of to the response, which is noisier: they have the least Bregman divergence from it, of the
        loss (plus a ridge). Of each fold it is what the models of that fold predict, and scores are those of the rows
        held out. The smallest number of variables within ``margin`` standard errors of the best is kept.
        """
        from bregpath.selection.pruning import project

        return project(self, margin)

    def fold_models(self) -> list[tuple[Array, Array]]:
        """The same average of the models of each fold: intercepts (q,) and coefficients (p, q)."""
        curves, _ = _check(self.selection)
        counted = [part for part in self.parts if part.weight > 0]
        return [
            _mixture(counted, [curves[part.kappa].folds[f].track for part in counted], self.selection.path)[:2]
            for f in range(len(self.selection.folds))
        ]

    def __repr__(self) -> str:
        measure, single = self.selection.measure, min(self.parts, key=lambda part: part.score)
        if self.selection.larger_is_better:
            single = max(self.parts, key=lambda part: part.score)
        head = f"Blend by {len(self.fold_scores)}-fold cross-validation: {measure} {self.mean + 0.0:.4g} "
        head += f"(se {self.se:.4g}), {single.score + 0.0:.4g} by the best of them alone"
        rows = [["kappa", "mean", "t", "weight", measure, "variables"]]
        rows += [
            [f"{part.kappa:g}", part.average or "-", f"{part.t:.4g}", f"{part.weight:.2f}",
             f"{part.score + 0.0:.4g}", f"{part.variables}"]
            for part in self.parts if part.weight > 0
        ]  # fmt: skip
        table = self.model.table
        assert table is not None
        return "\n".join([head, *aligned(rows, left={1}), f"Together: {table.size}", *table.lines()])


class _Candidate(NamedTuple):
    """The best time of one kappa, read in one way, and what the folds make of their held-out rows there."""

    kappa: float
    average: str | None
    t: float
    score: float
    held: tuple[HeldOut, ...]
    losses: Array  # of all times: scores to be minimised, (n_folds, T)

    @property
    def eta(self) -> Array:
        """Predictors of all rows held out, (n,) or (n, q)."""
        return np.concatenate([rows.eta[0] for rows in self.held])


def blend(selection: Selection) -> Blend:
    """What `Selection.blend` does."""
    curves, k = _check(selection)
    first = next(iter(curves.values()))
    found = [one for kappa in sorted(curves) for one in _candidates(curves[kappa], k)]
    candidates = [_null_model(first, k), *_without_restless(found, first.weights)]
    weights = _weights(candidates)
    mixed = np.tensordot(weights, [one.eta for one in candidates], 1)
    ends = np.cumsum([len(rows.w) for rows in candidates[0].held])[:-1]
    held = [rows._replace(eta=eta[None]) for rows, eta in zip(candidates[0].held, np.split(mixed, ends), strict=True)]
    scores = _scores(first, k, held)
    mean, se = aggregate(scores, first.weights)
    parts = [
        BlendPart(one.kappa, one.average, one.t, float(weight), one.score, 0)
        for one, weight in zip(candidates, weights, strict=True)
    ]
    counted = [one for one in parts if one.weight > 0]
    intercept, coef, sizes = _mixture(
        counted, [curves[one.kappa].followed_to(one.t) for one in counted], selection.path
    )
    size_of = dict(zip(counted, sizes, strict=True))
    sized = tuple(one._replace(variables=size_of.get(one, 0)) for one in parts)
    return Blend(selection, sized, float(mean[0]), float(se[0]), scores[:, 0], intercept, coef)


def _check(selection: Selection) -> tuple[Mapping[float, FoldCurves], int]:
    """The folds of all kappas of a selection that can be blended, and the number of its measure."""
    curves = selection._folds_of_kappas
    if not curves:
        raise ValueError(
            "A selection without folds, or one that was unpickled, has no rows to blend by; call cross_validate()."
        )
    folds = next(iter(curves.values())).folds
    if not isinstance(folds[0].study, Regression) or not isinstance(selection.path, Path):
        raise TypeError("Only models whose variables are columns can be blended: no graphs, and no `structure`.")
    return curves, [scorer.name for scorer in folds[0].scorers].index(selection.measure)


def _null_model(curves: FoldCurves, k: int) -> _Candidate:
    """What a path begins with."""
    return _best_time(curves, k, None, np.zeros(1))


def _candidates(curves: FoldCurves, k: int) -> Iterator[_Candidate]:
    """The paths of one kappa, read in all ways, each at its best time by one of the measures.

    Of a long record, which does not keep all its knots, no other mean than its own can be made.
    """
    records = [fold.track.record.trajectory for fold in curves.folds]
    averages = AVERAGES if all(record.is_whole for record in records) else {records[0].average}
    for average in dict.fromkeys((None, *averages)):
        yield _best_time(curves, k, average, curves.clock[: curves.n_times])


def _best_time(curves: FoldCurves, k: int, average: str | None, times: Array) -> _Candidate:
    """The best of some times."""
    tracks = [fold.track.read_as(average) for fold in curves.folds]
    held = [fold.study.held_out(track, fold.test, times) for fold, track in zip(curves.folds, tracks, strict=True)]
    scores = _scores(curves, k, held)
    losses = -scores if curves.folds[0].scorers[k].larger_is_better else scores
    best = int(curve_of(losses, curves.weights).argmin())
    score = float(aggregate(scores[:, [best]], curves.weights)[0][0])
    there = tuple(rows._replace(eta=rows.eta[[best]]) for rows in held)
    return _Candidate(curves.study.kappa, average, float(times[best]), score, there, losses)


def _without_restless(candidates: list[_Candidate], weights: Array) -> list[_Candidate]:
    """Means over time, and paths themselves only where these are clearly better, as in the choice of a kappa."""
    paths, means = ([one for one in candidates if (one.average is None) == plain] for plain in (True, False))
    if not means:
        return paths
    of_paths, of_means = (np.concatenate([one.losses for one in some], axis=1) for some in (paths, means))
    return candidates if is_clearly_better(of_paths, of_means, weights) else means


def _scores(curves: FoldCurves, k: int, held: Iterable[HeldOut]) -> Array:
    """Of the rows that each fold holds out, (n_folds, T)."""
    return np.stack([fold.scorers[k].score(rows) for fold, rows in zip(curves.folds, held, strict=True)])


def _weights(candidates: list[_Candidate]) -> Array:
    r"""Convex weights with the least deviance of the rows held out.

    .. math:: \min_w \sum_i \ell\Big(\sum_k w_k \eta_{ik}, y_i\Big), \qquad w_k \ge 0, \quad \sum_k w_k = 1
    """
    held = candidates[0].held
    loss, unit = held[0].loss, held[0].unit if held[0].loss.has_units else 1.0
    y = np.concatenate([rows.coded for rows in held])
    y, w = y / unit if loss.has_units else y, np.concatenate([rows.w for rows in held])
    etas, w = np.array([one.eta for one in candidates]) / unit, w / w.sum()

    def value(weights: Array) -> float:
        return float(loss.value(np.tensordot(weights, etas, 1), y, w))

    def gradient(weights: Array) -> Array:
        return etas.reshape(len(etas), -1) @ loss.gradient(np.tensordot(weights, etas, 1), y, w).ravel()

    vertices = np.eye(len(etas))
    alone = np.array([value(one) for one in vertices])
    best = vertices[alone.argmin()]
    size = float(np.ptp(alone[np.isfinite(alone)])) or 1.0  # so that the tolerance is one of what there is to gain
    found = minimize(
        lambda weights: (value(weights) / size, gradient(weights) / size),
        best, jac=True, method="SLSQP", bounds=[(0.0, 1.0)] * len(etas), options={"ftol": TOL, "maxiter": 200},
        constraints={"type": "eq", "fun": lambda weights: weights.sum() - 1.0, "jac": np.ones_like},
    )  # fmt: skip
    weights = np.where(found.x > NEGLIGIBLE, found.x, 0.0)
    weights /= weights.sum()
    return weights if value(weights) <= alone.min() else best


def _mixture(parts: Sequence[BlendPart], tracks: Sequence[Track], path: Path) -> tuple[Array, Array, list[int]]:
    """Intercepts and coefficients of the average on some rows, and the number of variables of each part."""
    intercept, coef, sizes = np.zeros(path.n_outputs), np.zeros((path.n_features, path.n_outputs)), []
    for part, track in zip(parts, tracks, strict=True):
        alpha, columns, beta = track.read_as(part.average).models(np.array([part.t]))
        intercept += part.weight * alpha[0]
        coef[columns] += part.weight * beta[0]
        sizes.append(int(np.any(beta[0] != 0, axis=1).sum()))
    return intercept, coef, sizes
