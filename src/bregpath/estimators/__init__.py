"""Thin scikit-learn shells around `trace_path` and the selection rules."""

from __future__ import annotations

from bregpath.estimators.classifier import BregmanClassifier
from bregpath.estimators.regressor import BregmanRegressor

__all__ = ["BregmanClassifier", "BregmanRegressor"]
