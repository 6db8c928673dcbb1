r"""Mixed graphical models with known truth: numbers, labels and counts."""

from __future__ import annotations

from functools import partial

import numpy as np

from bregpath._typing import Array, BoolArray, IntArray, Seed
from bregpath._validation import check_integer
from bregpath.datasets.arguments import check_range, generator, rows_of_test
from bregpath.datasets.edges import GraphKind, draw_edges
from bregpath.datasets.simulate_graphs import GraphSimulation, sampled
from bregpath.graphs import MixedModel
from bregpath.graphs.mixed_layout import MixedLayout
from bregpath.graphs.mixed_model import centred_block
from bregpath.graphs.problems import pair_sums

__all__ = ["make_mixed_graph"]

_BURN_IN = 200  # sweeps
_RATE = 3.0  # of counts that nothing else moves
_MAX_COUNT = 15  # five times the rate: one in ten million Poisson counts is larger
_LEAST_EIGENVALUE = 0.4  # of the precision matrix of the numbers
_MOST_PULL = 0.25  # of counts on themselves and each other by way of other nodes: more would drive them to their bound


def make_mixed_graph(
    n: int = 1000,
    n_numbers: int = 6,
    n_labels: int = 6,
    n_counts: int = 4,
    q: int = 3,
    graph: GraphKind = "random",
    strength: float = 0.25,
    seed: Seed = None,
    *,
    n_test: int | None = None,
) -> GraphSimulation:
    r"""Simulate a mixed graph: numbers, then labels, then counts, joined regardless of their kinds.

    Couplings are drawn in units of the spread of the nodes, as `MixedGraph` has them: the blocks of the edges have
    norms uniform on [s, 2s] with s the `strength`, and directions and signs at random; those between counts are
    negative. Numbers have conditional variance 1, labels no preference and counts the rate 3 where nothing else moves
    them. Couplings between numbers are made smaller where their precision matrix would have an eigenvalue below 0.4,
    those of counts with numbers and labels where these would pass on to counts more than a quarter of what counts do to
    them, which would let counts grow. Counts are cut off at 15, so that the model is proper.

    Parameters
    ----------
    n : int
        Number of rows, each from a Gibbs chain of its own after 200 sweeps.
    n_numbers, n_labels, n_counts : int
        Number of nodes of each kind.
    q : int
        Labels have 2, 3, ..., q, 2, 3, ... states in turn.
    graph : {"chain", "grid", "hub", "random", "scale-free"}
        See `make_gaussian_graph`; nodes are shuffled.
    strength : float
        Size of the couplings.
    seed, n_test
        As in `make_ising_grid`.

    Returns
    -------
    GraphSimulation
        `X` is float64, with states 0, 1, ... of the labels; `kinds` says what the columns are.

    Examples
    --------
    >>> from bregpath.datasets import make_mixed_graph
    >>> sim = make_mixed_graph(n=100, n_numbers=2, n_labels=2, n_counts=1, seed=0)
    >>> sim.kinds
    ('gaussian', 'gaussian', 'categorical', 'categorical', 'count')
    >>> sim.X.shape, sim.model.n_states.tolist()
    ((100, 5), [1, 1, 2, 3, 1])
    """
    n, q, n_test = check_integer("n", n, 1), check_integer("q", q, 2), rows_of_test(n_test)
    wanted = {"n_numbers": n_numbers, "n_labels": n_labels, "n_counts": n_counts}
    sizes = [check_integer(name, size, 0) for name, size in wanted.items()]
    p = sum(sizes)
    if p < 2:
        raise ValueError(f"`n_numbers`, `n_labels` and `n_counts` sum to {p}; a graph needs at least 2 nodes.")
    check_range("strength", strength, lambda v: 0 < v < np.inf, "a positive finite number")
    rng = generator(seed)
    layout = _layout(sizes, q)
    edges = rng.permutation(p)[draw_edges(graph, p, rng)]
    model = layout.model(_free_parameters(layout), _couplings(layout, edges, strength, rng))
    model = MixedModel(model.fields, model.couplings, model.kinds, model.n_states, model.max_counts)
    return sampled(model, n, n_test, rng, partial(model.sample, burn_in=_BURN_IN))


