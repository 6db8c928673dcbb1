"""Bootstrap: what paths on resampled rows say about coefficients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bregpath import _interrupts, _validation
from bregpath._frames import import_pandas
from bregpath._typing import Array, BoolArray, IntArray
from bregpath.selection.checks import check_count, check_share, make_generator
from bregpath.selection.replicates import (
    Trace,
    check_rows,
    draw_bootstraps,
    lacks_labels,
    names_for,
    read_replicates,
    traces_of,
)
from bregpath.structures.study import read_study
from bregpath.study import AbstractStudy

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BootstrapIntervals", "bootstrap_intervals", "intervals_of", "replicate_intervals"]


Read = Callable[[Any, float], Array]  # of a path at a time


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
    lower, upper, frequency : ndarray, same shape
        Ends of the intervals, and share of the replicates in which the coefficient is not zero.
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
        cells, labels = self._cells
        columns = {name: getattr(self, name).ravel()[cells] for name in ("estimate", "lower", "upper", "frequency")}
        return import_pandas("to_frame()").DataFrame(columns, index=labels)

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
    X: Any, y: Any, t: float, *, n_replicates: int = 200, level: float = 0.95, seed: Any = 0,
    n_jobs: int | None = None, **options: Any,
) -> BootstrapIntervals:  # fmt: skip
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
    n_jobs : int, optional
        Number of threads over replicates; -1 is one for each processor. The result does not depend on it.
    **options
        Keyword arguments of `trace_path`. Those that say where a path is read or ended (``t_ratio``, ``n_times``,
        ``stop``) are not used.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_linear(100, 10, 3, seed=0)
    >>> boot = bregpath.bootstrap_intervals(data.X, data.y, t=3.0, n_replicates=50)
    >>> boot.excludes_zero.nonzero()[0].tolist()
    [0, 1, 2]
    """
    study = read_study(X, y, **options)
    return intervals_of(study, t, n_replicates=n_replicates, level=level, seed=seed, n_jobs=n_jobs)


def intervals_of(
    study: AbstractStudy, t: float, *, n_replicates: int = 200, level: float = 0.95, seed: Any = 0,
    n_jobs: int | None = None, path: Any = None, read: Read | None = None,
) -> BootstrapIntervals:  # fmt: skip
    """`bootstrap_intervals` of any study: of the coefficients of a regression, or of a graph.

    ``path`` is that of all rows, if it is there already, and ``read(path, t)`` another reading of it than coefficients.
    """
    t, level = _validation.check_number("t", t), check_share("level", level)
    rows, number = check_rows(study.pool), check_count("n_replicates", n_replicates, 2)
    draws = draw_bootstraps(rows, number, study.lacking, make_generator(seed))
    study = study.with_options(t=[t], stop=None)
    if path is None:
        with _interrupts.all_or_nothing():
            path = study.trace()
    return _read_intervals(traces_of(study, draws, np.array([t]), n_jobs), path, t, level, n_jobs, read=read)


def replicate_intervals(
    trace: Callable[[IntArray], Any], rows: IntArray | int, t: float, *, full: Any = None, n_replicates: int = 200,
    level: float = 0.95, seed: Any = 0, n_jobs: int | None = None, labels: Any = None,
    names: Sequence[str] | None = None,
) -> BootstrapIntervals:  # fmt: skip
    """Bootstrap of anything that can be traced on some rows: edges of a graph, groups, a user's own model.

    Parameters
    ----------
    trace : callable
        ``trace(rows)`` returns the path on these rows, which may repeat: an object with times ``t`` and with ``at(t)``
        whose ``coef`` is an array.
    t : float
        Time at which the replicates are read.
    full : optional
        The path on all rows, if it is there already.
    rows, labels, names
        As in `replicate_stability`.
    n_replicates, level, seed, n_jobs
        As in `bootstrap_intervals`.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_linear(100, 5, 2, seed=0)
    >>> def trace(rows):
    ...     return bregpath.trace_path(data.X[rows], data.y[rows])
    >>> replicate_intervals(trace, 100, t=2.0, n_replicates=30).frequency[:2]
    array([1., 1.])
    """
    t, level = _validation.check_number("t", t), check_share("level", level)
    number, rows = check_count("n_replicates", n_replicates, 2), check_rows(rows)
    draws = draw_bootstraps(rows, number, lacks_labels(labels), make_generator(seed))
    traces = [(lambda until, some=some: trace(some)) for some in draws]
    if full is None:
        (full,) = read_replicates([lambda until: trace(rows)], t, lambda path: path, n_jobs)
    return _read_intervals(traces, full, t, level, n_jobs, names)


def _read_intervals(
    traces: Iterable[Trace], path: Any, t: float, level: float, n_jobs: int | None, names: Sequence[str] | None = None,
    read: Read | None = None,
) -> BootstrapIntervals:  # fmt: skip
    def values(path: Any) -> Array:
        time = min(t, float(path.t[-1]))  # a path that ended before stays where it ended
        return np.asarray(path.at(time).coef if read is None else read(path, time)) + 0.0  # no minus zeros

    estimate = values(path)
    samples = np.stack(read_replicates(traces, t, values, n_jobs))
    names = names_for(names, path, len(estimate))
    lower, upper = np.quantile(samples, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return BootstrapIntervals(t, level, estimate, lower, upper, np.mean(samples != 0, axis=0), samples, names)
