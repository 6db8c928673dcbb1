"""What every selection rule returns: a point on a path, with the curve it was read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bregpath._typing import Array
from bregpath.path import Path

__all__ = ["Selection"]


@dataclass(frozen=True, eq=False, repr=False)
class Selection:
    r"""A chosen time on a path, and the curve it was chosen on.

    With :math:`m(t)` the curve (smaller is better) and :math:`s(t)` its standard error,

    .. math:: t_\min = \arg\min_t m(t), \qquad
              t_{1se} = \min \{t : m(t) \le m(t_\min) + s(t_\min)\}.

    Attributes
    ----------
    rule : str
        How t was chosen, in words.
    t : float
        The chosen time: `t_min`, unless `one_se` was asked for.
    t_min : float
        The best time; the smallest of those that are equally good.
    t_1se : float or None
        The smallest time, so the sparsest model, within one standard error of the best; None for a criterion,
        which has no standard error.
    times : ndarray of shape (n_times,)
        Where the curve was evaluated.
    mean : ndarray of shape (n_times,)
        The curve: mean score over the folds, or the criterion.
    se : ndarray of shape (n_times,) or None
        Its standard error.
    measure : str
        What the curve measures: "deviance", "misclassification", "bic", ...
    larger_is_better : bool
        Whether the best point of the curve is its largest.
    curves : dict of str to ndarray of shape (n_times,)
        Other curves on the same times; "df" is always there.
    fold_scores : ndarray of shape (n_folds, n_times) or None
    fold_weights : ndarray of shape (n_folds,) or None
        Total weight of the held-out rows of each fold.
    out_of_fold : ndarray of shape (n_times, n) or (n_times, n, q), or None
        Linear predictor of each row by the model that has not seen it, NaN for rows never held out.
    path : Path or None
        The path on all rows, on which t is a point.

    Examples
    --------
    >>> import bregpath
    >>> from bregpath.selection.cross_validation import cross_validate
    >>> data = bregpath.datasets.make_linear(100, 10, 3, seed=0)
    >>> selection = cross_validate(data.X, data.y)
    >>> selection.t_1se <= selection.t_min == selection.t
    True
    >>> selection.one_se().t == selection.t_1se
    True
    """

    rule: str
    t: float
    t_min: float
    t_1se: float | None
    times: Array
    mean: Array
    se: Array | None = None
    measure: str = "score"
    larger_is_better: bool = False
    curves: Mapping[str, Array] = field(default_factory=dict)
    fold_scores: Array | None = None
    fold_weights: Array | None = None
    out_of_fold: Array | None = None
    path: Path | None = None

    def one_se(self) -> Selection:
        """The same selection with the sparser model of the one-standard-error rule."""
        if self.t_1se is None:
            raise ValueError(
                f"There is no standard error for the rule {self.rule!r}; use `t_min`, or cross_validate()."
            )
        return replace(self, t=self.t_1se, rule=f"{self.rule}, one-standard-error rule")

    def plot(self, **kwargs: Any) -> Any:
        """Draw the curve against time; see `bregpath.plots.plot_selection`."""
        from bregpath.plots import plot_selection

        return plot_selection(self, **kwargs)

    def __repr__(self) -> str:
        header = ["", "t", self.measure, *(["se"] if self.se is not None else []), *self.curves]
        lines = ["".join(f"{name:>{_width(name)}}" for name in header)]
        rows = {"1se": self.t_1se, "min": self.t_min} if self.t_1se is not None else {"min": self.t_min}
        for name, t in rows.items():
            i = int(np.argmin(np.abs(self.times - t)))
            values = [self.times[i], self.mean[i], *([self.se[i]] if self.se is not None else [])]
            values += [curve[i] for curve in self.curves.values()]
            chosen = f"{'*' if t == self.t else ''}{name}"
            cells = "".join(f"{v:>{_width(h)}.4g}" for h, v in zip(header[1:], values, strict=True))
            lines.append(f"{chosen:>{_width('')}}{cells}")
        return "\n".join([f"Selection by {self.rule}, {len(self.times)} times: t = {self.t:.4g}", *lines])


def _width(name: str) -> int:
    return max(len(name) + 2, 6 if name in ("", "df") else 11)
