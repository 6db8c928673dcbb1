"""Graphs as problems for the flow: store x loss x penalty of every model."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from bregpath._typing import Array, IntArray
from bregpath.losses import (
    FieldCompositeLoss,
    GaussianCompositeLoss,
    GaussianLikelihoodLoss,
    IsingCompositeLoss,
    IsingFlowLoss,
    MixedCompositeLoss,
)
from bregpath.penalties import AbstractPenalty, build_penalty
from bregpath.problem import Problem
from bregpath.stores.pairwise import PairwiseStore
from bregpath.stores.precision import PrecisionStore

__all__ = [
    "all_pairs",
    "field_ends",
    "field_problem",
    "gaussian_problem",
    "ising_problem",
    "mixed_problem",
    "pair_sums",
]

MAX_DENSE_STATES = 4  # a node, on average, up to which indicators are kept dense


@lru_cache(maxsize=2)  # every graph of a path asks for them
def all_pairs(p: int) -> IntArray:
    """Pairs (0, 1), (0, 2), ..., (p-2, p-1), one a row; not to be written to."""
    pairs = np.stack(np.triu_indices(p, 1), axis=1)
    pairs.setflags(write=False)
    return pairs


def pair_sums(pairs: IntArray, values: Array, p: int) -> Array:
    """Sums of some numbers of the coefficients over each pair j < k of p nodes, in a matrix (p, p)."""
    sums = np.bincount(pairs[:, 0] * p + pairs[:, 1], weights=values, minlength=p**2)
    return sums.reshape(p, p)


def ising_problem(spins: Array, w: Array, edge_weights: Array, kappa: float, loss: str, fit_fields: bool) -> Problem:
    """Ising model of spins (n, p); ``edge_weights`` (p, p) are the thresholds of the edges.

    With ``loss="nodewise"`` every pair has two coefficients, one for each end: p separate logistic regressions on one
    clock.
    """
    n, p = spins.shape
    pairs = all_pairs(p)
    if loss == "nodewise":
        source = np.concatenate([pairs[:, :1], pairs[:, 1:]])
        target = np.concatenate([pairs[:, 1:], pairs[:, :1]])
        pairs = np.concatenate([pairs, pairs])
    else:
        source, target = pairs, pairs[:, ::-1]
    store = PairwiseStore(np.asfortranarray(spins, dtype=float), p, source, np.ascontiguousarray(target))
    kind = IsingFlowLoss if loss == "mpf" else IsingCompositeLoss
    penalty = build_penalty("l1", len(source), 1, penalty_factor=edge_weights[pairs[:, 0], pairs[:, 1]])
    return Problem(store, kind(p), penalty, spins, w, np.zeros((1, p)), kappa, fit_fields)


def field_problem(
    states: IntArray, n_states: IntArray, w: Array, edge_weights: Array, kappa: float, ends: IntArray, penalty: str
) -> Problem:
    """Discrete Markov field of states (n, p) whose coefficients have the given `field_ends`."""
    starts = np.concatenate([[0], np.cumsum(n_states)])
    features = _indicators(starts[:-1] + states, int(starts[-1]))
    source, target = _places(starts, ends)
    store = PairwiseStore(features, int(starts[-1]), source, target, has_indicators=True)
    mirror = _field_penalty(penalty, ends, edge_weights)
    loss = FieldCompositeLoss(n_states)
    return Problem(store, loss, mirror, states, w, np.zeros((1, loss.n_outputs)), kappa, True)


def _indicators(columns: IntArray, size: int) -> Any:
    """Indicators (n, size) of the states of all nodes, of which each row has one a node."""
    n, p = columns.shape
    rows = np.repeat(np.arange(n), p)
    if size <= MAX_DENSE_STATES * p:  # few states a node: products with zeros cost less than addressing
        dense = np.zeros((n, size), order="F")
        dense[rows, columns.ravel()] = 1.0
        return dense
    from scipy.sparse import csc_array

    return csc_array((np.ones(n * p), (rows, columns.ravel())), shape=(n, size))


def field_ends(n_states: IntArray, couplings: str = "full", parameters: str = "symmetric") -> IntArray:
    """Rows (j, k, l, m): a coefficient couples state l of node j to state m of node k.

    ``couplings="full"`` has a block of them an edge, ``"diagonal"`` only those of equal states. With
    ``parameters="reduced"`` the first state of a node is its reference and has none.
    """
    ends = []
    for j, k in all_pairs(len(n_states)):
        first, second = np.divmod(np.arange(n_states[j] * n_states[k]), n_states[k])
        if couplings == "diagonal":
            first = second = np.arange(min(n_states[j], n_states[k]))
        ends.append(np.stack([np.full_like(first, j), np.full_like(first, k), first, second], axis=1))
    every = np.concatenate(ends)
    return every if parameters == "symmetric" else every[np.all(every[:, 2:] > 0, axis=1)]


def _places(starts: Array, ends: IntArray) -> tuple[IntArray, IntArray]:
    """The features that coefficients multiply, and the predictors they are added to: those of the other node."""
    j, k, first, second = ends.T
    source = np.stack([starts[j] + first, starts[k] + second], axis=1)
    return source, np.ascontiguousarray(source[:, ::-1])


def _field_penalty(penalty: str, ends: IntArray, edge_weights: Array) -> AbstractPenalty:
    weights = edge_weights[ends[:, 0], ends[:, 1]]
    if penalty == "l1":
        return build_penalty("l1", len(ends), 1, penalty_factor=weights)
    edge = ends[:, 0] * len(edge_weights) + ends[:, 1]
    return build_penalty(penalty, len(ends), 1, groups=edge, penalty_factor=weights)


def mixed_problem(
    features: Array, y: Array, w: Array, edge_weights: Array, kappa: float, loss: MixedCompositeLoss, ends: IntArray,
    starts: IntArray,
) -> Problem:  # fmt: skip
    """Graph of mixed data whose features of node j begin at ``starts[j]``; ``ends`` are the nodes and features joined.

    The predictor has a column for each feature, and behind those of the numbers one for each of their precisions.
    """
    source, target = _places(starts, ends)
    target += loss.n_numbers * (target >= loss.n_numbers)
    # Curvatures are those of the loss, in NumPy: no cheaper than gradients.
    store = PairwiseStore(np.asfortranarray(features), loss.n_outputs, source, target, has_cheap_curvature=False)
    mirror = _field_penalty("group", ends, edge_weights)
    return Problem(store, loss, mirror, y, w, np.zeros((1, loss.n_outputs)), kappa, True)


def gaussian_problem(covariance: Array, edge_weights: Array, kappa: float, loss: str) -> Problem:
    """Gaussian graph of a covariance matrix; the diagonal of the precision matrix is free."""
    p = len(covariance)
    pairs = all_pairs(p)
    kind = GaussianCompositeLoss if loss == "composite" else GaussianLikelihoodLoss
    penalty = build_penalty("l1", len(pairs), 1, penalty_factor=edge_weights[pairs[:, 0], pairs[:, 1]])
    return Problem(PrecisionStore(p, pairs), kind(p), penalty, covariance, np.ones(1), np.zeros((1, p)), kappa, True)
