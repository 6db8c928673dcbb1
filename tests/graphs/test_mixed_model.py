"""Models of mixed data: sampling against exact distributions, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import poisson

from bregpath.datasets import make_mixed_graph
from bregpath.graphs import GaussianModel, MixedModel
from bregpath.graphs.mixed_model import _draw_counts
from tests.graphs.cases import KINDS, mixed_model


def label_and_count(strength: float = 0.4) -> MixedModel:
    """Three labels and a count of at most 6."""
    couplings = np.zeros((4, 4))
    couplings[:3, 3] = couplings[3, :3] = strength * np.array([-1.0, 0.5, 1.5])
    return MixedModel([0.3, 0.0, -0.4, 0.2], couplings, ["categorical", "count"], [3, 1], [0, 6])


def test_samples_have_the_exact_distribution():
    model, n = label_and_count(), 40_000
    rows = np.array([[label, count] for label in range(3) for count in range(7)], dtype=float)
    weight = np.exp(model.log_weight(rows))
    drawn = model.sample(n, seed=0, burn_in=30)
    share = np.array([np.mean((drawn == row).all(axis=1)) for row in rows])
    exact = weight / weight.sum()
    assert np.sum(share) == pytest.approx(1.0)
    assert np.abs(share - exact).max() < 4 * np.sqrt(exact.max() / n)


def test_numbers_alone_are_normal():
    precision = np.array([[2.0, -0.8, 0.0], [-0.8, 1.0, 0.3], [0.0, 0.3, 1.5]])
    mean = np.array([1.0, -2.0, 0.5])
    model = MixedModel(precision @ mean, -precision, ["gaussian"] * 3, [1, 1, 1], np.zeros(3))
    drawn = model.sample(30_000, seed=1, burn_in=60)
    gaussian = GaussianModel(precision, mean)
    assert_allclose(drawn.mean(axis=0), mean, atol=0.03)
    assert_allclose(np.cov(drawn.T), gaussian.covariance, atol=0.04)
    assert_allclose(model.strengths, gaussian.strengths, atol=1e-12)
    rows = drawn[:2]
    assert_allclose(np.diff(model.log_weight(rows)), np.diff(gaussian.log_likelihood(rows)), rtol=1e-10)


@pytest.mark.parametrize(("rate", "largest"), [(2.0, 4), (8.0, 5), (60.0, 20), (3e4, 1000), (0.05, 3)])
def test_counts_are_cut_off_not_collected_at_the_bound(rate, largest):
    n = 20_000
    drawn = _draw_counts(np.full(n, np.log(rate)), float(largest), np.random.default_rng(0))
    values = np.arange(largest + 1)
    log_share = poisson.logpmf(values, rate)
    exact = np.exp(log_share - np.logaddexp.reduce(log_share))
    share = np.bincount(drawn.astype(int), minlength=largest + 1) / n
    assert len(share) == largest + 1
    assert np.abs(share - exact).max() < 0.02
    assert_allclose(share @ values, exact @ values, atol=0.05 * max(np.sqrt(rate), 1.0))


def test_strengths_do_not_see_fields():
    """What is constant along the states of a label is no coupling."""
    model = mixed_model()
    joined = np.argwhere(np.triu(model.adjacency)).tolist()
    assert joined == [[0, 1], [1, 2], [2, 3], [3, 4]]
    couplings = model.couplings.copy()
    couplings[0, 1:4] += 5.0
    couplings[1:4, 0] += 5.0
    shifted = MixedModel(model.fields, couplings, KINDS, model.n_states, model.max_counts)
    assert_allclose(shifted.strengths, model.strengths, atol=1e-12)


def test_a_model_without_a_joint_distribution_is_not_sampled():
    model = MixedModel([0.0, 0.0], [[-1.0, 2.0], [2.0, -1.0]], ["gaussian"] * 2, [1, 1], [0, 0])
    with pytest.raises(ValueError, match="not positive definite.*earlier time"):
        model.sample(3)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"kinds": ["label", "count"]}, "`kinds` must be of 'gaussian', .* found 'label'"),
        ({"kinds": ["count", "count"]}, "`n_states` of kind 'count' must be 1, found 3"),
        ({"n_states": [2, 1]}, "`n_states` must be positive, one a node, and sum to 4"),
        ({"max_counts": [6]}, "`max_counts` must have one entry for each of the 2 nodes"),
        ({"couplings": np.eye(4)}, "`couplings` must be zero between categorical 0 and itself"),
        ({"fields": [0.0, 1.0]}, "`couplings` must have shape"),
        ({"names": ["a"]}, "`names` must have one entry for each of the 2 nodes"),
    ],
)
def test_bad_models(change, text):
    model = label_and_count()
    names = ("fields", "couplings", "kinds", "n_states", "max_counts")
    with pytest.raises(ValueError, match=text):
        MixedModel(**{name: getattr(model, name) for name in names} | change)


def test_precisions_stand_on_the_diagonal():
    with pytest.raises(ValueError, match="`couplings` must be minus its precision at number 1, found 0"):
        MixedModel([0.0, 0.0], [[-1.0, 0.2], [0.2, 0.0]], ["gaussian"] * 2, [1, 1], [0, 0])


# --- simulations ------------------------------------------------------------------------------------------------


def test_simulated_graphs():
    data = make_mixed_graph(n=50, n_numbers=3, n_labels=3, n_counts=2, q=4, graph="chain", seed=3, n_test=20)
    assert data.kinds == ("gaussian",) * 3 + ("categorical",) * 3 + ("count",) * 2
    assert data.model.n_states.tolist() == [1, 1, 1, 2, 3, 4, 1, 1]
    assert data.adjacency.sum() == 2 * 7
    assert data.X.shape == (50, 8) and data.X_test.shape == (20, 8)
    other = make_mixed_graph(n=30, n_numbers=3, n_labels=3, n_counts=2, q=4, graph="chain", seed=3, n_test=20)
    assert_array_equal(other.couplings, data.couplings)
    labels, counts = data.X[:, 3:6], data.X[:, 6:]
    assert_array_equal(labels.max(axis=0), [1, 2, 3])
    assert counts.min() >= 0 and counts.max() <= 15


def test_simulated_models_are_proper_and_tame():
    """Over a range of seeds: positive definite, no coupling of counts that attracts, few counts at their bound."""
    at_bound = []
    for seed in range(10):
        data = make_mixed_graph(200, 5, 3, 4, graph="scale-free", seed=seed)
        assert np.linalg.eigvalsh(-data.couplings[:5, :5])[0] > 0.39
        counts = data.model.offsets[8:12]
        assert (data.couplings[np.ix_(counts, counts)] <= 0).all()
        at_bound.append(np.mean(data.X[:, 8:] == 15))
    assert np.mean(at_bound) < 0.02


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"n_numbers": -1}, ValueError, "`n_numbers` must be at least 0"),
        ({"n_numbers": 0, "n_labels": 1, "n_counts": 0}, ValueError, "sum to 1; a graph needs at least 2 nodes"),
        ({"q": 1}, ValueError, "`q` must be at least 2"),
        ({"strength": 0.0}, ValueError, "strength=0.0 is out of range"),
        ({"graph": "star"}, ValueError, "graph='star' is not known"),
    ],
)
def test_bad_simulations(options, error, text):
    with pytest.raises(error, match=text):
        make_mixed_graph(10, **options)
