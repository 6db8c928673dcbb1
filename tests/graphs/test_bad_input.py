"""What graph estimators say about data and arguments that make no sense."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from bregpath import GaussianGraph, IsingGraph, PottsGraph
from tests.graphs.cases import CASES, ONE_OF_EACH, data_of, gaussian_data, graph_of, ising_data, potts_data


def with_entry(X, value, dtype=None):
    """A copy with one entry replaced."""
    X = X.astype(dtype or X.dtype)
    X[3, 1] = value
    return X


# --- data -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, None])
@pytest.mark.parametrize("case", ONE_OF_EACH)
def test_missing_values(case, value):
    X = with_entry(data_of(case), value, float if value is not None else object)
    with pytest.raises(ValueError, match=r"`X` has 1 missing value\(s\) in column 1 \(first: row 3\)"):
        graph_of(case, missing="refuse").fit(X)


@pytest.mark.parametrize("case", ONE_OF_EACH)
def test_missing_values_of_frames(case):
    pl = pytest.importorskip("polars")
    X = data_of(case)
    frame = pl.DataFrame({f"n{j}": X[:, j] for j in range(X.shape[1])})
    frame = frame.with_columns(pl.when(pl.int_range(pl.len()) == 3).then(None).otherwise(pl.col("n1")).alias("n1"))
    with pytest.raises(ValueError, match=r"`X` has 1 missing value\(s\) in column 'n1' \(first: row 3\)"):
        graph_of(case, missing="refuse").fit(frame)
    graph = graph_of(case).fit(X)
    with pytest.raises(ValueError, match="`X` has 1 missing value"):
        graph.score(frame)


def test_infinite_values():
    with pytest.raises(ValueError, match="`X` contains infinity in column 1"):
        GaussianGraph().fit(with_entry(gaussian_data(), np.inf))


def test_constant_number():
    X = gaussian_data()
    X[:, 2] = X[0, 2]
    with pytest.raises(ValueError, match="`X` is constant in column 'x2'"):
        GaussianGraph().fit(X)


def test_labels_without_weight():
    states = potts_data()
    states[states[:, 2] == 3, 2] = 0
    states[0, 2] = 3
    with pytest.raises(ValueError, match=r"`X` has labels \[3\] in column 'x2' whose rows all have weight 0"):
        PottsGraph().fit(states, sample_weight=(np.arange(len(states)) > 0).astype(float))


def test_three_labels_are_no_spins():
    with pytest.raises(ValueError, match="`X` has 3 labels .* in column 'x1'; .*PottsGraph"):
        IsingGraph().fit(with_entry(ising_data(), 0))


def test_text_is_no_gaussian():
    with pytest.raises(TypeError, match="`X` must hold numbers"):
        GaussianGraph().fit([["a", "b"], ["c", "d"]])


@pytest.mark.parametrize("case", ONE_OF_EACH)
@pytest.mark.parametrize(
    ("cut", "words"),
    [
        (lambda X: X[:, :1], "at least 2 nodes"),
        (lambda X: X[:1], r"1 row\(s\)"),
        (lambda X: X[:0], r"0 row\(s\)"),
        (lambda X: X[:, 0], "two-dimensional"),
    ],
)
def test_too_small_tables(case, cut, words):
    with pytest.raises(ValueError, match=f"`X` .*{words}"):
        graph_of(case).fit(cut(data_of(case)))


@pytest.mark.parametrize("case", ONE_OF_EACH)
@pytest.mark.parametrize(
    "weights", [-np.ones(151), np.ones(7), np.zeros(151), np.full(151, np.nan), np.full(151, np.inf)]
)
def test_wrong_weights(case, weights):
    with pytest.raises(ValueError, match="`sample_weight`"):
        graph_of(case).fit(data_of(case, n=151), sample_weight=weights)


# --- arguments --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ONE_OF_EACH)
@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"stop": "aic"}, ValueError),
        ({"stop": None}, ValueError),
        ({"stop": True}, ValueError),
        ({"stop": -1.0}, ValueError),
        ({"stop": np.nan}, ValueError),
        ({"loss": "poisson"}, ValueError),
        ({"gamma": -0.5}, ValueError),
        ({"gamma": "much"}, ValueError),
        ({"kappa": 0.0}, ValueError),
        ({"kappa": "ten"}, TypeError),
        ({"tol": 0.0}, ValueError),
        ({"step": "small"}, ValueError),
        ({"step": -0.1}, ValueError),
        ({"t_ratio": 0.5}, ValueError),
        ({"n_times": 1}, ValueError),
        ({"max_sparsity": "few"}, TypeError),
        ({"cv": 1, "stop": "cv"}, ValueError),
        ({"cv": "loo", "stop": "cv"}, TypeError),
        ({"random_state": -3, "stop": "stars"}, ValueError),
        ({"stars_beta": 0.0, "stop": "stars"}, ValueError),
        ({"n_subsamples": 1, "stop": "stars"}, ValueError),
        ({"n_subsamples": 0, "stop": "stable"}, ValueError),
        ({"stable_threshold": 0.5, "stop": "stable"}, ValueError),
        ({"n_jobs": 0, "stop": "cv"}, ValueError),
    ],
)
def test_wrong_arguments_are_named(case, options, error):
    with pytest.raises(error, match=f"`{next(iter(options))}`"):
        graph_of(case, **options).fit(data_of(case))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (IsingGraph, {"rule": "xor"}),
        (IsingGraph, {"coding": "ternary"}),
        (PottsGraph, {"couplings": "some"}),
        (PottsGraph, {"penalty": "l2"}),
        (PottsGraph, {"parameters": "few"}),
        (PottsGraph, {"min_count": 0}),
        (PottsGraph, {"min_count": 1.5}),
        (GaussianGraph, {"input": "precision"}),
        (GaussianGraph, {"stop": "mdc"}),
    ],
)
def test_wrong_arguments_of_one_model_are_named(kind, options):
    X = {IsingGraph: ising_data, PottsGraph: potts_data, GaussianGraph: gaussian_data}[kind]()
    with pytest.raises(ValueError, match=f"`{next(iter(options))}`.*found"):
        kind(**options).fit(X)


@pytest.mark.parametrize("name", ["mask", "edge_weights"])
@pytest.mark.parametrize("case", ONE_OF_EACH)
def test_matrices_of_edges(case, name):
    X = data_of(case)
    p = X.shape[1]
    one_way = np.ones((p, p))
    one_way[0, 1] = 0
    unknown = np.ones((p, p))
    unknown[0, 1] = unknown[1, 0] = np.nan
    for matrix, words in ((one_way, "symmetric"), (np.ones((p, p + 1)), "shape"), (unknown, "NaN")):
        with pytest.raises(ValueError, match=f"`{name}` .*{words}"):
            graph_of(case, **{name: matrix}).fit(X)
    with pytest.raises(TypeError, match=f"`{name}` must hold numbers"):
        graph_of(case, **{name: np.full((p, p), "yes")}).fit(X)
    with pytest.raises(ValueError, match="`edge_weights` must be non-negative"):
        graph_of(case, edge_weights=-np.ones((p, p))).fit(X)


# --- covariances ------------------------------------------------------------------------------------------------------


def from_covariance(**options):
    return GaussianGraph(input="covariance", **{"n_samples": 100, **options})


def test_a_covariance_must_be_one():
    S = np.cov(gaussian_data().T)
    skew = S.copy()
    skew[0, 1] += 1.0
    indefinite = np.array([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(ValueError, match="`X` must be a symmetric covariance matrix"):
        from_covariance().fit(skew)
    with pytest.raises(ValueError, match="`X` must be a symmetric covariance matrix.*shape"):
        from_covariance().fit(gaussian_data())
    for wrong in (indefinite, np.diag([1.0, 0.0, 1.0]), -S):
        with pytest.raises(ValueError, match="`X` is not a covariance matrix"):
            from_covariance().fit(wrong)


def test_what_a_covariance_cannot_tell():
    S = np.cov(gaussian_data().T)
    with pytest.raises(ValueError, match="`stop`='ebic' needs the number of rows .*n_samples"):
        from_covariance(n_samples=None).fit(S)
    for rule in ("cv", "cv-1se", "stars", "stable"):
        with pytest.raises(ValueError, match="`stop`=.* needs rows"):
            from_covariance(stop=rule).fit(S)
    with pytest.raises(ValueError, match="`sample_weight` needs rows"):
        from_covariance().fit(S, sample_weight=np.ones(5))
    for wrong in (0, -5, "many"):
        with pytest.raises((ValueError, TypeError), match="`n_samples`"):
            from_covariance(n_samples=wrong).fit(S)


# --- fitted graphs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_nothing_works_before_fit(case):
    graph, X = graph_of(case), data_of(case)
    calls = [
        *(lambda: graph.score(X), lambda: graph.model(), lambda: graph.graph(), lambda: graph.at(1.0)),
        *(lambda: graph.at_sparsity(0.1), lambda: graph.edge_table(), lambda: graph.sample(3), lambda: graph.point()),
        *(lambda: graph.write_edges("nowhere"), lambda: graph.write_graphml("nowhere")),
    ]
    if case.startswith("ising"):
        calls.append(lambda: graph.predict_proba(X))
    for call in calls:
        with pytest.raises(NotFittedError):
            call()


@pytest.mark.parametrize("case", ONE_OF_EACH)
def test_new_data(case):
    X = data_of(case)
    graph = graph_of(case).fit(X)
    with pytest.raises(ValueError, match="`X` has 3 columns, the graph has"):
        graph.score(X[:, :3])
    with pytest.raises(ValueError, match=r"`X` has 0 row\(s\)"):
        graph.score(X[:0])
    with pytest.raises(ValueError, match="`sample_weight`"):
        graph.score(X, sample_weight=[1.0, 2.0])
    with pytest.raises(ValueError, match="`level`"):
        graph.at_sparsity(1.2)
    with pytest.raises(ValueError, match="`t`=.*beyond the end of the path"):
        graph.at(1e6)
    with pytest.raises(ValueError, match="`t` must be a positive time"):
        graph.model(0.0)


def test_labels_never_seen():
    with pytest.raises(ValueError, match=r"`X` has labels \[0\] in column 'x1' that were not seen"):
        IsingGraph().fit(ising_data()).score(with_entry(ising_data(), 0))
    with pytest.raises(ValueError, match=r"`X` has labels \[9\] in column 'x1' that were not seen in fit; .*min_count"):
        PottsGraph().fit(potts_data()).score(with_entry(potts_data(), 9))


# --- resampling -------------------------------------------------------------------------------------------------------


def test_folds_in_which_a_number_is_constant():
    rows = gaussian_data(20)
    rows[:, 3] = np.arange(20) == 4
    with pytest.raises(ValueError, match="`cv`: the training rows of fold . have one value only of node 'x3'"):
        GaussianGraph(stop="cv").fit(rows)


def test_weights_of_mdc_are_copies():
    X = ising_data(40)
    with pytest.raises(ValueError, match='`stop`="mdc" .*`sample_weight`'):
        graph_of("ising-composite", stop="mdc", n_times=3).fit(X, sample_weight=np.linspace(0.5, 1.5, 40))
