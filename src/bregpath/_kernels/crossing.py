"""When a step of exponentials gets to the next event, in NumPy."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from bregpath._typing import Array, BoolArray, IntArray

__all__ = ["Bounds", "Course", "first_event"]

MAX_ROOT = 100  # evaluations to find an event ...
ROUNDING = 1e-15  # ... to within this share of its time


class Course(Protocol):
    """Where coordinates are at times after the start of a step."""

    def z(self, tau: Array) -> Array: ...

    def only(self, some: IntArray) -> Course: ...


class Bounds(NamedTuple):
    """Which coordinates move in a step, and between which values each can go until that changes."""

    moves: BoolArray
    low: Array
    high: Array

    def excess(self, z: Array) -> Array:
        """How far coordinates are beyond."""
        return np.maximum(z - self.high, self.low - z)

    def wait(self, z: Array, slope: Array) -> Array:
        """When coordinates would be there at their speed."""
        ahead = np.where(slope > 0, self.high - z, self.low - z)
        return np.divide(ahead, slope, out=np.full_like(z, np.inf), where=slope != 0)

    def take(self, some: IntArray) -> Bounds:
        return Bounds(*(x[some] for x in self))


def first_event(course: Course, bounds: Bounds, low: float, high: float, tie: float) -> float:
    """When a coordinate first gets beyond its bounds; one does before ``high``, none is at ``low``.

    Beyond at the event of those that are beyond at ``high`` may be one that has come back by then: that was earlier.
    """
    within = 0.0
    while True:
        z = course.z(np.array([high]))[0]
        crossing = np.flatnonzero(bounds.excess(z) > within * np.abs(z))
        event = _first_crossing(course, bounds, crossing, low, high) if len(crossing) else high
        if within and event == high:  # what is still beyond is rounding
            return high
        high, within = event, tie


def _first_crossing(course: Course, bounds: Bounds, crossing: IntArray, low: float, high: float) -> float:
    """When the first of some coordinates that are beyond their bounds at ``high``, and not at ``low``, gets there.

    False position, in which an end that stays counts half (Illinois).
    """
    course, bounds = course.only(crossing), bounds.take(crossing)

    def beyond(tau: float) -> float:
        return float(np.max(bounds.excess(course.z(np.array([tau]))[0])))

    at_low, at_high, side = min(beyond(low), 0.0), beyond(high), 0
    for _ in range(MAX_ROOT):
        tau = high - at_high * (high - low) / (at_high - at_low)
        if not low < tau < high:
            tau = 0.5 * (low + high)
        at = beyond(tau)
        if at >= 0:
            high, at_high, at_low, side = tau, at, at_low * (0.5 if side > 0 else 1.0), 1
        else:
            low, at_low, at_high, side = tau, at, at_high * (0.5 if side < 0 else 1.0), -1
        if at == 0 or high - low <= ROUNDING * high:
            break
    return high
