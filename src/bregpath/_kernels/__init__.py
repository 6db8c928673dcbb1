"""The door to the step kernels: the compiled core where it is built and applies, else the NumPy reference.

``BREGPATH_KERNELS=reference`` in the environment switches the compiled core off.
"""

from __future__ import annotations

import os

from bregpath._kernels.reference import Knot, StepError, System, advance, first_step

__all__ = ["Knot", "StepError", "System", "advance", "first_step", "implementation"]


def implementation() -> str:
    """Which kernels run: ``"reference"`` or the instruction set of the compiled core.

    Examples
    --------
    >>> implementation() in ("reference", "base", "v3", "v4")
    True
    """
    return "reference"
