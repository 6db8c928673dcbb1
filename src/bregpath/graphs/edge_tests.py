"""Could a graph do without an edge? Wald tests by the curvature of its loss."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import gammaincc

from bregpath._typing import Array, IntArray
from bregpath.graphs.path import GraphPath
from bregpath.graphs.study import GraphStudy
from bregpath.problem import Problem

__all__ = ["edge_p_values"]

FLAT = 1e-10  # eigenvalues of the curvature, relative to the largest, below which nothing is known of a direction


def edge_p_values(study: GraphStudy, path: GraphPath, t: float) -> Array:
    r"""p-values of the edges at ``t``, (p, p), against what all other edges could take over from them; 1 elsewhere.

    Every edge gets a factor by which its coefficients :math:`\beta_e` are multiplied. With :math:`H` the second
    derivative of the mean loss in these factors and the fields,

    .. math:: W_e = \frac{n}{c\, (H^{-1})_{ee}} \sim \chi^2_{k_e}

    if the edge is false: one over the square of the factor's standard error. An edge that stands for a path of others
    has a large one, as they could grow in its place. Both ends of an edge see the same rows, so that a composite
    likelihood counts them twice and c = 2: over the edges of seven models of real votes the median ratio of the
    sandwich to :math:`H^{-1}` was 2.0 to 2.2. The sandwich itself ranks edges worse: where a node hardly varies, the
    few rows in which it does make it far too small.
    """
    problem, _, layout = replace(study, layout=study.layout.likelihood).on()
    alpha, beta = next(layout.each_time(*path.path.read(np.array([t]))))
    used = np.flatnonzero(beta)
    pairs, edge = np.unique(layout.pairs[used], axis=0, return_inverse=True)
    edge = edge.ravel()
    n = study.w.sum() * problem.loss.deviance_factor / 2  # a loss may be twice a likelihood
    statistics = n * _factor_precisions(problem, alpha, beta[used, None], used, edge)
    p_values = np.ones((layout.n_nodes, layout.n_nodes))
    for number, (j, k) in enumerate(pairs):
        own, alone = np.zeros_like(beta), np.zeros_like(p_values)
        own[used[edge == number]], alone[j, k] = 1.0, 1.0
        size = layout.n_parameters(own, alone)
        sightings, size = (size, 1) if layout.is_nodewise else (layout.n_sightings, size)
        p_values[j, k] = p_values[k, j] = gammaincc(size / 2, statistics[number] / (2 * sightings))
    return p_values


def _factor_precisions(problem: Problem, alpha: Array, beta: Array, used: IntArray, edge: IntArray) -> Array:
    """``1 / (H^-1)_ee`` of the factors of all edges, other factors and the unpenalised parameters being free."""
    block = problem.store.fetch(used)
    eta = problem.predictor(block, alpha, beta)
    q, n_edges = problem.n_alpha, int(edge.max(initial=-1)) + 1

    def bend(of_alpha: Array, factors: Array) -> Array:
        step = problem.predictor(block, of_alpha, factors[edge, None] * beta, offset=False)
        bent = problem.curvature(eta, step)
        of_factors = np.bincount(edge, weights=(beta * block.rmatvec(bent))[:, 0], minlength=n_edges)
        return np.concatenate([problem.alpha_gradient(bent), of_factors])

    units = np.eye(q + n_edges)[0 if problem.fit_intercept else q :]
    hessian = np.array([bend(unit[:q], unit[q:]) for unit in units])[:, -len(units) :]
    size = np.sqrt(np.maximum(np.diagonal(hessian), 0.0))
    size[size == 0] = 1.0
    curvature, axes = np.linalg.eigh((hessian + hessian.T) / np.outer(2 * size, size))
    variances = axes**2 @ (1.0 / np.maximum(curvature, FLAT * curvature[-1]))
    return (size**2 / variances)[len(units) - n_edges :]
