"""Ising graphs."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from bregpath import _validation
from bregpath._typing import Array, BoolArray
from bregpath.estimators.discrete import DiscreteGraph
from bregpath.graphs.data import StateCoder
from bregpath.graphs.layouts import AbstractLayout, IsingLayout
from bregpath.graphs.path import GraphPath
from bregpath.selection.checks import check_choice

__all__ = ["IsingGraph"]


@dataclass(eq=False, repr=False)
class IsingGraph(DiscreteGraph):
    r"""Sparse Ising model of binary variables, from the empty graph on.

    .. math:: P(x) \propto \exp\Big(\tfrac12 \sum_j a_j x_j + \tfrac12 \sum_{j<k} b_{jk} x_j x_k\Big),
              \qquad x \in \{-1, +1\}^p,

    so that :math:`\log P(x_j = 1 | \cdot) / P(x_j = -1 | \cdot) = a_j + \sum_k b_{jk} x_k`.

    Parameters
    ----------
    loss : {"composite", "mpf", "nodewise"}, default "composite"
        Composite conditional likelihood (pseudo-likelihood); minimum probability flow, often better at finding edges;
        or a separate logistic regression of each node on all others.
    stop, gamma, cv, missing, mask, edge_weights, kappa, flow, step, tol, t, t_ratio, n_times, max_sparsity, saturation
        See `AbstractGraph`; gamma is 0.25 by default.
    rule : {"and", "or"}, default "and"
        Whether a node-wise edge needs both of its coefficients, or one. Its coupling is their mean.
    fit_fields : bool, default True
        Whether nodes have fields; without them all :math:`a_j` are zero.
    coding : {"spin", "binary"}, default "spin"
        Whether ``weights_`` and ``fields_`` are those of x in {-1, +1} or of x in {0, 1}; both describe the same model.
    screening, stable_threshold, stars_beta, n_subsamples, n_jobs, random_state, progress
        See `AbstractGraph`.

    Attributes
    ----------
    weights_ : ndarray of shape (p, p)
        Couplings.
    fields_ : ndarray of shape (p,)
    levels_ : list of ndarray
        The two labels of each node; the second counts as +1. Where one only was seen, the other is that of another node
        with the same label, or "(rare)"; such a node gets no edges, and a field as if half a row had the other.
    adjacency_, t_, path_, selection_, n_features_in_, feature_names_in_
        See `AbstractGraph`.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_ising_grid(3, T=1.5, n=1000, seed=0)
    >>> graph = bregpath.IsingGraph("mpf").fit(data.X)
    >>> bool((graph.adjacency_ == data.adjacency).all())
    True
    """

    _losses = IsingLayout.choices["loss"]

    loss: str = "composite"
    _: KW_ONLY
    rule: str = "and"
    fit_fields: bool = True
    coding: str = "spin"

    def _read(self, X: Any, w: Any, rng: np.random.Generator) -> tuple[AbstractLayout, Array, Array, BoolArray]:
        check_choice("rule", self.rule, IsingLayout.choices["rule"])
        check_choice("coding", self.coding, ("spin", "binary"))
        seen, _ = StateCoder.learn(X, gaps=self._takes_gaps)
        _check_binary(seen)
        coder = seen.with_pairs()
        codes = coder.encode(X, gaps=self._takes_gaps)
        layout = IsingLayout(coder.names, coder.levels, self.loss, self.rule, bool(self.fit_fields))
        return self._checked(layout, codes, _validation.check_counts(w, len(codes)), rng)

    def _shown(self, path: GraphPath, t: float) -> tuple[Array, Array]:
        if self.coding == "spin":
            return super()._shown(path, t)
        fields, couplings = path.model(t).zero_one()
        return couplings, fields

    def predict_proba(self, X: Any) -> Array:
        """Probability that each node is in its second state, given all others: shape (n, p)."""
        check_is_fitted(self)
        return expit(self._predictor(self._encode(X)))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        r"""Mean over rows of :math:`\sum_j \log P(x_j | \cdot)`, the composite log-likelihood; larger is better."""
        check_is_fitted(self)
        codes = self._encode(X)
        w = _validation.check_counts(sample_weight, len(codes))
        return -float(w @ np.logaddexp(0.0, (1.0 - 2.0 * codes) * self._predictor(codes)).sum(axis=1) / w.sum())

    def _predictor(self, codes: Array) -> Array:
        """Log-odds of each node given all others."""
        point = self.path_.at(self.t_)
        return point.intercept + (2.0 * codes - 1.0) @ point.coef


def _check_binary(coder: StateCoder) -> None:
    """At most two labels a node."""
    for name, labels in zip(coder.names, coder.levels, strict=True):
        if len(labels) > 2:
            raise ValueError(
                f"`X` has {len(labels)} labels {labels[:4].tolist()} in column {name!r}; an Ising model takes two, use "
                "PottsGraph."
            )
