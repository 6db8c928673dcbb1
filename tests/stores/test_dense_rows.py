"""Rows that are read again and again: whatever is kept of them, they are those of the matrix."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bregpath.stores import DenseStore, dense

ROWS = np.array([7, 2, 2, 11])
ASKED = [[], [3], [3, 0, 5], [3, 0, 5], [3, 0], [0, 3, 5], [3, 0, 5, 1, 4]]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("room", [0, 2 * 8 * len(ROWS), 2**20], ids=["none", "for two columns", "for all"])
def test_rows_are_those_of_the_matrix(order, dtype, room, monkeypatch, rng):
    monkeypatch.setattr(dense, "ROWS_BYTES", room)
    X = np.asarray(rng.normal(size=(12, 6)), dtype=dtype, order=order)
    store = DenseStore(X)
    read = store.reader(ROWS)
    for asked in ASKED:
        columns, beta = np.array(asked, dtype=int), rng.normal(size=(len(asked), 2))
        expected = X[ROWS][:, columns].astype(float) @ beta
        assert_allclose(read(beta, columns), expected, atol=1e-13)
        assert_allclose(store.predict(beta, columns, ROWS), expected, atol=1e-13)
