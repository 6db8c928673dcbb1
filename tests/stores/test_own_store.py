"""A store of one's own, defined here alone, gives the path of the same columns in memory and is asked for little."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bregpath import cross_validate, trace_path
from bregpath.stores import AbstractBlock, AbstractStore, DenseBlock, Scan, scan_columns
from tests.helpers import assert_same_path

# [sharded]


class ShardedStore(AbstractStore):
    """Columns in several shards, which might be files or machines; it counts how often they are touched."""

    is_small = has_cheap_columns = False  # whatever its size: columns are far away

    def __init__(self, shards: list[np.ndarray]) -> None:
        self.shards = shards
        self.ends = np.cumsum([shard.shape[1] for shard in shards])
        self.shape = shards[0].shape[0], int(self.ends[-1])
        self.passes, self.calls, self.touched = 0, 0, np.zeros(self.shape[1], dtype=int)

    def scan(self, w: np.ndarray) -> Scan:
        self.passes += 1
        return Scan.join([scan_columns(shard, w) for shard in self.shards])

    def products(self, vectors: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        if columns is not None:
            return self.fetch(columns).rmatvec_many(vectors)
        self.passes += 1
        return np.concatenate([shard.T @ vectors for shard in self.shards], axis=1)

    def fetch(self, columns: np.ndarray) -> DenseBlock:
        self.calls += 1
        self.touched[columns] += 1
        owner = np.searchsorted(self.ends, columns, side="right")
        X = np.empty((self.shape[0], len(columns)), order="F")
        for k, shard in enumerate(self.shards):
            X[:, owner == k] = shard[:, columns[owner == k] - self.ends[k] + shard.shape[1]]
        return DenseBlock(X, is_own=True)


# [/sharded]


def data(n: int = 200, p: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, p)) * rng.uniform(0.5, 2.0, p) + rng.normal(size=p)
    eta = (X[:, :5] - X[:, :5].mean(axis=0)) @ [2.0, -1.5, 1.0, 1.0, -0.5]
    return X, (rng.uniform(size=n) < 1 / (1 + np.exp(-eta))).astype(float)


def sharded(X: np.ndarray) -> ShardedStore:
    return ShardedStore(np.split(X, [400, 1000, 1001], axis=1))


@pytest.mark.parametrize("reads", ["passes", "columns"])
@pytest.mark.parametrize("penalty", ["l1", "group"])
def test_a_sharded_path_is_that_of_the_matrix(reads: str, penalty: str) -> None:
    X, y = data()
    store = sharded(X)
    store.has_cheap_columns = reads == "columns"
    options: dict = {"loss": "logistic", "penalty": penalty, "t_ratio": 4.0, "n_times": 20}
    options["groups"] = np.arange(X.shape[1]) // 3 if penalty == "group" else None
    path, whole = trace_path(store, y, **options), trace_path(X, y, screening=False, **options)
    assert_same_path(path, whole)
    assert_allclose(path.coef, whole.coef, rtol=0, atol=1e-11 * np.abs(whole.coef).max())
    assert path.df[-1] > 5 and path.stats.steps == whole.stats.steps


def test_setup_takes_two_passes() -> None:
    X, y = data()
    for standardize in (True, "X", False):
        store = sharded(X)
        path = trace_path(store, y, loss="logistic", t=[1e-6], standardize=standardize)
        assert path.stats.steps == 0
        assert store.passes == 2
        assert store.touched.sum() < 20  # the first columns to enter


def test_few_columns_are_touched() -> None:
    X, y = data()
    store = sharded(X)
    path = trace_path(store, y, loss="logistic")
    assert path.df.max() > 50
    assert store.calls + store.passes < 0.5 * path.stats.steps
    assert store.touched.sum() == path.stats.working_columns < 0.05 * X.shape[1]
    assert store.touched.max() == 1
    # Columns that are cheap to read are looked at, and the whole is passed over more rarely.
    other = sharded(X)
    other.has_cheap_columns = True
    assert trace_path(other, y, loss="logistic").stats.steps == path.stats.steps
    assert other.passes < store.passes


def test_cross_validation_takes_it_too() -> None:
    X, y = data(n=60, p=1200)
    found, expected = (cross_validate(x, y, loss="logistic", cv=3) for x in (sharded(X), X))
    assert found.t_min == pytest.approx(expected.t_min, rel=1e-9)
    assert_allclose(found.mean, expected.mean, rtol=1e-9)


@pytest.mark.parametrize("loss", ["gaussian", "poisson", "multinomial"])
def test_other_losses(loss: str) -> None:
    X, y = data(n=60, p=1200)
    y = np.digitize(X[:, 0], [-1, 1]) if loss == "multinomial" else y + (X[:, 1] if loss == "gaussian" else 0)
    path = trace_path(sharded(X), y, loss=loss, t_ratio=3.0, n_times=5)
    assert_same_path(path, trace_path(X, y, loss=loss, t_ratio=3.0, n_times=5, screening=False))


def test_what_cannot_be_standardised_says_so() -> None:
    class OwnBlock(DenseBlock):
        standardized = AbstractBlock.standardized

    class OwnStore(ShardedStore):
        def fetch(self, columns: np.ndarray) -> DenseBlock:
            return OwnBlock(super().fetch(columns).X)

    X, y = data(n=50, p=1200)
    store = OwnStore(np.split(X, 4, axis=1))
    with pytest.raises(TypeError, match="OwnBlock cannot be standardised; use standardize=False"):
        trace_path(store, y, loss="logistic")
    path = trace_path(store, y, loss="logistic", standardize=False, t_ratio=2.0, n_times=3)  # by the NumPy kernels
    assert_same_path(path, trace_path(X, y, loss="logistic", standardize=False, t_ratio=2.0, n_times=3))


def test_bad_data_and_missing_response() -> None:
    X, y = data(n=50, p=1200)
    with pytest.raises(ValueError, match="`y` is missing"):
        trace_path(sharded(X))
    with pytest.raises(ValueError, match="`X` and `y` differ in length: 50 rows and 49 responses"):
        trace_path(sharded(X), y[1:])
    X[3, 1001] = np.nan
    with pytest.raises(ValueError, match=r"`X` contains NaN or infinity in 1 column\(s\) \(first: column 1001\)"):
        trace_path(sharded(X), y)


def test_a_loss_that_ignores_weights_is_screened_soundly() -> None:
    """Rows of weight 0 still pull: bounds that leave them out would miss entries."""

    class Plain:
        def value(self, eta, y, w):
            return float(np.mean((eta - y) ** 2) / 2)

        def gradient(self, eta, y, w):
            return (eta - y) / len(y)

    X, y = data(n=60, p=1200)
    w = np.arange(60.0) % 2
    store = sharded(X)
    store.has_cheap_columns = True
    options = {"loss": Plain(), "sample_weight": w, "t_ratio": 3.0, "n_times": 5}
    assert_same_path(trace_path(store, y, **options), trace_path(X, y, screening=False, **options))
