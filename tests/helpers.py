"""Small data sets, references and comparisons that several tests share."""

from __future__ import annotations

import json
from pathlib import Path as File
from typing import Any

import numpy as np
from numpy.testing import assert_allclose

import bregpath
from bregpath.flow.glbi import GLBI
from bregpath.losses import LOSSES, AbstractLoss, as_loss
from bregpath.penalties import PENALTIES
from bregpath.problem import Problem

GOLDEN = File(__file__).parent / "golden"
ALL_LOSSES = sorted(LOSSES)
P = 10  # columns of `make_data`
GROUPS = np.array([0, 0, 1, 1, 1, 2, 3, 3, 4, 4])
PENALTY_OPTIONS: dict[str, dict[str, Any]] = {name: {} if name == "l1" else {"groups": GROUPS} for name in PENALTIES}
SIMULATORS = {
    "gaussian": bregpath.datasets.make_linear,
    "huber": bregpath.datasets.make_linear,
    "logistic": bregpath.datasets.make_logistic,
    "poisson": bregpath.datasets.make_poisson,
    "multinomial": bregpath.datasets.make_multinomial,
}
LOSSES_WITH_UNITS = [name for name in ALL_LOSSES if LOSSES[name].has_units]


def trace(X: np.ndarray, y: np.ndarray, **options: Any) -> bregpath.Path:
    """A path with fewer times than by default."""
    return bregpath.trace_path(X, y, **{"n_times": 30, "t_ratio": 50.0, **options})


