"""A penalty defined here alone, run through `trace_path`."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import bregpath
from bregpath._typing import Array
from bregpath.penalties import AbstractPenalty, L1Penalty


# [elastic]
class ElasticPenalty(AbstractPenalty):
    """``J(b) = |b| + b^2 / 2``, whose mirror map is half of soft thresholding."""

    name = "elastic"

    def shrink(self, z: Array) -> Array:
        return 0.5 * np.sign(z) * np.maximum(np.abs(self.allowed(z)) - self.weights, 0.0)

    def value(self, beta: Array) -> float:
        return float(np.sum(self.weights * np.abs(beta)) + 0.5 * np.sum(beta**2))

# [/elastic]


class SignedPenalty(L1Penalty):
    """Only its mirror map differs from that of its parent, which the compiled core knows."""

    def shrink(self, z: Array) -> Array:
        return 0.5 * super().shrink(z)


def simulated() -> bregpath.datasets.Simulation:
    return bregpath.datasets.make_linear(60, 8, 3, seed=4)


@pytest.mark.parametrize("penalty", [ElasticPenalty, SignedPenalty])
def test_half_the_mirror_map_is_half_of_kappa(penalty: type[AbstractPenalty]) -> None:
    data = simulated()
    ours = bregpath.trace_path(data.X, data.y, penalty=penalty, fit_intercept=False, tol=1e-6, kappa=8.0)
    l1 = bregpath.trace_path(data.X, data.y, fit_intercept=False, tol=1e-6, kappa=4.0)
    assert_allclose(ours.coef, l1.coef, rtol=1e-4, atol=1e-5)
    assert_allclose(ours.entry_times, l1.entry_times, rtol=1e-5)


def test_the_iteration_written_out() -> None:
    data, kappa, step = simulated(), 5.0, 0.002
    X, y = data.X - data.X.mean(axis=0), data.y - data.y.mean()
    path = bregpath.trace_path(
        X, y, penalty=ElasticPenalty, kappa=kappa, step=step, standardize=False, fit_intercept=False, t_ratio=20
    )
    t, z, beta = path.t[0], path.t[0] * (1 - 1e-14) * X.T @ y / len(y), np.zeros(8)
    while t < path.t[-1]:
        before = beta
        z = z - step * X.T @ (X @ beta - y) / len(y)
        beta, t = 0.5 * kappa * np.sign(z) * np.maximum(np.abs(z) - 1, 0), t + step
    assert np.all(np.abs(path.coef[-1] - beta) <= np.abs(beta - before) + 1e-9)


def test_an_object_brings_its_own_wishes() -> None:
    data = simulated()
    infinite = np.full((8, 1), np.inf)
    mine = ElasticPenalty(np.linspace(1, 2, 8)[:, None], -infinite, infinite)
    path = bregpath.trace_path(data.X, data.y, penalty=mine)
    by_class = bregpath.trace_path(data.X, data.y, penalty=ElasticPenalty, penalty_factor=np.linspace(1, 2, 8))
    assert_allclose(path.coef, by_class.coef, rtol=0, atol=0)
    with pytest.raises(ValueError, match="`lower` belongs to the penalty object"):
        bregpath.trace_path(data.X, data.y, penalty=mine, lower=0)
    with pytest.raises(ValueError, match="weights of shape"):
        bregpath.trace_path(data.X[:, :5], data.y, penalty=mine)
    with pytest.raises(ValueError, match="can be saved"):
        path.save("never.npz")
    with pytest.raises(ValueError, match="AbstractPenalty"):
        bregpath.trace_path(data.X, data.y, penalty=object())
