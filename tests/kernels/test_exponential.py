"""Squared loss by exponentials: exact where the path is known, on either kernel, and independent of who looks when."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import bregpath
from bregpath import _kernels
from bregpath._kernels import crossing, exponential
from bregpath.flow import gram, moments
from bregpath.flow.glbi import GLBI
from bregpath.flow.gram import GramBlock, GramOnDemand
from bregpath.penalties import build_penalty
from bregpath.problem import Problem
from bregpath.stores import as_store
from tests.helpers import assert_same_path, encoded, make_data


def orthogonal(n: int = 64, p: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Centred orthogonal columns of unequal lengths, and a response that they explain in part."""
    rng = np.random.default_rng(5)
    Q = np.linalg.qr(np.column_stack([np.ones(n), rng.standard_normal((n, p))]))[0][:, 1:]
    X = Q * np.sqrt(n) * np.geomspace(0.5, 3.0, p)
    return X, 2.0 + X @ (rng.choice([-1.0, 1.0], p) / np.arange(1, p + 1)) + rng.standard_normal(n)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6])
def test_orthogonal_columns_move_by_one_exponential_each(tol):
    X, y = orthogonal()
    path = bregpath.trace_path(X, y, kappa=3.0, tol=tol, standardize=False, saturation=None)
    size, slope = np.mean(X**2, axis=0), X.T @ (y - y.mean()) / len(y)
    assert_allclose(path.entry_times, 1 / np.abs(slope), rtol=1e-12)
    wait = np.maximum(path.t[:, None] - 1 / np.abs(slope), 0.0)
    exact = -np.expm1(-3.0 * size * wait) * slope / size
    assert_allclose(path.coef, exact, rtol=0, atol=tol * np.abs(exact).max())
    assert_allclose(path.intercept, y.mean(), rtol=1e-12)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"standardize": False}], ids=str)
def test_errors_stay_within_tolerance(options):
    excess = []
    for seed in range(8):
        X, y = make_data("gaussian", n=50, p=20, correlation=0.8, seed=seed)
        rough, fine = (bregpath.trace_path(X, y, tol=tol, **options) for tol in (1e-2, 1e-5))
        excess.append(np.abs(rough.coef - fine.coef).max() / np.abs(fine.coef).max() / 1e-2)
    assert max(excess) < 1.0


def test_takes_fewer_products_than_stages(monkeypatch):
    X, y = make_data("gaussian", n=200, p=60, correlation=0.8)
    few = bregpath.trace_path(X, y).stats
    monkeypatch.setattr(GramBlock, "pays", staticmethod(lambda *_: False))
    monkeypatch.setattr(GramBlock, "pays_whole", staticmethod(lambda *_: False))
    many = bregpath.trace_path(X, y).stats
    assert few.gradients < 0.2 * many.gradients
    assert few.gradients < 6 * few.steps
    assert few.steps < many.steps


LIMITS = {
    "free": {"penalty_factor": np.r_[0.0, 0.0, np.ones(10)]},
    "excluded": {"penalty_factor": np.r_[np.inf, 0.3, np.ones(10)]},
    "signs": {"lower": 0.0},
    "a free column of one sign": {"penalty_factor": np.r_[0.0, np.ones(11)], "lower": np.r_[0.0, np.full(11, -np.inf)]},
    "box": {"upper": 0.4},
    "no intercept": {"fit_intercept": False},
    "offset": {"offset": np.linspace(-1, 1, 60)},
}


@pytest.mark.skipif(not _kernels.has_compiled(), reason="built without the compiled core")
@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("standardize", [True, False])
def test_kernels_agree(name, standardize, monkeypatch):
    X, y = make_data("gaussian", p=12)
    X[:, 0] *= np.sign((X[:, 0] - X[:, 0].mean()) @ y)  # a free column of one sign has that sign at the start
    options = dict(LIMITS[name], standardize=standardize, t_ratio=200.0)
    compiled = bregpath.trace_path(X, y, **options)
    monkeypatch.setattr(_kernels, "_compiled", None)
    reference = bregpath.trace_path(X, y, **options)
    if standardize:
        assert_same_path(compiled, reference, rtol=1e-9)
    # Modes that are left out are a share of `tol`, and where columns are taken as they are rounding has a say in which.
    assert_allclose(compiled.coef, reference.coef, rtol=0, atol=1e-6 * np.abs(reference.coef).max())
    assert_allclose(compiled.deviance, reference.deviance, rtol=1e-6)
    assert_allclose(compiled.entry_times, reference.entry_times, rtol=1e-6)


