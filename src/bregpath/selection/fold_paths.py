"""The paths of a cross-validation: of all rows and of each fold, traced a stretch at a time."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bregpath import _validation
from bregpath._typing import Array, IntArray
from bregpath.flow.stop import Result
from bregpath.losses import AbstractLoss
from bregpath.path import Path
from bregpath.selection._again import read_again
from bregpath.selection._scores import Rows, Scorer
from bregpath.trace import trace_path

__all__ = ["Data", "FoldPath", "WholePath"]

# Beyond this size in all, folds do not copy their rows of a dense X: they share it, rows held out having weight zero.
COPY_BYTES = 2**30
CLOSE = 1e-12  # times that agree to this are the same
ENDED = (Result.SATURATED, Result.STALLED)  # the path goes no further, however often it is asked


@dataclass(frozen=True)
class Data:
    """All that folds need besides their rows."""

    X: Any
    y: Array
    coded: Array
    w: Array
    offset: Array | None
    weighted: bool
    loss: AbstractLoss
    unit: float
    options: dict[str, Any]

    @classmethod
    def prepare(cls, path: Path, X: Any, y: Any, options: dict[str, Any]) -> Data:
        """The data of a path on all rows, which `trace_path` made of the same arguments."""
        again, w = read_again(path, X, y, options), options.get("sample_weight")
        n = len(again.y)
        weights = np.ones(n) if w is None else _validation.check_weights(w, n) * n
        loss = copy(path.loss)  # encoding stores the classes on the loss; the one of the path stays as it is
        coded = loss.encode(again.y, weights / n)
        unit = path.units.y_unit if loss.has_units else 1.0
        return cls(again.X, again.y, coded, weights, again.offset, w is not None, loss, unit, again.options)

    def rows(self, rows: IntArray) -> Rows:
        """What a score needs of some rows."""
        return Rows(self.loss, self.unit, self.y[rows], self.coded[rows], self.w[rows], self.weighted)

    def pick(self, rows: IntArray, columns: IntArray | None = None) -> Any:
        """A copy of some rows of X, or of some of its columns; a dense one by columns, as products want it."""
        if _validation.is_sparse(self.X):
            return self.X[rows] if columns is None else self.X[rows][:, columns]
        return np.take(self.X.T, rows, axis=1).T if columns is None else self.X.T[np.ix_(columns, rows)].T

    def must_share(self, n_folds: int) -> bool:
        """Whether copies of the rows of all folds would take too much memory."""
        return not _validation.is_sparse(self.X) and (n_folds - 1) * self.X.nbytes > COPY_BYTES


class FoldPath:
    """The path on the training rows of a fold, which can be read at all times of the clock it has passed.

    Parameters
    ----------
    data : Data
        Of all folds.
    train, test : ndarray of int
        Rows of the fold.
    shares : bool
        Whether the fold works on the X of all rows, those held out having weight zero, or on a copy of its rows.
    """

    def __init__(self, data: Data, train: IntArray, test: IntArray, shares: bool = False) -> None:
        self.data = data
        self.train = train
        self.test = test
        self.shares = shares
        self.held_out = None if shares else data.pick(test)
        self.end = np.inf  # of a path that has ended by itself; its last model is kept from there on
        self.path: Path | None = None

    def advance(self, clock: Array, last: int) -> None:
        """Trace on to ``clock[last]``, or to where the path ends by itself."""
        until = min(float(clock[last]), self.end)
        if self.path is None:
            # Reading needs no reported times, so only the end is asked for.
            path = self._trace(np.array([until]))
        elif float(self.path.t[-1]) < until * (1 - CLOSE):
            path = self.path.extend(until)
        else:
            return
        if path.trajectory.is_thinned and len(path.t) < len(clock):
            path = self._trace(clock)  # a record that large is exact at reported times only
        if path.result in ENDED:
            # A step that ends a path may reach beyond the time that was asked for, and the path with it.
            inside = path.t[-1] < until * (1 - CLOSE)
            self.end = float(path.t[-1] if inside else path.trajectory.end / path.units.y_unit)
        self.path = path

    def _trace(self, times: Array) -> Path:
        data, rows = self.data, self.train
        w = data.w[rows]
        if self.shares:
            rows = np.arange(len(data.y))
            w = data.w * np.bincount(self.train, minlength=len(rows))
        X = data.X if self.shares else data.pick(rows)
        offset = None if data.offset is None else data.offset[rows]
        return trace_path(X, data.y[rows], sample_weight=w, offset=offset, t=times, **data.options)

    def score(self, scorers: tuple[Scorer, ...], times: Array) -> tuple[Array, Array]:
        """Scores (S, T) of the held-out rows by some measures, and their linear predictors."""
        eta = self._predict(self.test, times, self.held_out)
        rows = self.data.rows(self.test)
        return np.stack([scorer(rows, eta) for scorer in scorers]), eta

    def train_score(self, scorer: Scorer, times: Array) -> Array:
        """Scores (T,) of the training rows."""
        return scorer(self.data.rows(self.train), self._predict(self.train, times))

    def _predict(self, rows: IntArray, times: Array, X: Any = None) -> Array:
        """Linear predictors (T, n) or (T, n, q), by one product with the columns that were ever active."""
        assert self.path is not None
        intercept, columns, coef = self.path.read(np.minimum(times, self.path.t[-1]))
        T, E, q = coef.shape
        block = self.data.pick(rows, columns) if X is None else X[:, columns]
        eta = np.asarray(block @ coef.transpose(1, 0, 2).reshape(E, T * q))
        eta = eta.reshape(len(rows), T, q).transpose(1, 0, 2) + intercept[:, None]
        if self.data.offset is not None:
            eta = eta + self.data.offset[rows]
        return eta[:, :, 0] if q == 1 else eta

    def release(self) -> None:
        """Forget how to go on, and so the copies of rows."""
        assert self.path is not None
        self.held_out = None
        self.path = replace(self.path, _continue=None)


class WholePath:
    """The path on all rows, whose times are the clock of all folds.

    Traced to the end at once where that is wanted; else as far as the folds go first, and later as far as they went.
    """

    def __init__(self, X: Any, y: Any, options: dict[str, Any], first: int | None) -> None:
        """``first`` is the number of times to begin with, or None for all."""
        n_times = options.get("n_times", 100)
        self.is_complete = first is None or first >= n_times
        if self.is_complete:
            self.path = trace_path(X, y, **options)
            self.clock = self.path.t
            return
        assert first is not None
        grid = np.geomspace(1.0, _validation.check_number("t_ratio", options.get("t_ratio", 100.0), above=1.0), n_times)
        some = {**options, "t_ratio": float(grid[first - 1]), "n_times": first}
        self.path = trace_path(X, y, **some)
        self.clock = self.path.t[0] * grid
        if len(self.path.t) < first or self.path.t[-1] < self.clock[first - 1] * (1 - CLOSE):
            self.is_complete, self.clock = True, self.path.t  # it ended by itself
        else:
            self.path = replace(self.path, t=self.clock[:first])  # the same, to the last bit too

    def finish(self, n_times: int) -> Path:
        """The path at the first ``n_times`` times of the clock, or as many as it reaches."""
        if not self.is_complete and n_times > len(self.path.t):
            # A little short of the time, so that rounding does not put another time into the grid.
            path = self.path.extend(float(self.clock[n_times - 1]) * (1 - CLOSE))
            reached = len(path.t) == n_times and path.t[-1] > self.clock[n_times - 1] * (1 - 10 * CLOSE)
            times = self.clock[:n_times] if reached else np.append(self.clock[: len(path.t) - 1], path.t[-1])
            self.path = replace(path, t=times)
        return self.path
