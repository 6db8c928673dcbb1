"""Bootstrap intervals: the draws, the percentiles, inclusion frequencies, and any replicate function."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bregpath
from bregpath.selection.bootstrap import replicate_intervals
from tests.helpers import make_data


@pytest.fixture(scope="module")
def data():
    return bregpath.datasets.make_linear(120, 8, 2, seed=1)


@pytest.fixture(scope="module")
def boot(data):
    return bregpath.bootstrap_intervals(data.X, data.y, 4.0, n_replicates=40)


def constant_path(coef, end=10.0):
    """A path that stands still."""
    return SimpleNamespace(t=np.array([1.0, end]), at=lambda t: SimpleNamespace(t=t, coef=np.asarray(coef)))


# --- the core ------------------------------------------------------------------------------------------


def test_percentiles_by_hand():
    values = iter(range(101))
    result = replicate_intervals(
        lambda rows: constant_path([0.0, float(next(values))]), 5, 2.0, full=constant_path([7.0, 7.0]),
        n_replicates=101, level=0.9,
    )  # fmt: skip
    assert_allclose(result.estimate, [7, 7])
    assert_allclose(result.lower, [0, 5])
    assert_allclose(result.upper, [0, 95])
    assert_allclose(result.frequency, [0, 100 / 101])
    assert result.excludes_zero.tolist() == [False, True]
    assert result.n_replicates == 101


def test_rows_are_drawn_with_replacement():
    drawn = []
    replicate_intervals(
        lambda rows: (drawn.append(rows), constant_path([1.0]))[1], np.array([2, 3, 5, 7, 11]), 2.0, n_replicates=200
    )
    assert_array_equal(drawn.pop(0), [2, 3, 5, 7, 11])  # all rows, for the estimate
    counts = np.array([[np.sum(rows == row) for row in (2, 3, 5, 7, 11)] for rows in drawn])
    assert (counts.sum(axis=1) == 5).all()
    assert_allclose(counts.mean(axis=0), 1.0, atol=0.2)
    assert_allclose(counts.var(axis=0), 0.8, atol=0.3)


def test_edges_have_the_shape_of_the_graph():
    coef = np.array([[0.0, 1.0], [1.0, 0.0]])
    result = replicate_intervals(lambda rows: constant_path(coef), 6, 2.0, n_replicates=4)
    assert_allclose(result.frequency, coef)
    assert repr(result).count("x0 - x1") == 1 and "more" not in repr(result)
    one_sided = replicate_intervals(lambda rows: constant_path([[1.0, 2.0]]), 6, 2.0, n_replicates=4)
    assert "x0[1]" in repr(one_sided)


def test_names_of_the_path_survive():
    pd = pytest.importorskip("pandas")
    pytest.importorskip("narwhals")
    X, y = make_data("gaussian", n=40, p=3)
    frame = pd.DataFrame(X, columns=["age", "bmi", "sex"])
    result = replicate_intervals(lambda rows: bregpath.trace_path(frame.iloc[rows], y[rows]), 40, 2.0, n_replicates=3)
    assert list(result.to_frame().index) == ["age", "bmi", "sex"]

    nodes = pd.DataFrame(np.where(X > 0, 1, -1), columns=["age", "bmi", "sex"])
    edges = replicate_intervals(
        lambda rows: bregpath.IsingGraph(stop=1.0).fit(nodes.iloc[rows]).path_, 40, 1.0, n_replicates=3
    )
    assert list(edges.to_frame().index) == ["age - bmi", "age - sex", "bmi - sex"]
    given = replicate_intervals(lambda rows: constant_path([1.0, 2.0]), 6, 2.0, n_replicates=3, names=["left", "right"])
    assert "right" in repr(given)
    with pytest.raises(ValueError, match="`names` must have one entry for each of 2 columns or nodes, found 1"):
        replicate_intervals(lambda rows: constant_path([1.0, 2.0]), 6, 2.0, n_replicates=3, names=["left"])


@pytest.mark.parametrize("given", [True, False])
def test_states_of_nodes_are_named(given):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("narwhals")
    sim = bregpath.datasets.make_potts(100, 3, 3, seed=0)
    frame = pd.DataFrame(np.array(["low", "mid", "top"])[sim.X], columns=["a", "b", "c"])
    result = replicate_intervals(
        lambda rows: bregpath.PottsGraph(stop=5.0).fit(frame.iloc[rows]).path_, 100, 3.0, n_replicates=3,
        names=["A", "B", "C"] if given else None,
    )  # fmt: skip
    assert ("A[low] - B[mid]" if given else "a[low] - b[mid]") in result.to_frame().index


def test_a_path_that_ended_is_read_at_its_end():
    times = []

    def trace(rows):
        return SimpleNamespace(t=np.array([3.0]), at=lambda t: (times.append(t), SimpleNamespace(coef=np.ones(1)))[1])

    replicate_intervals(trace, 6, 5.0, n_replicates=2)
    assert times == [3.0] * 3


# --- regression ----------------------------------------------------------------------------------------


def test_replicates_are_paths_on_the_rows(data, boot):
    def trace(rows):
        return bregpath.trace_path(data.X[rows], data.y[rows], t=[4.0])

    generic = replicate_intervals(trace, 120, 4.0, n_replicates=40)
    assert_allclose(generic.estimate, boot.estimate)
    # Rows counted by weights and rows written several times are the same, up to the steps' tolerance.
    assert_allclose(generic.samples, boot.samples, atol=1e-6)
    assert_allclose(boot.estimate, bregpath.trace_path(data.X, data.y).at(4.0).coef, atol=1e-6)


def test_true_columns_are_always_in(data, boot):
    assert_allclose(boot.frequency[:2], 1.0)
    assert (boot.frequency[2:] < 0.9).all()
    assert boot.excludes_zero.tolist() == [True, True, *[False] * 6]
    assert ((boot.lower <= boot.estimate) & (boot.estimate <= boot.upper)).all()


def test_threads_change_nothing(data, boot):
    threaded = bregpath.bootstrap_intervals(data.X, data.y, 4.0, n_replicates=40, n_jobs=3)
    assert_array_equal(threaded.samples, boot.samples)
    other = bregpath.bootstrap_intervals(data.X, data.y, 4.0, n_replicates=40, seed=1)
    assert not np.array_equal(other.samples, boot.samples)


def test_width_is_that_of_least_squares(rng):
    """Far along the path, with nothing to select, the interval is the usual one."""
    X = rng.normal(size=(400, 2))
    y = X @ [1.0, -2.0] + rng.normal(size=400)
    boot = bregpath.bootstrap_intervals(X, y, 200.0, n_replicates=300, t_ratio=3)
    assert_allclose(boot.upper - boot.lower, 2 * 1.96 / np.sqrt(400), rtol=0.2)


def test_weights_classes_and_names():
    pd = pytest.importorskip("pandas")
    pytest.importorskip("narwhals")
    X, y = make_data("multinomial", n=60, p=4)
    weight = np.r_[np.zeros(10), np.ones(50)]
    options = dict(loss="multinomial", n_replicates=5)
    frame = pd.DataFrame(X, columns=list("abcd"))
    weighted = bregpath.bootstrap_intervals(frame, y, 8.0, sample_weight=weight, offset=np.zeros((60, 3)), **options)
    dropped = bregpath.bootstrap_intervals(X[10:], y[10:], 8.0, **options)
    assert_allclose(weighted.samples, dropped.samples, atol=1e-6)
    assert weighted.samples.shape == (5, 4, 3)
    table = weighted.to_frame()
    assert list(table.columns) == ["estimate", "lower", "upper", "frequency"] and table.index[1] == "a[1]"


def test_there_are_no_minus_zeros():
    result = replicate_intervals(lambda rows: constant_path([-0.0, 1.0]), 6, 2.0, n_replicates=2)
    assert not np.signbit(result.estimate).any() and not np.signbit(result.samples).any()


def test_repr(boot):
    text = repr(boot)
    assert "40 replicates, 95% percentile intervals" in text and "x0" in text
    big = replicate_intervals(lambda rows: constant_path(np.ones(30)), 6, 2.0, n_replicates=2)
    assert "... and 20 more" in repr(big)


# --- words ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("t", "options", "message"),
    [
        (-1.0, {}, "`t` must be a finite number above 0"),
        (1.0, dict(level=1.0), "`level` must be a number above 0 and below 1"),
        (1.0, dict(n_replicates=1), "`n_replicates` must be a whole number of at least 2"),
        (1.0, dict(n_replicates=2.5), "`n_replicates` must be a whole number"),
        (1.0, dict(n_jobs="all"), "`n_jobs` must be"),
        (1.0, dict(seed=-1), "`seed` must be"),
    ],
)
def test_errors_name_the_argument(t, options, message):
    X, y = make_data("gaussian", n=20, p=3)
    with pytest.raises(ValueError, match=message):
        bregpath.bootstrap_intervals(X, y, t, **options)


def test_too_few_rows():
    with pytest.raises(ValueError, match="resampling needs at least 4"):
        bregpath.bootstrap_intervals(np.eye(3), np.arange(3.0), 1.0)
