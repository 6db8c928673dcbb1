"""When a path ends before its last time: objects that look at the path as it grows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from bregpath._typing import Array
from bregpath._validation import as_array, check_design, check_integer, check_number

__all__ = [
    "AbstractStop",
    "Progress",
    "Result",
    "StopAtDevianceRatio",
    "StopAtPlateau",
    "StopAtTime",
    "StopAtVariables",
    "StopWhenWorse",
    "as_stop",
]


class Result(Enum):
    """How a path ended; the value says what to do about it.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_linear(100, 20, 3, seed=0)
    >>> path = bregpath.trace_path(data.X, data.y, stop=bregpath.StopAtVariables(3))
    >>> path.result is bregpath.Result.STOPPED
    True
    >>> print(path.result)
    The stop rule ended the path; extend(t_max) goes on from there.
    """

    COMPLETED = "The path reached the last requested time."
    STOPPED = "The stop rule ended the path; extend(t_max) goes on from there."
    SATURATED = (
        "Nearly all of the deviance is explained (99.9 %, if `saturation` is not given), so coefficients only grow "
        "from here: choose an earlier t, or pass saturation=None to go on."
    )
    INTERRUPTED = "The path was interrupted and is valid up to its last time; extend(t_max) goes on."
    AT_REST = "The null model fits as well as any: no penalised column is related to y, so none enters."
    INDEFINITE = (
        "From here on the precision matrix would not be positive definite, so the path ends; it is valid up to its "
        'last time. To go further use loss="likelihood" or more rows, and keep one of columns that are copies.'
    )
    UNBOUNDED = (
        "The next model would have no finite coefficients, because its variables separate some classes (or counts of "
        "zero) from the others, so the path ends; it is valid up to its last time. Use a finite kappa to go further."
    )
    STALLED = (
        "The steps became too short to go on; the path is valid up to its last time. Use a larger tol, rescale X, or "
        "lower kappa."
    )

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Progress:
    """What a stop rule sees after each step, in the user's units.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_linear(100, 20, 3, seed=0)
    >>> path = bregpath.trace_path(data.X, data.y, stop=lambda now: now.t > 2 and now.n_active >= 3)
    >>> bool(path.t[-1] > 2), int(path.df[-1]) >= 3
    (True, True)
    """

    t: float
    n_active: int
    deviance_ratio: float
    _read: Callable[[], tuple[Array, Array]] = field(repr=False)

    @property
    def intercept(self) -> Array:
        """Intercept (one for each output) now."""
        return self._read()[0]

    @property
    def coef(self) -> Array:
        """Coefficients now, on the original scale."""
        return self._read()[1]


class AbstractStop(ABC):
    """A rule that is called after each step and returns True to end the path there.

    Any callable that takes a `Progress` and returns a bool does as well. Rules with ``overshoots = True`` end the path
    just *before* the time from which on they object.
    """

    overshoots: bool = False

    @abstractmethod
    def __call__(self, progress: Progress) -> bool:
        """Whether the path ends here."""


@dataclass(frozen=True)
class StopAtTime(AbstractStop):
    """End the path at a time.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_linear(100, 20, 3, seed=0)
    >>> path = bregpath.trace_path(data.X, data.y, stop=bregpath.StopAtTime(3.0))
    >>> bool(path.t[-1] >= 3.0)
    True
    """

    t: float

    def __post_init__(self) -> None:
        check_number("t", self.t)

    def __call__(self, progress: Progress) -> bool:
        return progress.t >= self.t


@dataclass(frozen=True)
class StopAtVariables(AbstractStop):
    """End the path before more than ``n`` columns are active.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_linear(100, 20, 5, seed=0)
    >>> path = bregpath.trace_path(data.X, data.y, stop=bregpath.StopAtVariables(3))
    >>> int(path.df[-1])
    3
    """

    n: int
    overshoots = True

    def __post_init__(self) -> None:
        check_integer("n", self.n, 0)

    def __call__(self, progress: Progress) -> bool:
        return progress.n_active > self.n


@dataclass(frozen=True)
class StopAtDevianceRatio(AbstractStop):
    """End the path once the model explains this share of the deviance.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_linear(100, 20, 3, seed=0)
    >>> path = bregpath.trace_path(data.X, data.y, stop=bregpath.StopAtDevianceRatio(0.5))
    >>> bool(path.deviance_ratio[-1] >= 0.5)
    True
    """

    ratio: float

    def __post_init__(self) -> None:
        check_number("ratio", self.ratio, at_most=1.0)

    def __call__(self, progress: Progress) -> bool:
        return progress.deviance_ratio >= self.ratio


@dataclass(eq=False)
class StopAtPlateau(AbstractStop):
    """End the path once it explains hardly more than it did some time ago.

    glmnet ends where the explained deviance grows by less than 1e-5 of itself from one lambda to the next, which is a
    growth of t by 5 %. A path with a large kappa rests between two entries, so it is given more time.

    Parameters
    ----------
    gain : float, default 1e-3
        Share of the explained deviance that must be gained ...
    growth : float, default 1.5
        ... while t grows by this factor.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_linear(400, 20, 3, seed=0)
    >>> path = bregpath.trace_path(data.X, data.y, stop=bregpath.StopAtPlateau())
    >>> path.result, int(path.df[-1])
    (<Result.STOPPED: ...>, 3)
    """

    gain: float = 1e-3
    growth: float = 1.5
    # Times and shares explained; a tuple, since a copy of the rule that a path makes must not write into it.
    _seen: tuple[tuple[float, float], ...] = field(default=(), init=False, repr=False)

    def __post_init__(self) -> None:
        check_number("gain", self.gain)
        check_number("growth", self.growth, above=1.0)

    def __call__(self, progress: Progress) -> bool:
        now, before = progress.deviance_ratio, progress.t / self.growth
        # Of the times that are long enough ago, the last one is all that will be asked for.
        ago = max((k for k, (t, _) in enumerate(self._seen) if t <= before), default=None)
        self._seen = (*self._seen[ago or 0 :], (progress.t, now))
        return ago is not None and now - self._seen[0][1] < self.gain * now


@dataclass(eq=False)
class StopWhenWorse(AbstractStop):
    """End the path when a validation loss has not improved for a while.

    Parameters
    ----------
    X, y : array-like
        Held-out data, coded as the data of the path: numbers, also for labels (-1 and 1 for two classes).
    score : callable
        ``score(y, eta)`` -> a number to be minimised, ``eta`` the linear predictor; the mean squared error by default,
        which is one of models with a single output.
    patience : int, default 10
        Checks without improvement before the path ends.
    every : float, default 1.05
        Growth of t between two checks.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_linear(120, 60, 5, snr=1.0, seed=3)
    >>> rule = bregpath.StopWhenWorse(data.X[60:], data.y[60:], patience=3)
    >>> bregpath.trace_path(data.X[:60], data.y[:60], stop=rule).result
    <Result.STOPPED: ...>
    """

    X: Any
    y: Any
    score: Callable[[Array, Array], float] | None = None
    patience: int = 10
    every: float = 1.05
    _best: float = field(default=np.inf, init=False, repr=False)
    _waited: int = field(default=0, init=False, repr=False)
    _next: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        self.X, self.y = check_design(self.X), as_array("y", self.y)
        if len(self.y) != self.X.shape[0]:
            raise ValueError(f"`X` and `y` differ in length: {self.X.shape[0]} rows and {len(self.y)} responses.")
        if self.score is None and not (self.y.dtype.kind in "fiub" and np.isfinite(self.y).all()):
            raise ValueError(
                "`y` of StopWhenWorse must hold finite numbers; code labels as the loss does, or give a `score`."
            )

    def __call__(self, progress: Progress) -> bool:
        if progress.t < self._next:
            return False
        self._next = progress.t * self.every
        coef, n_columns = progress.coef, self.X.shape[1]
        if len(coef) != n_columns:
            raise ValueError(f"`X` of StopWhenWorse has {n_columns} columns, the path is traced on {len(coef)}.")
        if self.score is None and coef.ndim > 1:
            raise ValueError(f"StopWhenWorse needs a `score` for models of {coef.shape[1]} outputs.")
        eta = np.asarray(self.X @ coef) + progress.intercept
        loss = float(np.mean((self.y - eta) ** 2)) if self.score is None else float(self.score(self.y, eta))
        if loss < self._best:
            self._best, self._waited = loss, 0
        else:
            self._waited += 1
        return self._waited >= self.patience


def as_stop(stop: Any) -> Callable[[Progress], bool] | None:
    """A stop rule from None, a rule, a callable, or a number of t."""
    if isinstance(stop, AbstractStop):
        return copy(stop)  # a rule may remember what it saw; the next path starts with a fresh one
    if stop is None or callable(stop):
        return stop
    if isinstance(stop, int | float) and not isinstance(stop, bool):
        return StopAtTime(check_number("stop", stop))
    raise TypeError(f"`stop` must be a time, a stop rule such as StopAtVariables(10), or a callable; found {stop!r}.")
