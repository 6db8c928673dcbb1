"""Golden numbers of graphs: the plain iteration, and Libra's ising() and ggm()."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bregpath.flow.glbi import GLBI
from bregpath.graphs.problems import all_pairs, field_ends, field_problem, gaussian_problem, ising_problem
from bregpath.problem import Problem
from tests.helpers import assert_plain_states, golden

PLAIN = [
    ("plain_ising_composite", "l1"),
    ("plain_ising_mpf", "l1"),
    ("plain_field", "group_blocks"),
    ("plain_field", "l1"),
    ("plain_field", "potts_diag_group"),
    ("plain_ggm_likelihood", "l1"),
    ("plain_ggm_composite", "l1"),
]


def uniform(n: int) -> np.ndarray:
    return np.full(n, 1.0 / n)


def plain_problem(file: str, name: str, kappa: float) -> Problem:
    data, kind = golden(file)["data"], file.removeprefix("plain_")
    if kind.startswith("ggm"):
        S = np.array(data["S"])
        return gaussian_problem(S, np.ones_like(S), kappa, kind.removeprefix("ggm_"))
    X = np.array(data["X"])
    n, p = X.shape
    ones = np.ones((p, p))
    if kind == "field":
        couplings = "diagonal" if "diag" in name else "full"
        penalty = "l1" if name == "l1" else "group"
        n_states = np.full(p, data["q"])
        return field_problem(X, n_states, uniform(n), ones, kappa, field_ends(n_states, couplings), penalty)
    return ising_problem(X.astype(float), uniform(n), ones, kappa, kind.removeprefix("ising_"), True)


@pytest.mark.parametrize("start", ["from_t0", "from_zero"])
@pytest.mark.parametrize(("file", "name"), PLAIN)
def test_plain_iteration(file, name, start):
    case = golden(file)["cases"][name]
    assert_plain_states(plain_problem(file, name, case["kappa"]), case, start)


@pytest.mark.parametrize("name", ["grid", "grid_noint"])
def test_libra_ising(name):
    """Libra reports an extrapolation two steps late; it is recomputed from our states, and read where it is ours."""
    content = golden("libra_ising")
    case = content["cases"][name]
    X = np.array(content["data"][case["data"]]["X"], dtype=float)
    n, p = X.shape
    problem = ising_problem(X, uniform(n), np.ones((p, p)), 10.0, "composite", case["params"]["intercept"])
    assert_like_libra(problem, case, "a0")


@pytest.mark.parametrize("name", ["circulant", "sample"])
def test_libra_ggm(name):
    """The composite loss; Libra's own numbers are right only where all diagonals are equal (circulant)."""
    content = golden("libra_ggm")
    case = content["cases"][name]
    S = np.array(content["data"][case["data"]]["S"])
    assert_like_libra(gaussian_problem(S, np.ones_like(S), 10.0, "composite"), case, "diag")


def assert_like_libra(problem: Problem, case: dict, alpha_name: str) -> None:
    step, times = case["params"]["alpha"], np.array(case["t"])
    flow = GLBI(problem, step, 0.01)
    state = flow.start()
    t0 = state.knot.t
    assert_allclose(t0, times[0], rtol=1e-9)
    z, alpha = [state.knot.z[:, 0]], [state.knot.alpha]
    while state.knot.t < times[-1] + 3 * step:
        state, steps = flow.advance(state, times[-1] + 3 * step)
        z += list(steps.z[1:, :, 0])
        alpha += list(steps.alpha[1:])

    def coefficients(dual: np.ndarray) -> np.ndarray:
        return problem.penalty.primal(dual[:, None], problem.kappa)[:, 0]

    compared = 0
    for i, t in enumerate(times[1:], 1):
        m = int(np.ceil((t - times[0]) / step - 1e-9))
        f = (t - times[0]) / step - m + 1
        between = z[m - 1] + f * (z[m] - z[m - 1])
        assert_allclose(coefficients(between), case["plain_path"][i], rtol=1e-8, atol=1e-8)
        assert_allclose(alpha[m - 1] + f * (alpha[m] - alpha[m - 1]), case[f"plain_{alpha_name}"][i], atol=1e-8)
        if case.get("valid", True):
            beyond = z[m + 1] + f * (z[m + 1] - z[m])
            assert_allclose(coefficients(beyond), case["path"][i], rtol=1e-8, atol=1e-8)
            assert_allclose(alpha[m + 1] + f * (alpha[m + 1] - alpha[m]), case[alpha_name][i], atol=1e-8)
        compared += 1
    assert compared >= 20


def test_pairs_are_in_the_order_of_the_files():
    assert all_pairs(4).tolist() == [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
