"""Fixtures shared by all tests."""

from __future__ import annotations

import numpy as np
import pytest

from bregpath.flow import gram


@pytest.fixture
def rng() -> np.random.Generator:
    """The one source of randomness of a test."""
    return np.random.default_rng(20180409)


@pytest.fixture
def always_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """No design is small enough to be gathered whole: every path works on a working set."""
    monkeypatch.setattr("bregpath.stores.base.WHOLE_BYTES", 0)
    monkeypatch.setattr(gram, "MAX_WHOLE", 0)
