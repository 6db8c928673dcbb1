"""Potts graphs: discrete Markov fields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from bregpath import _validation
from bregpath._typing import Array, BoolArray, IntArray
from bregpath.estimators.discrete import DiscreteGraph
from bregpath.graphs.alignments import GAP
from bregpath.graphs.contacts import contact_scores, contact_table
from bregpath.graphs.data import StateCoder, count_states
from bregpath.graphs.layouts import AbstractLayout, FieldLayout
from bregpath.selection.checks import check_choice, check_count

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
    stop, gamma, cv, missing, mask, kappa, flow, step, tol, t, t_ratio, n_times, max_sparsity, saturation
        See `AbstractGraph`; gamma is 0.25 by default.
    edge_weights : array-like of shape (p, p) or "chance", optional
        See `AbstractGraph`. With "chance" thresholds are in proportion to what a block is by mere chance,
        :math:`\sqrt{(1 - \sum_l f_{j;l}^2)(1 - \sum_m f_{k;m}^2)}` with the shares f of the labels of both nodes: even
        nodes of few and rare labels, and those of many, enter by the same evidence.
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
        check_count("min_count", self.min_count, 1)
        coder, codes = StateCoder.learn(X, self._least_count(w), w, self._takes_gaps)
        weights = _validation.check_counts(w, len(codes))
        check_states(coder.names, coder.levels, codes, weights)
        layout = FieldLayout(coder.names, coder.levels, self.couplings, self.parameters, self.penalty)
        return self._checked(layout, codes, weights, rng)

    def _least_count(self, w: Any) -> int:
        """Rows, by their weights, that a label needs not to be pooled."""
        return int(self.min_count)

    def _edge_weights(self, layout: AbstractLayout, rows: Array, w: Array) -> Any:
        if not isinstance(self.edge_weights, str):
            return self.edge_weights
        check_choice("edge_weights", self.edge_weights, ("chance",), " or a matrix")
        assert isinstance(layout, FieldLayout)
        shares = (counts / w.sum() for counts in count_states(rows, w, layout.n_states.tolist()))
        spread = np.array([1.0 - float(share @ share) for share in shares])
        spread[spread <= 0] = 1.0  # one label only: such a node gets no edges
        return np.sqrt(np.outer(spread, spread))

    def contacts(self, min_separation: int = 4, t: float | None = None, gap: Any = GAP) -> Any:
        """Pairs of columns of an alignment by how likely they touch, highest first.

        Parameters
        ----------
        min_separation : int, default 4
            Pairs that are closer in the sequence are left out.
        t : float, optional
            Another time than the chosen one.
        gap : label, default "-"
            The label of gaps, which do not count.

        Returns
        -------
        pandas.DataFrame
            Columns ``i`` and ``j``, counted from 0, and the ``score``; see `bregpath.graphs.contact_scores`. For
            alignments `bregpath.ContactGraph` has the better defaults.
        """
        names = self.path_.names if hasattr(self, "feature_names_in_") else None
        return contact_table(self.contact_scores(t, gap), min_separation, self._columns, names)

    def contact_scores(self, t: float | None = None, gap: Any = GAP) -> Array:
        """The score of every pair (p, p); see `bregpath.graphs.contact_scores`."""
        return contact_scores(self.model(t), gap)

    def plot_contacts(self, *, t: float | None = None, gap: Any = GAP, **kwargs: Any) -> Any:
        """Draw the map of contacts; see `bregpath.plots.plot_contacts`."""
        from bregpath.plots import plot_contacts

        return plot_contacts(self.contact_scores(t, gap), columns=self._columns, **kwargs)

    @property
    def _columns(self) -> IntArray | None:
        """Positions of the nodes in the sequence, if they are not simply 0, 1, ..."""
        return None


def check_states(names: Sequence[str], levels: Sequence[Array], codes: Array, w: Array) -> None:
    """All labels have rows that count, and most of them several; codes below 0 are missing."""
    n_labels = {name: len(labels) for name, labels in zip(names, levels, strict=True)}
    remedy = "GaussianGraph and MixedGraph take numbers; drop identifiers and dates, or pool labels by `min_count`."
    _validation.tell_unrepeated(n_labels, len(codes), remedy, stacklevel=5)
    for name, labels, column in zip(names, levels, codes.T, strict=True):
        known = column >= 0
        counts = np.bincount(column[known], weights=w[known], minlength=len(labels))
        if not counts.all():
            missing = labels[counts == 0].tolist()
            raise ValueError(
                f"`X` has labels {missing} in column {name!r} whose rows all have weight 0; drop these rows."
            )
