"""K-fold cross-validation on one clock."""

from __future__ import annotations

import numbers
import os
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from bregpath import _frames, _validation
from bregpath._typing import Array, IntArray
from bregpath.flow.stop import Result
from bregpath.losses import AbstractLoss
from bregpath.path import Path
from bregpath.selection._scores import SCORES, check_scoring
from bregpath.selection.result import Selection
from bregpath.trace import trace_path

__all__ = ["aggregate", "choose", "cross_validate"]

Folds = list[tuple[IntArray, IntArray]]


def cross_validate(
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    cv_groups: Any = None,
    scoring: str | Callable[..., float] | None = None,
    full: bool = False,
    n_jobs: int | None = None,
    seed: Any = 0,
    **options: Any,
) -> Selection:
    r"""Choose t by K-fold cross-validation.

    The path on all rows gives the clock: every fold is traced on its training rows and read at the same
    times, in the user's units. A fold whose path ends early (it explains all its training rows) keeps its
    last model. With :math:`m_f(t)` the score of the rows held out in fold f and :math:`W_f` their total
    weight,

    .. math:: m(t) = \frac{\sum_f W_f m_f(t)}{\sum_f W_f}, \qquad
              s(t)^2 = \frac{1}{K - 1} \frac{\sum_f W_f (m_f(t) - m(t))^2}{\sum_f W_f}.

    `Selection.t` is the best time; ``.one_se()`` gives the smallest time within one standard error of it.

    Parameters
    ----------
    X, y
        As in `trace_path`. A data frame is encoded once, so that all folds have the same columns.
    cv : int, splitter or iterable of (train, test), default 5
        A number of folds (shuffled, stratified by class for classifiers, rows of weight zero left out), any
        scikit-learn splitter, or index arrays.
    cv_groups : array-like of shape (n,), optional
        Rows with the same label stay in the same fold.
    scoring : {"deviance", "misclassification", "mse", "auc"} or callable, default "deviance"
        What is measured on held-out rows. "mse" of a classifier is the squared error of its probabilities,
        summed over classes if there are more than two outputs. A callable is called as ``score(y_true,
        prediction)`` with the prediction as `Path.predict` gives it (mean response, probability), and with
        ``sample_weight=`` too when weights were given; smaller is better unless it has a true attribute
        ``larger_is_better``.
    full : bool, default False
        Promise of the whole curve. At present every fold runs to the end anyway; later, False may end the
        folds once the curve has clearly turned.
    n_jobs : int, optional
        Number of threads over the folds; -1 is one for each processor.
    seed : int, RandomState or None, default 0
        How rows are shuffled into ``cv`` folds.
    **options
        Keyword arguments of `trace_path`. ``stop`` and ``progress`` act on the path of all rows only.

    Returns
    -------
    Selection

    Warns
    -----
    UserWarning
        When the curve still falls clearly at the end of the path: ask for a larger ``t_ratio``.

    Examples
    --------
    >>> import bregpath
    >>> from bregpath.selection.cross_validation import cross_validate
    >>> data = bregpath.datasets.make_logistic(200, 20, 4, seed=1)
    >>> selection = cross_validate(data.X, data.y, loss="logistic")
    >>> selection.path.support(selection.t_1se).tolist()
    [0, 1, 2, 3]
    """
    path = _uninterrupted(trace_path(X, y, **options))
    task = _Task.prepare(path, X, y, scoring, options)
    folds = make_folds(cv, X, task.y, task.w, cv_groups, path.loss.is_classifier, seed)
    task.check_classes(folds)
    workers = _workers(n_jobs, len(folds))
    if workers == 1:
        results = [task.run(*fold) for fold in folds]
    else:
        with ThreadPoolExecutor(workers) as pool:
            results = list(pool.map(lambda fold: task.run(*fold), folds))
    scores = np.stack([score for score, _ in results])
    weights = np.array([task.w[test].sum() for _, test in folds])
    mean, se = aggregate(scores, weights)
    i_min, i_1se = choose(path.t, mean, se, larger_is_better=task.larger_is_better)
    selection = Selection(
        rule=f"{len(folds)}-fold cross-validation",
        t=float(path.t[i_min]),
        t_min=float(path.t[i_min]),
        t_1se=float(path.t[i_1se]),
        times=path.t,
        mean=mean,
        se=se,
        measure=task.measure,
        larger_is_better=task.larger_is_better,
        curves={"df": path.df},
        fold_scores=scores,
        fold_weights=weights,
        out_of_fold=_gather(folds, [eta for _, eta in results], len(task.y)),
        path=path,
    )
    _warn_if_short(selection, path, "t" in options and options["t"] is not None)
    return selection


