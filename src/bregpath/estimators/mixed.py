"""Graphs of mixed data."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from bregpath import _validation
from bregpath._typing import Array, BoolArray
from bregpath.estimators.discrete import tell_constant
from bregpath.estimators.gaussian import check_squares
from bregpath.estimators.graph import AbstractGraph
from bregpath.estimators.potts import check_states
from bregpath.graphs.layouts import AbstractLayout
from bregpath.graphs.missing import draw_from_margins
from bregpath.graphs.mixed_data import MixedCoder
from bregpath.graphs.mixed_layout import MixedLayout
from bregpath.selection.kappas import CV_RULES

__all__ = ["MixedGraph"]


@dataclass(eq=False, repr=False)
class MixedGraph(AbstractGraph):
    r"""Sparse graph over mixed data: numbers, labels and counts.

    Given all others, a number is normal, a label multinomial and a count Poisson with a log link:

    .. math:: \log P(x) = \sum_j a_j^\top \phi_j + \sum_{j<k} \phi_j^\top B_{jk} \phi_k
              - \tfrac12 \sum_{\text{numbers}} \omega_j x_j^2 - \sum_{\text{counts}} \log x_j! - \log Z

    with features :math:`\phi_j`: a number or count itself, or indicators of labels. The sum of these conditional
    likelihoods is fitted, with one block :math:`B_{jk}` a pair, which both of its ends share. Inside, the features of a
    node are centred and divided by one unit, so that their variances sum to one: pairs of all kinds enter on equal
    terms, and it does not matter in which units numbers are given.

    Parameters
    ----------
    kinds : "auto", mapping or sequence, default "auto"
        "gaussian", "categorical", "count" or "auto" for each column; a mapping, from names or positions, may leave some
        out. "auto" takes text, categories, truth values and integers of two values for labels, all other numbers for
        gaussian. Counts must be asked for.
    stop, gamma, cv, missing, mask, edge_weights, kappa, step, tol, t, t_ratio, n_times, max_sparsity, screening
        See `AbstractGraph`; gamma is 0.25 by default.
    min_count : int, default 1
        Labels of fewer rows of a node are pooled into one level, "(rare)"; see `PottsGraph`.
    loss : {"composite"}
        Composite conditional likelihood (pseudo-likelihood).
    flow, stable_threshold, stars_beta, n_subsamples, n_jobs, random_state, progress
        See `AbstractGraph`.

    Attributes
    ----------
    weights_ : ndarray of shape (p, p)
        Norms of the blocks in the units above, over :math:`\sqrt{\omega_j}` of each number: the partial correlation of
        two numbers. Signed where numbers, counts and nodes of two labels meet (the second label counts as up), and
        positive where there are more labels.
    fields_ : ndarray
        An entry for each number, count and state; ``model().block(j, k)`` gives couplings.
    kinds_ : list of str
        Of each column.
    levels_ : list of ndarray
        Labels of each node, none of numbers and counts.
    adjacency_, t_, path_, selection_, n_features_in_, feature_names_in_
        See `AbstractGraph`.

    Notes
    -----
    Positive couplings of counts, and couplings of counts and numbers, have a joint distribution only if counts are
    bounded. `sample` cuts them off at the largest that was seen; the fit does not.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_mixed_graph(n=1000, seed=0)
    >>> graph = bregpath.MixedGraph(data.kinds).fit(data.X)
    >>> graph.kinds_[0], graph.kinds_[-1]
    ('gaussian', 'count')
    >>> bool((graph.adjacency_ == data.adjacency).mean() > 0.95)
    True
    """

    _losses = ("composite",)
    _rules = ("ebic", "bic", *CV_RULES, "stars", "stable")

    saturation = None

    kinds: Any = "auto"
    _: KW_ONLY
    min_count: int = 1
    loss: str = "composite"

    def _limits(self, p: int) -> AbstractContextManager[Any]:
        # Threads of BLAS wait for each other longer than small products take.
        return threadpool_limits(1, user_api="blas")

    def _read(self, X: Any, w: Any, rng: np.random.Generator) -> tuple[AbstractLayout, Array, Array, BoolArray]:
        least = _validation.check_integer("min_count", self.min_count, 1)
        coder, rows = MixedCoder.learn(X, self.kinds, least, w, self._takes_gaps)
        weights, missing = _validation.check_counts(w, len(rows)), np.isnan(rows)
        labels = [j for j, kind in enumerate(coder.kinds) if kind == "categorical"]
        codes = np.where(missing, -1, rows)[:, labels].astype(np.intp)
        check_states([coder.names[j] for j in labels], [coder.levels[j] for j in labels], codes, weights)
        rows = draw_from_margins(rows, missing, rng)
        check_squares(rows, coder.names)
        layout = MixedLayout.of_rows(coder.names, coder.kinds, coder.levels, rows, weights)
        varies = layout.varies(rows, weights)
        lacking = layout.needs_variation & ~varies
        if lacking.any():
            raise ValueError(f"`X` is constant in column {coder.names[int(lacking.argmax())]!r}; drop it.")
        tell_constant(coder.names, varies, "value", stacklevel=5)
        self.kinds_, self.levels_, self._coder = list(coder.kinds), list(coder.levels), coder
        return layout, rows, weights, missing

    def _encode(self, X: Any) -> Array:
        return self._coder.encode(X)

    def plot(self, t: float | None = None, **kwargs: Any) -> Any:
        """Draw the graph: as the others, with the kinds of the nodes by colour; edges that have no sign are grey."""
        check_is_fitted(self)
        return super().plot(t, **{"groups": self.kinds_, **kwargs})

    def _log_units(self, rows: Array, w: Array) -> float:
        is_number, is_count = (np.array([kind == own for own in self.kinds_]) for kind in ("gaussian", "count"))
        units = self.path_.layout.scale[is_number]  # type: ignore[attr-defined]
        densities = np.sum(np.log(units)) + 0.5 * len(units) * np.log(2 * np.pi)
        factorials = float(w @ gammaln(rows[:, is_count] + 1.0).sum(axis=1) / w.sum())
        return float(densities) + factorials
