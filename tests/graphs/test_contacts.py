"""Contacts: scores of blocks, their tables, and the estimator on an alignment with planted contacts."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import bregpath
from bregpath.graphs import (
    Alignment,
    IsingModel,
    PottsModel,
    contact_precision,
    contact_scores,
    contact_table,
    read_alignment,
)

LETTERS = np.array(list("-ACDE"))
CONTACTS = [(0, 6), (1, 9), (3, 8), (4, 11), (2, 10)]


def family(n=700, length=12, seed=0):
    """Sequences with planted contacts, a conserved column (5) and one with a rare letter (7)."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(5, (n, length), p=[0.04, 0.36, 0.3, 0.2, 0.1])
    for j, k in CONTACTS:
        follows = rng.random(n) < 0.5
        codes[follows, k] = codes[follows, j]
    codes[:, 5] = 2
    letters = LETTERS[codes]
    letters[3, 7] = "W"
    return Alignment(tuple(map(str, range(n))), letters, np.arange(length))


def brute_scores(model, gap):
    p = model.n_nodes
    scores = np.zeros((p, p))
    for j in range(p):
        for k in range(p):
            if j == k:
                continue
            block = model.block(j, k)
            block = block - block.mean(axis=0) - block.mean(axis=1, keepdims=True) + block.mean()
            rows, columns = (np.array([x != gap for x in model.labels[i]]) for i in (j, k))
            scores[j, k] = np.sqrt((block[np.ix_(rows, columns)] ** 2).sum())
    means = scores.sum(axis=0) / (p - 1)
    mean = scores.sum() / (p * (p - 1))
    corrected = scores - np.outer(means, means) / mean
    return scores, corrected * (1 - np.eye(p))


@pytest.mark.parametrize("gap", ["-", None])
def test_scores_by_brute_force(gap):
    rng = np.random.default_rng(1)
    n_states = np.array([3, 2, 4])
    couplings = rng.standard_normal((9, 9))
    for at, q in zip((0, 3, 5), n_states, strict=True):
        couplings[at : at + q, at : at + q] = 0.0
    levels = tuple(LETTERS[:q] for q in n_states)
    model = PottsModel(np.zeros(9), couplings + couplings.T, n_states, levels=levels)
    scores, corrected = brute_scores(model, gap)
    assert_allclose(contact_scores(model, gap, correct=False), scores)
    assert_allclose(contact_scores(model, gap), corrected)
    assert_allclose(contact_scores(model.to_zero_sum(), gap), corrected)  # whatever the gauge


def test_scores_of_no_edges_are_zero():
    assert not contact_scores(PottsModel(np.zeros(4), np.zeros((4, 4)), 2)).any()


def test_table_and_precision():
    scores = np.array([[0.0, 5.0, 3.0], [5.0, 0.0, 4.0], [3.0, 4.0, 0.0]])
    table = contact_table(scores, min_separation=2, columns=np.array([0, 1, 7]), names=["a", "b", "c"])
    assert table[["i", "j", "first", "second"]].values.tolist() == [[1, 7, "b", "c"], [0, 7, "a", "c"]]
    assert table.score.tolist() == [4.0, 3.0]
    touches = np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]])
    assert_allclose(contact_precision(scores, touches, [1, 2, 3], min_separation=1), [1, 1 / 2, 2 / 3])


def test_wrong_arguments_are_named():
    square = np.zeros((3, 3))
    with pytest.raises(ValueError, match="`scores`"):
        contact_table(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="`min_separation`"):
        contact_table(square, min_separation=0)
    with pytest.raises(ValueError, match="`columns`"):
        contact_table(square, columns=np.arange(2))
    with pytest.raises(ValueError, match="`counts`"):
        contact_precision(square, square, [4], min_separation=1)
    with pytest.raises(ValueError, match="`touches`"):
        contact_precision(square, np.zeros((2, 2)), [1])
    with pytest.raises(TypeError, match="`model`"):
        contact_scores(IsingModel(np.zeros(2), np.zeros((2, 2))))
    with pytest.raises(ValueError, match="`edge_weights`"):
        bregpath.PottsGraph(edge_weights="noise").fit(np.delete(family().letters, 5, axis=1))
    with pytest.raises(ValueError, match="`min_share`"):
        bregpath.ContactGraph(min_share=2.0).fit(family())
    with pytest.raises(ValueError, match="`stop`"):
        bregpath.ContactGraph(stop="soon").fit(family())


# --- the estimator -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def graph():
    return bregpath.ContactGraph().fit(family())


def test_planted_contacts_come_first(graph):
    found = graph.contacts(min_separation=1).head(len(CONTACTS))
    assert sorted(zip(found.i, found.j, strict=True)) == sorted(CONTACTS)


