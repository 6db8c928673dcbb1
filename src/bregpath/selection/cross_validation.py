"""K-fold cross-validation on one clock."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from bregpath import _interrupts
from bregpath._progress import progress_bar
from bregpath._typing import Array
from bregpath.flow.stop import Result
from bregpath.selection._scores import Scorer, make_scorers
from bregpath.selection._threads import threads
from bregpath.selection.fold_paths import Data, FoldPath, WholePath
from bregpath.selection.folds import Folds, check_classes, make_folds
from bregpath.selection.result import ScoreCurve, Selection
from bregpath.selection.turning import MIN_FOLDS, clear_turn

__all__ = ["aggregate", "choose", "cross_validate"]

FIRST = 0.5  # share of the times that is traced before the curve is looked at
STRETCH = 0.12  # share of the times between two looks, which cost more than a few small steps too many
LARGE = 2**20  # numbers in X from which on looking costs nothing in comparison
FEW_TIMES = 20  # that few times are traced on all rows at once


def cross_validate(
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    cv_groups: Any = None,
    scoring: Any = None,
    full: bool = False,
    patience: int = 5,
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

    All folds advance together and stop once the curve has clearly turned: when ``patience`` times in a row are
    worse than the best one before them by more than the standard errors of both, :math:`s(t) + s(t_{best})` (for the
    deviance, whose curve is smooth, by more than the larger of the two). Up to there the result is that of the
    whole window.

    Parameters
    ----------
    X, y
        As in `trace_path`. A data frame is encoded once, so that all folds have the same columns.
    cv : int, splitter or iterable of (train, test), default 5
        A number of folds (shuffled, stratified by class for classifiers, rows of weight zero left out), any
        scikit-learn splitter, or index arrays.
    cv_groups : array-like of shape (n,), optional
        Rows with the same label stay in the same fold.
    scoring : {"deviance", "misclassification", "mse", "mae", "auc"} or callable, or a list or dict of them
        What is measured on held-out rows; "deviance" by default. "mse" and "mae" of a classifier are errors of its
        probabilities, summed over classes if there are more than two outputs. A callable is called as
        ``score(y_true, prediction)`` with the prediction as `Path.predict` gives it (mean response,
        probability), and with ``sample_weight=`` too when weights were given; smaller is better unless it has a
        true attribute ``larger_is_better``. Of several measures the first chooses t, the others are in
        `Selection.scores`, and the folds go on until all curves have turned.
    full : bool, default False
        Run the whole window, whatever the curve does.
    patience : int, default 5
        Number of times in a row that must be clearly worse than the best one before the folds stop. With fewer
        than four folds the error bars are too rough for that, and the whole window is run.
    n_jobs : int, optional
        Number of threads over the folds; -1 is one for each processor. The result does not depend on it.
    seed : int, Generator, RandomState or None, default 0
        How rows are shuffled into ``cv`` folds.
    **options
        Keyword arguments of `trace_path`. ``stop`` acts on the path of all rows only, which is then traced to
        the end first, as it is when times ``t`` are given.

    Returns
    -------
    Selection

    Warns
    -----
    UserWarning
        When the curve still falls clearly at the end of the path: ask for a larger ``t_ratio``. When the score
        is the same at all times, so that it chooses nothing.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_logistic(200, 20, 4, seed=1)
    >>> selection = bregpath.cross_validate(data.X, data.y, loss="logistic")
    >>> selection.path.support(selection.t_1se).tolist()
    [0, 1, 2, 3]
    >>> len(selection.times) < 100 and selection.stopped_early
    True
    """
    patience = _check_patience(patience)
    progress = options.pop("progress", False)
    at_once = full or options.get("t") is not None or options.get("stop") is not None
    n_times = options.get("n_times", 100)
    at_once = at_once or not isinstance(n_times, numbers.Integral) or n_times < FEW_TIMES
    with _interrupts.all_or_nothing():
        whole = WholePath(X, y, options, None if at_once else _first_stretch(int(n_times)))
    data = Data.prepare(whole.path, X, y, options)
    scorers = make_scorers(scoring, data.loss)
    rows = make_folds(cv, X, data.y, data.w, cv_groups, data.loss.is_classifier, seed)
    if data.loss.classes is not None:
        check_classes(rows, data.y, data.coded)
    shares = data.must_share(len(rows))
    folds = _Folds([FoldPath(data, *pair, shares) for pair in rows], scorers)
    can_stop = not full and len(rows) >= MIN_FOLDS
    with threads(n_jobs, len(rows)) as each, progress_bar(progress, *_ends(whole.clock)) as report:
        n_times = folds.run(whole.clock, patience if can_stop else None, each, report)
    with _interrupts.all_or_nothing():
        path, has_turned = whole.finish(n_times), n_times < len(whole.clock)
    if path.t[-1] < whole.clock[n_times - 1]:  # it ended by itself, and so does the curve
        n_times, has_turned = int(np.searchsorted(whole.clock, path.t[-1])), False
    selection = folds.select(whole, n_times, has_turned)
    _warn_if_constant(selection)
    _warn_if_short(selection, "t" in options and options["t"] is not None)
    return selection


