"""Sparse model selection by dynamics: whole regularisation paths for regression and graphs.

Names are imported when first used, so that ``import bregpath`` costs NumPy only.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bregpath._version import __version__

if TYPE_CHECKING:
    from bregpath import datasets as datasets
    from bregpath import graphs as graphs
    from bregpath import losses as losses
    from bregpath import penalties as penalties
    from bregpath import plots as plots
    from bregpath import structures as structures
    from bregpath import theory as theory
    from bregpath.estimators import BregmanClassifier as BregmanClassifier
    from bregpath.estimators import BregmanRegressor as BregmanRegressor
    from bregpath.estimators import ContactGraph as ContactGraph
    from bregpath.estimators import GaussianGraph as GaussianGraph
    from bregpath.estimators import IsingGraph as IsingGraph
    from bregpath.estimators import MixedGraph as MixedGraph
    from bregpath.estimators import PottsGraph as PottsGraph
    from bregpath.flow.stop import Progress as Progress
    from bregpath.flow.stop import Result as Result
    from bregpath.flow.stop import StopAtDevianceRatio as StopAtDevianceRatio
    from bregpath.flow.stop import StopAtPlateau as StopAtPlateau
    from bregpath.flow.stop import StopAtTime as StopAtTime
    from bregpath.flow.stop import StopAtVariables as StopAtVariables
    from bregpath.flow.stop import StopWhenWorse as StopWhenWorse
    from bregpath.path import Path as Path
    from bregpath.path import Point as Point
    from bregpath.path_file import load_path as load_path
    from bregpath.selection import Blend as Blend
    from bregpath.selection import BootstrapIntervals as BootstrapIntervals
    from bregpath.selection import KnockoffSelection as KnockoffSelection
    from bregpath.selection import Pruned as Pruned
    from bregpath.selection import Refit as Refit
    from bregpath.selection import Selection as Selection
    from bregpath.selection import Stability as Stability
    from bregpath.selection import bootstrap_intervals as bootstrap_intervals
    from bregpath.selection import cross_validate as cross_validate
    from bregpath.selection import information_criterion as information_criterion
    from bregpath.selection import knockoff_select as knockoff_select
    from bregpath.selection import relaxed_refit as relaxed_refit
    from bregpath.selection import stability_selection as stability_selection
    from bregpath.trace import trace_path as trace_path

_HOME = {
    "BootstrapIntervals": "bregpath.selection",
    "BregmanClassifier": "bregpath.estimators",
    "BregmanRegressor": "bregpath.estimators",
    "ContactGraph": "bregpath.estimators",
    "GaussianGraph": "bregpath.estimators",
    "IsingGraph": "bregpath.estimators",
    "MixedGraph": "bregpath.estimators",
    "PottsGraph": "bregpath.estimators",
    "KnockoffSelection": "bregpath.selection",
    "Path": "bregpath.path",
    "Point": "bregpath.path",
    "Progress": "bregpath.flow.stop",
    "Blend": "bregpath.selection",
    "Pruned": "bregpath.selection",
    "Refit": "bregpath.selection",
    "Result": "bregpath.flow.stop",
    "Selection": "bregpath.selection",
    "Stability": "bregpath.selection",
    "StopAtDevianceRatio": "bregpath.flow.stop",
    "StopAtPlateau": "bregpath.flow.stop",
    "StopAtTime": "bregpath.flow.stop",
    "StopAtVariables": "bregpath.flow.stop",
    "StopWhenWorse": "bregpath.flow.stop",
    "bootstrap_intervals": "bregpath.selection",
    "cross_validate": "bregpath.selection",
    "information_criterion": "bregpath.selection",
    "knockoff_select": "bregpath.selection",
    "load_path": "bregpath.path_file",
    "relaxed_refit": "bregpath.selection",
    "stability_selection": "bregpath.selection",
    "trace_path": "bregpath.trace",
}
_MODULES = ("datasets", "graphs", "losses", "penalties", "plots", "stores", "structures", "theory")

__all__ = ["__version__", *_HOME, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name in _MODULES:
        value = import_module(f"bregpath.{name}")
    else:
        raise AttributeError(f"module 'bregpath' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
