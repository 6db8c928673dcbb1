"""What the tests of sparse indicators share."""

from __future__ import annotations

import numpy as np
import pytest

import bregpath
from bregpath import _kernels
from tests.helpers import response

if not _kernels.has_compiled():
    pytest.skip("built without the compiled core", allow_module_level=True)

OPTIONS = {"t_ratio": 20.0, "n_times": 30}
N = 2_003  # not a multiple of four, the rows that kernels take at a time


def one_hot(levels):
    """Indicators of the levels of some variables, some of them frequent, and one number a column."""
    rng = np.random.default_rng(0)
    columns = []
    for k in levels:
        level = rng.choice(k, N, p=rng.dirichlet(np.full(k, 2.0)))
        columns.append(np.equal.outer(level, np.arange(k)) * rng.uniform(0.5, 2.0, k))
    return np.hstack(columns)


def respond(loss, X):
    rng = np.random.default_rng(1)
    return response(loss, X @ rng.normal(size=X.shape[1]), rng)


def reference(X, y, **options):
    """The path of the NumPy kernels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_kernels, "_compiled", None)
        return bregpath.trace_path(X, y, **options)
