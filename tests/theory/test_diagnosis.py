"""What the theorem guarantees happens; where its conditions fail, the diagnosis says which."""

from __future__ import annotations

import numpy as np
import pytest

from bregpath.datasets import (
    Simulation,
    make_gaussian_graph,
    make_ising_grid,
    make_linear,
    make_logistic,
    make_multinomial,
    make_poisson,
)
from bregpath.theory import diagnose

CASES = {
    "linear": (lambda seed: make_linear(2000, 20, 2, r=0.0, snr=50, seed=seed), {"kappa": 20.0}),
    "linear, fixed steps": (lambda seed: make_linear(2000, 20, 2, r=0.0, snr=50, seed=seed), {"step": 0.02}),
    "linear, infinite kappa": (lambda seed: make_linear(2000, 20, 2, r=0.0, snr=50, seed=seed), {"kappa": np.inf}),
    "correlated": (lambda seed: make_linear(200, 20, 3, r=0.5, seed=seed), {"kappa": 20.0}),
    "logistic": (lambda seed: make_logistic(600, 12, 2, seed=seed), {"kappa": 20.0}),
    "logistic, infinite kappa": (lambda seed: make_logistic(600, 12, 2, seed=seed), {"kappa": np.inf}),
    "poisson": (lambda seed: make_poisson(600, 12, 2, seed=seed), {}),
}


@pytest.mark.parametrize("case", CASES)
def test_guarantees_are_kept_and_the_potential_never_rises(case):
    make, options = CASES[case]
    found = [diagnose(make(seed), **options) for seed in range(6)]
    assert [d.contradictions for d in found] == [()] * 6
    assert max(d.potential_rise for d in found) <= 1e-8
    guaranteed = np.array([[finding.guaranteed for finding in d.findings] for d in found])
    # Every claim of the easy cases is put to the test, and the first one of the others in most draws.
    assert guaranteed[:, 0].sum() >= 4
    if case.startswith("linear"):
        assert guaranteed.sum(axis=0).min() >= 4


def test_ising_model():
    d = diagnose(make_ising_grid(2, T=4.0, n=400, seed=0), kappa=20.0)
    assert len(d.truth.coef) == 6 and len(d.truth.intercept) == 4
    assert d.contradictions == () and d.potential_falls
    assert d.names[d.critical] in ("0-3", "1-2")  # the diagonals of the square
    assert "4 nodes, 4 edges" in repr(d)


def imitated(seed: int) -> Simulation:
    """The last column is nearly the sum of the true ones, each with its sign."""
    simulation = make_linear(500, 12, 3, r=0.0, snr=16, seed=seed)
    X, rng = simulation.X.copy(), np.random.default_rng([7, seed])
    X[:, -1] = 0.7 * X[:, :3] @ np.sign(simulation.coef[:3]) + 0.1 * rng.standard_normal(500)
    return Simulation(X, simulation.y, simulation.intercept, simulation.coef)


@pytest.mark.parametrize("seed", range(5))
def test_a_planted_imitation_is_named(seed):
    d = diagnose(imitated(seed), kappa=20.0)
    assert d.critical == 11
    assert d.tbar == 0.0
    assert "irrepresentable condition" in [condition.name for condition in d.failed]
    assert "x11 imitates the true columns" in repr(d)
    assert not d.findings[0].guaranteed
    assert d.path.entry_times[11] == d.first_false_positive  # and it is the first to enter


@pytest.mark.parametrize(
    ("simulation", "options", "name", "text"),
    [
        (make_linear(8, 20, 10, seed=0), {}, "restricted strong convexity", "flat in some direction"),
        (make_linear(200, 20, 3, seed=0), {"kappa": 1.0}, "damping kappa", "take 3."),
        (make_linear(30, 10, 3, snr=0.05, seed=0), {}, "oracle near the truth", "lose a sign"),
        (make_linear(100, 10, 3, seed=0), {}, "signal", "below what the theorem resolves"),
    ],
)
def test_the_condition_that_fails_is_named(simulation, options, name, text):
    d = diagnose(simulation, **options)
    (condition,) = [c for c in d.failed if c.name == name]
    assert text in condition.remedy
    assert f"{name}: {condition.remedy}" in repr(d)
    assert not d.holds


