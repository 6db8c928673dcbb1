"""The second knob: several kappas on one clock, which of them go on, and which one is chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from bregpath import _validation
from bregpath._typing import Array
from bregpath.flow.integrate import Advances
from bregpath.selection.curves import (
    PAIRED_MARGIN,
    PAST,
    aggregate,
    curve_of,
    is_clearly_better,
    lowest,
    paired_error,
    paired_turn,
)
from bregpath.selection.fold_curves import FoldCurves
from bregpath.selection.result import ScoreCurve, Selection

__all__ = [
    "BLENDED",
    "CV_RULES",
    "PRUNED",
    "KAPPAS",
    "UNDAMPED",
    "Entrant",
    "Race",
    "check_average",
    "check_kappas",
    "check_stop_of_kappas",
    "choose_kappas",
    "chosen_by",
    "path_is_better",
    "window",
]

CV_RULES = ("cv", "cv-1se", "cv-sparse")  # how estimators ask for a point of a cross-validation
BLENDED = "cv-blend"  # and, of regressions, for the average of all good models, ...
PRUNED = "cv-pruned"  # ... or for what is left of the sparsest
# Of kappa="cv". Two more between these cost half as much again, and the models chosen are no better: curves of kappas
# that are close to each other differ by luck.
KAPPAS = (0.1, 1.0, 10.0, 30.0)
# From this kappa on, the window of a path does not depend on it. Below, coefficients grow the slower the smaller kappa
# is, and the window is longer in proportion.
UNDAMPED = 10.0
STRETCH = 8  # times over which the gain of a kappa is taken
STILL = 0.05  # of its distance from another one: a kappa that moves less during a stretch stands still
SURELY = 6.0  # times what a kappa may still gain, if it is given up however little others are ahead


def check_kappas(kappa: Any) -> tuple[float, ...] | None:
    """The kappas to choose from: those of "cv", or a list; None where there is nothing to choose.

    Examples
    --------
    >>> check_kappas(10.0), check_kappas([1, 10]), len(check_kappas("cv"))
    (None, (1.0, 10.0), 4)
    """
    if isinstance(kappa, str):
        if kappa != "cv":
            raise TypeError(f'`kappa` must be a number, a list of numbers, or "cv", found {kappa!r}.')
        return KAPPAS
    if np.ndim(kappa) == 0:
        return None  # a single number, which is checked where it is used
    values = [_validation.check_number("kappa", value) for value in np.asarray(kappa, dtype=object).ravel().tolist()]
    if not values:
        raise ValueError('`kappa` is an empty list; name the values to choose from, or pass "cv".')
    if np.ndim(kappa) > 1 or (np.diff(values) <= 0).any():
        raise ValueError(f"`kappa` must be a list of numbers that increase strictly, found {kappa!r}; sort it.")
    return tuple(values)


def check_average(average: Any, all_knobs: bool, structure: Any = None) -> Any:
    """What "auto" stands for: a linear mean where kappa="cv" leaves all knobs to us; else the path itself.

    Examples
    --------
    >>> check_average("auto", True), check_average("auto", False), check_average("uniform", True)
    ('linear', None, 'uniform')
    """
    if isinstance(average, str) and average == "auto":
        return "linear" if all_knobs and structure is None else None
    return average


def check_stop_of_kappas(stop: Any, several: bool) -> None:
    """What an estimator chooses by must be able to choose a kappa, if there are several, and only then a sparse one."""
    if several and not (isinstance(stop, str) and stop in (*CV_RULES, PRUNED, BLENDED, "mdc")):
        raise ValueError(
            f'Several values of `kappa` are chosen from by cross-validation: use `stop`="cv" or "cv-sparse", or one '
            f"kappa; found stop={stop!r}."
        )
    if stop == "cv-sparse" and not several:
        raise ValueError('`stop`="cv-sparse" chooses among several values of `kappa`; pass kappa="cv" or a list.')


def chosen_by(selection: Selection, rule: str) -> Selection:
    """The point of a cross-validation that one of `CV_RULES` means, or of which more is made."""
    if rule == "cv-sparse" or (rule == PRUNED and selection.kappa_sparse is not None):
        return selection.sparse()
    return selection.one_se() if rule == "cv-1se" else selection


def window(t_ratio: float, kappa: float) -> float:
    """How far a path of this kappa is followed, as a multiple of t0."""
    return t_ratio * max(1.0, UNDAMPED / kappa)


@dataclass(frozen=True, eq=False)
class Entrant:
    """A track of one kappa; ticks count times, which are those of its own window."""

    track: Advances
    curves: FoldCurves

    def reach(self, tick: float) -> None:
        if self.curves.is_due(tick):
            clock = self.curves.clock
            self.track.reach(float(clock[min(int(tick), len(clock)) - 1]))


@dataclass(eq=False)
class Race:
    """Folds of all kappas that advance together, each until its curve has turned or it has fallen too far behind.

    A kappa is given up once its best score so far, or that of its path where it is read as a mean, is worse than that
    of another by more than a standard error of their difference within folds, and by more than what it may still gain
    (see `_prospect`). If it is the larger of the two it might be the sparse choice in spite of that, unless it is worse
    by more than a standard error of the other score as well; if it is the smaller, it is enough that its path is worse
    than that of the other by 1.5 standard errors. It is given up too, however little others are ahead, where
    neither choice would fall on it if it gained six times as much. Who stands still may be about to jump, and is not
    given up: paths of large kappas and of structures move in steps.
    """

    curves: Sequence[FoldCurves]
    report: Callable[[float], None]

    def __post_init__(self) -> None:
        self._seen: dict[tuple[float, int, int], tuple[Array, Outlook]] = {}

    def ticks(self) -> Iterator[float]:
        """Numbers of times at which somebody is looked at; which, is decided as curves grow."""
        most = max(len(one.clock) for one in self.curves)
        return (float(tick) for tick in range(1, most + 1) if any(one.is_due(tick) for one in self.curves))

    def is_over(self, tick: float) -> bool:
        """Look at those that have advanced, and give up who is hopeless."""
        looked = [one for one in self.curves if one.is_due(tick)]
        for one in looked:
            one.look()
        clock = max((one.clock for one in self.curves), key=len)
        self.report(float(clock[int(tick) - 1]))
        if len(self.curves) > 1 and all(one.looks.patience is not None for one in self.curves):
            for one in self.curves:
                if not one.is_over:
                    # To be behind counts only for one that has just caught up with the others.
                    one.is_given_up = one.done >= one.looks.give_up_from and (
                        self._is_out(one) or (one in looked and self._is_hopeless(one))
                    )
                    one.is_over = one.is_given_up
        return all(one.is_over for one in self.curves)

    def _is_hopeless(self, one: FoldCurves) -> bool:
        """Behind by all of the measures."""
        return all(self._is_behind(one, k) for k in range(len(one.folds[0].scorers)))

    def _is_out(self, one: FoldCurves) -> bool:
        """Neither of the choices would be this one's by any of the measures."""
        return all(self._has_lost(one, k) for k in range(len(one.folds[0].scorers)))

    def _rivals(self, one: FoldCurves) -> list[FoldCurves]:
        return [other for other in self.curves if other.done and other is not one]

    def _is_behind(self, one: FoldCurves, k: int) -> bool:
        """By one of the measures; a mean follows its path, so that it is enough if the path is."""
        for mine in self._outlooks(one, k):
            for other in self._rivals(one):
                theirs = self._outlooks(other, k)[0]
                if not mine.stays_above(theirs.best):
                    continue
                errors = [paired_error(mine.place[:, None], theirs.place[:, None], one.weights)]
                if other.study.kappa < one.study.kappa:
                    errors.append(aggregate(theirs.place[:, None], one.weights)[1])
                if max(errors) < mine.best - theirs.best:
                    return True
        return self._is_behind_a_path(one, k)

    def _is_behind_a_path(self, one: FoldCurves, k: int) -> bool:
        """Whether the path itself is clearly behind that of a larger kappa, whose mean may lag."""
        itself = self._outlooks(one, k)[-1]
        for other in self._rivals(one):
            theirs = self._outlooks(other, k)[-1]
            if other.study.kappa > one.study.kappa and itself.stays_above(theirs.best):
                error = paired_error(itself.place[:, None], theirs.place[:, None], one.weights)
                if PAIRED_MARGIN * error < itself.best - theirs.best:
                    return True
        return False

    def _has_lost(self, one: FoldCurves, k: int) -> bool:
        """Whether neither choice would be this one's, by one of the measures, if it gained far more than is foreseen.

        The best choice is another one's. The sparse one is too if the path has turned, stays above one of a larger
        kappa, or above what is within one standard error of the best.
        """
        mine, rivals, weights = self._outlooks(one, k), self._rivals(one), one.weights
        ahead = min((self._outlooks(other, k)[0] for other in rivals), key=itemgetter(0), default=None)
        if ahead is None or not mine[0].stays_above(ahead.best, SURELY, is_late=mine[0].is_late):
            return False
        limits = [self._outlooks(other, k)[-1].best for other in rivals if other.study.kappa > one.study.kappa]
        limits.append(ahead.best + float(aggregate(ahead.place[:, None], weights)[1][0]))
        if mine[-1].stays_above(min(limits), SURELY, is_late=mine[-1].is_late):
            return True
        itself, larger, patience = one.all_scores(k)[-1], one.folds[0].scorers[k].larger_is_better, one.looks.patience
        return patience is not None and paired_turn(itself, weights, patience, larger_is_better=larger)[0] is not None

    def _outlooks(self, one: FoldCurves, k: int) -> list[Outlook]:
        """Of the curve of a measure, and of that of the path itself where it is read as a mean; found once a look."""
        sign, times = -1.0 if one.folds[0].scorers[k].larger_is_better else 1.0, one.clock[: one.done]
        out = []
        for i, scores in enumerate(one.all_scores(k)):
            known = self._seen.get((one.study.kappa, k, i))
            if known is None or known[0] is not scores:
                known = self._seen[one.study.kappa, k, i] = scores, Outlook.of(sign * scores, one.weights, times)
            out.append(known[1])
        return out


