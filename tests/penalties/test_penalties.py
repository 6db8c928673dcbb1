"""Every registered penalty is the mirror map it says it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from bregpath.penalties import PENALTIES, AbstractPenalty, GroupPenalty, L1Penalty, build_penalty

P, Q = 8, 2
GROUPS = np.array([2, 0, 0, 1, 1, 1, 3, 4])


def options(penalty: str) -> dict:
    return {} if penalty == "l1" else {"groups": GROUPS}


def factors(penalty: str) -> np.ndarray:
    """Some factors, equal inside groups: one column (group) free, one excluded."""
    factor = np.array([0.7, 1.0, 1.0, 0.0, 0.0, 0.0, np.inf, 2.0])
    return factor


def signs() -> dict:
    return {
        "lower": np.array([0, 0, -np.inf, -np.inf, 0, -np.inf, 0, 0]),
        "upper": np.array([np.inf, np.inf, 0, np.inf, np.inf, 0, np.inf, 0]),
    }


@pytest.fixture(params=sorted(PENALTIES))
def penalty(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=["plain", "factors", "signs", "both"])
def mirror(request: pytest.FixtureRequest, penalty: str) -> AbstractPenalty:
    extra: dict = {}
    if request.param in ("factors", "both"):
        extra["penalty_factor"] = factors(penalty)
    if request.param in ("signs", "both"):
        extra |= signs()
    return build_penalty(penalty, P, Q, **options(penalty), **extra)


def objective(mirror: AbstractPenalty, b: np.ndarray, z: np.ndarray) -> float:
    """1/2 ||b - z||^2 + J(b), infinite outside of the sign limits and where an excluded coordinate moves."""
    if np.any(b < np.minimum(mirror.lower, 0)) or np.any(b > np.maximum(mirror.upper, 0)):
        return np.inf
    return 0.5 * np.sum((b - z) ** 2) + mirror.value(b)


# --- the mirror map ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0.5, 1.5, 5.0])
def test_shrink_is_the_argmin(mirror: AbstractPenalty, size: float, rng: np.random.Generator) -> None:
    z = size * rng.normal(size=(P, Q))
    b = mirror.shrink(z)
    least = objective(mirror, b, z)
    assert np.isfinite(least)
    for scale in (1e-4, 1e-2, 0.3):
        for _ in range(60):
            step = scale * rng.normal(size=z.shape) * (rng.uniform(size=z.shape) < 0.4)
            trial = np.where(np.isfinite(mirror.weights), b + step, 0.0)
            trial = np.clip(trial, np.minimum(mirror.lower, 0), np.maximum(mirror.upper, 0))
            assert objective(mirror, trial, z) >= least - 1e-14
    assert objective(mirror, 0.9 * b, z) >= least - 1e-14 and objective(mirror, 0 * b, z) >= least - 1e-14


def test_shrink_against_an_optimiser(mirror: AbstractPenalty, rng: np.random.Generator) -> None:
    z = 2.0 * rng.normal(size=(P, Q))
    b = mirror.shrink(z)
    low, high = np.minimum(mirror.lower, 0), np.maximum(mirror.upper, 0)
    included = np.isfinite(mirror.weights)
    bounds = [(a, c) if ok else (0, 0) for a, c, ok in zip(low.ravel(), high.ravel(), included.ravel(), strict=True)]

    def value(v: np.ndarray) -> float:
        return objective(mirror, np.clip(v.reshape(P, Q), low, high), z)

    start = np.where(included, np.clip(0.5 * z, low, high), 0.0).ravel()
    precise = {"xtol": 1e-9, "ftol": 1e-13, "maxiter": 20000}
    found = minimize(value, start, method="Powell", bounds=bounds, options=precise)
    assert_allclose(b.ravel(), found.x, atol=2e-4)
    assert value(b) <= found.fun + 1e-10


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**31), size=st.floats(0.1, 10))
@pytest.mark.parametrize("penalty", sorted(PENALTIES))
def test_shrink_is_monotone_and_contracts(penalty: str, seed: int, size: float) -> None:
    """As every proximal map: firmly non-expansive."""
    rng = np.random.default_rng(seed)
    mirror = build_penalty(penalty, P, Q, **options(penalty), penalty_factor=factors(penalty), **signs())
    a, b = size * rng.normal(size=(2, P, Q))
    image = mirror.shrink(a) - mirror.shrink(b)
    assert np.sum(image**2) <= np.sum(image * (a - b)) + 1e-12


def test_known_values() -> None:
    z = np.array([[3.0], [-4.0], [0.5], [-2.0]])
    assert_allclose(build_penalty("l1", 4, 1).shrink(z).ravel(), [2, -3, 0, -1])
    group = build_penalty("group", 4, 1, groups=["a", "a", "b", "b"])
    assert_allclose(group.shrink(z).ravel()[:2], [2.4, -3.2])
    root = build_penalty("group-sqrt", 4, 1, groups=["a", "a", "b", "b"])
    assert_allclose(root.shrink(z).ravel()[:2], np.array([3, -4]) * (1 - np.sqrt(2) / 5))
    assert_allclose(build_penalty("l1", 4, 1, lower=0).shrink(z).ravel(), [2, 0, 0, 0])
    # A sign limit inside a group acts on z before the norm is taken: b_1 is out, so the norm is 3.
    signed = build_penalty("group", 4, 1, groups=[0, 0, 1, 1], lower=[0, 0, -np.inf, -np.inf])
    assert_allclose(signed.shrink(z).ravel()[:2], [2, 0])


def test_group_without_labels_is_a_column_over_all_outputs(rng: np.random.Generator) -> None:
    z = 2 * rng.normal(size=(5, 3))
    rows = build_penalty("group", 5, 3).shrink(z)
    for b, row in zip(rows, z, strict=True):
        assert_allclose(b, max(1 - 1 / np.linalg.norm(row), 0) * row, rtol=1e-14)
    one = rng.normal(size=(5, 1)) * 2
    assert_allclose(
        build_penalty("group", 5, 1).shrink(one), build_penalty("l1", 5, 1).shrink(one), rtol=1e-14, atol=1e-15
    )


def test_sqrt_counts_all_outputs() -> None:
    mirror = build_penalty("group-sqrt", P, Q, groups=GROUPS)
    sizes = np.bincount(GROUPS)[GROUPS] * Q
    assert_allclose(mirror.weights, np.repeat(np.sqrt(sizes)[:, None], Q, axis=1))


# --- thresholds --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0.3, 1.0, 3.0])
def test_entry_agrees_with_support(mirror: AbstractPenalty, size: float, rng: np.random.Generator) -> None:
    for _ in range(20):
        z = size * rng.normal(size=(P, Q))
        entry, beta = mirror.entry(z), mirror.shrink(z)
        assert entry.shape == z.shape
        free, excluded = mirror.weights == 0, np.isinf(mirror.weights)
        assert np.all(entry[free] == -np.inf) and np.all(entry[excluded] == np.inf)
        assert not np.any(beta[excluded])
        allowed = mirror.allowed(z)
        assert_array_equal(beta != 0, (entry < 0) & (allowed != 0))
        assert_array_equal(mirror.support(z), mirror.primal(z, 1.0) != 0)
        assert_array_equal(beta[free], allowed[free])


def test_entry_of_many_states_at_once(mirror: AbstractPenalty, rng: np.random.Generator) -> None:
    z = 2 * rng.normal(size=(7, P, Q))
    assert_allclose(mirror.entry(z), np.stack([mirror.entry(one) for one in z]), rtol=1e-14)
    assert_allclose(mirror.shrink(z), np.stack([mirror.shrink(one) for one in z]), rtol=1e-14)
    assert_allclose(mirror.primal(z, 3.0), np.stack([mirror.primal(one, 3.0) for one in z]), rtol=1e-14)


def test_entry_is_the_distance(penalty: str, rng: np.random.Generator) -> None:
    """Scaled up by w / (w - entry), a coordinate (or its group) sits exactly at its threshold."""
    mirror = build_penalty(penalty, P, 1, **options(penalty))
    z = 0.5 * rng.normal(size=(P, 1))
    for j in range(P):
        factor = mirror.weights[j, 0] / (mirror.weights[j, 0] - mirror.entry(z)[j, 0])
        assert mirror.entry(factor * (1 - 1e-9) * z)[j, 0] > 0 > mirror.entry(factor * (1 + 1e-9) * z)[j, 0]


def test_primal_clips(rng: np.random.Generator) -> None:
    mirror = build_penalty("l1", P, 1, lower=-0.5, upper=0.25)
    z = 3 * rng.normal(size=(P, 1))
    assert_array_equal(mirror.primal(z, 10.0), np.clip(10 * mirror.shrink(z), -0.5, 0.25))
    # Which is the argmin over the box as well: the l1 norm and the box are both sums over coordinates.
    for zj, bj in zip(z.ravel(), mirror.primal(z, 10.0).ravel(), strict=True):
        grid = np.linspace(-0.5, 0.25, 3001)
        best = grid[np.argmin(0.5 * (grid / 10 - zj) ** 2 + np.abs(grid) / 10)]
        assert abs(best - bj) < 1e-3


def test_value(rng: np.random.Generator) -> None:
    b = rng.normal(size=(P, Q))
    assert_allclose(build_penalty("l1", P, Q).value(b), np.abs(b).sum())
    norms = [np.linalg.norm(b[g == GROUPS]) for g in range(5)]
    assert_allclose(build_penalty("group", P, Q, groups=GROUPS).value(b), np.sum(norms))
    sizes = np.sqrt(Q * np.bincount(GROUPS))
    assert_allclose(build_penalty("group-sqrt", P, Q, groups=GROUPS).value(b), np.dot(sizes, norms))
    excluded = build_penalty("l1", P, Q, penalty_factor=factors("l1"))
    b[6] = 0
    assert np.isfinite(excluded.value(b))


# --- parts -------------------------------------------------------------------------------------------------------


def test_take(mirror: AbstractPenalty, rng: np.random.Generator) -> None:
    z = 2 * rng.normal(size=(P, Q))
    for columns in ([3, 5, 4, 0], [7], list(range(P))[::-1], []):
        index = np.array(columns, dtype=int)
        part = mirror.take(index)
        assert type(part) is type(mirror)
        assert_allclose(part.shrink(z[index]), mirror.shrink(z)[index], rtol=1e-14)
        assert_allclose(part.entry(z[index]), mirror.entry(z)[index], rtol=1e-14)
        assert_array_equal(part.free, mirror.free[index])
        assert part.primal(z[index], 2.0).shape == (len(index), Q)


def test_close(penalty: str) -> None:
    mirror = build_penalty(penalty, P, Q, **options(penalty))
    for j in range(P):
        chosen = np.arange(P) == j
        closed = mirror.close(chosen)
        expected = chosen if penalty == "l1" else GROUPS[j] == GROUPS
        assert_array_equal(closed, expected)
        assert_array_equal(mirror.close(closed), closed)
    assert not mirror.close(np.zeros(P, dtype=bool)).any()


def test_free(penalty: str) -> None:
    mirror = build_penalty(penalty, P, Q, **options(penalty), penalty_factor=factors(penalty))
    assert_array_equal(mirror.free, factors(penalty) == 0)


# --- reading wishes ----------------------------------------------------------------------------------------------


def test_labels_of_any_kind() -> None:
    z = np.arange(4.0)[:, None] + 1
    one = build_penalty("group", 4, 1, groups=["b", "a", "b", "a"])
    two = build_penalty("group", 4, 1, groups=[10, -3, 10, -3])
    assert_array_equal(one.shrink(z), two.shrink(z))
    assert isinstance(one, GroupPenalty) and isinstance(build_penalty("l1", 4, 1), L1Penalty)


def test_one_factor_a_group_or_a_column() -> None:
    per_group = build_penalty("group", 4, 1, groups=["b", "a", "b", "a"], penalty_factor=[1.0, 2.0])
    per_column = build_penalty("group", 4, 1, groups=["b", "a", "b", "a"], penalty_factor=[2.0, 1.0, 2.0, 1.0])
    assert_array_equal(per_group.weights, per_column.weights)


def test_limits_do_not_alias_the_users_arrays() -> None:
    lower = np.full(3, -1.0)
    mirror = build_penalty("l1", 3, 1, lower=lower)
    mirror.lower *= 2
    assert_array_equal(lower, -1.0)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"penalty": "l2"}, "`penalty` must be one of .*'group'.*found 'l2'"),
        ({"groups": [0, 0, 1]}, '`groups` needs penalty="group"'),
        (
            {"penalty": "group", "groups": [0, 1]},
            r"`groups` must give one label for each of the 3 columns, found shape \(2,\)",
        ),
        ({"penalty": "group", "groups": [0, np.nan, 1]}, "`groups` contains NaN"),
        ({"penalty": "group", "groups": [[0, 1, 1]]}, "`groups` must give one label"),
        ({"penalty": "group", "groups": [0, 0, 1], "penalty_factor": [1, 2, 1]}, "differs inside a group"),
        ({"penalty_factor": [1, 2]}, r"`penalty_factor` must have one entry a column \(3\), found shape \(2,\)"),
        ({"penalty_factor": [1, -1, 1]}, "`penalty_factor` must be non-negative"),
        ({"penalty_factor": [1, np.nan, 1]}, "`penalty_factor` must be non-negative.*not NaN"),
        ({"lower": 0.5}, "`lower` must be <= 0"),
        ({"upper": -0.5}, "`upper` must be >= 0"),
        ({"lower": [0, 0]}, r"`lower` must be a number or one number a column \(3\)"),
        ({"upper": [[0, 0, 0]]}, "`upper` must be a number or one number a column"),
        ({"lower": [0, np.nan, 0]}, "`lower` must be <= 0"),
    ],
)
def test_errors(arguments: dict, text: str) -> None:
    arguments = {"penalty": "l1", **arguments}
    with pytest.raises(ValueError, match=text):
        build_penalty(arguments.pop("penalty"), 3, 1, **arguments)


def test_box_limits_inside_groups_are_the_minimiser(rng: np.random.Generator) -> None:
    """The mirror map of a norm with box limits: nothing inside the box is better."""
    kappa, groups = 3.0, np.array([0, 0, 0, 1, 1])
    lower, upper = np.array([-0.4, -np.inf, 0, -1, -np.inf]), np.array([0.3, 0.9, np.inf, 0.2, np.inf])
    penalty = build_penalty("group", 5, 1, groups=groups, lower=lower, upper=upper, penalty_factor=[1.0, 0.5])
    for _ in range(20):
        z = 2 * rng.normal(size=(5, 1))
        best = penalty.primal(z, kappa) / kappa

        def objective(b: np.ndarray, z: np.ndarray = z) -> float:
            return 0.5 * float(np.sum((b - z) ** 2)) + penalty.value(b)

        for _ in range(200):
            step = 10.0 ** rng.uniform(-4, 0) * rng.normal(size=(5, 1))
            other = np.clip(best + step, lower[:, None] / kappa, upper[:, None] / kappa)
            assert objective(best) <= objective(other) + 1e-12


@pytest.mark.parametrize("penalty", sorted(PENALTIES))
def test_free_and_excluded_groups_with_box_limits(penalty: str, rng: np.random.Generator) -> None:
    mirror = build_penalty(penalty, P, Q, **options(penalty), penalty_factor=factors(penalty), lower=-0.5, upper=0.25)
    z = 3 * rng.normal(size=(P, Q))
    b = mirror.primal(z, 10.0)
    free, excluded = factors(penalty) == 0, np.isinf(factors(penalty))
    assert_allclose(b[free], np.clip(10 * z[free], -0.5, 0.25))
    assert_array_equal(b[excluded], 0.0)
    assert b.min() == -0.5 and b.max() == 0.25


@pytest.mark.parametrize("limits", [{}, {"lower": -0.5, "upper": 0.25}])
def test_pace_is_that_of_the_mirror_map(penalty: str, limits: dict, rng: np.random.Generator) -> None:
    mirror = build_penalty(penalty, P, Q, **options(penalty), penalty_factor=factors(penalty), **limits)
    z, slope = rng.normal(scale=2.0, size=(2, 2, 4, P, Q))
    moved = (mirror.primal(z + 1e-7 * slope, 3.0) - mirror.primal(z - 1e-7 * slope, 3.0)) / 2e-7
    stays, beta = np.all(mirror.entry(z) < 0, axis=0), mirror.primal(z, 3.0)
    if limits:  # what meets a limit, or leaves it, does not count, nor does its group
        start, end = (beta == -0.5) | (beta == 0.25)
        stops = np.any(start != end, axis=2)
        assert stops.any()
        stays &= ~np.array([mirror.close(columns) for columns in stops])[..., None]
    assert stays.any() and not stays.all()
    assert_allclose(mirror.pace(z, slope, 3.0), np.sum(moved * slope * stays, axis=(2, 3)), rtol=1e-4)


@pytest.mark.parametrize("limits", [{}, {"lower": -0.5, "upper": 0.25}])
def test_rounding_does_not_decide_what_pace_counts(penalty: str, limits: dict, rng: np.random.Generator) -> None:
    """At a knot that is an event a coordinate is on its threshold, or at its limit."""
    mirror = build_penalty(penalty, P, Q, **options(penalty), **limits)
    z, slope = rng.normal(size=(2, 2, 4, P, Q))
    z[0] *= mirror.weights / (mirror.weights - mirror.entry(z[0]))  # all on their thresholds
    z[1] *= 5.0
    paces = [mirror.pace(np.stack([z[0] * (1 + off), z[1]]), slope, 3.0) for off in (-1e-15, 1e-15)]
    assert_allclose(*paces, rtol=1e-6)


@pytest.mark.parametrize("limits", [{}, {"lower": 0.0}])
def test_active_columns_are_beyond_their_thresholds(penalty: str, limits: dict, rng: np.random.Generator) -> None:
    mirror = build_penalty(penalty, P, Q, **options(penalty), penalty_factor=factors(penalty), **limits)
    z = rng.normal(scale=1.5, size=(4, P, Q))
    z[0] = 0.0
    np.testing.assert_array_equal(mirror.active(z), np.any(mirror.entry(z) < 0, axis=-1))


@pytest.mark.parametrize("limits", [{}, signs()])
def test_root_bounds_the_derivative_of_the_mirror_map(penalty: str, limits: dict, rng: np.random.Generator) -> None:
    mirror = build_penalty(penalty, P, Q, **options(penalty), penalty_factor=factors(penalty), **limits)
    for size in (1.5, 4.0, 20.0):
        z = mirror.allowed(size * rng.normal(size=(P, Q)))
        moves = mirror.entry(z) < 0
        for _ in range(20):
            v = rng.normal(size=(P, Q)) * moves
            along = np.sum(v * (mirror.shrink(z + 1e-6 * v) - mirror.shrink(z - 1e-6 * v))) / 2e-6
            bound = np.sum((mirror.root(z, v) * moves) ** 2)
            assert along <= bound * (1 + 1e-6)
            if not limits:
                assert_allclose(along, bound, rtol=1e-6)
