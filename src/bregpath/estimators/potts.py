"""Potts graphs: discrete Markov fields."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from bregpath import _validation
from bregpath._typing import Array
from bregpath.estimators.graph import AbstractGraph
from bregpath.graphs.data import StateCoder, collapse_rows
from bregpath.graphs.layouts import AbstractLayout, FieldLayout

__all__ = ["PottsGraph"]


class PottsGraph(AbstractGraph):
    r"""Sparse discrete Markov field: nodes with two or more states, a block of couplings an edge.

    .. math:: P(x) \propto \exp\Big(\sum_j a_{j; x_j} + \sum_{j<k} b_{jk}[x_j, x_k]\Big)

    An edge is a block :math:`b_{jk}`; its weight is the Frobenius norm. Nodes may have different numbers of states,
    of any labels.

    Parameters
    ----------
    couplings : {"full", "diagonal"}, default "full"
        Whole blocks, or one coupling for each pair of equal states only (the Potts model of physics).
    stop, gamma, cv, mask, edge_weights, kappa, step, tol, t_ratio, n_times, max_sparsity, screening
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
    stars_beta, n_subsamples, n_jobs, random_state, progress
        See `AbstractGraph`.

    Attributes
    ----------
    weights_ : ndarray of shape (p, p)
        Norms of the blocks.
    fields_ : ndarray of shape (sum of the numbers of states,)
        ``model().block(j, k)`` gives a block of couplings.
    levels_ : list of ndarray
        Labels of each node, in the order of its states.
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

    _coder: StateCoder
    _losses = ("composite",)

    def __init__(
        self,
        couplings: str = "full",
        *,
        stop: str | float = "ebic",
        gamma: float = 0.25,
        cv: Any = 5,
        mask: Any = None,
        edge_weights: Any = None,
        penalty: str = "group",
        parameters: str = "symmetric",
        min_count: int = 1,
        loss: str = "composite",
        kappa: float = 10.0,
        step: float | str = "adaptive",
        tol: float = 0.05,
        t_ratio: float = 100.0,
        n_times: int = 100,
        max_sparsity: float | None = None,
        screening: bool = True,
        stars_beta: float = 0.05,
        n_subsamples: int = 20,
        n_jobs: int | None = None,
        random_state: Any = 0,
        progress: bool | None = False,
    ) -> None:
        super().__init__(
            stop=stop, gamma=gamma, cv=cv, mask=mask, edge_weights=edge_weights, kappa=kappa, step=step, tol=tol,
            t_ratio=t_ratio, n_times=n_times, max_sparsity=max_sparsity, screening=screening, stars_beta=stars_beta,
            n_subsamples=n_subsamples, n_jobs=n_jobs, random_state=random_state, progress=progress,
        )  # fmt: skip
        self.couplings = couplings
        self.penalty = penalty
        self.parameters = parameters
        self.min_count = min_count
        self.loss = loss

    def _prepare(self, X: Any, w: Any) -> tuple[AbstractLayout, Array, Array]:
        choices = {
            "couplings": ("full", "diagonal"),
            "penalty": ("group", "group-sqrt", "l1"),
            "parameters": ("symmetric", "reduced"),
        }
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise ValueError(f"`{name}` must be one of {list(known)}, found {getattr(self, name)!r}.")
        if not isinstance(self.min_count, numbers.Integral) or self.min_count < 1:
            raise ValueError(f"`min_count` must be a whole number of at least 1, found {self.min_count!r}.")
        coder, codes = StateCoder.learn(X, int(self.min_count), w)
        weights = _validation.check_counts(w, len(codes))
        _check_states(coder, codes, weights)
        self._coder = coder
        self.levels_ = list(coder.levels)
        layout = FieldLayout(coder.names, coder.levels, self.couplings, self.parameters, self.penalty)
        return layout, codes, weights

    def _distinct(self, rows: Array, w: Array) -> tuple[Any, Array]:
        return collapse_rows(rows, w / w.sum())

    def _encode(self, X: Any) -> Array:
        return self._coder.encode(X)


def _check_states(coder: StateCoder, codes: Array, w: Array) -> None:
    """At least two states a node, all of them with rows that count."""
    for name, labels, column in zip(coder.names, coder.levels, codes.T, strict=True):
        present = np.bincount(column, weights=w, minlength=len(labels)) > 0
        if present.sum() < 2:
            raise ValueError(f"`X` has one label only in column {name!r}; drop it, it tells nothing.")
        if not present.all():
            missing = labels[~present].tolist()
            raise ValueError(
                f"`X` has labels {missing} in column {name!r} whose rows all have weight 0; drop these rows."
            )
