"""K-fold cross-validation on one clock, of regressions and of graphs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bregpath._progress import progress_bar
from bregpath._threads import threads
from bregpath._typing import Array, IntArray
from bregpath.flow.integrate import integrate
from bregpath.flow.stop import Result
from bregpath.run import Track
from bregpath.selection.checks import check_count
from bregpath.selection.curves import MIN_FOLDS, aggregate, choose, clear_turn
from bregpath.selection.folds import Folds, make_folds
from bregpath.selection.result import ScoreCurve, Selection
from bregpath.selection.scores import Scorer, make_scorers
from bregpath.structures.study import read_study
from bregpath.study import AbstractStudy

__all__ = ["cross_validate", "validate"]

FIRST = 0.5  # share of the times that is traced before the curve is looked at
STRETCH = 0.12  # share of the times between two looks, which cost more than a few small steps too many
LARGE = 2**23  # bytes of data from which on looking costs nothing in comparison
FEW_TIMES = 20  # that few times are traced on all rows at once


def cross_validate(
    X: Any, y: Any, *, cv: Any = 5, cv_groups: Any = None, scoring: Any = None, full: bool = False, patience: int = 5,
    n_jobs: int | None = None, seed: Any = 0, **options: Any,
) -> Selection:  # fmt: skip
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
    study = read_study(X, y, **options)
    scorers = make_scorers(scoring, study.loss)
    folds = make_folds(cv, X, study.response, study.w, cv_groups, study.loss.is_classifier, seed)
    remedy = "use stratified folds, fewer folds, or `cv_groups` that spread every class over two groups"
    selection = validate(study, lambda fold: scorers, folds, full=full, patience=patience, n_jobs=n_jobs, remedy=remedy)
    _warn_if_constant(selection)
    _warn_if_short(selection, study.options.t is not None)
    return selection


def validate(
    study: AbstractStudy, scorers: Callable[[int], tuple[Scorer, ...]], folds: Folds, *, full: bool = False,
    patience: int = 5, n_jobs: int | None = None, remedy: str,
) -> Selection:  # fmt: skip
    """Cross-validation of anything that can be traced on some rows; the arguments are those of `cross_validate`.

    ``scorers(k)`` measure fold k, all folds by the same measures; ``remedy`` is what to do about rows on which no path
    can be traced.
    """
    patience = check_count("patience", patience, 1)
    for k, (train, _) in enumerate(folds):
        lacking = study.lacking(train)
        if lacking:
            raise ValueError(f"`cv`: the training rows of fold {k} have {lacking}; {remedy}.")
    with threads(n_jobs, len(folds) + 1) as each:
        whole = study.track()
        whole.start()
        clock, options = whole.times, study.options
        # Times and rules of the user act on the path of all rows, which then tells the clock when it has ended.
        at_once = full or options.t is not None or options.stop is not None or len(clock) < FEW_TIMES
        first = len(clock) if at_once else int(np.ceil(FIRST * len(clock)))
        integrate([whole], [float(clock[first - 1])], each=each)
        clock = whole.reached(clock)
        tracks = study.tracks([train for train, _ in folds], clock)
        parts = [_Fold(study, tracks[k], *folds[k], scorers(k), clock) for k in range(len(folds))]
        looks = patience if not full and len(folds) >= MIN_FOLDS else None
        with progress_bar(options.progress, float(clock[0]), float(clock[-1])) as report:
            curves = _Curves(study, whole, clock, parts, looks, report)
            integrate([whole, *parts], curves.ticks(), curves.have_turned, each)
        return curves.select(min(first, len(clock)))


# --- all folds together --------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Fold:
    """The path on the training rows of a fold, and the scores of the rows held out, so far."""

    study: AbstractStudy
    track: Track
    train: IntArray
    test: IntArray
    scorers: tuple[Scorer, ...]
    clock: Array
    scores: Array = field(default_factory=lambda: np.zeros((0, 0)))  # (measures, times)
    etas: list[Any] = field(default_factory=list)

    def reach(self, until: float) -> None:
        self.track.reach(until)
        times = self.clock[self.scores.shape[1] : np.searchsorted(self.clock, until, side="right")]
        held = self.study.held_out(self.track, self.test, times)
        scores = np.array([scorer.score(held) for scorer in self.scorers])
        self.scores = np.append(self.scores, scores, axis=1) if self.etas else scores
        self.etas.append(held.eta)

    def train_scores(self, k: int, times: Array) -> Array:
        """Scores of the training rows by one of the measures."""
        return self.scorers[k].score(self.study.held_out(self.track, self.train, times))

    def end(self, until: Array) -> Any:
        """The path up to there; neither it nor the fold keeps data of its own."""
        path = self.study.report(replace(self.track.path(until), _continue=None), self.track)
        self.track.release()
        self.etas.clear()
        return path


@dataclass(eq=False)
class _Curves:
    """Folds that advance together with the path of all rows, and the curves of their scores so far.

    ``patience`` is None where the whole clock is run, whatever the curves do.
    """

    study: AbstractStudy
    whole: Track
    clock: Array
    folds: list[_Fold]
    patience: int | None
    report: Callable[[float], None]
    turn: int | None = None

    def __post_init__(self) -> None:
        self.next_look = len(self.clock) if self.patience is None else int(np.ceil(FIRST * len(self.clock)))
        self.weights = np.array([self.study.w[fold.test].sum() for fold in self.folds])

    def ticks(self) -> Iterator[float]:
        """The times at which the curves are looked at; which, is decided as they grow."""
        last = len(self.clock) - 1
        return (float(time) for i, time in enumerate(self.clock) if i + 1 >= self.next_look or i == last)

    def have_turned(self, tick: float) -> bool:
        """Whether all curves have turned, or there is no more to come; else when to look again."""
        self.report(tick)
        if self.patience is None or self.whole.record.end < tick * self.whole.unit:
            return True
        total, done, turns, more = len(self.clock), self.folds[0].scores.shape[1], [], 1
        longest = self.patience if self.study.nbytes >= LARGE else max(self.patience, round(STRETCH * total))
        for k, scorer in enumerate(self.folds[0].scorers):
            mean, se = aggregate(np.stack([fold.scores[k] for fold in self.folds]), self.weights)
            turn, run = clear_turn(
                mean, se, self.patience, larger_is_better=scorer.larger_is_better, smooth=scorer.is_smooth
            )
            turns.append(turn)
            if turn is None:
                more = max(more, self.patience - run if run else longest)
        self.next_look = done + more
        self.turn = None if None in turns else max(turn for turn in turns if turn is not None)
        return self.turn is not None

    def select(self, traced: int) -> Selection:
        """The result: the curves up to where they turned, or where the path of all rows ended by itself.

        ``traced`` of the times are those to which that path was traced beforehand.
        """
        study, folds, done = self.study, self.folds, self.folds[0].scores.shape[1]
        path = study.report(self.whole.path(self.clock[: max(traced, done)]), self.whole)
        n_times = done if self.turn is None else self.turn + 1
        ended = path.t[-1] < self.clock[n_times - 1]
        if ended:
            n_times = int(np.searchsorted(self.clock, path.t[-1]))
        times, scorers = self.clock[:n_times], folds[0].scorers
        scores = {
            scorer.name: _curve(scorer, times, np.stack([fold.scores[k, :n_times] for fold in folds]), self.weights)
            for k, scorer in enumerate(scorers)
        }
        out_of_fold = _gather(folds, n_times, len(study.w))
        fold_paths = tuple(fold.end(self.clock[done - 1 : done]) for fold in folds)

        def train(measure: str) -> Array:
            return np.stack([fold.train_scores(list(scores).index(measure), times) for fold in folds])

        first = scores[scorers[0].name]
        return Selection(
            rule=f"{len(folds)}-fold cross-validation",
            t=first.t_min,
            times=times,
            curves={"df": study.sizes(path)[:n_times]},
            fold_weights=self.weights,
            out_of_fold=out_of_fold,
            path=path,
            folds=tuple((fold.train, fold.test) for fold in folds),
            fold_paths=fold_paths,
            scores=scores,
            stopped_early=self.turn is not None and not ended and n_times < len(self.clock),
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


def _gather(folds: list[_Fold], n_times: int, n: int) -> Array | None:
    """Held-out predictors in the order of the rows; the mean where a row was held out more than once."""
    if folds[0].etas[0] is None:
        return None
    out, count = np.zeros((n_times, n, *folds[0].etas[0].shape[2:])), np.zeros(n)
    for fold in folds:
        out[:, fold.test] += np.concatenate(fold.etas)[:n_times]
        count[fold.test] += 1
    count[count == 0] = np.nan
    return out / (count if out.ndim == 2 else count[:, None])


# --- warnings ------------------------------------------------------------------------------------------------


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
