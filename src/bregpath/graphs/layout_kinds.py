"""All layouts by their kinds, as files name them."""

from __future__ import annotations

from bregpath.graphs.layouts import AbstractLayout, FieldLayout, GaussianLayout, IsingLayout
from bregpath.graphs.mixed_layout import MixedLayout

__all__ = ["LAYOUTS"]

KINDS: tuple[type[AbstractLayout], ...] = (IsingLayout, FieldLayout, GaussianLayout, MixedLayout)
LAYOUTS: dict[str, type[AbstractLayout]] = {cls.kind: cls for cls in KINDS}
