"""How well paths of graphs find edges: areas under ROC curves over many simulated models. Started by `graphs`.

Edges are ranked by the time at which they enter, earliest first, those that never enter tied last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Make = Callable[[int], Any]  # seed -> GraphSimulation


@dataclass(frozen=True)
class Study:
    """One kind of model and the ways of learning it, with the mean areas that are wanted."""

    title: str
    make: Make
    graphs: dict[str, Callable[[], Any]]
    targets: dict[str, float]


def auc(times: np.ndarray, truth: np.ndarray) -> float:
    """Share of pairs (edge, non-edge) in which the edge enters first; ties count one half."""
    from scipy.stats import rankdata

    upper = np.triu_indices(len(truth), 1)
    is_edge = truth[upper]
    rank = rankdata(-times[upper])  # the earliest has the highest rank; -inf are tied at the foot
    hits, others = int(is_edge.sum()), int((~is_edge).sum())
    return float((rank[is_edge].sum() - hits * (hits + 1) / 2) / (hits * others))


def choice(found: np.ndarray, truth: np.ndarray) -> tuple[float, float, bool]:
    """Recall and precision of a chosen graph, and whether it is the true one."""
    upper = np.triu_indices(len(truth), 1)
    found, truth = found[upper], truth[upper]
    both = np.count_nonzero(found & truth)
    return both / max(truth.sum(), 1), both / max(found.sum(), 1), bool((found == truth).all())


def studies(quick: bool) -> list[Study]:
    """The paper's Ising grids, and a Potts and two Gaussian graphs."""
    import bregpath
    from bregpath.datasets import make_gaussian_graph, make_ising_grid, make_potts

    ising = {name: lambda name=name: bregpath.IsingGraph(name) for name in ("composite", "mpf", "nodewise")}
    potts = {"composite": bregpath.PottsGraph}
    gaussian = {name: lambda name=name: bregpath.GaussianGraph(name) for name in ("likelihood", "composite")}
    if quick:
        return [
            Study("Ising grid, p = 9, T = 1.5, n = 300", lambda seed: make_ising_grid(3, 1.5, 300, seed), ising, {}),
            Study(
                "Gaussian chain, p = 10, n = 200", lambda seed: make_gaussian_graph(200, 10, seed=seed), gaussian, {}
            ),
        ]
    wanted = {"likelihood": 0.99, "composite": 0.99}
    return [
        Study(
            "Ising grid, p = 36, T = 1.5, n = 750",
            lambda seed: make_ising_grid(6, 1.5, 750, seed),
            ising,
            {"composite": 0.993, "mpf": 0.995},
        ),
        Study(
            "Ising grid, p = 100, T = 1.5, n = 1500",
            lambda seed: make_ising_grid(10, 1.5, 1500, seed),
            ising,
            {"composite": 0.995, "mpf": 0.998},
        ),
        Study(
            "Potts grid, p = 16, q = 3, n = 2000",
            lambda seed: make_potts(2000, 16, 3, "grid", seed=seed),
            potts,
            {"composite": 0.99},
        ),
        Study(
            "Gaussian chain, p = 50, n = 300",
            lambda seed: make_gaussian_graph(300, 50, "chain", seed=seed),
            gaussian,
            wanted,
        ),
        Study(
            "Gaussian grid, p = 49, n = 500",
            lambda seed: make_gaussian_graph(500, 49, "grid", seed=seed),
            gaussian,
            wanted,
        ),
    ]


def recover(study: Study, n_seeds: int) -> dict[str, Any]:
    """Mean and standard deviation of the area for every way, and what EBIC chooses on these paths."""
    scores: dict[str, list[Any]] = {name: [] for name in study.graphs}
    for seed in range(n_seeds):
        data = study.make(seed)
        for name, build in study.graphs.items():
            graph = build().fit(data.X)
            area = auc(graph.path_.entry_times, data.adjacency)
            scores[name].append((area, *choice(graph.adjacency_, data.adjacency)))
    rows = {}
    for name, values in scores.items():
        area, recall, precision, exact = np.array(values, dtype=float).T
        target = study.targets.get(name)
        rows[name] = {
            "auc": float(area.mean()),
            "median": float(np.median(area)),
            "sd": float(area.std(ddof=1)) if n_seeds > 1 else 0.0,
            "target": target,
            "met": None if target is None else bool(area.mean() >= target),
            "recall": float(recall.mean()),
            "precision": float(precision.mean()),
            "exact": int(exact.sum()),
            "values": area.tolist(),
        }
    return {"title": study.title, "seeds": n_seeds, "graphs": rows}
