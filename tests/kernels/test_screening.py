"""Passes over all columns, and what proofs of screening are made of: the compiled core against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import bregpath
from bregpath import _kernels, regression
from bregpath._kernels import screening
from bregpath.flow.gram import central_moments
from bregpath.flow.moments import moments_at_once
from bregpath.penalties import build_penalty
from bregpath.stores import AbstractStore, DenseStore, SparseStore, StandardizedStore

if not _kernels.has_compiled():
    pytest.skip("built without the compiled core", allow_module_level=True)

from bregpath._kernels import _core, compiled_screening

N, P = 37, 23


def make_store(kind: str, rng: np.random.Generator, size: float = 0.0) -> AbstractStore:
    X = np.asfortranarray(rng.normal(size=(N, P)) * (rng.random((N, P)) < 0.3))
    X[:, 5] *= size
    base = SparseStore(sp.csc_array(X)) if "sparse" in kind else DenseStore(X)
    is_plain = "standardised" not in kind
    return base if is_plain else StandardizedStore(base, rng.normal(size=P), rng.uniform(0.5, 2.0, P))


@pytest.mark.parametrize("kind", ["dense", "sparse", "dense, standardised", "sparse, standardised"])
@pytest.mark.parametrize("shape", [(1, N, 1), (2, N, 1), (7, N, 1), (3, N, 2), (27, N, 1), (77, N, 1)])
def test_products_of_columns_where_they_lie(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> None:
    store, vectors = make_store(kind, rng), rng.normal(size=shape)
    columns = _kernels.columns_of(store)
    for some in (None, np.array([3, 5, 22, 0]), np.zeros(0, dtype=int)):
        expected = store.products(vectors, some)
        assert_allclose(columns.products(vectors, some), expected, atol=1e-12)


@pytest.mark.parametrize("n", [37, 9001], ids=lambda n: f"{n} rows")
def test_products_with_a_vector_do_not_depend_on_the_others(n: int, rng: np.random.Generator) -> None:
    store, vectors = DenseStore(np.asfortranarray(rng.normal(size=(n, P)))), rng.normal(size=(32, n, 1))
    columns, order = _kernels.columns_of(store), rng.permutation(32)
    products = columns.products(vectors)
    assert_allclose(products, store.products(vectors), atol=1e-11)
    assert_array_equal(columns.products(vectors[order[:16]]), products[order[:16]])


@pytest.mark.parametrize("kind", ["dense", "sparse", "dense, standardised", "sparse, standardised"])
@pytest.mark.parametrize("size", [1.0, 1e250], ids=["plain", "beyond squares"])
def test_scan_of_columns_where_they_lie(kind: str, size: float, rng: np.random.Generator) -> None:
    store, w = make_store(kind, rng, size), rng.random(N) * (rng.random(N) < 0.8)
    w /= w.sum()
    scan, expected = _kernels.columns_of(store).scan(w), store.scan(w)
    assert_allclose(scan.mean, expected.mean, rtol=1e-12, atol=1e-12)
    assert_allclose(scan.deviation, expected.deviation, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", [1, 37, 5003], ids=lambda n: f"{n} rows")
@pytest.mark.parametrize("p", [1, 6, 23], ids=lambda p: f"{p} columns")
@pytest.mark.parametrize("is_standardised", [False, True], ids=["as they are", "standardised"])
@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
def test_moments_of_columns_where_they_lie(
    n: int, p: int, is_standardised: bool, is_sparse: bool, rng: np.random.Generator
) -> None:
    X, y, w = np.asfortranarray(rng.normal(2.0, size=(n, p))), rng.normal(size=n), rng.random(n) * (rng.random(n) < 0.8)
    X[rng.random((n, p)) < 0.7 * is_sparse] = 0.0
    center, scale, shift = rng.normal(size=p), rng.uniform(0.5, 2.0, p), rng.normal(size=p)
    store: AbstractStore = SparseStore(sp.csc_array(X)) if is_sparse else DenseStore(X)
    if is_standardised:
        store, X = StandardizedStore(store, center, scale), (X - center) / scale
    every = np.column_stack([X - shift, np.ones(n), y])
    columns, some = _kernels.columns_of(store), np.sort(rng.permutation(n)[: (n + 1) // 2])
    assert_allclose(columns.moments(w, y, shift), every.T @ (every * w[:, None]), rtol=1e-11, atol=1e-11)
    moments, every = columns.moments(w[some], y[some], shift, some), every[some]
    assert_allclose(moments, every.T @ (every * w[some, None]), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("p", [1, 7, 40], ids=lambda p: f"{p} columns")
def test_moments_of_the_rows_that_are_left(p: int, rng: np.random.Generator) -> None:
    whole, lost = (rng.normal(size=(p + 3, p + 3))[:p, :p] for _ in "12")  # parts of larger matrices
    moved, unit = rng.normal(size=p), rng.uniform(0.5, 2.0, p)
    ours = compiled_screening.lessen(whole, lost, 0.8, moved, unit)
    assert_allclose(ours, screening.lessen(whole, lost, 0.8, moved, unit), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("is_uniform", [True, False])
def test_central_moments_are_those_that_numpy_sums_up(is_uniform: bool, rng: np.random.Generator) -> None:
    X, y, w = rng.normal(3.0, size=(200, 7)), rng.normal(size=200), np.ones(200) if is_uniform else rng.random(200)
    y -= w @ y / w.sum()
    by_columns, by_rows = DenseStore(np.asfortranarray(X)), DenseStore(np.ascontiguousarray(X))
    assert _kernels.columns_of(by_rows) is None
    for shift in (np.zeros(7), rng.normal(3.0, size=7)):
        core, numpy = (central_moments(store, w, y, shift) for store in (by_columns, by_rows))
        for ours, expected in zip(core, numpy, strict=True):
            assert_allclose(ours, expected, rtol=1e-11, atol=1e-11)
        mean = w @ X / w.sum()
        assert_allclose(core.mean, mean, rtol=1e-12)
        assert_allclose(core.matrix, (X - mean).T @ ((X - mean) * w[:, None]), rtol=1e-11)


def test_stores_that_the_core_does_not_read(rng: np.random.Generator) -> None:
    class Own(DenseStore):
        """May have other columns."""

    X = np.asfortranarray(rng.normal(size=(N, P)))
    for store in (Own(X), DenseStore(X.astype(np.float32)), DenseStore(np.ascontiguousarray(X))):
        assert _kernels.columns_of(store) is None
        assert _kernels.columns_of(StandardizedStore(store, np.zeros(P), np.ones(P))) is None


def test_lengths(rng: np.random.Generator) -> None:
    R, residual = rng.normal(size=(2, 6, N))
    arguments = R, residual, R[-1], residual[-1], rng.uniform(size=N)
    assert_allclose(compiled_screening.lengths(*arguments), screening.lengths(*arguments), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("has_limits", [False, True])
@pytest.mark.parametrize("some", [False, True])
def test_columns_that_may_cross(q: int, has_limits: bool, some: bool, rng: np.random.Generator) -> None:
    p = 400
    factor = rng.choice([0.0, 0.7, 1.0, np.inf], p, p=[0.05, 0.4, 0.5, 0.05])
    limits = {"lower": rng.choice([0.0, -1.0, -np.inf], p), "upper": rng.choice([0.0, 1.0, np.inf], p)}
    penalty = build_penalty("l1", p, q, penalty_factor=factor, **limits if has_limits else {})
    bounds = np.stack([rng.normal(size=5), rng.normal(size=5), rng.uniform(0, 0.3, 5)], axis=1)
    columns = rng.permutation(p)[:90] if some else None
    k = 90 if some else p
    z, along = rng.normal(size=(2, k, q)) * [[[0.4]], [[0.2]]]
    arguments = penalty, z, along, rng.uniform(0.5, 1.5, (p, 1)), bounds, rng.integers(0, 5, k), columns
    near = compiled_screening.may_cross(*arguments)
    assert near.any() and not near.all()
    assert_array_equal(near, screening.may_cross(*arguments))


def test_what_does_not_fit_is_refused(rng: np.random.Generator) -> None:
    numbers = {"values": np.ones(2), "indices": np.array([0, N], dtype=np.int32), "indptr": np.array([0, 1, 2])}
    with pytest.raises(ValueError, match="a row of a sparse store is out of range"):
        _core.Store(N, numbers)
    with pytest.raises(ValueError, match="`indptr` is out of range"):
        _core.Store(N + 1, {**numbers, "indptr": np.array([0, 2, 1])})
    columns = _kernels.columns_of(make_store("sparse", rng))
    with pytest.raises(ValueError, match="a column is out of range"):
        columns.products(np.zeros((1, N, 1)), np.array([P]))
    dense = _kernels.columns_of(make_store("dense", rng))
    with pytest.raises(ValueError, match="a row is out of range"):
        dense.moments(np.ones(2), np.ones(2), np.zeros(P), np.array([0, N]))
    with pytest.raises(ValueError, match="rows of sparse columns are not in order"):
        columns.moments(np.ones(2), np.ones(2), np.zeros(P), np.array([1, 0]))
    with pytest.raises(ValueError, match="`w` has a wrong shape"):
        dense.moments(np.ones(N), np.ones(2), np.zeros(P), np.array([0, 1]))
    with pytest.raises(ValueError, match="`unit` has a wrong shape"):
        compiled_screening.lessen(np.eye(2), np.eye(2), 0.5, np.zeros(2), np.ones(3))
    with pytest.raises(ValueError, match="`vectors` has a wrong shape"):
        columns.products(np.zeros((1, N + 1, 1)))
    penalty, z = build_penalty("l1", P, 1), np.zeros((P, 1))
    with pytest.raises(ValueError, match="a reference is out of range"):
        compiled_screening.may_cross(penalty, z, z, z, np.zeros((1, 3)), np.ones(P, dtype=int))
    with pytest.raises(ValueError, match="a column is out of range"):
        compiled_screening.may_cross(penalty, z[:1], z[:1], z, np.zeros((1, 3)), np.zeros(1, dtype=int), np.array([P]))
    with pytest.raises(ValueError, match="`last` has a wrong shape"):
        compiled_screening.lengths(np.zeros((2, N)), np.zeros((2, N)), np.zeros(N), np.zeros(N - 1), np.zeros(N))


# --- all moments at once: what a path of squared loss begins with ----------------------------------------


def rows_of(kind: str, rng: np.random.Generator) -> np.ndarray:
    X = rng.normal(size=(300, 12))
    X[:, 3] = 4.7  # a constant
    X[:, 4] = rng.random(300) < 0.1
    X[:, 5] = 1e8 + rng.normal(size=300)
    if kind == "sorted":
        X[:, 0] = np.where(np.arange(300) < 299, 0.0, 1.0)
        X[:, 1] = np.where(np.arange(300) % 74 < 2, 1e3, X[:, 1])  # what is unusual is where it is looked
    if kind == "nan":
        X[17, 2] = np.nan
    if kind == "huge":
        X[:, 2] *= 1e200
    return np.asfortranarray(X)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
def test_moments_at_once_are_those_of_a_scan_and_of_products(
    weighted: bool, is_sparse: bool, rng: np.random.Generator
) -> None:
    X, y = rows_of("plain", rng), rng.normal(size=300)
    w = rng.uniform(0.5, 1.0, 300) if weighted else np.ones(300)
    w /= w.sum()
    store, y = SparseStore(sp.csc_array(X)) if is_sparse else DenseStore(X), y - w @ y
    moments = moments_at_once(store, w, y)
    assert moments is not None
    scan, inside = store.scan(w), X - w @ X
    assert_allclose(moments.scan.mean, scan.mean, rtol=1e-14, atol=1e-14)
    assert_allclose(moments.scan.deviation, scan.deviation, rtol=1e-12, atol=1e-13)
    assert moments.scan.deviation[3] == 0 and moments.mean[3] == 4.7
    assert_allclose(moments.target, inside.T @ (w * y), atol=1e-8)
    unit = np.where(moments.scan.deviation > 0, scan.deviation, 1.0)
    expected = inside.T @ (inside * w[:, None]) / np.outer(unit, unit)
    assert_allclose(moments.scaled(unit)[0], expected, atol=1e-7)


@pytest.mark.parametrize("kind", ["sorted", "nan", "huge"])
def test_moments_at_once_are_none_where_columns_must_be_read_first(kind: str, rng: np.random.Generator) -> None:
    store, w = DenseStore(rows_of(kind, rng)), np.full(300, 1 / 300)
    assert moments_at_once(store, w, rng.normal(size=300)) is None


def test_moments_at_once_are_those_of_few_columns(rng: np.random.Generator) -> None:
    w, y = np.full(300, 1 / 300), rng.normal(size=300)
    X = np.asfortranarray(rng.normal(size=(300, 257)))
    nearly_empty = sp.csc_array(np.where(np.arange(6000) % 1500 == 0, 1.0, 0.0).reshape(300, 20))
    for store in (DenseStore(X), DenseStore(np.ascontiguousarray(X[:, :20])), SparseStore(nearly_empty)):
        assert moments_at_once(store, w, y) is None
    for store in (DenseStore(X[:, :256]), SparseStore(sp.csc_array(X[:, :20]))):
        assert moments_at_once(store, w, y) is not None
    assert moments_at_once(DenseStore(np.asfortranarray(X[:200, :201])), w[:200], y[:200]) is None


@pytest.mark.parametrize("standardize", [True, "X", False])
@pytest.mark.parametrize("options", [{}, {"penalty": "group", "groups": [0, 0, 1, 1, *range(2, 10)]}, {"flow": "giss"}])
def test_paths_that_begin_with_all_moments_are_the_same(
    standardize: bool | str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    X = rows_of("plain", rng)
    X[:, 5] -= 1e8
    y, w = 5.0 + X[:, :3] @ [1.0, -2.0, 0.5] + rng.normal(size=300), rng.uniform(0.5, 1.0, 300)
    known = bregpath.trace_path(X, y, sample_weight=w, standardize=standardize, **options)
    monkeypatch.setattr(regression, "moments_at_once", lambda *_: None)
    plain = bregpath.trace_path(X, y, sample_weight=w, standardize=standardize, **options)
    assert known.t[0] == pytest.approx(plain.t[0], rel=1e-13)
    # Not at the very first event, where a path of inverse scale space jumps.
    times = np.geomspace(1.001 * known.t[0], min(known.t[-1], plain.t[-1]), 30)
    for t in times:
        ours, expected = known.at(t), plain.at(t)
        assert_allclose(ours.coef, expected.coef, atol=1e-9)
        assert ours.intercept == pytest.approx(expected.intercept, abs=1e-8)
