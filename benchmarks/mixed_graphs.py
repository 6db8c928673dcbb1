"""How well edges of simulated mixed models are found: ``python -m benchmarks.mixed_graphs --rows 500 --models 20``.

By entry times (area under the ROC curve, also of a Gaussian graph that takes labels and counts for numbers), and by the
rules that choose a graph.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import bregpath
from bregpath.datasets import make_mixed_graph

RULES = ("ebic", "cv", "stable")


def area(path, adjacency) -> float:
    """Probability that an edge enters before a pair that is none."""
    j, k = np.triu_indices(len(adjacency), 1)
    entry, is_edge = path.entry_times[j, k], adjacency[j, k]
    first, second = entry[is_edge][:, None], entry[~is_edge]
    return float(np.mean((first < second) + 0.5 * (first == second)))


def shares(found, truth) -> tuple[float, float]:
    """False share and recall of some edges."""
    hits = np.sum(found & truth)
    return 1 - hits / max(found.sum(), 1), hits / truth.sum()


def measure(n: int, n_models: int, rules: tuple[str, ...], sizes: tuple[int, int, int]) -> None:
    areas, chosen, seconds = [], {rule: [] for rule in rules}, []
    for seed in range(n_models):
        data = make_mixed_graph(n, *sizes, seed=seed)
        for rule in rules:
            start = time.process_time()
            graph = bregpath.MixedGraph(data.kinds, stop=rule).fit(data.X)
            if rule == rules[0]:
                seconds.append(time.process_time() - start)
                plain = bregpath.GaussianGraph().fit(data.X)  # labels and counts taken for numbers
                areas.append((area(graph.path_, data.adjacency), area(plain.path_, data.adjacency)))
            chosen[rule].append((graph.adjacency_.sum() / 2, *shares(graph.adjacency_, data.adjacency)))
    mixed, plain = np.transpose(areas)
    print(f"n = {n}: area {mixed.mean():.4f} (least {mixed.min():.3f}), as numbers {plain.mean():.4f}", end="; ")
    print(f"{np.mean(seconds):.1f} s of one core a path", flush=True)
    for rule, values in chosen.items():
        edges, false, recall = np.mean(values, axis=0)
        print(f"   {rule:7s} {edges:.1f} edges, false share {false:.3f}, recall {recall:.3f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[250, 500, 1000])
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--rules", nargs="+", default=list(RULES))
    parser.add_argument("--sizes", type=int, nargs=3, default=[6, 6, 4], help="numbers, labels, counts")
    given = parser.parse_args()
    for n in given.rows:
        measure(n, given.models, tuple(given.rules), tuple(given.sizes))
