"""Figures of graphs: edges look as their weights say, nodes are all there, names can be read."""

from __future__ import annotations

import builtins
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bregpath.plots import arrange, plot_graph, plot_graph_comparison
from bregpath.plots import graphs as drawing

plt = pytest.importorskip("matplotlib.pyplot")
to_rgb = pytest.importorskip("matplotlib.colors").to_rgb

NAMES = ["raf", "mek", "erk", "akt", "pka"]


def graph_of(p, edges):
    out = np.zeros((p, p))
    for j, k, weight in edges:
        out[j, k] = out[k, j] = weight
    return out


def random_graph(p, n_edges, seed):
    rng = np.random.default_rng(seed)
    pairs = rng.permutation(np.array(list(combinations(range(p), 2))))[:n_edges]
    return graph_of(p, [(j, k, rng.normal()) for j, k in pairs])


@pytest.fixture(name="weights")
def make_weights():
    """Four edges in one component; `pka` has none."""
    return graph_of(5, [(0, 1, 1.0), (1, 2, -0.5), (2, 3, 0.25), (0, 2, -1e-6)])


def nodes(ax):
    """Positions of all nodes, in the order of collections."""
    return np.concatenate([points.get_offsets() for points in ax.collections[1:]])


def texts(ax):
    return {text.get_text(): text for text in ax.texts}


def legend_texts(legend):
    return [text.get_text() for text in legend.get_texts()]


def overlaps(ax):
    """Pairs of names whose boxes, as drawn, overlap by more than a point in both directions."""
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent().padded(-0.5) for text in ax.texts]
    return [(a, b) for a, b in combinations(boxes, 2) if a.overlaps(b)]


# --- edges ---------------------------------------------------------------------------------------------


def test_edges_look_as_their_weights(weights):
    ax = plot_graph(weights, NAMES, max_width=8.0)
    lines = ax.collections[0]
    assert len(lines.get_segments()) == 4
    by_strength = [-1e-6, 0.25, -0.5, 1.0]  # the strongest is on top
    colors = [tuple(color[:3]) for color in lines.get_colors()]
    assert colors == [to_rgb(drawing.POSITIVE if weight > 0 else drawing.NEGATIVE) for weight in by_strength]
    assert_allclose(lines.get_linewidths(), [drawing.THINNEST, 2.0, 4.0, 8.0])
    dashed = [pattern is not None for _, pattern in lines.get_linestyles()]
    assert dashed == [weight < 0 for weight in by_strength]


def test_edges_join_their_nodes(weights):
    ax = plot_graph(weights, NAMES)
    xy = nodes(ax)
    pairs = [(0, 2), (2, 3), (1, 2), (0, 1)]
    for segment, (j, k) in zip(ax.collections[0].get_segments(), pairs, strict=True):
        assert_allclose(segment, xy[[j, k]])


def test_min_weight(weights):
    ax = plot_graph(weights, NAMES, min_weight=0.25)
    assert len(ax.collections[0].get_segments()) == 2
    assert {"akt", "pka"} <= {name for name, text in texts(ax).items() if text.get_color() == drawing.QUIET}


def test_legend_tells_what_occurs(weights):
    assert legend_texts(plot_graph(np.abs(weights), NAMES).get_legend())[:2] == ["positive", "|w| = 0.2"]
    labels = legend_texts(plot_graph(weights, NAMES, groups=list("aabba"), fields=[1, -1, 1, 1, 1]).get_legend())
    assert labels[:6] == ["a", "b", "field > 0", "field < 0", "positive", "negative"]
    assert labels[-1] == "no edges"


# --- nodes ---------------------------------------------------------------------------------------------


def test_isolated_nodes_are_pale_small_and_aside(weights):
    ax = plot_graph(weights, NAMES)
    points = ax.collections[1]
    assert list(texts(ax)) == NAMES
    assert (points.get_facecolors()[:4, 3] == 1).all() and points.get_facecolors()[4, 3] < 0.5
    assert points.get_sizes()[4] < points.get_sizes()[:4].min()
    assert nodes(ax)[4, 1] < nodes(ax)[:4, 1].min()


