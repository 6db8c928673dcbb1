"""Every store is the matrix it stands for."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from bregpath import trace_path
from bregpath._validation import check_design
from bregpath.stores import DenseBlock, DenseStore, SparseStore, StandardizedStore, as_store, dense
from tests.helpers import assert_same_path, response

N, P = 17, 9


def base_matrix() -> np.ndarray:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, P)) * rng.uniform(0.5, 3.0, P) + rng.normal(size=P)
    X[rng.uniform(size=X.shape) < 0.4] = 0.0
    X[:, 4] = 0.0
    return X.astype(np.float32).astype(np.float64)


FORMS = {
    "C64": lambda X: DenseStore(np.ascontiguousarray(X)),
    "F64": lambda X: DenseStore(np.asfortranarray(X)),
    "C32": lambda X: DenseStore(np.ascontiguousarray(X, dtype=np.float32)),
    "F32": lambda X: DenseStore(np.asfortranarray(X, dtype=np.float32)),
    "strided": lambda X: DenseStore(np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]),
    "csc_array": lambda X: SparseStore(sp.csc_array(X)),
    "csr_array": lambda X: SparseStore(sp.csr_array(X)),
    "coo_array": lambda X: SparseStore(sp.coo_array(X)),
    "csc_matrix": lambda X: SparseStore(sp.csc_matrix(X)),
    "csr_matrix32": lambda X: SparseStore(sp.csr_matrix(X.astype(np.float32))),
}


@pytest.fixture(params=[f"{name}{kind}" for name in FORMS for kind in ("", "-standardized")])
def pair(request: pytest.FixtureRequest):
    """A store, and the matrix that it must act as."""
    name, _, standardized = request.param.partition("-")
    X = base_matrix()
    store = FORMS[name](X)
    if standardized:
        rng = np.random.default_rng(6)
        center, scale = rng.normal(size=P), rng.uniform(0.5, 2.0, P)
        return StandardizedStore(store, center, scale), (X - center) / scale
    return store, X


COLUMNS = [None, np.array([3]), np.array([8, 0, 4, 5]), np.array([], dtype=int)]


def part(X: np.ndarray, columns: np.ndarray | None) -> np.ndarray:
    return X if columns is None else X[:, columns]


@pytest.mark.parametrize("columns", COLUMNS, ids=str)
@pytest.mark.parametrize("q", [1, 3])
def test_products(pair, columns: np.ndarray | None, q: int, rng: np.random.Generator) -> None:
    store, X = pair
    block = part(X, columns)
    beta, residual = rng.normal(size=(block.shape[1], q)), rng.normal(size=(N, q))
    fetched = store.fetch(np.arange(P) if columns is None else columns)
    forward, backward = fetched.matvec(beta), store.products(residual[None], columns)[0]
    assert store.shape == (N, P)
    assert forward.shape == (N, q) and backward.shape == (block.shape[1], q)
    assert forward.dtype == backward.dtype == np.float64
    assert_allclose(forward, block @ beta, atol=1e-12)
    assert_allclose(backward, block.T @ residual, atol=1e-12)
    # Adjoint: <X b, r> = <b, X'r>.
    assert_allclose(np.sum(forward * residual), np.sum(beta * backward), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("columns", COLUMNS[1:], ids=str)
def test_a_block_is_its_columns(pair, columns: np.ndarray, rng: np.random.Generator) -> None:
    store, X = pair
    sub = store.fetch(columns)
    assert sub.shape == (N, len(columns))
    beta, residual = rng.normal(size=(len(columns), 2)), rng.normal(size=(N, 2))
    assert_allclose(sub.matvec(beta), X[:, columns] @ beta, atol=1e-12)
    assert_allclose(sub.rmatvec(residual), X[:, columns].T @ residual, atol=1e-12)
    several = rng.normal(size=(4, N, 2))
    expected = np.einsum("ij,bic->bjc", X[:, columns], several)
    assert_allclose(sub.rmatvec_many(several), expected, atol=1e-12)
    assert_allclose(store.products(several, columns), expected, atol=1e-12)


def test_appended_columns(pair, rng: np.random.Generator) -> None:
    store, X = pair
    both = store.fetch(np.array([2, 7])).append(store.fetch(np.array([0])))
    beta = rng.normal(size=(3, 2))
    assert both.shape == (N, 3)
    assert_allclose(both.matvec(beta), X[:, [2, 7, 0]] @ beta, atol=1e-12)
    assert_allclose(both.columns(np.array([2, 0])).matvec(beta[:2]), X[:, [0, 2]] @ beta[:2], atol=1e-12)


@pytest.mark.parametrize("weights", ["equal", "unequal", "zeros"])
def test_scan(pair, weights: str, rng: np.random.Generator) -> None:
    store, X = pair
    w = np.ones(N) if weights == "equal" else rng.uniform(0.1, 2.0, N)
    if weights == "zeros":
        w[::3] = 0.0
    w /= w.sum()
    scan = store.scan(w)
    mean = w @ X
    assert_allclose(scan.mean, mean, atol=1e-12)
    assert_allclose(scan.deviation, np.sqrt(w @ (X - mean) ** 2), atol=1e-12)
    assert_allclose(scan.size, np.sqrt(w @ X**2), atol=1e-12)
    groups = np.arange(P) // 2
    bounds = [np.linalg.norm(np.sqrt(w)[:, None] * X[:, groups == g], 2) for g in groups]
    assert np.all(scan.group_size(groups) >= np.array(bounds) * (1 - 1e-12))


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 3], ids=["counts", "weight 0"])
def test_a_scan_finds_what_is_not_finite(name: str, value: float, row: int) -> None:
    X, w = base_matrix(), np.full(N, 1 / (N - 1))
    X[row, 2], w[3] = value, 0.0
    assert np.flatnonzero(~np.isfinite(FORMS[name](X).scan(w).mean)).tolist() == [2]


def test_scan_of_a_large_mean_do_not_cancel() -> None:
    rng = np.random.default_rng(0)
    X = 1e8 + rng.normal(size=(200, 2))
    w = np.full(200, 1 / 200)
    for store in (DenseStore(X), SparseStore(sp.csc_array(X))):
        assert_allclose(store.scan(w).deviation, X.std(axis=0), rtol=1e-6)


def test_columns_are_converted_in_runs(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    monkeypatch.setattr(dense, "CHUNK_BYTES", 8 * N * 2)
    monkeypatch.setattr(dense, "MIN_COLUMNS", 2)  # two columns at a time
    X = base_matrix()
    store = FORMS["C32"](X)
    w = np.full(N, 1 / N)
    assert_allclose(store.products(np.eye(N)[None])[0], X.T, atol=1e-12)
    assert_allclose(store.scan(w).mean, X.mean(axis=0), atol=1e-12)
    assert_allclose(store.scan(w).deviation, X.std(axis=0), rtol=1e-12)
    assert_allclose(store.products(np.eye(N)[None], np.array([7, 1, 2]))[0], X.T[[7, 1, 2]], atol=1e-12)


def test_a_wrapper_keeps_what_its_base_says() -> None:
    class Own(DenseStore):
        is_small, has_cheap_columns, has_intercepts, has_cheap_curvature = False, False, False, True

        def n_alpha(self, n_outputs: int) -> int:
            return 3

        def spread(self, alpha: np.ndarray, eta: np.ndarray) -> np.ndarray:
            return eta + alpha.sum()

        def collect(self, residual: np.ndarray) -> np.ndarray:
            return np.full(3, residual.sum())

    store = StandardizedStore(Own(base_matrix()), np.ones(P), np.ones(P))
    assert not (store.is_small or store.has_cheap_columns or store.has_intercepts) and store.has_cheap_curvature
    assert store.n_alpha(1) == 3
    assert_array_equal(store.spread(np.ones(3), np.zeros((2, 1))), np.full((2, 1), 3.0))
    assert_array_equal(store.collect(np.ones((2, 1))), np.full(3, 2.0))


def test_blocks_that_share_room_do_not_overwrite_each_other() -> None:
    """Two paths may go on from the same block."""
    X = base_matrix()
    store = DenseStore(X)
    first = store.fetch(np.array([0])).append(store.fetch(np.array([1])))
    one, two = first.append(store.fetch(np.array([2]))), first.append(store.fetch(np.array([3])))
    assert_array_equal(one.X, X[:, [0, 1, 2]])
    assert_array_equal(two.X, X[:, [0, 1, 3]])
    assert np.shares_memory(first.X, one.X)


def test_a_block_is_known_to_the_core_by_its_very_class() -> None:
    class Own(DenseBlock):
        pass

    X = base_matrix()
    assert DenseBlock(X).kernel().name == "dense"
    assert Own(X).kernel() is None
    assert SparseStore(sp.csc_array(X)).fetch(np.arange(2)).kernel().name == "csc"


# --- memory ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["C64", "F64", "C32", "F32"])
def test_x_is_not_copied(form: str) -> None:
    X = base_matrix()
    X = X.astype(np.float32) if form.endswith("32") else X
    X = np.asfortranarray(X) if form.startswith("F") else np.ascontiguousarray(X)
    assert check_design(X) is X
    assert as_store(X).X is X


@pytest.mark.parametrize("form", FORMS)
def test_x_is_not_modified(form: str) -> None:
    store = FORMS[form](base_matrix())
    stored = store.X.data if sp.issparse(store.X) else store.X
    before = stored.copy()
    stored.flags.writeable = False
    standardized = StandardizedStore(store, np.ones(P), np.full(P, 2.0))
    for one in (store, standardized):
        one.fetch(np.arange(P)).matvec(np.ones((P, 1)))
        one.scan(np.full(N, 1 / N))
        one.products(np.ones((1, N, 1)))
    assert_array_equal(stored, before)


def test_a_large_x_is_not_copied_by_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tracing takes memory for a few columns, not for another X."""
    monkeypatch.setattr("bregpath.stores.base.WHOLE_BYTES", 0)
    monkeypatch.setattr(dense, "CHUNK_BYTES", 2**18)
    rng = np.random.default_rng(0)
    for dtype in (np.float64, np.float32):
        X = np.asfortranarray(rng.normal(size=(200, 20_000)), dtype=dtype)
        y = X[:, 0] * 2.0 - X[:, 1] + rng.normal(size=200)
        trace_path(X[:, :50], y, t_ratio=2.0, n_times=3)  # imports and caches
        tracemalloc.start()
        trace_path(X, y, t_ratio=1.5, n_times=3)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 0.5 * X.nbytes


