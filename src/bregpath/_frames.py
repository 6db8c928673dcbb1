"""Reading data frames: which columns of a frame become which columns of the design.

Frames of any kind (pandas, polars, pyarrow) are read through narwhals, which is imported only once a frame is
met. Arrays never come here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bregpath import _validation

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

__all__ = ["ColumnEncoder", "ColumnSpec", "import_pandas", "is_frame", "is_missing", "read_frame", "series_to_numpy"]

_MAX_LISTED = 10


def is_frame(X: object) -> bool:
    """Whether `X` looks like a data frame, found without importing any library.

    The class is asked, not the object: on lazy frames the attributes of the object would start computing.

    Examples
    --------
    >>> import numpy as np
    >>> is_frame(np.ones((2, 2))), is_frame([[1, 2]])
    (False, False)
    """
    if isinstance(X, np.ndarray):
        return False
    kind = type(X)
    if any(hasattr(kind, mark) for mark in ("__dataframe__", "__narwhals_dataframe__", "__narwhals_lazyframe__")):
        return True
    return hasattr(kind, "columns") and (hasattr(kind, "dtypes") or hasattr(kind, "schema"))


@dataclass(frozen=True)
class ColumnSpec:
    """One column of a frame: its name, and its levels if it is categorical (None: numeric)."""

    name: str
    levels: tuple[str, ...] | None = None

    @property
    def design_names(self) -> tuple[str, ...]:
        if self.levels is None:
            return (self.name,)
        return tuple(f"{self.name}[{level}]" for level in self.levels)

    @property
    def width(self) -> int:
        """Number of design columns."""
        return 1 if self.levels is None else len(self.levels)


@dataclass(frozen=True)
class ColumnEncoder:
    """How the columns of a frame become the columns of a design.

    Numbers and booleans are taken as they are. A column of strings, categories or an enumeration with levels
    :math:`l_1, ..., l_m` becomes m indicators, :math:`x_{ik} = 1` if row i has level k and else 0. No level
    is left out as a reference. The indicators then add up to one, as the intercept does, but this is safe:
    the penalty settles the tie, treats all levels alike, and with the indicators as one group (see `groups`)
    takes the variable as a whole.

    Levels are those found in the frame, sorted; an enumeration (polars ``Enum``, ordered pandas categories)
    keeps all its declared levels in their order.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"bmi": [21.5, 30.0, 25.0], "region": ["north", "south", "north"]})
    >>> encoder = ColumnEncoder.from_frame(frame)
    >>> encoder.names
    ('bmi', 'region[north]', 'region[south]')
    >>> encoder.groups
    array([0, 1, 1])
    >>> encoder.encode(frame)
    array([[21.5,  1. ,  0. ],
           [30. ,  0. ,  1. ],
           [25. ,  1. ,  0. ]])
    """

    columns: tuple[ColumnSpec, ...]

    @classmethod
    def from_frame(cls, frame: Any) -> ColumnEncoder:
        """Learn names, kinds and levels from a frame. Missing values are left for `encode` to refuse."""
        data, names = read_frame(frame)
        if not names:
            raise ValueError("X is a data frame without columns; pass at least one column.")
        dtypes = data.schema.dtypes()
        return cls(tuple(_spec(data, i, name, dtypes[i]) for i, name in enumerate(names)))

    @classmethod
    def of_numbers(cls, names: Any, p: int) -> ColumnEncoder:
        """Of an array whose p columns have names.

        Examples
        --------
        >>> ColumnEncoder.of_numbers(["bmi", "age"], 2).names
        ('bmi', 'age')
        """
        found = [] if isinstance(names, str) else list(names)
        if len(found) != p or len(set(found)) < p or not all(isinstance(name, str) for name in found):
            raise ValueError(f"`feature_names` must be {p} different strings, one a column of `X`; found {names!r}.")
        return cls(tuple(map(ColumnSpec, found)))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the design columns: 'bmi' if numeric, 'region[north]' and so on if categorical."""
        return tuple(name for spec in self.columns for name in spec.design_names)

    @property
    def groups(self) -> npt.NDArray[np.intp]:
        """One label per design column, equal for the indicators of one categorical column."""
        return np.repeat(np.arange(len(self.columns)), [spec.width for spec in self.columns])

    @property
    def has_categories(self) -> bool:
        """Whether any column is categorical."""
        return any(spec.levels is not None for spec in self.columns)

    @property
    def feature_names_in(self) -> tuple[str, ...]:
        """Names of the columns of the frame."""
        return tuple(spec.name for spec in self.columns)

    @property
    def n_design_columns(self) -> int:
        """Number of design columns."""
        return sum(spec.width for spec in self.columns)

    def encode(self, frame: Any) -> npt.NDArray[np.float64]:
        """A frame with the same column names, in any order, as a float64 design in Fortran order, always a copy.

        Missing or extra columns, missing or infinite values, unknown levels and columns of another kind are refused.
        """
        data, names = read_frame(frame)
        position = {name: i for i, name in enumerate(names)}
        self._check_names(names)
        where = [position[spec.name] for spec in self.columns]
        _check_kinds(data, self.columns, where)
        numeric = [i for i, spec in zip(where, self.columns, strict=True) if spec.levels is None]
        block = _numeric_block(data, numeric)
        if not self.has_categories:
            self._check_finite(block, set())
            return block
        design = np.zeros((len(data), self.n_design_columns), order="F")
        groups, taken, missing = self.groups, 0, set()
        for g, (i, spec) in enumerate(zip(where, self.columns, strict=True)):
            start = int(np.searchsorted(groups, g))
            if spec.levels is None:
                design[:, start] = block[:, taken]
                taken += 1
            elif not _fill_indicators(data[:, i], spec, design[:, start : start + spec.width]):
                missing.add(g)
        self._check_finite(design, missing)
        return design

    def to_dict(self) -> dict[str, Any]:
        """Return a form that JSON can hold; `from_dict` reads it back."""
        return {
            "columns": [{"name": c.name, "levels": None if c.levels is None else [*c.levels]} for c in self.columns]
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> ColumnEncoder:
        """Rebuild an encoder from the result of `to_dict`."""
        kinds = [(entry["name"], entry["levels"]) for entry in saved["columns"]]
        return cls(tuple(ColumnSpec(name, None if levels is None else tuple(levels)) for name, levels in kinds))

    def _check_names(self, names: Sequence[str]) -> None:
        known, given = set(self.feature_names_in), set(names)
        missing = [name for name in self.feature_names_in if name not in given]
        extra = [name for name in names if name not in known]
        if missing or extra:
            found = [f"lacks {_listed(missing)}"] * bool(missing) + [f"also has {_listed(extra)}"] * bool(extra)
            raise ValueError(
                f"X does not have the {len(known)} columns seen before: it {' and '.join(found)}. "
                "Pass the same column names (their order does not matter)."
            )

    def _check_finite(self, design: npt.NDArray[np.float64], missing: set[int]) -> None:
        """Refuse missing and infinite values; `missing` are columns already known to have the former."""
        suspects = np.flatnonzero(~_validation.finite_columns(design))
        has_nan = np.array([np.isnan(design[:, j]).any() for j in suspects], dtype=bool)
        groups = self.groups
        missing = missing.union(groups[suspects[has_nan]].tolist())
        for kind, found, remedy in (
            ("missing", missing, "impute them"),
            ("infinite", groups[suspects].tolist(), "replace them by finite numbers"),
        ):
            if found:
                names = _listed(self.columns[g].name for g in sorted(found))
                raise ValueError(f"X has {kind} values in {names}; {remedy}, or drop these rows or columns.")


def series_to_numpy(y: Any, argument: str = "y") -> npt.NDArray[Any]:
    """Turn a target (series, one-column frame or matrix, array or list) into a one-dimensional array.

    Numbers and booleans stay what they are, also from nullable types; strings and categories come as objects.
    Missing values are refused.

    Examples
    --------
    >>> import pandas as pd
    >>> series_to_numpy(pd.Series([1, 2, 3], dtype="Int64"))
    array([1, 2, 3])
    """
    if is_frame(y):
        data, names = read_frame(y, argument)
        if len(names) != 1:
            raise ValueError(f"{argument} is a frame with {len(names)} columns; pass one column, e.g. frame['target'].")
        y = data[:, 0].to_native()
    values = _validation.as_array(argument, y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values.ravel()
    if values.ndim != 1:
        raise ValueError(f"{argument} must be one-dimensional, but has shape {values.shape}; pass one value per row.")
    if values.dtype.kind in "mM":
        raise TypeError(f"{argument} has dtype {values.dtype}; convert it to numbers or to labels.")
    if values.dtype.kind not in "biuf":
        values = _from_objects(values.astype(object), argument)
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise _missing_targets(int(np.isnan(values).sum()), argument)
    return values


def _from_objects(values: npt.NDArray[Any], argument: str) -> npt.NDArray[Any]:
    """Numbers if all objects are numbers (nullable integers, decimals), else the objects."""
    missing = sum(map(is_missing, values))
    if missing:
        raise _missing_targets(missing, argument)
    if values.size == 0 or any(isinstance(value, str) for value in values):
        return values
    guess = np.array(values.tolist())
    if guess.dtype.kind in "biuf":
        return guess
    return values.astype(np.float64) if all(isinstance(value, Decimal) for value in values) else values


def _missing_targets(count: int, argument: str) -> ValueError:
    return ValueError(f"{argument} has {count} missing value{'s' * (count != 1)}; drop these rows from X and y.")


def is_missing(value: object) -> bool:
    # pandas.NA answers no comparison, so it is known by its name; nan is the value that differs from itself.
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def read_frame(frame: Any, argument: str = "X") -> tuple[nw.DataFrame[Any], tuple[str, ...]]:
    """Return the frame as narwhals sees it, and its column names as strings, which must differ."""
    found = f"{type(frame).__module__.partition('.')[0]}.{type(frame).__name__}"
    try:
        import narwhals.stable.v2 as nw
        from narwhals.exceptions import DuplicateError
    except ImportError as error:
        raise ImportError(
            f"{argument} is a {found}, and reading data frames needs narwhals: pip install bregpath[frames] "
            "(or pass a NumPy array)."
        ) from error
    try:
        data = nw.from_native(frame, eager_only=True)
        names = tuple(map(str, data.columns))
    except DuplicateError:
        names = tuple(map(str, frame.columns))
    except TypeError as error:
        raise TypeError(
            f"{argument} is a {found}, which cannot be read as a data frame in memory; "
            "collect a lazy frame first, or pass a NumPy array."
        ) from error
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(f"{argument} has more than one column named {_listed(repeated)}; rename them.")
    return data, names


def import_pandas(asked_by: str) -> Any:
    """Pandas, or an error that says who needs it."""
    try:
        import pandas
    except ImportError:
        raise ImportError(f"{asked_by} needs pandas: pip install pandas") from None
    return pandas


def _kind(dtype: nw.dtypes.DType) -> str:
    """'numeric', 'categorical' or 'other'; told by the name, so that narwhals need not be imported again."""
    if dtype.is_numeric() or type(dtype).__name__ == "Boolean":
        return "numeric"
    return "categorical" if type(dtype).__name__ in ("String", "Categorical", "Enum") else "other"


def _spec(data: nw.DataFrame[Any], i: int, name: str, dtype: Any) -> ColumnSpec:
    kind = _kind(dtype)
    if kind == "numeric":
        return ColumnSpec(name)
    column = data[:, i]
    if kind == "other":
        if column.null_count() < len(column):
            raise _wrong_kind(name, column, "numbers, booleans, strings or categories")
        return ColumnSpec(name, ())  # nothing but missing values, whose dtype says nothing: encode will refuse them
    declared = getattr(dtype, "categories", None)
    found = declared if declared is not None else _sorted(set(column.drop_nulls().to_list()))
    return ColumnSpec(name, tuple(dict.fromkeys(map(str, found))))


def _sorted(levels: set[Any]) -> list[Any]:
    try:
        return sorted(levels)  # numbers by size, so that 2 comes before 10
    except TypeError:
        return sorted(levels, key=str)


def _check_kinds(data: nw.DataFrame[Any], columns: Sequence[ColumnSpec], where: Sequence[int]) -> None:
    dtypes = data.schema.dtypes()
    for i, spec in zip(where, columns, strict=True):
        wanted = "numeric" if spec.levels is None else "categorical"
        if _kind(dtypes[i]) != wanted and data[:, i].null_count() < len(data):
            raise _wrong_kind(spec.name, data[:, i], f"a {wanted} column, as it was before")


def _wrong_kind(name: str, column: nw.Series[Any], wanted: str) -> TypeError:
    dtype: Any = column.dtype
    if type(dtype).__name__ == "Unknown":  # to narwhals
        dtype = column.to_native().dtype
    remedy = "pass X.sparse.to_coo()" if str(dtype).startswith("Sparse") else "convert or drop it"
    return TypeError(f"X has dtype {dtype} in column {name!r}, where {wanted} can be used; {remedy}.")


def _numeric_block(data: nw.DataFrame[Any], where: Sequence[int]) -> npt.NDArray[np.float64]:
    """Convert numeric columns at once where the frame can, else one by one; missing values become nan."""
    if not where:
        return np.empty((len(data), 0), order="F")
    in_order = list(where) == list(range(data.shape[1]))
    values = (data if in_order else data[:, list(where)]).to_numpy()
    if values.dtype.kind in "biuf":
        return np.array(values, dtype=np.float64, order="F")
    # Objects: booleans next to numbers, decimals, nullable booleans.
    block = np.empty(values.shape, order="F")
    for j, i in enumerate(where):
        column = data[:, i]
        block[:, j] = np.nan if column.null_count() else column.to_numpy().astype(np.float64)
    return block


def _fill_indicators(column: nw.Series[Any], spec: ColumnSpec, target: npt.NDArray[np.float64]) -> bool:
    """Set the indicators of one categorical column; return False if it has missing values."""
    if column.null_count():
        return False
    values = column.to_list()
    index = {level: k for k, level in enumerate(spec.levels or ())}
    distinct = set(values)
    unseen = [str(value) for value in _sorted(distinct) if str(value) not in index]
    if unseen:
        raise ValueError(
            f"X has unknown levels in column {spec.name!r}: {_listed(unseen)}. "
            f"Known levels are {_listed(index)}; recode these rows or drop them."
        )
    code = {value: index[str(value)] for value in distinct}
    rows = np.arange(len(values))
    target[rows, np.fromiter(map(code.__getitem__, values), dtype=np.intp, count=len(values))] = 1.0
    return True


def _listed(names: Iterable[str]) -> str:
    """'a', 'b', ... quoted, at most a handful."""
    names = list(names)
    text = ", ".join(repr(name) for name in names[:_MAX_LISTED])
    return text if len(names) <= _MAX_LISTED else f"{text}, ... ({len(names)} in all)"
