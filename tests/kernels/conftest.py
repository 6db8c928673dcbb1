"""Which kernels run, and what the tests of sparse indicators ask of the core."""

from __future__ import annotations

import pytest

from bregpath import _kernels
from bregpath.flow.gram import GramBlock

KERNELS = ["reference", *(["compiled"] if _kernels.has_compiled() else [])]


@pytest.fixture(params=KERNELS)
def kernels(request, monkeypatch):
    """Which of the twins run."""
    if request.param == "reference":
        monkeypatch.setattr(_kernels, "_compiled", None)
    return request.param


@pytest.fixture
def no_gram(monkeypatch):
    """Squared loss passes over the rows, too."""
    monkeypatch.setattr(GramBlock, "pays", staticmethod(lambda *_: False))
    monkeypatch.setattr(GramBlock, "pays_whole", staticmethod(lambda *_: False))


@pytest.fixture
def steppers(monkeypatch):
    """The compiled steppers that are made from now on."""
    from bregpath._kernels import compiled

    made, make = [], compiled._make_stepper
    monkeypatch.setattr(compiled, "_make_stepper", lambda system: made.append(make(system)) or made[-1])
    return made
