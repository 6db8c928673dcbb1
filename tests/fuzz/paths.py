"""What must hold of any path of a regression, on random problems."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
from numpy.testing import assert_allclose

import bregpath
from bregpath import _kernels
from bregpath.flow.mean import AVERAGES
from tests.fuzz.oracle import NotUniqueError, Oracle
from tests.fuzz.problems import Problem, make_problem, stream
from tests.fuzz.supervise import CheckError, SkipError
from tests.interrupts import interrupt_and_extend

Array = np.ndarray
TOLS = (1e-2, 1e-3, 1e-4)
MOST_STEPS = 3000  # of a path with fixed steps
ROUNDING = "rounding"  # what explains that two paths differ


def accuracy(seed: int, tols: tuple[float, ...] = TOLS) -> dict[float, float]:
    """Adaptive steps stay within 2 tol of the exact path; the error is told as a multiple of each tolerance."""
    found = measure_accuracy(seed, tols)
    if max(found.values()) > 2:
        raise CheckError("error / tol is " + ", ".join(f"{x:.2g} at {tol:g}" for tol, x in found.items()), found)
    return found


def measure_accuracy(seed: int, tols: tuple[float, ...] = TOLS) -> dict[float, float]:
    """Largest error of a coefficient on a random path, as a multiple of ``tol``, for each tolerance."""
    problem = make_problem(seed)
    oracle = exact(problem)
    times = some_times(stream(seed, 1), oracle)
    paths = {tol: trace(problem, tol=tol, t=times) for tol in tols}
    solve = cache(lambda *t: oracle.solve(np.array(t))[1])  # most paths end at the same time
    return {tol: float(oracle.difference(path.coef, solve(*path.t)).max()) / tol for tol, path in paths.items()}


def fixed_steps(seed: int) -> None:
    """A fixed step is the paper's iteration."""
    problem, rng = make_problem(seed, tame=True), stream(seed, 1)
    oracle = exact(problem)
    times = some_times(rng, oracle)
    step = float(rng.uniform(0.1, 0.9)) * oracle.largest_stable_step(times[-1])
    times = times[times <= oracle.t0 / oracle.unit + MOST_STEPS * step]
    if not len(times):
        raise SkipError("too many steps")
    path = trace(problem, t=times, step=step)
    # Relative to a hundredth of kappa at least: just after the first entry its threshold itself is rounded.
    error = oracle.difference(path.coef, oracle.iterate(path.t, step)[1], floor=1e-2).max()
    assert error <= 1e-8, f"error is {error:.2g}"


def containers(seed: int) -> str:
    """The same numbers in another container make the same path."""
    problem, rng = well_posed(seed), stream(seed, 1)
    name = str(rng.choice(list(CONTAINERS)))
    X, contained = CONTAINERS[name](problem.X, rng)
    plain = Problem(problem.seed, X, problem.y, problem.options)
    return assert_same(trace(problem, X=contained), trace(plain), f"X as {name}", plain)


def frames(seed: int) -> str:
    """Categories of a frame are indicators in one group."""
    problem, rng = well_posed(seed, categories=1.0), stream(seed, 1)
    assert problem.labels is not None
    width = problem.X.shape[1] - len(np.unique(problem.labels))
    table = {f"x{j}": problem.X[:, j] for j in range(width)} | {"label": problem.labels}
    make = __import__(str(rng.choice(["pandas", "polars"]))).DataFrame
    options = {name: value for name, value in problem.options.items() if name != "groups"}
    framed = bregpath.trace_path(make(table), problem.y, n_times=30, **options)
    return assert_same(framed, trace(problem), "X as a frame", problem)


def screening(seed: int) -> str:
    """The screened path is the unscreened one; and where steps are looked at inside, its deviance falls."""
    problem = well_posed(seed, most_columns=150)
    with patch("bregpath.stores.base.WHOLE_BYTES", 0), patch("bregpath.flow.gram.MAX_WHOLE", 0):
        screened = trace(problem)
    rise = np.diff(screened.deviance).max(initial=0.0) / screened.null_deviance
    assert rise <= 1e-4 or not screened.loss.looks_inside, f"the deviance rises by {rise:.2g} of that of the null model"
    return assert_same(screened, trace(problem, screening=False), "screening", problem)


def kernels(seed: int) -> str:
    """The compiled core makes the path of the NumPy kernels."""
    if not _kernels.has_compiled():
        raise SkipError("no compiled core")
    problem = well_posed(seed)
    short = {"kappa": min(problem.options["kappa"], 30.0), "t_ratio": 10.0}  # the NumPy kernels are slow
    compiled = trace(problem, **short)
    with patch("bregpath._kernels._compiled", None):
        reference = trace(problem, **short)
    return assert_same(compiled, reference, "the compiled core", replace(problem, options={**problem.options, **short}))


