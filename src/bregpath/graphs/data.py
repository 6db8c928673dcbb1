"""Tables of labels as codes 0, 1, ...: what Ising and Potts models are learned from."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from bregpath import _frames, _validation
from bregpath._typing import Array, BoolArray, IntArray

__all__ = [
    "RARE",
    "StateCoder",
    "add_absent_states",
    "add_absent_values",
    "check_nodes",
    "collapse_rows",
    "count_states",
    "covariance",
    "missing_cells",
    "read_columns",
    "read_numbers",
    "to_numbers",
]

RARE = "(rare)"  # the label that stands for all pooled labels of a node


def read_columns(X: Any, least_rows: int = 1, gaps: bool = False) -> tuple[list[Array], tuple[str, ...] | None]:
    """Columns of a table of labels and the names of a data frame (None for an array).

    Nothing may be missing, unless there may be ``gaps``; and never a whole column.
    """
    if _frames.is_frame(X):
        data, names = _frames.read_frame(X)
        columns = [_known(data[:, i].to_numpy(), f"column {name!r}", gaps) for i, name in enumerate(names)]
    else:
        _validation.check_indices(X)
        table = _validation.as_array("X", X.toarray() if _validation.is_sparse(X) else X)
        if table.ndim != 2:
            raise ValueError(f"`X` must be two-dimensional (rows x nodes), found shape {table.shape}.")
        names, columns = None, [_known(table[:, j], f"column {j}", gaps) for j in range(table.shape[1])]
    if len(columns) < 2:
        raise ValueError(f"`X` has {len(columns)} column(s); a graph needs at least 2 nodes.")
    if len(columns[0]) < least_rows:
        raise ValueError(f"`X` has {len(columns[0])} row(s); at least {least_rows} are needed.")
    return columns, names


def read_numbers(X: Any, least_rows: int = 1, gaps: bool = False) -> tuple[Array, tuple[str, ...] | None]:
    """A table of finite numbers, NaN where there may be ``gaps``, and the names of a data frame."""
    columns, names = read_columns(X, least_rows, gaps)
    where = [f"column {names[j] if names else j!r}" for j in range(len(columns))]
    remedy = "use PottsGraph for labels"
    return np.column_stack([to_numbers(column, at, remedy) for column, at in zip(columns, where, strict=True)]), names


def to_numbers(cells: Array, where: str, remedy: str) -> Array:
    """A column of finite numbers, NaN where cells are missing; ``remedy`` is what to do about others."""
    known = ~missing_cells(cells)
    column = cells if known.all() else cells[known]
    if column.dtype.kind not in "fiub":  # objects may be numbers all the same: decimals, integers of any size
        wrong = [value for value in column.tolist() if not isinstance(value, (numbers.Real, Decimal))]
        if wrong:
            raise TypeError(f"`X` must hold numbers, found {wrong[0]!r} in {where}; {remedy}.")
    values = np.full(len(cells), np.nan)
    values[known] = column
    if not np.isfinite(values[known]).all():
        raise ValueError(f"`X` contains infinity in {where}; drop these rows.")
    return values


def check_nodes(found: int, names: tuple[str, ...] | None, nodes: tuple[str, ...]) -> None:
    """New data has the nodes of the graph as its columns; those of an array have no names."""
    if found != len(nodes):
        raise ValueError(f"`X` has {found} columns, the graph has {len(nodes)} nodes.")
    if names is not None and names != nodes:
        wrong = next(j for j, (name, node) in enumerate(zip(names, nodes, strict=True)) if name != node)
        raise ValueError(
            f"`X` has other columns than the graph has nodes: column {wrong} is {names[wrong]!r}, the node "
            f"{nodes[wrong]!r}; select and order its columns."
        )


def missing_cells(column: Array) -> BoolArray:
    """Which cells hold nothing."""
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype.kind == "O":
        return np.array([_frames.is_missing(value) for value in column], dtype=bool)
    return np.zeros(len(column), dtype=bool)


def _known(column: Array, where: str, gaps: bool) -> Array:
    column = np.asarray(column)
    missing = missing_cells(column)
    if missing.any() and not gaps:
        raise ValueError(
            f"`X` has {missing.sum()} missing value(s) in {where} (first: row {missing.argmax()}); drop these rows, "
            "impute them, or give missing values a label of their own."
        )
    if len(column) and missing.all():
        raise ValueError(f"`X` has nothing but missing values in {where}; drop it.")
    return column


@dataclass(frozen=True, eq=False)
class StateCoder:
    """Which labels each node has, and the code of each.

    Attributes
    ----------
    names : tuple of str
    levels : tuple of ndarray
        Labels in the order of their codes. The last may be `RARE`, which stands for all labels of the node that
        were too rare, and for those never seen.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([["a", "x"], ["b", "y"], ["a", "x"], ["a", "z"], ["b", "y"]])
    >>> coder, codes = StateCoder.learn(X, min_count=2)
    >>> coder.levels[1].tolist(), codes[:, 1].tolist()
    (['x', 'y', '(rare)'], [0, 1, 0, 2, 1])
    """

    names: tuple[str, ...]
    levels: tuple[Array, ...]

    @property
    def n_states(self) -> list[int]:
        """Number of labels of each node."""
        return [len(labels) for labels in self.levels]

    @classmethod
    def learn(
        cls, X: Any, min_count: int = 1, w: Any = None, gaps: bool = False
    ) -> tuple[StateCoder, IntArray]:
        """Labels and codes of a table; labels of fewer than ``min_count`` rows of a node are pooled.

        ``w`` says how often each row counts. Missing cells, if there may be ``gaps``, have the code -1.
        """
        columns, names = read_columns(X, least_rows=2, gaps=gaps)
        w = _validation.check_counts(w, len(columns[0]))
        coder = cls.of_columns(names or tuple(f"x{j}" for j in range(len(columns))), columns, min_count, w)
        return coder, coder.codes(columns)

    @classmethod
    def of_columns(cls, names: Sequence[str], columns: list[Array], min_count: int, w: Array) -> StateCoder:
        """Labels of some columns, whose rows count ``w``."""
        found = [_levels(column, min_count, w, name) for name, column in zip(names, columns, strict=True)]
        return cls(tuple(names), tuple(found))

    def with_pairs(self) -> StateCoder:
        """The same with two labels a node, also where one was seen: the pair of another node that has it, or `RARE`."""
        pairs = [labels.tolist() for labels in self.levels if len(labels) == 2]

        def pair(labels: Array) -> Array:
            seen = labels.tolist()
            other = next((known for known in pairs if seen[0] in known), None)
            return np.array([*seen, RARE], dtype=object) if other is None else np.array(other)

        return StateCoder(self.names, tuple(pair(known) if len(known) == 1 else known for known in self.levels))

    def encode(self, X: Any, gaps: bool = False) -> IntArray:
        """Codes (n, p) of new data, -1 for missing cells if there may be ``gaps``."""
        columns, names = read_columns(X, gaps=gaps)
        check_nodes(len(columns), names, self.names)
        return self.codes(columns)

    def codes(self, columns: list[Array]) -> IntArray:
        """Codes (n, p) of some columns, -1 for missing cells."""
        codes = np.empty((len(columns[0]), len(columns)), dtype=np.intp)
        for j, (column, levels) in enumerate(zip(columns, self.levels, strict=True)):
            number = {label: code for code, label in enumerate(levels.tolist())}
            other = number.get(RARE, -1)
            known = ~missing_cells(column)
            found, position = _unique(column[known], self.names[j])
            of_found = np.array([number.get(label, other) for label in found.tolist()], dtype=np.intp)
            if (of_found < 0).any():
                unseen = found[of_found < 0].tolist()
                raise ValueError(
                    f"`X` has labels {unseen[:5]} in column {self.names[j]!r} that were not seen in fit; drop these "
                    "rows, or fit with min_count=2 or more, which makes a level for rare and unseen labels."
                )
            codes[:, j] = -1
            codes[known, j] = of_found[position]
        return codes


def _levels(column: Array, min_count: int, w: Array, name: str) -> Array:
    """Sorted labels of a column, those that are too rare replaced by one."""
    known = ~missing_cells(column)
    labels, position = _unique(column[known], name)
    common = np.bincount(position, weights=w[known], minlength=len(labels)) >= min_count
    if min_count == 1 or common.all():
        return labels
    return np.array([*labels[common].tolist(), RARE], dtype=object)


def _unique(column: Array, name: str) -> tuple[Array, IntArray]:
    """Sorted labels, and the position of each row's label among them."""
    try:
        labels, position = np.unique(column, return_inverse=True)
    except TypeError:
        kinds = sorted({type(value).__name__ for value in column})
        raise TypeError(f"`X` mixes {' and '.join(kinds)} in column {name!r}; give its labels one type.") from None
    return labels, position.ravel()


