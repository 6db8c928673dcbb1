"""A signalling network of proteins: Gaussian graphs of single-cell measurements.

    python examples/proteins.py sachs_observational.csv --out proteins

A row is a cell, a column the amount of one of eleven proteins (Sachs et al., Science 308, 2005). Amounts are skewed and
positive, so logarithms are taken. The graphs of both losses are compared with the consensus network of the literature,
whose directions are dropped.

An edge that is found need not be causal, and one that is not found may be absent in these cells, or too weak.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

import bregpath
from bregpath.plots import plot_graph_comparison

# parent > child
CONSENSUS = (
    "pka>raf pkc>raf raf>mek pka>mek pkc>mek pip3>plc plc>pip2 pip3>pip2 mek>erk pka>erk pip3>akt erk>akt pka>akt "
    "pkc>pka plc>pkc pip2>pkc pka>p38 pkc>p38 pka>jnk pkc>jnk"
)


def consensus(names: list[str]) -> np.ndarray:
    """The consensus network as a symmetric matrix of 0 and 1; proteins that are not measured are left out."""
    joined = np.zeros((len(names), len(names)))
    for pair in CONSENSUS.split():
        parent, child = pair.split(">")
        if parent in names and child in names:
            j, k = names.index(parent), names.index(child)
            joined[j, k] = joined[k, j] = 1.0
    return joined


def listed(edges: np.ndarray, names: list[str]) -> str:
    return ", ".join(f"{names[j]}-{names[k]}" for j, k in np.argwhere(np.triu(edges))) or "none"


def compare(name: str, graph: bregpath.GaussianGraph, known: np.ndarray, names: list[str]) -> None:
    """Which edges of the consensus were found, and how early all of them enter the path."""
    found, truth = graph.adjacency_, known > 0
    upper = np.triu_indices(len(names), 1)
    order = np.argsort(graph.path_.entry_times[upper], kind="stable")
    first = truth[upper][order][:10].sum()
    print(f"\n{name}: t = {graph.t_:.3g}, {found.sum() // 2} edges")
    print(f"  in the consensus ({(found & truth).sum() // 2} of {truth.sum() // 2}): {listed(found & truth, names)}")
    print(f"  not in it: {listed(found & ~truth, names)}")
    print(f"  not found: {listed(~found & truth, names)}")
    print(f"  of the first ten edges of the path {first} are in the consensus")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cells", help="CSV file of cells by proteins, raw amounts")
    parser.add_argument("--out", default="proteins", help="folder of the results")
    args = parser.parse_args(argv)
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    cells = np.log(pd.read_csv(args.cells))
    names = list(cells.columns)
    known = consensus(names)
    print(f"{cells.shape[0]} cells, {len(names)} proteins")

    graphs = {loss: bregpath.GaussianGraph(loss).fit(cells) for loss in ("likelihood", "composite")}
    for loss, graph in graphs.items():
        compare(loss, graph, known, names)
        graph.write_edges(out / f"edges_{loss}.csv")
    weights = {f"{loss}, EBIC": graph.weights_ for loss, graph in graphs.items()}
    panels = weights | {"consensus (no signs, no weights)": 0.3 * known}
    figure = plot_graph_comparison(panels, names, figsize=(14, 5), seed=1)[0].figure
    figure.get_layout_engine().set(wspace=0.12)  # panels a little apart
    figure.savefig(out / "proteins.png", dpi=100)
    print(f"\nwritten: {out}/edges_likelihood.csv, edges_composite.csv, proteins.png")


if __name__ == "__main__":
    main()