def choose(times: Array, mean: Array, se: Array, *, larger_is_better: bool = False) -> tuple[int, int]:
    r"""Indices of the best time and of the one-standard-error rule.

    .. math:: i_\min = \arg\min m, \qquad i_{1se} = \arg\min \{t_i : m_i \le m_{i_\min} + s_{i_\min}\};

    of equally good times the smallest counts. An undefined standard error (a single fold) counts as zero, and
    points where the mean is not finite are never chosen.

    Examples
    --------
    >>> import numpy as np
    >>> choose(np.array([1.0, 2.0, 3.0, 4.0]), np.array([9.0, 5.2, 5.0, 5.1]), np.full(4, 0.3))
    (2, 1)
    """
    order = np.argsort(times, kind="stable")
    curve = np.where(np.isfinite(mean), -mean if larger_is_better else mean, np.inf)[order]
    best = int(np.argmin(curve))
    if not np.isfinite(curve[best]):
        return int(order[0]), int(order[0])
    spread = float(se[order[best]])
    limit = curve[best] + (spread if np.isfinite(spread) else 0.0)
    return int(order[best]), int(order[np.argmax(curve <= limit)])


def aggregate(scores: Array, weights: Array) -> tuple[Array, Array]:
    """Mean over the folds and its standard error, folds weighted by the rows they held out (as glmnet does).

    Examples
    --------
    >>> import numpy as np
    >>> mean, se = aggregate(np.array([[1.0], [3.0]]), np.array([3.0, 1.0]))
    >>> mean, se.round(3)
    (array([1.5]), array([0.866]))
    """
    with np.errstate(invalid="ignore", divide="ignore"):  # an infinite score of a fold; a single fold
        share = weights / weights.sum()
        mean = share @ scores
        variance = share @ (scores - mean) ** 2
        return mean, np.sqrt(variance / np.float64(len(weights) - 1))


# --- folds ---------------------------------------------------------------------------------------------------


def make_folds(cv: Any, X: Any, y: Array, w: Array, groups: Any = None, stratify: bool = False, seed: Any = 0) -> Folds:
    """Training and held-out rows of each fold, without rows of weight zero."""
    n, rows = len(y), np.flatnonzero(w > 0)
    if groups is not None:
        groups = _frames.series_to_numpy(groups)
        if len(groups) != n:
            raise ValueError(f"`cv_groups` must have one label for each of the {n} rows, found {len(groups)}.")
    pairs: Iterable[Any]
    if isinstance(cv, numbers.Integral) and not isinstance(cv, bool):
        some = None if groups is None else groups[rows]
        pairs = [(rows[a], rows[b]) for a, b in _split_by_number(int(cv), y[rows], some, stratify, seed)]
    elif hasattr(cv, "split") and not isinstance(cv, str):
        pairs = cv.split(X, y, groups)
    elif isinstance(cv, Iterable) and not isinstance(cv, str):
        pairs = cv
    else:
        raise TypeError(f"`cv` must be a number of folds, a splitter or a list of (train, test) rows, found {cv!r}.")
    folds = [_check_fold(pair, k, n, w) for k, pair in enumerate(pairs)]
    if not folds:
        raise ValueError("`cv` gives no folds; at least one pair (train, test) is needed.")
    return folds


