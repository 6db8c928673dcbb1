"""How many edges of a chosen graph are false: ``python -m benchmarks.graph_edges votes.csv senators.csv``.

The models are not simulated ones: Ising graphs fitted to votes of the US Senate (see ``examples/senate_votes.py``), all
senators or some drawn at random. From each as many rows are drawn as there are roll calls, exactly up to 20 nodes, else
by tempered chains with ``--thin`` sweeps between two rows, and graphs are learned from them by all rules. An edge is
false if the fitted model has none there, however weak the others may be. Plain chains will not do: those that have not
forgotten their start make edges that no model has.

The second table is of missing values: cells of the same rows are removed at random. Both are printed in markdown.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from bregpath import IsingGraph
from bregpath.graphs import enumerate_states, gibbs

from .selection_study import Record

sys.path.insert(0, str(Path(__file__).parents[1]))
from examples.senate_votes import read_votes

RULES = ("ebic", "bic", "cv", "stable")
EXACT = 20  # nodes up to which all states are looked at
MISSING = (0.05, 0.2)


def planted(votes: Any, p: int, seed: int, thin: int) -> tuple[np.ndarray, np.ndarray]:
    """Edges of a model fitted to p senators, and rows drawn from it."""
    rng = np.random.default_rng([20071, seed])
    columns = np.sort(rng.choice(votes.shape[1], p, replace=False))
    fitted = IsingGraph().fit(votes.iloc[:, columns].to_numpy())
    n, model = len(votes), fitted.model()
    if p <= EXACT:
        return fitted.adjacency_, enumerate_states(model).sample(n, seed=rng)
    return fitted.adjacency_, gibbs(model, n, 10 * thin, thin, seed=rng, method="tempering")


def marks(found: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    hits, n, true = (int(edges.sum()) // 2 for edges in (found & truth, found, truth))
    return {"edges": n, "false": 1 - hits / max(n, 1), "recall": hits / true, "F1": 2 * hits / max(n + true, 1)}


def study_rules(votes: Any, p: int, seeds: range, thin: int, rules: tuple[str, ...]) -> dict[str, Record]:
    records = {rule: Record() for rule in rules}
    for seed in seeds:
        truth, rows = planted(votes, p, seed, thin)
        for rule in rules:
            graph = IsingGraph(stop=rule, n_jobs=-1).fit(rows)
            records[rule].add(true=truth.sum() // 2, **marks(graph.adjacency_, truth))
    return records


def study_missing(votes: Any, p: int, seeds: range, thin: int) -> dict[float, Record]:
    """F1 of the edges that EBIC chooses from complete rows, and after a share of the cells is lost."""
    records = {share: Record() for share in (0.0, *MISSING)}
    for seed in seeds:
        truth, rows = planted(votes, p, seed, thin)
        rng = np.random.default_rng([20072, seed])
        for share, record in records.items():
            holed = np.where(rng.random(rows.shape) < share, np.nan, rows)
            record.add(**marks(IsingGraph().fit(holed).adjacency_, truth))
    return records


def table(first: str, records: dict[Any, Record], names: tuple[str, ...]) -> str:
    lines = [f"| {first} | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    lines += [
        f"| {key} | {' | '.join(record.cell(name, 1 if name == 'edges' else 2) for name in names)} |"
        for key, record in records.items()
    ]
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("votes")
    parser.add_argument("senators")
    parser.add_argument("--nodes", type=int, nargs="+", default=[12, 20, 46])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--thin", type=int, default=500)
    parser.add_argument("--part", choices=("rules", "missing"), nargs="+", default=["rules", "missing"])
    args = parser.parse_args(argv)
    votes, _ = read_votes(args.votes, args.senators)
    for p in args.nodes:
        print(f"\n{p} senators, {len(votes)} rows, {args.seeds} models; mean (standard error)\n", flush=True)
        seeds = range(args.seeds)
        if "rules" in args.part:
            records = study_rules(votes, p, seeds, args.thin, RULES)
            print(f"{records['ebic'].mean('true'):.0f} true edges\n")
            print(table("`stop`", records, ("edges", "false", "recall")), flush=True)
        if "missing" in args.part:
            print(table("missing", study_missing(votes, p, seeds, args.thin), ("edges", "false", "recall", "F1")))


if __name__ == "__main__":
    main()
