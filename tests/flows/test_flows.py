"""What every flow in the registry promises, and a flow that is defined here alone."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import bregpath
from bregpath._kernels import Knot, Steps
from bregpath.flow import FLOWS, AbstractFlow
from bregpath.flow.base import State
from bregpath.flow.reading import LineOfDual
from bregpath.problem import first_entry, null_model


# [plain]
class PlainEuler(AbstractFlow):
    """The paper's iteration on all columns, a line each."""

    name = "plain"

    def __init__(self, problem: Any, step: float | None, tol: float, screening: bool = True) -> None:
        super().__init__(problem, step, tol, screening)
        self.reading = LineOfDual(problem.penalty, problem.kappa)
        self.everything = np.arange(problem.store.shape[1])
        self.block = problem.store.fetch(self.everything)

    def start(self) -> State:
        problem = self.problem
        alpha, _, eta = null_model(problem)
        residual = problem.residual(eta)
        slope = -self.block.rmatvec(residual)
        t = first_entry(problem, slope)
        speed, value = problem.alpha_slope(residual), problem.value(eta)
        knot = Knot(t, alpha, speed, t * slope, slope, t * residual, residual, value)
        return State(knot, self.everything, knot.value)

    def advance(self, state: State, until: float, is_watched: bool = False) -> tuple[State, Steps]:
        problem, old, h = self.problem, state.knot, self.step or 0.05
        alpha, z = old.alpha + h * old.alpha_slope, old.z + h * old.slope
        eta = problem.predictor(self.block, alpha, self.reading.at_knots(self.everything, z))
        residual = problem.residual(eta)
        R, slope, value = old.R + h * old.residual, -self.block.rmatvec(residual), problem.value(eta)
        new = Knot(old.t + h, alpha, problem.alpha_slope(residual), z, slope, R, residual, value)
        pairs = {name: np.stack([getattr(old, name), getattr(new, name)]) for name in Knot.__dataclass_fields__}
        steps = Steps(self.everything, **pairs, reach=np.array([0.0, h]), memory=lambda k: None)
        return State(new, self.everything, min(state.lowest, value)), steps


# [/plain]


FLOW_CLASSES = [*FLOWS.values(), PlainEuler]


def trace(flow: type[AbstractFlow], X: np.ndarray, y: np.ndarray, **options: Any) -> bregpath.Path:
    fixed = {"step": 0.05, "kappa": 5.0} if flow is PlainEuler else {}
    window = {"loss": "logistic", "t_ratio": 15.0, "n_times": 20}
    return bregpath.trace_path(X, y, flow=flow, **{**window, **fixed, **options})


@pytest.fixture(params=FLOW_CLASSES, ids=lambda flow: flow.name)
def flow(request: pytest.FixtureRequest) -> type[AbstractFlow]:
    return request.param


@pytest.fixture(scope="module")
def data() -> bregpath.datasets.Simulation:
    return bregpath.datasets.make_logistic(80, 10, 3, seed=2)


def test_the_loss_never_rises(flow, data):
    path = trace(flow, data.X, data.y)
    values = np.concatenate([chunk.value for chunk in path.trajectory.chunks])
    assert len(values) > (3 if flow.name == "giss" else 20) and np.all(np.diff(values) <= 1e-12)
    assert len(path.support(path.t[-1])) >= 3


def test_extended_is_traced_at_once(flow, data):
    at_once = trace(flow, data.X, data.y)
    short = trace(flow, data.X, data.y, t=at_once.t[:8])
    longer = short.extend(at_once.t[-1])
    assert_allclose(longer.at(at_once.t[-1]).coef, at_once.coef[-1], rtol=1e-9, atol=1e-12)
    assert_allclose(longer.entry_times, at_once.entry_times, rtol=1e-9)


