"""Graphs of mixed data: where they are graphs of one kind, their parameters by hand, what they find."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm, poisson

import bregpath
from tests.graphs.cases import KINDS, gaussian_data, graph_of, ising_data, mixed_data, mixed_model, potts_data

SMALL = {"n_times": 20, "t_ratio": 10.0}


# --- of one kind only -------------------------------------------------------------------------------------------


def test_numbers_alone_are_the_composite_gaussian_graph():
    X = gaussian_data(200)
    gaussian = bregpath.GaussianGraph("composite", step=0.005, **SMALL).fit(X).path_
    mixed = bregpath.MixedGraph(step=0.005, **SMALL).fit(X).path_
    assert_allclose(mixed.t, gaussian.t, rtol=1e-10)
    assert_allclose(mixed.all_weights(), gaussian.all_weights(), atol=1e-9)
    assert_allclose(mixed.entry_times, gaussian.entry_times, rtol=1e-8)
    assert_allclose(mixed.deviance, gaussian.deviance, rtol=1e-8)
    t = float(mixed.t[-1])
    assert_allclose(-mixed.at(t).coef, gaussian.at(t).coef, rtol=1e-7, atol=1e-9)
    # The field of a normal node is the precision matrix times the mean.
    assert_allclose(mixed.at(t).intercept, gaussian.at(t).coef @ X.mean(axis=0), rtol=1e-6, atol=1e-8)


def test_two_labels_alone_are_the_composite_ising_graph():
    """Where both labels are as frequent, features are spins; a coupling is b / 2, and time runs twice as fast."""
    X = ising_data(100)
    X = np.vstack([X, -X])
    ising = bregpath.IsingGraph(step=0.01, kappa=20.0, **SMALL).fit(X).path_
    mixed = bregpath.MixedGraph("categorical", step=0.005, kappa=10.0, **SMALL).fit(X).path_
    assert_allclose(2 * mixed.t, ising.t, rtol=1e-10)
    assert_allclose(2 * mixed.all_weights(), ising.all_weights(), atol=1e-9)
    assert_allclose(2 * mixed.entry_times, ising.entry_times, rtol=1e-8)
    t = float(mixed.t[-1])
    block = mixed.model(t).block(0, 1)
    assert_allclose(block, ising.at(2 * t).coef[0, 1] / 2 * np.array([[1, -1], [-1, 1]]), atol=1e-9)


def test_labels_alone_end_where_the_potts_graph_does():
    X = potts_data(1500, (3, 2, 4))
    mixed = bregpath.MixedGraph("categorical", t_ratio=300.0).fit(X)
    potts = bregpath.PottsGraph(t_ratio=300.0).fit(X)
    ends = [graph.at(graph.path_.t[-1]) for graph in (mixed, potts)]
    assert_allclose(ends[0].score(X), ends[1].score(X), rtol=1e-3)
    centred = [block - block.mean(0) - block.mean(1)[:, None] + block.mean() for block in (
        ends[0].model().block(0, 2), ends[1].model().block(0, 2),
    )]  # fmt: skip
    assert_allclose(*centred, atol=0.05)
    empty = mixed.at(mixed.path_.t[0]).score(X), potts.at(potts.path_.t[0]).score(X)
    assert_allclose(*empty, rtol=1e-9)


def test_counts_alone_are_poisson_regressions():
    """Two counts, of which one is not allowed to be seen by any other: its mean is all there is to know."""
    rng = np.random.default_rng(0)
    X = rng.poisson([2.0, 5.0, 1.0], (300, 3))
    graph = bregpath.MixedGraph("count", mask=np.zeros((3, 3)), **SMALL).fit(X)
    assert_allclose(np.exp(graph.fields_), X.mean(axis=0), rtol=1e-9)
    by_hand = poisson.logpmf(X, X.mean(axis=0)).sum(axis=1).mean()
    assert_allclose(graph.score(X), by_hand, rtol=1e-9)


# --- parameters -------------------------------------------------------------------------------------------------


def composite_by_hand(model, X):
    """Sum over nodes of the log-density given all others, from the parameters of a model."""
    phi, total, at = model.features(X), np.zeros(len(X)), model.offsets
    for j, kind in enumerate(model.kinds):
        own = slice(at[j], at[j + 1])
        others = phi.copy()
        others[:, own] = 0.0
        eta = model.fields[own] + others @ model.couplings[:, own]
        if kind == "gaussian":
            precision = -model.couplings[at[j], at[j]]
            total += norm.logpdf(X[:, j], eta[:, 0] / precision, precision**-0.5)
        elif kind == "count":
            total += poisson.logpmf(X[:, j], np.exp(eta[:, 0]))
        else:
            total += eta[np.arange(len(X)), X[:, j].astype(int)] - np.log(np.exp(eta).sum(axis=1))
    return total.mean()


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_score_is_that_of_the_parameters(share):
    """In the units of the data, for rows that the graph has not seen."""
    graph = graph_of("mixed").fit(mixed_data())
    graph = graph.at(float(np.quantile(graph.path_.t, share)))
    new = mixed_data(50, seed=9)
    assert_allclose(graph.score(new), composite_by_hand(graph.model(), new), rtol=1e-10)


def test_a_path_ends_at_the_optimum_of_the_composite_likelihood():
    """There the shared blocks explain no less than separate regressions of a large sample."""
    X = mixed_data(3000)
    graph = graph_of("mixed", t_ratio=300.0, n_times=10).fit(X)
    end = graph.at(graph.path_.t[-1])
    assert_allclose(end.score(X), composite_by_hand(mixed_model(), X), rtol=0.004)
    assert end.score(X) > composite_by_hand(mixed_model(), X)
    found, truth = end.model(), mixed_model()
    for j, k in ((0, 1), (1, 2), (2, 3), (3, 4)):
        one, two = (model.block(j, k) for model in (found, truth))
        for axis in (0, 1):  # of labels, up to what is a field
            one, two = (b - b.mean(axis, keepdims=True) if b.shape[axis] > 1 else b for b in (one, two))
        assert_allclose(one, two, atol=0.12)


def test_units_of_numbers_do_not_matter():
    X = mixed_data()
    scaled = X * np.array([1e-3, 1, 1, 1, 1e4]) + np.array([5.0, 0, 0, 0, -1e5])
    path, other = graph_of("mixed").fit(X).path_, graph_of("mixed").fit(scaled).path_
    assert_allclose(other.t, path.t, rtol=1e-8)
    assert_allclose(other.all_weights(), path.all_weights(), atol=1e-7)


def test_signs():
    """A pair of single features has the sign of its coupling; a node of three labels none."""
    weights = graph_of("mixed", stop=4.0).fit(mixed_data(2000)).weights_
    assert weights[3, 4] > 0.2 and weights[2, 3] > 0.1  # the second label goes with large numbers and counts
    assert (weights[1] >= 0).all()
    turned = mixed_data(2000)
    turned[:, 3] = 1 - turned[:, 3]
    assert_allclose(graph_of("mixed", stop=4.0).fit(turned).weights_[3, 4], -weights[3, 4], rtol=1e-6)


# --- finding edges ----------------------------------------------------------------------------------------------


def auc(path, adjacency):
    """Probability that an edge enters before a pair that is none."""
    j, k = np.triu_indices(len(adjacency), 1)
    entry, is_edge = path.entry_times[j, k], adjacency[j, k]
    first, second = entry[is_edge][:, None], entry[~is_edge]
    return np.mean((first < second) + 0.5 * (first == second))


def test_edges_of_all_kinds_are_found():
    """Over a range of seeds; EBIC makes few false ones."""
    found, precision, recall = [], [], []
    for seed in range(6):
        data = bregpath.datasets.make_mixed_graph(1000, 3, 4, 3, seed=seed)
        graph = bregpath.MixedGraph(data.kinds, n_times=30, t_ratio=15.0).fit(data.X)
        hits = np.sum(graph.adjacency_ & data.adjacency)
        found.append(auc(graph.path_, data.adjacency))
        precision.append(hits / graph.adjacency_.sum())
        recall.append(hits / data.adjacency.sum())
    assert np.mean(found) > 0.95
    assert np.mean(precision) > 0.85
    assert np.mean(recall) > 0.85


def test_a_common_neighbour_is_no_edge():
    """A number and a count that a label moves depend on each other, but not given the label."""
    share = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        label = rng.integers(3, size=600)
        X = np.column_stack([label + rng.normal(size=600), label, rng.poisson(np.exp(0.5 * label))])
        assert abs(np.corrcoef(X[:, 0], X[:, 2])[0, 1]) > 0.25
        adjacency = bregpath.MixedGraph(["gaussian", "categorical", "count"], **SMALL).fit(X).adjacency_
        share.append([adjacency[0, 1], adjacency[1, 2], adjacency[0, 2]])
    assert_array_equal(np.mean(share, axis=0) > 0.7, [True, True, False])


@pytest.mark.parametrize("stop", ["ebic", "bic", "cv", "cv-1se", "stars", "stable", 3.0])
def test_every_rule_chooses(stop):
    graph = graph_of("mixed", stop=stop, cv=3, n_subsamples=4).fit(mixed_data())
    assert graph.adjacency_[3, 4]  # the strongest
    assert graph.path_.t[0] <= graph.t_ <= graph.path_.t[-1]


def test_rare_counts_and_labels_in_folds():
    """Training rows may lack a label, and a count other than zero: no infinite fields."""
    X = mixed_data(60)
    X[:, 2] = np.arange(60) == 3
    X[:, 1] = np.where(np.arange(60) == 7, 2, X[:, 1] % 2)
    graph = graph_of("mixed", stop="cv", cv=4).fit(X)
    assert np.isfinite(graph.selection_.fold_scores).all()
    assert np.isfinite(graph.fields_).all()


def test_missing_cells_are_drawn_of_their_kind():
    X = mixed_data(150)
    gone = np.random.default_rng(0).random(X.shape) < 0.1
    graph = graph_of("mixed").fit(np.where(gone, np.nan, X))
    rows = graph._study.rows
    assert graph.n_missing_ == gone.sum()
    assert_array_equal(rows[~gone], X[~gone])
    assert set(rows[:, 1]) == {0, 1, 2} and set(rows[:, 3]) == {0, 1}
    assert_array_equal(rows[:, 2], np.abs(np.round(rows[:, 2])))
    # Drawn from what is known of their rows, not from the column: the number that goes with the last label.
    cells = gone[:, 4] & ~gone[:, 3]
    up = rows[cells, 3] == 1
    assert rows[cells, 4][up].mean() > rows[cells, 4][~up].mean() + 1.0


# --- tables -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_say_what_columns_are(library):
    frames = pytest.importorskip(library)
    X = mixed_data(80)
    columns = {
        "income": X[:, 0],
        "region": np.array(["north", "south", "west"])[X[:, 1].astype(int)].tolist(),
        "visits": X[:, 2].astype(int),
        "smokes": X[:, 3] == 1,
        "height": X[:, 4],
        "twin": (np.arange(80) % 2).astype(int),
    }
    graph = bregpath.MixedGraph({"visits": "count"}, **SMALL).fit(frames.DataFrame(columns))
    assert graph.kinds_ == ["gaussian", "categorical", "count", "categorical", "gaussian", "categorical"]
    assert list(graph.feature_names_in_) == graph.path_.names == list(columns)
    assert graph.levels_[1].tolist() == ["north", "south", "west"] and len(graph.levels_[0]) == 0
    plain = graph_of("mixed", kinds=(*KINDS, "categorical"), **SMALL).fit(np.column_stack([X, columns["twin"]]))
    assert_allclose(graph.weights_, plain.weights_, atol=1e-12)
    drawn = graph.sample(5, seed=0)
    assert set(drawn[:, 1]) <= {"north", "south", "west"}
    assert set(graph.graph().nodes) == set(columns)
    assert "smokes - height" in str(graph)


def test_categories_of_numbers_are_labels():
    pandas = pytest.importorskip("pandas")
    X = mixed_data(80)
    frame = pandas.DataFrame({"a": pandas.Categorical(X[:, 1].astype(int)), "b": X[:, 0], "c": X[:, 2].astype(int)})
    assert bregpath.MixedGraph(**SMALL).fit(frame).kinds_ == ["categorical", "gaussian", "gaussian"]


def test_lists_keep_the_types_of_their_cells():
    X = mixed_data(60)
    rows = [[float(a), "abc"[int(b)], int(c)] for a, b, c in X[:, :3]]
    assert bregpath.MixedGraph(**SMALL).fit(rows).kinds_ == ["gaussian", "categorical", "gaussian"]
    graph = bregpath.MixedGraph({2: "count"}, **SMALL).fit(rows)
    assert graph.kinds_ == ["gaussian", "categorical", "count"]
    assert_allclose(graph.score(rows), graph.score(np.array(rows, dtype=object)))


def test_rare_labels_are_pooled():
    X = mixed_data(100).astype(object)
    X[:, 1] = np.where(np.arange(100) < 3, np.array(["x", "y", "z"])[np.arange(100) % 3], "common")
    X[50:, 1] = "other"
    graph = graph_of("mixed", min_count=5).fit(X)
    assert graph.levels_[1].tolist() == ["common", "other", "(rare)"]
    X[0, 1] = "never seen"
    assert np.isfinite(graph.score(X))


@pytest.mark.parametrize(
    ("options", "change", "error", "text"),
    [
        ({"kinds": "poisson"}, {}, ValueError, "`kinds` of column 'x0' must be one of 'auto', .* 'poisson'"),
        ({"kinds": {"visits": "count"}}, {}, ValueError, "`kinds` names a column 'visits', which `X` does not have"),
        ({"kinds": ["count"] * 4}, {}, ValueError, "`kinds` must have one entry for each of the 5 columns, found 4"),
        ({}, {(3, 2): -1.0}, ValueError, "`X` has -1 in column 'x2', negative, but counts are 0, 1, 2"),
        ({}, {(3, 2): 1.5}, ValueError, "`X` has 1.5 in column 'x2', not whole, but counts"),
        ({}, {0: 1.0}, ValueError, "`X` is constant in column 'x0'; drop it"),
        ({}, {(0, 4): np.inf}, ValueError, "`X` contains infinity in column 'x4'"),
        ({}, {0: 1e200}, ValueError, "`X` has numbers like 1e\\+200 in column 'x0'.*rescale"),
        ({"missing": "refuse"}, {(0, 1): np.nan}, ValueError, "`X` has 1 missing value"),
        ({"min_count": 0}, {}, ValueError, "`min_count` must be at least 1"),
        ({"loss": "mpf"}, {}, ValueError, "`loss` must be one of"),
        ({"stop": "mdc"}, {}, ValueError, "`stop` must be one of"),
    ],
)
def test_bad_input(options, change, error, text):
    X = mixed_data(40)
    for cells, value in change.items():
        X[cells if isinstance(cells, tuple) else (slice(None), cells)] = value
    with pytest.raises(error, match=text):
        graph_of("mixed", **options).fit(X)


def test_text_is_no_number():
    X = mixed_data(40).astype(object)
    X[3, 0] = "many"
    with pytest.raises(TypeError, match="`X` must hold numbers, found 'many' in column 'x0'; make it \"categorical\""):
        graph_of("mixed").fit(X)
    with pytest.raises(ValueError, match=r"`X` has 1 row\(s\); at least 2"):
        graph_of("mixed").fit(mixed_data(40)[:1])


def test_labels_and_counts_that_do_not_vary_get_no_edges():
    X = mixed_data(80)
    X[:, 1], X[:, 2] = 0, 4
    with pytest.warns(UserWarning, match="one value only in column\\(s\\) 'x1', 'x2': these nodes get no edges"):
        graph = graph_of("mixed", stop=8.0).fit(X)
    assert not graph.adjacency_[[1, 2]].any() and graph.adjacency_[3, 4]
    assert_allclose(np.exp(graph.model().fields[graph.model().offsets[2]]), 4.0, rtol=1e-6)


def test_labels_of_rows_without_weight_are_refused():
    X = mixed_data(60)
    w = (X[:, 1] != 2).astype(float)
    with pytest.raises(ValueError, match="`X` has labels \\[2.0\\] in column 'x1' whose rows all have weight 0"):
        graph_of("mixed").fit(X, sample_weight=w)


def test_figures_and_summaries_know_kinds_and_signs():
    pytest.importorskip("matplotlib").use("Agg")
    graph = graph_of("mixed", stop=8.0).fit(mixed_data(500))
    named = [text.get_text() for text in graph.plot().get_legend().get_texts()]
    assert {"gaussian", "categorical", "count", "no sign", "positive"} <= set(named)
    lines = str(graph).splitlines()
    assert any(line.startswith("x0 - x1") and "+" not in line for line in lines)
    assert any(line.startswith("x3 - x4") and "+" in line for line in lines)


def test_files(tmp_path):
    graph = graph_of("mixed").fit(mixed_data())
    graph.save(tmp_path / "mixed.npz")
    again = bregpath.load_path(tmp_path / "mixed.npz")
    assert_array_equal(again.all_weights(), graph.path_.all_weights())
    new = mixed_data(30, seed=4)
    times = graph.path_.t[[3, 12]]
    assert_array_equal(again.deviance_of(new, np.ones(30), times), graph.path_.deviance_of(new, np.ones(30), times))
    assert_array_equal(again.model(graph.t_).sample(3, seed=0), graph.sample(3, seed=0))