@pytest.mark.skipif(not _kernels.has_compiled(), reason="built without the compiled core")
@pytest.mark.parametrize(("n", "p"), [(200, 120), (60, 110)])
def test_kernels_agree_after_many_changes(n, p, monkeypatch):
    """Of the inverse, which the core changes as coordinates come and go, and then makes anew; columns are dependent."""
    options = {"t_ratio": 1e3, "saturation": None}
    problems = [make_data("gaussian", n=n, p=p, correlation=0.9, seed=seed) for seed in range(6)]
    for X, _ in problems:
        X[:, 7] = X[:, 3] + X[:, 5]
    compiled = [bregpath.trace_path(X, y, **options) for X, y in problems]
    monkeypatch.setattr(_kernels, "_compiled", None)
    far = []
    for (X, y), path in zip(problems, compiled, strict=True):
        reference = bregpath.trace_path(X, y, **options)
        assert np.isfinite(path.entry_times).sum() + np.isfinite(path.exit_times).sum() > 64
        far.append(np.abs(path.coef - reference.coef).max(axis=1) > 1e-8 * np.abs(reference.coef).max())
    # Where a coefficient jumps at the very time that is asked for, rounding tells how far it is.
    assert np.sum(far) <= 1


def test_coefficients_begin_as_their_slopes_say():
    """Those that begin at zero, however slowly: one that went the other way would begin again and again."""
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((60, 30))
    inverse = np.linalg.inv(rows.T @ rows / 60 + 0.01 * np.eye(30))
    for slow in (1e-2, 1e-4, 1e-6):
        slope = rng.standard_normal(30)
        slope[4] = slow
        none, some = np.full((2, 30), np.inf)
        some[4] = 0.5 * slow
        speeds = []
        for leeway in (none, some):
            modes = exponential._lanczos(inverse, 0.01, slope, 10.0, 5.0, exponential._Limits(1.0, leeway))
            assert modes is not None
            speeds.append(modes[0].sum(axis=0)[4])
        assert abs(speeds[0] - slow) > 0.5 * slow  # so many modes would do but for that
        assert abs(speeds[1] - slow) <= 0.5 * slow


@pytest.mark.usefixtures("kernels")
def test_slow_beginnings_do_not_stall():
    """Columns and their knockoffs, of which one comes to rest at t = 8.14 with next to no slope."""
    data = bregpath.datasets.make_linear(300, 40, 12, seed=1)
    coarse, fine = (bregpath.knockoff_select(data.X, data.y, fdr=0.2, tol=tol) for tol in (1e-2, 1e-4))
    assert coarse.selected.tolist() == fine.selected.tolist()
    assert coarse.path.result is bregpath.Result.COMPLETED
    assert coarse.path.stats.steps < 200


@pytest.fixture
def few_modes(monkeypatch):
    """So few that most steps have to be shorter."""
    monkeypatch.setattr(exponential, "MAX_MODES", 2)
    if _kernels.has_compiled():
        from bregpath._kernels import compiled_exponential

        monkeypatch.setitem(compiled_exponential.CONSTANTS, "MAX_MODES", 2)


@pytest.mark.usefixtures("kernels")
def test_steps_that_take_too_many_modes_are_shorter(request):
    X, y = make_data("gaussian", n=50, p=20, correlation=0.8)
    expected = bregpath.trace_path(X, y, tol=1e-3)
    request.getfixturevalue("few_modes")
    path = bregpath.trace_path(X, y, tol=1e-3)
    assert path.stats.gradients <= 2 * path.stats.steps
    assert path.stats.steps > 2 * expected.stats.steps
    assert_allclose(path.coef, expected.coef, rtol=0, atol=1e-3 * np.abs(expected.coef).max())
    assert_allclose(path.entry_times, expected.entry_times, rtol=1e-2)


@pytest.mark.usefixtures("kernels", "few_modes")
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_slopes_that_are_no_numbers_end_the_search_for_a_step(wrong):
    X, y = make_data("gaussian", n=50, p=20)
    loss, y, w = encoded("gaussian", y)
    penalty = build_penalty("l1", 20, 1)
    flow = GLBI(Problem(as_store(X), loss, penalty, y, w, np.zeros((50, 1)), 10.0, fit_intercept=True), None, 0.01)
    state = flow.start()
    while np.count_nonzero(np.abs(state.knot.z) > 1) < 5:
        state, _ = flow.advance(state, np.inf, is_watched=True)
    system, slope = state.workplace.system, state.knot.slope.copy()
    slope[np.abs(state.knot.z).argmax()] = wrong
    with pytest.raises(_kernels.StepError, match="no step from t="):
        _kernels.advance(system, replace(state.knot, slope=slope), state.memory, np.inf, 20, keep_rows=False)


