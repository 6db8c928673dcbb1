"""Tables of a learned graph: its nodes, and its edges within and between groups of nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bregpath._frames import import_pandas
from bregpath._typing import Array
from bregpath.graphs.export import check_graph

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["check_node_groups", "group_table", "node_table"]


def node_table(weights: Any, names: Sequence[str] | None = None, node_groups: Any = None) -> pd.DataFrame:
    """One row a node, strongest first: its degree, how many of its edges are positive and negative, its strength.

    Parameters
    ----------
    weights, names
        As in `to_networkx`.
    node_groups : sequence of p labels, or mapping of names to labels, optional
        Adds the group of each node, and how many of its edges stay within it.

    Returns
    -------
    pandas.DataFrame
        Needs pandas. ``strength`` is the sum of the absolute weights of the edges of a node.

    Examples
    --------
    >>> node_table([[0, 1, -2], [1, 0, 0], [-2, 0, 0]], names=["a", "b", "c"])
      node  degree  positive  negative  strength
    0    a       2         1         1       3.0
    1    c       1         0         1       2.0
    2    b       1         1         0       1.0
    """
    matrix, labels = check_graph(weights, names)
    strength = np.abs(matrix).sum(axis=0)
    columns: dict[str, Any] = {"node": labels, "degree": np.count_nonzero(matrix, axis=0)}
    columns |= {"positive": np.sum(matrix > 0, axis=0), "negative": np.sum(matrix < 0, axis=0), "strength": strength}
    if node_groups is not None:
        groups = check_node_groups(node_groups, labels)
        own = (matrix != 0) & (groups[:, None] == groups)
        columns |= {"group": groups, "within": np.count_nonzero(own, axis=0)}
    table = import_pandas("node_table()").DataFrame(columns)
    return table.iloc[np.argsort(-strength, kind="stable")].reset_index(drop=True)


def group_table(weights: Any, node_groups: Any, names: Sequence[str] | None = None) -> pd.DataFrame:
    """One row a pair of groups of nodes: the edges within a group, and those between two.

    Parameters
    ----------
    weights, names
        As in `to_networkx`.
    node_groups : sequence of p labels, or mapping of names to labels

    Returns
    -------
    pandas.DataFrame
        Needs pandas. ``pairs`` are the pairs of nodes that could be joined, ``share`` those of them that are, and
        ``strength`` is the mean absolute weight of the edges, NaN without any.

    Examples
    --------
    >>> group_table([[0, 1, -2], [1, 0, 0], [-2, 0, 0]], ["one", "one", "two"])
      group  other  pairs  edges  share  positive  negative  strength
    0   one    one      1      1    1.0         1         0       1.0
    1   one    two      2      1    0.5         0         1       2.0
    2   two    two      0      0    NaN         0         0       NaN
    """
    matrix, labels = check_graph(weights, names)
    groups = check_node_groups(node_groups, labels)
    known = list(dict.fromkeys(groups.tolist()))
    rows = []
    for i, first in enumerate(known):
        for second in known[i:]:
            block = matrix[np.ix_(groups == first, groups == second)]
            inside = block[np.triu_indices(len(block), 1)] if first == second else block.ravel()
            rows.append((first, second, *_counts(inside)))
    columns = ["group", "other", "pairs", "edges", "share", "positive", "negative", "strength"]
    return import_pandas("group_table()").DataFrame(rows, columns=columns)


def _counts(weights: Array) -> tuple[int, int, float, int, int, float]:
    """Of some pairs of nodes: how many, edges, their share, positive and negative ones, mean strength."""
    edges = weights[weights != 0]
    share = len(edges) / len(weights) if len(weights) else np.nan
    strength = float(np.abs(edges).mean()) if len(edges) else np.nan
    return len(weights), len(edges), share, int((edges > 0).sum()), int((edges < 0).sum()), strength


def check_node_groups(node_groups: Any, names: Sequence[str]) -> Array:
    """The label of each node, as an array of objects."""
    if isinstance(node_groups, Mapping):
        lacking = [name for name in names if name not in node_groups]
        if lacking:
            raise ValueError(f"`node_groups` has no label for the node {lacking[0]!r}; name every node.")
        node_groups = [node_groups[name] for name in names]
    if isinstance(node_groups, str) or not hasattr(node_groups, "__len__"):
        raise TypeError(f"`node_groups` must have a label for each node, or map names to labels: {node_groups!r}.")
    labels = list(node_groups)
    if len(labels) != len(names):
        raise ValueError(f"`node_groups` must have one label for each of the {len(names)} nodes, found {len(labels)}.")
    out = np.empty(len(labels), dtype=object)
    out[:] = labels
    return out
