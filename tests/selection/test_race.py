"""When a kappa ends, by scores that are given."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from bregpath.selection.fold_curves import FoldCurves, Looks
from bregpath.selection.kappas import Race


def _race_of(curves):
    """A race of several kappas with scores (folds, times) that are given, all of them looked at."""
    entered = []
    for kappa, scores in curves.items():
        fold = [SimpleNamespace(scores=row[None], scorers=[SimpleNamespace(larger_is_better=False)]) for row in scores]
        part = SimpleNamespace(folds=fold, scores=lambda k, scores=scores: scores, done=scores.shape[1])
        part.all_scores = lambda k, scores=scores: [scores]
        part.study, part.weights = SimpleNamespace(kappa=kappa), np.ones(len(scores))
        part.clock, part.looks = 1.1 ** np.arange(100.0), Looks(30, 10, 5)
        entered.append(part)
    return Race(entered, lambda t: None)


def test_a_smaller_kappa_is_given_up_for_a_small_difference_a_larger_one_for_a_standard_error():
    """Folds differ by far more than the kappas do within each of them; the larger may be the sparse choice."""
    flat = np.arange(5.0)[:, None] * 5 + np.r_[9.0, np.ones(40)]
    still, rising = flat + 0.3, np.r_[np.zeros(30), np.linspace(0, 0.1, 11)]
    behind, far_behind = flat + 0.3 + rising, flat + 5.0 + 5 * rising
    for kappas, curves, hopeless in (
        ((1.0, 10.0), (behind, flat), [True, False]),
        ((1.0, 10.0), (flat, behind), [False, False]),
        ((1.0, 10.0), (flat, far_behind), [False, True]),
        ((1.0, 10.0), (still, flat), [False, False]),  # it may jump
    ):
        race = _race_of(dict(zip(kappas, curves, strict=True)))
        assert [race._is_hopeless(one) for one in race.curves] == hopeless
    gaining = still - 2 * rising  # two more stretches of the kind bring it back
    race = _race_of({1.0: gaining, 10.0: flat})
    assert not race._is_hopeless(race.curves[0])
    slowing = flat + 0.08 + 0.5 * 0.8 ** np.maximum(np.arange(41) - 25, 0)  # they would, but gains become less
    race = _race_of({1.0: slowing, 10.0: flat})
    assert race._is_hopeless(race.curves[0])
    race.curves[0].all_scores = lambda k: [gaining, behind]  # a mean that gains follows a path that does not
    assert race._is_hopeless(race.curves[0])


def test_a_path_that_is_clearly_behind_that_of_a_larger_kappa_is_given_up():
    """The mean of the larger one lags, so that it is not ahead yet."""
    flat = np.arange(5.0)[:, None] * 5 + np.r_[9.0, np.ones(40)]
    behind = flat + np.r_[np.zeros(30), np.linspace(0, 0.1, 11)]
    spread = np.linspace(-1, 1, 5)[:, None] * (np.arange(41) > 0)  # of the differences: a standard error of 0.35
    for kappas, ahead, is_behind in (
        ((1.0, 10.0), flat - 0.6 + spread, True),
        ((1.0, 10.0), flat - 0.5 + spread, False),
        ((10.0, 1.0), flat - 0.6 + spread, False),  # the larger one may be the sparse choice
    ):
        race = _race_of(dict(zip(kappas, (behind, behind), strict=True)))
        race.curves[1].all_scores = lambda k, ahead=ahead: [flat + 0.2, ahead]
        assert race._is_hopeless(race.curves[0]) == is_behind


def test_a_kappa_is_given_up_for_a_small_difference_that_it_will_not_make_up_for():
    """None of these is behind by a standard error; what counts is whether one of the choices could be theirs."""
    noise = np.linspace(-3, 3, 5)[:, None] * (np.arange(41) > 0)
    flat, rising = np.arange(5.0)[:, None] * 5 + np.r_[9.0, np.ones(40)], np.r_[np.zeros(30), np.linspace(0, 0.1, 11)]
    better, slow = flat - 0.3 * np.arange(41) / 40, flat + noise + rising
    for kappa, scores, is_out in (
        (1.0, slow, True),  # the other one is the larger, and would be the sparse choice
        (100.0, flat + noise, False),  # this one would be
        (100.0, flat + noise + 10.0, True),  # it is not within a standard error
        (100.0, flat + 0.3 * np.r_[np.zeros(21), np.arange(20.0)], True),  # it has turned: it is what it will be
        (1.0, slow - 2 * rising, False),  # it gains
    ):
        race = _race_of({10.0: better, kappa: scores})
        assert [race._is_out(one) for one in race.curves] == [False, is_out]
        assert not race._is_hopeless(race.curves[1]) or kappa > 10.0
    race = _race_of({10.0: better, 1.0: flat + 0.3 + noise})
    assert race._is_out(race.curves[1])  # it has stood still for long
    race = _race_of({10.0: better, 1.0: flat + 0.3 + noise})
    race.curves[1].clock = np.linspace(1.0, 1.5, 41)
    assert not race._is_out(race.curves[1])  # it may jump


def test_nobody_is_given_up_before_the_usual_first_look():
    """A first look may come sooner, which ends curves that have turned."""
    flat = np.arange(5.0)[:, None] * 5 + np.r_[9.0, np.ones(40)]
    behind = flat + 0.3 + np.r_[np.zeros(30), np.linspace(0, 0.1, 11)]
    for usual, given_up in ((42, False), (41, True)):
        race = _race_of({1.0: behind, 10.0: flat})
        for one in race.curves:
            one.looks, one.clock, one.is_over = Looks(30, 10, 5, give_up_from=usual), np.arange(1.0, 100.0), False
            one.is_due, one.look = lambda tick: True, lambda: None
        assert not race.is_over(41.0)
        assert [one.is_given_up for one in race.curves] == [given_up, False]


def _curves_of(scores, plain):
    """Curves of several kappas with scores (folds, times) that are given, at times 1, 2, ..."""
    scorer = SimpleNamespace(larger_is_better=False, is_smooth=True)
    track = SimpleNamespace(record=SimpleNamespace(result=None))
    folds = [
        SimpleNamespace(scores=a[None], plain_scores=b[None], has_plain=True, scorers=[scorer], track=track, test=[k])
        for k, (a, b) in enumerate(zip(scores, plain, strict=True))
    ]
    study, clock = SimpleNamespace(w=np.ones(len(folds))), np.arange(1.0, 2 * scores.shape[1])
    return FoldCurves(study, None, clock, folds, Looks(1, 1, 5, of_several=True))


def test_a_curve_that_is_past_its_best_ends(rng):
    """It rises by less than the differences within folds, so that it has not clearly turned."""
    t, noise = np.arange(1.0, 41.0), rng.normal(size=(5, 1))
    noise = 10 * (noise - noise.mean()) * np.sin(t)
    early, late, still = noise + (t - 10) ** 2 / 100, noise + (t - 30) ** 2 / 100, noise + 0.0 * t
    cases = ((early, early, True), (late, early, False), (early, late, False), (still, still, False))
    for scores, plain, ends in cases:
        curves = _curves_of(scores, plain)
        curves.look()
        assert curves.is_over == ends and (curves.turn == len(t) - 1) == ends
