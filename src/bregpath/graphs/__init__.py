"""Learned graphs: what can be done with a symmetric matrix of weights, the edges of a model."""

from __future__ import annotations

from .export import adjacency, edge_table, sparsity, to_networkx, write_edges, write_graphml

__all__ = ["adjacency", "edge_table", "sparsity", "to_networkx", "write_edges", "write_graphml"]
