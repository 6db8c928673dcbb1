"""Stability selection: its counts, its bounds, its clock, and that threads change nothing."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bregpath
from bregpath.selection.stability import error_bound, replicate_stability
from tests.helpers import make_data


@pytest.fixture(scope="module")
def data():
    return bregpath.datasets.make_logistic(200, 30, 4, M=2, seed=2)


@pytest.fixture(scope="module")
def stability(data):
    return bregpath.stability_selection(data.X, data.y, loss="logistic", n_replicates=30)


# --- what is counted -----------------------------------------------------------------------------------


def fake(entry_times):
    """A replicate that is nothing but its entry times."""
    return SimpleNamespace(entry_times=np.asarray(entry_times, dtype=float))


def test_probabilities_by_hand():
    entries = iter([[1.0, 2.0, np.inf], [3.0, 1.0, 2.0], [1.5, np.inf, np.inf], [9.0, 9.0, 9.0]])
    result = replicate_stability(
        lambda rows: fake(next(entries)), 10, [1.0, 2.0, 4.0], max_false=None, n_replicates=4, threshold=0.75
    )
    assert_allclose(result.probabilities, [[0.25, 0.25, 0], [0.5, 0.5, 0.25], [0.75, 0.5, 0.25]])
    assert_allclose(result.size, [0.5, 1.25, 1.5])
    assert_allclose(result.max_probability, [0.75, 0.5, 0.25])
    assert result.selected.tolist() == [0]
    assert result.at_threshold(0.51).selected.tolist() == [0]


def test_only_the_first_entries_count():
    entries = iter([[1.0, 2.0, 3.0, 0.0], [3.0, 1.0, 1.0, 0.0]])
    candidates = [True, True, True, False]
    result = replicate_stability(
        lambda rows: fake(next(entries)), 10, [1.0, 2.0, 3.0], candidates=candidates, n_variables=1, n_replicates=2
    )
    # The first replicate keeps column 0; in the second two columns tie for the one place, and neither gets it.
    assert_allclose(result.max_probability, [0.5, 0, 0, 1])
    assert_allclose(result.size, [0.5])
    assert_allclose(result.times, [1.0])  # nothing changes later


def test_edges_are_the_upper_triangle():
    def trace(rows):
        entry = np.full((3, 3), np.inf)
        entry[0, 2] = entry[2, 0] = 1.0
        return fake(entry)

    result = replicate_stability(trace, 8, [1.0, 2.0], n_variables=1, n_replicates=4, names=["a", "b", "c"])
    assert result.selected.tolist() == [[0, 2]]
    assert result.item_names == ["a - b", "a - c", "b - c"]
    assert_allclose(result.probabilities[-1], [0, 1, 0])
    assert "1 of 3 edges" in repr(result)
    banned = np.ones((3, 3), dtype=bool)
    banned[0, 2] = banned[2, 0] = False
    result = replicate_stability(trace, 8, [1.0, 2.0], n_variables=1, n_replicates=4, candidates=banned)
    assert result.candidates.tolist() == [True, False, True] and result.size[-1] == 0
    with pytest.raises(ValueError, match="`candidates` must say yes or no to each of 3 items"):
        replicate_stability(trace, 8, [1.0, 2.0], n_variables=1, n_replicates=4, candidates=[True])


@pytest.mark.parametrize("pairs", [True, False])
def test_halves(pairs):
    halves = []
    replicate_stability(
        lambda rows: (halves.append(rows), fake([1.0, 2.0]))[1], 11, [1.0], n_replicates=6, pairs=pairs, n_variables=1
    )
    assert [len(set(half)) for half in halves] == [5] * 6
    for first, second in zip(halves[::2], halves[1::2], strict=True):
        assert (len(set(first) & set(second)) == 0) == pairs
    assert not np.array_equal(halves[0], halves[2])


def test_names_of_the_paths_survive():
    pd = pytest.importorskip("pandas")
    pytest.importorskip("narwhals")
    X, y = make_data("gaussian", n=40, p=3)
    frame = pd.DataFrame(X, columns=["age", "bmi", "sex"])
    result = replicate_stability(
        lambda rows: bregpath.trace_path(frame.iloc[rows], y[rows]), 40, [1.0, 3.0], n_variables=1, n_replicates=4
    )
    assert result.item_names == ["age", "bmi", "sex"]
    nodes = pd.DataFrame(np.where(X > 0, 1, -1), columns=["age", "bmi", "sex"])
    edges = replicate_stability(
        lambda rows: bregpath.IsingGraph(stop=3.0).fit(nodes.iloc[rows]).path_, 40, [1.0, 3.0], n_variables=1,
        n_replicates=4,
    )  # fmt: skip
    assert edges.item_names == ["age - bmi", "age - sex", "bmi - sex"]
    with pytest.raises(ValueError, match="`names` must have one entry for each of 3 columns or nodes, found 2"):
        replicate_stability(lambda rows: fake(np.ones(3)), 8, [1.0], n_replicates=4, names=["a", "b"])


def test_counts_are_those_of_the_paths(data):
    """All replicates to the end: the probabilities are means over separate paths at the same times."""
    times, halves = np.array([0.02, 0.05, 0.1, 0.2]) * 100, []
    path_on = {}

    def trace(rows):
        halves.append(rows)
        path_on[len(halves)] = bregpath.trace_path(data.X[rows], data.y[rows], loss="logistic", t=times)
        return path_on[len(halves)]

    common = dict(max_false=None, n_replicates=8)
    generic = replicate_stability(trace, 200, times, **common)
    own = bregpath.stability_selection(data.X, data.y, loss="logistic", t=times, **common)
    assert_allclose(own.times, generic.times)
    assert_allclose(own.probabilities, generic.probabilities)
    entered = np.mean([p.entry_times <= times[:, None] for p in path_on.values()], axis=0)
    assert_allclose(generic.probabilities, entered[: len(generic.times)])
    active = bregpath.stability_selection(data.X, data.y, loss="logistic", t=times, count="active", **common)
    assert_allclose(active.probabilities, np.mean([p.coef != 0 for p in path_on.values()], axis=0)[: len(own.times)])
    assert (active.probabilities <= own.probabilities).all()


# --- regression ----------------------------------------------------------------------------------------


def test_finds_the_support(stability, data):
    assert_array_equal(stability.selected, data.support)
    assert (np.diff(stability.probabilities, axis=0) >= 0).all()
    assert stability.size[-1] <= stability.n_variables
    assert stability.error_bound <= 1
    assert_allclose(stability.probabilities.sum(axis=1), stability.size)


def test_ending_early_changes_nothing(stability, data):
    def trace(rows):
        return bregpath.trace_path(data.X[rows], data.y[rows], loss="logistic", t=stability.path.t)

    full = replicate_stability(trace, 200, stability.path.t, n_replicates=30, labels=data.y)
    assert full.n_variables == stability.n_variables
    assert_allclose(full.times, stability.times)
    assert_allclose(full.probabilities, stability.probabilities)


def test_threads_change_nothing(stability, data):
    threaded = bregpath.stability_selection(data.X, data.y, loss="logistic", n_replicates=30, n_jobs=3)
    assert_array_equal(threaded.probabilities, stability.probabilities)
    other = bregpath.stability_selection(data.X, data.y, loss="logistic", n_replicates=30, seed=1)
    assert not np.array_equal(other.probabilities[-1], stability.probabilities[-1])


def test_weights_offsets_and_free_columns():
    X, y = make_data("gaussian", n=60, p=8)
    weight = np.r_[np.zeros(10), np.ones(50)]
    offset, factor = 2.0 * X[:, 7], np.r_[0.0, np.ones(6), np.inf]
    options = dict(n_replicates=10, n_variables=3, penalty_factor=factor)
    weighted = bregpath.stability_selection(X, y + offset, offset=offset, sample_weight=weight, **options)
    dropped = bregpath.stability_selection(X[10:], y[10:], **options)
    assert_allclose(weighted.probabilities[-1], dropped.probabilities[-1])
    assert weighted.candidates.tolist() == [False, *[True] * 6, False]
    assert weighted.max_probability[0] == 1 and weighted.max_probability[7] == 0
    assert weighted.size[-1] <= 3


def test_data_frames_and_sparse():
    pd = pytest.importorskip("pandas")
    pytest.importorskip("narwhals")
    from scipy.sparse import csc_array

    X, y = make_data("gaussian", n=60, p=6)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["kind"] = np.where(np.arange(60) % 3 == 0, "one", "two")
    result = bregpath.stability_selection(frame, y, n_replicates=6, n_variables=3)
    assert result.item_names[:2] == ["a", "b"] and result.item_names[-1] == "kind[two]"
    assert_allclose(result.probabilities[:, -1], result.probabilities[:, -2])  # one group
    dense = bregpath.stability_selection(X, y, n_replicates=6, n_variables=3)
    sparse = bregpath.stability_selection(csc_array(X), y, n_replicates=6, n_variables=3)
    assert_allclose(sparse.max_probability, dense.max_probability)


def test_rare_classes_are_in_every_half():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 4)), np.r_[np.zeros(37), np.ones(3)]
    result = bregpath.stability_selection(X, y, loss="logistic", n_replicates=10, n_variables=2)
    assert result.n_replicates == 10
    with pytest.raises(ValueError, match="20 rows at a time, which mostly have no row of class 1.0; merge"):
        bregpath.stability_selection(X, np.r_[np.zeros(39), 1], loss="logistic", n_replicates=2, n_variables=2)


# --- bounds --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [0.6, 0.7, 0.75, 0.8, 0.9, 1.0])
@pytest.mark.parametrize("n_pairs", [20, 50])
def test_unimodal_bound_is_the_worst_unimodal_law(threshold, n_pairs):
    """The largest P(X >= 2 pi - 1) of a unimodal X on {0, 1/B, ..., 1} of mean (q/p)^2, a mixture of uniforms."""
    share = 0.1
    k = np.arange(1, n_pairs + 1)
    needed = int(np.ceil(n_pairs * (2 * threshold - 1) - 1e-9))
    # Mixing the uniform law on 0, ..., k with the point 0: the weight is what the mean allows.
    weight = np.minimum(share**2 / (k / (2 * n_pairs)), 1.0)
    tail = np.maximum(k - needed + 1, 0) / (k + 1) * weight
    bound = error_bound(share * 1000, 1000, threshold, 2 * n_pairs) / 1000
    assert tail.max() <= bound * (1 + 1e-9)
    assert tail.max() >= 0.9 * bound  # and it is nearly reached


def test_bounds():
    assert error_bound(10, 100, 0.9, kind="worst-case") == pytest.approx(100 / 0.8 / 100)
    assert error_bound(10, 100, 0.9) < error_bound(10, 100, 0.9, kind="worst-case")
    assert error_bound(90, 100, 0.6) == 100  # never more than there are
    assert error_bound(3, 0, 0.6) == 0


def test_wanted_bound_is_used_up():
    X, y = make_data("gaussian", n=40, p=25)
    for wanted, kind in ((1.0, "worst-case"), (3.0, "unimodal"), (1000.0, "unimodal")):
        result = bregpath.stability_selection(X, y, max_false=wanted, bound=kind, n_replicates=4)
        q = result.n_variables
        assert error_bound(q, 25, 0.9, 4, kind=kind) <= wanted
        assert q == 25 or error_bound(q + 1, 25, 0.9, 4, kind=kind) > wanted


@pytest.mark.slow
@pytest.mark.parametrize("max_false", [1.0, 4.0])
def test_bound_holds_in_simulation(max_false):
    false = []
    for seed in range(20):
        data = bregpath.datasets.make_logistic(200, 60, 10, seed=seed)
        result = bregpath.stability_selection(data.X, data.y, loss="logistic", max_false=max_false, seed=seed)
        false.append(np.count_nonzero(result.selected >= 10))
    assert np.mean(false) <= result.error_bound


# --- columns that enter together -----------------------------------------------------------------------


def test_a_group_counts_once_by_hand():
    entries = iter([[2.0, 1.0, 3.0, 3.0], [1.0, np.inf, 2.0, 3.0]])
    result = replicate_stability(
        lambda rows: fake(next(entries)), 10, [1.0, 2.0, 3.0], groups=["b", "b", "a", "c"], n_variables=1,
        n_replicates=2,
    )  # fmt: skip
    assert_allclose(result.probabilities, [[1, 1, 0, 0]])
    assert_allclose(result.size, [1.0])
    assert result.selected.tolist() == [0, 1]
    assert result.error_bound == error_bound(1.0, 3, 0.9, 2)
    assert "1 of 3 variables" in repr(result)
    with pytest.raises(ValueError, match="`groups` must have one label for each of 3 items"):
        replicate_stability(lambda rows: fake(np.ones(3)), 10, [1.0], groups=[0, 1], n_replicates=2)


def test_a_categorical_column_is_one_variable(rng):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("narwhals")
    frame = pd.DataFrame(rng.normal(size=(200, 6)), columns=list("abcdef"))
    frame["region"] = rng.choice(["north", "south", "east", "west"], 200)
    y = 2 * frame["a"] + 3.0 * (frame["region"] == "west") + 0.5 * rng.normal(size=200)
    result = bregpath.stability_selection(frame, y, n_variables=2, n_replicates=20)
    assert result.selected.tolist() == [0, 6, 7, 8, 9] and result.size[-1] == 2
    assert result.error_bound == error_bound(2.0, 7, 0.9, 20)
    assert "2 of 7 variables" in repr(result)
    grouped = bregpath.stability_selection(
        result.path.encode(frame), y, groups=[0, 1, 2, 3, 4, 5, 6, 6, 6, 6], penalty="group", n_variables=2,
        n_replicates=20,
    )  # fmt: skip
    assert_allclose(grouped.probabilities, result.probabilities)


# --- words ---------------------------------------------------------------------------------------------


def test_repr(stability):
    text = repr(stability)
    assert "4 of 30 variables" in text and "expected false variables <=" in text
    assert text.count("*") == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(threshold=0.5), "`threshold` must be a probability above 0.5"),
        (dict(threshold=1.1), "`threshold` must be"),
        (dict(max_false=0), "`max_false` must be"),
        (dict(max_false=1e-9), "`max_false`=1e-09 is out of reach"),
        (dict(n_variables=0), "`n_variables` must be a whole number"),
        (dict(n_replicates=7), "`n_replicates` must be even"),
        (dict(n_replicates=0), "`n_replicates` must be a whole number of at least 2"),
        (dict(count="all"), "`count` must be one of"),
        (dict(bound="best"), "`bound` must be one of"),
        (dict(bound="unimodal", pairs=False), "complementary pairs"),
        (dict(n_jobs=0), "`n_jobs` must be"),
        (dict(seed="x"), "`seed` must be"),
    ],
)
def test_errors_name_the_argument(options, message):
    X, y = make_data("gaussian", n=12, p=3)
    with pytest.raises((ValueError, TypeError), match=message):
        bregpath.stability_selection(X, y, **options)


def test_too_few_rows():
    with pytest.raises(ValueError, match="resampling needs at least 4"):
        bregpath.stability_selection(np.eye(3), np.arange(3.0))
    with pytest.raises(ValueError, match=r"entry_times of shape \(p,\) or \(p, p\)"):
        replicate_stability(lambda rows: fake(np.zeros((2, 3))), 10, [1.0], n_replicates=2)