def _split_by_number(k: int, y: Array, groups: Array | None, stratify: bool, seed: Any) -> Iterable[Any]:
    from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

    units, what = len(y), "rows of positive weight"
    if groups is not None:
        units, what = len(np.unique(groups)), "cv_groups"
    if k < 2 or k > units:
        raise ValueError(f"`cv`={k} is not possible with {units} {what}; use a number of folds from 2 to {units}.")
    if groups is not None:
        return GroupKFold(k).split(y, y, groups)
    if not stratify:
        return KFold(k, shuffle=True, random_state=seed).split(y)
    classes, count = np.unique(y, return_counts=True)
    if count.min() < 2:
        raise ValueError(
            f"`cv`={k} needs two rows of each class, found one of class {_label(classes[count.argmin()])}; "
            "merge or drop the class, or choose t by information_criterion()."
        )
    with warnings.catch_warnings():  # a class with fewer rows than folds is not held out in some: no harm
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        try:
            return list(StratifiedKFold(k, shuffle=True, random_state=seed).split(y, y))
        except ValueError:
            raise ValueError(
                f"`cv`={k} exceeds the number of rows in every class (at most {count.max()}); use fewer folds."
            ) from None


def _check_fold(pair: Any, k: int, n: int, w: Array) -> tuple[IntArray, IntArray]:
    try:
        train, test = (np.arange(n)[np.asarray(rows) if len(rows) else slice(0)] for rows in pair)
    except (TypeError, ValueError, IndexError) as error:
        raise ValueError(f"`cv`: fold {k} is not a pair (train, test) of rows of X, which has {n} ({error}).") from None
    train, test = train[w[train] > 0], test[w[test] > 0]
    if not len(train) or not len(test):
        raise ValueError(f"`cv`: fold {k} has no {'test' if len(train) else 'training'} rows of positive weight.")
    return train, test


# --- one fold ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Task:
    """All that a fold needs besides its rows."""

    X: Any
    y: Array
    coded: Array
    w: Array
    offset: Array | None
    weighted: bool
    options: dict[str, Any]
    loss: AbstractLoss
    unit: float
    scoring: str | Callable[..., float]

    @classmethod
    def prepare(cls, path: Path, X: Any, y: Any, scoring: Any, options: dict[str, Any]) -> _Task:
        y = _frames.series_to_numpy(np.ravel(y) if np.ndim(y) == 2 and np.shape(y)[1] == 1 else y)
        n = len(y)
        w = options.get("sample_weight")
        weights = np.ones(n) if w is None else _validation.check_weights(w, n) * n
        loss = copy(path.loss)  # encoding stores the classes on the loss; the one of the path stays as it is
        coded = loss.encode(y, weights / n)
        offset = options.get("offset")
        if offset is not None:
            offset = _validation.check_offset(offset, n, path.n_outputs)
        left_out = ("sample_weight", "offset", "t", "t_ratio", "n_times", "stop", "progress")
        rest = {key: value for key, value in options.items() if key not in left_out}
        if path.encoder is not None and path.encoder.has_categories and rest.get("groups") is None:
            rest["groups"] = path.encoder.groups
            rest["penalty"] = "group" if rest.get("penalty", "l1") == "l1" else rest["penalty"]
        matrix = path.encode(X)
        if _validation.is_sparse(matrix):
            matrix = matrix.tocsr()  # rows are picked
        unit = path.units.y_unit if loss.has_units else 1.0
        scoring = check_scoring(scoring, loss)
        return cls(matrix, y, coded, weights, offset, w is not None, {**rest, "t": path.t}, loss, unit, scoring)

    @property
    def measure(self) -> str:
        return self.scoring if isinstance(self.scoring, str) else getattr(self.scoring, "__name__", "score")

    @property
    def larger_is_better(self) -> bool:
        return self.scoring == "auc" or bool(getattr(self.scoring, "larger_is_better", False))

    def check_classes(self, folds: Folds) -> None:
        """A model can not predict a class it has never seen."""
        if self.loss.classes is None:
            return
        for k, (train, _) in enumerate(folds):
            missing = np.setdiff1d(self.coded, self.coded[train])
            if len(missing):
                label = _label(self.y[self.coded == missing[0]][0])
                raise ValueError(
                    f"`cv`: the training rows of fold {k} have no row of class {label}; use stratified folds."
                )

    def run(self, train: IntArray, test: IntArray) -> tuple[Array, Array]:
        """Score at every time and linear predictor of the held-out rows."""
        offset = None if self.offset is None else self.offset[train]
        path = _uninterrupted(
            trace_path(self.X[train], self.y[train], sample_weight=self.w[train], offset=offset, **self.options)
        )
        eta = linear_predictors(path, self.X[test], len(self.options["t"]))
        if self.offset is not None:
            eta = eta + (self.offset[test] if eta.ndim == 3 else self.offset[test, 0])
        return self.score(eta, test), eta

    def score(self, eta: Array, rows: IntArray) -> Array:
        """Score of some rows at every time."""
        w = self.w[rows] / self.w[rows].sum()
        if callable(self.scoring):
            extra = {"sample_weight": self.w[rows]} if self.weighted else {}
            return np.array([float(self.scoring(self.y[rows], self.loss.predict(e), **extra)) for e in eta])
        return SCORES[self.scoring](self.loss, self.unit, eta, self.coded[rows], w)


