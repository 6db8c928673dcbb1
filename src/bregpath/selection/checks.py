"""Checks and random numbers that the rules of selection share."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

__all__ = ["check_choice", "check_count", "check_share", "make_generator"]


def check_count(name: str, value: Any, least: int) -> int:
    """A whole number that is large enough."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise ValueError(f"`{name}` must be a whole number of at least {least}, found {value!r}.")
    return int(value)


def check_share(name: str, value: Any) -> float:
    """A number strictly between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0.0 < float(value) < 1.0:
        raise ValueError(f"`{name}` must be a number above 0 and below 1, found {value!r}.")
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
