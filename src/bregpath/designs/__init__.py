"""Designs: how coefficients become linear predictors. Data enters here and nowhere else."""

from __future__ import annotations

from bregpath.designs.base import AbstractDesign
from bregpath.designs.dense import DenseDesign
from bregpath.designs.sparse import SparseDesign
from bregpath.designs.standardized import StandardizedDesign

__all__ = ["AbstractDesign", "DenseDesign", "SparseDesign", "StandardizedDesign"]
