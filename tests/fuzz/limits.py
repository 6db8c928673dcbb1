"""What must hold of any path of infinite kappa, on random problems."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
from numpy.testing import assert_allclose

import bregpath
from tests.fuzz.paths import ROUNDING, assert_same, exact, make_problem, trace
from tests.fuzz.problems import Problem
from tests.fuzz.supervise import SkipError
from tests.subgradient import assert_subgradient

FOR_EVER = {bregpath.Result.SATURATED, bregpath.Result.UNBOUNDED}  # how a loss without an optimum may end


def inverse_scale_space(seed: int) -> str:
    """The subgradient is one at all times; screened and compiled are the same path."""
    finite = make_problem(seed, tame=True)
    problem = replace(finite, options={**finite.options, "flow": "giss"})
    if problem.options.get("penalty", "l1") != "l1":
        raise SkipError("groups")
    oracle = exact(finite)
    path = trace(problem)
    if len(path.t) == 1:
        raise SkipError("separable at once")
    with patch("bregpath.stores.base.WHOLE_BYTES", 0), patch("bregpath.flow.gram.MAX_WHOLE", 0):
        screened = trace(problem)
    with patch("bregpath._kernels._compiled", None):
        reference = trace(problem)
    assert_subgradient(path, oracle)
    others = {"screening": screened, "the compiled core": reference}
    for what, other in others.items():
        assert_subgradient(other, oracle)
        _assert_same_loss(other, path, what)
    if not _has_one_optimum(problem):
        return "many optima"
    found = {assert_same(other, path, what, problem) for what, other in others.items()}
    return ROUNDING if ROUNDING in found else "equal"


def _assert_same_loss(path: bregpath.Path, other: bregpath.Path, what: str) -> None:
    assert path.result is other.result or {path.result, other.result} == FOR_EVER, what
    both = min(len(path.t), len(other.t))
    assert_allclose(path.t[: both - 1], other.t[: both - 1], rtol=1e-9, err_msg=what)
    deviances = path.deviance[: both - 1], other.deviance[: both - 1]
    assert_allclose(*deviances, rtol=1e-6, atol=1e-8 * other.null_deviance, err_msg=what)


def _has_one_optimum(problem: Problem) -> bool:
    """Not so where columns depend on each other, nor where the loss has straight parts or outputs with a common shift:
    then the coefficients of least loss that a subgradient allows may be many, and any is right."""
    spread = problem.X - problem.X.mean(axis=0)
    spread = spread / np.where(np.ptp(problem.X, axis=0) > 0, np.linalg.norm(spread, axis=0), 1.0)
    is_regular = np.linalg.matrix_rank(spread, tol=1e-6) == spread.shape[1]
    return bool(is_regular) and problem.options["loss"] not in ("huber", "multinomial")
