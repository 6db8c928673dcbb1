"""A learned graph as others read it: networkx, tables, GraphML, CSV.

A graph is a symmetric matrix of weights with zero diagonal: couplings, partial correlations, or norms of blocks.
Nodes ``j`` and ``k`` are joined where ``weights[j, k] != 0``.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from bregpath._frames import import_pandas
from bregpath._typing import Array, BoolArray, IntArray
from bregpath._validation import is_sparse, unmasked
from bregpath.graphs._checks import check_names, check_symmetric

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

__all__ = [
    "adjacency",
    "check_graph",
    "edge_table",
    "sparsity",
    "strongest_edges",
    "to_networkx",
    "write_edges",
    "write_graphml",
]


def adjacency(weights: Any) -> BoolArray:
    """Which nodes are joined: ``weights != 0``, symmetric with a false diagonal.

    Examples
    --------
    >>> adjacency([[0.0, -0.3], [-0.3, 0.0]])
    array([[False,  True],
           [ True, False]])
    """
    return check_graph(weights)[0] != 0


def sparsity(weights: Any) -> float:
    """Share of all ``p (p - 1) / 2`` pairs that are joined; zero for a single node.

    Examples
    --------
    >>> sparsity([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    0.333
    """
    joined = adjacency(weights)
    p = len(joined)
    return float(np.count_nonzero(joined)) / max(p * (p - 1), 1)


def to_networkx(
    weights: Any,
    names: Sequence[str] | None = None,
    fields: Any = None,
    node_attributes: Mapping[str, Sequence[Any]] | None = None,
) -> nx.Graph:
    """The graph as a `networkx.Graph`, with all nodes, also those without edges.

    Parameters
    ----------
    weights : array-like of shape (p, p)
        Symmetric, zero diagonal.
    names : sequence of str, optional
        Nodes; ``x0, x1, ...`` by default.
    fields : array-like of shape (p,), optional
        Attribute ``field`` of the nodes.
    node_attributes : dict of sequences, optional
        More attributes of the nodes, one value a node: ``{"party": ["D", "R", ...]}``.

    Returns
    -------
    networkx.Graph
        Edges carry ``weight`` (signed), ``sign`` (+1 or -1) and ``strength``, the absolute weight (many algorithms
        of networkx want it, ``weight="strength"``).

    Examples
    --------
    >>> graph = to_networkx([[0, -0.5, 0], [-0.5, 0, 0], [0, 0, 0]], names=["a", "b", "c"], fields=[0.1, 0.2, 0.3])
    >>> graph.edges["a", "b"]
    {'weight': -0.5, 'sign': -1, 'strength': 0.5}
    >>> list(graph.nodes), graph.nodes["c"]
    (['a', 'b', 'c'], {'field': 0.3})
    """
    matrix, labels = check_graph(weights, names)
    attributes = _node_attributes(len(labels), fields, node_attributes)
    graph = _networkx().Graph()
    for j, label in enumerate(labels):
        graph.add_node(label, **{key: values[j] for key, values in attributes.items()})
    columns = [column.tolist() for column in _edge_columns(matrix, labels, None).values()]
    for source, target, weight, sign, strength in zip(*columns, strict=True):
        graph.add_edge(source, target, weight=weight, sign=sign, strength=strength)
    return graph


def edge_table(weights: Any, names: Sequence[str] | None = None, entry_times: Any = None) -> pd.DataFrame:
    """One row an edge: source, target, weight, sign, strength and, where given, entry_time (needs pandas).

    Parameters
    ----------
    weights, names
        As in `to_networkx`.
    entry_times : array-like of shape (p, p), optional
        Times at which edges entered the path.

    Returns
    -------
    pandas.DataFrame
        Sorted by entry time, earliest first, or without these by strength, strongest first.

    Examples
    --------
    >>> edge_table([[0, 1, -2], [1, 0, 0], [-2, 0, 0]], names=["a", "b", "c"])
      source target  weight  sign  strength
    0      a      c    -2.0    -1       2.0
    1      a      b     1.0     1       1.0
    """
    pandas = import_pandas("edge_table() (unlike write_edges())")
    return pandas.DataFrame(_edge_columns(*check_graph(weights, names), entry_times))


def write_edges(
    weights: Any, file: str | PathLike[str], names: Sequence[str] | None = None, entry_times: Any = None
) -> None:
    """Write the rows of `edge_table` to a CSV file with a header; numbers keep all their digits.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "edges.csv")
    ...     write_edges([[0, 0.5], [0.5, 0]], file, names=["a", "b"])
    ...     print(file.read_text())
    source,target,weight,sign,strength
    a,b,0.5,1,0.5
    """
    columns = _edge_columns(*check_graph(weights, names), entry_times)
    with open(file, "w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))


def write_graphml(graph: nx.Graph, file: str | PathLike[str]) -> None:
    """Write a graph of `to_networkx` as GraphML, which Cytoscape, Gephi, igraph and yEd read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import networkx as nx
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "graph.graphml")
    ...     write_graphml(to_networkx([[0, 0.5], [0.5, 0]]), file)
    ...     nx.read_graphml(file).edges["x0", "x1"]
    {'weight': 0.5, 'sign': 1, 'strength': 0.5}
    """
    _networkx().write_graphml(graph, file)


# --- checks ------------------------------------------------------------------------------------------------------


def check_graph(weights: Any, names: Sequence[str] | None = None) -> tuple[Array, list[str]]:
    """``weights`` as an exactly symmetric float matrix with zero diagonal, and one name a node.

    The two halves may differ by rounding, 1e-8 of the largest weight; the upper one is kept.
    """
    matrix = _float_array("weights", weights)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"`weights` must be a square matrix, one row and one column a node; found shape {matrix.shape}."
        )
    if not len(matrix):
        raise ValueError("`weights` is empty; a graph needs at least one node.")
    if not np.isfinite(matrix).all():
        raise ValueError("`weights` contains NaN or infinity; an absent edge has weight zero.")
    if matrix.diagonal().any():
        j = int(np.flatnonzero(matrix.diagonal())[0])
        raise ValueError(
            f"`weights` must have a zero diagonal, found weights[{j}, {j}] = {matrix[j, j]:g}; "
            "clear it with np.fill_diagonal(weights, 0)."
        )
    check_symmetric("weights", matrix)
    upper = np.triu(matrix, 1)
    return upper + upper.T, list(check_names(names, len(matrix)) or (f"x{j}" for j in range(len(matrix))))


def _float_array(name: str, values: Any) -> Array:
    values = values.toarray() if is_sparse(values) else unmasked(name, values)
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise type(error)(f"`{name}` must hold real numbers ({error}).") from None


def _node_attributes(p: int, fields: Any, extra: Mapping[str, Sequence[Any]] | None) -> dict[str, list[Any]]:
    """Attributes of the nodes as plain Python values, which GraphML can hold."""
    out: dict[str, list[Any]] = {}
    if fields is not None:
        values = _float_array("fields", fields)
        if values.shape != (p,):
            raise ValueError(f"`fields` must have one entry for each of the {p} nodes, found shape {values.shape}.")
        out["field"] = values.tolist()
    for key, column in (extra or {}).items():
        if key in out:
            raise ValueError(f"`node_attributes` has {key!r}, the name under which `fields` are kept; rename it.")
        plain = [value.item() if isinstance(value, np.generic) else value for value in column]
        if len(plain) != p:
            raise ValueError(f"`node_attributes`[{key!r}] must have one entry a node, {p}; found {len(plain)}.")
        out[str(key)] = plain
    return out


def strongest_edges(weights: Array) -> tuple[IntArray, IntArray]:
    """Both nodes j < k of every edge, the strongest first."""
    j, k = np.nonzero(np.triu(weights))
    order = np.argsort(-np.abs(weights[j, k]), kind="stable")
    return j[order], k[order]


# --- parts -------------------------------------------------------------------------------------------------------


def _edge_columns(matrix: Array, labels: list[str], entry_times: Any) -> dict[str, Array]:
    """The columns of the table of edges."""
    j, k = strongest_edges(matrix)
    entry = None
    if entry_times is not None:
        entry = _entry_of_edges(entry_times, j, k, len(matrix))
        order = np.argsort(entry, kind="stable")
        j, k, entry = j[order], k[order], entry[order]
    name, weight = np.array(labels, dtype=object), matrix[j, k]
    columns = {"source": name[j], "target": name[k], "weight": weight}
    columns |= {"sign": np.sign(weight).astype(int), "strength": np.abs(weight)}
    return columns if entry is None else columns | {"entry_time": entry}


def _entry_of_edges(entry_times: Any, j: Array, k: Array, p: int) -> Array:
    times = _float_array("entry_times", entry_times)
    if times.shape != (p, p):
        raise ValueError(f"`entry_times` must have the shape of `weights`, {(p, p)}; found {times.shape}.")
    if not np.array_equal(times[j, k], times[k, j]):
        raise ValueError("`entry_times` must be symmetric, without NaN at edges: one time a pair.")
    return times[j, k]


def _networkx() -> Any:
    try:
        import networkx
    except ImportError:
        raise ImportError("Graph objects and GraphML need networkx: pip install bregpath[graph]") from None
    return networkx
