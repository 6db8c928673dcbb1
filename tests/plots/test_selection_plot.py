"""The figure of a cross-validation."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bregpath

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module", name="selection")
def make_selection():
    data = bregpath.datasets.make_logistic(150, 40, 4, seed=1)
    measures = dict(scoring=["deviance", "auc"], se_rule="glmnet")
    return bregpath.cross_validate(data.X, data.y, loss="logistic", t_ratio=30, **measures)


@pytest.fixture(scope="module", name="kappas")
def make_kappas():
    data = bregpath.datasets.make_logistic(120, 30, 5, seed=1)
    return bregpath.cross_validate(data.X, data.y, loss="logistic", kappa="cv", scoring=["deviance", "auc"])


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


# --- several kappas ------------------------------------------------------------------------------------------


def test_names_of_choices_of_kappa_keep_apart(kappas):
    for one in (kappas, kappas.by("auc")):
        ax = one.plot()
        ax.figure.canvas.draw()
        boxes = {text.get_text(): text.get_window_extent() for text in ax.texts}
        assert set(boxes) == {"min", "sparse"} and not boxes["min"].overlaps(boxes["sparse"])


def test_one_point_that_is_both_choices_has_both_names():
    data = bregpath.datasets.make_linear(100, 20, 4, seed=0)
    both = bregpath.cross_validate(data.X, data.y, kappa="cv")
    assert (both.kappa_min, both.t_min) == (both.kappa_sparse, both.t_sparse)
    assert "min, sparse" in [text.get_text() for text in both.plot().texts]


@pytest.mark.parametrize("is_sparse", [False, True])
def test_the_chosen_curve_looks_as_it_does_in_the_legend(kappas, is_sparse):
    one = kappas.sparse() if is_sparse else kappas
    assert [curve.is_chosen for curve in one.curves_of_kappas()].count(True) == 1
    ax = one.plot()
    chosen = next(line for line in ax.get_lines() if line.get_zorder() == 3)
    assert chosen.get_linestyle() == ("--" if is_sparse else "-")
    assert all(text.get_text().startswith("κ") for text in ax.get_legend().get_texts())


def test_training_curve_leaves_the_kappas_named_beside_the_axes(kappas):
    ax = kappas.plot(train=True)
    ax.figure.canvas.draw()
    shown = [text.get_text() for text in ax.get_legend().get_texts()]
    assert shown[0] == "κ = 0.1" and shown[-2:] == ["held-out rows", "training rows"]
    assert ax.get_legend().get_window_extent().x0 >= ax.get_window_extent().x1


def test_times_of_a_wide_window_do_not_touch(kappas):
    ax = kappas.plot()
    ax.figure.canvas.draw()
    low, high = ax.get_xlim()
    ticks = zip(ax.get_xticks(), ax.get_xticklabels(), strict=True)
    boxes = [label.get_window_extent() for tick, label in ticks if low <= tick <= high]
    assert len(boxes) > 2 and all(a.x1 < b.x0 for a, b in zip(boxes, boxes[1:], strict=False))


def test_the_frame_holds_the_chosen_point_and_its_error_where_nothing_matters():
    rng = np.random.default_rng(0)
    nothing = bregpath.cross_validate(rng.normal(size=(40, 5)), rng.normal(size=40), kappa="cv")
    low, high = nothing.plot().get_ylim()
    best = int(np.argmin(nothing.mean))
    assert low < nothing.mean[best] and nothing.mean[best] + nothing.se[best] < high
