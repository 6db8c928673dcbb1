"""Data against samples of a model: what agrees, what does not, and what no score of conditionals sees."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import bregpath
from bregpath.datasets import make_potts
from bregpath.graphs import IsingModel, check_model, enumerate_states
from bregpath.graphs.check import MAX_ITEMS, _items, _moments
from tests.graphs.cases import ising_model, potts_model


def rare_events(p=60, coupling=0.0):
    """Nodes that are rarely active, each about 1 row in 13 where few others are.

    With ``coupling`` b each active node raises the others; the fields make up for the usual number of active ones. With
    all active the raise is large: a second mode, which rows of the first never see.
    """
    usual = p / (1 + np.exp(2.5))
    fields = np.full(p, -2.5 - coupling * usual)
    return IsingModel.from_zero_one(fields, coupling * (1 - np.eye(p)), levels=[[0, 1]] * p)


def composite_scores(model, X):
    """Log-likelihood of each row, node by node given the others."""
    z = 2.0 * X - 1.0
    return -np.logaddexp(0.0, -z * (model.fields + z @ model.couplings)).sum(axis=1)


def test_an_extra_mode_is_exposed_that_the_composite_score_does_not_see():
    truth, wrong = rare_events(), rare_events(coupling=0.1)
    X = (np.random.default_rng(0).random((1000, 60)) < 1 / (1 + np.exp(2.5))).astype(int)
    score, other = composite_scores(truth, X), composite_scores(wrong, X)
    error = score.std() / np.sqrt(len(X))
    assert abs(score.mean() - other.mean()) < error  # less than the score itself is known to
    options = {"n_samples": 4000, "burn_in": 600, "thin": 4}
    assert check_model(truth, X, **options).agrees
    found = check_model(wrong, X, **options)
    assert not found.agrees
    assert not found.active.agrees
    data, model = found.mean_active
    assert model > 2 * data
    assert f"{model:.1f} nodes are active on average, {data:.1f} in the data" in found.verdict


@pytest.mark.parametrize("model", [ising_model(8, 0.7), potts_model([3, 2, 4, 3, 3], 0.7)], ids=["ising", "potts"])
def test_rows_of_the_model_itself_agree(model):
    exact = enumerate_states(model)
    agree = [check_model(model, exact.sample(400, seed=k), seed=k, burn_in=300).agrees for k in range(12)]
    assert sum(agree) >= 9  # each part errs about once in forty times


def test_independent_columns_have_a_high_mdc_and_no_pairs(rng):
    # Rare pairs: the tables of pairs are those of the margins, nearly.
    couplings = np.kron(np.eye(7), 3.0 * (1 - np.eye(2)))
    model = IsingModel.from_zero_one(np.full(14, -4.0), couplings, levels=[[0, 1]] * 14)
    X = enumerate_states(model).sample(3000, seed=0)
    mean = np.log(X.mean(axis=0) / (1 - X.mean(axis=0)))
    independent = IsingModel.from_zero_one(mean, np.zeros((14, 14)), levels=[[0, 1]] * 14)
    found = check_model(independent, X, n_samples=8000, thin=3)
    assert found.mdc > 0.999
    assert found.margins.agrees
    assert not found.pairs.agrees
    assert found.pairs.correlation < 0.5
    assert check_model(model, X, n_samples=8000, thin=3).pairs.correlation > 0.7


def test_moments_by_definition(rng):
    z = (rng.random((50, 5)) < 0.4).astype(float)
    centred = z - z.mean(axis=0)
    items, n_all = _items(np.arange(5), 3, rng)
    assert len(items) == n_all == 10
    expected = [np.mean(centred[:, i] * centred[:, j] * centred[:, k]) for i, j, k in items]
    assert_allclose(_moments(z, items), expected, atol=1e-15)
    assert_allclose(_moments(z, np.array([[1, 3]])), np.cov(z, rowvar=False, bias=True)[1, 3])


def test_items_are_of_different_nodes(rng):
    owner = np.repeat(np.arange(4), [2, 3, 1, 2])
    items, n_all = _items(owner, 2, rng)
    assert len(items) == n_all == 28 - (1 + 3 + 0 + 1)
    assert (owner[items[:, 0]] < owner[items[:, 1]]).all()
    many, n_all = _items(np.arange(200), 3, rng)
    assert len(many) == MAX_ITEMS[3]
    assert n_all == 200 * 199 * 198 // 6
    assert (np.diff(many, axis=1) > 0).all()
    assert len(np.unique(many, axis=0)) == MAX_ITEMS[3]


def test_estimators_check_their_rows():
    data = make_potts(n=400, p=6, q=3, graph="chain", strength=0.8, n_test=400, seed=0)
    graph = bregpath.PottsGraph().fit(np.array(["a", "b", "c"])[data.X])
    held_out = np.array(["a", "b", "c"])[data.X_test]
    found = graph.check(held_out, burn_in=400)
    assert found.n == 400
    assert found.pairs.correlation > 0.8
    early = graph.check(held_out, t=graph.path_.t[0], burn_in=400)
    assert early.pairs.ratio > 2 * found.pairs.ratio
    assert repr(graph.check(held_out, burn_in=400)) == repr(found)


def test_the_table_and_the_figure():
    import matplotlib

    matplotlib.use("Agg")
    X = enumerate_states(ising_model(6, 0.7)).sample(300, seed=0)
    found = check_model(IsingModel(np.zeros(6), np.zeros((6, 6))), X, thin=2)
    text = repr(found)
    for word in ("300 rows of data, 4000 of the model", "margins (6)", "pairs (15)", "triplets (20)", "MDC", "differ"):
        assert word in text
    axes = found.plot()
    assert axes.shape == (2, 2)
    assert axes[0, 1].get_xlabel() == "pairs of the data"
    assert "times chance" in axes[1, 1].get_title(loc="left")
    assert found.verdict.split()[0] in axes[0, 0].figure._suptitle.get_text()
    matplotlib.pyplot.close(axes[0, 0].figure)


def test_wrong_arguments():
    model = ising_model(6, 0.7)
    with pytest.raises(ValueError, match="`X` must have at least two rows"):
        check_model(model, np.ones((1, 6)))
    with pytest.raises(ValueError, match="`n_samples` must be at least 100"):
        check_model(model, np.ones((5, 6)), n_samples=10)
    with pytest.raises(ValueError, match="`X` has .* in column 0"):
        check_model(model, np.zeros((5, 6)))
    with pytest.raises(TypeError, match="`model` must be an IsingModel"):
        check_model(bregpath.graphs.GaussianModel(np.eye(2)), np.ones((5, 2)))
