"""A slice of `make fuzz`, and what it stands on: the oracle and the supervisor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose

import bregpath
from tests.fuzz.oracle import Oracle
from tests.fuzz.supervise import KINDS, Task, supervise
from tests.helpers import golden

SLICE = range(3)
# Found by longer runs, and mended: a first step that threw coefficients back to zero; slopes that were not trusted
# where a coefficient met its limit, or were by rounding; a coordinate beyond its bounds for a moment, just when another
# one got there; a loss near zero, by which its rounding was judged; limits inside of groups; a column that was read as
# active between two knots, if it was recorded; whole numbers in the data, which put a step on the edge of its bits;
# spikes of the deviance between two knots, of correlated columns; a search for an optimum that watched the loss, whose
# rounding hid what was left to gain, and one along a row of next to no weight in steps of one.
ONCE_FAILED = {
    "accuracy": [20261578, 20262131, 20262663, 20266381, 20267646, 20266738, 50006667, 50006933, 91000945, 91002234],
    "screening": [20261177, 50000357, 50007685, 93005007, 94000253, 94000979],
    "copies": [50001670],
    "inverse-scale-space": [90001442, 271828256, 60004670, 123451199],
}


@pytest.mark.parametrize("kind", KINDS)
def test_slice(kind: str) -> None:
    seeds = [*SLICE, *ONCE_FAILED.get(kind, [])]
    outcomes = list(supervise([Task(kind, (seed,)) for seed in seeds], jobs=1, limit=60.0))
    failures = [f"{o.task.replay}\n{o.status}: {o.text}" for o in outcomes if o.is_failure or o.n_stalled]
    assert len(outcomes) == len(seeds)
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("kappa", [0.5, 10.0, 1000.0])
def test_oracle_on_orthogonal_columns(kappa: float) -> None:
    """There every coefficient is alone: it enters at 1 / |g| and then approaches g like exp(-kappa t)."""
    n, g = 64, np.array([1.0, -0.5, 0.2])
    X = np.sqrt(n) * np.linalg.qr(np.random.default_rng(0).normal(size=(n, 3)))[0]
    oracle = Oracle(X, X @ g, kappa=kappa, fit_intercept=False, standardize=False)
    t = np.geomspace(1.0, 20.0, 50)[:, None]
    since = np.maximum(t - 1 / np.abs(g), 0.0)
    assert_allclose(oracle.t0, 1.0)
    assert_allclose(oracle.solve(t[:, 0])[1][:, :, 0], g * -np.expm1(-kappa * since), atol=1e-7)


MODELS = {"linear": "gaussian", "logistic": "logistic", "multinomial": "multinomial", "poisson": "poisson"}


@pytest.mark.parametrize(("model", "name"), [(m, name) for m in MODELS for name in golden(f"plain_{m}")["cases"]])
def test_oracle_iterates_as_the_golden_numbers(model: str, name: str) -> None:
    content = golden(f"plain_{model}")
    data, case = content["data"], content["cases"][name]
    options = {option: case[option] for option in ("kappa", "groups", "lower", "upper") if option in case}
    options |= {option: np.array(data[option]) for option in case.get("uses", [])}
    options["penalty"] = "group" if name.startswith("group") else "l1"
    if name == "nonneg":
        options["lower"] = 0.0
    if "w" in case:
        options["penalty_factor"] = [np.inf if w is None else w for w in case["w"]]
    oracle = Oracle(np.array(data["X"]), np.array(data["y"]), loss=MODELS[model], standardize=False, **options)
    assert_allclose(oracle.t0, case["t0"], rtol=1e-10)
    states = case["from_t0"]
    intercepts, coef = oracle.iterate(np.array([state["t"] for state in states]), case["delta"])
    for state, alpha, beta in zip(states, intercepts, coef, strict=True):
        assert_allclose(beta, np.reshape(state["beta"], beta.shape), atol=1e-10)
        assert_allclose(alpha, np.ravel(state["alpha"]), atol=1e-10)


def test_paths_that_stall_are_counted() -> None:
    tasks = [Task("tests.fuzz.test_fuzz_slice:stall", (0,)), Task("screening", (0,))]
    outcomes = {o.task: o for o in supervise(tasks, jobs=1, limit=60.0)}
    assert [outcomes[task].status for task in tasks] == ["held", "held"]
    assert outcomes[tasks[0]].ends == {"begun": 2, "STALLED": 1, "SATURATED": 1}
    assert outcomes[tasks[1]].n_stalled == 0 < outcomes[tasks[1]].ends["begun"]


def stall(seed: int) -> None:
    """One path that ends before a wall of infinite loss, and one without it."""
    X = np.random.default_rng(seed).normal(size=(50, 2))
    for wall in (0.5, np.inf):
        loss = WalledSquares(wall)
        bregpath.trace_path(X, X[:, 0], loss=loss, standardize="X", fit_intercept=False, t_ratio=5.0)


@dataclass(frozen=True)
class WalledSquares:
    """Infinite where the predictor is beyond a wall."""

    wall: float

    def value(self, eta, y, w):
        return np.inf if np.abs(eta).max() > self.wall else 0.5 * np.dot(w, (eta - y) ** 2)

    def gradient(self, eta, y, w):
        return w * (eta - y)


def test_a_hang_and_a_crash_are_reported_and_the_rest_goes_on() -> None:
    tasks = [Task("time:sleep", (60,)), Task("os:_exit", (3,)), Task("math:sqrt", (-1,)), Task("math:sqrt", (4,))]
    outcomes = {o.task: o for o in supervise(tasks, jobs=1, limit=1.0)}
    assert [outcomes[task].status for task in tasks] == ["hung", "crashed", "failed", "held"]
    assert "code 3" in outcomes[tasks[1]].text
    assert outcomes[tasks[3]].result == 2.0