def test_groups(weights):
    ax = plot_graph(weights, NAMES, groups=["R", "D", "D", "R", "D"], group_colors={"R": "red"})
    democrats, republicans = ax.collections[1:]
    assert len(democrats.get_offsets()) == 3 and len(republicans.get_offsets()) == 2
    assert tuple(republicans.get_facecolors()[0][:3]) == to_rgb("red")
    assert tuple(democrats.get_facecolors()[0][:3]) == to_rgb(drawing.NODE_COLORS[0])
    shapes = [points.get_paths()[0].vertices.shape for points in (democrats, republicans)]
    assert shapes[0] != shapes[1]


def test_many_groups_look_different():
    ax = plot_graph(random_graph(30, 40, seed=0), groups=[f"group {j}" for j in range(30)])
    marks = ax.collections[1:]
    looks = [(tuple(mark.get_facecolors()[0, :3]), mark.get_paths()[0].vertices.tobytes()) for mark in marks]
    assert len(looks) == len(set(looks)) == 30


def test_fields(weights):
    ax = plot_graph(weights, NAMES, fields=[2.0, -2.0, 1.0, 0.0, 0.0], node_size=10.0)
    points = ax.collections[1]
    assert_allclose(points.get_sizes()[:4], [100.0, 100.0, 60.0, 20.0])
    white = (points.get_facecolors()[:, :3] == 1).all(axis=1)
    assert_array_equal(white, [False, True, False, False, False])


# --- names ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["spring", "circle", "grid"])
@pytest.mark.parametrize("p", [12, 100])
def test_names_do_not_overlap(p, layout):
    names = [f"Senator {j}" for j in range(p)]
    ax = plot_graph(random_graph(p, 2 * p, seed=1), names, layout=layout)
    assert set(texts(ax)) == set(names)
    if layout != "circle":  # boxes of turned names overlap, the names do not
        assert not overlaps(ax)
    assert min(text.get_fontsize() for text in ax.texts) >= arrange.SMALLEST_LABEL
    frame = ax.figure.bbox.padded(3)
    assert all(frame.contains(*corner) for text in ax.texts for corner in text.get_window_extent().corners())


def test_nodes_make_room_for_their_names():
    clique = np.ones((100, 100)) - np.eye(100)
    ax = plot_graph(clique, [f"a long name {j}" for j in range(100)], label_size=10.0)
    assert not overlaps(ax)


def test_names_around_a_circle_keep_apart():
    ax = plot_graph(random_graph(100, 150, seed=1), [f"Senator {j}" for j in range(100)], layout="circle")
    ax.figure.canvas.draw()
    pixels = ax.transData.transform(nodes(ax))
    apart = np.hypot(*np.diff(pixels, axis=0).T).min() * 72 / ax.figure.dpi
    assert apart > ax.texts[0].get_fontsize()
    assert all(-90.1 <= text.get_rotation() <= 90.1 or text.get_rotation() >= 269.9 for text in ax.texts)


def test_names_leave_where_there_is_no_room():
    ax = plot_graph(random_graph(60, 60, seed=0), ["a very long name indeed, number " + str(j) for j in range(60)])
    assert not ax.texts or ax.texts[0].get_fontsize() >= arrange.SMALLEST_LABEL
    _, small = plt.subplots(figsize=(2, 2))
    assert not plot_graph(random_graph(60, 60, seed=0), ax=small).texts
    _, small = plt.subplots(figsize=(2, 2))
    named = plot_graph(random_graph(60, 60, seed=0), ax=small, label_size=5.0).texts
    assert len(named) == 60 and named[0].get_fontsize() == 5.0


def test_dollars_are_no_formulas(weights):
    ax = plot_graph(weights, ["$a", "b$", "c_", "$\\frac$", "^"])
    ax.figure.canvas.draw()
    assert not texts(ax)["$a"].get_parse_math()


