"""Every design is the matrix it stands for."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from bregpath import trace_path
from bregpath._validation import check_design
from bregpath.designs import DenseDesign, SparseDesign, StandardizedDesign, dense

N, P = 17, 9


def base_matrix() -> np.ndarray:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, P)) * rng.uniform(0.5, 3.0, P) + rng.normal(size=P)
    X[rng.uniform(size=X.shape) < 0.4] = 0.0
    X[:, 4] = 0.0
    return X.astype(np.float32).astype(np.float64)


FORMS = {
    "C64": lambda X: DenseDesign(np.ascontiguousarray(X)),
    "F64": lambda X: DenseDesign(np.asfortranarray(X)),
    "C32": lambda X: DenseDesign(np.ascontiguousarray(X, dtype=np.float32)),
    "F32": lambda X: DenseDesign(np.asfortranarray(X, dtype=np.float32)),
    "strided": lambda X: DenseDesign(np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]),
    "csc_array": lambda X: SparseDesign(sp.csc_array(X)),
    "csr_array": lambda X: SparseDesign(sp.csr_array(X)),
    "coo_array": lambda X: SparseDesign(sp.coo_array(X)),
    "csc_matrix": lambda X: SparseDesign(sp.csc_matrix(X)),
    "csr_matrix32": lambda X: SparseDesign(sp.csr_matrix(X.astype(np.float32))),
}


@pytest.fixture(params=[f"{name}{kind}" for name in FORMS for kind in ("", "-standardized")])
def pair(request: pytest.FixtureRequest):
    """A design, and the matrix that it must act as."""
    name, _, standardized = request.param.partition("-")
    X = base_matrix()
    design = FORMS[name](X)
    if standardized:
        rng = np.random.default_rng(6)
        center, scale = rng.normal(size=P), rng.uniform(0.5, 2.0, P)
        return StandardizedDesign(design, center, scale), (X - center) / scale
    return design, X


COLUMNS = [None, np.array([3]), np.array([8, 0, 4, 5]), np.array([], dtype=int)]


def part(X: np.ndarray, columns: np.ndarray | None) -> np.ndarray:
    return X if columns is None else X[:, columns]


@pytest.mark.parametrize("columns", COLUMNS, ids=str)
@pytest.mark.parametrize("q", [1, 3])
def test_products(pair, columns: np.ndarray | None, q: int, rng: np.random.Generator) -> None:
    design, X = pair
    block = part(X, columns)
    beta, residual = rng.normal(size=(block.shape[1], q)), rng.normal(size=(N, q))
    forward, backward = design.matvec(beta, columns), design.rmatvec(residual, columns)
    assert design.shape == (N, P)
    assert forward.shape == (N, q) and backward.shape == (block.shape[1], q)
    assert forward.dtype == backward.dtype == np.float64
    assert_allclose(forward, block @ beta, atol=1e-12)
    assert_allclose(backward, block.T @ residual, atol=1e-12)
    # Adjoint: <X b, r> = <b, X'r>.
    assert_allclose(np.sum(forward * residual), np.sum(beta * backward), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("columns", COLUMNS[1:], ids=str)
def test_columns_are_a_design(pair, columns: np.ndarray, rng: np.random.Generator) -> None:
    design, X = pair
    sub = design.columns(columns)
    assert sub.shape == (N, len(columns))
    beta, residual = rng.normal(size=(len(columns), 2)), rng.normal(size=(N, 2))
    assert_allclose(sub.matvec(beta), X[:, columns] @ beta, atol=1e-12)
    assert_allclose(sub.rmatvec(residual), X[:, columns].T @ residual, atol=1e-12)


def test_appended_columns(pair, rng: np.random.Generator) -> None:
    design, X = pair
    both = design.columns(np.array([2, 7])).append(design.columns(np.array([0])))
    beta = rng.normal(size=(3, 2))
    assert both.shape == (N, 3)
    assert_allclose(both.matvec(beta), X[:, [2, 7, 0]] @ beta, atol=1e-12)
    assert_allclose(both.columns(np.array([2, 0])).matvec(beta[:2]), X[:, [0, 2]] @ beta[:2], atol=1e-12)


@pytest.mark.parametrize("weights", ["equal", "unequal", "zeros"])
def test_moments(pair, weights: str, rng: np.random.Generator) -> None:
    design, X = pair
    w = np.ones(N) if weights == "equal" else rng.uniform(0.1, 2.0, N)
    if weights == "zeros":
        w[::3] = 0.0
    w /= w.sum()
    mean, deviation = design.moments(w)
    expected = w @ X
    assert_allclose(mean, expected, atol=1e-12)
    assert_allclose(deviation, np.sqrt(w @ (X - expected) ** 2), atol=1e-12)


def test_column_norms(pair) -> None:
    design, X = pair
    assert_allclose(design.column_norms(), np.linalg.norm(X, axis=0), rtol=1e-10, atol=1e-12)


def test_moments_of_a_large_mean_do_not_cancel() -> None:
    rng = np.random.default_rng(0)
    X = 1e8 + rng.normal(size=(200, 2))
    w = np.full(200, 1 / 200)
    for design in (DenseDesign(X), SparseDesign(sp.csc_array(X))):
        assert_allclose(design.moments(w)[1], X.std(axis=0), rtol=1e-6)


def test_columns_are_converted_in_runs(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    monkeypatch.setattr(dense, "CHUNK_BYTES", 8 * N * 2)  # two columns at a time
    X = base_matrix()
    design = FORMS["C32"](X)
    w = np.full(N, 1 / N)
    assert_allclose(design.matvec(np.eye(P)), X, atol=1e-12)
    assert_allclose(design.rmatvec(np.eye(N)), X.T, atol=1e-12)
    assert_allclose(design.moments(w)[0], X.mean(axis=0), atol=1e-12)
    assert_allclose(design.column_norms(), np.linalg.norm(X, axis=0), rtol=1e-12)
    assert_allclose(design.rmatvec(np.eye(N), np.array([7, 1, 2])), X.T[[7, 1, 2]], atol=1e-12)


# --- memory ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["C64", "F64", "C32", "F32"])
def test_x_is_not_copied(form: str) -> None:
    X = base_matrix()
    X = X.astype(np.float32) if form.endswith("32") else X
    X = np.asfortranarray(X) if form.startswith("F") else np.ascontiguousarray(X)
    checked = check_design(X)
    assert checked is X
    standardized = StandardizedDesign(DenseDesign(checked), X.mean(axis=0), np.ones(P))
    assert np.shares_memory(standardized.base.X, X)


@pytest.mark.parametrize("form", FORMS)
def test_x_is_not_modified(form: str) -> None:
    design = FORMS[form](base_matrix())
    stored = design.X.data if sp.issparse(design.X) else design.X
    before = stored.copy()
    stored.flags.writeable = False
    standardized = StandardizedDesign(design, np.ones(P), np.full(P, 2.0))
    for one in (design, standardized):
        one.columns(np.array([0, 1]))
        one.moments(np.full(N, 1 / N))
        one.column_norms()
        one.matvec(np.ones((P, 1)))
        one.rmatvec(np.ones((N, 1)))
    assert_array_equal(stored, before)


def test_a_large_x_is_not_copied_by_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tracing takes memory for a few columns, not for another X."""
    monkeypatch.setattr("bregpath.designs.base.WHOLE_BYTES", 0)
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


def test_sparse_stays_sparse() -> None:
    """Standardising would fill a dense array of 1.6 GB."""
    rng = np.random.default_rng(0)
    n, p = 2_000, 100_000
    X = sp.random_array((n, p), density=1e-4, random_state=rng, format="csc", dtype=np.float64)
    y = X[:, [0]].toarray().ravel() + rng.normal(size=n)
    design = SparseDesign(X)
    standardized = StandardizedDesign(design, np.zeros(p), np.ones(p))
    assert sp.issparse(standardized.columns(np.arange(10)).base.X)
    assert design.X is X or np.shares_memory(design.X.data, X.data)
    tracemalloc.start()
    path = trace_path(X, y, t_ratio=1.2, n_times=3)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200e6
    assert path.n_features == p
