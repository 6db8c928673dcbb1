r"""Graphical models with known truth: samples of Ising, Potts and Gaussian graphs.

As in `bregpath.datasets.simulate`, the truth is drawn before the data: the same `seed` with another `n` is the same
model, and a fresh sample of it comes with `n_test`. Rows are independent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bregpath._typing import Array, IntArray, Seed
from bregpath._validation import check_integer
from bregpath.datasets.arguments import check_range, generator, rows_of_test, signed_uniform
from bregpath.datasets.edges import GraphKind, draw_edges, grid
from bregpath.graphs import GaussianModel, IsingModel, MixedModel, PottsModel, gibbs
from bregpath.path import of_its

__all__ = ["GraphSimulation", "make_gaussian_graph", "make_ising_grid", "make_potts", "sampled"]

_BURN_IN = 2000  # sweeps, as in the paper


@dataclass(frozen=True, eq=False, repr=False)
class GraphSimulation:
    """A simulated data set with the graphical model that generated it.

    Attributes
    ----------
    X : ndarray of shape (n, p)
        The sample.
    model : IsingModel, PottsModel, GaussianModel or MixedModel
        The truth.
    X_test : as X, with `n_test` rows, or None
        A fresh sample of the same model.

    Examples
    --------
    >>> from bregpath.datasets import make_ising_grid
    >>> make_ising_grid(N=3, n=50, seed=0)
    GraphSimulation(IsingModel, n=50, p=9, edges=12)
    """

    X: Array
    model: IsingModel | PottsModel | GaussianModel | MixedModel
    X_test: Array | None = None

    fields = of_its("model.fields", "Fields of an Ising, Potts or mixed model.")
    couplings = of_its("model.couplings", "Couplings of an Ising, Potts or mixed model.")
    kinds = of_its("model.kinds", 'What the nodes of a mixed model are: "gaussian", "categorical" or "count".')
    precision = of_its("model.precision", "Precision matrix of a Gaussian graph.")
    adjacency = of_its("model.adjacency", "Which nodes are joined (p, p).")

    def __repr__(self) -> str:
        n, p = self.X.shape
        edges = np.count_nonzero(self.adjacency) // 2
        tested = "" if self.X_test is None else f", n_test={len(self.X_test)}"
        return f"GraphSimulation({type(self.model).__name__}, n={n}, p={p}, edges={edges}{tested})"


def make_ising_grid(
    N: int = 6, T: float = 1.25, n: int = 750, seed: Seed = None, *, n_test: int | None = None
) -> GraphSimulation:
    r"""Simulate an Ising model on an N x N grid, as in the paper (Huang & Yao, AISTATS 2018).

    Nodes are joined to their neighbours to the left, right, above and below. Fields :math:`a_j` and the couplings
    :math:`b_{jk}` of the edges are uniform on :math:`[-2/T, -1/T] \cup [1/T, 2/T]`.

    Parameters
    ----------
    N : int
        Side of the grid; the nodes are counted row by row, p = N^2.
    T : float
        Temperature: small T, strong couplings.
    n : int
        Number of rows, each from a Gibbs chain of its own after 2000 sweeps.
    seed : int, numpy.random.Generator or None
        Source of randomness. A generator is advanced by the call.
    n_test : int, optional
        Rows of a fresh sample of the same model, `X_test`. They do not depend on `n`.

    Returns
    -------
    GraphSimulation
        `X` holds -1 and +1 (int8).

    Examples
    --------
    >>> from bregpath.datasets import make_ising_grid
    >>> sim = make_ising_grid(N=4, T=1.5, n=100, seed=0)
    >>> sim.X.shape, sim.couplings.shape, int(sim.adjacency.sum()) // 2
    ((100, 16), (16, 16), 24)
    """
    n, N, n_test = check_integer("n", n, 1), check_integer("N", N, 1), rows_of_test(n_test)
    check_range("T", T, lambda v: 0 < v < np.inf, "a positive finite number")
    rng = generator(seed)
    edges = grid(N * N, rng)
    fields = signed_uniform(rng, 1.0 / T, N * N)
    model = IsingModel(fields, _fill(N * N, edges, signed_uniform(rng, 1.0 / T, len(edges))))
    return _sampled_by_chains(model, n, n_test, rng)


def make_potts(
    n: int = 750,
    p: int = 16,
    q: int = 3,
    graph: GraphKind = "grid",
    strength: float = 0.5,
    seed: Seed = None,
    *,
    n_test: int | None = None,
) -> GraphSimulation:
    r"""Simulate a Potts model: p nodes with q states each, and a full q x q block of couplings for each edge.

    Fields and the entries of blocks are uniform on :math:`[-2s, -s] \cup [s, 2s]` with s the `strength`; then fields,
    and rows and columns of blocks, are centred (the zero-sum gauge, in which the parameters are unique).

    Parameters
    ----------
    n, p, q : int
        Number of rows, each from a Gibbs chain of its own after 2000 sweeps; of nodes; and of states.
    graph : {"chain", "grid", "hub", "random", "scale-free"}
        See `make_gaussian_graph`.
    strength : float
        Size of fields and couplings.
    seed, n_test
        As in `make_ising_grid`.

    Returns
    -------
    GraphSimulation
        `X` holds 0 ... q - 1 (int32).

    Examples
    --------
    >>> from bregpath.datasets import make_potts
    >>> sim = make_potts(n=100, p=9, q=4, seed=0)
    >>> sim.X.shape, sim.couplings.shape, sim.model.block(0, 1).shape
    ((100, 9), (36, 36), (4, 4))
    """
    n, p, q, n_test = check_integer("n", n, 1), check_integer("p", p, 1), check_integer("q", q, 2), rows_of_test(n_test)
    check_range("strength", strength, lambda v: 0 < v < np.inf, "a positive finite number")
    rng = generator(seed)
    edges = draw_edges(graph, p, rng)
    fields = signed_uniform(rng, strength, (p, q))
    blocks = np.zeros((p, q, p, q))
    for (j, k), block in zip(edges, signed_uniform(rng, strength, (len(edges), q, q)), strict=True):
        blocks[j, :, k], blocks[k, :, j] = block, block.T
    model = PottsModel(_centred(fields, 1).ravel(), _centred(blocks, 1, 3).reshape(p * q, p * q), np.full(p, q))
    return _sampled_by_chains(model, n, n_test, rng)


def make_gaussian_graph(
    n: int = 200,
    p: int = 30,
    graph: GraphKind = "chain",
    strength: float = 0.6,
    seed: Seed = None,
    *,
    n_test: int | None = None,
) -> GraphSimulation:
    r"""Simulate a Gaussian graph: normal rows with precision matrix :math:`\Omega = I + c A`.

    A holds numbers uniform on :math:`[-1, -1/2] \cup [1/2, 1]` at the edges, and c is such that the smallest eigenvalue
    of :math:`\Omega` is 1 - `strength`. The diagonal is one, so :math:`-\omega_{jk}` are the partial correlations.

    Parameters
    ----------
    n, p : int
        Number of rows and of nodes.
    graph : {"chain", "grid", "hub", "random", "scale-free"}
        chain: each node and the next. grid: rows of :math:`\lceil\sqrt p\rceil` nodes, joined to the left, right, above
        and below. hub: the first of every ten nodes and the other nine. random: each pair with the same probability,
        three neighbours on average. scale-free: each node joins one of those before it, with probability proportional
        to the number of neighbours that one has.
    strength : float
        Between 0 (no edges to be seen) and 1 (singular), both excluded.
    seed, n_test
        As in `make_ising_grid`.

    Returns
    -------
    GraphSimulation
        `X` is float64.

    Examples
    --------
    >>> from bregpath.datasets import make_gaussian_graph
    >>> sim = make_gaussian_graph(n=50, p=20, graph="hub", seed=0)
    >>> sim.X.shape, sim.precision.shape, sim.adjacency.sum(axis=1)[:4].tolist()
    ((50, 20), (20, 20), [9, 1, 1, 1])
    """
    n, p, n_test = check_integer("n", n, 1), check_integer("p", p, 1), rows_of_test(n_test)
    check_range("strength", strength, lambda v: 0 < v < 1, "a number strictly between 0 and 1")
    rng = generator(seed)
    edges = draw_edges(graph, p, rng)
    A = _fill(p, edges, signed_uniform(rng, 0.5, len(edges)))
    lowest = np.linalg.eigvalsh(A)[0] if len(edges) else -1.0
    model = GaussianModel(np.eye(p) - strength / lowest * A)
    return sampled(model, n, n_test, rng, model.sample)


# --- parts ------------------------------------------------------------------------------------------------------------


def sampled(
    model: Any, n: int, n_test: int | None, rng: np.random.Generator, draw: Callable[[int, np.random.Generator], Array]
) -> GraphSimulation:
    """Independent rows of the model; those to test on have a stream of their own."""
    return GraphSimulation(draw(n, rng), model, None if n_test is None else draw(n_test, rng.spawn(1)[0]))


def _sampled_by_chains(
    model: IsingModel | PottsModel, n: int, n_test: int | None, rng: np.random.Generator
) -> GraphSimulation:
    def draw(n: int, rng: np.random.Generator) -> Array:
        return gibbs(model, n, burn_in=_BURN_IN, chains=n, seed=rng, method="gibbs")

    return sampled(model, n, n_test, rng, draw)


def _fill(p: int, edges: IntArray, values: Array) -> Array:
    """Symmetric matrix with `values` at the edges."""
    matrix = np.zeros((p, p))
    matrix[edges[:, 0], edges[:, 1]] = values
    return matrix + matrix.T


def _centred(values: Array, *axes: int) -> Array:
    for axis in axes:
        values = values - values.mean(axis=axis, keepdims=True)
    return values