def collapse_rows(codes: IntArray, w: Array) -> tuple[IntArray, Array]:
    """Distinct rows and their total weights; rows of weight zero are absent.

    Examples
    --------
    >>> import numpy as np
    >>> rows, w = collapse_rows(np.array([[1, 0], [0, 1], [1, 0]]), np.array([0.25, 0.5, 0.25]))
    >>> rows.tolist(), w.tolist()
    ([[0, 1], [1, 0]], [0.5, 0.5])
    """
    codes, w = codes[w > 0], w[w > 0]
    # Not by np.unique(axis=0): it compares records, and there NumPy makes a TypeError of Ctrl-C.
    order = np.lexsort(codes.T[::-1])
    is_new = np.append(True, np.any(codes[order[1:]] != codes[order[:-1]], axis=1))
    if is_new.all():
        return codes, w
    position = np.empty(len(codes), dtype=int)
    position[order] = np.cumsum(is_new) - 1
    return codes[order[is_new]], np.bincount(position, weights=w)


def count_states(codes: IntArray, w: Array, n_states: Sequence[int]) -> list[Array]:
    """Weight of each state of each node; none of nodes without states."""
    columns = zip(codes.T, n_states, strict=True)
    return [np.bincount(column.astype(np.intp), w, q) if q else np.zeros(0) for column, q in columns]