@pytest.mark.parametrize("modes", ["few", "enough"])
def test_a_column_whose_products_are_no_numbers_ends_the_path(modes, kernels, made, monkeypatch, request):
    """When it enters; all that was before is there."""
    X, y = make_data("gaussian", n=200, p=30, correlation=0.5)
    if modes == "few":
        request.getfixturevalue("few_modes")
    whole, sum_up = bregpath.trace_path(X, y), GramOnDemand._sum_up
    late = int(np.argsort(whole.entry_times)[12])
    entry = whole.entry_times[late]
    assert whole.t[0] < entry < whole.t[-1]

    def spoilt(self, columns, wait):
        return np.where(columns[:, None] == late, np.nan, sum_up(self, columns, wait))

    monkeypatch.setattr(GramOnDemand, "_sum_up", spoilt)
    path = bregpath.trace_path(X, y)
    assert path.result is bregpath.Result.STALLED
    assert_allclose(path.t[-1], entry, rtol=1e-9)
    assert_allclose(path.coef, [whole.at(t).coef for t in path.t], rtol=0, atol=1e-9)


def test_fine_tolerances_cost_little_more():
    for seed in range(6):
        X, y, options = random_problem(seed)
        coarse, fine = (bregpath.trace_path(X, y, tol=tol, **options).stats for tol in (1e-2, 1e-6))
        assert fine.steps < 4 * coarse.steps
        assert fine.gradients < 20 * coarse.gradients


def random_problem(seed: int) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 80))
    p, shared = int(rng.integers(5, 2 * n)), rng.choice([0.0, 0.5, 0.9])
    X = np.sqrt(1 - shared) * rng.standard_normal((n, p)) + np.sqrt(shared) * rng.standard_normal((n, 1))
    y = X[:, :5] @ rng.standard_normal(5) + rng.choice([0.1, 1.0, 3.0]) * rng.standard_normal(n)
    return X, y, {"kappa": float(10 ** rng.uniform(-1, 3)), "t_ratio": float(10 ** rng.uniform(1, 3))}


@pytest.mark.parametrize("kind", ["screened", "weights"])
def test_rounding_hardly_ever_decides(kind, request):
    """Of modes that are left out nothing is handed on that rounding could grow from: what should be equal is."""
    problems = [random_problem(seed) for seed in range(40)]
    paths = [bregpath.trace_path(X, y, **options) for X, y, options in problems]
    if kind == "screened":
        request.getfixturevalue("always_screen")
    differ = 0
    for (X, y, options), path in zip(problems, paths, strict=True):
        some = len(y) // 2
        if kind == "screened":
            other = bregpath.trace_path(X, y, **options)
        else:
            path = bregpath.trace_path(X, y, sample_weight=np.r_[np.full(some, 2.0), np.ones(len(y) - some)], **options)
            other = bregpath.trace_path(np.r_[X, X[:some]], np.r_[y, y[:some]], **options)
        same = min(len(path.t), len(other.t))
        differ += np.abs(path.coef[:same] - other.coef[:same]).max() > 1e-8 * np.abs(path.coef).max()
    assert differ <= 1


@pytest.mark.usefixtures("kernels")
def test_columns_that_enter_together_share():
    X, y = make_data("gaussian", p=6)
    single = bregpath.trace_path(X, y, kappa=10.0)
    double = bregpath.trace_path(np.column_stack([X, -X]), y, kappa=5.0)
    assert_allclose(double.coef[:, :6], -double.coef[:, 6:], rtol=0, atol=1e-9 * np.abs(single.coef).max())
    assert_allclose(2 * double.coef[:, :6], single.coef, rtol=0, atol=0.01 * np.abs(single.coef).max())


@pytest.mark.usefixtures("kernels")
def test_no_moving_column_without_slope():
    """Where nothing is left to explain, time goes on and nothing else does."""
    X = orthogonal()[0]
    path = bregpath.trace_path(X, X[:, 0] - X[:, 3], standardize=False, saturation=None, t_ratio=1e6)
    assert path.result is bregpath.Result.COMPLETED
    assert_allclose(path.coef[-1], [1, 0, 0, -1, 0, 0], atol=1e-9)


@pytest.mark.usefixtures("kernels")
def test_screened_equals_unscreened(request):
    data = [make_data("gaussian", n=40, p=120, correlation=0.6, seed=seed) for seed in range(6)]
    whole = [bregpath.trace_path(*one, screening=False) for one in data]
    request.getfixturevalue("always_screen")
    for one, expected in zip(data, whole, strict=True):
        screened = bregpath.trace_path(*one)
        assert screened.stats.refreshes > 0
        assert_same_path(screened, expected, rtol=1e-9)


