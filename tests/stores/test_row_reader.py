"""Rows that are read again and again: whatever is kept of them, they are those of the matrix."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from bregpath.stores import DenseStore, SparseStore, row_reader

ROWS = np.array([7, 2, 2, 11])
ASKED = [[], [3], [3, 0, 5], [3, 0, 5], [3, 0], [0, 3, 5], [3, 0, 5, 1, 4]]


def make_store(X, kind):
    if kind == "sparse":
        return SparseStore(sp.csc_array(X))
    return DenseStore(np.repeat(X, 2, axis=1)[:, ::2] if kind == "neither" else np.asarray(X, order=kind))


@pytest.mark.parametrize("kind", ["C", "F", "neither", "sparse"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("room", [0, 2 * 8 * len(ROWS), 2**20], ids=["none", "for two columns", "for all"])
def test_rows_are_those_of_the_matrix(kind, dtype, room, monkeypatch, rng):
    monkeypatch.setattr(row_reader, "MOST_BYTES", room)
    X = (rng.normal(size=(12, 6)) * (rng.random((12, 6)) < 0.7)).astype(dtype)
    store = make_store(X, kind)
    read = store.reader(ROWS)
    for asked in ASKED:
        columns, beta = np.array(asked, dtype=int), rng.normal(size=(len(asked), 2))
        expected = X[ROWS][:, columns].astype(float) @ beta
        assert_allclose(read(beta, columns), expected, atol=1e-13)
        assert_allclose(store.predict(beta, columns, ROWS), expected, atol=1e-13)


@pytest.mark.parametrize("kind", ["F", "sparse"])
def test_columns_are_gathered_once(kind, monkeypatch, rng):
    store, gathered = make_store(rng.normal(size=(12, 6)), kind), []
    part = store.part
    monkeypatch.setattr(store, "part", lambda columns, rows: gathered.append(columns.tolist()) or part(columns, rows))
    read = store.reader(ROWS)
    for asked in ([], [3], [3, 0, 5], [3, 0, 5], [3, 0, 5, 1]):
        read(np.zeros((len(asked), 1)), np.array(asked, dtype=int))
    assert gathered == [[], [3], [0, 5], [1]]