class Outlook(NamedTuple):
    """The lowest point of a curve so far, the scores of the folds there, and what may become of it."""

    best: float
    place: Array
    gain: float  # that may still come
    moved: float  # during the last stretch
    is_late: bool  # whether the time has doubled since

    @classmethod
    def of(cls, scores: Array, weights: Array, times: Array) -> Outlook:
        curve = curve_of(scores, weights)
        i, moved = int(curve.argmin()), float(np.ptp(curve[-STRETCH:]))
        return cls(float(curve[i]), scores[:, i], _prospect(curve), moved, bool(PAST * times[i] <= times[-1]))

    def stays_above(self, limit: float, surely: float = 1.0, is_late: bool = False) -> bool:
        """Even with some times the gain that may still come; who stands still may be about to jump, unless it is late
        for that.
        """
        above = self.best - limit
        return surely * self.gain < above and (is_late or above < self.moved / STILL)


def _prospect(curve: Array) -> float:
    """What a curve may still gain: twice of what it has during the last stretch, or less where it slows down.

    If it has gained less than in the stretch before, it will go on to do so by the same factor.

    Examples
    --------
    >>> import numpy as np
    >>> steady, slowing = -np.arange(24.0), 2.0 ** -np.arange(3).repeat(8)
    >>> [float(_prospect(curve)) for curve in (steady, slowing)]
    [16.0, 0.25]
    """
    best = np.minimum.accumulate(curve)
    now, before, earlier = (float(best[max(0, len(best) - 1 - k * STRETCH)]) for k in range(3))
    gain, last = before - now, earlier - before
    return min(2 * gain, gain**2 / (last - gain)) if gain < last < np.inf else 2 * gain


