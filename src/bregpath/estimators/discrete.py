"""What graphs of labels share: codes of states, nodes with one label only, and states without rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bregpath._text import listed
from bregpath._typing import Array, BoolArray
from bregpath.estimators.graph import AbstractGraph
from bregpath.graphs.check import ModelCheck, check_codes
from bregpath.graphs.data import StateCoder
from bregpath.graphs.layouts import AbstractLayout, StateLayout
from bregpath.graphs.missing import draw_from_margins

__all__ = ["DiscreteGraph", "tell_constant"]


@dataclass(eq=False, repr=False, kw_only=True)
class DiscreteGraph(AbstractGraph):
    """A graph of nodes with labels, `IsingGraph` or `PottsGraph`.

    A state without rows, of a node with one label only or in the training rows of a fold, would have the field minus
    infinity. It counts as half a row instead, spread over all rows, and nodes with one label only get no edges.
    """

    saturation: float | None = 0.999

    def _encode(self, X: Any) -> Array:
        return StateCoder(self.path_.layout.names, tuple(self.levels_)).encode(X)

    def check(self, X: Any, t: float | None = None, **options: Any) -> ModelCheck:
        """Compare data with samples of the chosen model, or of that at another time.

        Parameters
        ----------
        X : array or data frame of shape (n, p)
            Best rows that the graph was not fitted to.
        t : float, optional
        **options
            As in `bregpath.graphs.check_model`: ``n_samples``, ``seed``, and those of `bregpath.graphs.gibbs`.

        Returns
        -------
        ModelCheck
            Margins, pairs, triplets and the number of active nodes; print it, or call its ``plot()``.

        Examples
        --------
        >>> import bregpath
        >>> data = bregpath.datasets.make_ising_grid(3, T=1.5, n=500, n_test=500, seed=0)
        >>> bregpath.IsingGraph(stop="cv").fit(data.X).check(data.X_test).agrees
        True
        """
        model = self.model(t)
        return check_codes(model, self._encode(X), **options)

    def _checked(
        self, layout: StateLayout, codes: Array, w: Array, rng: np.random.Generator
    ) -> tuple[AbstractLayout, Array, Array, BoolArray]:
        """Fill gaps from their columns; say which nodes cannot have edges; refuse a table of nothing else."""
        missing = codes < 0
        rows = draw_from_margins(codes, missing, rng)
        tell_constant(layout.names, layout.varies(rows, w), "label", stacklevel=6)
        self.levels_ = list(layout.levels)
        return layout, rows, w, missing


def tell_constant(names: Sequence[str], varies: BoolArray, what: str, stacklevel: int) -> None:
    """Warn, as far up as the caller of fit, of nodes that cannot have edges; refuse a table of nothing else."""
    if not varies.any():
        raise ValueError(f"`X` has one {what} only in every column; there is nothing to learn from it.")
    constant = [repr(name) for name, moves in zip(names, varies, strict=True) if not moves]
    if constant:
        warnings.warn(
            f"`X` has one {what} only in column(s) {listed(constant)}: these nodes get no edges. Drop them, or take "
            "more rows.",
            UserWarning,
            stacklevel=stacklevel,
        )
