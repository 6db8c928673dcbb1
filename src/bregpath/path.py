"""A regularisation path: a frozen record that can be read at any time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from bregpath import _frames, _validation
from bregpath._records import changed
from bregpath._typing import Array, BoolArray, IntArray
from bregpath.flow.stop import Result
from bregpath.flow.trajectory import Trajectory
from bregpath.losses import AbstractLoss
from bregpath.point import Naming, Point
from bregpath.units import Units

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import csr_array

__all__ = ["Complexity", "Path", "Point", "Stats", "describe", "explained", "of_its", "percent"]


def explained(deviance: Array, null_deviance: float) -> Array:
    """Share of the deviance that models explain; nothing where there is nothing to explain."""
    return 1.0 - deviance / null_deviance if null_deviance > 0 else np.zeros_like(deviance)


def percent(share: float) -> str:
    """A share in per cent, with two digits and without a sign before zero."""
    return f"{round(100 * share, 2) + 0.0:.2f}"


class Complexity(NamedTuple):
    """What information criteria pay for at each time of a path."""

    n_chosen: Array  # variables or edges that the search has found
    parameters: Array
    n_sightings: int  # how often the likelihood sees a parameter
    log_candidates: float  # logarithm of the number of those that were searched


@dataclass(frozen=True)
class Stats:
    """What a path cost; ``models`` is the number of quadratic models that took the place of the loss."""

    steps: int
    gradients: int
    column_products: int
    refreshes: int
    working_columns: int
    seconds: float
    models: int = 0


@dataclass(frozen=True, eq=False)
class Path:
    """Sparse models of all sizes, indexed by time ``t``, from the null model on.

    Small ``t`` is strong regularisation; ``t`` plays the part of 1 / lambda in the lasso. A path is made by
    `bregpath.trace_path`.

    Attributes
    ----------
    t : ndarray of shape (n_times,)
        The requested times up to the end of the path.
    coef : ndarray of shape (n_times, p) or (n_times, p, q)
        Coefficients on the original scale.
    intercept : ndarray of shape (n_times,) or (n_times, q)
    deviance, deviance_ratio : ndarray of shape (n_times,)
        Deviance (mean over rows), and the share of the null deviance that is explained.
    df : ndarray of shape (n_times,)
        Number of non-zero coefficients.
    entry_times, exit_times : ndarray of shape (p,)
        Exact time at which each column first entered (``inf``: never), and last left for good (``inf``: it did not).
    result : Result
        How the path ended; its text is the advice.
    stats : Stats
        Steps, gradients, column products and seconds.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_linear(100, 10, 3, seed=0)
    >>> path = bregpath.trace_path(data.X, data.y)
    >>> path.support(2 * path.t[0]).tolist()
    [0, 1, 2]
    """

    t: Array
    null_deviance: float
    result: Result
    stats: Stats
    loss: AbstractLoss
    units: Units
    trajectory: Trajectory = field(repr=False)
    encoder: _frames.ColumnEncoder | None = field(default=None, repr=False)
    counts: ClassVar[str] = "variables"  # what enters, for figures
    value_name: ClassVar[str] = "Coefficient"
    has_likelihood: ClassVar[bool] = True  # or a loss that stands for one
    # Or what finds it: few ask for it, and it may cost a tenth of what the path does.
    _deviance: Array | Callable[[Path], Array] = field(kw_only=True, repr=False)
    # Continues the path to a later time; lost when the path is saved or pickled, because it holds the data.
    _continue: Callable[[Path, float], Path] | None = field(default=None, repr=False)

    # --- reading ---------------------------------------------------------------------------------------------

    def at(self, t: float) -> Point:
        """The model at any one time up to the end of the path, exactly: no interpolation of coefficients, exact zeros.

        Many models are read at once by `read`. Of a record beyond 128 MB coefficients are kept to a tenth of `tol`, and
        times at which they enter and leave exactly.
        """
        t = _validation.check_time(t)
        intercepts, columns, values = self.read(np.array([t]))
        intercept, coef = intercepts[0], np.zeros((self.n_features, self.n_outputs))
        coef[columns] = values[0]
        naming = self.naming if len(intercept) == self.n_outputs else None
        return Point(t, float(intercept[0]) if len(intercept) == 1 else intercept, self._outputs(coef), naming)

    def support(self, t: float) -> Array:
        """Indices of the columns with a non-zero coefficient at ``t``."""
        coef = self.at(t).coef
        return np.flatnonzero(coef if coef.ndim == 1 else coef.any(axis=1))

    def decision_function(self, X: Any, t: float, offset: Any = None) -> Array:
        """Linear predictor at ``t``: shape (n,), or (n, q) for several outputs."""
        X = self.encode(X)
        self._require_intercepts()
        point = self.at(t)
        return _validation.add_offset(np.asarray(X @ point.coef) + point.intercept, offset, self.n_outputs)

    def _require_intercepts(self) -> None:
        """Refuse what makes sense only for a linear predictor ``X @ coef + intercept``."""
        found = len(self.trajectory.alpha_null)
        if found != self.n_outputs:
            raise ValueError(
                f"This path has {found} unpenalised parameters that are not intercepts of its {self.n_outputs} "
                "output(s); read them with at(t).intercept and predict with the store they belong to."
            )

    def predict(self, X: Any, t: float, offset: Any = None) -> Array:
        """Mean response at ``t``: values, rates, or the probability of the second class (of every class if several)."""
        return self.loss.predict(self.decision_function(X, t, offset))

    def encode(self, X: Any, n_features: int | None = None) -> Any:
        """New data as the matrix the path was traced on: frames are expanded, shapes checked."""
        n_features = self.n_features if n_features is None else n_features
        if self.encoder is not None and _frames.is_frame(X):
            return self.encoder.encode(X)
        X = _validation.check_design(X)
        if X.shape[1] != n_features:
            raise ValueError(f"`X` has {X.shape[1]} columns, the path was traced on {n_features}.")
        return X

    # --- tables ----------------------------------------------------------------------------------------------

    @cached_property
    def table(self) -> tuple[Array, IntArray, Array]:
        """What `read` returns at the times of the path."""
        return self._restored(*self.models)

    @cached_property
    def models(self) -> tuple[Array, IntArray, Array]:
        """The same in the units of the flow, as `bregpath.flow.trajectory.Trajectory.read` returns them."""
        return self.trajectory.read(np.minimum(self.t * self.units.y_unit, self._inside_end))

    def read(self, times: Array) -> tuple[Array, IntArray, Array]:
        """Many models at once: intercepts (T, q), the columns ever active (E,), and their coefficients (T, E, q)."""
        return self._restored(*self.trajectory.read(self._inside(times)))

    def _restored(self, alpha: Array, columns: IntArray, beta: Array) -> tuple[Array, IntArray, Array]:
        """What was read from the trajectory, in the user's units."""
        intercept, coef = self.units.restore(alpha, columns, beta)
        return intercept + 0.0, columns, coef + 0.0  # no negative zeros

    @cached_property
    def coef(self) -> Array:
        _, columns, values = self.table
        out = np.zeros((len(self.t), self.n_features, self.n_outputs))
        out[:, columns] = values
        return self._outputs(out)

    def _outputs(self, coef: Array) -> Array:
        """Without the last axis, where there is one output only."""
        return coef[..., 0] if self.n_outputs == 1 else coef

    @cached_property
    def coef_sparse(self) -> csr_array:
        """`coef` as a scipy.sparse array of shape (n_times, p * q), for paths over very many columns."""
        from scipy.sparse import csr_array

        _, columns, values = self.table
        q, order = self.n_outputs, np.argsort(columns)
        flat = values[:, order].reshape(len(self.t), -1)
        column = (columns[order][:, None] * q + np.arange(q)).ravel()
        filled = (flat != 0).ravel().nonzero()[0]  # far faster of truths than of numbers, and of one axis than of two
        ends = filled.searchsorted(len(column) * np.arange(len(self.t) + 1))
        values, column = flat.ravel().take(filled), np.tile(column, len(self.t)).take(filled)
        return csr_array((values, column, ends), shape=(len(self.t), self.n_features * q))

    @cached_property
    def intercept(self) -> Array:
        out = self.table[0]
        return out[:, 0] if out.shape[1] == 1 else out

    @cached_property
    def deviance(self) -> Array:
        return self._deviance(self) if callable(self._deviance) else self._deviance

    @property
    def deviance_ratio(self) -> Array:
        return explained(self.deviance, self.null_deviance)

    @cached_property
    def df(self) -> Array:
        return np.count_nonzero(self.table[2], axis=(1, 2))

    @property
    def complexity(self) -> Complexity:
        """What information criteria pay for; see `bregpath.selection.information_criterion`."""
        free = 0  # intercepts: none where all are zero, and one less than classes where only differences count
        if self.intercept.any():
            free = max(self.n_outputs - 1, 1) if self.loss.is_classifier else self.n_outputs
        return Complexity(self.df, self.df + free, 1, float(np.log(self.n_features * self.n_outputs)))

    @cached_property
    def events(self) -> tuple[Array, Array, BoolArray]:
        """Column, exact time and direction (True: entered) of every change of the support, in order of time."""
        columns, times, entered = self.trajectory.event_times()
        kept = times <= self._inside_end
        return columns[kept], times[kept] / self.units.y_unit, entered[kept]

    @property
    def event_times(self) -> Array:
        """Times at which a coefficient enters or leaves, in order."""
        return self.events[1]

    @cached_property
    def entry_times(self) -> Array:
        out = np.full(self.n_features, np.inf)
        columns, times, entered = self.events
        for j, time in zip(columns[entered][::-1], times[entered][::-1], strict=True):
            out[j] = time  # the earliest is written last
        free = np.any(self.trajectory.beta_null != 0, axis=1)
        out[free] = 0.0
        return out

    @cached_property
    def exit_times(self) -> Array:
        out = np.full(self.n_features, np.inf)
        for j, time, entered in zip(*self.events, strict=True):
            out[j] = np.inf if entered else time
        return out

    def to_frame(self) -> pd.DataFrame:
        """One row a time: t, df, deviance ratio, intercept(s), and the columns that were ever active (needs pandas)."""
        table: dict[str, Array] = {"t": self.t, "df": self.df, "deviance_ratio": self.deviance_ratio}
        labels = [""] if self.n_outputs == 1 else [f"[{c}]" for c in self.output_names]
        intercept = self.intercept.reshape(len(self.t), -1)
        ever = np.sort(self.trajectory.order)
        coef = self.coef.reshape(len(self.t), self.n_features, -1)
        one_an_output = intercept.shape[1] == len(labels)
        for k, alpha in enumerate(intercept.T):
            table[f"intercept{labels[k] if one_an_output else f'[{k}]'}"] = alpha
        for j in ever:
            for k, label in enumerate(labels):
                table[f"{self.feature_names[j]}{label}"] = coef[:, j, k]
        return _frames.import_pandas("to_frame()").DataFrame(table)

    # --- going on, keeping -----------------------------------------------------------------------------------

    def extend(self, t_max: float) -> Path:
        """The same path, traced on to ``t_max``; equal to having asked for more at once."""
        if self._continue is None:
            raise ValueError("A path that was loaded or unpickled has no data and cannot be extended; trace it anew.")
        end = _validation.check_number("t_max", t_max)
        if not self.t[-1] < end:
            raise ValueError(f"`t_max` must lie beyond the end of the path, t={self.t[-1]:g}; found {t_max!r}.")
        return self._continue(self, end)

    def without_data(self) -> Path:
        """The same path for itself: it cannot go on, and knows its deviance."""
        return changed(self, _deviance=self.deviance, _continue=None)

    def save(self, file: str | PathLike[str]) -> None:
        """Write the path to one ``.npz`` file (arrays and JSON, no pickle); `bregpath.load_path` reads it.

        A file of that name is replaced once the new one is complete, so that a save that fails leaves it as it was.
        """
        from bregpath.path_file import write_path

        write_path(self, file)

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in vars(self).items() if name != "models"}
        return kept | {"_deviance": self.deviance, "_continue": None}

    # --- shape and names -------------------------------------------------------------------------------------

    @property
    def kappa(self) -> float:
        return self.trajectory.kappa

    @property
    def average(self) -> str | None:
        """How models of different times are averaged, if they are; see `trace_path`."""
        return self.trajectory.average

    @property
    def scale(self) -> Array:
        """By which columns were divided inside the path."""
        return self.units.scale

    @property
    def n_features(self) -> int:
        return self.trajectory.beta_null.shape[0]

    @property
    def n_outputs(self) -> int:
        return self.trajectory.beta_null.shape[1]

    @property
    def classes(self) -> Array | None:
        """Class labels of a classification path."""
        return self.loss.classes

    @cached_property
    def naming(self) -> Naming:
        """What the numbers of a model belong to."""
        return Naming(self.encoder, self.scale, self.output_names if self.n_outputs > 1 else [], self.average)

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns: those of the data frame, or x0, x1, ..."""
        return self.naming.columns

    @property
    def output_names(self) -> list[str]:
        """Classes, or numbers of the outputs, as text."""
        return [str(c) for c in (self.classes if self.classes is not None else range(self.n_outputs))]

    def _inside(self, times: Any) -> Array:
        """Times in the units of the trajectory, checked."""
        times = np.atleast_1d(_validation.as_array("t", times, float))
        if not (times > 0).all():
            raise ValueError(f"`t` must be positive times, found {times[~(times > 0)][0]:g}.")
        if (times > self.t[-1] * (1 + 1e-12)).any():
            raise ValueError(
                f"`t`={times.max():g} lies beyond the end of the path, t={self.t[-1]:g}. {self.result} "
                "Use extend(t_max) or ask for a longer path with t_ratio."
            )
        return np.minimum(times * self.units.y_unit, self._inside_end)

    @property
    def _inside_end(self) -> float:
        return float(self.t[-1]) * self.units.y_unit

    def plot(self, **kwargs: Any) -> Any:
        """Draw the coefficients against time; see `bregpath.plots.plot_path`."""
        from bregpath.plots import plot_path

        return plot_path(self, **kwargs)

    def __repr__(self) -> str:
        return describe(self, f"Path of {self.n_features} columns", "Df", self.df)


def of_its(part: str, doc: str | None = None) -> Any:
    """A property that an object takes from one of its parts, as a path of graphs does from the `Path` it has."""
    return property(attrgetter(part), doc=doc)


def describe(path: Any, what: str, label: str, sizes: Array) -> str:
    """A few rows of a path, with the sizes of its models."""
    mean = f", {path.trajectory.average} mean" if path.trajectory.average else ""
    how = f"({path.loss.name}, kappa={path.kappa:g}{mean}), {len(path.t)} times, {path.stats.steps} steps"
    rows = np.unique(np.linspace(0, len(path.t) - 1, 8).round().astype(int))
    lines = [f"{what} {how}", f"{label:>6} {'%Dev':>7} {'t':>10}"]
    lines += [f"{sizes[i]:>6d} {percent(path.deviance_ratio[i]):>7} {path.t[i]:>10.4g}" for i in rows]
    return "\n".join([*lines, str(path.result)])
