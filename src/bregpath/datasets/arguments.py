"""What all simulators share: a seed, rows to test on, numbers within limits, and how true parameters are drawn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bregpath._typing import Array, Seed
from bregpath._validation import check_integer

__all__ = ["check_range", "generator", "rows_of_test", "signed_uniform"]


def generator(seed: Seed) -> np.random.Generator:
    """A new generator, or the user's own."""
    if isinstance(seed, np.random.Generator):
        return seed
    return np.random.default_rng(None if seed is None else check_integer("seed", seed, 0, ", a Generator or None"))


def rows_of_test(n_test: int | None) -> int | None:
    """How many rows to test on, checked."""
    return None if n_test is None else check_integer("n_test", n_test, 1, " or None")


def check_range(name: str, value: float, allowed: Callable[[float], bool], wanted: str) -> None:
    """Refuse what is no number, or not ``allowed``; ``wanted`` says what would be."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{name} must be {wanted}, but is {value!r} of type {type(value).__name__}.")
    if not allowed(float(value)):
        raise ValueError(f"{name}={value!r} is out of range; it must be {wanted}.")


def signed_uniform(rng: np.random.Generator, low: float, shape: int | tuple[int, ...]) -> Array:
    """Uniform on [-2 low, -low] u [low, 2 low]."""
    values = rng.uniform(low, 2.0 * low, shape)
    return values * rng.choice(np.array([-1.0, 1.0]), size=values.shape)
