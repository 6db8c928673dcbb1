"""Who meets whom in Journey to the West: an Ising graph of ten characters.

    python examples/journey_to_the_west.py west10.csv --out west

A row is a scene of the novel, a column a character: 1 if present. Positive edges join characters who appear together
more often than all others explain, negative ones those who avoid each other. The file comes with the R package Libra
(data set ``west10``).

Two graphs are drawn: the one that EBIC chooses, and the one with a given share of all 45 edges.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

import bregpath
from bregpath.plots import plot_graph_comparison

ENGLISH = {
    "Sunwukong": "Monkey King", "Tangseng": "Monk Tang", "Zhubajie": "Pigsy", "Shaseng": "Sandy",
    "Bailongma": "White Horse", "Guanyinpusa": "Guanyin", "Yuhuangdadi": "Jade Emperor", "Muzha": "Muzha",
    "Nezha": "Nezha", "Tudishen": "Earth God",
}  # fmt: skip
PILGRIMS = ("Sunwukong", "Tangseng", "Zhubajie", "Shaseng", "Bailongma")


def read_scenes(file: str) -> tuple[pd.DataFrame, list[str]]:
    """Scenes by characters, English names where we know them, and the group of each character."""
    scenes = pd.read_csv(file)
    scenes = scenes.loc[:, scenes.nunique() > 1]
    groups = ["pilgrim" if name in PILGRIMS else "god" for name in scenes.columns]
    return scenes.rename(columns=ENGLISH), groups


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", help="CSV file of scenes")
    parser.add_argument("--sparsity", type=float, default=0.5, help="share of all edges in the second graph")
    parser.add_argument("--out", default="west", help="folder of the results")
    args = parser.parse_args(argv)
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    scenes, groups = read_scenes(args.scenes)
    print(f"{scenes.shape[0]} scenes, {scenes.shape[1]} characters")

    chosen = bregpath.IsingGraph().fit(scenes)
    wanted = chosen.at_sparsity(args.sparsity)
    print(chosen.path_, end="\n\n")
    print(f"EBIC chooses t = {chosen.t_:.3g} with {np.count_nonzero(chosen.adjacency_) // 2} edges:")
    print(chosen.edge_table().to_string(index=False, float_format="%.2f"))
    chosen.write_edges(out / "edges.csv")

    count = scenes.shape[1] * (scenes.shape[1] - 1) // 2
    titles = [f"{name}: {np.count_nonzero(g.adjacency_) // 2} of {count} edges" for name, g in
              (("EBIC", chosen), (f"sparsity {args.sparsity:g}", wanted))]  # fmt: skip
    look = {"groups": groups, "group_colors": {"pilgrim": "#E69F00", "god": "#0072B2"}, "figsize": (11, 5.4)}
    axes = plot_graph_comparison(
        dict(zip(titles, (chosen.weights_, wanted.weights_), strict=True)), chosen.path_.names, **look
    )
    axes[0].figure.savefig(out / "west.png", dpi=110)
    chosen.path_.plot(mark={"EBIC": chosen.t_}).figure.savefig(out / "path.png", dpi=110)
    print(f"\nwritten: {out}/edges.csv, west.png, path.png")


if __name__ == "__main__":
    main()
