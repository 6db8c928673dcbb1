"""Contacts of a family of sequences."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from os import PathLike
from typing import Any

import numpy as np

from bregpath._typing import IntArray
from bregpath._validation import check_number
from bregpath.estimators.potts import PottsGraph
from bregpath.graphs.alignments import Alignment, read_alignment, sequence_weights
from bregpath.graphs.study import GraphStudy

__all__ = ["ContactGraph"]

TIMES_CHANCE = 4.0  # how far a path is followed, in units of the time at which chance enters


@dataclass(eq=False, repr=False)
class ContactGraph(PottsGraph):
    r"""Which columns of an alignment touch: a `PottsGraph` with what suits families of sequences.

    A ranking of all pairs is wanted, not a sparse graph. So the path is followed until nearly all edges have entered,
    and strongly damped (a small kappa), which shrinks couplings as a ridge would.

    Parameters
    ----------
    identity : float, default 0.8
        Sequences that have so large a share of their columns in common count as one; see
        `bregpath.graphs.sequence_weights`.
    stop : "chance", or as for `PottsGraph`
        With "chance", the default, the time :math:`2 \sqrt{n}`, with n the effective number of sequences: four times
        that at which pairs enter that go together by mere chance.
    edge_weights : default "chance"
        Relative thresholds, in proportion to the norm that a block has by chance; see `PottsGraph`.
    kappa : float, default 0.3
    min_share : float, default 0.01
        Letters of a smaller share of a column, by the weights of the sequences, are pooled into one level, "(rare)",
        which also takes letters that were never seen: blocks are smaller, and hold less noise.
    n_times : int, default 10
        Few times are reported, since the record of all couplings is large.
    couplings, penalty, parameters, min_count, ...
        As of `PottsGraph`.

    Attributes
    ----------
    columns_ : ndarray of shape (p,)
        The number of each column in the file.
    n_effective_ : float
        The sum of the weights of the sequences.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_potts(n=800, p=8, q=4, graph="chain", strength=1.0, seed=0)
    >>> graph = bregpath.ContactGraph(identity=1).fit(data.X)
    >>> first = graph.contacts(min_separation=1).head(5)
    >>> (first.j - first.i).tolist()  # neighbours of the chain
    [1, 1, 1, 1, 1]
    """

    _rules = ("chance", *PottsGraph._rules)

    _: KW_ONLY
    identity: float = 0.8
    stop: str | float = "chance"
    edge_weights: Any = "chance"
    kappa: Any = 0.3
    min_share: float = 0.01
    n_times: int = 10

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn the couplings of an alignment.

        Parameters
        ----------
        X : Alignment, path of a file, or table of labels of shape (n, p)
            See `bregpath.graphs.read_alignment`. Columns with one letter only are kept, and get no edges.
        y : ignored
        sample_weight : array-like of shape (n,), optional
            How much each sequence counts, in place of the weights by ``identity``.

        Returns
        -------
        self
        """
        if isinstance(X, (str, PathLike)):
            X = read_alignment(X)
        self.columns_ = X.columns if isinstance(X, Alignment) else None
        table = X.letters if isinstance(X, Alignment) else X
        if sample_weight is None:
            sample_weight = sequence_weights(table, self.identity)
        with warnings.catch_warnings():
            # Conserved columns are the rule in alignments; a record of all couplings is large, and what is read of it
            # exact all the same.
            for known in ("`X` has one label only in column", "The record of this path grew beyond"):
                warnings.filterwarnings("ignore", message=known, category=UserWarning)
            super().fit(table, sample_weight=sample_weight)
        if self.columns_ is None:
            self.columns_ = np.arange(self.n_features_in_)
        self.n_effective_ = float(np.sum(sample_weight))
        return self

    def _least_count(self, w: Any) -> int:
        share = check_number("min_share", self.min_share, above=-1.0, at_most=1.0)
        return max(super()._least_count(w), int(np.ceil(share * np.sum(w))))

    def _given_time(self, study: GraphStudy) -> float | None:
        # A block of two independent nodes has slopes of norm 2 sqrt(v_j v_k / n), and the threshold sqrt(v_j v_k).
        chance = float(np.sqrt(study.w.sum())) / 2
        return TIMES_CHANCE * chance if self.stop == "chance" else super()._given_time(study)

    @property
    def _columns(self) -> IntArray | None:
        return self.columns_
