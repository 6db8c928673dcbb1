"""Names for types that signatures share."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]
Seed: TypeAlias = int | np.random.Generator | None
