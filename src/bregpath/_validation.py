"""Checks of the data a user passes; every error names the argument, what was found and the remedy."""

from __future__ import annotations

import numbers
import operator
import sys
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from bregpath._text import listed
from bregpath._typing import Array, BoolArray

__all__ = [
    "add_offset",
    "as_array",
    "canonical_csc",
    "check_counts",
    "check_design",
    "check_finite_columns",
    "check_indices",
    "check_integer",
    "check_number",
    "check_offset",
    "check_scales",
    "check_sizes",
    "check_time",
    "check_times",
    "check_unit",
    "check_weights",
    "finite_columns",
    "is_sparse",
    "tell_unrepeated",
    "unmasked",
]

UNREPEATED, MANY_ROWS = 0.9, 20  # labels over rows, of so many rows at least, from which on labels tell nothing


def is_sparse(X: Any) -> bool:
    """Whether X is a scipy.sparse matrix or array, found out without importing scipy.sparse."""
    return hasattr(X, "tocsc") and hasattr(X, "nnz")


def unmasked(name: str, values: Any) -> Any:
    """``values`` as given, or the data of a masked array that hides nothing; what is masked cannot be used."""
    ma = sys.modules.get("numpy.ma")  # before it is imported nobody has a masked array
    if ma is None:
        return values
    # Of a list the parts are asked, since np.asarray would forget their masks.
    parts = values if isinstance(values, list | tuple) else [values]
    masks = [ma.getmaskarray(part) for part in parts if isinstance(part, ma.MaskedArray)]
    hidden = sum(map(np.count_nonzero, masks))
    if hidden:
        raise ValueError(
            f"`{name}` is a masked array with {hidden} masked value(s); drop or impute them, then pass a plain array."
        )
    return values.data if isinstance(values, ma.MaskedArray) else values


def as_array(name: str, values: Any, dtype: Any = None) -> Array:
    """A plain array: subclasses such as ``np.matrix`` lose their own ways, masked and sparse values are refused."""
    if is_sparse(values):
        raise TypeError(f"`{name}` must be a dense array, found {type(values).__name__}; pass its toarray().")
    plain = unmasked(name, values)
    try:
        return np.asarray(plain, dtype=dtype)
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        raise ValueError(f"`{name}` has rows of unequal lengths, and no array can be made of them.") from None


def canonical_csc(X: Any) -> Any:
    """A sparse matrix by columns (CSC), rows in order and none stored twice; the matrix given is left as it is."""
    from scipy.sparse import csc_array

    by_columns = X.tocsc()
    # A new object around the same arrays: what the old one believes about their order may be out of date.
    fresh = csc_array((by_columns.data, by_columns.indices, by_columns.indptr), shape=X.shape)
    if not fresh.has_canonical_format:
        fresh = fresh.copy()
        fresh.sum_duplicates()
    return fresh


def check_design(X: Any, finite: bool = True) -> Any:
    """``X`` as a dense float array (not copied when it is one) or a canonical CSC array of floats, 2-D.

    Its numbers are checked to be ``finite`` unless whoever scans them will; see `check_finite_columns`.
    """
    X = _sparse(X, finite) if is_sparse(X) else _dense(X, finite)
    n, p = X.shape
    if n == 0 or p == 0:
        raise ValueError(
            f"`X` is empty: 0 sample(s) or 0 feature(s) (shape={X.shape}) while a minimum of 1 is required."
        )
    return X


def finite_columns(X: Array) -> BoolArray:
    """Which columns hold neither NaN nor infinity, found in one pass without a temporary of the size of X."""
    with np.errstate(invalid="ignore", over="ignore"):  # inf - inf
        finite = np.isfinite(X.sum(axis=0, dtype=np.float64))
    for j in np.flatnonzero(~finite):  # the sum of large numbers may be infinite too
        finite[j] = np.isfinite(X[:, j]).all()
    return finite


def check_finite_columns(is_finite: Array) -> None:
    """Refuse an ``X`` with columns that are not."""
    if not is_finite.all():
        bad = np.flatnonzero(~is_finite)
        raise ValueError(
            f"`X` contains NaN or infinity in {len(bad)} column(s) (first: column {bad[0]}); "
            "impute or drop these values before tracing a path."
        )