def linear_predictors(path: Path, X: Any, n_times: int) -> Array:
    """Linear predictor at ``n_times`` times of a path, without offset; a path that ended early stays where it ended."""
    q = path.n_outputs
    table = path.coef_sparse
    columns = np.unique(table.indices // q)
    flat = (columns[:, None] * q + np.arange(q)).ravel()
    coef = table[:, flat].toarray().reshape(len(path.t), len(columns), q)
    eta = np.asarray(X[:, columns] @ coef.transpose(1, 0, 2).reshape(len(columns), len(path.t) * q))
    eta = eta.reshape(X.shape[0], len(path.t), q).transpose(1, 0, 2) + path.intercept.reshape(-1, 1, q)
    # trace_path puts the time of an early end in place of the first time beyond it.
    eta = eta[np.minimum(np.arange(n_times), len(path.t) - 1)]
    return eta[:, :, 0] if q == 1 else eta


def _gather(folds: Folds, etas: list[Array], n: int) -> Array:
    """Held-out predictors in the order of the rows; the mean where a row was held out more than once."""
    out = np.zeros((etas[0].shape[0], n, *etas[0].shape[2:]))
    count = np.zeros(n)
    for (_, test), eta in zip(folds, etas, strict=True):
        out[:, test] += eta
        count[test] += 1
    count[count == 0] = np.nan
    return out / (count if out.ndim == 2 else count[:, None])


# --- odds and ends -------------------------------------------------------------------------------------------


def _workers(n_jobs: Any, n_folds: int) -> int:
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, numbers.Integral) or n_jobs == 0:
        raise ValueError(f"`n_jobs` must be a number of threads, -1 for all processors, or None; found {n_jobs!r}.")
    jobs = int(n_jobs)
    return min(n_folds, jobs if jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + jobs))


def _label(label: Any) -> str:
    return repr(label.item() if isinstance(label, np.generic) else label)


def _uninterrupted(path: Path) -> Path:
    """Half a cross-validation is worth nothing: an interrupt that ended a path goes on to the caller."""
    if path.result is Result.INTERRUPTED:
        raise KeyboardInterrupt
    return path


def _warn_if_short(selection: Selection, path: Path, own_times: bool) -> None:
    """Say so when the best time is the last and the curve has not levelled off."""
    end = selection.times[-1]
    if path.result is not Result.COMPLETED or selection.t_min != end or len(selection.times) < 2:
        return
    before = min(int(np.searchsorted(selection.times, 0.5 * end)), len(selection.times) - 2)
    gain = abs(float(selection.mean[before] - selection.mean[-1]))
    # On easy data the curve is flat at its end, and a last-digit minimum there is no reason to go on.
    if selection.se is not None and np.isfinite(selection.se[-1]) and gain <= 0.1 * selection.se[-1]:
        return
    remedy = "later times in `t`" if own_times else "a larger `t_ratio`"
    warnings.warn(
        f"The best time is the last one, t={end:.4g}, and the curve has not levelled off; ask for {remedy}.",
        UserWarning,
        stacklevel=3,
    )
