"""Stores: where the columns of X live, and the blocks of them that paths work on. Data enters here and nowhere else."""

from __future__ import annotations

from typing import Any

import numpy as np

from bregpath import _validation
from bregpath.stores.base import AbstractBlock, AbstractStore, Scan, scan_columns
from bregpath.stores.dense import DenseBlock, DenseStore
from bregpath.stores.sparse import SparseBlock, SparseStore
from bregpath.stores.standardized import StandardizedStore

__all__ = [
    "AbstractBlock",
    "AbstractStore",
    "DenseBlock",
    "DenseStore",
    "Scan",
    "SparseBlock",
    "SparseStore",
    "StandardizedStore",
    "as_store",
    "scan_columns",
]


def as_store(X: Any, passes_over_rows: bool = False) -> AbstractStore:
    """A store of the data a user passes; its `AbstractStore.scan` finds numbers that are not finite.

    Of a dense X in memory most of which is zero the rest alone is kept where paths pass over its rows time and again.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> as_store(sp.eye_array(3)).shape
    (3, 3)
    """
    if isinstance(X, AbstractStore):
        return X
    is_on_disk = isinstance(X, np.memmap)
    X = _validation.check_design(X, finite=False)
    if _validation.is_sparse(X):
        return SparseStore(X, is_canonical=True)
    sparse = SparseStore.of_dense(X) if passes_over_rows and not is_on_disk else None
    return sparse or DenseStore(X)