def folds_of(labels: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Five folds; rows of one label stay together."""
    return [(np.flatnonzero(labels % 5 != k), np.flatnonzero(labels % 5 == k)) for k in range(5)]


def penalty_options(penalty: str) -> dict[str, Any]:
    """Arguments that a penalty needs on data with P columns."""
    return {"penalty": penalty, **PENALTY_OPTIONS[penalty]}


def golden(name: str) -> dict[str, Any]:
    """One file of golden numbers."""
    return json.loads((GOLDEN / f"{name}.json").read_text())


def assert_plain_states(problem: Problem, case: dict[str, Any], start: str) -> None:
    """States after 1, 10, 100 and 1000 steps of the plain iteration, to 1e-10, in one of the golden cases."""
    flow = GLBI(problem, case["delta"], 0.01)
    state = flow.start()
    t0 = state.knot.t
    assert_allclose(t0, case["t0"], rtol=1e-10)
    assert_allclose(state.knot.alpha, np.ravel(case["alpha_0"]), atol=1e-10)
    skipped = 0
    if start == "from_zero":  # steps before the first entry change nothing but z = -t g0
        skipped = int(t0 / case["delta"])
        state = flow.start(skipped * case["delta"])
    states = [(state.knot.t, state.knot.alpha, state.knot.z, state.knot.value)]
    while len(states) <= 1000:
        state, steps = flow.advance(state, np.inf)
        states += list(zip(steps.t, steps.alpha, steps.z, steps.value, strict=True))[1:]
    compared = 0
    for state in case[start]:
        if state["k"] < skipped:
            continue
        t, alpha, z, value = states[state["k"] - skipped]
        compared += 1
        assert_allclose(t, state["t"], rtol=1e-10)
        assert_allclose(z, np.reshape(state["z"], z.shape), rtol=1e-10, atol=1e-10)
        beta = problem.penalty.primal(z, problem.kappa)
        assert_allclose(beta, np.reshape(state["beta"], z.shape), rtol=1e-10, atol=1e-10)
        assert_allclose(alpha, np.ravel(state["alpha"]), rtol=1e-10, atol=1e-10)
        assert_allclose(value, state["loss"], rtol=1e-10, atol=1e-10)
    assert compared >= 1


def response(loss: str, eta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A response that the loss accepts and that depends on ``eta``; numbers for losses not named here."""
    noise = rng.normal(size=len(eta))
    if loss == "logistic":
        return np.where(rng.logistic(size=len(eta)) > -eta, 1, 0)
    if loss == "multinomial":
        scores = np.column_stack([eta, -eta, np.zeros_like(eta)]) + rng.gumbel(size=(len(eta), 3))
        return np.array(["a", "b", "c"])[scores.argmax(axis=1)]
    if loss == "poisson":
        return rng.poisson(np.exp(np.clip(0.4 * eta, -2, 2)))
    if loss == "huber":
        return eta + np.where(rng.uniform(size=len(eta)) < 0.1, 10.0, 0.5) * noise
    return eta + 0.7 * noise


def make_data(
    loss: str, n: int = 60, p: int = 10, *, s: int = 3, correlation: float = 0.3, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """X with correlated columns of unequal means and scales, and a response of a sparse model."""
    rng = np.random.default_rng([seed, n, p])
    X = rng.normal(size=(n, p))
    for j in range(1, p):
        X[:, j] = correlation * X[:, j - 1] + np.sqrt(1 - correlation**2) * X[:, j]
    coef, s = np.zeros(p), min(s, p)
    coef[:s] = rng.choice([-1.0, 1.0], s) * rng.uniform(0.6, 1.4, s)
    y = response(loss, 0.5 + X @ coef, rng)
    return X * rng.uniform(0.5, 2.0, p) + rng.normal(size=p), y


def encoded(
    loss: AbstractLoss | str, y: np.ndarray, w: np.ndarray | None = None
) -> tuple[AbstractLoss, np.ndarray, np.ndarray]:
    """A loss that knows its classes, the coded response, and weights that sum to one."""
    loss = as_loss(loss)
    w = np.full(len(y), 1.0 / len(y)) if w is None else w / w.sum()
    return loss, loss.encode(y, w), w


def random_case(
    name: str, rng: np.random.Generator, n: int = 30
) -> tuple[AbstractLoss, np.ndarray, np.ndarray, np.ndarray]:
    """A loss, a random predictor, a coded response and unequal weights."""
    y = response(name, rng.normal(size=n), rng)
    loss, y, w = encoded(name, y, rng.uniform(0.2, 2.0, n))
    shape = (n,) if loss.n_outputs == 1 else (n, loss.n_outputs)
    return loss, rng.normal(size=shape), y, w


def rows(path: bregpath.Path) -> np.ndarray:
    """Coefficients as (n_times, p, q)."""
    return path.coef.reshape(len(path.t), path.n_features, -1)


def assert_same_path(a: bregpath.Path, b: bregpath.Path, rtol: float = 1e-8, entry_rtol: float = 1e-7) -> None:
    """Equal times, coefficients (relative to the largest), intercepts, supports and entry times."""
    assert a.result is b.result
    assert_allclose(a.t, b.t, rtol=1e-9)
    scale = max(np.abs(b.coef).max(), 1e-12)
    assert_allclose(a.coef, b.coef, rtol=0, atol=rtol * scale)
    assert_allclose(a.intercept, b.intercept, rtol=rtol, atol=rtol * max(scale, 1.0))
    assert_allclose(a.deviance, b.deviance, rtol=1e-7, atol=1e-9)
    # Supports may differ at a reported time only within rounding of an entry or exit.
    for t, one, two in zip(a.t, rows(a), rows(b), strict=True):
        differing = np.flatnonzero((one != 0).any(axis=1) != (two != 0).any(axis=1))
        for j in differing:
            events = np.array([a.entry_times[j], a.exit_times[j], b.entry_times[j], b.exit_times[j]])
            assert np.any(np.abs(events / t - 1) < entry_rtol), f"column {j} differs at t={t}"
    assert np.array_equal(np.isfinite(a.entry_times), np.isfinite(b.entry_times))
    assert_allclose(a.entry_times, b.entry_times, rtol=entry_rtol)
    assert_allclose(a.exit_times, b.exit_times, rtol=entry_rtol)