def _sparse(X: Any, finite: bool) -> Any:
    if X.dtype.kind not in "fiub":
        raise TypeError(f"`X` must hold real numbers, found dtype {X.dtype}.")
    if len(X.shape) != 2:
        raise ValueError(f"`X` must be two-dimensional (rows x columns), found shape {X.shape}.")
    check_indices(X)
    X = canonical_csc(X if X.dtype in (np.float32, np.float64) else X.astype(np.float64))
    if finite and not np.isfinite(X.data).all():
        owner = np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))
        check_finite_columns(np.bincount(owner, weights=~np.isfinite(X.data), minlength=X.shape[1]) == 0)
    return X


def check_indices(X: Any) -> None:
    """Those of a sparse matrix lie inside it: SciPy takes them as they are, and would read elsewhere."""
    if not is_sparse(X) or X.format not in ("csr", "csc"):  # other formats are looked at when they are made
        return
    n_starts, size = X.shape if X.format == "csr" else X.shape[::-1]
    starts, indices = X.indptr, X.indices
    has_order = len(starts) == n_starts + 1 and starts[0] == 0 and (starts[1:] >= starts[:-1]).all()
    if not (has_order and starts[-1] <= min(len(indices), len(X.data))):
        raise ValueError("`X` is a damaged sparse matrix: its `indptr` does not fit its shape and data; make it anew.")
    used = indices[: starts[-1]]
    if len(used) and not (used.min() >= 0 and used.max() < size):
        wrong = used[(used < 0) | (used >= size)][0]
        raise ValueError(
            f"`X` is a damaged sparse matrix: it has an index {wrong} where 0 to {size - 1} are possible in shape "
            f"{X.shape}; make it anew, with its right shape."
        )


def _dense(X: Any, finite: bool) -> Array:
    X = as_array("X", X)
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: `X` must hold real numbers.")
    if X.dtype not in (np.float32, np.float64):
        try:
            X = X.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise type(error)(f"`X` must hold numbers ({error}); pass text columns in a data frame.") from None
    if X.ndim != 2:
        raise ValueError(
            f"`X` must be two-dimensional (rows x columns), found shape {X.shape}. Reshape your data with "
            "X.reshape(-1, 1) for a single column or X.reshape(1, -1) for a single row."
        )
    if finite:
        check_finite_columns(finite_columns(X))
    return X


def check_weights(sample_weight: Any, n: int) -> Array:
    """Weights that sum to one; rows of weight zero count as absent."""
    if sample_weight is None:
        return np.full(n, 1.0 / n)
    w = as_array("sample_weight", sample_weight, float)
    if w.ndim == 0:
        w = np.full(n, float(w))
    if w.shape != (n,):
        raise ValueError(f"`sample_weight` must have one entry for each of the {n} rows, found shape {w.shape}.")
    if not np.isfinite(w).all() or (w < 0).any():
        raise ValueError("`sample_weight` must be finite and non-negative.")
    if not w.sum() > 0:
        raise ValueError("`sample_weight` is zero everywhere; at least one row must count.")
    return w / w.sum()


def tell_unrepeated(n_labels: Mapping[str, int], n: int, remedy: str, stacklevel: int) -> None:
    """Warn of columns of labels of which hardly any occurs twice in ``n`` rows: identifiers, dates, numbers."""
    found = [repr(name) for name, count in n_labels.items() if n >= MANY_ROWS and count > UNREPEATED * n]
    if found:
        warnings.warn(
            f"`X` has a label of its own in nearly every row of column(s) {listed(found)}: nothing can be learned from "
            f"them. {remedy}",
            UserWarning,
            stacklevel=stacklevel + 1,
        )


def check_unit(unit: float) -> float:
    """The scale of y, whose square must be a number too: it is the unit of the deviance."""
    if not 1e-150 < unit < 1e150:
        raise ValueError(
            f"`y` has a spread of about {unit:.0e}, too {'large' if unit > 1 else 'small'} for its squares to be "
            "numbers; multiply it by a power of ten."
        )
    return unit


