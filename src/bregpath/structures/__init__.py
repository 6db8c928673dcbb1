"""Structural sparsity: coefficients that are constant, linear or alike in pieces, whatever a matrix D says."""

from __future__ import annotations

from bregpath.structures.matrices import fused, graph, grid, trend
from bregpath.structures.path import StructuredPath

__all__ = ["StructuredPath", "fused", "graph", "grid", "trend"]
