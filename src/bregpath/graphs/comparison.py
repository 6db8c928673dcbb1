"""Two graphs of the same nodes: which edges they share, and how their weights differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bregpath._frames import import_pandas
from bregpath._typing import Array, IntArray
from bregpath.graphs.export import check_graph

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["GraphComparison", "compare_graphs"]

SHOWN = 10  # lines of a printed table


@dataclass(frozen=True, eq=False, repr=False)
class GraphComparison:
    """What two graphs of the same nodes have in common.

    Attributes
    ----------
    here, there : ndarray of shape (p, p)
        Weights of the edges of both.
    names : list of str
        The nodes.

    Examples
    --------
    >>> both = compare_graphs([[0, 1, 2], [1, 0, 0], [2, 0, 0]], [[0, -1, 0], [-1, 0, 3], [0, 3, 0]])
    >>> both.common.tolist(), both.only_here.tolist(), both.only_there.tolist()
    ([[0, 1]], [[0, 2]], [[1, 2]])
    >>> both.sign_agreement, both.overlap
    (0.0, 0.333)
    """

    here: Array
    there: Array
    names: list[str]

    @property
    def common(self) -> IntArray:
        """Edges of both graphs as rows (j, k), j < k."""
        return np.argwhere(np.triu((self.here != 0) & (self.there != 0)))

    @property
    def only_here(self) -> IntArray:
        """Edges of the first graph that the second has not."""
        return np.argwhere(np.triu((self.here != 0) & (self.there == 0)))

    @property
    def only_there(self) -> IntArray:
        """Edges of the second graph that the first has not."""
        return np.argwhere(np.triu((self.here == 0) & (self.there != 0)))

    @property
    def overlap(self) -> float:
        """Share of the edges of either graph that are in both; 1 if neither has any."""
        either = len(self.common) + len(self.only_here) + len(self.only_there)
        return len(self.common) / either if either else 1.0

    @property
    def sign_agreement(self) -> float:
        """Share of the common edges that have the same sign in both; NaN without any."""
        j, k = self.common.T
        return float(np.mean(np.sign(self.here[j, k]) == np.sign(self.there[j, k]))) if len(j) else float("nan")

    @property
    def differences(self) -> Array:
        """Weights there minus weights here, (p, p)."""
        return self.there - self.here

    def to_frame(self) -> pd.DataFrame:
        """One row an edge of either graph, the largest difference first (needs pandas)."""
        j, k, found = self._edges
        name = np.array(self.names, dtype=object)
        columns = {"source": name[j], "target": name[k], "here": self.here[j, k], "there": self.there[j, k]}
        columns |= {"difference": self.differences[j, k], "found": found}
        return import_pandas("to_frame()").DataFrame(columns)

    @property
    def _edges(self) -> tuple[IntArray, IntArray, Array]:
        """Ends of the edges of either graph, the largest difference first, and where each was found."""
        j, k = np.nonzero(np.triu((self.here != 0) | (self.there != 0)))
        order = np.argsort(-np.abs(self.differences[j, k]), kind="stable")
        j, k = j[order], k[order]
        found = np.where(self.there[j, k] == 0, "here", np.where(self.here[j, k] == 0, "there", "both"))
        return j, k, found

    def __repr__(self) -> str:
        same = f"; {self.sign_agreement:.0%} of them with the same sign" if len(self.common) else ""
        head = (
            f"Two graphs of {len(self.names)} nodes: {len(self.common)} edges in common{same}\n"
            f"only here {len(self.only_here)}, only there {len(self.only_there)}, overlap {self.overlap:.2f}"
        )
        j, k, found = self._edges
        labels = [f"{self.names[a]} - {self.names[b]}" for a, b in zip(j[:SHOWN], k[:SHOWN], strict=True)]
        width = max(map(len, labels), default=0)
        lines = [f"{'':>{width}}{'here':>10}{'there':>10}{'difference':>12}"] if labels else []
        for label, a, b, where in zip(labels, j, k, found, strict=False):
            values = f"{self.here[a, b]:>10.3g}{self.there[a, b]:>10.3g}{self.differences[a, b]:>+12.3g}"
            lines.append(f"{label:>{width}}{values}  {where}")
        left = [f"... and {len(j) - SHOWN} more"] if len(j) > SHOWN else []
        return "\n".join([head, *lines, *left])


def compare_graphs(
    here: Any, there: Any, names: Sequence[str] | None = None, other_names: Sequence[str] | None = None
) -> GraphComparison:
    """Compare two matrices of weights of the same nodes.

    Parameters
    ----------
    here, there : array-like of shape (p, p)
        Symmetric, zero diagonal.
    names : sequence of str, optional
        Nodes of the first; ``x0, x1, ...`` by default.
    other_names : sequence of str, optional
        Nodes of the second, if it has them in another order.

    Returns
    -------
    GraphComparison

    Examples
    --------
    >>> compare_graphs([[0, 1], [1, 0]], [[0, 2], [2, 0]]).common.tolist()
    [[0, 1]]
    """
    first, nodes = check_graph(here, names)
    second, others = check_graph(there, other_names if other_names is not None or names is None else None)
    if len(second) != len(first):
        raise ValueError(f"`other` has {len(second)} nodes, the graph {len(first)}; compare graphs of the same nodes.")
    if other_names is not None and others != nodes:
        lacking = [name for name in nodes if name not in set(others)]
        if lacking:
            raise ValueError(f"`other` has no node {lacking[0]!r}; compare graphs of the same nodes.")
        at = [others.index(name) for name in nodes]
        second = second[np.ix_(at, at)]
    return GraphComparison(first, second, nodes)