def check_scales(scale: Array, y_unit: float) -> None:
    """Coefficients have the unit of y over that of their column, which must be a number."""
    with np.errstate(over="ignore", under="ignore"):
        unit = y_unit / scale
    bad = np.flatnonzero(~((unit > 1e-300) & (unit < 1e300)))
    if len(bad):
        raise ValueError(
            f"`X` has a spread of about {scale[bad[0]]:.0e} in column {bad[0]}, and y one of {y_unit:.0e}: the "
            "coefficient is too large or too small to be a number. Multiply this column (or y) by a power of ten."
        )


def check_sizes(sizes: Array) -> None:
    """Columns that are not scaled inside, and whose squares are the curvature of the loss."""
    bad = np.flatnonzero((sizes > 1e50) | (sizes < 1e-50) & (sizes > 0))
    if len(bad):
        raise ValueError(
            f"`X` has values of about {sizes[bad[0]]:.0e} in column {bad[0]}, which `standardize`=False takes as they "
            "are; multiply this column by a power of ten, or use standardize=True."
        )


def check_counts(sample_weight: Any, n: int) -> Array:
    """Weights as given, ones by default: their sum is the number of rows that count."""
    if sample_weight is None:
        return np.ones(n)
    check_weights(sample_weight, n)
    return np.broadcast_to(as_array("sample_weight", sample_weight, float), (n,))


def check_offset(offset: Any, n: int, q: int) -> Array:
    """Offset as an ``(n, q)`` array."""
    if offset is None:
        return np.zeros((n, q))
    values = as_array("offset", offset, float)
    if values.shape not in {(n,), (n, q)} or (values.ndim == 1 and q > 1):
        wanted = f"({n},)" if q == 1 else f"({n}, {q})"
        raise ValueError(f"`offset` must have shape {wanted}, found {values.shape}.")
    if not np.isfinite(values).all():
        raise ValueError("`offset` contains NaN or infinity.")
    return values.reshape(n, q)


def add_offset(eta: Array, offset: Any, q: int) -> Array:
    """Linear predictors of ``q`` outputs with what is known of them beforehand, if anything."""
    return eta if offset is None else eta + check_offset(offset, len(eta), q).reshape(eta.shape)


def check_number(name: str, value: Any, *, above: float = 0.0, at_most: float = np.inf) -> float:
    """A finite number larger than a limit, and not beyond another."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise TypeError(f"`{name}` must be a number, found {value!r}.")
    number = float(value)
    if not (np.isfinite(number) and number > above):
        raise ValueError(f"`{name}` must be a finite number above {above:g}, found {value!r}.")
    if number > at_most:
        raise ValueError(f"`{name}` must be at most {at_most:g}, found {value!r}.")
    return number


def check_integer(name: str, value: Any, least: int, other: str = "") -> int:
    """A whole number that is large enough; ``other`` says what else would do."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):  # True would pass for 1, and is never meant
        raise TypeError(f"`{name}` must be an integer{other}, found {value!r}.")
    if number < least:
        raise ValueError(f"`{name}` must be at least {least}, found {number}.")
    return number


def check_time(t: Any) -> float:
    """One positive time; not a list of them."""
    if np.ndim(t) != 0:
        raise TypeError(
            f"`t` must be one time, found an array of shape {np.shape(t)}; read several models with path.read(times), "
            "or in a loop."
        )
    number = t.item() if isinstance(t, np.ndarray) else t
    if not isinstance(number, numbers.Real):
        raise TypeError(f"`t` must be a number, found {t!r}.")
    time = float(number)
    if not time > 0:
        raise ValueError(f"`t` must be a positive time, found {t!r}.")
    return time


def check_times(t: Any) -> Array:
    """Requested times: positive and increasing."""
    times = np.atleast_1d(as_array("t", t, float))
    if times.ndim != 1 or len(times) == 0 or not np.isfinite(times).all() or (times <= 0).any():
        raise ValueError("`t` must be a list of positive, finite times.")
    if (np.diff(times) <= 0).any():
        raise ValueError("`t` must increase strictly: from strong to weak regularisation (t is like 1 / lambda).")
    return times