def means(seed: int) -> str:
    """A mean over time is the integral of the path, to half of ``tol``, and the same if the path is screened."""
    problem, rng = well_posed(seed, most_columns=100), stream(seed, 1)
    average, n = str(rng.choice(sorted(AVERAGES))), 8000
    path = trace(problem)
    with patch("bregpath.stores.base.WHOLE_BYTES", 0), patch("bregpath.flow.gram.MAX_WHOLE", 0):
        mean = trace(problem, average=average, t=path.t)
    inside = (path.units.scale / path.units.y_unit)[:, None]
    for t in path.t[[10, -1]] if len(path.t) > 10 else path.t[-1:]:
        s = t * (np.arange(n) + 0.5) / n
        _, columns, values = path.read(s)
        share = (AVERAGES[average] + 1) * (s / t) ** AVERAGES[average] / n
        coef = np.tensordot(share, values, axes=1) * inside[columns]
        found = mean.at(float(t)).coef.reshape(-1, path.n_outputs) * inside
        largest = max(float(np.abs(values * inside[columns]).max(initial=0.0)), 1e-12)
        error = float(np.abs(found[columns] - coef).max(initial=0.0)) / largest
        assert error <= 5e-3, f"the {average} mean errs by {error:.2g}"
        assert set(np.flatnonzero(found.any(axis=1))) <= set(columns)
    problem = replace(problem, options={**problem.options, "average": average, "t": path.t})
    return assert_same(mean, trace(problem, screening=False), "screening", problem)


def copies(seed: int) -> str:
    """Weight k is k copies of a row, weight 0 its absence."""
    problem, rng = well_posed(seed), stream(seed, 1)
    w = rng.integers(0, 4, len(problem.y))
    w[np.unique(problem.y, return_index=True)[1] if problem.options["loss"] in ("logistic", "multinomial") else 0] = 1
    if problem.options["loss"] == "poisson":
        w[problem.y.argmax()] = 1
    options = {**problem.options, "sample_weight": w}
    exact(replace(problem, options=options))  # with these weights too there is one path
    repeated = {name: value for name, value in problem.options.items() if name != "sample_weight"}
    if "offset" in repeated:
        repeated["offset"] = np.repeat(repeated["offset"], w, axis=0)
    weighted = bregpath.trace_path(problem.X, problem.y, n_times=30, **options)
    X, y = np.repeat(problem.X, w, axis=0), np.repeat(problem.y, w)
    copied = bregpath.trace_path(X, y, n_times=30, **repeated)
    return assert_same(weighted, copied, "weights", replace(problem, options=options))


def interrupts(seed: int) -> str:
    """Ctrl-C at any moment leaves a beginning of the path, and its extension is the whole one."""
    problem, rng = well_posed(seed, most_columns=100), stream(seed, 1)
    problem = replace(problem, options={**problem.options, "tol": float(rng.choice([1e-2, 1e-4]))})
    whole = trace(problem)
    by_rounding = cache(lambda: _allowed_by_rounding(problem, whole))
    found = interrupt_and_extend(lambda: trace(problem), whole, rng, rtol=1e-7, by_rounding=by_rounding)
    return ROUNDING if by_rounding.cache_info().currsize else found


# --- parts --------------------------------------------------------------------------------------------------------


def trace(problem: Problem, X: Any = None, **options: Any) -> bregpath.Path:
    """The path of a problem, its X perhaps in another container."""
    X = problem.X if X is None else X
    return bregpath.trace_path(X, problem.y, **{"n_times": 30, **problem.options, **options})


def well_posed(seed: int, **options: Any) -> Problem:
    """A problem of which two paths can be compared to many digits."""
    problem = make_problem(seed, tame=True, **options)
    exact(problem)
    return problem


def exact(problem: Problem) -> Oracle:
    """The exact path of a problem that has one."""
    try:
        oracle = Oracle(problem.X, problem.y, **problem.options)
    except NotUniqueError as error:
        raise SkipError(str(error)) from None
    if not np.isfinite(oracle.t0):
        raise SkipError("nothing ever enters")
    return oracle


def some_times(rng: np.random.Generator, oracle: Oracle) -> Array:
    """A grid of times, regular or not, that may begin before the first entry."""
    ratio = 10 ** rng.uniform(0.3, 2)
    grids = {
        "regular": np.geomspace(1.0, ratio, 40),
        "few": np.sort(rng.uniform(1.0, ratio, 3)),
        "early": np.geomspace(0.3, ratio, 25),
        "crowded": 1 + (ratio - 1) * np.sort(rng.random(60)) ** 4,
    }
    return oracle.t0 / oracle.unit * grids[str(rng.choice(list(grids), p=[0.55, 0.15, 0.15, 0.15]))]


