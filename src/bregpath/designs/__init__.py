"""Designs: how coefficients become linear predictors. Data enters here and nowhere else."""

from __future__ import annotations

from bregpath.designs.base import AbstractColumns, AbstractDesign
from bregpath.designs.dense import DenseDesign
from bregpath.designs.pairwise import PairwiseDesign
from bregpath.designs.precision import PrecisionDesign
from bregpath.designs.sparse import SparseDesign
from bregpath.designs.standardized import StandardizedDesign

__all__ = [
    "AbstractColumns",
    "AbstractDesign",
    "DenseDesign",
    "PairwiseDesign",
    "PrecisionDesign",
    "SparseDesign",
    "StandardizedDesign",
]
