"""Values that are made when somebody first asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from threading import RLock
from typing import Any, Generic, TypeVar

__all__ = ["OnDemand"]

K = TypeVar("K")
V = TypeVar("V")


class OnDemand(Mapping[K, V], Generic[K, V]):
    """A mapping of keys to values, each made once, by a function of its own; pickles and copies have them all.

    Where making is interrupted nothing is kept, and the function is called again by whoever asks next.

    Examples
    --------
    >>> numbers = OnDemand({"two": lambda: 2, "three": lambda: 3})
    >>> numbers["three"], len(numbers), "four" in numbers
    (3, 2, False)
    """

    def __init__(self, make: Mapping[K, Callable[[], V]]) -> None:
        self._keys, self._make, self._made = tuple(make), dict(make), dict[K, V]()
        self._lock = RLock()

    def __getitem__(self, key: K) -> V:
        with self._lock:
            if key not in self._made:
                self._made[key] = self._make[key]()
                del self._make[key]  # with what it holds
            return self._made[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys  # without making it

    def __len__(self) -> int:
        return len(self._keys)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)
