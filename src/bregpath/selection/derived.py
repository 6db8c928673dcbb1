"""What has a model: a selection, and what is made of one and is no point on its path."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bregpath import _validation
from bregpath._typing import Array, IntArray
from bregpath.point import Point

if TYPE_CHECKING:
    from bregpath.selection.result import Selection

__all__ = ["AbstractChoice", "AbstractDerived"]


class AbstractChoice(ABC):
    """What a model has been chosen by."""

    @property
    @abstractmethod
    def model(self) -> Point:
        """The chosen model."""

    @property
    def coef(self) -> Array:
        """Coefficients of the chosen model."""
        return self.model.coef

    @property
    def intercept(self) -> Any:
        """Intercept of the chosen model."""
        return self.model.intercept


class AbstractDerived(AbstractChoice):
    """A linear model that follows from a `selection`."""

    selection: Selection

    @property
    def support(self) -> IntArray:
        """Its columns."""
        coef = self.model.coef
        return np.flatnonzero(coef if coef.ndim == 1 else coef.any(axis=1))

    def predict(self, X: Any, offset: Any = None) -> Array:
        """Mean response of new rows, as `Path.predict`."""
        path, (_, intercept, coef) = self.selection.path, self.model
        eta = np.asarray(path.encode(X) @ coef) + intercept
        return path.loss.predict(_validation.add_offset(eta, offset, path.n_outputs))  # type: ignore[no-any-return]

    def _point(self, t: float, intercept: Array, coef: Array) -> Point:
        """A model as a point, of intercepts (q,) and coefficients (p, q)."""
        naming = replace(self.selection.path.naming, average=None)
        if len(intercept) == 1:
            return Point(t, float(intercept[0]), coef[:, 0], naming)
        return Point(t, intercept, coef, naming)
