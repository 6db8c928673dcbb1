"""Folds that advance together, and the curves of their scores so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from bregpath._typing import Array, IntArray
from bregpath.run import Track
from bregpath.selection.curves import aggregate, choose, clear_turn, is_clearly_better, is_past, not_best, paired_turn
from bregpath.selection.result import ScoreCurve, Selection
from bregpath.selection.scores import Scorer
from bregpath.study import AbstractStudy, Source

__all__ = ["FoldCurves", "FoldTrack", "FoldsOfKappas", "Looks"]


@dataclass(frozen=True)
class Looks:
    """When curves are looked at, as numbers of times, and what ends them.

    ``patience`` is None where the whole clock is run, whatever the curves do. Curves ``of_several`` kappas end sooner:
    a turn is told by the differences within folds, and nobody waits for a path on all rows. None of them is given up
    before ``give_up_from`` times: who is behind at the beginning may well win.
    """

    first: int
    stretch: int
    patience: int | None
    of_several: bool = False
    give_up_from: int = 0


@dataclass(eq=False)
class FoldTrack:
    """The path on the training rows of a fold, and the scores of the rows held out, so far.

    Where it ``has_plain`` ones, the path is read as a mean, and its scores without an average are kept beside.
    """

    study: AbstractStudy
    track: Track
    train: IntArray
    test: IntArray
    scorers: tuple[Scorer, ...]
    clock: Array
    has_plain: bool = False
    source: Source | None = None  # of these rows, where tracks of several kappas share it for the deviance alone

    def __post_init__(self) -> None:
        self.scores = self.plain_scores = np.zeros((len(self.scorers), 0))  # (measures, times)

    @cached_property
    def _read(self) -> Callable[[Track, Array], Any]:
        return self.study.reader(self.test, self.source)

    def reach(self, until: float) -> None:
        self.track.reach(until)
        before = self.plain_scores
        times = self.clock[self.scores.shape[1] : self.clock.searchsorted(until, side="right")]
        # With and without an average at once: to gather the rows held out costs more than the products with them.
        track = self.track.with_plain() if self.has_plain else self.track
        held = self._read(track, times)
        more = np.array([scorer.score(held) for scorer in self.scorers])
        self.scores = np.concatenate([self.scores, more[:, : len(times)]], axis=1)
        self.plain_scores = self.scores
        if self.has_plain:
            self.plain_scores = np.concatenate([before, more[:, -len(times) :]], axis=1)

    def plain(self) -> FoldTrack:
        """The path itself, where it is read as a mean."""
        fold = replace(self, track=self.track.read_as(None), has_plain=False, source=None)
        fold.scores = fold.plain_scores = self.plain_scores
        return fold

    def end(self, until: Array) -> Any:
        """The path up to there; neither it nor the fold keeps data of its own."""
        path = self.track.path(until)
        path = self.study.report(path.without_data(), self.track)
        self.release()
        return path

    def release(self) -> None:
        """Forget the data."""
        self.track.release()
        self.source = None
        vars(self).pop("_read", None)  # with what it has kept


class FoldRows:
    """What is read of the rows of the folds only if somebody asks for it, at the times of the curves."""

    def __init__(self, folds: list[FoldTrack], times: Array) -> None:
        self.folds, self._times = folds, times

    def train_scores(self, measure: str) -> Array:
        """Scores of the training rows of each fold: (n_folds, n_times)."""
        k = [scorer.name for scorer in self.folds[0].scorers].index(measure)
        held = (fold.study.held_out(fold.track, fold.train, self._times) for fold in self.folds)
        return np.stack([fold.scorers[k].score(rows) for fold, rows in zip(self.folds, held, strict=True)])

    @cached_property
    def out_of_fold(self) -> Array | None:
        """Held-out predictors in the order of the rows; the mean where a row was held out more than once."""
        etas = [fold.study.held_out(fold.track, fold.test, self._times).eta for fold in self.folds]
        if etas[0] is None:
            return None
        n = len(self.folds[0].study.w)
        out, count = np.zeros((len(self._times), n, *etas[0].shape[2:])), np.zeros(n)
        for fold, eta in zip(self.folds, etas, strict=True):
            out[:, fold.test] += eta
            count[fold.test] += 1
        count[count == 0] = np.nan
        out /= count if out.ndim == 2 else count[:, None]
        return out

    @property
    def has_data(self) -> bool:
        return "folds" in vars(self)

    def __getstate__(self) -> dict[str, Any]:
        return {"out_of_fold": self.out_of_fold}  # the data stay behind


@dataclass(eq=False)
class FoldCurves:
    """All folds of one study on the clock of the path on all rows, which may advance with them or follow later."""

    study: AbstractStudy
    whole: Track
    clock: Array
    folds: list[FoldTrack]
    looks: Looks
    turn: int | None = None
    is_over: bool = False
    is_given_up: bool = False  # because other kappas are ahead

    def __post_init__(self) -> None:
        self.next_look = len(self.clock) if self.looks.patience is None else self.looks.first
        self._stacked: dict[tuple[str, int], Array] = {}
        self._measured: dict[tuple[str, int], dict[str, ScoreCurve]] = {}  # by rule and number of times

    def plain(self) -> FoldCurves:
        """The curves of the paths themselves, where they are read as means; not yet that of the path on all rows."""
        curves = replace(self, folds=[fold.plain() for fold in self.folds])
        curves.weights = self.weights
        return curves

    @cached_property
    def weights(self) -> Array:
        """Of the rows that each fold holds out."""
        return np.array([self.study.w[fold.test].sum() for fold in self.folds])

    @property
    def done(self) -> int:
        """How many times have been scored."""
        return self.folds[0].scores.shape[1]

    def is_due(self, tick: float) -> bool:
        """Whether the folds advance at a tick of the clock, which counts its times."""
        return not self.is_over and (tick >= self.next_look or tick >= len(self.clock))

    def scores(self, k: int) -> Array:
        """Of one of the measures, in each fold."""
        return self._stack("scores", k)

    def plain_scores(self, k: int) -> Array:
        """The same of the paths themselves, where they are read as means."""
        return self._stack("plain_scores", k)

    def _stack(self, kind: str, k: int) -> Array:
        """One measure of all folds, put together once between two looks."""
        known = self._stacked.get((kind, k))
        if known is None or known.shape[1] < self.done:
            known = self._stacked[kind, k] = np.stack([getattr(fold, kind)[k] for fold in self.folds])
        return known

    def all_scores(self, k: int) -> list[Array]:
        """Both of these, or the one that there is."""
        return [self.scores(k), self.plain_scores(k)] if self.folds[0].has_plain else [self.scores(k)]

    def look(self) -> None:
        """See whether all curves have turned, or there is no more to come; else when to look again."""
        total, patience = len(self.clock), self.looks.patience
        ended = all(fold.track.record.result is not None for fold in self.folds)
        if not self.looks.of_several and not self.whole.can_go_on:
            ended = self.whole.record.end < self.clock[self.done - 1] * self.whole.unit
        if patience is None or ended or self.done == total:
            self.is_over = True
        if patience is None or ended:
            return
        turns, more = [], 1
        for k in range(len(self.folds[0].scorers)):
            turn, run = self._turn(k, patience)
            turns.append(turn)
            if turn is None:
                more = max(more, patience - run % patience if run else max(patience, self.looks.stretch))
        self.next_look = self.done + more
        self.turn = None if None in turns else max(turn for turn in turns if turn is not None)
        self.is_over = self.is_over or self.turn is not None

    def _turn(self, k: int, patience: int) -> tuple[int | None, int]:
        """Where the curve of a measure has turned, and how many last points are clearly worse than the best."""
        scorer = self.folds[0].scorers[k]
        larger = scorer.larger_is_better
        if not self.looks.of_several:
            curve = aggregate(self.scores(k), self.weights)
            signs = [clear_turn(*curve, patience, larger_is_better=larger, smooth=scorer.is_smooth)]
            if scorer.is_smooth:  # long after its best point a smaller rise is enough
                times = self.clock[: self.done]
                signs.append(paired_turn(self.scores(k), self.weights, patience, larger_is_better=larger, times=times))
            return min((turn for turn, _ in signs if turn is not None), default=None), max(run for _, run in signs)
        plain, sign = self.plain_scores(k), -1.0 if larger else 1.0
        turn, run = paired_turn(plain, self.weights, patience, larger_is_better=larger)
        # A mean lags behind the path, and turns so slowly that nobody could wait for it to be clearly worse. Where the
        # path itself is clearly better, nobody need wait for it at all.
        if turn is not None:
            itself, mean = (sign * scores[:, : turn + 1] for scores in (plain, self.scores(k)))
            if not is_clearly_better(itself, mean, self.weights):
                mean_curve = aggregate(self.scores(k), self.weights)[0]
                turn = not_best(mean_curve, turn, larger_is_better=larger)
        # Of few rows a curve may rise for ever without doing so clearly.
        times = self.clock[: self.done]
        if turn is None and all(is_past(sign * scores, self.weights, times) for scores in self.all_scores(k)):
            turn = self.done - 1
        return turn, run

    def follow(self, n_times: int, chosen: Iterable[float]) -> None:
        """Trace the path on all rows to the first times; past its saturation, only to those that may be chosen.

        Folds may have something left to explain where all rows have not: a variable that these have just taken in.
        """
        self.whole.reach(float(self.clock[n_times - 1]))
        self.whole.reach_past_saturation(max(chosen))

    def followed_to(self, t: float) -> Track:
        """The path on all rows, at least to some time of the clock."""
        self.follow(int(self.clock.searchsorted(t, side="right")) or 1, [t])
        return self.whole

    def end(self) -> tuple[Any, ...]:
        """The paths of the folds, which forget their data."""
        return tuple(fold.end(self.clock[self.done - 1 : self.done]) for fold in self.folds)

    def select(self, traced: int, se_rule: str, fold_paths: tuple[Any, ...] | None = None) -> Selection:
        """The result: the curves up to where they turned, or where the path of all rows ended by itself.

        ``traced`` of the times are those to which that path was traced; ``fold_paths`` are those of folds that have
        ended before.
        """
        study, folds = self.study, self.folds
        path = study.report(self.whole.path(self.clock[:traced]), self.whole)
        n_times = self.n_times
        ended = path.t[-1] < self.clock[n_times - 1]
        if ended:
            n_times = int(np.searchsorted(self.clock, path.t[-1] * (1 + 1e-12), side="right"))
        scores = self.measured(se_rule, n_times)
        fold_paths = self.end() if fold_paths is None else fold_paths
        first = scores[folds[0].scorers[0].name]
        return Selection(
            rule=f"{len(folds)}-fold cross-validation",
            t=first.t_min,
            curves={"df": study.sizes(path)[:n_times]},
            fold_weights=self.weights,
            path=path,
            folds=tuple((fold.train, fold.test) for fold in folds),
            fold_paths=fold_paths,
            scores=scores,
            stopped_early=self.turn is not None and not ended and n_times < len(self.clock),
            _rows=FoldRows(folds, self.clock[:n_times]),
            _folds_of_kappas=FoldsOfKappas.of({study.kappa: self}),
            **vars(first),
        )

    @property
    def n_times(self) -> int:
        """Of the curves: as far as they have been scored, or to where they have turned."""
        return self.done if self.turn is None else self.turn + 1

    def measured(self, se_rule: str, n_times: int | None = None) -> dict[str, ScoreCurve]:
        """The curves of all measures by name, at the first times."""
        key = se_rule, self.n_times if n_times is None else n_times
        if key not in self._measured:
            self._measured[key] = {
                scorer.name: _curve(scorer, self.clock[: key[1]], self.scores(k)[:, : key[1]], self.weights, se_rule)
                for k, scorer in enumerate(self.folds[0].scorers)
            }
        return self._measured[key]


class FoldsOfKappas(dict[float, FoldCurves]):
    """The curves of all kappas, whose folds have ended; they refer to the data, and a pickle has none of them."""

    @classmethod
    def of(cls, curves: Mapping[float, FoldCurves]) -> FoldsOfKappas:
        for one in curves.values():
            for fold in one.folds:
                fold.release()
        return cls(curves)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()


def _curve(scorer: Scorer, times: Array, scores: Array, weights: Array, se_rule: str) -> ScoreCurve:
    mean, se = aggregate(scores, weights)
    if not np.isfinite(mean).any():
        raise ValueError(
            f"`scoring`: {scorer.name!r} is not finite at any time (fold 0 begins with {scores[0, 0]}); "
            "it must be a number for every fold."
        )
    folds = (scores, weights) if se_rule == "paired" else None
    best, sparse = choose(times, mean, se, larger_is_better=scorer.larger_is_better, folds=folds)
    t_min, t_1se = float(times[best]), float(times[sparse])
    return ScoreCurve(scorer.name, scorer.larger_is_better, t_min, t_1se, times, mean, se, scores)
