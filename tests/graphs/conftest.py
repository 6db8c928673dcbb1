"""What tests of graphs share."""

from __future__ import annotations

import pytest

from bregpath import _kernels


@pytest.fixture(params=["compiled", "reference"])
def sampler(request, monkeypatch):
    """Both implementations."""
    if request.param == "reference":
        monkeypatch.setattr(_kernels, "_compiled", None)
    elif not _kernels.has_compiled():
        pytest.skip("built without the compiled core")
    return request.param