def assert_same(path: bregpath.Path, other: bregpath.Path, what: str, problem: Problem) -> str:
    """Equal in units of the integration, to 1e-7 of the largest coefficient (collinear columns amplify rounding).

    Or as close as two paths of the problem are whose data differ in their last digit: there rounding decides on a step.
    Which of the two it is, is told.
    """
    assert path.result is other.result, f"{what}: {path.result.name}, not {other.result.name}"
    assert_allclose(path.t, other.t, rtol=1e-9, err_msg=what)
    distance = _distance(path, other)
    if distance <= 1e-7:
        return "equal"
    allowed = _allowed_by_rounding(problem, path)
    assert distance <= allowed, f"{what}: coefficients differ by {distance:.2g}, by rounding {allowed:.2g}"
    return ROUNDING


def _distance(path: bregpath.Path, other: bregpath.Path) -> float:
    """Largest difference of coefficients, relative to the largest, or a tenth of that of deviances."""
    inside = (other.units.scale / other.units.y_unit)[:, None]
    one, two = (p.coef.reshape(len(p.t), -1, p.n_outputs) * inside for p in (path, other))
    of_deviances = np.abs(path.deviance - other.deviance) / (other.deviance + 1e-2 * other.null_deviance)
    return max(float(np.abs(one - two).max() / max(np.abs(two).max(), 1e-12)), 0.1 * float(of_deviances.max()))


def _allowed_by_rounding(problem: Problem, path: bregpath.Path, tries: int = 20) -> float:
    """Three times how far a path moves when numbers of X are off by what a sum over rows is; ``tol`` at most."""
    rng, found = stream(problem.seed, 2), 0.0
    for _ in range(tries):
        moved = trace(problem, X=problem.X * (1 + 2.0**-49 * rng.integers(-1, 2, problem.X.shape)))
        if len(moved.t) == len(path.t):
            found = max(found, _distance(moved, path))
    return min(3 * found, problem.options.get("tol", 1e-2))


# --- containers: the numbers that are left, and what holds them -----------------------------------------------------


def _split(X: Array, rng: np.random.Generator) -> sp.coo_array:
    """Some entries as sums of two, in any order."""
    rows, columns = np.nonzero(X)
    twice = rng.random(len(rows)) < 0.3
    data = np.where(twice, 0.5, 1.0) * X[rows, columns]
    parts = [np.concatenate([part, part[twice]]) for part in (data, rows, columns)]
    order = rng.permutation(len(parts[0]))
    data, rows, columns = (part[order] for part in parts)
    return sp.coo_array((data, (rows, columns)), shape=X.shape)


def _unsummed(X: Array, rng: np.random.Generator) -> sp.csr_array:
    """Duplicate entries inside a compressed matrix."""
    split = _split(X, rng)
    order = np.argsort(split.row, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(split.row, minlength=X.shape[0]))])
    return sp.csr_array((split.data[order], split.col[order], starts), shape=X.shape)


def _matrix(X: Array) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        return np.asmatrix(X)


def _single(X: Array) -> Array:
    return X.astype(np.float32).astype(float)


CONTAINERS: dict[str, Callable[[Array, np.random.Generator], tuple[Array, Any]]] = {
    "Fortran order": lambda X, rng: (X, np.asfortranarray(X)),
    "float32": lambda X, rng: (_single(X), X.astype(np.float32)),
    "float32 in Fortran order": lambda X, rng: (_single(X), np.asfortranarray(X.astype(np.float32))),
    "a view of every second column": lambda X, rng: (X, np.repeat(X, 2, axis=1)[:, ::2]),
    "a reversed view": lambda X, rng: (X, np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]),
    "the other byte order": lambda X, rng: (X, X.astype(X.dtype.newbyteorder())),
    "lists": lambda X, rng: (X, X.tolist()),
    "a matrix": lambda X, rng: (X, _matrix(X)),
    "csr": lambda X, rng: (X, sp.csr_array(X)),
    "csc": lambda X, rng: (X, sp.csc_matrix(X)),
    "csc of float32": lambda X, rng: (_single(X), sp.csc_array(X.astype(np.float32))),
    "coo with duplicates": lambda X, rng: (X, _split(X, rng)),
    "csr with duplicates": lambda X, rng: (X, _unsummed(X, rng)),
}