# --- layouts -------------------------------------------------------------------------------------------


def test_layout_is_the_same_every_time():
    weights = random_graph(30, 45, seed=0)
    first, again = nodes(plot_graph(weights)), nodes(plot_graph(weights))
    assert_array_equal(first, again)
    assert not np.allclose(first, nodes(plot_graph(weights, seed=1)))


def test_spring_unrolls_a_path_and_a_square():
    path = arrange._spring(graph_of(6, [(j, j + 1, 1.0) for j in range(5)]), 1.5, 0)
    assert_allclose(np.hypot(*np.diff(path, axis=0).T), 1.0, rtol=0.15)
    assert_allclose(np.hypot(*(path[5] - path[0])), 5.0, rtol=0.05)
    square = arrange._spring(graph_of(4, [(0, 1, 1), (1, 2, 1), (2, 3, 1), (3, 0, 1)]), 1.0, 0)
    sides = np.hypot(*(square - np.roll(square, 1, axis=0)).T)
    assert_allclose(sides, sides[0], rtol=1e-2)


def test_strong_edges_are_short():
    xy = arrange._spring(graph_of(3, [(0, 1, 1.0), (1, 2, 0.01)]), 1.0, 0)
    assert np.hypot(*(xy[0] - xy[1])) < 0.6 * np.hypot(*(xy[1] - xy[2]))


def test_components_do_not_mix():
    edges = [
        (j, k, 1.0)
        for start in (0, 8, 12, 14)
        for j, k in combinations(range(start, {0: 8, 8: 12}.get(start, start + 2)), 2)
    ]
    xy = arrange._spring(graph_of(16, edges), 1.3, 0)
    parts = [xy[:8], xy[8:12], xy[12:14], xy[14:]]
    for a, b in combinations(parts, 2):
        apart = np.maximum(a.min(axis=0) - b.max(axis=0), b.min(axis=0) - a.max(axis=0))
        assert apart.max() >= 0.9  # a whole unit, the length of an edge, along some axis


def test_given_positions(weights):
    places = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.5, 0.5]])
    by_array = nodes(plot_graph(weights, NAMES, layout=places))
    by_name = nodes(plot_graph(weights, NAMES, layout=dict(zip(NAMES, places, strict=True))))
    assert_array_equal(by_array, by_name)
    scale = by_array[1, 0] - by_array[0, 0]
    assert_allclose(by_array - by_array[0], scale * places, atol=1e-9)


def test_grid_goes_row_by_row():
    xy = nodes(plot_graph(random_graph(9, 12, seed=0), layout="grid")).reshape(3, 3, 2)
    assert_allclose(xy[:, :, 1], xy[:, :1, 1] * np.ones((1, 3)))
    assert (np.diff(xy[:, 0, 1]) < 0).all() and (np.diff(xy[0, :, 0]) > 0).all()


def test_separate_keeps_boxes_apart_and_inside():
    rng = np.random.default_rng(0)
    centre, half = rng.uniform(40, 60, size=(30, 2)), rng.uniform(2, 5, size=(30, 2))
    moved = arrange._separate(centre, half, np.zeros(2), np.full(2, 100.0))
    overlap = half[:, None] + half - np.abs(moved[:, None] - moved)
    assert not np.triu((overlap > 0).all(axis=2), 1).any()
    assert (moved - half >= 0).all() and (moved + half <= 100).all()


@pytest.mark.parametrize("p", [1, 2, 12])
def test_no_edges(p):
    ax = plot_graph(np.zeros((p, p)))
    ax.figure.canvas.draw()
    assert len(nodes(ax)) == p and "no edges" in texts(ax) and ax.get_legend() is None


def test_own_axes_and_title(weights):
    _, axes = plt.subplots(1, 2, figsize=(8, 4))
    assert plot_graph(weights, NAMES, ax=axes[1], title="Proteins") is axes[1]
    assert axes[1].get_title(loc="left") == "Proteins"
    assert not axes[0].collections and len(plt.get_fignums()) == 1


