"""The figure of a cross-validation."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bregpath

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(scope="module", name="selection")
def make_selection():
    data = bregpath.datasets.make_logistic(150, 40, 4, seed=1)
    measures = dict(scoring=["deviance", "auc"], se_rule="glmnet")
    return bregpath.cross_validate(data.X, data.y, loss="logistic", t_ratio=30, **measures)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def curves(ax):
    return {line.get_label(): line for line in ax.get_lines() if not line.get_label().startswith("_")}


def test_curve_error_bars_times_and_variables(selection):
    ax = selection.plot()
    ax.figure.canvas.draw()
    curve = curves(ax)["held-out rows"]
    assert_array_equal(curve.get_xdata(), selection.times)
    assert_array_equal(curve.get_ydata(), selection.mean)
    bars = ax.containers[0].lines[2][0].get_segments()
    assert_allclose([bar[:, 1] for bar in bars], np.c_[selection.mean - selection.se, selection.mean + selection.se])
    upright = {line.get_xdata()[0] for line in ax.get_lines() if len(set(line.get_xdata())) == 1}
    assert {selection.t_min, selection.t_1se} <= upright
    assert {"t_min", "t_1se"} == {text.get_text() for text in ax.texts}
    top = ax.child_axes[0]
    assert top.get_xlabel() == "Number of variables"
    shown = [int(label.get_text()) for label in top.get_xticklabels()]
    assert shown[0] == len(selection.path.support(selection.times[0]))
    assert shown[-1] == len(selection.path.support(selection.times[-1]))


def test_limit_of_one_standard_error_is_on_the_right_side(selection):
    def limit(ax):
        level = [line.get_ydata()[0] for line in ax.get_lines() if list(line.get_xdata()) == [0, 1]]
        assert len(level) == 1
        return level[0]

    best = np.argmin(selection.mean)
    assert_allclose(limit(selection.plot()), selection.mean[best] + selection.se[best])
    auc = selection.by("auc")
    best = np.argmax(auc.mean)
    ax = auc.plot()
    assert_allclose(limit(ax), auc.mean[best] - auc.se[best])
    assert ax.get_ylabel().startswith("AUC")


def test_training_curve(selection):
    assert list(curves(selection.plot())) == ["held-out rows"]
    ax = selection.plot(train=True)
    assert_array_equal(curves(ax)["training rows"].get_ydata(), selection.train_mean)
    assert {text.get_text() for text in ax.get_legend().get_texts()} == {"held-out rows", "training rows"}


def test_variables_of_several_classes_are_counted_once():
    data = bregpath.datasets.make_multinomial(90, 5, 2, seed=0)
    selection = bregpath.cross_validate(data.X, data.y, loss="multinomial", t_ratio=20, n_times=20)
    ax = selection.plot()
    ax.figure.canvas.draw()
    assert int(ax.child_axes[0].get_xticklabels()[-1].get_text()) == len(selection.path.support(selection.times[-1]))
