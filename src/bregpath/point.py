"""A model on a path, and how it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bregpath import _frames
from bregpath._text import aligned
from bregpath._typing import Array, IntArray

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ModelTable", "Naming", "Point"]

MOST = 12  # variables that are shown


@dataclass(frozen=True, eq=False)
class Naming:
    """What the numbers of a model belong to; names are made when somebody wants to see them."""

    encoder: _frames.ColumnEncoder | None
    scale: Array  # by which columns were divided inside the path
    outputs: list[str]  # empty if there is one only
    average: str | None = None  # of models of different times, if that is what it is

    @property
    def columns(self) -> list[str]:
        """Names of the columns: those of the data frame, or x0, x1, ..."""
        if self.encoder is not None:
            return list(self.encoder.names)
        return [f"x{j}" for j in range(len(self.scale))]


class _Model(NamedTuple):
    t: float
    intercept: Any  # float, or (q,) for several outputs
    coef: Array  # (p,), or (p, q)


class Point(_Model):
    """A model on a path: ``t, intercept, coef``, which prints as a table of its variables by name.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_linear(100, 5, 2, seed=0)
    >>> t, intercept, coef = bregpath.trace_path(data.X, data.y).at(3.0)
    >>> t, coef.shape
    (3.0, (5,))
    """

    naming: Naming | None

    def __new__(cls, t: float, intercept: Any, coef: Array, naming: Naming | None = None) -> Point:
        point = super().__new__(cls, t, intercept, coef)
        point.naming = naming
        return point

    @property
    def table(self) -> ModelTable | None:
        """The variables of the model by name; None where coefficients belong to no columns, as in a graph."""
        return None if self.naming is None else ModelTable.of(self, self.naming)

    def __eq__(self, other: object) -> bool:
        """Whether two models are the same, number by number."""
        return isinstance(other, Point) and all(map(np.array_equal, self, other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.t)

    def __repr__(self) -> str:
        table, naming = self.table, self.naming
        if table is None or naming is None:
            return super().__repr__()
        mean = f", {naming.average} mean of the path" if naming.average else ""
        return "\n".join([f"Model at t = {self.t:.4g}{mean}: {table.size}", *table.lines()])


@dataclass(frozen=True, eq=False)
class ModelTable:
    """The variables of a model by name, those with the largest effect first.

    Attributes
    ----------
    columns : ndarray of shape (k,)
    names : list of str
    coef : ndarray of shape (k, q)
        On the original scale.
    effect : ndarray of shape (k, q) or None
        Per standard deviation of the column; None where the path did not standardise.
    intercept : ndarray of shape (q,)
    outputs : list of str
        Names of the outputs; empty if there is one only.
    n_features : int
        Of how many columns these are the ones in the model.
    """

    columns: IntArray
    names: list[str]
    coef: Array
    effect: Array | None
    intercept: Array
    outputs: list[str]
    n_features: int

    @classmethod
    def of(cls, point: Point, naming: Naming) -> ModelTable:
        """The table of a model."""
        names, scale = naming.columns, naming.scale
        coef = np.reshape(point.coef, (len(names), -1))
        effect = coef * scale[:, None]
        support = np.flatnonzero(coef.any(axis=1))
        order = support[np.argsort(-np.linalg.norm(effect[support], axis=1), kind="stable")]
        effects = None if np.all(scale == 1.0) else effect[order]
        chosen = [names[j] for j in order]
        return cls(order, chosen, coef[order], effects, np.ravel(point.intercept), naming.outputs, len(names))

    @property
    def size(self) -> str:
        """How many variables there are, in words."""
        n = len(self.columns)
        return f"{n} of {self.n_features} variables" if n != 1 else f"1 variable of {self.n_features}"

    @property
    def rows(self) -> list[list[str]]:
        """Header, intercept and all variables, as text."""
        header = ["variable", *(self.outputs or ["coefficient"])]
        rows = [["(intercept)", *(f"{a:.5g}" for a in self.intercept)]]
        rows += [[name, *(f"{b:.5g}" for b in values)] for name, values in zip(self.names, self.coef, strict=True)]
        if self.effect is not None and not self.outputs:
            header.append("per std. dev.")
            effects = ["", *(f"{e:.4g}" for e in self.effect[:, 0])]
            rows = [[*row, cell] for row, cell in zip(rows, effects, strict=True)]
        return [header, *rows]

    def lines(self) -> list[str]:
        """The first rows in columns, and how many more there are."""
        left = len(self.names) - MOST
        return aligned(self.rows[: MOST + 2], left={0}) + ([f"... and {left} more"] if left > 0 else [])

    def to_frame(self) -> pd.DataFrame:
        """One row a variable: coefficients and effects per standard deviation (needs pandas)."""
        labels = [f"[{name}]" for name in self.outputs] or [""]
        table = {f"coefficient{label}": self.coef[:, k] for k, label in enumerate(labels)}
        if self.effect is not None:
            table |= {f"per_std_dev{label}": self.effect[:, k] for k, label in enumerate(labels)}
        return _frames.import_pandas("to_frame()").DataFrame(table, index=self.names)
