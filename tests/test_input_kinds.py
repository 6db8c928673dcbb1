"""Kinds of arrays and sparse matrices: each gives the right path or is refused, and stays as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import bregpath
from bregpath import trace_path
from bregpath.stores import SparseStore
from tests.helpers import assert_same_path, make_data

N, P = 60, 8
OPTIONS: dict[str, Any] = {"t_ratio": 10.0, "n_times": 12}


@pytest.fixture(name="dense")
def make_dense() -> np.ndarray:
    X, _ = make_data("gaussian", n=N, p=P)
    X[np.random.default_rng(0).uniform(size=X.shape) < 0.6] = 0.0
    return X


@pytest.fixture(name="y")
def make_response(dense: np.ndarray) -> np.ndarray:
    return dense[:, 0] - dense[:, 1] + np.random.default_rng(1).normal(size=N)


def triplets(dense: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Every entry in three parts and in no order, with a few explicit zeros."""
    rng = np.random.default_rng(2)
    row, column = np.nonzero(dense)
    row, column, value = np.r_[row, row, row, 0, 1], np.r_[column, column, column, 1, 1], dense[row, column]
    value = np.r_[0.7 * value, 0.5 * value, -0.2 * value, 0.0, 0.0]
    order = rng.permutation(len(row))
    return value[order], (row[order], column[order])


def compressed(dense: np.ndarray, kind: type) -> Any:
    """CSR or CSC with the same duplicates, which the constructor takes as they are."""
    value, where = triplets(dense)
    major, minor = where if kind is sp.csr_array else where[::-1]
    order = np.argsort(major, kind="stable")
    size = dense.shape[0 if kind is sp.csr_array else 1]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(major, minlength=size))])
    return kind((value[order], minor[order], indptr), shape=dense.shape)


def kinds(dense: np.ndarray) -> dict[str, Any]:
    value, where = triplets(dense)
    sparse = sp.csr_array(dense)
    backwards = sparse.copy()
    for i in range(N):
        part = slice(backwards.indptr[i], backwards.indptr[i + 1])
        backwards.indices[part] = backwards.indices[part][::-1].copy()
        backwards.data[part] = backwards.data[part][::-1].copy()
    backwards.has_sorted_indices = False
    mistaken = compressed(dense, sp.csc_array)
    mistaken.has_canonical_format = True  # what scipy remembers may be out of date
    return {
        "coo with duplicates": sp.coo_array((value, where), shape=dense.shape),
        "coo matrix with duplicates": sp.coo_matrix((value, where), shape=dense.shape),
        "csr with duplicates": compressed(dense, sp.csr_array),
        "csc with duplicates": compressed(dense, sp.csc_array),
        "csc that is believed to have none": mistaken,
        "unsorted csr": backwards,
        "bsr": sp.bsr_array(dense, blocksize=(2, 2)),
        "dia": sp.dia_array(dense),
        "dok": sp.dok_array(dense),
        "lil": sp.lil_array(dense),
        "csr matrix": sp.csr_matrix(dense),
    }


KINDS = list(kinds(np.eye(N, P)))


