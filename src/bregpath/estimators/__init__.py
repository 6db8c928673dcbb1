"""Estimators for scikit-learn: regression and classification, and graphs."""

from __future__ import annotations

from bregpath.estimators.classifier import BregmanClassifier
from bregpath.estimators.contacts import ContactGraph
from bregpath.estimators.gaussian import GaussianGraph
from bregpath.estimators.ising import IsingGraph
from bregpath.estimators.mixed import MixedGraph
from bregpath.estimators.potts import PottsGraph
from bregpath.estimators.regressor import BregmanRegressor

__all__ = [
    "BregmanClassifier",
    "BregmanRegressor",
    "ContactGraph",
    "GaussianGraph",
    "IsingGraph",
    "MixedGraph",
    "PottsGraph",
]
