"""Graph estimators: masks, names, exports, other times, and what scikit-learn asks for."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from tests.graphs.cases import (
    CASES,
    ONE_OF_EACH,
    data_of,
    gaussian_data,
    graph_of,
    ising_data,
    kinds_at,
)

EVERY = list(CASES)


# --- masks and weights of edges ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", EVERY)
def test_forbidden_free_and_heavy_edges(case):
    X = data_of(case)
    p = X.shape[1]
    weights, mask = np.ones((p, p)), np.ones((p, p), dtype=bool)
    mask[0, 1] = mask[1, 0] = False
    weights[1, 2] = weights[2, 1] = np.inf
    weights[0, 3] = weights[3, 0] = 0.0
    weights[0, 2] = weights[2, 0] = 1e3  # needs a gradient a thousand times as long
    path = graph_of(case, mask=mask, edge_weights=weights).fit(X).path_
    for j, k in ((0, 1), (1, 2), (0, 2)):
        assert path.entry_times[j, k] == np.inf
        assert not path.all_weights()[:, j, k].any()
    assert path.entry_times[0, 3] == path.entry_times[3, 0] == 0.0
    assert path.all_weights()[:, 0, 3].all()
    assert path.n_edges[0] == 1
    assert path.n_edges[-1] > 2
    pairs = p * (p - 1) / 2
    assert np.count_nonzero(path.adjacency(path.time_at_sparsity(1 / pairs))) == 2
    with pytest.raises(ValueError, match="`level`.*from the start"):
        path.time_at_sparsity(0.0)


@pytest.mark.parametrize("case", EVERY)
def test_two_nodes_are_a_graph(case):
    graph = graph_of(case, **kinds_at(case, [0, 1])).fit(data_of(case)[:, :2])
    assert graph.path_.n_edges.tolist() == [0] + [1] * (len(graph.path_.t) - 1)
    assert graph.adjacency_[0, 1]


@pytest.mark.parametrize("case", ONE_OF_EACH)
def test_a_graph_without_possible_edges_stays_empty(case):
    X = data_of(case)
    graph = graph_of(case, mask=np.zeros((X.shape[1],) * 2)).fit(X)
    assert not graph.adjacency_.any()
    assert not graph.path_.n_edges.any()
    assert np.isfinite(graph.score(X))
    assert graph.path_.result.name == "AT_REST"


# --- names, tables, files ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("case", ONE_OF_EACH)
def test_names_come_from_data_frames(case, library):
    frames = pytest.importorskip(library)
    X = data_of(case)
    names = [f"node {j}" for j in range(X.shape[1])]
    frame = frames.DataFrame({name: X[:, j] for j, name in enumerate(names)})
    graph = graph_of(case).fit(frame)
    assert graph.feature_names_in_.tolist() == names
    assert graph.path_.names == names
    assert_array_equal(graph.weights_, graph_of(case).fit(X).weights_)
    assert graph.score(frame) == graph.score(X)
    with pytest.raises(ValueError, match="`X` has other columns"):
        graph.score(frame[names[::-1]])
    assert not hasattr(graph.fit(X), "feature_names_in_")  # an array has no names


def test_networkx_graph_and_files(tmp_path):
    nx = pytest.importorskip("networkx")
    pd = pytest.importorskip("pandas")
    names = list("abcdef")
    graph = graph_of("ising-composite").fit(pd.DataFrame(ising_data(), columns=names))
    drawn = graph.graph()
    assert list(drawn.nodes) == names
    assert drawn.number_of_edges() == graph.adjacency_.sum() // 2 > 0
    for one, two, attributes in drawn.edges(data=True):
        weight = graph.weights_[names.index(one), names.index(two)]
        assert attributes == {"weight": weight, "sign": np.sign(weight), "strength": abs(weight)}
    assert [drawn.nodes[name]["field"] for name in names] == graph.fields_.tolist()
    graph.write_graphml(tmp_path / "graph.graphml")
    again = nx.read_graphml(tmp_path / "graph.graphml")
    assert {frozenset(edge) for edge in again.edges} == {frozenset(edge) for edge in drawn.edges}
    table = graph.edge_table()
    assert list(table.columns) == ["source", "target", "weight", "sign", "strength", "entry_time"]
    assert np.all(np.diff(table["entry_time"]) >= 0)
    graph.write_edges(tmp_path / "edges.csv")
    saved = (tmp_path / "edges.csv").read_text().splitlines()
    assert saved[0] == ",".join(table.columns)
    assert [float(line.split(",")[2]) for line in saved[1:]] == table["weight"].tolist()
    denser = graph.path_.t[-1]
    assert graph.graph(denser).number_of_edges() == graph.path_.n_edges[-1]
    assert len(graph.edge_table(denser)) == graph.path_.n_edges[-1]
    assert graph.path_.graph(denser).edges.keys() == graph.graph(denser).edges.keys()
    assert len(graph.path_.edge_table(denser)) == graph.path_.n_edges[-1]


# --- other times, samples, scikit-learn -------------------------------------------------------------------------------


@pytest.mark.parametrize("case", EVERY)
def test_other_times_of_the_same_fit(case):
    graph = graph_of(case).fit(data_of(case))
    chosen, t = graph.t_, float(graph.path_.t[13])
    other = graph.at(t)
    assert other.t_ == t
    assert graph.t_ == chosen != t
    assert_array_equal(other.weights_, graph.path_.weights(t))
    assert_array_equal(graph.weights_, graph.path_.weights(graph.t_))
    assert_array_equal(other.point().coef, graph.point(t).coef)
    sparse = graph.at_sparsity(0.4)
    pairs = len(sparse.weights_) * (len(sparse.weights_) - 1) // 2
    assert sparse.adjacency_.sum() // 2 == int(0.4 * pairs)
    direct = graph_of(case, stop=t).fit(data_of(case))
    assert direct.t_ == t
    assert direct.selection_ is None
    assert_allclose(direct.weights_, other.weights_, rtol=0, atol=1e-10)


def test_a_time_before_the_first_edge_and_one_beyond_the_window():
    X = ising_data()
    early = graph_of("ising-composite", stop=0.01).fit(X)
    assert early.t_ == 0.01
    assert not early.adjacency_.any()
    late = graph_of("ising-composite", stop=500.0).fit(X)
    assert late.t_ == 500.0
    twins = np.repeat(X[:, :1], 2, axis=1)
    with pytest.warns(UserWarning, match="`stop`=.*beyond the end"):
        saturated = graph_of("ising-composite", stop=1e4).fit(twins)
    assert saturated.t_ == saturated.path_.t[-1]


@pytest.mark.parametrize("case", EVERY)
def test_times_to_report(case):
    X = data_of(case)
    whole = graph_of(case).fit(X)
    times = whole.path_.t[[2, 7, 11]]
    few = graph_of(case, t=times).fit(X)
    assert_array_equal(few.path_.t, times)
    assert_allclose(few.path_.coef, whole.path_.coef[[2, 7, 11]], atol=1e-12)
    assert few.t_ in times
    assert_array_equal(graph_of(case, t=list(times), stop="cv", cv=2).fit(X).selection_.times, times)
    later = graph_of(case, t=times, stop=float(whole.path_.t[13])).fit(X)  # beyond what is reported
    assert later.t_ == whole.path_.t[13]
    assert_allclose(later.weights_, whole.path_.all_weights()[13], atol=1e-12)
    with pytest.raises(ValueError, match="`t` must increase"):
        graph_of(case, t=times[::-1]).fit(X)


def test_gaussian_paths_go_on_to_the_unpenalised_fit():
    X = gaussian_data()
    graph = graph_of("gaussian-likelihood", stop=1e4).fit(X)
    assert graph.t_ == 1e4
    assert_allclose(graph.covariance_, np.cov(X.T, bias=True), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("case", ONE_OF_EACH)
def test_samples_look_like_the_data(case):
    X = data_of(case, n=997)
    graph = graph_of(case).fit(X)
    drawn = graph.sample(3000, seed=1)
    assert_array_equal(drawn, graph.sample(3000, seed=1))
    assert drawn.shape == (3000, X.shape[1])
    assert_allclose(np.corrcoef(drawn.T), np.corrcoef(X.T), atol=0.12)


@pytest.mark.parametrize("case", EVERY)
def test_pickle_clone_and_parameters(case):
    X = data_of(case)
    graph = graph_of(case, kappa=5.0).fit(X)
    again = pickle.loads(pickle.dumps(graph))
    assert_array_equal(again.weights_, graph.weights_)
    assert again.score(X) == graph.score(X)
    assert_array_equal(again.at_sparsity(0.3).weights_, graph.at_sparsity(0.3).weights_)
    with pytest.raises(ValueError, match="cannot be extended"):
        again.path_.extend(1e3)
    copy = clone(graph)
    assert not hasattr(copy, "path_")
    assert copy.get_params() == graph.get_params()
    assert copy.set_params(kappa=7.0).kappa == 7.0
    assert "kappa=7.0" in repr(copy)
    assert_array_equal(clone(graph).fit(X).weights_, graph.weights_)