# --- comparison ----------------------------------------------------------------------------------------


def test_comparison_shares_layout_and_widths(weights):
    other = graph_of(5, [(0, 1, 0.5), (3, 4, 2.0)])
    axes = plot_graph_comparison({"composite": weights, "l1": other}, NAMES, max_width=4.0)
    assert [ax.get_title(loc="left") for ax in axes] == ["composite", "l1"]
    assert_array_equal(nodes(axes[0]), nodes(axes[1]))
    assert_allclose(axes[0].collections[0].get_linewidths()[-1], 2.0)
    assert_allclose(axes[1].collections[0].get_linewidths(), [1.0, 4.0])
    assert texts(axes[0])["pka"].get_color() == drawing.QUIET != texts(axes[1])["pka"].get_color()
    figure = axes[0].figure
    assert len(figure.legends) == 1 and all(ax.get_legend() is None for ax in axes)
    assert {"positive", "negative", "|w| = 2"} <= set(legend_texts(figure.legends[0]))


def test_comparison_of_five_takes_two_rows(weights):
    axes = plot_graph_comparison({str(i): weights for i in range(5)}, NAMES, groups=list("aabbb"), figsize=(9, 6))
    axes[0].figure.canvas.draw()
    assert axes.shape == (5,) and len(axes[0].figure.axes) == 6
    assert not overlaps(axes[0])


# --- bad input -----------------------------------------------------------------------------------------


def test_bad_input(weights):
    for change, message in [
        ({"weights": np.triu(weights)}, "`weights` must be symmetric"),
        ({"weights": weights + np.eye(5)}, "zero diagonal"),
        ({"names": NAMES[:4]}, "`names` must have one entry for each of the 5 nodes, found 4"),
        ({"groups": ["a", "b"]}, "`groups` must have one entry for each of the 5 nodes"),
        ({"fields": np.ones((5, 2))}, r"`fields` must have .* found shape \(5, 2\)"),
        ({"fields": [1, 2, np.nan, 0, 0]}, "`fields` contains NaN"),
        ({"layout": "sprng"}, "`layout` must be 'spring', 'circle', 'grid' or positions, found 'sprng'"),
        ({"layout": {"raf": (0, 0)}}, "`layout` has no position for 'mek'"),
        ({"layout": np.ones((4, 2))}, "`layout` must hold finite x and y of each of the 5 nodes"),
    ]:
        with pytest.raises(ValueError, match=message):
            plot_graph(**{"weights": weights, "names": NAMES} | change)
    with pytest.raises(TypeError, match="`graphs` must be a dict of weights by title, found list"):
        plot_graph_comparison([weights, weights])
    with pytest.raises(ValueError, match=r"`graphs` must all have the same nodes, found \[5, 4\] nodes"):
        plot_graph_comparison({"a": weights, "b": weights[:4, :4]})


def test_without_matplotlib(weights, monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    for draw in (lambda: plot_graph(weights), lambda: plot_graph_comparison({"a": weights})):
        with pytest.raises(ImportError, match=r"pip install bregpath\[plot\]"):
            draw()


def test_edges_without_a_sign_are_grey():
    weights = graph_of(3, [(0, 1, 1.0), (1, 2, -0.5), (0, 2, 0.8)])
    ax = plot_graph(weights, has_sign=weights != 0.8)
    by_width = sorted(zip(ax.collections[0].get_linewidths(), ax.collections[0].get_colors(), strict=True))
    wanted = drawing.NEGATIVE, drawing.QUIET, drawing.POSITIVE
    assert_allclose([color[:3] for _, color in by_width], [to_rgb(color) for color in wanted])
    named = [text.get_text() for text in ax.get_legend().get_texts()]
    assert named[:3] == ["positive", "negative", "no sign"]
    with pytest.raises(ValueError, match="`has_sign` must have an entry a pair of nodes"):
        plot_graph(weights, has_sign=[True])
