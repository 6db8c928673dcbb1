"""The oracle's estimator, dynamics and curvature, against what is known in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from bregpath.datasets import Simulation, make_ising_grid, make_linear, make_logistic, make_poisson
from bregpath.theory import diagnose
from bregpath.theory.curvature import Restriction
from bregpath.theory.truth import Truth


def orthogonal(n: int = 64, p: int = 8, s: int = 3, sigma: float = 0.1, seed: int = 0) -> Simulation:
    """Columns that are orthogonal to each other and to the ones, with squares that average to 1."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(np.column_stack([np.ones(n), rng.standard_normal((n, p))]))[0][:, 1:]
    X = np.asfortranarray(np.sqrt(n) * Q)
    coef = np.zeros(p)
    coef[:s] = [2.0, -1.5, 1.0]
    return Simulation(X, 0.5 + X @ coef + sigma * rng.standard_normal(n), 0.5, coef)


@pytest.mark.parametrize("seed", range(3))
def test_orthogonal_columns(seed):
    simulation = orthogonal(seed=seed)
    X, y, coef = simulation.X, simulation.y, simulation.coef
    d = diagnose(simulation, kappa=20.0)
    g = d.guarantee
    assert_allclose([g.irr, g.irr_bound], 0.0, atol=1e-10)
    assert g.eta == 1.0
    assert_allclose([g.convexity, g.smoothness], 1.0, rtol=1e-10)
    assert_allclose(d.oracle.coef[:3], X[:, :3].T @ y / len(y), rtol=1e-10)
    assert_allclose(d.oracle.intercept, y.mean(), rtol=1e-10)
    assert np.all(d.oracle.coef[3:] == 0)
    noise = y - 0.5 - X @ coef
    largest = max(np.abs(X.T @ noise).max(), abs(noise.sum())) / len(y)
    assert_allclose(d.tbar, 1 / (2 * largest), rtol=1e-8)  # eta = 1, C = 0
    assert_allclose(d.error_bound, 10 * np.sqrt(3) / d.tbar, rtol=1e-8)
    # Each coordinate for itself: z rises with slope |b|, and beta relaxes to b at the rate kappa from 1 / |b| on.
    b, t = d.oracle.coef[:3], d.dynamics.t
    exact = b * (1 - np.exp(-20.0 * np.maximum(t[:, None] - 1 / np.abs(b), 0.0)))
    assert_allclose(d.dynamics.theta[:, 1:], exact, atol=1e-3)
    assert_allclose(d.first_false_positive, len(y) / np.abs(X[:, 3:].T @ noise).max(), rtol=1e-6)


@pytest.mark.parametrize("step", ["adaptive", 0.002])
def test_linear_irrepresentable_value_is_the_classical_one(step):
    simulation = make_linear(300, 12, 3, r=0.5, seed=0)
    d = diagnose(simulation, kappa=20.0, step=step)
    inside = np.column_stack([np.ones(300), simulation.X[:, :3]])
    classical = simulation.X[:, 3:].T @ inside @ np.linalg.inv(inside.T @ inside)
    assert_allclose(d.guarantee.irr_bound, np.abs(classical).sum(axis=1).max(), rtol=1e-10)
    moved = (d.dynamics.dual - d.dynamics.dual[0]) @ classical.T
    end = np.concatenate([[d.oracle.intercept - simulation.y.mean()], d.oracle.coef[:3]]) / 20.0
    end[1:] += np.sign(d.oracle.coef[:3])
    pushed = np.abs(np.vstack([moved, (end - d.dynamics.dual[0]) @ classical.T])).max(axis=0)
    assert_allclose(d.guarantee.irr, pushed.max(), rtol=2e-3)  # looked at in stages
    assert d.critical == 3 + pushed.argmax()
    low, high = np.linalg.eigvalsh(inside.T @ inside / 300)[[0, -1]]
    assert_allclose([d.guarantee.convexity, d.guarantee.smoothness], [low, high], rtol=1e-8)


@pytest.mark.parametrize(("make", "loss"), [(make_logistic, "logistic"), (make_poisson, "poisson")])
def test_oracle_estimator_minimises_the_loss_on_the_support(make, loss):
    simulation = make(500, 10, 3, seed=1)
    d = diagnose(simulation)

    def value(theta):
        eta = theta[0] + simulation.X[:, :3] @ theta[1:]
        if loss == "logistic":
            return np.mean(np.logaddexp(0.0, -simulation.y * eta))
        return np.mean(np.exp(eta) - simulation.y * eta)

    best = minimize(value, np.zeros(4), tol=1e-12).x
    assert_allclose([d.oracle.intercept, *d.oracle.coef[:3]], best, atol=1e-4)
    assert_allclose(d.dynamics.theta[-1], [d.oracle.intercept, *d.oracle.coef[:3]], atol=1e-3)


@pytest.mark.parametrize(
    "simulation",
    [make_logistic(300, 8, 3, seed=2), make_poisson(300, 8, 3, seed=2), make_ising_grid(3, T=3.0, n=300, seed=2)],
    ids=["logistic", "poisson", "ising"],
)
def test_the_identity_on_which_the_proof_rests(simulation):
    # irr (grad_inside(theta) - grad_inside(theta*)) = grad_outside(theta) - grad_outside(theta*)
    truth = Truth.of(simulation, None, 10.0)
    restriction = Restriction(truth.problem, truth.support)
    theta = truth.theta + np.random.default_rng(0).uniform(-0.5, 0.5, len(truth.theta))
    irr = restriction.regressions(restriction.mean_weights(truth.theta, theta))
    inside = restriction.gradient(theta) - restriction.gradient(truth.theta)
    outside = restriction.gradient_outside(theta) - restriction.gradient_outside(truth.theta)
    assert np.abs(outside).max() > 1e-3
    assert_allclose(irr @ inside, outside, atol=1e-8)


def test_the_path_follows_the_oracle_until_the_first_false_positive():
    simulation = make_logistic(800, 12, 3, r=0.0, seed=3)
    d = diagnose(simulation, kappa=20.0, step=0.05)
    before = d.dynamics.t[(d.dynamics.t < d.first_false_positive) & (d.dynamics.t > 0)]
    assert len(before) > 50
    _, columns, values = d.path.read(before)
    seen = np.zeros((len(before), 12))
    seen[:, columns] = values[:, :, 0]
    assert_allclose(seen[:, :3], d.dynamics.theta[1 : 1 + len(before), 1:], atol=1e-10)
