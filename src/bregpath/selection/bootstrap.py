"""Paths on resampled rows, and what they say about coefficients: intervals and inclusion frequencies."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from bregpath import _interrupts, _validation
from bregpath._typing import Array, BoolArray, IntArray
from bregpath.path import Path
from bregpath.selection._again import read_again
from bregpath.selection._threads import threads
from bregpath.trace import trace_path

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BootstrapIntervals", "RowTracer", "bootstrap_intervals", "replicate_intervals"]

MIN_ROWS = 4  # halves of two rows: below that nothing can be resampled
MAX_DRAWS = 1000  # attempts to draw rows of every class


# --- replicates: the path on some rows -----------------------------------------------------------------------


class PathLike(Protocol):
    """What a replicate must offer to `replicate_intervals`: its models at any time up to its end."""

    @property
    def t(self) -> Array:
        """Times of the path; the last is its end."""

    def at(self, t: float) -> Any:
        """A model with an attribute ``coef``, an array of any shape."""


@dataclass(frozen=True)
class RowTracer:
    """Traces a regression on some of its rows: ``tracer(rows)`` is the path on these rows.

    Rows may come several times; they then count as often. Columns of a data frame are encoded once, as in the path
    on all rows, so that all replicates have the same columns.
    """

    X: Any
    y: Array
    weights: Array | None
    offset: Array | None
    labels: Array | None
    options: dict[str, Any]

    @classmethod
    def like(cls, path: Path, X: Any, y: Any, options: dict[str, Any]) -> RowTracer:
        """A tracer of replicates of ``path``, which `trace_path` made of the same arguments."""
        again, weights = read_again(path, X, y, options), options.get("sample_weight")
        n = len(again.y)
        if weights is not None:
            weights = _validation.check_weights(weights, n) * n
        labels = None if path.loss.classes is None else np.unique(again.y, return_inverse=True)[1].ravel()
        return cls(again.X, again.y, weights, again.offset, labels, again.options)

    @property
    def rows(self) -> IntArray:
        """The rows that count."""
        return np.arange(len(self.y)) if self.weights is None else np.flatnonzero(self.weights > 0)

    def __call__(self, rows: IntArray, **limits: Any) -> Path:
        distinct, count = np.unique(rows, return_counts=True)
        weights = count.astype(float) if self.weights is None else count * self.weights[distinct]
        offset = None if self.offset is None else self.offset[distinct]
        return trace_path(
            self.X[distinct], self.y[distinct], sample_weight=weights, offset=offset, **self.options, **limits
        )


def names_for(names: Sequence[str] | None, path: Any, size: int) -> list[str] | None:
    """Names of ``size`` items: those given, or what the path says of columns, nodes, or states of nodes; else None."""
    given = names is not None
    for found in (names,) if given else (getattr(path, "names", None), getattr(path, "feature_names", None)):
        items = [] if found is None else list(map(str, found))
        if len(items) == size and items:
            return items
        levels = getattr(getattr(path, "layout", None), "levels", ())
        states = [f"{item}[{level}]" for item, labels in zip(items, levels, strict=False) for level in labels]
        if len(states) == size and states:
            return states
    if given:
        raise ValueError(f"`names` must have one entry for each of {size} columns or nodes, found {len(names or ())}.")
    return None


def make_generator(seed: Any) -> np.random.Generator:
    """A generator of its own: data drawn by ``default_rng(seed)`` must not meet the same numbers again here."""
    if isinstance(seed, np.random.Generator):
        return seed
    try:
        return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
    except (TypeError, ValueError):
        raise ValueError(f"`seed` must be a whole number >= 0, a Generator or None, found {seed!r}.") from None


def check_rows(rows: IntArray | int) -> IntArray:
    """Rows to draw from, at least four."""
    pool = np.arange(rows) if isinstance(rows, numbers.Integral) else np.asarray(rows)
    if len(pool) < MIN_ROWS:
        raise ValueError(f"`X` has {len(pool)} rows that count; resampling needs at least {MIN_ROWS}.")
    return pool


def check_count(name: str, value: Any, least: int) -> int:
    """A whole number that is large enough."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise ValueError(f"`{name}` must be a whole number of at least {least}, found {value!r}.")
    return int(value)


def check_share(name: str, value: Any, low: float, high: float) -> float:
    """A number strictly above ``low`` and below ``high``."""
    inside = isinstance(value, numbers.Real) and not isinstance(value, bool) and low < float(value) < high
    if not inside:
        raise ValueError(f"`{name}` must be a number above {low:g} and below {high:g}, found {value!r}.")
    return float(value)


