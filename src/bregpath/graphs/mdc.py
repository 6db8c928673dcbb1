r"""Do two samples look alike? Correlation of their pairwise marginal distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bregpath._typing import Array
from bregpath._validation import as_array

__all__ = ["mdc", "pairwise_tables"]


def mdc(X1: Any, X2: Any, levels: Sequence[Any] | None = None) -> float:
    r"""Second-order marginal distribution correlation of two samples of discrete variables.

    :math:`d_2(X)` is the :math:`2p \times 2p` matrix of the 2 x 2 tables of relative frequencies of all pairs of
    columns (for variables with q states, :math:`pq \times pq`); the result is the Pearson correlation of
    :math:`\mathrm{vec}\, d_2(X_1)` and :math:`\mathrm{vec}\, d_2(X_2)`, at most 1 and close to it if both samples come
    from the same distribution (Huang & Yao, AISTATS 2018). To judge a fitted graph, compare held-out rows with as many
    fresh ones from the model: the paper chooses the graph on a path that does best.

    Parameters
    ----------
    X1, X2 : array-like of shapes (n1, p) and (n2, p)
        Samples of the same variables, with the same labels in both: -1/+1, 0/1, or any others.
    levels : sequence of p sequences, optional
        All labels of each column. By default they are those found: if the samples hold at most two different labels,
        every column is taken to have both, else each column has the labels that occur in it.

    Returns
    -------
    float
        Between -1 and 1.

    Examples
    --------
    >>> from bregpath.graphs import mdc
    >>> X1 = [[1, 1], [1, 1], [-1, -1], [-1, 1]]
    >>> X2 = [[1, 1], [1, -1], [-1, -1], [-1, 1]]
    >>> mdc(X1, X1), mdc(X1, X2)
    (1.0, 0.756)
    """
    first, second = _sample("X1", X1), _sample("X2", X2)
    if first.shape[1] != second.shape[1]:
        raise ValueError(f"`X1` and `X2` must have the same columns, found {first.shape[1]} and {second.shape[1]}.")
    labels = _labels(first, second) if levels is None else [_as_labels(set(known)) for known in levels]
    if len(labels) != first.shape[1]:
        raise ValueError(f"`levels` must hold the labels of each of the {first.shape[1]} columns, found {len(labels)}.")
    a = pairwise_tables(first, labels, "X1").ravel()
    b = pairwise_tables(second, labels, "X2").ravel()
    a, b = a - a.mean(), b - b.mean()
    # Never 0 / 0: the table of a column with itself holds zeros and positive numbers.
    return float(np.clip((a @ b) / np.sqrt((a @ a) * (b @ b)), -1.0, 1.0))


def pairwise_tables(X: Array, levels: Sequence[Array], name: str = "X") -> Array:
    """The matrix of all pairwise tables of relative frequencies; `levels` are the labels of each column."""
    indicators = np.concatenate([X[:, j, None] == labels for j, labels in enumerate(levels)], axis=1).astype(float)
    if indicators.sum() != X.size:
        known = [np.isin(X[:, j], labels).all() for j, labels in enumerate(levels)]
        j = int(np.argmin(known))
        raise ValueError(f"`{name}` has labels in column {j} that `levels` does not list ({list(levels[j])}).")
    return indicators.T @ indicators / len(X)


def _sample(name: str, X: Any) -> Array:
    values = as_array(name, X)
    if values.ndim != 2 or values.size == 0:
        raise ValueError(
            f"`{name}` must be two-dimensional (rows x columns) and not empty, found shape {values.shape}."
        )
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise ValueError(f"`{name}` contains NaN; drop or impute these rows.")
    return values


def _labels(X1: Array, X2: Array) -> list[Array]:
    """Labels of each column: the same two if there are no others, else those that occur in it."""
    first, second = _distinct(X1), _distinct(X2)
    kinds = {X.dtype.kind in "US" for X in (X1, X2) if X.dtype != object}
    if len(kinds) == 2 or _codings_differ(first, second) or _codings_differ(second, first):
        raise ValueError(
            f"`X1` and `X2` must have the same labels, found {_listed(first)} and {_listed(second)}; "
            "code both in the same way."
        )
    if len(first | second) <= 2:
        return [_as_labels(first | second)] * X1.shape[1]
    return [_as_labels(_distinct(X1[:, j]) | _distinct(X2[:, j])) for j in range(X1.shape[1])]


def _distinct(X: Array) -> set[Any]:
    return set(X.ravel().tolist() if X.dtype == object else np.unique(X).tolist())


def _codings_differ(one: set[Any], other: set[Any]) -> bool:
    """Whether one sample is coded -1/+1 and the other 0/1."""
    return -1 in one and one <= {-1, 1} and 0 in other and other <= {0, 1}


def _listed(labels: set[Any]) -> str:
    return ", ".join(map(repr, sorted(labels, key=str)[:5])) + (", ..." if len(labels) > 5 else "")


def _as_labels(labels: set[Any]) -> Array:
    """An array of at least two labels; a second one that never occurs keeps two rows for a constant variable."""
    listed = sorted(labels, key=str)
    if len(listed) > 1 and len({isinstance(label, str) for label in listed}) == 1:
        return np.array(listed)
    array = np.empty(max(len(listed), 2), dtype=object)
    array[: len(listed)] = listed
    return array
