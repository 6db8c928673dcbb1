"""A fitted graph in a few lines: nodes, edges, the rule, the strongest edges and how sure they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from bregpath._text import listed
from bregpath.graphs.export import strongest_edges
from bregpath.selection.stability import Stability

__all__ = ["describe_graph"]


def describe_graph(graph: Any, n_edges: int) -> str:
    """The text of `graph.summary`; ``n_edges`` of the strongest edges are listed."""
    return "\n".join([*_head(graph), *_strongest(graph, n_edges), *(f"Note: {note}" for note in _notes(graph))])


def _head(graph: Any) -> list[str]:
    weights = graph.weights_
    p, j, k = len(weights), *np.nonzero(np.triu(weights))
    pairs, found = p * (p - 1) // 2, weights[j, k][graph.path_.layout.has_sign[j, k]]
    signs = f", {np.sum(found > 0)} positive and {np.sum(found < 0)} negative" if np.any(found < 0) else ""
    rule = f"the time given by `stop`={graph.stop}" if graph.selection_ is None else graph.selection_.rule
    kappa = f", kappa = {graph.kappa_:g}" if graph.selection_ is not None and graph.selection_.surface else ""
    return [
        f"{type(graph).__name__}: {p} nodes, {len(j)} of {pairs} edges ({len(j) / pairs:.1%}){signs}",
        f"Chosen by {rule}{kappa}, t = {graph.t_:.4g}",
    ]


def _strongest(graph: Any, n_edges: int) -> list[str]:
    weights, names, stability = graph.weights_, graph.path_.names, graph.stability_
    has_sign = graph.path_.layout.has_sign
    j, k = strongest_edges(weights)
    if not len(j):
        return ["No edges."]
    left, j, k = len(j) - n_edges, j[:n_edges], k[:n_edges]
    labels = [f"{names[a]} - {names[b]}" for a, b in zip(j, k, strict=True)]
    title = "Strongest edges"
    width = max(map(len, [title, *labels]))
    share = np.full(weights.shape, np.nan) if stability is None else _shares(stability, len(weights))
    lines = [f"{title:{width}}{'weight':>10}{'' if stability is None else '  on halves'}"]
    for label, a, b in zip(labels, j, k, strict=True):
        weight = f"{weights[a, b]:>+10.3f}" if has_sign[a, b] else f"{weights[a, b]:>10.3f}"
        lines.append(f"{label:{width}}{weight}{'' if stability is None else f'{share[a, b]:>11.0%}'}")
    return [*lines, f"... and {left} more"] if left > 0 else lines


def _shares(stability: Stability, p: int) -> np.ndarray:
    """Share of the halves with each edge, (p, p)."""
    assert stability.edges is not None
    out = np.zeros((p, p))
    out[tuple(stability.edges.T)] = stability.max_probability
    return out + out.T


def _notes(graph: Any) -> list[str]:
    """What a reader should know before trusting the edges."""
    notes, path = [], graph.path_
    if graph.n_missing_:
        notes.append(f"{graph.n_missing_} missing values were drawn from the graph itself")
    alone = [name for name, joined in zip(path.names, graph.adjacency_.any(axis=0), strict=True) if not joined]
    if alone and len(alone) < len(path.names):
        notes.append(f"no edges at {listed(alone)}")
    # Of the path that was chosen from: one with fewer edges is traced again to that time only.
    times = graph.selection_.path.t if graph.selection_ is not None else path.t[:0]
    if len(times) > 1 and graph.t_ >= times[-1] * (1 - 1e-9):
        notes.append("the chosen time is the last of the path; look further with a larger `t_ratio`")
    if graph.stability_ is None:
        notes.append("how sure these edges are is not known yet; see stability()")
    else:
        found = graph.stability_
        often = f"at least {found.threshold:.0%} of {found.n_replicates} halves of the rows"
        notes.append(f"{len(found.selected)} edges were found on {often}")
    return notes
