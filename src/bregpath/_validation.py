"""Checks of the data a user passes; every error names the argument, what was found and the remedy."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from bregpath._typing import Array

__all__ = ["check_counts", "check_design", "check_number", "check_offset", "check_times", "check_weights"]


def is_sparse(X: Any) -> bool:
    """Whether X is a scipy.sparse matrix or array, found out without importing scipy.sparse."""
    return hasattr(X, "tocsc") and hasattr(X, "nnz")


def check_design(X: Any) -> Any:
    """``X`` as a dense float array (not copied when it is one) or a scipy.sparse matrix of floats, finite and 2-D."""
    if is_sparse(X):
        if X.dtype.kind not in "fiub":
            raise TypeError(f"`X` must hold real numbers, found dtype {X.dtype}.")
        X = X if X.dtype.kind == "f" else X.astype(np.float64)
        if not np.isfinite(X.tocsc().data).all():
            raise ValueError("`X` contains NaN or infinity; impute or drop these values before tracing a path.")
    else:
        X = _dense(X)
    n, p = X.shape
    if n == 0 or p == 0:
        raise ValueError(
            f"`X` is empty: 0 sample(s) or 0 feature(s) (shape={X.shape}) while a minimum of 1 is required."
        )
    return X


def _dense(X: Any) -> Array:
    if not isinstance(X, np.ndarray):
        X = np.asarray(X)
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
    # The sum of a column is finite unless it holds NaN or infinity (or overflows): one pass, no temporary of X's size.
    with np.errstate(invalid="ignore", over="ignore"):  # inf - inf
        total = X.sum(axis=0, dtype=np.float64)
    if not np.isfinite(total).all():
        finite = np.array([np.isfinite(X[:, j]).all() for j in range(X.shape[1])])
        if not finite.all():
            bad = np.flatnonzero(~finite)
            raise ValueError(
                f"`X` contains NaN or infinity in {len(bad)} column(s) (first: column {bad[0]}); "
                "impute or drop these values before tracing a path."
            )
    return X


def check_weights(sample_weight: Any, n: int) -> Array:
    """Weights that sum to one; rows of weight zero count as absent."""
    if sample_weight is None:
        return np.full(n, 1.0 / n)
    w = np.asarray(sample_weight, dtype=float)
    if w.ndim == 0:
        w = np.full(n, float(w))
    if w.shape != (n,):
        raise ValueError(f"`sample_weight` must have one entry for each of the {n} rows, found shape {w.shape}.")
    if not np.isfinite(w).all() or (w < 0).any():
        raise ValueError("`sample_weight` must be finite and non-negative.")
    if not w.sum() > 0:
        raise ValueError("`sample_weight` is zero everywhere; at least one row must count.")
    return w / w.sum()


def check_counts(sample_weight: Any, n: int) -> Array:
    """Weights as given, ones by default: their sum is the number of rows that count."""
    if sample_weight is None:
        return np.ones(n)
    check_weights(sample_weight, n)
    return np.broadcast_to(np.asarray(sample_weight, dtype=float), (n,))


def check_offset(offset: Any, n: int, q: int) -> Array:
    """Offset as an ``(n, q)`` array."""
    if offset is None:
        return np.zeros((n, q))
    values = np.asarray(offset, dtype=float)
    if values.shape not in {(n,), (n, q)} or (values.ndim == 1 and q > 1):
        wanted = f"({n},)" if q == 1 else f"({n}, {q})"
        raise ValueError(f"`offset` must have shape {wanted}, found {values.shape}.")
    if not np.isfinite(values).all():
        raise ValueError("`offset` contains NaN or infinity.")
    return values.reshape(n, q)


def check_number(name: str, value: Any, *, above: float = 0.0) -> float:
    """A finite number larger than a limit."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise TypeError(f"`{name}` must be a number, found {value!r}.")
    number = float(value)
    if not (np.isfinite(number) and number > above):
        raise ValueError(f"`{name}` must be a finite number above {above:g}, found {value!r}.")
    return number


def check_times(t: Any) -> Array:
    """Requested times: positive and increasing."""
    times = np.atleast_1d(np.asarray(t, dtype=float))
    if times.ndim != 1 or len(times) == 0 or not np.isfinite(times).all() or (times <= 0).any():
        raise ValueError("`t` must be a list of positive, finite times.")
    if (np.diff(times) <= 0).any():
        raise ValueError("`t` must increase strictly: from strong to weak regularisation (t is like 1 / lambda).")
    return times
