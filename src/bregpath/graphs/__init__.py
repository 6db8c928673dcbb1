"""Graphical models: what is learned, how to sample from it, and what can be done with its edges."""

from __future__ import annotations

# Not lazily: `gibbs` and `mdc` are modules too, and must not be found in place of the functions.
from .alignments import Alignment, read_alignment, sequence_weights
from .check import Comparison, ModelCheck, check_model
from .comparison import GraphComparison, compare_graphs
from .contacts import contact_precision, contact_scores, contact_table
from .exact import enumerate_states
from .export import adjacency, edge_table, sparsity, to_networkx, write_edges, write_graphml
from .gibbs import gibbs
from .mdc import mdc
from .mixed_model import MixedModel
from .mixing import SampleDiagnostics
from .models import GaussianModel, IsingModel, PottsModel
from .path import GraphPath
from .tables import group_table, node_table

__all__ = [
    "Alignment",
    "Comparison",
    "GaussianModel",
    "GraphComparison",
    "GraphPath",
    "IsingModel",
    "MixedModel",
    "ModelCheck",
    "PottsModel",
    "SampleDiagnostics",
    "adjacency",
    "check_model",
    "compare_graphs",
    "contact_precision",
    "contact_scores",
    "contact_table",
    "edge_table",
    "enumerate_states",
    "gibbs",
    "group_table",
    "mdc",
    "node_table",
    "read_alignment",
    "sequence_weights",
    "sparsity",
    "to_networkx",
    "write_edges",
    "write_graphml",
]
