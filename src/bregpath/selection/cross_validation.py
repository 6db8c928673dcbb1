"""K-fold cross-validation on one clock, of regressions and of graphs, for one kappa or several."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from bregpath._progress import progress_bar
from bregpath._threads import threads
from bregpath._typing import Array
from bregpath.flow.integrate import integrate
from bregpath.flow.stop import Result
from bregpath.run import Track
from bregpath.selection.checks import check_choice, check_count
from bregpath.selection.curves import MIN_FOLDS, SE_RULES
from bregpath.selection.fold_curves import FoldCurves, FoldsOfKappas, FoldTrack, Looks
from bregpath.selection.folds import Folds, make_folds
from bregpath.selection.kappas import (
    UNDAMPED,
    Entrant,
    Race,
    check_average,
    check_kappas,
    choose_kappas,
    path_is_better,
    window,
)
from bregpath.selection.on_demand import OnDemand
from bregpath.selection.result import Selection
from bregpath.selection.scores import Scorer, make_scorers
from bregpath.structures.study import read_study
from bregpath.study import AbstractStudy, Source

__all__ = ["cross_validate", "validate"]

FIRST = 0.5  # share of the times that is traced before the curve is looked at
STRETCH = 0.12  # share of the times between two looks, which cost more than a few small steps too many
FIRST_OF_SEVERAL, STRETCH_OF_SEVERAL = 0.4, 0.1  # the same where kappas compete, and looks are many
USUAL_RATIO = 100.0  # the window of which these are shares
LARGE = 2**23  # bytes a step from which on looking costs nothing in comparison, ...
FIRST_OF_LARGE = 0.25  # ... so that it is done sooner, and as often as it can tell something
SMALL, STRETCH_OF_SMALL = 2**16, 0.25  # bytes of a Gram matrix up to which steps cost nothing in comparison, ...
SMALL_ROWS = 2**18  # ... and of the data
SMALL_OF_SEVERAL = 0.5, 0.3  # shares of the times, where kappas compete and steps cost nothing
WIDE = 0.25  # columns a row from which on paths explain their rows soon, ...
EARLIER = 0.75  # ... and a first look by this share of the usual one may find that curves have turned
ROUNDING = 1e-14  # of scores, by which those of one and the same model may differ
FEW_TIMES = 20  # that few times are traced on all rows at once


def cross_validate(
    X: Any, y: Any, *, cv: Any = 5, cv_groups: Any = None, scoring: Any = None, full: bool = False, patience: int = 5,
    se_rule: str = "paired", n_jobs: int | None = None, seed: Any = 0, **options: Any,
) -> Selection:  # fmt: skip
    r"""Choose t, and kappa if there are several, by K-fold cross-validation.

    The path on all rows gives the clock: every fold is traced on its training rows and read at the same
    times, in the user's units. A fold whose path ends early (it explains all its training rows) keeps its
    last model. With :math:`m_f(t)` the score of the rows held out in fold f and :math:`W_f` their total
    weight,

    .. math:: m(t) = \frac{\sum_f W_f m_f(t)}{\sum_f W_f}, \qquad
              s(t)^2 = \frac{1}{K - 1} \frac{\sum_f W_f (m_f(t) - m(t))^2}{\sum_f W_f}.

    `Selection.t` is the best time; ``.one_se()`` gives the smallest time within one standard error of it. Of several
    kappas `Selection.kappa` is the best one, and ``.sparse()`` gives the largest one within one standard error. With
    ``kappa="cv"`` the best one is chosen among paths that are read as their linear means over time (``average``), which
    predict better as a rule, unless a path itself is better by half a standard error; the sparse one is chosen among
    the paths themselves. ``average=None`` chooses both among the latter, a mean that is asked for by name is the best.

    All folds advance together and stop once the curve has clearly turned: when ``patience`` times in a row are
    worse than the best one before them by more than the standard errors of both, :math:`s(t) + s(t_{best})` (for the
    deviance, whose curve is smooth, by more than the larger of the two; and at more than twice the best time by more
    than 1.5 standard errors of the difference within folds). Up to there the result is that of the whole window.
    Several kappas advance together. Of them a time is worse if it is so by more than 1.5 standard errors of the
    difference within folds; where paths are read as means, it is the path itself that must have turned, and its mean
    must fall no longer; a kappa ends as well when neither has had a better score since half of the time. A kappa is
    given up when its best score is worse than that of another one by more than a standard error of the difference
    within folds, and by more than it may still gain if it goes on as lately; one that is larger than the other might be
    the sparse choice, and must be worse by more than a standard error of the score too. It is given up as well where no
    choice would be its even if it gained far more than that. The path on all rows of the sparse choice is traced when
    `Selection.sparse` is first called, on ``X`` as it is then.

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
    se_rule : {"paired", "glmnet"}, default "paired"
        Which standard error `Selection.t_1se` is about: that of the difference to the best time within folds, or that
        of the score at the best time, which contains how much folds differ, and takes more of the model away.
    n_jobs : int, optional
        Number of threads over the folds; -1 is one for each processor. The result does not depend on it.
    seed : int, Generator, RandomState or None, default 0
        How rows are shuffled into ``cv`` folds.
    **options
        Keyword arguments of `trace_path`. ``kappa`` may be a list of numbers, in increasing order, or "cv", which
        is 0.1, 1, 10 and 30. The window of a kappa below 10 is longer, ``t_ratio * 10 / kappa``, because
        coefficients grow slower in proportion. ``stop`` acts on the path of all rows only, which is then traced to
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
    kappas, all_knobs = check_kappas(options.get("kappa", 10.0)), isinstance(options.get("kappa"), str)
    if kappas is not None:
        options["kappa"] = kappas[0]
    wished = options.get("average", "auto")
    options["average"] = check_average(wished, all_knobs, options.get("structure"))
    study = read_study(X, y, **options)
    scorers = make_scorers(scoring, study.loss)
    folds = make_folds(cv, X, study.response, study.w, cv_groups, study.loss.is_classifier, seed)
    remedy = "use stratified folds, fewer folds, or `cv_groups` that spread every class over two groups"
    selection = validate(
        study, lambda fold: scorers, folds, kappas=kappas, must_average=options["average"] == wished, full=full,
        patience=patience, se_rule=se_rule, n_jobs=n_jobs, remedy=remedy,
    )  # fmt: skip
    _warn_if_constant(selection)
    _warn_if_short(selection, study.options.t is not None)
    return selection


