"""Figures: what is drawn is right, labels keep apart, Matplotlib's settings stay as they were."""

from __future__ import annotations

import builtins

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bregpath
from bregpath.plots import path_curves, plot_path, plot_selection
from bregpath.plots.style import spread
from bregpath.selection.result import Selection
from tests.graphs.cases import ONE_OF_EACH, path_of

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(scope="module", name="path")
def make_path():
    data = bregpath.datasets.make_linear(120, 30, 12, seed=3)
    return bregpath.trace_path(data.X * np.geomspace(0.1, 10, 30), data.y, t_ratio=30, n_times=25)


@pytest.fixture(scope="module", name="classes")
def make_classes():
    data = bregpath.datasets.make_multinomial(150, 6, 3, n_classes=3, seed=0)
    labels = np.array(["a", "b", "c"])[data.y]
    return bregpath.trace_path(data.X, labels, loss="multinomial", penalty="group", t_ratio=10, n_times=12)


def named_curves(ax):
    """The coloured curves, in order."""
    return [line for line in ax.get_lines() if not line.get_label().startswith("_")]


# --- the data ------------------------------------------------------------------------------------------


def test_curves_are_the_path(path):
    curves = path_curves(path)
    assert_array_equal(curves.x, curves.t)
    for i in (0, 100, len(curves.t) - 1):
        coef = path.at(curves.t[i]).coef
        assert_array_equal(curves.coef[i], coef[curves.columns])
        assert curves.n_variables[i] == np.count_nonzero(coef)
    assert curves.t[0] == path.t[0] and curves.t[-1] == path.t[-1]
    assert curves.names == [f"x{j}" for j in curves.columns]


def test_entries_are_sharp(path):
    curves = path_curves(path)
    entries = path.entry_times[curves.columns]
    assert np.isin(entries[entries > path.t[0] * (1 + 1e-9)], curves.t).all()
    scale = np.abs(curves.coef).max(axis=0)
    for k, entry in enumerate(entries):
        before = curves.t <= entry
        assert_allclose(curves.coef[before, k] / scale[k], 0.0, atol=1e-6)


@pytest.mark.parametrize("xvar", ["norm", "deviance"])
def test_other_axes(path, xvar):
    curves = path_curves(path, xvar)
    if xvar == "norm":
        assert_allclose(curves.x[-1], np.abs(path.coef[-1]).sum())
    else:
        assert_allclose(np.interp(path.t, curves.t, curves.x), path.deviance_ratio, atol=2e-3)
    assert curves.x[0] == pytest.approx(0.0, abs=1e-12)


def test_standardized(path):
    plain, scaled = path_curves(path), path_curves(path, standardized=True)
    assert_allclose(scaled.coef, plain.coef * path.units.scale[plain.columns])
    assert "standard deviation" in scaled.ylabel


def test_classes(classes):
    at_end = classes.at(classes.t[-1]).coef
    norm, second = path_curves(classes), path_curves(classes, output="b")
    assert_allclose(norm.coef[-1], np.linalg.norm(at_end, axis=1)[norm.columns])
    assert_allclose(second.coef[-1], at_end[second.columns, 1])
    assert_array_equal(second.coef, path_curves(classes, output=1).coef)
    assert "class b" in second.ylabel


@pytest.mark.parametrize("case", ONE_OF_EACH)
def test_curves_of_a_graph_are_its_edges(case):
    path = path_of(case)
    curves = path_curves(path)
    j, k = np.triu_indices(path.layout.n_nodes, 1)
    for i in (0, 50, len(curves.t) - 1):
        weights = path.weights(curves.t[i])[j, k]
        assert_allclose(curves.coef[i], weights[curves.columns], rtol=1e-12)
        assert curves.n_variables[i] == np.count_nonzero(weights)
    names = [f"x{a} -- x{b}" for a, b in zip(j[curves.columns], k[curves.columns], strict=True)]
    assert curves.names == names and len(set(names)) == len(names)
    assert_array_equal(path_curves(path, standardized=True).coef, curves.coef)  # weights have no units
    for xvar in ("t", "norm", "deviance"):
        ax = path.plot(standardized=True, xvar=xvar, mark=path.t[3])
        assert ax.get_ylabel() == "Weight"
        assert ax.child_axes[0].get_xlabel() == "Number of edges"


def test_wrong_arguments(path, classes):
    with pytest.raises(ValueError, match="`xvar` must be one of"):
        path_curves(path, "lambda")
    with pytest.raises(ValueError, match="one output"):
        path_curves(path, output="a")
    with pytest.raises(ValueError, match=r"`output` must be one of \['a', 'b', 'c'\]"):
        path_curves(classes, output="d")
    with pytest.raises(ValueError, match="beyond the end"):
        plot_path(path, mark=1e9)