def draw_with_all_classes(draw: Callable[[], tuple[IntArray, ...]], labels: Array | None) -> tuple[IntArray, ...]:
    """Sets of rows, drawn again until each holds every class: a model can not be fitted to the others."""
    if labels is None:
        return draw()
    n_classes = len(np.unique(labels))
    for _ in range(MAX_DRAWS):
        drawn = draw()
        if all(len(np.unique(labels[rows])) == n_classes for rows in drawn):
            return drawn
    rarest = int(np.bincount(labels).min())
    raise ValueError(
        f"`y` has a class with {rarest} row(s) only, and {MAX_DRAWS} draws of rows missed a class; merge rare classes."
    )


def draw_halves(rows: IntArray, n_replicates: int, pairs: bool, labels: Any, rng: Any) -> list[IntArray]:
    """Random halves, the second of each pair from the rows that the first left; all drawn before any path is traced."""
    codes = None if labels is None else np.unique(labels, return_inverse=True)[1].ravel()
    half = len(rows) // 2

    def draw() -> tuple[IntArray, ...]:
        shuffled = rng.permutation(rows)
        first, second = np.sort(shuffled[:half]), np.sort(shuffled[half : 2 * half])
        return (first, second) if pairs else (first,)

    drawn = [draw_with_all_classes(draw, codes) for _ in range(n_replicates // 2 if pairs else n_replicates)]
    return [part for parts in drawn for part in parts]


# --- intervals -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class BootstrapIntervals:
    """Percentile intervals of the coefficients at one time, and how often each was in the model.

    Attributes
    ----------
    t : float
        The time at which all replicates were read.
    level : float
        Share of the replicates inside an interval.
    estimate : ndarray of shape (p,), (p, q), or that of the coefficients of a graph
        Coefficients on all rows.
    lower, upper : ndarray, same shape
    frequency : ndarray, same shape
        Share of the replicates in which the coefficient is not zero.
    samples : ndarray of shape (n_replicates, ...)
        Coefficients of all replicates.
    names : list of str or None
        Names of the columns.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_linear(100, 20, 3, seed=0)
    >>> found = bregpath.bootstrap_intervals(data.X, data.y, 5.0, n_replicates=20)
    >>> found.lower.shape, bool((found.lower <= found.upper).all())
    ((20,), True)
    """

    t: float
    level: float
    estimate: Array
    lower: Array
    upper: Array
    frequency: Array
    samples: Array = field(repr=False)
    names: Sequence[str] | None = None

    @property
    def n_replicates(self) -> int:
        return len(self.samples)

    @property
    def excludes_zero(self) -> BoolArray:
        """Coefficients whose interval does not hold zero."""
        return (self.lower > 0) | (self.upper < 0)

    def to_frame(self) -> pd.DataFrame:
        """One row a coefficient: estimate, lower, upper, frequency (needs pandas)."""
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("to_frame() needs pandas: pip install pandas") from None
        cells, labels = self._cells
        columns = ("estimate", "lower", "upper", "frequency")
        return pd.DataFrame({name: getattr(self, name).ravel()[cells] for name in columns}, index=labels)

    @property
    def _cells(self) -> tuple[IntArray, list[str]]:
        """Positions of the coefficients to list, each edge of a graph once, and their names."""
        shape = self.estimate.shape
        names = list(self.names or (f"x{j}" for j in range(shape[0])))
        if len(shape) == 1:
            return np.arange(shape[0]), names
        if len(shape) == 2 and shape[0] == shape[1] and np.array_equal(self.samples, self.samples.swapaxes(1, 2)):
            j, k = np.triu_indices(shape[0], 1)
            return np.ravel_multi_index((j, k), shape), [f"{names[a]} - {names[b]}" for a, b in zip(j, k, strict=True)]
        return np.arange(self.estimate.size), [f"{names[i[0]]}{list(i[1:])}" for i in np.ndindex(shape)]

    def __repr__(self) -> str:
        head = f"Bootstrap at t = {self.t:.4g}, {self.n_replicates} replicates, {self.level:.0%} percentile intervals"
        cells, labels = self._cells
        order = np.argsort(-self.frequency.ravel()[cells], kind="stable")[:10]
        width = max((len(labels[i]) for i in order), default=0)
        lines = [f"{'':>{width}}{'estimate':>11}{'lower':>11}{'upper':>11}{'included':>10}"]
        for i in order:
            values = "".join(f"{x.ravel()[cells[i]] + 0.0:>11.4g}" for x in (self.estimate, self.lower, self.upper))
            lines.append(f"{labels[i]:>{width}}{values}{self.frequency.ravel()[cells[i]]:>10.2f}")
        left = len(cells) - len(order)
        return "\n".join([head, *lines, *([f"... and {left} more"] if left else [])])


def bootstrap_intervals(
    X: Any,
    y: Any,
    t: float,
    *,
    n_replicates: int = 200,
    level: float = 0.95,
    seed: Any = 0,
    n_jobs: int | None = None,
    **options: Any,
) -> BootstrapIntervals:
    r"""Nonparametric bootstrap of the coefficients at a fixed time.

    Rows are drawn with replacement, the path is traced on each draw and read at the same t. With
    :math:`\beta^{(b)}_j(t)` the coefficients of replicate b and B replicates,

    .. math:: \Big[ Q_{(1 - c)/2}\big(\beta^{(b)}_j\big),\; Q_{(1 + c)/2}\big(\beta^{(b)}_j\big) \Big], \qquad
              f_j = \frac{1}{B} \#\{b : \beta^{(b)}_j \ne 0\}

    are the percentile interval of level c and the inclusion frequency.

    They show how much the *estimate at t* moves from sample to sample. They are no confidence intervals of the true
    coefficients: what shrinkage is left at t is in all replicates alike, an interval that ends at zero exactly is
    usual, and the choice of t is taken as given.

    Parameters
    ----------
    X, y
        As in `trace_path`.
    t : float
        Time at which the models are read, for example ``cross_validate(X, y).t``. A replicate whose path ends earlier
        (it explains all its rows) is read at its end.
    n_replicates : int, default 200
    level : float, default 0.95
    seed : int, numpy.random.Generator or None, default 0
        The draws, and so the result, do not depend on ``n_jobs``.
    n_jobs : int, optional
        Number of threads over replicates; -1 is one for each processor.
    **options
        Keyword arguments of `trace_path`. Those that say where a path is read or ended (``t_ratio``, ``n_times``,
        ``stop``) are not used.

    Returns
    -------
    BootstrapIntervals

    See Also
    --------
    replicate_intervals : The same for anything that can be traced on rows, such as a graph.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_linear(100, 10, 3, seed=0)
    >>> boot = bregpath.bootstrap_intervals(data.X, data.y, t=3.0, n_replicates=50)
    >>> boot.excludes_zero.nonzero()[0].tolist()
    [0, 1, 2]
    """
    t = _validation.check_number("t", t)
    given = {key: value for key, value in options.items() if key not in ("t_ratio", "n_times", "stop")}
    with _interrupts.all_or_nothing():
        path = trace_path(X, y, t=[t], **given)
    tracer = RowTracer.like(path, X, y, options)
    return replicate_intervals(
        lambda rows: tracer(rows, t=[t]), tracer.rows, t, full=path, n_replicates=n_replicates, level=level, seed=seed,
        n_jobs=n_jobs, labels=tracer.labels, names=path.feature_names,
    )  # fmt: skip


def replicate_intervals(
    trace: Callable[[IntArray], PathLike],
    rows: IntArray | int,
    t: float,
    *,
    full: PathLike | None = None,
    n_replicates: int = 200,
    level: float = 0.95,
    seed: Any = 0,
    n_jobs: int | None = None,
    labels: Any = None,
    names: Sequence[str] | None = None,
) -> BootstrapIntervals:
    """Bootstrap of anything that can be traced on some rows: edges of a graph, groups, a user's own model.

    Parameters
    ----------
    trace : callable
        ``trace(rows)`` returns the path on these rows, which may repeat: an object with times ``t`` and with ``at(t)``
        whose ``coef`` is an array.
    rows : int or array
        Number of rows, or the rows to draw from.
    t : float
        Time at which the replicates are read.
    full : optional
        The path on all rows, if it is there already.
    labels : array-like, optional
        Class of each row; then every draw holds every class.
    names : sequence of str, optional
        Names of the columns, or of the nodes; by default those that the path has.
    n_replicates, level, seed, n_jobs
        As in `bootstrap_intervals`.

    Returns
    -------
    BootstrapIntervals

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_linear(100, 5, 2, seed=0)
    >>> def trace(rows):
    ...     return bregpath.trace_path(data.X[rows], data.y[rows])
    >>> replicate_intervals(trace, 100, t=2.0, n_replicates=30).frequency[:2]
    array([1., 1.])
    """
    t = _validation.check_number("t", t)
    n_replicates = check_count("n_replicates", n_replicates, 2)
    level = check_share("level", level, 0.0, 1.0)
    rows = check_rows(rows)
    labels = None if labels is None else np.unique(labels, return_inverse=True)[1].ravel()
    rng = make_generator(seed)
    draws = [
        draw_with_all_classes(lambda: (np.sort(rng.choice(rows, len(rows))),), labels)[0] for _ in range(n_replicates)
    ]
    with threads(n_jobs) as each:
        path = each(trace, [rows])[0] if full is None else full
        estimate = _coef_at(path, t)
        samples = np.stack(each(lambda draw: _coef_at(trace(draw), t), draws))
    names = names_for(names, path, len(estimate))
    lower, upper = np.quantile(samples, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return BootstrapIntervals(t, level, estimate, lower, upper, np.mean(samples != 0, axis=0), samples, names)


def _coef_at(path: PathLike, t: float) -> Array:
    """Coefficients at t; a path that ended before stays where it ended."""
    return np.asarray(path.at(min(t, float(path.t[-1]))).coef) + 0.0  # no minus zeros