def validate(
    study: AbstractStudy, scorers: Callable[[int], tuple[Scorer, ...]], folds: Folds, *,
    kappas: tuple[float, ...] | None = None, must_average: bool = False, full: bool = False, patience: int = 5,
    se_rule: str = "paired", n_jobs: int | None = None, remedy: str,
) -> Selection:  # fmt: skip
    """Cross-validation of anything that can be traced on some rows; the arguments are those of `cross_validate`.

    ``scorers(k)`` measure fold k, all folds by the same measures; ``remedy`` is what to do about rows on which no path
    can be traced. ``kappas`` are those to choose from, if any; where paths are read as means, the best may still be a
    path itself, unless it ``must_average``.
    """
    patience = check_count("patience", patience, 1)
    check_choice("se_rule", se_rule, SE_RULES)
    for k, (train, _) in enumerate(folds):
        lacking = study.lacking(train)
        if lacking:
            raise ValueError(f"`cv`: the training rows of fold {k} have {lacking}; {remedy}.")
    looks = None if full or len(folds) < MIN_FOLDS else patience
    if kappas is None:
        return _validate_one(study, scorers, folds, full, looks, se_rule, n_jobs)
    if np.isinf(study.kappa):
        raise ValueError('`kappa` is a list, but this `flow` has no kappa; use flow="glbi", or leave `kappa` out.')
    if study.options.step != "adaptive":
        raise ValueError(
            f"`kappa` is a list, but `step`={study.options.step!r} is fixed, and which step is stable depends on "
            'kappa; use step="adaptive", or one kappa.'
        )
    return _validate_several(study, scorers, folds, kappas, must_average, looks, se_rule, n_jobs)


