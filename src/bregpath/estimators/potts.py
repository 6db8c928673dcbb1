"""Potts graphs: discrete Markov fields."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from bregpath import _validation
from bregpath._typing import Array, BoolArray
from bregpath.estimators.discrete import DiscreteGraph
from bregpath.graphs.data import StateCoder
from bregpath.graphs.layouts import AbstractLayout, FieldLayout
from bregpath.selection.checks import check_choice

__all__ = ["PottsGraph", "check_states"]


@dataclass(eq=False, repr=False)
class PottsGraph(DiscreteGraph):
    r"""Sparse discrete Markov field: nodes with two or more states, a block of couplings an edge.

    .. math:: P(x) \propto \exp\Big(\sum_j a_{j; x_j} + \sum_{j<k} b_{jk}[x_j, x_k]\Big)

    An edge is a block :math:`b_{jk}`; its weight is the Frobenius norm. Nodes may have different numbers of states,
    of any labels.

    Parameters
    ----------
    couplings : {"full", "diagonal"}, default "full"
        Whole blocks, or one coupling for each pair of equal states only (the Potts model of physics).
    stop, gamma, cv, missing, mask, edge_weights, kappa, flow, step, tol, t, t_ratio, n_times, max_sparsity, saturation
        See `AbstractGraph`; gamma is 0.25 by default.
    penalty : {"group", "group-sqrt", "l1"}, default "group"
        Whether the couplings of an edge enter together (with "group-sqrt" the threshold is the square root of their
        number, for nodes of unequal numbers of states), or each for itself.
    parameters : {"symmetric", "reduced"}, default "symmetric"
        Whether all states have parameters, or the first of each node is the reference and has none.
    min_count : int, default 1
        Labels of fewer rows of a node are pooled into one level, "(rare)", which also takes labels that `score` has
        never seen. With 1 nothing is pooled, and unseen labels are refused. Weights count rows.
    loss : {"composite"}
        Composite conditional likelihood (pseudo-likelihood).
    screening, stable_threshold, stars_beta, n_subsamples, n_jobs, random_state, progress
        See `AbstractGraph`.

    Attributes
    ----------
    weights_ : ndarray of shape (p, p)
        Norms of the blocks.
    fields_ : ndarray of shape (sum of the numbers of states,)
        ``model().block(j, k)`` gives a block of couplings.
    levels_ : list of ndarray
        Labels of each node, in the order of its states. A node with one label only gets no edges.
    adjacency_, t_, path_, selection_, n_features_in_, feature_names_in_
        See `AbstractGraph`.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_potts(n=1500, p=9, q=3, graph="chain", strength=0.7, seed=4)
    >>> graph = bregpath.PottsGraph().fit(data.X)
    >>> bool((graph.adjacency_ == data.adjacency).all())
    True
    """

    _losses = ("composite",)

    couplings: str = "full"
    _: KW_ONLY
    penalty: str = "group"
    parameters: str = "symmetric"
    min_count: int = 1
    loss: str = "composite"

    def _read(self, X: Any, w: Any, rng: np.random.Generator) -> tuple[AbstractLayout, Array, Array, BoolArray]:
        for name in ("couplings", "penalty"):
            check_choice(name, getattr(self, name), FieldLayout.choices[name])
        check_choice("parameters", self.parameters, FieldLayout.choices["parameters_are"])
        if not isinstance(self.min_count, numbers.Integral) or self.min_count < 1:
            raise ValueError(f"`min_count` must be a whole number of at least 1, found {self.min_count!r}.")
        coder, codes = StateCoder.learn(X, int(self.min_count), w, self._takes_gaps)
        weights = _validation.check_counts(w, len(codes))
        check_states(coder.names, coder.levels, codes, weights)
        layout = FieldLayout(coder.names, coder.levels, self.couplings, self.parameters, self.penalty)
        return self._checked(layout, codes, weights, rng)


def check_states(names: Sequence[str], levels: Sequence[Array], codes: Array, w: Array) -> None:
    """All labels have rows that count; codes below 0 are missing."""
    for name, labels, column in zip(names, levels, codes.T, strict=True):
        known = column >= 0
        counts = np.bincount(column[known], weights=w[known], minlength=len(labels))
        if not counts.all():
            missing = labels[counts == 0].tolist()
            raise ValueError(
                f"`X` has labels {missing} in column {name!r} whose rows all have weight 0; drop these rows."
            )
