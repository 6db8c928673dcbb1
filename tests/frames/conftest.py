"""The data frame libraries that are installed, and a frame of all kinds of columns."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

CONSTRUCTORS: dict[str, Any] = {}
for library, name in {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}.items():
    try:
        CONSTRUCTORS[library] = getattr(import_module(library), name)
    except ImportError:
        continue


@pytest.fixture(params=CONSTRUCTORS)
def frame_of(request: pytest.FixtureRequest) -> Any:
    """What makes a frame of columns by name."""
    return CONSTRUCTORS[request.param]


@pytest.fixture
def mixed() -> dict[str, list[Any]]:
    return {
        "bmi": [21.5, 30.0, 25.25],
        "region": ["north", "south", "east"],
        "smoker": [True, False, True],
        "children": [0, 2, 1],
    }
