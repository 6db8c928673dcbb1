"""Graphical models: the same distribution in every coding, and clear words about wrong input."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from bregpath.graphs import GaussianModel, IsingModel, PottsModel, enumerate_states
from bregpath.graphs import exact as exact_module


def random_ising(p, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    b = np.triu(rng.normal(scale=scale, size=(p, p)), 1)
    return IsingModel(rng.normal(scale=scale, size=p), b + b.T)


def random_potts(counts, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    P, node = sum(counts), np.repeat(np.arange(len(counts)), counts)
    b = np.triu(rng.normal(scale=scale, size=(P, P)), 1) * (node[:, None] != node)
    return PottsModel(rng.normal(scale=scale, size=P), b + b.T, counts)


def two_node_model(**options):
    return IsingModel([0.5, -0.2], [[0.0, 1.0], [1.0, 0.0]], **options)


# --- Ising ------------------------------------------------------------------------------------------------------------


def test_ising_weights_are_the_formula():
    model = random_ising(4)
    x = np.array([1, -1, -1, 1])
    a, b = model.fields, model.couplings
    expected = a @ x / 2 + sum(b[j, k] * x[j] * x[k] / 2 for j in range(4) for k in range(j + 1, 4))
    assert_allclose(model.log_weight(x[None]), [expected])


def test_conditionals_are_logistic():
    model = random_ising(5, seed=1)
    exact = enumerate_states(model)
    x = np.array([[1, -1, 1, 1, -1]])
    for j in range(5):
        flipped = x.copy()
        flipped[0, j] *= -1
        log_odds = exact.log_probability(x) - exact.log_probability(flipped)
        assert_allclose(log_odds, x[0, j] * (model.fields[j] + model.couplings[j] @ x[0]))


def test_zero_one_coding_is_the_same_distribution():
    model = random_ising(6, seed=2)
    a, b = model.zero_one()
    exact = enumerate_states(model)
    bits = (exact.states + 1) / 2
    weight = np.exp(bits @ a + 0.5 * np.einsum("ij,jk,ik->i", bits, b, bits))
    assert_allclose(weight / weight.sum(), exact.probabilities, rtol=1e-12)
    back = IsingModel.from_zero_one(a, b)
    assert_allclose(back.fields, model.fields, rtol=1e-14, atol=1e-14)
    assert_array_equal(back.couplings, model.couplings)


def test_ising_is_a_potts_model_with_two_states():
    ising = random_ising(5, seed=3)
    sign = np.array([-1.0, 1.0])
    potts = PottsModel(
        np.outer(ising.fields, sign).ravel() / 2, np.kron(ising.couplings, np.outer(sign, sign)) / 2, n_states=2
    )
    assert_allclose(enumerate_states(potts).probabilities, enumerate_states(ising).probabilities, rtol=1e-12)
    assert enumerate_states(potts).log_partition == pytest.approx(enumerate_states(ising).log_partition)


def test_strengths_and_adjacency():
    model = IsingModel(np.zeros(3), [[0, -2, 0], [-2, 0, 0], [0, 0, 0]])
    assert_array_equal(model.strengths, model.couplings)
    assert_array_equal(model.adjacency, [[False, True, False], [True, False, False], [False, False, False]])
    assert model.n_nodes == 3


def test_labels_stand_for_states():
    plain = two_node_model()
    labelled = two_node_model(levels=[["no", "yes"], ["low", "high"]], names=["answer", "income"])
    assert_allclose(labelled.log_weight([["yes", "low"]]), plain.log_weight([[1, -1]]))
    assert labelled.names == ("answer", "income")
    assert enumerate_states(labelled).states.tolist()[1] == ["no", "high"]
    mixed = two_node_model(levels=[[0, 1], ["low", "high"]])
    assert enumerate_states(mixed).states.tolist()[1] == [0, "high"]
    assert enumerate_states(two_node_model(levels=[[0, 1], [0, 1]])).states.dtype.kind == "i"


def test_models_do_not_change():
    given = np.zeros((2, 2))
    model = IsingModel([0.0, 0.0], given)
    given[0, 1] = 5.0
    assert model.couplings[0, 1] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        model.couplings[0, 1] = 1.0
    with pytest.raises(AttributeError, match="cannot assign"):
        model.fields = np.ones(2)


# --- Potts ------------------------------------------------------------------------------------------------------------


def test_potts_weights_are_the_formula():
    model = random_potts([2, 3, 4])
    x = [1, 2, 0]
    expected = sum(model.fields[model.offsets[j] + x[j]] for j in range(3))
    expected += sum(model.block(j, k)[x[j], x[k]] for j in range(3) for k in range(j + 1, 3))
    assert_allclose(model.log_weight([x]), [expected])


def test_potts_blocks_and_strengths():
    model = random_potts([2, 3, 4])
    assert model.block(0, 2).shape == (2, 4)
    assert_array_equal(model.block(2, 0), model.block(0, 2).T)
    assert_allclose(model.strengths[0, 2], np.linalg.norm(model.block(0, 2)))
    assert_array_equal(np.diagonal(model.strengths), 0)
    assert_array_equal(model.offsets, [0, 2, 5, 9])


@pytest.mark.parametrize("counts", [[3, 3, 3], [2, 4, 3]])
def test_zero_sum_gauge_is_the_same_distribution(counts):
    model = random_potts(counts, seed=4)
    centred = model.to_zero_sum()
    assert_allclose(enumerate_states(centred).probabilities, enumerate_states(model).probabilities, rtol=1e-12)
    for j in range(3):
        own = slice(model.offsets[j], model.offsets[j + 1])
        assert_allclose(centred.fields[own].sum(), 0, atol=1e-12)
        for k in range(3):
            assert_allclose(centred.block(j, k).sum(axis=0), 0, atol=1e-12)
    assert np.all(centred.strengths <= model.strengths + 1e-12)
    assert_allclose(centred.to_zero_sum().couplings, centred.couplings, atol=1e-12)


def test_zero_blocks_stay_zero_in_the_zero_sum_gauge():
    couplings = np.zeros((9, 9))
    couplings[:3, 3:6] = np.arange(9).reshape(3, 3) ** 2
    model = PottsModel(np.arange(9.0), couplings + couplings.T, 3).to_zero_sum()
    assert_array_equal(model.adjacency, [[False, True, False], [True, False, False], [False, False, False]])


# --- Gaussian ---------------------------------------------------------------------------------------------------------


def test_gaussian_likelihood_and_covariance():
    model = GaussianModel([[2.0, -0.5, 0.0], [-0.5, 1.0, 0.2], [0.0, 0.2, 1.5]], mean=[1.0, 2.0, 3.0])
    assert_allclose(model.covariance @ model.precision, np.eye(3), atol=1e-14)
    X = np.random.default_rng(0).normal(size=(5, 3))
    expected = stats.multivariate_normal(model.mean, model.covariance).logpdf(X)
    assert_allclose(model.log_likelihood(X), expected)


def test_partial_correlations_are_those_of_regression_residuals():
    model = GaussianModel([[2.0, -0.5, 0.0], [-0.5, 1.0, 0.2], [0.0, 0.2, 1.5]])
    S = model.covariance
    given_third = S[:2, :2] - np.outer(S[:2, 2], S[2, :2]) / S[2, 2]
    expected = given_third[0, 1] / np.sqrt(given_third[0, 0] * given_third[1, 1])
    assert_allclose(model.partial_correlations[0, 1], expected)
    assert_array_equal(np.diagonal(model.partial_correlations), 1)
    assert_array_equal(np.diagonal(model.strengths), 0)
    assert_array_equal(model.adjacency[0], [False, True, False])


def test_gaussian_sample():
    model = GaussianModel([[2.0, -0.8], [-0.8, 1.0]], mean=[3.0, -1.0])
    X = model.sample(100_000, seed=0)
    assert_allclose(X.mean(axis=0), model.mean, atol=0.02)
    assert_allclose(np.cov(X, rowvar=False), model.covariance, atol=0.03)
    assert_array_equal(model.sample(3, seed=5), model.sample(3, seed=5))


# --- enumeration ------------------------------------------------------------------------------------------------------


def test_moments_of_independent_nodes():
    a = np.array([0.3, -1.0, 2.0])
    exact = enumerate_states(IsingModel(a, np.zeros((3, 3))))
    assert_allclose(exact.mean, np.tanh(a / 2))
    expected = np.outer(np.tanh(a / 2), np.tanh(a / 2))
    np.fill_diagonal(expected, 1.0)
    assert_allclose(exact.second_moments, expected)
    assert exact.log_partition == pytest.approx(np.log(2 * np.cosh(a / 2)).sum())


def test_enumeration_in_pieces(monkeypatch):
    model = random_potts([2, 3, 1, 4], seed=5)
    whole = enumerate_states(model)
    monkeypatch.setattr(exact_module, "_AT_ONCE", 7)
    pieces = enumerate_states(model)
    assert_allclose(pieces.probabilities, whole.probabilities, rtol=1e-12)
    assert_array_equal(pieces.states, whole.states)
    assert_allclose(pieces.second_moments, whole.second_moments, rtol=1e-12)
    assert len(np.unique(whole.states, axis=0)) == 24


def test_large_weights_do_not_overflow():
    exact = enumerate_states(IsingModel([2000.0, 0.0], [[0.0, 3000.0], [3000.0, 0.0]]))
    assert_allclose(exact.probabilities, [0, 0, 0, 1], atol=1e-300)


def test_exact_sample_has_the_frequencies():
    exact = enumerate_states(two_node_model())
    X = exact.sample(50_000, seed=0)
    found = [np.mean((X == state).all(axis=1)) for state in exact.states]
    assert_allclose(found, exact.probabilities, atol=0.01)


def test_too_many_states():
    with pytest.raises(ValueError, match=r"`model` has 2.1e\+06 states, too many.*use `gibbs`"):
        enumerate_states(IsingModel(np.zeros(21), np.zeros((21, 21))))


# --- wrong input ------------------------------------------------------------------------------------------------------

ZERO = [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize(
    ("build", "error", "text"),
    [
        (lambda: IsingModel([0.0, 0.0], [[0.0]]), ValueError, r"`couplings` must have shape \(2, 2\), found \(1, 1\)"),
        (lambda: IsingModel([[0.0]], [[0.0]]), ValueError, r"`fields` must be .* 1 dimension.*found shape \(1, 1\)"),
        (lambda: IsingModel([], np.zeros((0, 0))), ValueError, "`fields` must be a non-empty array"),
        (lambda: IsingModel([0.0, np.nan], ZERO), ValueError, "`fields` contains NaN"),
        (lambda: IsingModel(["a", "b"], ZERO), TypeError, "`fields` must hold numbers"),
        (lambda: IsingModel([0.0, 0.0], [[0, 1], [2, 0]]), ValueError, r"\[0, 1\] = 1 but couplings\[1, 0\] = 2"),
        (lambda: IsingModel([0.0, 0.0], np.eye(2)), ValueError, "`couplings` must have a zero diagonal"),
        (lambda: IsingModel.from_zero_one([0.0], ZERO), ValueError, r"`couplings` must have shape \(1, 1\)"),
        (lambda: two_node_model(names=["a"]), ValueError, "`names` must have one entry for each of the 2"),
        (lambda: two_node_model(names=["a", "a"]), ValueError, "`names` must differ, found 'a'"),
        (lambda: two_node_model(levels=[[0, 1]]), ValueError, "`levels` must hold the labels of each of the 2 nodes"),
        (lambda: two_node_model(levels=[[0, 1], [1, 1]]), ValueError, r"`levels\[1\]` must be 2 different labels"),
        (lambda: two_node_model().log_weight([[1, 0]]), ValueError, r"0.* in column 1, whose states are \[-1, 1\]"),
        (lambda: two_node_model().log_weight([1, 1]), ValueError, r"each of the 2 nodes, found shape \(2,\)"),
        (lambda: PottsModel(np.zeros(5), np.zeros((5, 5)), 2), ValueError, "`n_states` counts 4 states.*has 5 entries"),
        (lambda: PottsModel(np.zeros(2), ZERO, [2, 0]), ValueError, "`n_states` must be a positive integer"),
        (lambda: PottsModel(np.zeros(2), ZERO, 2.0), ValueError, "`n_states` must be a positive integer"),
        (lambda: PottsModel(np.zeros(2), np.ones((2, 2)), 2), ValueError, "`couplings` must have zero diagonal blocks"),
        (lambda: GaussianModel([[1.0, 2.0], [2.0, 1.0]]), ValueError, "`precision` is not positive definite"),
        (lambda: GaussianModel([[1.0, 2.0]]), ValueError, r"`precision` must have shape \(1, 1\), found \(1, 2\)"),
        (lambda: GaussianModel(np.eye(2), mean=[0.0]), ValueError, "`mean` must have one entry for each of the 2"),
        (lambda: GaussianModel(np.eye(2)).log_likelihood([[1.0]]), ValueError, "`X` must have one column for each"),
    ],
)  # fmt: skip
def test_wrong_input_is_named(build, error, text):
    with pytest.raises(error, match=text):
        build()


def test_rounding_is_no_asymmetry():
    couplings = np.array([[0.0, 1.0], [1.0 + 1e-12, 0.0]])
    assert_array_equal(IsingModel([0.0, 0.0], couplings).couplings, IsingModel([0.0, 0.0], couplings.T).couplings)
