"""The lines of a diagnosis: conditions of a theorem, and what it claims against what was seen."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Condition", "Finding"]


@dataclass(frozen=True)
class Condition:
    """A condition of the theorem, with its numbers.

    Examples
    --------
    >>> print(Condition("damping", True, 10.0, ">=", 3.5, "take kappa >= 3.5").line)
    ('damping', '10', '>= 3.5', 'yes')
    """

    name: str
    held: bool
    value: float
    relation: str
    limit: float
    remedy: str  # what it means that it does not hold

    @property
    def line(self) -> tuple[str, str, str, str]:
        """As a row of a table."""
        return self.name, f"{self.value:.4g}", f"{self.relation} {self.limit:.4g}", "yes" if self.held else "NO"


@dataclass(frozen=True)
class Finding:
    """What the theorem claims, whether its conditions hold, and whether it was seen.

    Examples
    --------
    >>> Finding("right signs", False, "at t = 3", True, "from t = 1 to 7").contradicts
    False
    """

    claim: str
    guaranteed: bool
    predicted: str
    true: bool
    seen: str

    @property
    def contradicts(self) -> bool:
        """Whether it was guaranteed and did not happen."""
        return self.guaranteed and not self.true

    @property
    def line(self) -> tuple[str, str, str, str]:
        """As a row of a table."""
        return self.claim, "yes" if self.guaranteed else "no", self.predicted, self.seen
