"""The figure of a stability selection."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import bregpath
from bregpath.selection.stability import Stability

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(scope="module")
def stability():
    data = bregpath.datasets.make_linear(150, 20, 3, seed=0)
    return bregpath.stability_selection(data.X, data.y, n_replicates=20)


def named_curves(ax):
    return {line.get_label(): line for line in ax.get_lines() if not line.get_label().startswith("_")}


def test_stable_variables_are_named(stability):
    ax = stability.plot()
    ax.figure.canvas.draw()
    curves = named_curves(ax)
    assert sorted(curves) == [f"x{j}" for j in stability.selected]
    assert_allclose(curves["x1"].get_ydata(), stability.probabilities[:, 1])
    assert_allclose(curves["x1"].get_xdata(), stability.times)
    texts = [text.get_text() for text in ax.texts]
    assert set(curves) <= set(texts)
    levels = [line.get_ydata()[0] for line in ax.get_lines() if len(set(line.get_ydata())) == 1]
    assert stability.threshold in levels
    assert ax.get_title(loc="left").startswith("3 stable variables, expected false ones ≤")
    assert ax.child_axes[0].get_xticklabels()[-1].get_text() == str(round(stability.size[-1]))


def test_options(stability):
    _, ax = plt.subplots()
    assert stability.plot(ax=ax, top=2, title="") is ax
    assert len(named_curves(ax)) == 2 and ax.get_title(loc="left") == ""


def test_edges_and_a_single_time():
    edges = np.array([[0, 1], [0, 2], [1, 2]])
    probabilities = np.array([[1.0, 0.2, 0.0]])
    one = Stability(
        np.array([2.0]), probabilities, np.array([1.2]), 0.9, "worst-case", 2, 10, True, np.ones(3, bool), edges
    )
    ax = one.plot()
    ax.figure.canvas.draw()
    assert list(named_curves(ax)) == ["x0 - x1"]
    assert "1 stable edges" in ax.get_title(loc="left")


def test_nothing_stable():
    nothing = Stability(
        np.array([1.0, 2.0]), np.zeros((2, 4)), np.zeros(2), 0.9, "worst-case", 2, 10, True, np.ones(4, bool)
    )
    ax = nothing.plot()
    ax.figure.canvas.draw()
    assert not named_curves(ax)
