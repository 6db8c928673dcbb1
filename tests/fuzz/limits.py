"""What must hold of any path of infinite kappa, on random problems."""

from __future__ import annotations

from unittest.mock import patch

from tests.fuzz.paths import assert_same, exact, make_problem, trace
from tests.fuzz.supervise import SkipError
from tests.subgradient import assert_subgradient


def inverse_scale_space(seed: int) -> None:
    """The subgradient is one at all times; screened and compiled are the same path."""
    problem = make_problem(seed, tame=True)
    if problem.options.get("penalty", "l1") != "l1":
        raise SkipError("groups")
    oracle = exact(problem)
    path = trace(problem, flow="giss")
    if len(path.t) == 1:
        raise SkipError("separable at once")
    assert_subgradient(path, oracle)
    with patch("bregpath.stores.base.WHOLE_BYTES", 0), patch("bregpath.flow.gram.MAX_WHOLE", 0):
        assert_same(trace(problem, flow="giss"), path, "screening")
    with patch("bregpath._kernels._compiled", None):
        assert_same(trace(problem, flow="giss"), path, "the compiled core")