def path_is_better(means: Mapping[float, ScoreCurve], plain: Mapping[float, ScoreCurve], weights: Array) -> bool:
    """Whether some path itself is clearly better than the means of all of them."""
    sign = -1.0 if next(iter(means.values())).larger_is_better else 1.0
    all_means, all_plain = (
        np.concatenate([sign * curve.fold_scores for curve in some.values()], axis=1) for some in (means, plain)
    )
    return is_clearly_better(all_plain, all_means, weights)


def choose_kappas(
    curves: Mapping[float, ScoreCurve], weights: Array, plain: Mapping[float, ScoreCurve] | None = None
) -> tuple[float, float]:
    """The kappa of the best score of all, and the largest one whose best score is within one standard error of it.

    The latter by the ``plain`` curves, of the paths themselves, if those are others; where none is, their best one.
    """
    sign = -1.0 if next(iter(curves.values())).larger_is_better else 1.0
    bests, alone = (
        {kappa: lowest(sign * curve.fold_scores, weights) for kappa, curve in some.items()}
        for some in (curves, plain or curves)
    )
    least = min(best for best, _ in bests.values())
    chosen = max(kappa for kappa, (best, _) in bests.items() if best <= least + 1e-12 * abs(least))
    error = float(aggregate(bests[chosen][1][:, None], weights)[1][0])
    limit = bests[chosen][0] + (error if np.isfinite(error) else 0.0)
    limit = max(limit, min(best for best, _ in alone.values()))
    return chosen, max(kappa for kappa, (best, _) in alone.items() if best <= limit)
