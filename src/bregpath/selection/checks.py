"""Checks, random numbers and tables that the rules of selection share."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

__all__ = ["check_choice", "check_count", "check_share", "make_generator", "shortened"]


def check_count(name: str, value: Any, least: int) -> int:
    """A whole number that is large enough."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise ValueError(f"`{name}` must be a whole number of at least {least}, found {value!r}.")
    return int(value)


def check_share(name: str, value: Any, low: float = 0.0, high: float = 1.0) -> float:
    """A number strictly above ``low`` and below ``high``."""
    inside = isinstance(value, numbers.Real) and not isinstance(value, bool) and low < float(value) < high
    if not inside:
        raise ValueError(f"`{name}` must be a number above {low:g} and below {high:g}, found {value!r}.")
    return float(value)


def check_choice(name: str, value: Any, choices: tuple[str | None, ...], other: str = "") -> Any:
    """One of some words; ``other`` says what else would do."""
    if value not in choices:
        raise ValueError(f"`{name}` must be one of {list(choices)}{other}, found {value!r}.")
    return value


def make_generator(seed: Any, name: str = "seed") -> np.random.Generator:
    """A generator of its own: data drawn by ``default_rng(seed)`` must not meet the same numbers again here."""
    if isinstance(seed, np.random.Generator):
        return seed
    try:
        return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
    except (TypeError, ValueError):
        raise ValueError(f"`{name}` must be a whole number >= 0, a Generator or None, found {seed!r}.") from None


def shortened(lines: list[str], most: int) -> list[str]:
    """The first lines of a table, and how many more there are."""
    return lines if len(lines) <= most else [*lines[:most], f"... and {len(lines) - most} more"]