def mostly_zero(n: int = 1_000, p: int = 40, share: float = 0.1) -> np.ndarray:
    rng = np.random.default_rng(7)
    return (rng.uniform(size=(n, p)) < share) * rng.choice([1.0, 2.0], p)


@pytest.mark.parametrize("form", ["C64", "F64", "C32", "strided"])
def test_of_a_dense_x_that_is_mostly_zero_the_rest_is_kept(form: str) -> None:
    X = FORMS[form](mostly_zero()).X
    store = as_store(X, passes_over_rows=True)
    assert isinstance(store, SparseStore)
    assert_array_equal(store.X.toarray(), X)
    assert isinstance(as_store(X), DenseStore)


def test_a_dense_x_stays_dense_where_it_should(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    def kind(X: np.ndarray) -> type:
        return type(as_store(X, passes_over_rows=True))

    X = mostly_zero()
    assert kind(X) is SparseStore
    assert kind(mostly_zero(share=0.25)) is DenseStore
    assert kind(X[:300]) is DenseStore  # few rows
    assert type(as_store(DenseStore(X), passes_over_rows=True)) is DenseStore  # as somebody wants it
    np.save(tmp_path / "X.npy", X)
    assert kind(np.load(tmp_path / "X.npy", mmap_mode="r")) is DenseStore
    monkeypatch.setattr("bregpath.stores.base.WHOLE_BYTES", 0)  # then a fifth of its size is what it may take
    assert kind(mostly_zero(share=0.18)) is DenseStore
    assert kind(mostly_zero(share=0.08)) is SparseStore


@pytest.mark.parametrize("loss", ["gaussian", "logistic", "huber"])
def test_zeros_make_no_other_path(loss: str) -> None:
    X = mostly_zero()
    y = response(loss, X @ np.random.default_rng(8).normal(size=X.shape[1]), np.random.default_rng(9))
    options = dict(loss=loss, t_ratio=10.0, n_times=10)
    assert_same_path(trace_path(X, y, **options), trace_path(DenseStore(X), y, **options))
    X[5, 3] = np.nan
    with pytest.raises(ValueError, match="NaN or infinity in 1 column"):
        trace_path(X, y, **options)


def test_few_one_hot_columns_work_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows they have: those that are alike are one to the core."""
    rng = np.random.default_rng(0)
    one_hot = np.hstack([np.equal.outer(rng.integers(10, size=1_000), np.arange(10)) for _ in range(4)]).astype(float)
    one_hot[:50, 0] = 0.0  # some levels are missing
    monkeypatch.setattr("bregpath.stores.base.WHOLE_BYTES", 12 * 5_000)
    assert SparseStore(sp.csc_array(one_hot)).is_small
    assert not SparseStore(sp.csc_array(one_hot[:300])).is_small  # few rows for so many columns
    assert not SparseStore(sp.csc_array(mostly_zero())).is_small  # as many numbers, but anywhere
    assert not SparseStore(sp.csc_array(np.tile(one_hot, (2, 1)))).is_small  # too much is stored
    assert not DenseStore(one_hot).is_small


def test_sparse_stays_sparse() -> None:
    """Standardising would fill a dense array of 1.6 GB."""
    rng = np.random.default_rng(0)
    n, p = 2_000, 100_000
    X = sp.random_array((n, p), density=1e-4, random_state=rng, format="csc", dtype=np.float64)
    y = X[:, [0]].toarray().ravel() + rng.normal(size=n)
    store = SparseStore(X)
    standardized = StandardizedStore(store, np.zeros(p), np.ones(p))
    assert sp.issparse(standardized.fetch(np.arange(10)).X)
    assert store.X is X or np.shares_memory(store.X.data, X.data)
    tracemalloc.start()
    path = trace_path(X, y, t_ratio=1.2, n_times=3)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200e6
    assert path.n_features == p
