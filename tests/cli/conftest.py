"""Fixtures shared by the tests of the command line."""

from __future__ import annotations

import pytest

from tests.cli.commands import hide


@pytest.fixture(params=[True, False], ids=["pandas", "plain"])
def reader(request, monkeypatch):
    """With pandas, and as if it were missing."""
    if request.param:
        pytest.importorskip("pandas")
        pytest.importorskip("narwhals")
    else:
        hide(monkeypatch, "pandas")
