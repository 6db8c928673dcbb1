"""Rules that choose a point on a path."""

from __future__ import annotations

from bregpath.selection.criteria import information_criterion
from bregpath.selection.cross_validation import cross_validate
from bregpath.selection.result import Selection

__all__ = ["Selection", "cross_validate", "information_criterion"]