class Jump:
    """A course whose only coordinate is at 0, and from half of the step on far beyond any bound."""

    def z(self, tau):
        return np.where(tau < 0.5, 0.0, 2.0)[:, None]

    def only(self, some):
        return self


def test_what_no_earlier_event_explains_ends_the_search():
    bounds = crossing.Bounds(np.array([False]), np.array([-1.0]), np.array([1.0]))
    assert_allclose(crossing.first_event(Jump(), bounds, 0.0, 1.0, exponential.TIE), 0.5, rtol=1e-12)


@pytest.fixture
def made(monkeypatch):
    """Rows of the Gram matrix are made when they are needed; how many there are after each."""
    counts = []

    def count_rows(self, wait):
        make_rows(self, wait)
        counts.append(np.count_nonzero(self._is_made))

    make_rows = GramOnDemand.make_rows
    monkeypatch.setattr(moments, "MAX_AT_ONCE", 5)
    monkeypatch.setattr(gram, "MADE_TOGETHER", 2)
    monkeypatch.setattr(GramOnDemand, "make_rows", count_rows)
    return counts


ON_DEMAND = {
    "plain": {},
    "weights": {"sample_weight": np.arange(60) % 4},
    "no intercept": {"fit_intercept": False},
    "as they are": {"standardize": False},
    "free": {"penalty_factor": np.r_[0.0, 0.0, np.ones(28)]},
}


@pytest.mark.parametrize("name", ON_DEMAND)
def test_rows_on_demand_change_nothing(name, kernels, request):
    X, y = make_data("gaussian", n=60, p=30, correlation=0.5)
    # With a fine `tol`: rounding may decide how many modes are kept, and what is left out is a share of it.
    options = {"tol": 1e-6, **ON_DEMAND[name]}
    at_once = bregpath.trace_path(X, y, **options)
    made = request.getfixturevalue("made")
    assert_same_path(bregpath.trace_path(X, y, **options), at_once, rtol=1e-8)
    assert made, kernels


@pytest.mark.usefixtures("kernels")
def test_rows_are_made_of_columns_that_move(made):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 100))
    y = X[:, 7] - X[:, 60] + 0.1 * rng.standard_normal(200)
    path = bregpath.trace_path(X, y, t_ratio=10.0)
    errors = y - path.intercept[:, None] - path.coef @ X.T
    assert_allclose(path.deviance, np.mean(errors**2, axis=1), rtol=1e-10)
    active = np.count_nonzero(path.coef.any(axis=0))
    assert active <= made[-1] <= active + 2
    assert made[-1] < 30


def test_a_block_is_cut_between_steps_only():
    cuts = np.array([0, 5, 6, 20])
    steps = object.__new__(_kernels.Steps)
    object.__setattr__(steps, "cuts", cuts)
    assert [steps.cut(n) for n in (0, 4, 5, 6, 19, 20)] == [0, 0, 5, 6, 6, 20]


@pytest.mark.usefixtures("kernels")
def test_every_step_is_whole():
    """Where a path is asked to end changes nothing before: it ends with a whole step."""
    X, y = make_data("gaussian", p=12)
    at_once = bregpath.trace_path(X, y, t_ratio=60.0)
    for ratio in (1.5, 7.0, 30.0):
        extended = bregpath.trace_path(X, y, t_ratio=ratio).extend(at_once.t[-1])
        coef = np.array([extended.at(t).coef for t in at_once.t])
        assert_allclose(coef, at_once.coef, rtol=0, atol=1e-12 * np.abs(at_once.coef).max())


@pytest.mark.parametrize("x", [0.0, 1e-12, 1e-3, 0.4999, 0.5, 3.0, 700.0])
def test_integrals_of_exponentials(x):
    """Of exp(-x s) over [0, 1], and of its integral, by quadrature on a thousand parts."""
    nodes, weights = np.polynomial.legendre.leggauss(8)
    s, w = (np.arange(1000)[:, None] + (nodes + 1) / 2).ravel() / 1000, np.tile(weights / 2000, 1000)
    once, twice = float(w @ np.exp(-x * s)), float(w @ ((1 - s) * np.exp(-x * s)))
    assert_allclose(exponential._phi(np.array([x]), 1.0, 1.0), once, rtol=1e-13)
    assert_allclose(exponential._phi_integral(np.array([x]), 1.0, 1.0), twice, rtol=1e-13)
