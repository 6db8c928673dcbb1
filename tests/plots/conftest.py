"""What tests of figures share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    """No figure needs a screen, none stays open, and Matplotlib's settings stay as they were."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    before = dict(matplotlib.rcParams)
    yield
    pytest.importorskip("matplotlib.pyplot").close("all")
    assert dict(matplotlib.rcParams) == before
