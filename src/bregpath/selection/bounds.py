"""What is asked of a stability selection, and how many false items that allows."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np

from bregpath import _validation
from bregpath.selection.checks import check_choice, check_count

__all__ = ["StabilityRules", "check_threshold", "error_bound"]

BOUNDS = ("unimodal", "worst-case")


@dataclass(frozen=True)
class StabilityRules:
    """What is asked of a stability selection, checked; the arguments of `stability_selection`."""

    threshold: float = 0.9
    max_false: float | None = 1.0
    n_variables: int | None = None
    n_replicates: int = 100
    pairs: bool = True
    bound: str | None = None
    count: str = "entered"

    def __post_init__(self) -> None:
        if self.n_variables is not None:
            check_count("n_variables", self.n_variables, 1)
        elif self.max_false is not None:
            _validation.check_number("max_false", self.max_false)
        check_choice("count", self.count, ("entered", "active"))
        if self.bound is None:
            object.__setattr__(self, "bound", "unimodal" if self.pairs else "worst-case")
        check_choice("bound", self.bound, BOUNDS)
        if self.bound == "unimodal" and not self.pairs:
            raise ValueError('`bound`="unimodal" holds for complementary pairs; use pairs=True or bound="worst-case".')
        check_threshold(self.threshold)
        if check_count("n_replicates", self.n_replicates, 2) % 2 and self.pairs:
            raise ValueError(f"`n_replicates` must be even, since halves come in pairs; found {self.n_replicates!r}.")

    def allowed(self, n_items: int) -> int | None:
        """The largest number of variables a replicate may select; None for no limit."""
        if self.n_variables is not None or self.max_false is None:
            return self.n_variables
        bounds = [
            error_bound(q, n_items, self.threshold, self.n_replicates, kind=str(self.bound))
            for q in range(1, n_items + 1)
        ]
        allowed = int(np.searchsorted(np.maximum.accumulate(bounds), self.max_false, side="right"))
        if allowed == 0:
            raise ValueError(
                f"`max_false`={self.max_false!r} is out of reach with {n_items} candidates and "
                f"`threshold`={self.threshold:g}: one variable a replicate already gives "
                f"{bounds[0] if bounds else 0.0:.3g}. Ask for more, or raise `threshold`."
            )
        return allowed


def check_threshold(threshold: Any, name: str = "threshold") -> float:
    """A share of the replicates that is a majority."""
    if isinstance(threshold, numbers.Real) and 0.5 < float(threshold) <= 1.0:
        return float(threshold)
    raise ValueError(f"`{name}` must be a probability above 0.5 and at most 1, found {threshold!r}.")


def error_bound(q: float, n_items: int, threshold: float, n_replicates: int = 100, *, kind: str = "unimodal") -> float:
    r"""Bound of the expected number of falsely selected items.

    .. math:: E[V] \le C\, q^2 / p, \qquad C_\text{worst-case} = \frac{1}{2 \pi - 1}, \qquad
              C_\text{unimodal} = \begin{cases}
                  \frac{1}{2 (2 \pi - 1 - 1/(2B))} & \pi \le 3/4, \\
                  \frac{4 (1 - \pi + 1/(2B))}{1 + 1/B} & \pi > 3/4,
              \end{cases}

    with q items on average selected on a half, p candidates, threshold :math:`\pi` and B pairs of halves. Where the
    unimodal bound does not hold (:math:`q / p > 1 / \sqrt 3`, or :math:`\pi` very near to 1/2) it is the worst case.
    The bound is at most p.

    Examples
    --------
    >>> round(error_bound(10, 100, 0.75, kind="worst-case"), 3), round(error_bound(10, 100, 0.75), 3)
    (2.0, 1.02)
    """
    if n_items == 0:
        return 0.0
    constant = 1.0 / (2.0 * threshold - 1.0)
    share, n_pairs = q / n_items, n_replicates / 2.0
    lowest = 0.5 + min(share**2, 0.5 / n_pairs + 0.75 * share**2)
    if kind == "unimodal" and share <= 1 / np.sqrt(3.0) and threshold > lowest:
        if threshold > 0.75:
            constant = min(constant, 4.0 * (1.0 - threshold + 0.5 / n_pairs) / (1.0 + 1.0 / n_pairs))
        elif 2.0 * threshold - 1.0 > 0.5 / n_pairs:
            constant = min(constant, 0.5 / (2.0 * threshold - 1.0 - 0.5 / n_pairs))
    return float(min(constant * q**2 / n_items, n_items))
