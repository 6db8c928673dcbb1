"""What paths of several kappas have in common: the null model they begin at."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from bregpath.flow import FLOWS
from bregpath.structures.study import read_study
from tests.helpers import make_data


@pytest.mark.parametrize("flow", sorted(FLOWS))
@pytest.mark.parametrize("loss", ["gaussian", "logistic", "poisson"])
@pytest.mark.parametrize("n_free", [0, 2])
def test_a_shared_null_model_begins_the_same_paths(loss: str, flow: str, n_free: int) -> None:
    X, y = make_data(loss)
    factor = np.ones(X.shape[1])
    factor[:n_free] = 0.0
    problem = read_study(X, y, loss=loss, penalty_factor=factor, offset=X[:, -1] / 10).on().problem
    for kappa in (0.1, 30.0):
        shared, alone = problem.at_kappa(kappa), replace(problem, kappa=kappa)
        assert shared.beginning is problem.beginning is not alone.beginning
        knots = [FLOWS[flow](one, None, 0.01).start().knot for one in (shared, alone)]
        for field in fields(knots[0]):
            assert_array_equal(*(getattr(knot, field.name) for knot in knots))
