"""Paths of coefficients whose structure is sparse: rows of ``D alpha`` leave zero one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bregpath import _validation
from bregpath._frames import import_pandas
from bregpath._typing import Array, BoolArray, IntArray
from bregpath.path import Complexity, Path, Point, describe, explained, of_its
from bregpath.stores.split import SplitStore
from bregpath.structures.projection import Projection

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ESTIMATES", "Layout", "StructuredPath"]

ESTIMATES = ("projected", "dense")


@dataclass(frozen=True, eq=False)
class Layout:
    """What the parameters of a split path mean, in the units of the data.

    ``store`` turns its unpenalised parameters into intercepts and coefficients of ``(X - center) / scale``; ``shift``
    is what was taken from the intercepts beforehand.
    """

    store: SplitStore = field(repr=False)
    project: Projection = field(repr=False)
    n_outputs: int
    center: Array
    scale: float
    shift: Array

    def dense(self, alpha: Array) -> tuple[Array, Array]:
        """Intercepts (T, q) and coefficients (T, p, q) at unpenalised parameters (T, a)."""
        intercept, coef = self.store.parameters(alpha, self.n_outputs)
        return self._with_center(intercept + self.shift, coef / self.scale)

    def projected(self, alpha: Array, rows: IntArray, split: Array) -> tuple[Array, Array]:
        """The same, with ``D coef = 0`` wherever the split variable is: (T, E, q) at some rows of D."""
        intercept, coef = self.store.parameters(alpha, self.n_outputs)
        out = np.empty_like(coef)
        for i, k, active in self._active(rows, split):
            out[i, :, k] = self.project(coef[i, :, k], active)
        return self._with_center(intercept + self.shift, out / self.scale)

    def _with_center(self, intercept: Array, coef: Array) -> tuple[Array, Array]:
        return intercept - np.einsum("j,tjq->tq", self.center, coef), coef

    def dimensions(self, rows: IntArray, split: Array) -> IntArray:
        """Number of free coefficients at each time."""
        out = np.zeros(len(split), dtype=int)
        for i, _, active in self._active(rows, split):
            out[i] += self.project.dimension(active)
        return out

    def _active(self, rows: IntArray, split: Array) -> Iterator[tuple[int, int, BoolArray]]:
        """Every time and output, and the rows of D that are active there."""
        for i, k in np.ndindex(len(split), self.n_outputs):
            active = np.zeros(self.store.D.shape[0], dtype=bool)
            active[rows] = split[i, :, k] != 0
            yield i, k, active


@dataclass(frozen=True, eq=False, repr=False)
class StructuredPath:
    """Models of all sizes, indexed by time ``t``, in which ``D coef`` is sparse: `trace_path` with a ``structure``.

    At every time there are three: the *dense* estimate, which has been fitted; the sparse *split* variable, which
    ``D dense`` is near to; and the *projected* estimate, the one nearest to the dense one whose ``D coef`` is exactly
    zero wherever the split variable is. The projected one predicts, unless another is asked for.

    Attributes
    ----------
    path : Path
        The parameters that were traced.
    t : ndarray of shape (n_times,)
    coef, intercept : ndarray of shape (n_times, p) or (n_times, p, q), and (n_times,) or (n_times, q)
        The projected estimate: those of ``at(t[i])``.
    dense : ndarray of the shape of ``coef``
        The dense estimate.
    split : ndarray of shape (n_times, m) or (n_times, m, q)
        The split variable, one entry a row of D.
    df : ndarray of shape (n_times,)
        Number of coefficients that the structure leaves free: of pieces, for differences. Where rows of another D
        depend on each other, at least so many are.
    entry_times, exit_times : ndarray of shape (m,)
        Exact time at which each row of D first became active (``inf``: never), and last ceased to be (``inf``: not).
    deviance, deviance_ratio : ndarray of shape (n_times,)
        Deviance of the projected estimate (mean over rows), and the share that is explained of the deviance before the
        first entry.
    loss, kappa, result, stats
        As those of `bregpath.Path`.

    Examples
    --------
    >>> import numpy as np
    >>> import bregpath
    >>> y = np.repeat([0.0, 2.0, -1.0], 30) + 0.2 * np.random.default_rng(0).normal(size=90)
    >>> path = bregpath.trace_path(None, y, structure="fused", flow="giss")
    >>> path.support(2 * path.t[0]).tolist()  # jumps after these positions
    [29, 59]
    >>> len(np.unique(path.at(2 * path.t[0]).coef))
    3
    """

    path: Path
    layout: Layout
    deviance: Array
    null_deviance: float
    # Makes a longer path of the parameters into one of these; lost when pickled, because it holds the data.
    _report: Callable[[Path], StructuredPath] | None = field(default=None)
    counts: ClassVar[str] = "active rows of D"  # what enters, for figures
    value_name: ClassVar[str] = "Split variable"
    has_likelihood: ClassVar[bool] = True

    # --- of the parameters -----------------------------------------------------------------------------------

    t = of_its("path.t")
    kappa = of_its("path.kappa")
    result = of_its("path.result")
    stats = of_its("path.stats")
    trajectory = of_its("path.trajectory")
    encoder = of_its("path.encoder")
    scale = of_its("path.scale")
    n_outputs = of_its("path.n_outputs")
    output_names = of_its("path.output_names")
    classes = of_its("path.classes")
    event_times = of_its("path.event_times")
    entry_times = of_its("path.entry_times")
    exit_times = of_its("path.exit_times")
    loss = of_its("path.loss.loss")
    split = of_its("path.coef")
    structure = of_its("layout.project.D", "The map D as a scipy.sparse matrix of shape (m, p).")

    # --- reading ---------------------------------------------------------------------------------------------

    def at(self, t: float, estimate: str = "projected") -> Point:
        """The model at any one time up to the end of the path: the "projected" or the "dense" estimate."""
        t = _validation.check_time(t)
        intercept, coef = self._estimate(np.array([t]), estimate)
        return Point(t, float(intercept[0, 0]) if self.n_outputs == 1 else intercept[0], self._outputs(coef)[0])

    def split_at(self, t: float) -> Array:
        """The split variable at any one time: shape (m,), or (m, q)."""
        return self.path.at(t).coef

    def support(self, t: float) -> Array:
        """The rows of D that are active at ``t``."""
        return self.path.support(t)

    def _estimate(self, times: Array, estimate: str) -> tuple[Array, Array]:
        if estimate not in ESTIMATES:
            raise ValueError(f"`estimate` must be one of {list(ESTIMATES)}, found {estimate!r}.")
        alpha, rows, split = self.path.read(times)
        return self.layout.dense(alpha) if estimate == "dense" else self.layout.projected(alpha, rows, split)

    def _outputs(self, values: Array) -> Array:
        """Without the last axis, where there is one output only."""
        return values[..., 0] if self.n_outputs == 1 else values

    def decision_function(self, X: Any, t: float, offset: Any = None, *, estimate: str = "projected") -> Array:
        """Linear predictor at ``t``: shape (n,), or (n, q). X is None for the positions of a signal themselves."""
        _, intercept, coef = self.at(t, estimate)
        eta = (coef if X is None else np.asarray(self._encode(X) @ coef)) + intercept
        return _validation.add_offset(eta, offset, self.n_outputs)

    def predict(self, X: Any, t: float, offset: Any = None, *, estimate: str = "projected") -> Array:
        """Mean response at ``t``, as `bregpath.Path.predict`; by the "projected" or the "dense" estimate."""
        return self.loss.predict(self.decision_function(X, t, offset, estimate=estimate))  # type: ignore[no-any-return]

    def _encode(self, X: Any) -> Any:
        return self.path.encode(X, n_features=self.structure.shape[1])

    def read(self, times: Array) -> tuple[Array, IntArray, Array]:
        """Intercepts (T, q), the rows of D ever active (E,), and the split variable there (T, E, q); see `at`."""
        alpha, rows, split = self.path.read(times)
        return self.layout.dense(alpha)[0], rows, split

    # --- tables ----------------------------------------------------------------------------------------------

    @cached_property
    def _projected(self) -> tuple[Array, Array]:
        return self._estimate(self.t, "projected")

    @property
    def coef(self) -> Array:
        return self._outputs(self._projected[1])

    @property
    def intercept(self) -> Array:
        return self._outputs(self._projected[0])

    @cached_property
    def dense(self) -> Array:
        return self._outputs(self._estimate(self.t, "dense")[1])

    @property
    def deviance_ratio(self) -> Array:
        return explained(self.deviance, self.null_deviance)

    @cached_property
    def df(self) -> Array:
        return self.layout.dimensions(*self.path.table[1:])

    @property
    def complexity(self) -> Complexity:
        """What information criteria pay for: rows of D that were found, and coefficients that are free."""
        intercepts = self.n_outputs if self.layout.store.unit > 0 else 0
        candidates = self.structure.shape[0] * self.n_outputs
        return Complexity(self.path.df, self.df + intercepts, 1, float(np.log(candidates)))

    def to_frame(self) -> pd.DataFrame:
        """One row a time: t, df, deviance ratio, intercept(s), and all coefficients of the projected estimate."""
        table = {"t": self.t, "df": self.df, "deviance_ratio": self.deviance_ratio}
        labels = [""] if self.n_outputs == 1 else [f"[{c}]" for c in self.output_names]
        intercept, coef = self._projected
        for k, label in enumerate(labels):
            table[f"intercept{label}"] = intercept[:, k]
        names = [f"{name}{label}" for name in self.coef_names for label in labels]
        table |= dict(zip(names, coef.reshape(len(self.t), -1).T, strict=True))
        return import_pandas("to_frame()").DataFrame(table)

    # --- going on, keeping, names and pictures ---------------------------------------------------------------

    def extend(self, t_max: float) -> StructuredPath:
        """The same path, traced on to ``t_max``; equal to having asked for more at once."""
        longer = self.path.extend(t_max)
        assert self._report is not None  # a path that can go on has its data
        return self._report(longer)

    def save(self, file: str | PathLike[str]) -> None:
        """Not there for this kind of path: `pickle` it, or write `to_frame` to a file."""
        raise TypeError("A structured path has no file format; use pickle, or write to_frame() to a table.")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_report": None}

    @property
    def coef_names(self) -> list[str]:
        """Names of the coefficients: those of the data frame, or x0, x1, ..."""
        if self.encoder is not None:
            return list(self.encoder.names)
        return [f"x{j}" for j in range(self.structure.shape[1])]

    @property
    def feature_names(self) -> list[str]:
        """Names of what enters: the rows of D."""
        return [f"D{j}" for j in range(self.structure.shape[0])]

    def plot(self, **kwargs: Any) -> Any:
        """Draw the split variable against time; see `bregpath.plots.plot_path`."""
        from bregpath.plots import plot_path

        return plot_path(self, **kwargs)

    def __repr__(self) -> str:
        what = f"StructuredPath of {self.structure.shape[1]} coefficients, {self.structure.shape[0]} rows of D"
        return describe(self, what, "Df", self.df)
