"""What every selection rule returns: a point on a path, with the curve it was read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bregpath._typing import Array, IntArray
from bregpath.path import Path, Point
from bregpath.selection.derived import AbstractChoice

if TYPE_CHECKING:
    from bregpath.selection.blending import Blend
    from bregpath.selection.pruning import Pruned

__all__ = ["ScoreCurve", "Selection"]


@dataclass(frozen=True, eq=False)
class ScoreCurve:
    """One measure of a cross-validation; the attributes are those of `Selection`."""

    measure: str
    larger_is_better: bool
    t_min: float
    t_1se: float
    times: Array
    mean: Array
    se: Array
    fold_scores: Array

    @property
    def best(self) -> int:
        """Index of the best time."""
        return int(np.flatnonzero(self.times == self.t_min)[0])


class KappaCurve(NamedTuple):
    """A curve of one of several kappas, with the names of the choices that are on it."""

    kappa: float
    curve: ScoreCurve
    names: tuple[str, ...]  # "min", "sparse", both or none
    is_plain: bool  # of a path itself, where others are of means over time
    is_chosen: bool  # whether the chosen model is on it


@dataclass(frozen=True, eq=False, repr=False)
class Selection(AbstractChoice):
    r"""A chosen time on a path, and the curve it was chosen on.

    With :math:`m(t)` the curve (smaller is better), and :math:`d(t)` the standard error of the difference
    :math:`m(t) - m(t_\min)` within folds,

    .. math:: t_\min = \arg\min_t m(t), \qquad
              t_{1se} = \min \{t : m(t) \le m(t_\min) + d(t)\};

    with ``se_rule="glmnet"`` the standard error of :math:`m(t_\min)` itself stands in place of :math:`d(t)`.

    Attributes
    ----------
    rule : str
        How t was chosen, in words.
    t : float
        The chosen time: `t_min`, unless `one_se` was asked for.
    t_min : float
        The best time; the smallest of those that are equally good.
    t_1se : float or None
        The smallest time, so the sparsest model, within one standard error of the best; None for a criterion,
        which has no standard error.
    kappa : float or None
        That of the path.
    times, mean, se : ndarray of shape (n_times,)
        The curve, mean score over the folds or criterion, and its standard error (None for a criterion).
    measure : str
        What the curve measures: "deviance", "misclassification", "bic", ...
    larger_is_better : bool
    curves : dict of str to ndarray of shape (n_times,)
        Other curves on the same times; "df" is always there.
    fold_scores, fold_weights : ndarray of shape (n_folds, n_times) and (n_folds,), or None
        Score and total weight of the held-out rows of each fold.
    folds, fold_paths : tuple of (train, test), and of Path
        Rows of each fold, and the path on its training rows; `fold_coef` reads them. They cannot be extended.
    scores : dict of str to ScoreCurve
        All measures by name, in the order in which they were asked for; `by` turns to another one.
    stopped_early : bool
        Whether the curve was ended because it had clearly turned.
    path : Path, GraphPath or None
        The path on all rows, on which t is a point. It ends where the curve does, or later.
    kappa_min, kappa_sparse : float or None
        Where several kappas were tried: the one of the best score of all, and the largest one, so that of the sparsest
        models, whose best score is within one standard error of it. All that is said above is about the chosen one,
        `kappa`: that of the best score, unless `sparse` was asked for.
    surface, mean_surface : dict of float to dict of str to ScoreCurve
        All curves, by kappa and measure. Times are each kappa's own, because small kappas need longer. `surface` has
        those of the paths themselves, from which the sparse choice is made, `mean_surface` those of their means over
        time, from which the best one is, if there is an ``average``; elsewhere it is the same.
    given_up : tuple of float
        Kappas whose curves end early, because others were ahead for good.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_linear(100, 10, 3, seed=0)
    >>> selection = bregpath.cross_validate(data.X, data.y)
    >>> selection.t_1se <= selection.t_min == selection.t, selection.one_se().t == selection.t_1se
    (True, True)
    """

    rule: str
    t: float
    t_min: float
    t_1se: float | None
    times: Array
    mean: Array
    se: Array | None = None
    measure: str = "score"
    larger_is_better: bool = False
    curves: Mapping[str, Array] = field(default_factory=dict)
    fold_scores: Array | None = None
    fold_weights: Array | None = None
    path: Any = None  # Path, GraphPath or None
    folds: tuple[tuple[IntArray, IntArray], ...] = ()
    fold_paths: tuple[Path, ...] = ()
    scores: Mapping[str, ScoreCurve] = field(default_factory=dict)
    stopped_early: bool = False
    kappa_min: float | None = None
    kappa_sparse: float | None = None
    surface: Mapping[float, Mapping[str, ScoreCurve]] = field(default_factory=dict)
    mean_surface: Mapping[float, Mapping[str, ScoreCurve]] = field(default_factory=dict)
    given_up: tuple[float, ...] = ()
    # By measure, the kappa of the best score and the sparse one; and the selections of those kappas, of both kinds.
    _kappas: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    _plain_best: frozenset[str] = frozenset()  # measures by which the best is a path itself, not a mean
    _of_kappa: Mapping[float, Selection] = field(default_factory=dict)
    _plain_of_kappa: Mapping[float, Selection] = field(default_factory=dict)
    # What is read of the rows of folds when it is asked for; a pickle leaves the training rows behind.
    _rows: Any = None
    _folds_of_kappas: Any = None

    @classmethod
    def without_folds(
        cls, rule: str, path: Any, best: int, values: Array, measure: str, curves: Mapping[str, Array]
    ) -> Selection:
        """The choice of one of the times of a path, by a curve that has no standard error."""
        t = float(path.t[best])
        return cls(rule, t, t, None, path.t, values, measure=measure, curves=curves, path=path)

    @classmethod
    def of_kappas(cls, **several: Any) -> Selection:
        """The choice by the first measure; ``several`` are all fields about several kappas."""
        nothing = np.zeros(0)
        return cls("", 0.0, 0.0, None, nothing, nothing, **several)._at_kappa(next(iter(several["_kappas"])))

    def _at_kappa(self, measure: str, is_sparse: bool = False) -> Selection:
        """The best of all kappas, or the sparse choice, by one of the measures."""
        low, sparse = self._kappas[measure]
        of_kappa = self._plain_of_kappa if is_sparse or measure in self._plain_best else self._of_kappa
        one = of_kappa[sparse if is_sparse else low]
        curve, of_several = one.scores[measure], f"of {len(self.surface)} kappa{'s' * (len(self.surface) > 1)}"
        shared = (
            "surface", "mean_surface", "given_up", "_kappas", "_plain_best", "_of_kappa", "_plain_of_kappa",
            "_folds_of_kappas",
        )  # fmt: skip
        return replace(
            one, rule=f"{one.rule} {of_several}", t=curve.t_min, kappa_min=low, kappa_sparse=sparse,
            **{name: getattr(self, name) for name in shared}, **vars(curve),
        )  # fmt: skip

    @property
    def kappa(self) -> float | None:
        """The kappa of the path."""
        return None if self.path is None else float(self.path.kappa)

    @property
    def t_sparse(self) -> float | None:
        """The best time of `kappa_sparse`."""
        return None if self.kappa_sparse is None else self._plain_of_kappa[self.kappa_sparse].scores[self.measure].t_min

    def sparse(self) -> Selection:
        """The same cross-validation with the sparse choice: the path of `kappa_sparse` itself, at its best time.

        It is traced when it is first asked for, on the data as they are then: leave them what they were.

        Examples
        --------
        >>> import bregpath
        >>> data = bregpath.datasets.make_logistic(200, 20, 4, seed=1)
        >>> selection = bregpath.cross_validate(data.X, data.y, loss="logistic", kappa="cv")
        >>> selection.sparse().kappa >= selection.kappa
        True
        """
        if self.kappa_sparse is None:
            raise ValueError('There is one kappa only, so no sparser one; use cross_validate(..., kappa="cv").')
        chosen = self._at_kappa(self.measure, is_sparse=True)
        return replace(chosen, rule=f"{chosen.rule}, sparse choice")

    def one_se(self) -> Selection:
        """The same selection with the sparser model of the one-standard-error rule."""
        if self.t_1se is None:
            raise ValueError(f"There is no standard error for the rule {self.rule!r}; use `t_min` or cross_validate().")
        words = ", one-standard-error rule"
        return replace(self, t=self.t_1se, rule=f"{self.rule.removesuffix(words)}{words}")

    def prune(self, margin: float = 0.75) -> Pruned:
        """Take variables away from the chosen model, one by one, as long as held-out rows do not notice.

        Those without which the loss rises least go first (Wald's statistic); what is left is fitted again, with a
        ridge that the folds choose once, for the whole model. Every fold does so with its own model, and the smallest
        number of variables within ``margin`` standard errors of the best, of the difference within folds, is kept.
        Groups are one variable; columns that are never penalised stay. At most 60 variables are begun with, those of
        the largest effects.
        """
        from bregpath.selection.pruning import prune

        return prune(self, margin)

    def blend(self) -> Blend:
        r"""The best predictions: an average of the good models of all kappas.

        Of every kappa the two means over time, each at its best time (and the path itself, where that is clearly
        better), and the null model are averaged, with the convex weights of the least deviance of the rows held out:

        .. math:: \hat\beta = \sum_k w_k \beta_k(t_k), \qquad
                  w = \arg\min_w \sum_i \ell\Big(\sum_k w_k \eta_{ik}, y_i\Big),
                  \quad w_k \ge 0, \; \sum_k w_k = 1,

        where :math:`\eta_{ik}` is what the model of the fold that has not seen row i predicts for it (stacking,
        Breiman 1996). It has the variables of all that it averages: ask for it to predict, not to choose variables.
        """
        from bregpath.selection.blending import blend

        return blend(self)

    def by(self, measure: str) -> Selection:
        """The same cross-validation, the time chosen by another of its measures.

        Examples
        --------
        >>> import bregpath
        >>> data = bregpath.datasets.make_logistic(200, 20, 4, seed=1)
        >>> both = bregpath.cross_validate(data.X, data.y, loss="logistic", scoring=["deviance", "auc"])
        >>> both.measure, both.by("auc").measure
        ('deviance', 'auc')
        """
        if measure not in self.scores:
            raise ValueError(f"`measure` must be one that was measured, {list(self.scores)}; found {measure!r}.")
        if self.surface:
            return self._at_kappa(measure)
        curve = self.scores[measure]
        return replace(self, t=curve.t_min, **vars(curve))

    def curves_of_kappas(self) -> list[KappaCurve]:
        """The curve of every kappa by the chosen measure; where it is of means, also that of a chosen path itself."""
        means = self.mean_surface is not self.surface
        chosen = self.kappa, means and self.path.average is None
        names: dict[tuple[Any, bool], tuple[str, ...]] = {
            (self.kappa_min, means and self.measure in self._plain_best): ("min",)
        }
        names[self.kappa_sparse, means] = (*names.get((self.kappa_sparse, means), ()), "sparse")
        out = []
        for key in [*((kappa, False) for kappa in self.surface), *(key for key in names if key[1])]:
            kappa, is_plain = key
            curve = (self.surface if is_plain else self.mean_surface)[kappa][self.measure]
            out.append(KappaCurve(kappa, curve, names.get(key, ()), is_plain, key == chosen))
        return out

    # --- the chosen model --------------------------------------------------------------------------------------

    @property
    def model(self) -> Point:
        """The model on all rows at the chosen time."""
        if self.path is None:
            raise ValueError(f"The rule {self.rule!r} has no path; read the model from the one it was applied to.")
        return self.path.at(min(self.t, float(self.path.t[-1])))

    def predict(self, X: Any, offset: Any = None) -> Array:
        """Mean response of new rows by the chosen model, as `Path.predict`.

        Examples
        --------
        >>> import bregpath
        >>> data = bregpath.datasets.make_linear(100, 10, 3, seed=0)
        >>> bregpath.cross_validate(data.X, data.y).predict(data.X[:2]).shape
        (2,)
        """
        return self.path.predict(X, self.model.t, offset)

    def to_frame(self) -> Any:
        """One row a variable of the chosen model, by effect: coefficients, and the share of folds that have it too.

        Needs pandas.
        """
        table = self.model.table
        if table is None:
            raise ValueError(
                "This model is no list of columns; use edge_table() of a graph, or to_frame() of a structured path."
            )
        frame = table.to_frame()
        if self.fold_paths:
            folds = self.fold_coef()[:, table.columns] != 0
            frame["share_of_folds"] = folds.any(axis=tuple(range(2, folds.ndim))).mean(axis=0)
        return frame

    # --- what the folds know ---------------------------------------------------------------------------------

    @property
    def out_of_fold(self) -> Array | None:
        """Linear predictor of each row by the model that has not seen it, shape (n_times, n) or (n_times, n, q).

        NaN for rows never held out; None without folds. Computed when first asked for.
        """
        return None if self._rows is None else self._rows.out_of_fold  # type: ignore[no-any-return]

    @cached_property
    def train_scores(self) -> Array:
        """Score of the training rows of each fold, shape (n_folds, n_times); computed when first asked for."""
        if self._rows is None or not self._rows.has_data:
            raise ValueError(
                "A selection without folds, or one that was unpickled, has no training rows; call cross_validate()."
            )
        return self._rows.train_scores(self.measure)  # type: ignore[no-any-return]

    @cached_property
    def train_mean(self) -> Array:
        """Mean of `train_scores`, weighted as the curve of held-out rows is."""
        assert self.fold_weights is not None
        return self.fold_weights / self.fold_weights.sum() @ self.train_scores

    def fold_points(self, t: float | None = None) -> tuple[Point, ...]:
        """The model of each fold at ``t`` (the chosen time by default).

        The path of a fold may end before, where it explains all of its rows; then its last model counts.
        """
        if not self.fold_paths:
            raise ValueError(f"There are no folds for the rule {self.rule!r}; use cross_validate().")
        time = self.t if t is None else float(t)
        return tuple(path.at(min(time, float(path.t[-1]))) for path in self.fold_paths)

    def fold_coef(self, t: float | None = None) -> Array:
        """Coefficients of each fold at ``t`` (the chosen time by default), shape (n_folds, p) or (n_folds, p, q).

        Examples
        --------
        >>> import bregpath
        >>> data = bregpath.datasets.make_linear(100, 10, 3, seed=0)
        >>> selection = bregpath.cross_validate(data.X, data.y)
        >>> (selection.fold_coef(selection.t_1se) != 0).sum(axis=0).tolist()
        [5, 5, 5, 0, 0, 0, 0, 0, 0, 0]
        """
        return np.stack([point.coef for point in self.fold_points(t)])

    def predict_out_of_fold(self) -> Array:
        """Mean response of each row by the model at the chosen time that has not seen it: (n,), or (n, q)."""
        if self.out_of_fold is None or self.path is None:
            raise ValueError(f"There are no folds for the rule {self.rule!r}; use cross_validate().")
        return self.path.loss.predict(self.out_of_fold[int(np.argmin(np.abs(self.times - self.t)))])

    # --- showing ---------------------------------------------------------------------------------------------

    def plot(self, **kwargs: Any) -> Any:
        """Draw the curve against time; see `bregpath.plots.plot_selection`."""
        from bregpath.plots import plot_selection

        return plot_selection(self, **kwargs)

    def __repr__(self) -> str:
        return self.summary()

    def summary(self, model: bool = True) -> str:
        """The choice in words and numbers, with the chosen model, by name, if wanted."""
        from bregpath.selection.summary import summary

        return summary(self, model)