def choose(times: Array, mean: Array, se: Array, *, larger_is_better: bool = False) -> tuple[int, int]:
    r"""Indices of the best time and of the one-standard-error rule.

    .. math:: i_\min = \arg\min m, \qquad i_{1se} = \arg\min \{t_i : m_i \le m_{i_\min} + s_{i_\min}\};

    of equally good times (to rounding) the smallest counts. An undefined standard error (a single fold) counts as
    zero, and points where the mean is not finite are never chosen.

    Examples
    --------
    >>> import numpy as np
    >>> choose(np.array([1.0, 2.0, 3.0, 4.0]), np.array([9.0, 5.2, 5.0, 5.1]), np.full(4, 0.3))
    (2, 1)
    """
    order = np.argsort(times, kind="stable")
    curve = np.where(np.isfinite(mean), -mean if larger_is_better else mean, np.inf)[order]
    lowest = float(np.min(curve))
    if not np.isfinite(lowest):
        return int(order[0]), int(order[0])
    best = int(np.argmax(curve <= lowest + 1e-12 * abs(lowest)))
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


# --- all folds together --------------------------------------------------------------------------------------


class _Folds:
    """Folds that advance together, with their scores so far."""

    def __init__(self, paths: list[FoldPath], scorers: tuple[Scorer, ...]) -> None:
        self.paths = paths
        self.scorers = scorers
        self.weights = np.array([fold.data.w[fold.test].sum() for fold in paths])
        self.scores = np.zeros((len(scorers), len(paths), 0))
        self.etas: list[list[Array]] = [[] for _ in paths]

    def run(
        self,
        clock: Array,
        patience: int | None,
        each: Callable[[Callable[[FoldPath], Any], list[FoldPath]], Any],
        report: Callable[[float], None],
    ) -> int:
        """Trace and score until all curves have turned; returns how many times of the clock count.

        Without ``patience`` the whole clock is run.
        """
        total, done = len(clock), 0
        stretch = total if patience is None else _first_stretch(total)
        while done < total:
            begin, done = done, min(done + stretch, total)

            def visit(fold: FoldPath, begin: int = begin, done: int = done) -> tuple[Array, Array]:
                fold.advance(clock, done - 1)
                return fold.score(self.scorers, clock[begin:done])

            results = each(visit, self.paths)
            self.scores = np.concatenate([self.scores, np.stack([scores for scores, _ in results], axis=1)], axis=2)
            for kept, (_, eta) in zip(self.etas, results, strict=True):
                kept.append(eta)
            report(float(clock[done - 1]))
            if patience is not None:
                turn, stretch = self._outlook(total, patience)
                if turn is not None:
                    return turn + 1
        return total

    def _outlook(self, total: int, patience: int) -> tuple[int | None, int]:
        """Where the last of the curves has turned, or how many more times to trace before looking again."""
        turns, more = [], 1
        X = self.paths[0].data.X
        longest = patience if X.shape[0] * X.shape[1] >= LARGE else max(patience, round(STRETCH * total))
        for scorer, scores in zip(self.scorers, self.scores, strict=True):
            mean, se = aggregate(scores, self.weights)
            turn, run = clear_turn(
                mean, se, patience, larger_is_better=scorer.larger_is_better, smooth=scorer.is_smooth
            )
            turns.append(turn)
            if turn is None:
                more = max(more, patience - run if run else longest)
        known = [turn for turn in turns if turn is not None]
        return (max(known) if len(known) == len(turns) else None), more

    def select(self, whole: WholePath, n_times: int, has_turned: bool) -> Selection:
        """The result, from the first ``n_times`` times."""
        times, path, paths = whole.clock[:n_times], whole.path, self.paths
        scores = {
            scorer.name: _curve(scorer, times, scores[:, :n_times], self.weights)
            for scorer, scores in zip(self.scorers, self.scores, strict=True)
        }
        for fold in paths:
            fold.release()
        by_name = {scorer.name: scorer for scorer in self.scorers}

        def train(measure: str) -> Array:
            return np.stack([fold.train_score(by_name[measure], times) for fold in paths])

        first = scores[self.scorers[0].name]
        folds = [(fold.train, fold.test) for fold in paths]
        return Selection(
            rule=f"{len(paths)}-fold cross-validation",
            t=first.t_min,
            times=times,
            curves={"df": path.df[:n_times]},
            fold_weights=self.weights,
            out_of_fold=_gather(folds, [np.concatenate(eta)[:n_times] for eta in self.etas], len(paths[0].data.y)),
            path=path,
            folds=tuple(folds),
            fold_paths=tuple(fold.path for fold in paths if fold.path is not None),
            scores=scores,
            stopped_early=has_turned,
            _train=train,
            **vars(first),
        )