def add_absent_states(codes: IntArray, w: Array, n_states: Sequence[int]) -> tuple[IntArray, Array]:
    """Rows in which every state occurs: those that have no weight get half a row each.

    The rows are repeated with absent states in place of the present ones, at little weight. So half a row is spread
    over all rows, and does not look as if the state went with any of the others.

    Examples
    --------
    >>> import numpy as np
    >>> rows, w = add_absent_states(np.array([[0, 0], [0, 1]]), np.array([3.0, 1.0]), [2, 2])
    >>> rows.tolist(), w.tolist()
    ([[0, 0], [0, 1], [1, 0], [1, 1]], [3.0, 1.0, 0.375, 0.125])
    """
    return add_absent_values(codes, w, [np.flatnonzero(counts == 0) for counts in count_states(codes, w, n_states)])


def add_absent_values(rows: Array, w: Array, absent: Sequence[Array]) -> tuple[Array, Array]:
    """See `add_absent_states`, for given values of each node."""
    most = max(map(len, absent))
    if most == 0:
        return rows, w
    turn = np.arange(max(most, len(rows)))  # of several absent values of a node each gets every so many-th row
    extra, weight = rows[turn % len(rows)], w[turn % len(rows)]
    for j, values in enumerate(absent):
        if len(values):
            extra[:, j] = values[turn % len(values)]
    return np.concatenate([rows, extra]), np.concatenate([w, 0.5 * most * weight / weight.sum()])


def covariance(X: Array, w: Array, mean: Array) -> Array:
    """Weighted covariance (1/n) about a given mean."""
    centred = X - mean
    return (centred * (w / w.sum())[:, None]).T @ centred
