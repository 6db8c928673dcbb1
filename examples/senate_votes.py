"""Who votes with whom: an Ising graph of the US Senate, 2007-08.

    python examples/senate_votes.py senate110_votes.csv senate110_senators.csv --out senate

A node is a senator, a row is a roll call, yea or nay. An edge says that two senators agree (or disagree) more than all
others explain. Two files are read: votes, one column a senator (``icpsr``), 1 yea, 0 nay, empty if not cast; and
senators with ``icpsr, name, party, state``. Both come from Voteview (voteview.com).

Missing votes. There is no roll call at which everybody voted, so rows with gaps cannot simply be dropped. Instead

* senators who cast less than 80 % of the votes are left out (they came late, left early, or ran for president);
* the abstentions that remain, 3 %, count as the majority of the senator's party on that roll call. That makes parties
  look a little more united than they are, and cannot bring them closer to each other.

Roll calls on which all agree are kept: they belong to how the Senate votes. Senators with one and the same vote
throughout are left out: they could have no edges.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import bregpath
from bregpath.plots import plot_graph, plot_graph_comparison

COLORS = {"Democrat": "#0072B2", "Republican": "#B2182B", "Independent": "#000000"}
PARTIES = {"D": "Democrat", "R": "Republican", "I": "Independent"}
SHOWN = 0.3  # weaker edges are left out of the picture, not of the table


# --- data --------------------------------------------------------------------------------------------------------


def read_votes(votes_file: str, senators_file: str, least: float = 0.8) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Votes of 0 and 1 without gaps, one named column a senator, and what is known of these senators."""
    votes = pd.read_csv(votes_file, index_col=0)
    senators = pd.read_csv(senators_file, dtype={"icpsr": str}).set_index("icpsr").loc[votes.columns]
    votes = votes.loc[:, votes.notna().mean() >= least]
    senators = senators.loc[votes.columns]
    filled = fill_with_party(votes, senators.party.replace("I", "D"))  # the independents sat with the Democrats
    varies = filled.nunique() > 1
    filled, senators = filled.loc[:, varies], senators[varies]
    filled.columns = senators.index = short_names(senators)
    return filled, senators


def fill_with_party(votes: pd.DataFrame, party: pd.Series) -> pd.DataFrame:
    """Abstentions as the majority of the party on that roll call; a tie is a nay, as in the Senate."""
    parts = []
    for _, members in votes.T.groupby(party):
        majority = (members.mean() > 0.5).astype(float)
        parts.append(members.fillna(majority))
    return pd.concat(parts).T[votes.columns].astype(int)


def short_names(senators: pd.DataFrame) -> list[str]:
    """Last names, with the state where two share one: "McCASKILL, Claire" is McCaskill."""
    last = [re.sub("[A-Z]{2,}", lambda word: word[0].capitalize(), name.split(",")[0]) for name in senators.name]
    return [
        f"{name} {state}" if last.count(name) > 1 else name for name, state in zip(last, senators.state, strict=True)
    ]


# --- graphs ------------------------------------------------------------------------------------------------------


def learn(votes: pd.DataFrame) -> dict[str, np.ndarray]:
    """Couplings by three methods, all with as many edges as EBIC chooses for the first."""
    composite = bregpath.IsingGraph("composite").fit(votes)
    n_edges = int(composite.adjacency_.sum()) // 2
    level = n_edges / (votes.shape[1] * (votes.shape[1] - 1) / 2)
    mpf = bregpath.IsingGraph("mpf", max_sparsity=min(1.0, 2 * level)).fit(votes).at_sparsity(level)
    return {"composite": composite.weights_, "MPF": mpf.weights_, "node-wise l1": nodewise_l1(votes, n_edges)}