def _layout(sizes: list[int], q: int) -> MixedLayout:
    """Units of nodes that nothing else moves."""
    n_numbers, n_labels, n_counts = sizes
    n_states = 2 + np.arange(n_labels) % (q - 1)
    levels = [np.zeros(0)] * n_numbers + [np.arange(states) for states in n_states] + [np.zeros(0)] * n_counts
    kinds = np.repeat([0, 1, 2], sizes)
    pairs, others = n_states[n_states == 2], n_states[n_states > 2]
    mean = [np.zeros(n_numbers), np.full(n_counts, _RATE), 1.0 / pairs, np.repeat(1.0 / others, others)]
    spread = np.where(n_states == 2, 0.5, np.sqrt(1.0 - 1.0 / n_states))
    scale = np.concatenate([np.ones(n_numbers), spread, np.full(n_counts, np.sqrt(_RATE))])
    names = tuple(f"x{j}" for j in range(sum(sizes)))
    return MixedLayout(names, tuple(levels), kinds, np.concatenate(mean), scale, np.full(len(names), float(_MAX_COUNT)))


def _free_parameters(layout: MixedLayout) -> Array:
    """Numbers about 0 with precision 1, counts of the rate above, labels without preference."""
    kinds = layout.kinds
    n_numbers, n_counts = np.count_nonzero(kinds == 0), np.count_nonzero(kinds == 2)
    alpha = np.zeros(layout.n_alpha)
    alpha[n_numbers : 2 * n_numbers] = 1.0
    alpha[2 * n_numbers : 2 * n_numbers + n_counts] = np.sqrt(_RATE) * np.log(_RATE)
    return alpha


def _couplings(layout: MixedLayout, edges: IntArray, strength: float, rng: np.random.Generator) -> Array:
    """Blocks of the edges; zero elsewhere."""
    beta, kinds = np.zeros(layout.n_coefficients), layout.kinds
    j, k = layout.pairs.T
    for one, two in np.sort(edges, axis=1):
        own = (j == one) & (k == two)
        shape = [layout.n_states[node] if layout.n_states[node] > 2 else 1 for node in (one, two)]
        block = centred_block(rng.standard_normal(shape))
        block *= rng.uniform(strength, 2 * strength) / np.linalg.norm(block)
        beta[own] = -np.abs(block.ravel()) if kinds[one] == kinds[two] == 2 else block.ravel()
    return _within_bounds(layout, beta)


def _within_bounds(layout: MixedLayout, beta: Array) -> Array:
    """Smaller couplings, where the model would not be proper or counts be driven to their bound."""
    beta, kinds, p = beta.copy(), layout.kinds, layout.n_nodes
    j, k = layout.pairs.T
    of_numbers, of_others = (kinds[j] == 0) & (kinds[k] == 0), kinds[k] != 2
    to_counts = (kinds[j] != 2) & (kinds[k] == 2)

    def above(own: BoolArray, power: int) -> Array:
        return pair_sums(layout.pairs, np.where(own, beta, 0.0) ** power, p)

    numbers = above(of_numbers, 1)
    beta[of_numbers] *= _shrinkage(numbers + numbers.T, 1.0 - _LEAST_EIGENVALUE)
    # All others taken for numbers whose couplings pull the same way.
    others, pulls = np.sqrt(above(of_others, 2)), np.sqrt(above(to_counts, 2))
    others += others.T
    others *= _shrinkage(others, 1.0 - _LEAST_EIGENVALUE)
    passed_on = pulls.T @ np.linalg.solve(np.eye(p) - others, pulls)
    beta[to_counts] *= np.sqrt(_shrinkage(passed_on, _MOST_PULL))
    return beta


def _shrinkage(matrix: Array, most: float) -> float:
    """By what a matrix must be multiplied to have no eigenvalue above a limit."""
    largest = float(np.linalg.eigvalsh(matrix)[-1])
    return min(1.0, most / largest) if largest > 0 else 1.0