def _curve(scorer: Scorer, times: Array, scores: Array, weights: Array) -> ScoreCurve:
    mean, se = aggregate(scores, weights)
    if not np.isfinite(mean).any():
        raise ValueError(
            f"`scoring`: {scorer.name!r} is not finite at any time (fold 0 begins with {scores[0, 0]}); "
            "it must be a number for every fold."
        )
    i_min, i_1se = choose(times, mean, se, larger_is_better=scorer.larger_is_better)
    return ScoreCurve(scorer.name, scorer.larger_is_better, float(times[i_min]), float(times[i_1se]), mean, se, scores)


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


def _first_stretch(n_times: int) -> int:
    """How many of some times are traced before the curve is looked at."""
    return int(np.ceil(FIRST * n_times))


def _ends(clock: Array) -> tuple[float, float]:
    return float(clock[0]), float(clock[-1])


def _check_patience(patience: Any) -> int:
    if not isinstance(patience, numbers.Integral) or isinstance(patience, bool) or patience < 1:
        raise ValueError(f"`patience` must be a whole number of times, at least 1, found {patience!r}.")
    return int(patience)


def _warn_if_constant(selection: Selection) -> None:
    """Say so when the score does not tell the times apart, unless there is only the null model to score."""
    path = selection.path
    if len(selection.times) < 2 or path is None or path.result is Result.AT_REST or np.ptp(selection.mean) > 0:
        return
    warnings.warn(
        f"`scoring`: {selection.measure!r} is {selection.mean[0]:.4g} at every time, so it chooses nothing and the "
        'null model is taken; use a measure that sees more, such as "deviance".',
        UserWarning,
        stacklevel=3,
    )


def _warn_if_short(selection: Selection, own_times: bool) -> None:
    """Say so when the best time is the last and the curve has not levelled off."""
    end, path = selection.times[-1], selection.path
    if path is None or path.result is not Result.COMPLETED or selection.t_min != end or len(selection.times) < 2:
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
