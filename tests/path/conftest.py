"""Every path test runs over the registries."""

from __future__ import annotations

import pytest

from bregpath.penalties import PENALTIES
from tests.helpers import ALL_LOSSES


@pytest.fixture(params=ALL_LOSSES)
def loss(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=sorted(PENALTIES))
def penalty(request: pytest.FixtureRequest) -> str:
    return request.param