def nodewise_l1(votes: pd.DataFrame, n_edges: int, rounds: int = 12) -> np.ndarray:
    """Lasso logistic regression of each node on the others, AND rule; the penalty gives about ``n_edges`` edges."""
    spins = 2.0 * votes.to_numpy() - 1.0
    low, high = np.log([1e-3, 1e2])
    for _ in range(rounds):
        middle = 0.5 * (low + high)
        weights = nodewise_at(spins, float(np.exp(middle)))
        low, high = (low, middle) if np.count_nonzero(weights) // 2 > n_edges else (middle, high)
    return weights


def nodewise_at(spins: np.ndarray, C: float) -> np.ndarray:
    from sklearn.linear_model import LogisticRegression

    p = spins.shape[1]
    coef = np.zeros((p, p))
    for j in range(p):
        others = np.delete(np.arange(p), j)
        # liblinear penalises the intercept too, unless its column is large
        model = LogisticRegression(C=C, l1_ratio=1.0, solver="liblinear", intercept_scaling=10.0, random_state=0)
        coef[j, others] = model.fit(spins[:, others], spins[:, j]).coef_[0]
    return np.where((coef != 0) & (coef.T != 0), 0.5 * (coef + coef.T), 0.0)


# --- report ------------------------------------------------------------------------------------------------------


def describe(graphs: dict[str, np.ndarray], senators: pd.DataFrame) -> None:
    party = senators.party.replace("I", "D").to_numpy()
    across = party[:, None] != party
    first = next(iter(graphs.values()))
    print(f"{'':14s} edges  negative  across parties  shared with composite  mean |weight| of those")
    for name, weights in graphs.items():
        upper = np.triu(weights != 0)
        shared = upper & (first != 0)
        print(
            f"{name:14s} {upper.sum():5d} {np.sum(weights[upper] < 0):9d} {np.sum(upper & across):15d} "
            f"{shared.sum():22d} {np.abs(weights[shared]).mean():23.2f}"
        )


def print_edges(edges: pd.DataFrame, senators: pd.DataFrame) -> None:
    """The strongest edges, and those between the parties."""
    party, state = senators.party.replace("I", "D"), senators.state
    edges = edges.sort_values("strength", ascending=False)
    same = edges[(state[edges.source].to_numpy() == state[edges.target].to_numpy())]
    top = edges.head(15)
    print(f"\nof the {len(top)} strongest edges {top.index.isin(same.index).sum()} join senators of one state:")
    print(", ".join(f"{s} - {t}" for s, t in zip(top.source, top.target, strict=True)))
    across = edges[party[edges.source].to_numpy() != party[edges.target].to_numpy()]
    print(f"\n{len(across)} edges between the parties, strongest first:")
    print(", ".join(f"{s} - {t} ({w:+.2f})" for s, t, w in across.head(10)[["source", "target", "weight"]].values))


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("votes", help="CSV file of votes")
    parser.add_argument("senators", help="CSV file of senators")
    parser.add_argument("--out", default="senate", help="folder of the results")
    args = parser.parse_args(argv)
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    votes, senators = read_votes(args.votes, args.senators)
    print(f"{votes.shape[0]} roll calls, {votes.shape[1]} senators")
    graphs = learn(votes)
    describe(graphs, senators)

    names, look = list(votes.columns), {"groups": list(senators.party.map(PARTIES)), "group_colors": COLORS}
    edges = bregpath.graphs.edge_table(graphs["composite"], names)
    edges.to_csv(out / "edges.csv", index=False)
    print_edges(edges, senators)
    title = f"US Senate 2007-08: couplings above {SHOWN}"
    figure, ax = plt.subplots(figsize=(10.5, 7.2), layout="constrained")
    plot_graph(graphs["composite"], names, min_weight=SHOWN, title=title, ax=ax, **look)
    figure.savefig(out / "senate.png", dpi=110)
    axes = plot_graph_comparison(graphs, names, min_weight=SHOWN, figsize=(19, 7.5), **look)
    axes[0].figure.savefig(out / "compare.png", dpi=90)
    print(f"\nwritten: {out}/edges.csv, senate.png, compare.png")


if __name__ == "__main__":
    main()