def _validate_one(
    study: AbstractStudy, scorers: Callable[[int], tuple[Scorer, ...]], folds: Folds, full: bool,
    patience: int | None, se_rule: str, n_jobs: int | None,
) -> Selection:  # fmt: skip
    """The path of all rows advances with the folds."""
    with threads(n_jobs, len(folds) + 1) as each:
        whole, options, training = study.track(), study.options, [train for train, _ in folds]
        whole.start()
        clock, looks = whole.times, _looks(study, whole, whole.times, 1.0, (FIRST, STRETCH), patience)
        # Times and rules of the user act on the path of all rows, which then tells the clock when it has ended.
        at_once = full or options.t is not None or options.stop is not None or len(clock) < FEW_TIMES
        first = len(clock) if at_once else looks.first
        integrate([whole], [float(clock[first - 1])], each=each)
        n_reached, clock = len(whole.reached(clock)), _clock_of(whole, clock)
        parts = _fold_tracks(study, scorers, folds, clock, study.sources(training, whole=whole))
        looks = _looks(study, whole, clock, 1.0, (FIRST, STRETCH), patience)
        curves = FoldCurves(study, whole, clock, parts, replace(looks, first=min(looks.first, n_reached)))
        with progress_bar(options.progress, float(clock[0]), float(clock[-1])) as report:
            race = Race([curves], report)
            tracks = [Entrant(whole, curves), *(Entrant(part, curves) for part in parts)]
            integrate(tracks, race.ticks(), race.is_over, each)
        curves.follow(curves.done, (curve.t_min for curve in curves.measured(se_rule).values()))
        return curves.select(max(min(first, len(clock)), curves.done), se_rule)


def _validate_several(
    study: AbstractStudy, scorers: Callable[[int], tuple[Scorer, ...]], folds: Folds, kappas: tuple[float, ...],
    must_average: bool, patience: int | None, se_rule: str, n_jobs: int | None,
) -> Selection:  # fmt: skip
    """Folds of all kappas on one clock; then the choice."""
    with threads(n_jobs, len(folds) * len(kappas)) as each:
        everything, entered = Source(study.on), dict[float, FoldCurves]()
        begun = study.track(everything)
        begun.start()
        t0 = float(begun.times[0])  # which does not depend on kappa
        sources = study.sources([train for train, _ in folds], whole=begun)
        # Where columns are few, most of them move in damped paths: they all work then, the same ones for all kappas.
        n, p = begun.problem.store.shape
        shares_columns = 2 * p <= n and study.can_copy(len(folds))
        for kappa in kappas:
            ratio = window(study.options.t_ratio, kappa)
            screening = study.options.screening and not (kappa < UNDAMPED and shares_columns)
            one = study.with_kappa(kappa).with_options(t_ratio=ratio, screening=screening, progress=False)
            whole = one.track(everything)
            clock = one.options.times(t0)
            n_reached = len(clock)
            if one.options.stop is not None or one.options.t is not None:  # it tells when it has ended, as above
                integrate([whole], [float(clock[-1])], each=each)
                n_reached, clock = len(whole.reached(clock)), _clock_of(whole, clock)
            parts = _fold_tracks(one, scorers, folds, clock, sources, are_several=True)
            is_small = one.step_bytes <= SMALL_ROWS if begun.gram is None else begun.gram.nbytes <= SMALL
            shares = SMALL_OF_SEVERAL if is_small else (FIRST_OF_SEVERAL, STRETCH_OF_SEVERAL)
            looks = _looks(one, begun, clock, window(1.0, kappa), shares, patience)
            is_wide = p > WIDE * n and not is_small and looks.stretch > 0  # not where looks cost nothing
            first = int(np.ceil(EARLIER * looks.first)) if is_wide else looks.first
            looks = replace(looks, first=min(first, n_reached), give_up_from=looks.first, of_several=True)
            entered[kappa] = FoldCurves(one, whole, clock, parts, looks)
        with progress_bar(study.options.progress, t0, window(study.options.t_ratio, kappas[0]) * t0) as report:
            race = Race(list(entered.values()), report)
            tracks = [Entrant(track, curves) for curves in race.curves for track in curves.folds]
            integrate(tracks, race.ticks(), race.is_over, each)
        return _choose(entered, study.options.average is not None, must_average, se_rule)


