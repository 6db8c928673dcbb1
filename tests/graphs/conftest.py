"""Fixtures of the tests of graphs."""

from __future__ import annotations

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(scope="package", autouse=True)
def one_blas_thread():
    """The matrices are tiny: threads of BLAS would only wait for each other."""
    with threadpool_limits(1):
        yield
