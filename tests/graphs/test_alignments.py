"""Alignments: three formats, insertions, odd letters, sequence weights."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bregpath.graphs import alignments as module
from bregpath.graphs import read_alignment, sequence_weights

STOCKHOLM = """# STOCKHOLM 1.0
#=GF ID family
one/1-5    ACD.
two/3-8    A-Dg
#=GR one/1-5 SS ..HH

one/1-5    -E
two/3-8    GE
//
"""
FORMATS = {
    "fasta": ">one/1-5 a word\nACD\n-E\n>two/3-8\nA-DGE\n",
    "a2m": ">one/1-5\nACD.-E\n>two/3-8\nA-DgGE\n",
    "short.a2m": ">one/1-5\nACD-E\n>two/3-8\nA-DgkGE\n",
    "sto": STOCKHOLM,
}


def write(tmp_path, text, name="family.fasta"):
    file = tmp_path / name
    if name.endswith(".gz"):
        with gzip.open(file, "wt") as stream:
            stream.write(text)
    else:
        file.write_text(text)
    return file


def texts(family):
    return ["".join(row) for row in family.letters]


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("kind", FORMATS)
def test_formats(kind, packed, tmp_path):
    family = read_alignment(write(tmp_path, FORMATS[kind], f"family.{kind}{packed}"))
    assert family.names == ("one/1-5", "two/3-8")
    assert texts(family) == ["ACD-E", "A-DGE"]
    assert family.shape == (2, 5)


def test_columns_are_those_of_the_file(tmp_path):
    family = read_alignment(write(tmp_path, STOCKHOLM))
    assert family.columns.tolist() == [0, 1, 2, 4, 5]  # column 3 has an insertion
    assert "2 sequences, 5 columns, 20.0% gaps" in repr(family)


def test_odd_letters_are_gaps(tmp_path):
    file = write(tmp_path, ">a\nAXBZU*\n>b\nACDEFG\n")
    assert texts(read_alignment(file)) == ["A-----", "ACDEFG"]
    assert texts(read_alignment(file, alphabet=None))[0] == "AXBZU-"
    assert texts(read_alignment(file, alphabet="rna")) == ["A---U-", "AC---G"]


def test_dots_and_case_in_shared_columns(tmp_path):
    assert texts(read_alignment(write(tmp_path, ">a\nA.cD\n>b\nACCD\n"))) == ["A-CD", "ACCD"]
    assert texts(read_alignment(write(tmp_path, ">a\nacd\n>b\na-d\n"))) == ["ACD", "A-D"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "`file` is empty"),
        ("\n\n", "`file` is empty"),
        ("ACDE\n", "neither FASTA nor a2m"),
        (">a\nACD\n>b\nAC\n", "unequal lengths: 3 columns of 'a', 2 of 'b'"),
        (">a\n>b\n", "no columns"),
        (">a\n---\n>b\n---\n", "no letter of the `alphabet`"),
        ("# STOCKHOLM 1.0\n//\n", "no sequences"),
        ("# STOCKHOLM 1.0\none AC DE\n//\n", "not a name and a sequence"),
    ],
)
def test_bad_files(text, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        read_alignment(write(tmp_path, text))


def test_wrong_arguments(tmp_path):
    with pytest.raises(ValueError, match="`alphabet`"):
        read_alignment(write(tmp_path, ">a\nA\n"), alphabet="greek")
    with pytest.raises(FileNotFoundError):
        read_alignment(tmp_path / "absent.fasta")
    for identity in (0.0, 1.5, np.nan):
        with pytest.raises(ValueError, match="`identity`"):
            sequence_weights([["A", "C"]], identity)
    with pytest.raises(ValueError, match="`letters`"):
        sequence_weights(["AC", "AD"])


@pytest.mark.parametrize("identity", [0.3, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("pairs", [2**23, 200])  # in one block, in several
def test_weights_by_brute_force(identity, pairs, monkeypatch):
    monkeypatch.setattr(module, "BLOCK_PAIRS", pairs)
    rng = np.random.default_rng(0)
    parents = rng.choice(list("-ACDE"), (12, 10))
    rows = parents[rng.integers(12, size=70)]
    rows = np.where(rng.random(rows.shape) < 0.15, rng.choice(list("-ACDE"), rows.shape), rows)
    alike = (rows[:, None] == rows).mean(axis=2) >= identity - 1e-12
    assert_allclose(sequence_weights(rows, identity), 1 / alike.sum(axis=1))
    assert len(np.unique(alike.sum(axis=1))) > 1


def test_weights_of_long_sequences():
    """More columns than fit into a byte."""
    one = np.zeros(700, dtype=int)
    other = np.where(np.arange(700) < 140, 1, 0)  # alike in exactly 80 %
    assert sequence_weights([one, other, 1 - one]).tolist() == [0.5, 0.5, 1.0]
