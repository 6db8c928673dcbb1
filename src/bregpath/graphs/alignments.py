"""Alignments of sequences: reading them, and how much each sequence counts."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any

import numpy as np

from bregpath._typing import Array, IntArray
from bregpath._validation import as_array, check_number

__all__ = ["GAP", "Alignment", "read_alignment", "sequence_weights"]

GAP = "-"
ALPHABETS = {"protein": "ACDEFGHIKLMNPQRSTVWY", "rna": "ACGU", "dna": "ACGT"}
BLOCK_PAIRS = 2**23  # pairs of sequences that are compared at a time


@dataclass(frozen=True, eq=False)
class Alignment:
    """Sequences of a family, one a row, whose columns are positions that they share.

    Attributes
    ----------
    names : tuple of str
        What the file calls the sequences.
    letters : ndarray of shape (n, L)
        One letter a cell; "-" is a gap.
    columns : ndarray of shape (L,)
        Number of each column in the file, from 0 on; of an a2m file, among those that are no insertions.

    Examples
    --------
    >>> import numpy as np
    >>> letters = np.array([list("ACDEF"), list("ACDEG"), list("G-GGG")])
    >>> family = Alignment(("one", "two", "three"), letters, np.arange(5))
    >>> family, family.weights()
    (<Alignment: 3 sequences, 5 columns, 6.7% gaps>, array([0.5, 0.5, 1. ]))
    """

    names: tuple[str, ...]
    letters: Array
    columns: IntArray

    @property
    def shape(self) -> tuple[int, int]:
        """Number of sequences, and of columns."""
        return self.letters.shape  # type: ignore[return-value]

    def weights(self, identity: float = 0.8) -> Array:
        """How much each sequence counts; see `sequence_weights`."""
        return sequence_weights(self.letters, identity)

    def __repr__(self) -> str:
        n, length = self.shape
        return f"<Alignment: {n} sequences, {length} columns, {np.mean(self.letters == GAP):.1%} gaps>"


def read_alignment(file: str | PathLike[str], alphabet: str | None = "protein") -> Alignment:
    r"""Read an alignment in FASTA, a2m or Stockholm format, as plain text or gzipped (``.gz``).

    Columns of insertions, that is, of lower-case letters and dots alone, are left out; so are insertions of an a2m
    file whose dots were left out. Other dots are gaps. The case of letters does not matter where all are lower-case.

    Parameters
    ----------
    file : path
    alphabet : {"protein", "rna", "dna"} or None, default "protein"
        Letters that are kept; all others (X, B, Z, ...) become gaps. With None every letter is kept.

    Returns
    -------
    Alignment

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "family.a2m"
    >>> _ = file.write_text(">one\nACD-E\n>two\nA-XgDE\n")
    >>> family = read_alignment(file)
    >>> family.names, ["".join(row) for row in family.letters]
    (('one', 'two'), ['ACD-E', 'A--DE'])
    """
    if alphabet is not None and alphabet not in ALPHABETS:
        raise ValueError(f"`alphabet` must be one of {', '.join(map(repr, ALPHABETS))} or None, found {alphabet!r}.")
    path = fspath(file)
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as stream:
        lines = [line.rstrip() for line in stream]
    lines = [line for line in lines if line]
    if not lines:
        raise ValueError(f"`file` is empty: {path}.")
    names, texts = (_stockholm if lines[0].startswith("# STOCKHOLM") else _fasta)(lines, path)
    letters, columns = _match_columns(names, texts)
    return Alignment(tuple(names), _in_alphabet(letters, alphabet), columns)


def sequence_weights(letters: Any, identity: float = 0.8) -> Array:
    """One over the number of sequences that are alike, itself among them; their sum is an effective number.

    Relatives tell the same story many times over. Given as ``sample_weight``, the sequences of a cluster count as one.

    Parameters
    ----------
    letters : array-like of shape (n, L)
        Labels of any kind, one sequence a row.
    identity : float, default 0.8
        Share of the columns that alike sequences have in common; gaps count as a letter.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> sequence_weights([list("ACDEF"), list("ACDEG"), list("GGGGG")])
    array([0.5, 0.5, 1. ])
    """
    identity = check_number("identity", identity)
    if not 0.0 < identity <= 1.0:
        raise ValueError(f"`identity` must be a share above 0 and up to 1, found {identity!r}.")
    table = as_array("letters", letters)
    if table.ndim != 2 or not table.size:
        raise ValueError(f"`letters` must have one row a sequence and one column a position, found {table.shape}.")
    codes = np.unique(table, return_inverse=True)[1].reshape(table.shape)
    columns = np.ascontiguousarray(codes.T, dtype=np.min_scalar_type(int(codes.max())))
    length, n = columns.shape
    needed = int(np.ceil(identity * length - 1e-9))
    alike, rows = np.zeros(n), max(1, BLOCK_PAIRS // n)
    count = np.min_scalar_type(length)
    for first in range(0, n, rows):
        # All pairs of these rows with themselves and with the later ones; the latter count for both.
        own = min(rows, n - first)
        common = np.zeros((own, n - first), dtype=count)
        for column in columns:
            common += column[first : first + own, None] == column[first:]
        close = common >= needed
        alike[first : first + own] += close.sum(axis=1)
        alike[first + own :] += close[:, own:].sum(axis=0)
    return 1.0 / alike


# --- formats -------------------------------------------------------------------------------------------------


def _fasta(lines: list[str], path: str) -> tuple[list[str], list[str]]:
    """Names and sequences of FASTA or a2m: a line ``>name ...``, then the sequence on one line or several."""
    if not lines[0].startswith(">"):
        raise ValueError(
            f"`file` is neither FASTA nor a2m (a line '>name' first) nor Stockholm ('# STOCKHOLM 1.0' first): {path}."
        )
    names: list[str] = []
    parts: list[list[str]] = []
    for line in lines:
        if line.startswith(">"):
            names.append((line[1:].split() or [f"sequence {len(names)}"])[0])
            parts.append([])
        else:
            parts[-1].append("".join(line.split()))
    return names, ["".join(part) for part in parts]


def _stockholm(lines: list[str], path: str) -> tuple[list[str], list[str]]:
    """Names and sequences of Stockholm: lines ``name sequence``, in one block or several."""
    texts: dict[str, str] = {}
    for line in lines[1:]:
        if line.startswith("//"):
            break
        if line.startswith("#"):
            continue
        cells = line.split()
        if len(cells) != 2:
            raise ValueError(f"`file` has a line that is not a name and a sequence: {line[:40]!r} in {path}.")
        texts[cells[0]] = texts.get(cells[0], "") + cells[1]
    if not texts:
        raise ValueError(f"`file` has no sequences: {path}.")
    return list(texts), list(texts.values())


def _match_columns(names: list[str], texts: list[str]) -> tuple[Array, IntArray]:
    """Letters without insertions, in capitals, and the number of each column."""
    if not any(letter.isupper() for text in texts for letter in text):
        texts = [text.upper() for text in texts]
    if len({len(text) for text in texts}) == 1:
        table = _table(texts)
        inserted = (table == ".") | (np.char.upper(table) != table)
        columns = np.flatnonzero(~inserted.all(axis=0))
    else:  # an a2m file whose dots were left out
        texts = ["".join(x for x in text if x != "." and not x.islower()) for text in texts]
        wrong = next((i for i, text in enumerate(texts) if len(text) != len(texts[0])), None)
        if wrong is not None:
            raise ValueError(
                f"`file` has sequences of unequal lengths: {len(texts[0])} columns of {names[0]!r}, "
                f"{len(texts[wrong])} of {names[wrong]!r} (insertions not counted); align them first."
            )
        table = _table(texts)
        columns = np.arange(table.shape[1])
    if not len(columns):
        raise ValueError(f"`file` has no columns: the sequence of {names[0]!r} is empty, or all are insertions.")
    return np.char.upper(table[:, columns]), columns


def _table(texts: list[str]) -> Array:
    return np.array([list(text) for text in texts], dtype="<U1").reshape(len(texts), -1)


def _in_alphabet(letters: Array, alphabet: str | None) -> Array:
    """Letters, with gaps for those that are none of the alphabet."""
    known = np.char.isalpha(letters) if alphabet is None else np.isin(letters, list(ALPHABETS[alphabet]))
    if not known.any():
        raise ValueError(f"`file` has no letter of the `alphabet` {alphabet!r}; choose another, or None for all.")
    return np.where(known, letters, GAP)
