"""Rules that choose a graph: what they compute, that they repeat, and that they find the truth on easy data."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import KFold

from bregpath.graphs import mdc
from bregpath.losses import GRAPH_LOSSES
from bregpath.selection import information_criterion
from bregpath.selection.curves import aggregate
from tests.graphs.cases import (
    CASES,
    N_STATES,
    ONE_OF_EACH,
    data_of,
    gaussian_data,
    gaussian_model,
    graph_of,
    ising_data,
    ising_model,
    path_of,
    potts_data,
    potts_model,
)

EVERY = list(CASES)
SMALL = {"n_times": 8, "t_ratio": 20.0}


# --- deviance ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [case for case in EVERY if case != "ising-mpf"])  # which has no likelihood of its own
def test_deviance_of_the_training_rows_is_that_of_the_path(case):
    """Up to a constant."""
    X = data_of(case)
    graph = graph_of(case).fit(X)
    curve = graph.path_.deviance_of(graph._prepare(X, None).rows, np.ones(len(X)), graph.path_.t)
    ratio = (curve[0] - curve) / (curve[0] - curve[-1])
    own = graph.path_.deviance_ratio
    assert_allclose(ratio, own / own[-1], atol=1e-9)
    if "nodewise" not in case:  # where a model has the mean of two coefficients
        scores = np.array([graph.at(t).score(X) for t in graph.path_.t])
        assert_allclose(np.diff(curve), -2 * np.diff(scores), atol=1e-8)


def test_times_beyond_the_end_are_read_at_the_end():
    X = ising_data()
    graph = graph_of("ising-composite", max_sparsity=0.3).fit(X)
    path = graph.path_
    study = graph._prepare(X, None)
    end = path.deviance_of(study.rows, study.w, path.t[-1:])
    assert_allclose(path.deviance_of(study.rows, study.w, np.array([1e6])), end, rtol=1e-14)


# --- information criteria ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", EVERY)
@pytest.mark.parametrize("gamma", [0.0, 0.7])
def test_criterion_is_its_formula(case, gamma):
    X = data_of(case)
    graph = graph_of(case, gamma=gamma).fit(X)
    path, selection = graph.path_, graph.selection_
    n, p = X.shape
    fit = n * path.deviance_of(graph._prepare(X, None).rows, np.ones(n), path.t)
    once = "nodewise" in case or case == "gaussian-likelihood"
    size = parameters_by_hand(case, path)
    values = fit + (1 if once else 2) * size * np.log(n) + 4 * gamma * path.n_edges * np.log(p)
    assert_allclose(selection.mean, values, rtol=1e-10)
    assert graph.t_ == selection.t == path.t[values.argmin()]
    assert_array_equal(selection.curves["df"], path.n_edges)
    assert "EBIC" in repr(selection)


def parameters_by_hand(case, path):
    """Independent parameters of the edges."""
    states = np.array([2, 3, 2, 2, 2] if case == "mixed" else N_STATES)
    size = np.outer(states - 1, states - 1)
    if case == "potts-diagonal":  # with two states on a side one coupling does it all
        size = np.minimum(size, np.minimum.outer(states, states))
    elif case not in ("potts", "potts-sqrt", "potts-reduced", "mixed"):
        return path.df
    return np.array([np.sum(np.triu(weights != 0) * size) for weights in path.all_weights()])


def test_parameters_of_edges():
    assert_array_equal(path_of("ising-composite").complexity.parameters, path_of("ising-composite").n_edges)
    nodewise = path_of("ising-nodewise-and")
    assert np.all(nodewise.complexity.parameters >= 2 * nodewise.n_edges)


@pytest.mark.parametrize("case", [case for case in EVERY if case != "ising-mpf"])
@pytest.mark.parametrize("kind", ["bic", "ebic"])
def test_a_path_alone_is_chosen_on_as_by_its_estimator(case, kind):
    X = data_of(case, n=61)
    graph = graph_of(case, stop=kind, gamma=0.3, n_times=60).fit(X)
    selection = information_criterion(graph.path_, kind, n=61, gamma=0.3)
    assert selection.t == graph.t_
    assert_allclose(np.diff(selection.mean), np.diff(graph.selection_.mean), rtol=1e-7, atol=1e-7)
    assert_array_equal(selection.curves["df"], graph.path_.n_edges)


def test_a_path_without_a_likelihood_needs_its_rows():
    with pytest.raises(ValueError, match="`path` .* no likelihood"):
        information_criterion(path_of("ising-mpf"), "bic", n=100)


def test_gamma_makes_graphs_sparser_and_bic_ignores_it():
    X = ising_data(101, seed=3, strength=0.5)
    edges = [graph_of("ising-composite", gamma=gamma).fit(X).adjacency_.sum() for gamma in (0.0, 0.5, 1.0)]
    assert edges[0] >= edges[1] >= edges[2]
    assert edges[0] > edges[2]
    bic = graph_of("ising-composite", stop="bic", gamma=1.0).fit(X)
    assert bic.adjacency_.sum() == edges[0]
    assert bic.selection_.rule == "BIC"


@pytest.mark.parametrize(
    ("case", "X", "truth"),
    [
        ("ising-composite", lambda: ising_data(1500, seed=9), lambda: ising_model().adjacency),
        ("ising-mpf", lambda: ising_data(1500, seed=9), lambda: ising_model().adjacency),
        ("ising-nodewise-and", lambda: ising_data(1500, seed=9), lambda: ising_model().adjacency),
        ("potts", lambda: potts_data(1500, seed=9), lambda: potts_model().adjacency),
        ("gaussian-likelihood", lambda: gaussian_data(800, seed=9), lambda: gaussian_model().adjacency),
        ("gaussian-composite", lambda: gaussian_data(800, seed=9), lambda: gaussian_model().adjacency),
    ],
)
def test_ebic_finds_the_truth(case, X, truth):
    assert_array_equal(graph_of(case).fit(X()).adjacency_, truth())


# --- cross-validation -------------------------------------------------------------------------------------------------


def assert_folds(graph, X):
    """Each row is held out once, and the curve is the mean of the folds."""
    selection = graph.selection_
    assert selection.fold_scores.shape == (3, len(graph.path_.t))
    train, test = selection.folds[1]
    assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(len(X)))
    weights = selection.fold_weights / selection.fold_weights.sum()
    assert_allclose(selection.mean, weights @ selection.fold_scores)
    assert graph.t_ == selection.t_min == graph.path_.t[selection.mean.argmin()]


@pytest.mark.parametrize("case", [case for case in EVERY if case.startswith(("ising-composite", "ising-mpf", "potts"))])
def test_folds_are_scored_on_rows_they_have_not_seen(case):
    """By hand: the same estimator on the training rows, scored on the others."""
    X = data_of(case)
    graph = graph_of(case, stop="cv", cv=3, **SMALL).fit(X)
    assert_folds(graph, X)
    for k, (train, test) in enumerate(graph.selection_.folds):
        alone = graph_of(case, stop=float(graph.path_.t[4]), **SMALL).fit(X[train])
        assert_allclose(graph.selection_.fold_scores[k, 4], -2 * alone.score(X[test]), rtol=1e-8)


@pytest.mark.parametrize("rule", ["and", "or"])
def test_folds_of_nodewise_regressions(rule):
    """By hand: a logistic regression a node on the training rows, all on one clock; the sum of their deviances."""
    case, step, kappa = f"ising-nodewise-{rule}", 0.05, 10.0
    X = data_of(case).astype(float)
    graph = graph_of(case, stop="cv", cv=3, step=step, **SMALL).fit(X)
    assert_folds(graph, X)
    t = graph.path_.t[4]
    for k, (train, test) in enumerate(graph.selection_.folds):
        spins, off_diagonal = X[train], 1 - np.eye(X.shape[1])
        fields, b = np.log((1 + spins.mean(axis=0)) / (1 - spins.mean(axis=0))), 0 * off_diagonal
        z, now = np.zeros_like(b), 0.0
        while now < t:
            residual = -spins / (1 + np.exp(spins * (fields + spins @ b.T))) / len(spins)
            slope = -(residual.T @ spins) * off_diagonal
            h = 1 / np.abs(slope).max() if now == 0 else min(step, t - now)  # first to where a coefficient enters
            fields, z, now = fields - h * kappa * residual.sum(axis=0), z + h * slope, now + h
            b = kappa * np.sign(z) * np.maximum(np.abs(z) - 1, 0)
        deviance = 2 * np.logaddexp(0.0, -X[test] * (fields + X[test] @ b.T)).mean(axis=0).sum()
        assert_allclose(graph.selection_.fold_scores[k, 4], deviance, rtol=1e-8)


def plain_gaussian_path(S, loss, t, step, kappa=10.0):
    """The precision matrix at a time, by the three lines of the iteration."""
    model, ones, p = GRAPH_LOSSES[f"gaussian-{loss}"](len(S)), np.ones(1), len(S)
    j, k = np.triu_indices(p, 1)

    def gradient(diagonal, entries):
        omega = np.diag(diagonal)
        omega[j, k] = omega[k, j] = entries
        slope = model.gradient(omega, S, ones)
        return np.diagonal(slope), slope[j, k] + slope[k, j], omega

    diagonal, entries = 1 / np.diagonal(S), np.zeros(len(j))
    g0 = gradient(diagonal, entries)[1]
    now = 1 / np.abs(g0).max()
    z = -now * g0
    while now < t:
        h = min(step, t - now)  # z is a straight line between two steps
        of_diagonal, of_entries, _ = gradient(diagonal, entries)
        diagonal, z, now = diagonal - h * kappa * of_diagonal, z - h * of_entries, now + h
        entries = kappa * np.sign(z) * np.maximum(np.abs(z) - 1, 0)
    return gradient(diagonal, entries)[2]


@pytest.mark.parametrize("loss", ["likelihood", "composite"])
def test_folds_of_gaussian_graphs(loss):
    """By hand: the iteration on the training rows, and the densities of the others about the training mean.

    In units of the standard deviations of all rows, in which the clock of all folds runs.
    """
    X = gaussian_data(90)
    graph = graph_of(f"gaussian-{loss}", stop="cv", cv=3, step=0.005, **SMALL).fit(X)
    assert_folds(graph, X)
    scaled = X / X.std(axis=0)
    for k, (train, test) in enumerate(graph.selection_.folds):
        for i in (0, 3, 5):
            omega = plain_gaussian_path(np.cov(scaled[train].T, bias=True), loss, graph.path_.t[i], 0.005)
            rows = scaled[test] - scaled[train].mean(axis=0)
            if loss == "likelihood":
                score = np.einsum("ij,jk,ik->i", rows, omega, rows).mean() - np.linalg.slogdet(omega)[1]
            else:  # a node given all others has the variance 1 / omega_jj
                variance = 1 / np.diagonal(omega)
                score = np.sum(np.mean((rows @ omega * variance) ** 2, axis=0) / variance + np.log(variance))
            assert_allclose(graph.selection_.fold_scores[k, i], score, rtol=1e-8)


@pytest.mark.parametrize("case", ONE_OF_EACH)
def test_one_standard_error_is_sparser(case):
    X = data_of(case)
    best, sparser = (graph_of(case, stop=rule).fit(X) for rule in ("cv", "cv-1se"))
    assert sparser.t_ == best.selection_.t_1se <= best.t_
    scores, weights = best.selection_.fold_scores, best.selection_.fold_weights
    i = int(best.selection_.mean.argmin())
    worse, error = aggregate(scores - scores[:, [i]], weights)
    assert sparser.t_ == best.selection_.times[worse <= error][0]
    assert 0 < sparser.adjacency_.sum() <= best.adjacency_.sum()


@pytest.mark.parametrize("case", ONE_OF_EACH)
@pytest.mark.parametrize("rule", ["cv", "stars"])
def test_choices_repeat(case, rule):
    X = data_of(case)
    options = {"stop": rule, "n_subsamples": 4, **SMALL}
    one, two = (graph_of(case, n_jobs=n_jobs, **options).fit(X) for n_jobs in (1, 2))
    assert one.t_ == two.t_
    assert_array_equal(one.selection_.mean, two.selection_.mean)
    other = graph_of(case, random_state=5, **options).fit(X)
    assert np.any(other.selection_.mean != one.selection_.mean)
    drawn = [graph_of(case, random_state=np.random.default_rng(5), **options).fit(X).selection_.mean for _ in "ab"]
    assert_array_equal(*drawn)


def test_splitters_and_lists_are_folds():
    X = ising_data()
    splitter = KFold(3, shuffle=True, random_state=0)
    by_splitter = graph_of("ising-composite", stop="cv", cv=splitter, **SMALL).fit(X)
    by_list = graph_of("ising-composite", stop="cv", cv=list(splitter.split(X)), **SMALL).fit(X)
    assert_array_equal(by_splitter.selection_.mean, by_list.selection_.mean)


def test_rows_of_weight_zero_do_not_exist():
    X = ising_data()
    weights = np.ones(len(X))
    weights[:30] = 0.0
    for rule in ("cv", "stars"):
        options = {"stop": rule, "n_subsamples": 3, **SMALL}
        noisy = np.where(np.arange(len(X))[:, None] < 30, -X, X)
        one, two = (graph_of("ising-composite", **options).fit(data, sample_weight=weights) for data in (X, noisy))
        assert_array_equal(one.selection_.mean, two.selection_.mean)
        assert_allclose(one.path_.t, graph_of("ising-composite", **options).fit(X[30:]).path_.t, rtol=1e-9)
    assert f"subsamples of {int(0.8 * (len(X) - 30))} rows" in one.selection_.rule


def test_weights_count_in_folds():
    X = ising_data(80)
    weights = 1.0 + np.arange(80) % 2
    folds = [(np.arange(80)[np.arange(80) % 4 != k], np.arange(80)[np.arange(80) % 4 == k]) for k in range(4)]
    copies = np.repeat(np.arange(80), weights.astype(int))
    doubled = [(np.flatnonzero(np.isin(copies, a)), np.flatnonzero(np.isin(copies, b))) for a, b in folds]
    one = graph_of("ising-composite", stop="cv", cv=folds, **SMALL).fit(X, sample_weight=weights)
    two = graph_of("ising-composite", stop="cv", cv=doubled, **SMALL).fit(X[copies])
    assert_allclose(one.selection_.mean, two.selection_.mean, rtol=1e-7)
    assert_allclose(one.selection_.fold_weights, two.selection_.fold_weights)


# --- MDC and stability ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["ising-composite", "potts"])
def test_mdc_prefers_a_graph_to_none(case):
    X = data_of(case, n=211)
    options = {"stop": "mdc", "cv": 2, "n_times": 3, "t_ratio": 10.0}
    graph = graph_of(case, **options).fit(X)
    selection = graph.selection_
    assert selection.larger_is_better
    assert selection.measure == "mdc"
    assert selection.mean.argmax() > 0  # the first time has no edge
    assert graph.t_ == graph.path_.t[selection.mean.argmax()]
    assert np.all((selection.fold_scores > 0) & (selection.fold_scores <= 1))
    assert_array_equal(graph_of(case, n_jobs=2, **options).fit(X).selection_.mean, selection.mean)
    if case == "ising-composite":
        train, test = selection.folds[0]
        independent = np.stack([np.random.default_rng(j).permutation(X[test][:, j]) for j in range(6)], axis=1)
        assert abs(selection.fold_scores[0, 0] - mdc(X[test], independent)) < 0.1


def test_mdc_counts_whole_weights():
    X = ising_data(60)
    graph = graph_of("ising-composite", stop="mdc", cv=2, n_times=2, t_ratio=5.0)
    graph.fit(X, sample_weight=np.full(60, 2.0))
    assert graph.selection_.fold_weights.sum() == 120


@pytest.mark.parametrize("case", ONE_OF_EACH)
def test_stars_is_the_densest_stable_graph(case):
    X = data_of(case)
    graph = graph_of(case, stop="stars", n_subsamples=6, stars_beta=0.1).fit(X)
    selection, path = graph.selection_, graph.path_
    running, raw = selection.mean, selection.curves["instability"]
    assert_allclose(running, np.maximum.accumulate(raw))
    assert np.all((raw >= 0) & (raw <= 0.5))
    stable = np.flatnonzero(running <= 0.1)
    assert graph.t_ == path.t[stable[-1]]
    assert 0 < len(stable) < len(path.t)
    assert f"6 subsamples of {int(min(10 * np.sqrt(len(X)), 0.8 * len(X)))} rows" in selection.rule
    stricter = graph_of(case, stop="stars", n_subsamples=6, stars_beta=0.01).fit(X)
    assert stricter.t_ <= graph.t_


def test_stars_by_hand():
    """Instability from the graphs of the subsamples, traced one by one."""
    X = ising_data()
    graph = graph_of("ising-composite", stop="stars", n_subsamples=3, **SMALL).fit(X)
    rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(1,)))
    size = int(min(10 * np.sqrt(len(X)), 0.8 * len(X)))
    share = np.zeros((len(graph.path_.t), 6, 6))
    for _ in range(3):
        rows = np.sort(rng.choice(len(X), size, replace=False))
        alone = graph_of("ising-composite", stop=float(graph.path_.t[-1]) * 0.999, **SMALL).fit(X[rows]).path_
        share += np.array([alone.adjacency(min(t, alone.t[-1])) for t in graph.path_.t]) / 3
    j, k = np.triu_indices(6, 1)
    assert_allclose(graph.selection_.curves["instability"], (2 * share * (1 - share))[:, j, k].mean(axis=1), atol=1e-12)


def test_stars_draws_again_where_a_number_is_constant():
    X = gaussian_data(40)
    X[:, 1] = np.arange(40) < 3  # constant in one of 140 subsamples
    graph = graph_of("gaussian-likelihood", stop="stars", n_subsamples=5, **SMALL).fit(X)
    assert np.isfinite(graph.selection_.mean).all()
    X = gaussian_data(2000)
    X[:, 1] = np.arange(2000) == 7  # in most
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bregpath.selection.replicates.MAX_DRAWS", 1)
        with pytest.raises(ValueError, match='`stop`="stars" draws 447 rows .* one value only of node'):
            graph_of("gaussian-likelihood", stop="stars", n_subsamples=3, **SMALL).fit(X)