def test_separation(graph):
    table = graph.contacts(min_separation=6)
    assert (table.j - table.i).min() == 6
    assert table.score.is_monotonic_decreasing


def test_conserved_columns_stay_without_edges():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph = bregpath.ContactGraph().fit(family())
    assert graph.n_features_in_ == 12
    assert not graph.adjacency_[5].any()
    assert np.isfinite(graph.contact_scores()).all()


def test_rare_letters_are_pooled(graph):
    assert "W" not in graph.levels_[7]
    assert graph.levels_[7][-1] == "(rare)"
    kept = bregpath.ContactGraph(min_share=0).fit(family())
    assert "W" in kept.levels_[7]


def test_time_and_weights(graph):
    data = family()
    w = data.weights()
    assert graph.n_effective_ == pytest.approx(w.sum())
    assert graph.t_ == pytest.approx(2 * np.sqrt(w.sum()))
    again = bregpath.ContactGraph().fit(data.letters, sample_weight=w)
    assert_allclose(again.weights_, graph.weights_)
    assert again.columns_.tolist() == list(range(12))


def test_alike_sequences_count_once():
    data = family(n=300)
    many = np.concatenate([data.letters, np.repeat(data.letters[:1], 400, axis=0)])
    once = bregpath.ContactGraph(identity=1.0).fit(data.letters)
    both = bregpath.ContactGraph(identity=1.0).fit(many)
    assert_allclose(both.weights_, once.weights_, atol=1e-8)


@pytest.mark.parametrize(("weights", "low", "high"), [(None, 4.0, 9.0), ("chance", 0.7, 1.4)])
def test_chance_thresholds_are_in_proportion_to_noise(weights, low, high):
    """Blocks of independent columns enter at about the same time, however uneven the columns are."""
    rng = np.random.default_rng(0)
    shares = [[0.5, 0.3, 0.2], [0.94, 0.04, 0.02], [0.34, 0.33, 0.33], [0.9, 0.05, 0.05]]
    ratios = []
    for _ in range(20):
        X = np.stack([rng.choice(list("ABC"), 1000, p=share) for share in shares], axis=1)
        entry = bregpath.PottsGraph(edge_weights=weights, kappa=0.1, stop=2000.0).fit(X).path_.entry_times
        ratios.append(entry[1, 3] / entry[0, 2])  # of the uneven to the even
    assert low < np.exp(np.mean(np.log(ratios))) < high


def test_a_file_is_read(tmp_path):
    data = family(n=200)
    file = tmp_path / "family.fasta"
    file.write_text("".join(f">{name}\n{''.join(row)}\n" for name, row in zip(data.names, data.letters, strict=True)))
    graph = bregpath.ContactGraph().fit(str(file))
    assert_allclose(graph.weights_, bregpath.ContactGraph().fit(read_alignment(file)).weights_)


def test_cross_validation_of_rare_letters():
    """Letters that folds lack, and unseen ones, break nothing."""
    data = family(n=250)
    graph = bregpath.ContactGraph(stop="cv", cv=3, t_ratio=20.0).fit(data)
    new = data.letters[:20].copy()
    new[0, 7] = "Y"
    assert np.isfinite(graph.score(new))
    assert graph.selection_ is not None


def test_summary_names_the_rule(graph):
    assert "`stop`=chance" in str(graph)


def test_any_potts_graph_has_contacts():
    data = family()
    with pytest.warns(UserWarning, match="one label only"):
        graph = bregpath.PottsGraph(min_count=5, t_ratio=30.0).fit(data.letters)
    found = graph.contacts(min_separation=1).head(len(CONTACTS))
    assert sorted(zip(found.i, found.j, strict=True)) == sorted(CONTACTS)


# --- the figure ----------------------------------------------------------------------------------------------


def test_map_of_contacts(graph):
    plt = pytest.importorskip("matplotlib.pyplot")
    touches = np.zeros((12, 12), dtype=bool)
    touches[tuple(np.transpose(CONTACTS))] = True
    ax = graph.plot_contacts(touches=touches | touches.T, n_pairs=6, min_separation=1)
    truth, right, wrong = ax.lines
    assert len(truth.get_xdata()) == 2 * len(CONTACTS)
    assert (len(right.get_xdata()), len(wrong.get_xdata())) == (10, 2)  # on both sides of the diagonal
    assert ax.get_title(loc="left") == "5 of the 6 highest scores touch"
    with pytest.raises(ValueError, match="`touches`"):
        graph.plot_contacts(touches=np.zeros((2, 2)))
    plt.close("all")