# --- figures -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("xvar", ["t", "norm", "deviance"])
def test_plot_path(path, xvar):
    ax = plot_path(path, xvar=xvar, top=5, mark={"t_min": path.t[12], "t_1se": path.t[6]})
    ax.figure.canvas.draw()
    assert len(named_curves(ax)) == 5
    largest = np.argsort(-np.abs(path.coef[-1]))[:5]
    assert {line.get_label() for line in named_curves(ax)} == {f"x{j}" for j in largest}
    assert {"t_min", "t_1se"} <= {text.get_text() for text in ax.texts}
    assert ax.get_xscale() == ("log" if xvar == "t" else "linear")


def test_number_of_variables_above(path):
    ax = plot_path(path)
    ax.figure.canvas.draw()
    top = ax.child_axes[0]
    places = np.clip(top.get_xticks(), path.t[0], path.t[-1])
    counts = [int(label.get_text()) for label in top.get_xticklabels()]
    assert counts[0] == 0
    assert counts[-1] == path.df[-1]
    assert_allclose(counts, [len(path.support(t)) for t in places], atol=1)


def test_labels_do_not_overlap(path):
    ax = plot_path(path, top=20)
    ax.figure.canvas.draw()
    names = {line.get_label() for line in named_curves(ax)}
    boxes = sorted((text.get_window_extent() for text in ax.texts if text.get_text() in names), key=lambda box: box.y0)
    assert len(boxes) == len(names) > 10
    assert all(low.y1 <= high.y0 + 2.5 for low, high in zip(boxes[:-1], boxes[1:], strict=True))
    figure = ax.figure.bbox
    assert all(figure.x0 <= box.x0 and box.x1 <= figure.x1 for box in boxes)


def test_own_axes_colors_and_the_method(path):
    _, ax = plt.subplots()
    assert path.plot(ax=ax, top=3, colors=["red", "blue"], title="A path") is ax
    assert [line.get_color() for line in named_curves(ax)] == ["red", "blue", "red"]
    assert ax.get_title(loc="left") == "A path"


def test_classes_are_drawn(classes):
    assert "class c" in plot_path(classes, output="c").get_ylabel()
    assert "Norm" in plot_path(classes).get_ylabel()


def test_nothing_to_draw():
    X = np.random.default_rng(0).normal(size=(20, 3))
    ax = plot_path(bregpath.trace_path(X, np.ones(20), t=[1.0, 2.0]))
    ax.figure.canvas.draw()
    assert "no variable enters" in [text.get_text() for text in ax.texts]


def test_one_time_only():
    data = bregpath.datasets.make_linear(50, 4, 2, seed=0)
    single = bregpath.trace_path(data.X, data.y, t=[5.0])
    for xvar in ("t", "norm", "deviance"):
        ax = plot_path(single, xvar=xvar)
        ax.figure.canvas.draw()
        assert ax.has_data()


def selection_of(path, /, **options):
    mean = (np.log(path.t) - np.log(path.t[15])) ** 2
    given = dict(rule="a rule", t=path.t[15], t_min=path.t[15], t_1se=path.t[9], times=path.t, mean=mean)
    given |= dict(se=0.1 + 0 * mean, measure="deviance", path=path)
    return Selection(**given | options)


def test_plot_selection(path):
    ax = plot_selection(selection_of(path))
    ax.figure.canvas.draw()
    assert {"t_min", "t_1se"} == {text.get_text() for text in ax.texts}
    marked = [line.get_xdata()[0] for line in ax.get_lines() if len(set(line.get_xdata())) == 1]
    assert {path.t[15], path.t[9]} <= set(marked)
    assert "Deviance" in ax.get_ylabel()
    assert ax.child_axes[0].get_xticklabels()[-1].get_text() == str(path.df[-1])


def test_selection_without_errors_or_path(path):
    mean = np.where(np.arange(len(path.t)) > 20, np.inf, np.arange(len(path.t)))
    bare = selection_of(path, se=None, t_1se=None, mean=mean, measure="bic", path=None)
    ax = bare.plot(title="")
    ax.figure.canvas.draw()
    assert ax.get_ylabel() == "BIC"
    assert not ax.child_axes


# --- parts ---------------------------------------------------------------------------------------------


def test_spread():
    wanted = np.array([0.3, 0.31, 0.9, 0.32, 0.99])
    places = spread(wanted, 0.1, 0.0, 1.0)
    assert np.diff(np.sort(places)).min() >= 0.1 - 1e-12
    assert_array_equal(np.argsort(places), np.argsort(wanted))
    assert 0 <= places.min() and places.max() <= 1
    assert_allclose(spread([0.0, 0.5, 1.0], 0.1), [0.0, 0.5, 1.0])
    assert len(spread([], 0.1)) == 0


def test_without_matplotlib(path, monkeypatch):
    true_import = builtins.__import__

    def no_matplotlib(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return true_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_matplotlib)
    assert len(path_curves(path).t) >= 400
    with pytest.raises(ImportError, match=r"pip install bregpath\[plot\]"):
        plot_path(path)