def _choose(entered: dict[float, FoldCurves], averaged: bool, must_average: bool, se_rule: str) -> Selection:
    """The best of all kappas and the sparse one; the path on all rows of the latter is traced if somebody asks for it.

    What is ``averaged`` predicts better, as a rule, and what is not is sparser: the best one is a mean, unless a path
    itself is clearly better, and the sparse one is one of the paths themselves.
    """
    themselves = entered
    if averaged:
        themselves = {kappa: curves.plain() for kappa, curves in entered.items()}
    mean_surface = {kappa: curves.measured(se_rule) for kappa, curves in entered.items()}
    surface = {kappa: curves.measured(se_rule) for kappa, curves in themselves.items()} if averaged else mean_surface
    choices, plain_best, weights = {}, set(), next(iter(entered.values())).weights
    as_means, as_paths = set[float](), set[float]()  # the kappas that are chosen, and how they are read
    for measure in next(iter(surface.values())):
        means, plain = ({kappa: one[kappa][measure] for kappa in entered} for one in (mean_surface, surface))
        if averaged and not must_average and path_is_better(means, plain, weights):
            plain_best.add(measure)
        low, sparse = choices[measure] = choose_kappas(plain if measure in plain_best else means, weights, plain)
        (as_means if averaged and measure not in plain_best else as_paths).add(low)
        as_paths.add(sparse)

    times = {
        kappa: [curve.t_min for one in (mean_surface, surface) for curve in one[kappa].values()] for kappa in entered
    }
    as_read = {
        is_plain: OnDemand(
            {kappa: _selecting(one[kappa], is_plain and averaged, times[kappa], se_rule) for kappa in sorted(some)}
        )
        for is_plain, one, some in ((False, entered, as_means), (True, themselves, as_paths))
    }
    given_up = tuple(kappa for kappa, curves in entered.items() if curves.is_given_up)
    return Selection.of_kappas(
        surface=surface, mean_surface=mean_surface, given_up=given_up, _kappas=choices,
        _plain_best=frozenset(plain_best), _of_kappa=as_read[False] or as_read[True], _plain_of_kappa=as_read[True],
        _folds_of_kappas=FoldsOfKappas.of(entered),
    )  # fmt: skip


def _selecting(curves: FoldCurves, is_plain: bool, times: list[float], se_rule: str) -> Callable[[], Selection]:
    """How to select on the curves of one kappa: its folds end now, the path on all rows is traced when it is called."""
    fold_paths = curves.end()

    def select() -> Selection:
        curves.follow(curves.n_times, times)
        one = replace(curves, whole=curves.whole.read_as(None)) if is_plain else curves
        return one.select(one.n_times, se_rule, fold_paths)

    return select


def _clock_of(whole: Track, times: Array) -> Array:
    """Times up to the end of a path; one that can go on has its end among them, and folds tell how far it should."""
    reached = whole.reached(times)
    return np.union1d(reached, times) if whole.can_go_on else reached


def _looks(
    study: AbstractStudy, whole: Track, clock: Array, factor: float, shares: tuple[float, float], patience: int | None
) -> Looks:
    """A window that is longer than usual is looked at as often as one of the usual length would be at these times."""
    total = int(np.searchsorted(clock, factor * USUAL_RATIO * (1 + 1e-9) * clock[0], side="right"))
    (first, stretch), gram, whole_bytes = shares, whole.gram, 8 * np.prod(whole.problem.store.shape)
    if (study.step_bytes if gram is None else gram.nbytes) >= LARGE:
        first, stretch = min(FIRST_OF_LARGE, first), 0.0
    elif whole_bytes <= SMALL_ROWS if gram is None else gram.nbytes <= SMALL:
        stretch = max(STRETCH_OF_SMALL, stretch)
    return Looks(max(1, int(np.ceil(first * total))), round(stretch * total), patience)


def _fold_tracks(
    study: AbstractStudy, scorers: Callable[[int], tuple[Scorer, ...]], folds: Folds, clock: Array,
    sources: list[Source], are_several: bool = False,
) -> list[FoldTrack]:  # fmt: skip
    tracks = study.tracks([train for train, _ in folds], clock, sources=sources)
    has_plain = are_several and study.options.average is not None
    parts = []
    for k, fold in enumerate(folds):
        measures = scorers(k)
        source = sources[k] if are_several and all(scorer.is_smooth for scorer in measures) else None
        parts.append(FoldTrack(study, tracks[k], *fold, measures, clock, has_plain, source))
    return parts


# --- warnings ------------------------------------------------------------------------------------------------


def _warn_if_constant(selection: Selection) -> None:
    """Say so when the score does not tell the times apart, unless there is only the null model to score."""
    path, scores = selection.path, selection.mean[np.isfinite(selection.mean)]
    if len(selection.times) < 2 or path is None or path.result is Result.AT_REST:
        return
    if np.ptp(scores) > ROUNDING * np.abs(scores).max(initial=0.0):
        return
    remedy = 'use a measure that sees more, such as "deviance"'
    if selection.measure == "deviance":
        remedy = "models of folds do not change within these times; ask for later ones, or a smaller `kappa`"
    warnings.warn(
        f"`scoring`: {selection.measure!r} is {scores[0]:.4g} at every time, so it chooses nothing and the null model "
        f"is taken; {remedy}.",
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