@pytest.mark.parametrize("screened", [False, True])
@pytest.mark.parametrize("loss", ["gaussian", "logistic"])
@pytest.mark.parametrize("kind", KINDS)
def test_sparse_kinds(kind: str, loss: str, screened: bool, dense: np.ndarray, y: np.ndarray, request: Any) -> None:
    if screened:
        request.getfixturevalue("always_screen")
    response = y if loss == "gaussian" else (y > 0).astype(int)
    reference = trace_path(dense, response, loss=loss, **OPTIONS)
    path = trace_path(kinds(dense)[kind], response, loss=loss, **OPTIONS)
    assert_same_path(path, reference)
    t = reference.t[-1]
    assert_allclose(path.predict(kinds(dense)[kind], t), reference.predict(dense, t), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_sparse_input_stays_as_it_was(kind: str, dense: np.ndarray, y: np.ndarray) -> None:
    X, twin = kinds(dense)[kind], kinds(dense)[kind]
    path = trace_path(X, y, **OPTIONS)
    path.predict(X, path.t[-1])
    bregpath.cross_validate(X, y, cv=2, **OPTIONS)
    assert X.nnz == twin.nnz and X.format == twin.format
    for name in ("data", "indices", "indptr", "row", "col"):
        if kind not in ("dok", "lil") and hasattr(twin, name):
            assert_array_equal(getattr(X, name), getattr(twin, name), err_msg=name)
    assert_allclose(X.toarray(), twin.toarray())


def test_moments_and_norms_of_duplicates(dense: np.ndarray) -> None:
    w = np.random.default_rng(3).uniform(size=N)
    w /= w.sum()
    scan = SparseStore(compressed(dense, sp.csr_array)).scan(w)
    mean = w @ dense
    assert_allclose([scan.mean, scan.deviation], [mean, np.sqrt(w @ (dense - mean) ** 2)], rtol=1e-12)
    assert_allclose(scan.size, np.sqrt(w @ dense**2), rtol=1e-12)


def test_a_sparse_constant_is_constant(rng: np.random.Generator) -> None:
    """Its weights add up to one only up to rounding."""
    X = rng.normal(size=(7, 40))
    X[:, 20:] = rng.uniform(100.0, 1000.0, 20)
    for _ in range(5):
        w = np.append(rng.uniform(size=6), 0.0)
        deviation = SparseStore(sp.csc_array(X)).scan(w / w.sum()).deviation
        assert deviation[20:].max() < 1e-10 < deviation[:20].min()


def test_sums_that_overflow_are_refused() -> None:
    X = sp.csr_array((np.full(4, 1e308), [0, 0, 1, 0], [0, 2, 3, 4]), shape=(3, 2))
    with pytest.raises(ValueError, match="`X` contains NaN or infinity"):
        trace_path(X, [1.0, 2.0, 3.0])


def test_sparse_vectors_are_refused(dense: np.ndarray, y: np.ndarray) -> None:
    with pytest.raises(ValueError, match="`X` must be two-dimensional"):
        trace_path(sp.coo_array(y), y)
    for name in ("sample_weight", "offset", "penalty_factor"):
        with pytest.raises(TypeError, match=f"`{name}` must be a dense array"):
            trace_path(dense, y, **{name: sp.csr_array(np.ones((1, N)))})
    with pytest.raises(TypeError, match="`y` must be a dense array"):
        trace_path(dense, sp.csr_array(y[None]))


# --- subclasses and masks ----------------------------------------------------------------------------------------


class Tagged(np.ndarray):
    """An array with ways of its own: its sums are not sums."""

    def sum(self, *args: Any, **kwargs: Any) -> Any:
        return np.float64(0.0)


@pytest.fixture
def arrays(dense: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    """All arguments that are arrays."""
    rng = np.random.default_rng(4)
    return {
        "X": dense,
        "y": y,
        "sample_weight": rng.uniform(size=N),
        "offset": rng.normal(size=N),
        "penalty_factor": rng.uniform(0.5, 2.0, P),
        "lower": -np.ones(P),
        "upper": np.ones(P),
        "groups": np.arange(P),
        "t": np.array([0.8, 1.2, 1.6]),
    }


ARGUMENTS = ["X", "y", "sample_weight", "offset", "penalty_factor", "lower", "upper", "groups", "t"]


def trace(arguments: dict[str, Any]) -> bregpath.Path:
    arguments = {"penalty": "group", **arguments}
    return trace_path(arguments.pop("X"), arguments.pop("y"), **arguments)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_mask_is_not_ignored(name: str, arrays: dict[str, np.ndarray]) -> None:
    values = arrays[name]
    mask = np.zeros(values.shape, dtype=bool)
    whole = {**arrays, name: np.ma.MaskedArray(values, mask.copy())}
    assert_array_equal(trace(whole).coef, trace(arrays).coef)
    mask.flat[2] = True
    with pytest.raises(ValueError, match=f"`{name}` is a masked array with 1 masked value"):
        trace({**arrays, name: np.ma.MaskedArray(values, mask)})
    with pytest.raises(ValueError, match=f"`{name}` is a masked array"):
        trace({**arrays, name: list(np.ma.MaskedArray(values, mask))})


@pytest.mark.parametrize("name", ARGUMENTS)
def test_subclasses_lose_their_ways(name: str, arrays: dict[str, np.ndarray]) -> None:
    assert_array_equal(trace({**arrays, name: arrays[name].view(Tagged)}).coef, trace(arrays).coef)


def test_matrices_of_numpy(arrays: dict[str, np.ndarray]) -> None:
    reference = trace(arrays)
    path = trace({**arrays, "X": arrays["X"].view(np.matrix), "y": arrays["y"][:, None].view(np.matrix)})
    assert_array_equal(path.coef, reference.coef)
    assert_array_equal(
        path.predict(arrays["X"].view(np.matrix), 1.5, offset=arrays["offset"][:, None].view(np.matrix)),
        reference.predict(arrays["X"], 1.5, offset=arrays["offset"]),
    )
    assert type(path.predict(arrays["X"].view(np.matrix), 1.5)) is np.ndarray
    with pytest.raises(ValueError, match="`sample_weight` must have one entry"):
        trace({**arrays, "sample_weight": arrays["sample_weight"].view(np.matrix)})


def test_masks_in_predict(arrays: dict[str, np.ndarray]) -> None:
    path, X = trace(arrays), arrays["X"]
    with pytest.raises(ValueError, match="`X` is a masked array"):
        path.predict(np.ma.masked_less(X, 0), 1.5)
    with pytest.raises(ValueError, match="`offset` is a masked array"):
        path.predict(X, 1.5, offset=np.ma.masked_less(arrays["offset"], 0))


@pytest.mark.parametrize("name", ["X", "y", "sample_weight", "offset", "cv_groups"])
def test_masks_in_estimators(name: str, arrays: dict[str, np.ndarray]) -> None:
    data: dict[str, Any] = {key: arrays[key] for key in ("X", "y", "sample_weight", "offset")}
    data["cv_groups"] = np.arange(N) // 6
    model = bregpath.BregmanRegressor(**OPTIONS)
    reference = model.fit(**data).coef_
    mask = np.zeros(data[name].shape, dtype=bool)
    assert_array_equal(model.fit(**{**data, name: np.ma.MaskedArray(data[name], mask)}).coef_, reference)
    mask.flat[0] = True
    with pytest.raises(ValueError, match=f"`{name}` is a masked array"):
        model.fit(**{**data, name: np.ma.MaskedArray(data[name], mask)})


def test_matrices_and_masks_in_predictions_of_estimators(arrays: dict[str, np.ndarray]) -> None:
    X, y = arrays["X"], arrays["y"]
    model = bregpath.BregmanRegressor(stop="bic", **OPTIONS).fit(X.view(np.matrix), y)
    assert_array_equal(model.predict(X.view(np.matrix)), model.predict(X))
    with pytest.raises(ValueError, match="`X` is a masked array"):
        model.predict(np.ma.masked_less(X, 0))


@pytest.mark.parametrize("graph", ["IsingGraph", "PottsGraph", "GaussianGraph", "MixedGraph"])
def test_graphs(graph: str, rng: np.random.Generator) -> None:
    X = (rng.normal(size=(80, 4)) > 0).astype(float)
    X[:, 1] = np.where(rng.uniform(size=80) < 0.8, X[:, 0], X[:, 1])
    make = getattr(bregpath, graph)
    reference = make().fit(X).weights_
    assert reference.any()
    value, (row, column) = np.r_[np.full(int(X.sum()), 0.5), np.full(int(X.sum()), 0.5)], np.nonzero(X)
    doubled = sp.coo_array((value, (np.r_[row, row], np.r_[column, column])), shape=X.shape)
    for same in (X.view(np.matrix), X.view(Tagged), np.ma.MaskedArray(X), sp.csr_array(X), doubled):
        assert_array_equal(make().fit(same).weights_, reference)
    masked = np.ma.MaskedArray(X, np.eye(80, 4, dtype=bool))
    with pytest.raises(ValueError, match="`X` is a masked array with 4 masked"):
        make().fit(masked)
    with pytest.raises(ValueError, match="`X` is a masked array"):
        make().fit(X).score(masked)
    with pytest.raises(ValueError, match="`sample_weight` is a masked array"):
        make().fit(X, sample_weight=np.ma.MaskedArray(np.ones(80), np.arange(80) < 3))
    square = np.ma.MaskedArray(np.ones((4, 4)), np.eye(4, dtype=bool))
    for name in ("mask", "edge_weights"):
        with pytest.raises(ValueError, match=f"`{name}` is a masked array"):
            make(**{name: square}).fit(X)
    with pytest.raises(ValueError, match="is a masked array"):
        bregpath.graphs.mdc(masked, X)
