"""Paths as values and as text, and where they saturate."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bregpath
from bregpath import Result, trace_path
from bregpath.cli.output import print_model, print_path
from bregpath.path import Point
from tests.helpers import make_data


@pytest.fixture(scope="module", name="path")
def trace_one() -> bregpath.Path:
    return trace_path(*make_data("gaussian"), t_ratio=10.0, n_times=12)


@pytest.fixture(scope="module", name="graph")
def trace_graph() -> bregpath.graphs.GraphPath:
    return bregpath.IsingGraph().fit(bregpath.datasets.make_ising_grid(3, T=1.5, n=300, seed=0).X).path_


# --- comparisons -------------------------------------------------------------------------------------------------


def test_records_compare(path: bregpath.Path, graph: bregpath.Path) -> None:
    selection = bregpath.cross_validate(*make_data("gaussian"), cv=3, n_times=10)
    for record in (path, graph, path.units, graph.layout, path.trajectory, path.trajectory.chunks[0], selection):
        assert record == record
        assert record != pickle.loads(pickle.dumps(record))
        assert len({record, record}) == 1
    assert path != dataclasses.replace(path, t=2 * path.t)
    assert path in [graph, path] and path != 3


def test_points_compare_by_value(path: bregpath.Path, graph: bregpath.Path) -> None:
    for one in (path, graph):
        a, b, c = (one.at(float(t)) for t in (one.t[3], one.t[3], one.t[4]))
        assert a == b and not a != b and a != c and not a == c
        assert {a, b} == {a} and a != tuple(c)
    assert Point(1.0, 0.0, np.ones(2)) != Point(1.0, 0.0, np.ones(3))


def test_stop_rules_with_data_compare() -> None:
    X, y = make_data("gaussian")
    rule = bregpath.StopWhenWorse(X, y)
    assert rule == rule and rule != bregpath.StopWhenWorse(X, y)


# --- one time ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("t", [[1.0, 2.0], (1.0,), np.array([1.0, 2.0]), [[1.0]], []], ids=repr)
def test_several_times_are_refused(t: Any, path: bregpath.Path, graph: Any) -> None:
    X, _ = make_data("gaussian")
    calls = [path.at, path.support, lambda t: path.predict(X, t), lambda t: path.decision_function(X, t)]
    calls += [graph.at, graph.support, graph.weights, graph.model, graph.adjacency, graph.graph]
    for call in calls:
        with pytest.raises(TypeError, match=r"`t` must be one time, found .*path\.read\(times\)"):
            call(t)


@pytest.mark.parametrize("t", ["1.0", None, 1j, np.array("1.0")], ids=repr)
def test_what_is_no_time(t: Any, path: bregpath.Path, graph: Any) -> None:
    for one in (path, graph):
        with pytest.raises((TypeError, ValueError), match="`t` must be a number"):
            one.at(t)


def test_numbers_of_all_kinds_are_times(path: bregpath.Path) -> None:
    t = np.float32(path.t[3])
    expected = path.at(float(t))
    for same in (t, np.float64(t), np.array(float(t))):
        assert path.at(same) == expected and type(path.at(same).t) is float
    intercept, columns, coef = path.read([float(t), float(path.t[5])])
    assert_array_equal(coef[0, :, 0], expected.coef[columns])
    assert intercept[0, 0] == expected.intercept


@pytest.mark.parametrize("t_max", [[1e3], "10", None])
def test_extending_to_what_is_no_time(t_max: Any, path: bregpath.Path) -> None:
    with pytest.raises(TypeError, match="`t_max` must be a number"):
        path.extend(t_max)


# --- text --------------------------------------------------------------------------------------------------------


def test_no_negative_zeros(path: bregpath.Path, graph: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for one in (path, graph):
        rounded = getattr(one, "path", one)
        rounded = dataclasses.replace(rounded, _deviance=np.full(len(one.t), one.null_deviance * (1 + 1e-9)))
        rounded = rounded if one is path else dataclasses.replace(graph, path=rounded)
        assert (rounded.deviance_ratio < 0).all()
        assert "-0.00" not in repr(rounded) and " 0.00 " in repr(rounded)
        if one is path:
            print_path(rounded)
            assert "-0.00" not in capsys.readouterr().out
    assert not np.signbit(path.coef[path.coef == 0]).any()
    assert not np.signbit(path.at(path.t[0]).coef).any()


def test_no_negative_zeros_of_models_and_selections(capsys: pytest.CaptureFixture[str]) -> None:
    X = np.array([[1.0], [-1.0], [2.0], [-2.0]])
    path = trace_path(X, -X[:, 0], t_ratio=5.0)
    print_model(path, float(path.t[-1]))
    assert " -0\n" not in capsys.readouterr().out
    selection = bregpath.cross_validate(*make_data("gaussian"), cv=3, n_times=10)
    zero = dataclasses.replace(selection, mean=np.full(len(selection.times), -0.0), se=None)
    assert " -0 " not in repr(zero)


def test_the_text_of_a_saturated_path_fits_any_loss() -> None:
    path = trace_path(*make_data("gaussian", n=12, p=40), t_ratio=1e5)
    assert path.result is Result.SATURATED
    assert "saturation=None" in str(path.result) and "separable" not in str(path.result)


# --- saturation --------------------------------------------------------------------------------------------------


def separable(loss: str) -> tuple[np.ndarray, np.ndarray]:
    X, _ = make_data(loss)
    return X, np.digitize(X[:, 0], np.quantile(X[:, 0], [0.5] if loss == "logistic" else [0.33, 0.67]))


@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
def test_a_path_goes_on_when_it_may(loss: str) -> None:
    X, y = separable(loss)
    default = trace_path(X, y, loss=loss, t_ratio=2e4)
    path = trace_path(X, y, loss=loss, t_ratio=2e4, saturation=None)
    assert default.result is Result.SATURATED and path.result is Result.COMPLETED
    assert_allclose(path.t[-1], 2e4 * path.t[0])
    assert path.deviance_ratio[-1] > 0.9992 and np.isfinite(path.coef).all()
    shared = len(default.t) - 1
    assert_array_equal(path.coef[:shared], default.coef[:shared])


def test_another_share() -> None:
    X, y = separable("logistic")
    path = trace_path(X, y, loss="logistic", t_ratio=1000.0, saturation=0.9)
    assert path.result is Result.SATURATED and 0.9 <= path.deviance_ratio[-1] < 0.99


@pytest.mark.parametrize("saturation", [None, 0.95])
def test_an_extended_path_keeps_its_share(saturation: float | None) -> None:
    X, y = separable("logistic")
    options = {"loss": "logistic", "saturation": saturation}
    once = trace_path(X, y, t_ratio=500.0, **options)
    path = trace_path(X, y, t_ratio=2.0, **options).extend(500 * once.t[0])
    assert path.result is once.result is (Result.COMPLETED if saturation is None else Result.SATURATED)
    assert_allclose(path.t[-1], once.t[-1])
    assert_allclose(path.at(path.t[-1]).coef, once.at(once.t[-1]).coef, rtol=1e-12)


def test_interpolation_goes_on_when_it_may() -> None:
    X, y = make_data("gaussian", n=12, p=40)
    assert trace_path(X, y, t_ratio=300.0, saturation=None).result is Result.COMPLETED


def test_cross_validation_passes_it_on() -> None:
    X, y = separable("logistic")
    selection = bregpath.cross_validate(X, y, loss="logistic", saturation=None, full=True, cv=3, n_times=25)
    assert selection.path.result is Result.COMPLETED and len(selection.times) == 25
    assert {path.result for path in selection.fold_paths} == {Result.COMPLETED}


def test_estimators_pass_it_on() -> None:
    X, y = separable("logistic")
    model = bregpath.BregmanClassifier(stop="bic", saturation=0.9, t_ratio=1000.0).fit(X, y)
    assert model.path_.result is Result.SATURATED and model.path_.deviance_ratio[-1] < 0.99
    model.set_params(saturation=None).fit(X, y)
    assert model.path_.result is Result.COMPLETED


@pytest.mark.parametrize("make", [bregpath.IsingGraph, bregpath.PottsGraph])
def test_graphs_pass_it_on(make: Any, rng: np.random.Generator) -> None:
    X = np.repeat(rng.choice([-1, 1], size=(200, 2)), 2, axis=1)  # two pairs of copies
    assert make(t_ratio=1e4).fit(X).path_.result is Result.SATURATED
    path = make(t_ratio=1e4, saturation=None).fit(X).path_
    assert path.result is Result.COMPLETED and path.deviance_ratio[-1] > 0.9995


@pytest.mark.parametrize("saturation", [0.0, 1.5, -1, np.nan, "all", True])
def test_what_is_no_share(saturation: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="`saturation` must be"):
        trace_path(*make_data("gaussian"), saturation=saturation)


def test_models_print_by_name(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = make_data("gaussian", 60, 4)
    frame = pd.DataFrame(X * [1.0, 100.0, 1.0, 1.0], columns=["age", "weight", "height", "pulse"])
    path = trace_path(frame, y)
    point = path.at(float(path.t[-1]))
    text = repr(point).splitlines()
    assert text[0].startswith(f"Model at t = {point.t:.4g}: ") and text[2].startswith("(intercept)")
    effects = np.abs(point.coef * frame.to_numpy().std(axis=0))
    shown = [line.split()[0] for line in text[3:]]
    assert shown == [frame.columns[j] for j in np.argsort(-effects) if effects[j] > 0]
    table = point.table.to_frame()
    assert_allclose(table["coefficient"], point.coef[point.table.columns])
    assert_allclose(np.abs(table["per_std_dev"]), effects[point.table.columns], rtol=1e-9)
    again = pickle.loads(pickle.dumps(point))
    assert again == point and repr(again) == repr(point)
    plain = trace_path(X, y, standardize=False).at(1.0)
    assert "per std. dev." not in repr(plain) and "x0" in repr(plain)
    long = trace_path(np.random.default_rng(0).normal(size=(60, 30)), y, kappa=0.1, t_ratio=1000)
    assert "... and " in repr(long.at(float(long.t[-1])))
