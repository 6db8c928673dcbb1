"""What is made when somebody first asks for it."""

from __future__ import annotations

import copy
import pickle

import pytest
from numpy.testing import assert_array_equal

import bregpath
from bregpath.run import Track
from bregpath.selection.on_demand import OnDemand


def test_values_are_made_once_when_they_are_asked_for():
    made = []
    values = OnDemand({key: lambda key=key: made.append(key) or [key] for key in (1, 2)})
    assert (list(values), len(values), 2 in values, 3 in values, made) == ([1, 2], 2, True, False, [])
    assert values[2] is values[2] and made == [2]
    for again in (pickle.loads(pickle.dumps(values)), copy.deepcopy(values)):
        assert again == {1: [1], 2: [2]}
    assert made == [2, 1]
    with pytest.raises(KeyError):
        values[3]


def test_what_was_interrupted_is_made_by_the_next_who_asks():
    calls = []

    def make():
        calls.append(0)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return "made"

    values = OnDemand({0: make})
    with pytest.raises(KeyboardInterrupt):
        values[0]
    assert values[0] == values[0] == "made" and len(calls) == 2


@pytest.fixture
def chosen():
    """A cross-validation whose two choices are of different kappas."""
    data = bregpath.datasets.make_logistic(200, 30, 15, M=0.5, seed=3)
    selection = bregpath.cross_validate(data.X, data.y, loss="logistic", kappa="cv")
    assert selection.kappa_sparse != selection.kappa_min
    return selection


def test_the_path_of_the_sparse_choice_is_traced_when_it_is_asked_for(chosen, monkeypatch):
    traced, reach = [], Track.reach
    monkeypatch.setattr(Track, "reach", lambda self, until: traced.append(until) or reach(self, until))
    assert str(chosen) and chosen.kappa_sparse and not traced
    sparse = chosen.sparse()
    assert len(traced) == 1 and chosen.sparse().path is sparse.path and chosen.t_sparse == sparse.t
    assert len(traced) == 1 and sparse.coef.any()


def test_a_pickle_has_the_sparse_choice(chosen):
    again = pickle.loads(pickle.dumps(chosen)).sparse()
    assert_array_equal(again.coef, chosen.sparse().coef)
    assert_array_equal(again.fold_coef(), chosen.sparse().fold_coef())


def test_an_interrupt_of_the_sparse_choice_is_no_harm(chosen, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Track, "reach", lambda self, until: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            chosen.sparse()
    assert chosen.sparse().t == chosen.t_sparse