def test_a_weight_is_a_number_of_copies(flow, data):
    weights = np.random.default_rng(0).integers(1, 4, len(data.y))
    copies = trace(flow, np.repeat(data.X, weights, axis=0), np.repeat(data.y, weights))
    assert_allclose(trace(flow, data.X, data.y, sample_weight=weights).coef, copies.coef, rtol=1e-7, atol=1e-9)


def test_of_the_null_model_nothing_moves_before_the_first_entry(flow, data):
    path = trace(flow, data.X, data.y)
    assert not path.at(path.t[0]).coef.any() and not path.at(0.3 * path.t[0]).coef.any()
    assert_allclose(path.entry_times.min(), path.t[0], rtol=1e-9)


RESUME = """
import pickle, sys
import numpy as np
from tests.flows.test_flows import problem_and_flow, go_on
state = pickle.loads(sys.stdin.buffer.read())
flow = problem_and_flow(sys.argv[1])
sys.stdout.buffer.write(pickle.dumps(go_on(flow, state, float(sys.argv[2]))))
"""


def problem_and_flow(name: str) -> AbstractFlow:
    """A problem that is screened, the same in every process."""
    from bregpath.losses import as_loss
    from bregpath.penalties import build_penalty
    from bregpath.problem import Problem
    from bregpath.stores import DenseStore

    simulated = bregpath.datasets.make_logistic(300, 16_000, 5, seed=1)
    loss, w = as_loss("logistic"), np.full(300, 1 / 300)
    y = loss.encode(simulated.y, w)
    store = DenseStore(np.asfortranarray(simulated.X))
    assert not store.is_small
    problem = Problem(store, loss, build_penalty("l1", 16_000, 1), y, w, np.zeros((300, 1)), 10.0, True)
    return {cls.name: cls for cls in FLOW_CLASSES}[name](problem, None, 0.01)


def go_on(flow: AbstractFlow, state: State, until: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, active columns and coefficients at the end of a path."""
    while state.knot.t < until:
        state, _ = flow.advance(state, until)
    beta = flow.reading.at_knots(state.columns, state.knot.z)[:, 0]
    order = np.argsort(state.columns)
    active = order[beta[order] != 0]
    return np.array([state.knot.t, state.knot.value]), state.columns[active], beta[active]


@pytest.mark.parametrize("name", list(FLOWS))
def test_a_pickled_state_goes_on_in_another_process(name):
    flow = problem_and_flow(name)
    state = flow.start()
    end = 6 * state.knot.t
    while state.knot.t < 0.4 * end:
        state, _ = flow.advance(state, 0.4 * end)
    command = [sys.executable, "-c", RESUME, name, str(end)]
    answer = subprocess.run(command, input=pickle.dumps(state), stdout=subprocess.PIPE, check=True).stdout
    elsewhere, here = pickle.loads(answer), go_on(flow, state, end)
    assert len(here[1]) >= 5 and len(state.columns) < 1000
    np.testing.assert_array_equal(elsewhere[1], here[1])
    assert_allclose(elsewhere[0], here[0], rtol=1e-10)
    assert_allclose(elsewhere[2], here[2], rtol=1e-9, atol=1e-12)


def test_an_own_flow_is_the_fixed_step(data):
    options = {"step": 0.05, "kappa": 5.0}
    ours, shipped = trace(PlainEuler, data.X, data.y), trace(FLOWS["glbi"], data.X, data.y, **options)
    assert_allclose(ours.coef, shipped.coef, rtol=1e-9, atol=1e-12)
    assert_allclose(ours.deviance, shipped.deviance, rtol=1e-12)
    assert_allclose(ours.entry_times, shipped.entry_times, rtol=1e-9)


def test_unknown_flows_are_refused(data):
    with pytest.raises(ValueError, match=r"`flow` must be one of \['giss', 'glbi'\] or a class"):
        bregpath.trace_path(data.X, data.y, flow="gibs")
    with pytest.raises(ValueError, match="`flow`"):
        bregpath.trace_path(data.X, data.y, flow=object)
