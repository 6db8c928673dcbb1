"""What the tests of sparse indicators share."""

from __future__ import annotations

import numpy as np
import pytest

import bregpath
from bregpath import _kernels
from tests.helpers import response


def respond(loss, X):
    rng = np.random.default_rng(1)
    return response(loss, X @ rng.normal(size=X.shape[1]), rng)


def reference(X, y, **options):
    """The path of the NumPy kernels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_kernels, "_compiled", None)
        return bregpath.trace_path(X, y, **options)
