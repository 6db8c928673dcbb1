"""When a path has exactly the right signs."""

from __future__ import annotations

from typing import Any

import numpy as np

from bregpath import _validation
from bregpath._typing import Array
from bregpath.path import Path

__all__ = ["sign_intervals"]


def sign_intervals(path: Path, coef: Any) -> Array:
    """The times during which all coefficients of a path have the signs of ``coef``, zeros included.

    Parameters
    ----------
    path : Path
    coef : array-like of shape (p,) or (p, q)
        The true coefficients, or their signs.

    Returns
    -------
    ndarray of shape (k, 2)
        Beginning and end of each interval, in order; none where the signs are never right.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_linear(200, 20, 3, seed=0)
    >>> path = bregpath.trace_path(data.X, data.y)
    >>> len(bregpath.theory.sign_intervals(path, data.coef))
    1
    """
    wanted = np.sign(_validation.as_array("coef", coef, float)).reshape(len(np.atleast_1d(coef)), -1)
    if wanted.shape != (path.n_features, path.n_outputs):
        raise ValueError(
            f"`coef` must have one number a coefficient of the path, shape ({path.n_features}, {path.n_outputs}), "
            f"found {wanted.shape}."
        )
    # A sign changes only where a coefficient enters or leaves.
    ends = np.unique(np.concatenate([[0.0], path.event_times, [path.t[-1]]]))
    ends = ends[ends <= path.t[-1]]
    _, columns, values = path.read((ends[:-1] + ends[1:]) / 2)
    others = np.delete(wanted, columns, axis=0)
    right = np.all(np.sign(values) == wanted[columns], axis=(1, 2)) & (not others.any())
    steps = np.diff(np.concatenate([[0], right.astype(int), [0]]))
    return np.column_stack([ends[np.flatnonzero(steps == 1)], ends[np.flatnonzero(steps == -1)]])
