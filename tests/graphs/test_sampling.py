"""The samplers against exact enumeration, compiled and NumPy alike."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats

from bregpath import _kernels
from bregpath.graphs import GaussianModel, IsingModel, PottsModel, enumerate_states, gibbs

chains_module = importlib.import_module("bregpath.graphs.chains")


def ising(p, seed, density=1.0, scale=0.5):
    rng = np.random.default_rng(seed)
    b = np.triu(rng.normal(scale=scale, size=(p, p)), 1) * (rng.random((p, p)) < density)
    return IsingModel(rng.normal(scale=scale, size=p), b + b.T)


def potts(counts, seed, scale=0.5):
    rng = np.random.default_rng(seed)
    P, node = sum(counts), np.repeat(np.arange(len(counts)), counts)
    b = np.triu(rng.normal(scale=scale, size=(P, P)), 1) * (node[:, None] != node)
    joined = np.triu(rng.random((len(counts),) * 2) < 0.6, 1)
    b *= joined[node[:, None], node]
    return PottsModel(rng.normal(scale=scale, size=P), b + b.T, counts)


def z_scores(model, X):
    """Deviations of first and second moments of independent rows from the exact ones, in standard errors."""
    exact = enumerate_states(model)
    z = model.features(model.encode(X))
    j, k = np.triu_indices(z.shape[1], 1)
    expected = np.concatenate([exact.mean, exact.second_moments[j, k]])
    found = np.concatenate([z.mean(axis=0), (z.T @ z / len(z))[j, k]])
    # All features are -1/+1 or 0/1, and so are their products.
    square = np.ones_like(expected) if isinstance(model, IsingModel) else expected
    error = np.sqrt(np.maximum(square - expected**2, 0) / len(z))
    moving = error > 1e-9  # pairs of states of the same node never occur together
    np.testing.assert_allclose(found[~moving], expected[~moving], atol=1e-9)
    return (found[moving] - expected[moving]) / error[moving]


def p_value(model, X):
    """Chi-square test of the frequencies of all states; those that are rare count as one."""
    exact = enumerate_states(model)
    place = np.ravel_multi_index(model.encode(X).T, tuple(model.counts))
    counts = np.bincount(place, minlength=len(exact.probabilities))
    expected = exact.probabilities * len(X)
    common = expected >= 8
    groups = [np.append(values[common], values[~common].sum()) for values in (counts, expected)]
    keep = groups[1] > 0
    return stats.chisquare(groups[0][keep], groups[1][keep]).pvalue


def assert_like_exact(model, X):
    """Bounds that correct samples miss about once in ten thousand times."""
    assert np.abs(z_scores(model, X)).max() < 5.0
    assert p_value(model, X) > 1e-4


ISING = {
    "dense": ising(8, 0, scale=0.4),
    "sparse": ising(10, 1, density=0.3, scale=0.8),
    "no edges": ising(9, 2, density=0.0),
    "one node": ising(1, 3),
    "strong": ising(8, 4, density=0.3, scale=1.5),
}
POTTS = {
    "three states": potts([3] * 6, 0),
    "unequal": potts([2, 5, 3, 1, 4], 1),
    "strong": potts([3] * 5, 2, scale=1.0),
}


@pytest.mark.parametrize("name", ISING)
def test_ising_moments(sampler, name):
    X = gibbs(ISING[name], 8000, burn_in=60, chains=8000, seed=1)
    assert X.dtype == np.int8
    assert_like_exact(ISING[name], X)


@pytest.mark.parametrize("name", POTTS)
def test_potts_moments(sampler, name):
    X = gibbs(POTTS[name], 6000, burn_in=40, chains=6000, seed=1)
    assert X.dtype == np.int32
    assert_like_exact(POTTS[name], X)


def test_exact_samples_pass_the_same_test():
    for model in (*ISING.values(), *POTTS.values()):
        assert_like_exact(model, enumerate_states(model).sample(8000, seed=2))


def test_the_test_would_notice_a_wrong_model(sampler):
    model = ISING["dense"]
    wrong = IsingModel(model.fields, model.couplings * 0.9)
    X = gibbs(wrong, 8000, burn_in=60, chains=8000, seed=1)
    assert np.abs(z_scores(model, X)).max() > 5.0
    assert p_value(model, X) < 1e-6


def test_few_long_chains_reach_the_same_distribution(sampler):
    # Rows of a chain are dependent, so only the size of the deviations is tested.
    model = ISING["sparse"]
    X = gibbs(model, 30_000, burn_in=100, thin=2 if sampler == "compiled" else 1, chains=3000, seed=3)
    z = model.features(model.encode(X))
    assert np.abs(z.mean(axis=0) - enumerate_states(model).mean).max() < 0.04


@pytest.mark.parametrize("chains", [1, 3, 64, 65, 130])
def test_any_number_of_chains(chains):
    if not _kernels.has_compiled():
        pytest.skip("built without the compiled core")
    model = ISING["sparse"]
    X = gibbs(model, 6500, burn_in=100, thin=20, chains=chains, seed=4)
    assert np.abs(X.mean(axis=0) - enumerate_states(model).mean).max() < 0.12
    three = POTTS["three states"]
    Y = gibbs(three, 6500, burn_in=100, thin=5, chains=chains, seed=4)
    frequency = three.features(Y).mean(axis=0)
    assert np.abs(frequency - enumerate_states(three).mean).max() < 0.06


@pytest.mark.parametrize("model", [ISING["sparse"], POTTS["unequal"]], ids=["ising", "potts"])
def test_the_seed_decides(sampler, model):
    X = gibbs(model, 70, burn_in=20, seed=5)
    assert_array_equal(gibbs(model, 70, burn_in=20, seed=5), X)
    assert_array_equal(model.sample(70, seed=5, burn_in=20), X)
    assert_array_equal(gibbs(model, 70, burn_in=20, seed=np.random.default_rng(5)), X)
    assert not np.array_equal(gibbs(model, 70, burn_in=20, seed=6), X)
    rng = np.random.default_rng(5)
    gibbs(model, 3, burn_in=2, seed=rng)
    assert not np.array_equal(gibbs(model, 70, burn_in=20, seed=rng), X)


def test_rows_go_round_the_chains(sampler):
    # With couplings this strong a chain keeps the common sign of its nodes.
    model = IsingModel(np.zeros(4), 12.0 * (1 - np.eye(4)))
    with pytest.warns(UserWarning, match="Gibbs chains are stuck.*`method`=\"tempering\""):
        X = gibbs(model, 100, burn_in=10, thin=1, chains=20, seed=0, method="gibbs")
    assert_array_equal(X, np.tile(X[:20], (5, 1)))
    assert 0 < (X[:20, 0] == 1).sum() < 20


def test_more_chains_than_rows(sampler):
    assert gibbs(ISING["dense"], 3, burn_in=5, chains=50, seed=0).shape == (3, 8)


def test_no_sweeps_leave_random_starts(sampler):
    X = gibbs(IsingModel([50.0], [[0.0]]), 4000, burn_in=0, chains=4000, seed=0)
    assert abs(X.mean()) < 0.08
    Y = gibbs(PottsModel([50.0, 0.0, 0.0], np.zeros((3, 3)), 3), 4000, burn_in=0, chains=4000, seed=0)
    assert np.abs(np.bincount(Y[:, 0], minlength=3) / 4000 - 1 / 3).max() < 0.05


def test_extreme_fields(sampler):
    X = gibbs(IsingModel([1e4, -1e4], [[0, 1e3], [1e3, 0]]), 100, burn_in=3, seed=0)
    assert_array_equal(X, np.tile([1, -1], (100, 1)))
    Y = gibbs(PottsModel([1e4, 0, -1e4, 0], np.zeros((4, 4)), 2), 100, burn_in=3, seed=0)
    assert_array_equal(Y, np.tile([0, 1], (100, 1)))


def test_labels_come_back(sampler):
    labelled = IsingModel([9.0, -9.0], np.zeros((2, 2)), levels=[["no", "yes"], [0, 1]])
    X = gibbs(labelled, 50, burn_in=5, seed=0)
    assert X.dtype == object
    assert (X[:, 0] == "yes").mean() > 0.9
    assert (X[:, 1] == 0).mean() > 0.9
    bits = gibbs(IsingModel([9.0, -9.0], np.zeros((2, 2)), levels=[[0, 1]] * 2), 50, burn_in=5, seed=0)
    assert bits.mean(axis=0).tolist() == pytest.approx([1, 0], abs=0.1)


def test_a_fitted_graph_is_asked_for_its_model():
    class Fitted:
        def model(self):
            return ISING["dense"]

    assert_array_equal(gibbs(Fitted(), 5, burn_in=3, seed=0), gibbs(ISING["dense"], 5, burn_in=3, seed=0))


def test_neighbours_never_share_a_colour():
    model = ising(30, 7, density=0.2)
    schedule = chains_module.Schedule.of(model)
    for first, last in zip(schedule.colours[:-1], schedule.colours[1:], strict=True):
        nodes = schedule.order[first:last]
        assert len(nodes) > 0
        assert not model.adjacency[np.ix_(nodes, nodes)].any()
    assert_array_equal(np.sort(schedule.order), np.arange(30))
    path = IsingModel(np.zeros(6), np.eye(6, k=1) + np.eye(6, k=-1))
    assert len(chains_module.Schedule.of(path).colours) == 3  # bipartite: two colours


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"n": 0}, ValueError, "`n` must be at least 1, found 0"),
        ({"n": 2.5}, TypeError, "`n` must be an integer, found 2.5"),
        ({"chains": 0}, ValueError, "`chains` must be at least 1"),
        ({"burn_in": -1}, ValueError, "`burn_in` must be at least 0"),
        ({"thin": 0}, ValueError, "`thin` must be at least 1"),
        ({"thin": True}, TypeError, "`thin` must be an integer, found True"),
        ({"model": np.eye(2)}, TypeError, "`model` must be an IsingModel, a PottsModel.*found ndarray"),
        ({"model": GaussianModel(np.eye(2))}, TypeError, "found GaussianModel; a GaussianModel draws"),
    ],
)
def test_wrong_arguments(arguments, error, text):
    with pytest.raises(error, match=text):
        gibbs(**{"model": ISING["dense"], "n": 5, "burn_in": 1, **arguments})


def test_the_core_checks_its_arrays():
    core = pytest.importorskip("bregpath._kernels._core")
    good = {
        "fields": np.zeros(2), "couplings": np.ones(2), "colours": np.array([0, 1, 2]), "starts": np.array([0, 1, 2]),
        "sites": np.array([1, 0], dtype=np.int32), "out": np.empty((3, 2), np.int8), "chains": 1, "burn_in": 1,
        "thin": 1, "seed": 0, "options": {},
    }  # fmt: skip
    core.gibbs_ising(**good)
    wrong = {
        "sites": (np.array([1, 2], dtype=np.int32), "a neighbour is not a site"),
        "starts": (np.array([0, 3, 2]), "the neighbour lists do not cover"),
        "colours": (np.array([0, 1]), "the colours do not cover"),
        "fields": (np.zeros(3), "fields"),
        "couplings": (np.ones(1), "couplings"),
        "out": (np.empty((3, 1), np.int8), "out has a wrong shape"),
        "chains": (0, "chains, burn_in or thin is out of range"),
    }
    for name, (value, message) in wrong.items():
        with pytest.raises(ValueError, match=message):
            core.gibbs_ising(**{**good, name: value})
