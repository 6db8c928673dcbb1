"""Polarised models: tempering against enumeration, and what chains say of themselves."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bregpath.graphs import IsingModel, PottsModel, enumerate_states, gibbs
from bregpath.graphs.mixing import effective_size, memory, split_r_hat
from bregpath.graphs.tempering import _spread, start_from


def two_blocs(p=12, within=0.9, between=-0.15, field=0.04, levels=None):
    """Two blocs that agree within and disagree between, with four modes of unequal weight."""
    bloc = np.arange(p) < p // 2
    couplings = np.where(bloc[:, None] == bloc, within, between) * (1 - np.eye(p))
    return IsingModel(np.full(p, field), couplings, levels=levels)


def potts_blocs(p=6, q=3, strength=2.2):
    """All nodes agree on one of q states, of which the first is favoured."""
    couplings = np.kron(1 - np.eye(p), strength * np.eye(q)) / 2
    fields = np.tile(np.r_[0.25, np.zeros(q - 1)], p)
    return PottsModel(fields, couplings, q)


def modes(model, codes):
    """Which mode a row is in: the majority of each bloc, or the most frequent state."""
    if isinstance(model, IsingModel):
        half = codes.shape[1] // 2
        return 2 * (codes[:, :half].mean(axis=1) > 0.5) + (codes[:, half:].mean(axis=1) > 0.5)
    return (codes[:, :, None] == np.arange(model.counts[0])).sum(axis=1).argmax(axis=1)


def weights_of_modes(model, codes, w=None):
    found = np.bincount(modes(model, codes), weights=w, minlength=4)
    return found / found.sum()


def exact_weights(model):
    exact = enumerate_states(model)
    return weights_of_modes(model, model.encode(exact.states), exact.probabilities)


MODELS = {"ising": two_blocs(), "potts": potts_blocs()}
SEEDS = range(8)


@pytest.mark.parametrize("name", MODELS)
def test_weights_of_modes_are_exact(sampler, name):
    model = MODELS[name]
    truth, seeds = exact_weights(model), SEEDS if sampler == "compiled" else range(2)
    n, burn_in = (2000, 1000) if sampler == "compiled" else (1600, 400)
    gaps = []
    for seed in seeds:
        X, mixed = gibbs(model, n, burn_in, 5, seed, method="tempering", return_diagnostics=True)
        assert not mixed.is_stuck
        gaps.append(weights_of_modes(model, model.encode(X)) - truth)
    # 600 independent rows or more: four standard errors of one run, and the mean of all is closer.
    assert np.abs(gaps).max() < 4 * 0.5 / np.sqrt(600)
    assert np.abs(np.mean(gaps, axis=0)).max() < 4 * 0.5 / np.sqrt(600 * len(gaps))


def test_plain_chains_do_not_find_the_weights():
    model = two_blocs(within=1.5, between=0.05, field=0.1)
    with pytest.warns(UserWarning, match="stuck or slow.*weights of modes may be wrong.*`method`=\"tempering\""):
        plain = gibbs(model, 2000, seed=0, method="gibbs")
    assert np.abs(weights_of_modes(model, model.encode(plain)) - exact_weights(model)).max() > 0.1
    X, mixed = gibbs(model, 2000, seed=0, return_diagnostics=True)  # auto: stuck chains are replaced, without a word
    assert mixed.method == "tempering"
    assert np.abs(weights_of_modes(model, model.encode(X)) - exact_weights(model)).max() < 0.08


def test_chains_of_one_row_each_are_warned_about_too():
    with pytest.warns(UserWarning, match="memory of the burn-in 0.[89]"):
        gibbs(two_blocs(within=1.5), 500, chains=500, burn_in=400, seed=0, method="gibbs")


def test_models_that_mix_keep_their_plain_rows():
    rng = np.random.default_rng(0)
    b = np.triu(rng.normal(scale=0.3, size=(8, 8)), 1)
    model = IsingModel(rng.normal(size=8), b + b.T)
    silent = 0
    for seed in range(20):
        X, mixed = gibbs(model, 640, burn_in=200, seed=seed, return_diagnostics=True)
        silent += mixed.method == "gibbs"
        if mixed.method == "gibbs":
            assert_array_equal(gibbs(model, 640, burn_in=200, seed=seed, method="gibbs"), X)
    assert silent == 20


def test_the_seed_decides_tempered_rows(sampler):
    for model in MODELS.values():
        draws = [gibbs(model, 50, 64, seed=seed, method="tempering", chains=4) for seed in (3, 3, 4)]
        assert_array_equal(draws[0], draws[1])
        assert not np.array_equal(draws[0], draws[2])


def test_start_from_rows(sampler):
    model = two_blocs(within=6.0, levels=[["no", "yes"]] * 12)
    rows = np.tile(np.where(np.arange(12) < 6, "yes", "no"), (3, 1))
    with pytest.warns(UserWarning, match="stuck"):  # chains cannot leave, so they show where they began
        X = gibbs(model, 200, 20, 1, seed=0, chains=40, method="gibbs", start=np.vstack([rows, rows[:, ::-1]]))
    first = (X[:, 0] == "yes").mean()
    assert_array_equal(X[:, 0] == "yes", X[:, 11] == "no")
    assert 0.4 < first < 0.6
    three = potts_blocs(strength=9.0)
    Y = gibbs(three, 40, 1, seed=0, chains=40, method="gibbs", start=np.full((1, 6), 2))
    assert_array_equal(Y, np.full((40, 6), 2))


def test_every_row_starts_before_any_starts_twice():
    start = start_from(np.arange(10)[:, None], 6, 3, np.random.default_rng(0))
    assert start.shape == (6, 3, 1)
    assert np.bincount(start.ravel()).min() >= 1
    assert np.bincount(start.ravel()).max() <= 2


def test_temperatures_divide_the_barrier():
    X, mixed = gibbs(two_blocs(), 400, 2000, seed=0, method="tempering", return_diagnostics=True)
    assert mixed.betas[0] == 0.0
    assert mixed.betas[-1] == 1.0
    assert (np.diff(mixed.betas) > 0).all()
    assert mixed.swap_rate.min() > 0.4
    assert np.ptp(mixed.swap_rate) < 0.15
    assert mixed.round_trips > 100
    X, mixed = gibbs(two_blocs(), 100, 200, seed=0, temperatures=9, return_diagnostics=True)
    assert mixed.method == "tempering"
    assert len(mixed.betas) == 9
    betas, nearest = _spread(np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.9]), 4)
    assert betas[1] > 0.5
    assert_array_equal(nearest, [0, 1, 2, 2])


def test_too_little_tempering_is_warned_about():
    with pytest.warns(UserWarning, match="larger `burn_in` and `thin`, or more than 2 `temperatures`"):
        gibbs(two_blocs(p=16, within=4.0), 100, 10, 1, seed=0, method="tempering", temperatures=2)


# --- diagnostics -------------------------------------------------------------------------------------------------


def test_independent_rows_have_r_hat_one_and_full_size(rng):
    values = rng.normal(size=(16, 200, 30))
    assert_allclose(split_r_hat(values), 1.0, atol=0.02)
    size = effective_size(values)
    assert size.min() > 0.8 * 3200
    assert size.mean() > 0.9 * 3200
    assert size.max() <= 3200
    assert memory(values[:, 0], values[:, 1]) < 1.0
    many = rng.normal(size=(5000, 2, 30))
    assert memory(many[:, 0], many[:, 1]) < 0.1


def test_dependent_rows_have_the_size_of_their_autocorrelation(rng):
    rho, values = 0.8, rng.normal(size=(40, 1000, 3))
    for i in range(1, 1000):
        values[:, i] = rho * values[:, i - 1] + np.sqrt(1 - rho**2) * values[:, i]
    expected = 40_000 * (1 - rho) / (1 + rho)
    assert_allclose(effective_size(values), expected, rtol=0.15)


def test_chains_apart_and_constant_features(rng):
    apart = rng.normal(size=(8, 50, 1)) + 3.0 * np.arange(8)[:, None, None]
    assert split_r_hat(apart)[0] > 3
    assert effective_size(apart)[0] < 20
    drifting = rng.normal(size=(8, 50, 1)) + 4.0 * (np.arange(50) > 25)[:, None]
    assert split_r_hat(drifting)[0] > 1.5
    still = np.zeros((4, 20, 2))
    still[:2, :, 1] = 1.0  # chains that differ and never move
    assert_array_equal(split_r_hat(still), [1.0, np.inf])
    assert effective_size(still)[0] == 80
    assert np.isnan(split_r_hat(still[:, :3])).all()


def test_diagnostics_print_and_tell():
    X, mixed = gibbs(two_blocs(), 800, 400, seed=0, method="tempering", return_diagnostics=True)
    assert X.shape == (800, 12)
    text = repr(mixed)
    for word in ("tempering: 16 chains of 50 rows, no sign", "split R-hat", "effective size", "restarts"):
        assert word in text
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, stuck = gibbs(two_blocs(within=6.0), 640, 50, seed=0, method="gibbs", return_diagnostics=True)
    assert "64 chains of 10 rows, stuck" in repr(stuck)
    assert stuck.is_stuck
    assert np.isnan(gibbs(two_blocs(), 5, 0, seed=0, return_diagnostics=True)[1].memory)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"method": "hmc"}, ValueError, "`method` must be one of 'auto', 'gibbs', 'tempering', found 'hmc'"),
        ({"temperatures": 1}, ValueError, "`temperatures` must be at least 2, found 1"),
        ({"temperatures": 1000}, ValueError, "`temperatures` must be at most 128, found 1000"),
        ({"temperatures": 5, "method": "gibbs"}, ValueError, "`temperatures` are for `method`=\"tempering\""),
        ({"start": np.ones((2, 3))}, ValueError, "`start` must have one column for each of the 12 nodes"),
        ({"start": np.zeros((2, 12))}, ValueError, "`start` has .* in column 0, whose states are"),
        ({"start": np.ones((0, 12))}, ValueError, "`start` has no rows"),
    ],
)
def test_wrong_arguments(arguments, error, text):
    with pytest.raises(error, match=text):
        gibbs(two_blocs(), 5, 1, **arguments)


def test_the_core_checks_its_options():
    core = pytest.importorskip("bregpath._kernels._core")

    def call(**options):
        core.gibbs_potts(
            fields=np.zeros(4), couplings=np.zeros((4, 4)), offsets=np.array([0, 2, 4]), colours=np.array([0, 2]),
            starts=np.array([0, 0, 0]), sites=np.empty(0, np.int32), out=np.empty((3, 2), np.int32), chains=1,
            burn_in=1, thin=1, seed=0, options=options,
        )  # fmt: skip

    call(start=np.ones((1, 1, 2), np.int32), betas=np.ones(1))
    with pytest.raises(ValueError, match="start holds a code that is none"):
        call(start=np.full((1, 1, 2), 2, np.int32))
    with pytest.raises(ValueError, match="`start` has a wrong shape"):
        call(start=np.ones((1, 2, 2), np.int32))
    with pytest.raises(ValueError, match="1 to 256 betas"):
        call(betas=np.ones(257))
    with pytest.raises(ValueError, match="`trips` is of a wrong kind"):
        call(trips=np.zeros(1))
