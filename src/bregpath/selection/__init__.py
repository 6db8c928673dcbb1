"""Rules that choose a point on a path, or the variables that matter."""

from __future__ import annotations

from bregpath.selection.blending import Blend, BlendPart
from bregpath.selection.bootstrap import BootstrapIntervals, bootstrap_intervals, replicate_intervals
from bregpath.selection.copies import copula_copies, elliptical_copies, gaussian_copies
from bregpath.selection.criteria import information_criterion
from bregpath.selection.cross_validation import cross_validate
from bregpath.selection.knockoffs import KnockoffSelection, knockoff_select, knockoff_threshold
from bregpath.selection.pruning import Pruned
from bregpath.selection.refit import Refit, relaxed_refit
from bregpath.selection.result import ScoreCurve, Selection
from bregpath.selection.stability import Stability, replicate_stability, stability_selection

__all__ = [
    "Blend",
    "BlendPart",
    "BootstrapIntervals",
    "KnockoffSelection",
    "Pruned",
    "Refit",
    "ScoreCurve",
    "Selection",
    "Stability",
    "bootstrap_intervals",
    "copula_copies",
    "cross_validate",
    "elliptical_copies",
    "gaussian_copies",
    "information_criterion",
    "knockoff_select",
    "knockoff_threshold",
    "relaxed_refit",
    "replicate_intervals",
    "replicate_stability",
    "stability_selection",
]
