"""Which rows are held out together."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np

from bregpath import _frames
from bregpath._typing import Array, IntArray

__all__ = ["Folds", "make_folds"]

Folds = list[tuple[IntArray, IntArray]]


def make_folds(cv: Any, X: Any, y: Array, w: Array, groups: Any = None, stratify: bool = False, seed: Any = 0) -> Folds:
    """Training and held-out rows of each fold, without rows of weight ``w`` zero; see `cross_validate`.

    ``X``, ``y`` and ``groups`` are handed to a splitter as they are. With ``stratify``, ``y`` holds classes, of which
    each of ``cv`` folds gets its share.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array(["a", "a", "a", "a", "b", "b"])
    >>> [y[test].tolist() for _, test in make_folds(2, None, y, np.ones(6), stratify=True)]
    [['a', 'a', 'b'], ['a', 'a', 'b']]
    """
    n, rows = len(y), np.flatnonzero(w > 0)
    if groups is not None:
        groups = _frames.series_to_numpy(groups, "cv_groups")
        if len(groups) != n:
            raise ValueError(f"`cv_groups` must have one label for each of the {n} rows, found {len(groups)}.")
    pairs: Iterable[Any]
    if isinstance(cv, numbers.Integral) and not isinstance(cv, bool):
        some = None if groups is None else groups[rows]
        fold = _by_number(int(cv), y[rows], some, stratify, seed)
        return [(rows[fold != k], rows[fold == k]) for k in range(int(cv))]
    if hasattr(cv, "split") and not isinstance(cv, str):
        pairs = _by_splitter(cv, X, y, groups)
    elif isinstance(cv, Iterable) and not isinstance(cv, str):
        pairs = cv
    else:
        raise TypeError(f"`cv` must be a number of folds, a splitter or a list of (train, test) rows, found {cv!r}.")
    folds = [_check_fold(pair, k, n, w) for k, pair in enumerate(pairs)]
    if not folds:
        raise ValueError("`cv` gives no folds; at least one pair (train, test) is needed.")
    return folds


def _by_number(k: int, y: Array, groups: Array | None, stratify: bool, seed: Any) -> IntArray:
    """The one of ``k`` folds of about the same size in which each row is held out."""
    units, what = len(y), "rows of positive weight"
    if groups is not None:
        units, what = len(np.unique(groups)), "different `cv_groups`"
    if k < 2 or k > units:
        remedy = f"use a number of folds from 2 to {units}" if units > 1 else "it takes two to make a fold"
        raise ValueError(f"`cv`={k} is not possible with {units} {what}; {remedy}.")
    if groups is not None:
        return _by_groups(k, y, groups, stratify)
    if not stratify:
        return _deal(np.zeros(len(y), dtype=int), k, seed)
    classes, codes, count = np.unique(y, return_inverse=True, return_counts=True)
    if count.min() < 2:
        raise ValueError(
            f"`cv`={k} needs two rows of each class, found one of class {_label(classes[count.argmin()])}; "
            "merge or drop the class, or choose t by information_criterion()."
        )
    return _deal(codes.ravel(), k, seed)


def _deal(codes: IntArray, k: int, seed: Any) -> IntArray:
    """Deal the shuffled rows of one class after the other, like cards: shares differ by one row at most."""
    generators = (np.random.Generator, np.random.RandomState)
    random = seed if isinstance(seed, generators) else np.random.default_rng(seed)
    order = random.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    fold = np.empty(len(codes), dtype=int)
    fold[order] = np.arange(len(codes)) % k
    return fold


def _by_groups(k: int, y: Array, groups: Array, stratify: bool) -> IntArray:
    from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

    splitters = [GroupKFold(k)]
    # Without k rows of every class there is nothing to balance, and scikit-learn would say so in its own words.
    if stratify and np.unique(y, return_counts=True)[1].min() >= k:
        splitters.insert(0, StratifiedGroupKFold(k))
    for splitter in splitters:
        fold = np.zeros(len(y), dtype=int)
        for i, (_, test) in enumerate(splitter.split(y, y, groups)):
            fold[test] = i
        if len(np.unique(fold)) == k:  # balancing classes may leave a fold without any row
            break
    return fold


def _by_splitter(splitter: Any, X: Any, y: Array, groups: Any) -> list[Any]:
    try:
        return list(splitter.split(X, y, groups))
    except ValueError as error:
        hint = " Groups are given as `cv_groups`." if groups is None and "group" in str(error) else ""
        raise ValueError(f"`cv`: {splitter} cannot split these {len(y)} rows: {error}{hint}") from None


def _check_fold(pair: Any, k: int, n: int, w: Array) -> tuple[IntArray, IntArray]:
    try:
        train, test = (np.arange(n)[np.asarray(rows) if len(rows) else slice(0)] for rows in pair)
    except (TypeError, ValueError, IndexError) as error:
        raise ValueError(f"`cv`: fold {k} is not a pair (train, test) of rows of X, which has {n} ({error}).") from None
    train, test = train[w[train] > 0], test[w[test] > 0]
    if not len(train) or not len(test):
        raise ValueError(f"`cv`: fold {k} has no {'test' if len(train) else 'training'} rows of positive weight.")
    return train, test


def _label(label: Any) -> str:
    return repr(label.item() if isinstance(label, np.generic) else label)
