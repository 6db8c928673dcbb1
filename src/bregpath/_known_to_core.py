"""What a loss, a penalty or a block of columns says of itself to the compiled core."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

__all__ = ["Kernel", "is_known_as", "only_for_its_class"]


class Kernel(NamedTuple):
    """The name of formulas that the compiled core has, and the numbers in them."""

    name: str
    numbers: dict[str, Any]


def is_known_as(part: Any, *names: str) -> bool:
    """Whether the compiled core has the very formulas of a loss, a penalty or a block, under one of some names."""
    kernel = part.kernel()
    return kernel is not None and kernel.name in names


def only_for_its_class(kernel: Callable[[Any], Kernel | None]) -> Callable[[Any], Kernel | None]:
    """A method `kernel` that holds for the class it is defined in: a subclass may have changed the formulas.

    Examples
    --------
    >>> class Half:
    ...     @only_for_its_class
    ...     def kernel(self):
    ...         return Kernel("half", {"factor": 0.5})
    >>> class Third(Half):
    ...     factor = 1 / 3
    >>> Half().kernel(), Third().kernel()
    (Kernel(name='half', numbers={'factor': 0.5}), None)
    """

    @wraps(kernel)
    def of_this_class(self: Any) -> Kernel | None:
        return kernel(self) if vars(type(self)).get("kernel") is of_this_class else None

    return of_this_class
