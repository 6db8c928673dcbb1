"""Tables of numbers, labels and counts: which column is what, and the rows that a graph of them is learned from."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bregpath import _frames, _validation
from bregpath._typing import Array
from bregpath.graphs.data import StateCoder, check_nodes, missing_cells, read_columns, to_numbers
from bregpath.graphs.mixed_model import KINDS

__all__ = ["MixedCoder"]


@dataclass(frozen=True, eq=False)
class MixedCoder:
    """What each column of a table is, and its rows as numbers.

    Attributes
    ----------
    names : tuple of str
    kinds : tuple of {"gaussian", "categorical", "count"}
    levels : tuple of ndarray
        Labels in the order of their codes, none of numbers and counts.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"bmi": [21.5, 30.0], "smoker": ["no", "yes"], "visits": [2, 0], "twin": [0, 1]})
    >>> coder, rows = MixedCoder.learn(frame, {"visits": "count"})
    >>> coder.kinds
    ('gaussian', 'categorical', 'count', 'categorical')
    >>> rows
    array([[21.5,  0. ,  2. ,  0. ],
           [30. ,  1. ,  0. ,  1. ]])
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    levels: tuple[Array, ...]

    @classmethod
    def learn(
        cls, X: Any, kinds: Any = "auto", min_count: int = 1, w: Any = None, gaps: bool = False
    ) -> tuple[MixedCoder, Array]:
        """Kinds, labels and rows of a table; NaN in missing cells, if there may be ``gaps``.

        Labels of fewer than ``min_count`` rows, each of which counts ``w``, are pooled.
        """
        columns, found = read_columns(_typed(X), least_rows=2, gaps=gaps)
        w = _validation.check_counts(w, len(columns[0]))
        names = found or tuple(f"x{j}" for j in range(len(columns)))
        wishes = _wishes(kinds, names)
        declared = _declared_labels(X)
        known = [
            _guess(column, j in declared) if wish == "auto" else wish
            for j, (column, wish) in enumerate(zip(columns, wishes, strict=True))
        ]
        labels = [j for j, kind in enumerate(known) if kind == "categorical"]
        coder = StateCoder.of_columns([names[j] for j in labels], [columns[j] for j in labels], min_count, w)
        levels = [np.zeros(0)] * len(columns)
        for j, own in zip(labels, coder.levels, strict=True):
            levels[j] = own
        made = cls(names, tuple(known), tuple(levels))
        return made, made._rows(columns)

    def encode(self, X: Any) -> Array:
        """Rows of new data."""
        columns, names = read_columns(_typed(X))
        check_nodes(len(columns), names, self.names)
        return self._rows(columns)

    def _rows(self, columns: list[Array]) -> Array:
        rows = np.empty((len(columns[0]), len(columns)))
        for j, (name, kind, column) in enumerate(zip(self.names, self.kinds, columns, strict=True)):
            if kind == "categorical":
                codes = StateCoder((name,), (self.levels[j],)).codes([column])[:, 0]
                rows[:, j] = np.where(codes < 0, np.nan, codes)
            else:
                rows[:, j] = to_numbers(column, f"column {name!r}", 'make it "categorical" in `kinds`')
            if kind == "count":
                _check_counts(rows[:, j], name)
        return rows


def _typed(X: Any) -> Any:
    """Lists keep the types of their cells, which an array of text would not."""
    return np.array(X, dtype=object) if isinstance(X, list | tuple) else X


def _wishes(kinds: Any, names: Sequence[str]) -> list[str]:
    """What the user says of each column: a kind, or "auto"."""
    if isinstance(kinds, str):
        wishes = [kinds] * len(names)
    elif isinstance(kinds, Mapping):
        known: dict[Any, str] = dict(enumerate(names)) | {name: name for name in names}
        unknown = [key for key in kinds if key not in known]
        if unknown:
            raise ValueError(f"`kinds` names a column {unknown[0]!r}, which `X` does not have; found {names[:8]}.")
        said = {known[key]: kind for key, kind in kinds.items()}
        wishes = [said.get(name, "auto") for name in names]
    else:
        wishes = list(kinds)
        if len(wishes) != len(names):
            raise ValueError(f"`kinds` must have one entry for each of the {len(names)} columns, found {len(wishes)}.")
    for wish, name in zip(wishes, names, strict=True):
        if wish not in ("auto", *KINDS):
            allowed = ", ".join(map(repr, ("auto", *KINDS)))
            raise ValueError(f"`kinds` of column {name!r} must be one of {allowed}, found {wish!r}.")
    return wishes


def _declared_labels(X: Any) -> set[int]:
    """Columns of a data frame whose type says that they hold labels."""
    if not _frames.is_frame(X):
        return set()
    dtypes = _frames.read_frame(X)[0].schema.dtypes()
    return {j for j, dtype in enumerate(dtypes) if type(dtype).__name__ in ("String", "Categorical", "Enum", "Boolean")}


def _guess(column: Array, is_declared: bool) -> str:
    """Numbers are numbers, but two integers are labels, as are text and truth values; counts are never guessed."""
    known = column[~missing_cells(column)]
    if is_declared or known.dtype.kind not in "fiuO":
        return "categorical"
    if known.dtype.kind == "f":
        return "gaussian"
    values = known.tolist()
    if any(isinstance(value, bool) or not isinstance(value, numbers.Real) for value in values):
        return "categorical"
    is_whole = all(isinstance(value, numbers.Integral) for value in values)
    return "categorical" if is_whole and len(set(values)) <= 2 else "gaussian"


def _check_counts(column: Array, name: str) -> None:
    known = column[~np.isnan(column)]
    wrong = known[(known < 0) | (known != np.round(known))]
    if len(wrong):
        what = "negative" if wrong[0] < 0 else "not whole"
        raise ValueError(
            f"`X` has {wrong[0]:g} in column {name!r}, {what}, but counts are 0, 1, 2, ...; make it "
            '"gaussian" in `kinds`.'
        )
