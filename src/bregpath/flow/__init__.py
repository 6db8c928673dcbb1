"""Flows: dynamics that trace a path, registered in `FLOWS`."""

from __future__ import annotations

from bregpath.flow.base import AbstractFlow
from bregpath.flow.giss import GISS
from bregpath.flow.glbi import GLBI

__all__ = ["FLOWS", "GISS", "GLBI", "AbstractFlow"]

FLOWS: dict[str, type[AbstractFlow]] = {cls.name: cls for cls in (GLBI, GISS)}
