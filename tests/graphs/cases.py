"""Small tables with known graphs, and one estimator of every kind."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.testing import assert_allclose

import bregpath
from bregpath.graphs import GaussianModel, IsingModel, MixedModel, PottsModel, enumerate_states
from bregpath.graphs.path import GraphPath

N_STATES = (3, 2, 4, 3)
KINDS = ("gaussian", "categorical", "count", "categorical", "gaussian")
N_ROWS = 160  # a number with many divisors: correlations and entry times may tie


def ring(p: int) -> np.ndarray:
    """Nodes joined in a ring."""
    adjacency = np.zeros((p, p), dtype=bool)
    j = np.arange(p)
    adjacency[j, (j + 1) % p] = adjacency[(j + 1) % p, j] = True
    return adjacency


def ising_model(p: int = 6, strength: float = 0.9) -> IsingModel:
    """A ring of couplings of either sign, with fields."""
    signs = np.where(np.add.outer(np.arange(p), np.arange(p)) % 3 == 0, -1.0, 1.0)
    return IsingModel(np.linspace(-0.5, 0.4, p), strength * signs * ring(p))


def potts_model(counts: tuple[int, ...] = N_STATES, strength: float = 1.0) -> PottsModel:
    """A chain: equal states attract."""
    starts = np.concatenate([[0], np.cumsum(counts)])
    couplings = np.zeros((starts[-1], starts[-1]))
    for j in range(len(counts) - 1):
        for state in range(min(counts[j], counts[j + 1])):
            couplings[starts[j] + state, starts[j + 1] + state] = strength * (1 + 0.2 * state)
    return PottsModel(np.linspace(-0.3, 0.3, starts[-1]), couplings + couplings.T, counts)


def gaussian_model(p: int = 5, strength: float = 0.4) -> GaussianModel:
    """A chain of precisions, with unequal scales and means."""
    scale = np.linspace(0.5, 3.0, p)
    chain = np.eye(p) + strength * (np.eye(p, k=1) + np.eye(p, k=-1))
    return GaussianModel(chain / np.outer(scale, scale), mean=np.linspace(-2.0, 2.0, p))


@cache
def _ising_rows(n: int, p: int, seed: int, strength: float) -> np.ndarray:
    return enumerate_states(ising_model(p, strength)).sample(n, seed=seed)


def ising_data(n: int = N_ROWS, p: int = 6, seed: int = 0, strength: float = 0.9) -> np.ndarray:
    """Spins; exact draws, so that they are the same with and without the compiled core."""
    return _ising_rows(n, p, seed, strength).copy()


def potts_data(n: int = N_ROWS, counts: tuple[int, ...] = N_STATES, seed: int = 0, strength: float = 1.0) -> np.ndarray:
    """States 0, 1, ..."""
    return enumerate_states(potts_model(counts, strength)).sample(n, seed=seed)


def gaussian_data(n: int = 100, p: int = 5, seed: int = 0, strength: float = 0.4) -> np.ndarray:
    return gaussian_model(p, strength).sample(n, seed=seed)


def mixed_model() -> MixedModel:
    """A chain: a number, three labels, a count, two labels, a number."""
    couplings = np.zeros((8, 8))
    couplings[0, 1:4] = 0.7, 0.0, -0.7
    couplings[1:4, 4] = -0.3, 0.3, 0.0
    couplings[4, 5:7] = -0.2, 0.2
    couplings[5:7, 7] = -0.8, 0.8
    couplings += couplings.T - np.diag([1.0, 0, 0, 0, 0, 0, 0, 0.5])
    return MixedModel([0.2, 0, 0.1, 0, 0.8, 4.8, -4.6, 3.0], couplings, KINDS, [1, 3, 1, 2, 1], [0, 0, 20, 0, 0])


@cache
def _mixed_rows(n: int, seed: int) -> np.ndarray:
    return mixed_model().sample(n, seed=seed, burn_in=100)


def mixed_data(n: int = N_ROWS, seed: int = 0) -> np.ndarray:
    """Numbers, codes of labels, and counts."""
    return _mixed_rows(n, seed).copy()


CASES: dict[str, tuple[type, dict[str, Any]]] = {
    "ising-composite": (bregpath.IsingGraph, {"loss": "composite"}),
    "ising-mpf": (bregpath.IsingGraph, {"loss": "mpf"}),
    "ising-nodewise-and": (bregpath.IsingGraph, {"loss": "nodewise"}),
    "ising-nodewise-or": (bregpath.IsingGraph, {"loss": "nodewise", "rule": "or"}),
    "potts": (bregpath.PottsGraph, {}),
    "potts-sqrt": (bregpath.PottsGraph, {"penalty": "group-sqrt"}),
    "potts-l1": (bregpath.PottsGraph, {"penalty": "l1"}),
    "potts-diagonal": (bregpath.PottsGraph, {"couplings": "diagonal"}),
    "potts-reduced": (bregpath.PottsGraph, {"parameters": "reduced"}),
    "gaussian-likelihood": (bregpath.GaussianGraph, {"loss": "likelihood"}),
    "gaussian-composite": (bregpath.GaussianGraph, {"loss": "composite"}),
    "mixed": (bregpath.MixedGraph, {"kinds": KINDS}),
}
DISCRETE = [name for name in CASES if name.startswith(("ising", "potts"))]
ONE_OF_EACH = ["ising-composite", "potts", "gaussian-likelihood", "mixed"]


def data_of(case: str, n: int = N_ROWS, seed: int = 0) -> np.ndarray:
    """A table for a case."""
    kinds = {"ising": ising_data, "potts": potts_data, "gaussian": gaussian_data, "mixed": mixed_data}
    make = kinds[case.partition("-")[0]]
    return make(n, seed=seed)


def graph_of(case: str, **options: Any) -> Any:
    """The estimator of a case, with fewer times than by default."""
    kind, own = CASES[case]
    return kind(**{"n_times": 20, "t_ratio": 30.0, **own, **options})


def kinds_at(case: str, nodes: Any) -> dict[str, Any]:
    """What the estimator of a case must know if it is given some columns of its table."""
    return {"kinds": [KINDS[j] for j in nodes]} if case == "mixed" else {}


def path_of(case: str, X: Any = None, sample_weight: Any = None, **options: Any) -> GraphPath:
    """Its path."""
    X = data_of(case) if X is None else X
    return graph_of(case, **options).fit(X, sample_weight=sample_weight).path_


def assert_same_graphs(a: GraphPath, b: GraphPath, rtol: float = 1e-8) -> None:
    """Equal times, weights, unpenalised parameters, deviances and entry times."""
    assert a.result is b.result
    assert_allclose(a.t, b.t, rtol=1e-9)
    for one, two in ((a.all_weights(), b.all_weights()), (a.coef, b.coef)):
        assert np.abs(two).max() > 0
        assert_allclose(one, two, rtol=0, atol=rtol * np.abs(two).max())
    assert_allclose(a.intercept, b.intercept, rtol=rtol, atol=rtol * max(np.abs(b.intercept).max(), 1e-3))
    assert_allclose(a.deviance, b.deviance, rtol=1e-7, atol=1e-9)
    assert np.array_equal(np.isfinite(a.entry_times), np.isfinite(b.entry_times))
    assert_allclose(a.entry_times, b.entry_times, rtol=1e-7)
    assert_allclose(a.exit_times, b.exit_times, rtol=1e-7)