def test_a_stable_step_that_is_too_long_for_the_theorem():
    d = diagnose(make_linear(400, 10, 2, r=0.0, seed=0), kappa=10.0, step=0.01)
    shorter, longer = d.guarantee, diagnose(make_linear(400, 10, 2, r=0.0, seed=0), kappa=10.0, step=0.1).guarantee
    assert 0 < longer.contraction < shorter.contraction < shorter.convexity
    assert longer.error_bound(longer.tbar) > shorter.error_bound(shorter.tbar)
    with pytest.raises(ValueError, match="`step`=0.5 is unstable"):
        diagnose(make_linear(400, 10, 2, r=0.0, seed=0), kappa=10.0, step=0.5)


def test_no_noise_guarantees_for_ever():
    d = diagnose(make_linear(100, 10, 3, r=0.0, snr=np.inf, seed=0))
    assert d.tbar > 1e12 and d.holds  # but for rounding, infinite
    assert d.contradictions == () and d.first_false_positive == np.inf


def test_all_columns_true():
    d = diagnose(make_linear(100, 3, 3, seed=0))
    assert d.critical == -1 and d.guarantee.irr == 0.0
    assert d.contradictions == ()


def test_units_of_the_intercept_do_not_matter():
    simulation = make_linear(300, 10, 2, seed=0)
    moved = Simulation(simulation.X, simulation.y + 1000.0, simulation.intercept + 1000.0, simulation.coef)
    a, b = diagnose(simulation), diagnose(moved)
    assert a.tbar == pytest.approx(b.tbar, rel=1e-6)
    assert a.error == pytest.approx(b.error, rel=1e-4)
    assert b.oracle.intercept == pytest.approx(a.oracle.intercept + 1000.0)


def test_what_is_printed_and_tabulated():
    pytest.importorskip("pandas")
    d = diagnose(make_linear(200, 10, 2, seed=0))
    text, frame = repr(d), d.to_frame()
    assert frame["name"].tolist() == [condition.name for condition in d.conditions]
    assert all(name in text for name in frame["name"])
    assert f"none before t = {d.tbar:.4g}" in text
    assert "The potential of the oracle dynamics never rises." in text


@pytest.mark.parametrize(
    ("simulation", "options", "error", "text"),
    [
        (np.ones(3), {}, TypeError, "`simulation` must be a Simulation"),
        (make_linear(50, 5, 0, seed=0), {}, ValueError, "no true coefficients"),
        (make_multinomial(50, 5, 2, seed=0), {}, ValueError, "several outputs"),
        (Simulation(np.eye(9)[:, 5:] * [0, 1, 1, 1], np.arange(9.0), 0.0, np.ones(4)), {}, ValueError, "is constant"),
        (make_logistic(50, 5, 2, seed=0), {"loss": "multinomial"}, ValueError, "has several outputs"),
        (make_gaussian_graph(50, 5, seed=0), {}, ValueError, "only Ising models"),
        (make_ising_grid(2, n=50, seed=0), {"loss": "nodewise"}, ValueError, "`loss` of an Ising model"),
        (make_linear(50, 5, 2, seed=0), {"kappa": -1.0}, ValueError, "`kappa`"),
        (make_linear(50, 5, 2, seed=0), {"step": "fast"}, ValueError, "`step`"),
        (make_logistic(12, 8, 6, M=5.0, seed=0), {}, ValueError, "no oracle estimator"),
    ],
)
def test_bad_input(simulation, options, error, text):
    with pytest.raises(error, match=text):
        diagnose(simulation, **options)
