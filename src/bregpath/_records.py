"""Frozen records that follow from others."""

from __future__ import annotations

from typing import Any, TypeVar

__all__ = ["changed"]

R = TypeVar("R")


def changed(record: R, /, **changes: Any) -> R:
    """The same record but for some fields: `dataclasses.replace` without its checks, in a tenth of its time.

    Properties that the record has cached go over, so that they must not depend on what is changed.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from bregpath.units import Units
    >>> changed(Units(0.0, 1.0, 2.0), y_unit=Fraction(1, 2)).y_unit
    Fraction(1, 2)
    """
    twin = object.__new__(type(record))
    vars(twin).update(vars(record), **changes)
    return twin
