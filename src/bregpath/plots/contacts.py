"""A map of contacts: which columns of an alignment touch, by score and, where it is known, in truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bregpath._validation import check_integer
from bregpath.graphs.contacts import ranked_pairs
from bregpath.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_contacts"]


def plot_contacts(
    scores: Any,
    *,
    touches: Any = None,
    n_pairs: int | None = None,
    min_separation: int = 4,
    columns: Any = None,
    ax: Axes | None = None,
    title: str | None = None,
    figsize: tuple[float, float] = (5.4, 5.2),
) -> Axes:
    """Draw the pairs with the highest scores as points, over the true contacts in grey.

    Parameters
    ----------
    scores : array-like of shape (p, p)
        Of ``graph.contact_scores()`` or `bregpath.graphs.contact_scores`.
    touches : array-like of bool of shape (p, p), optional
        True contacts. Points are then blue where they are right and orange where they are not.
    n_pairs : int, optional
        How many pairs are drawn; as many as there are columns by default.
    min_separation : int, default 4
        Pairs that are closer in the sequence are left out.
    columns : array-like of shape (p,), optional
        Position of each node in the sequence.
    ax, title, figsize
        Axes to draw on; words above them; width and height of a new figure in inches.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> ax = plot_contacts(np.ones((9, 9)), n_pairs=5)
    >>> ax.get_xlabel()
    'Column'
    """
    matrix, (j, k), at = ranked_pairs(scores, min_separation, columns)
    count = min(len(matrix) if n_pairs is None else check_integer("n_pairs", n_pairs, 1), len(j))
    j, k = j[:count], k[:count]
    ax = style.new_axes(ax, figsize)
    ax.grid(False)
    right = np.ones(count, dtype=bool)
    if touches is not None:
        truth = np.asarray(touches, dtype=bool)
        if truth.shape != matrix.shape:
            raise ValueError(f"`touches` must have the shape of `scores`, {matrix.shape}, found {truth.shape}.")
        one, other = np.nonzero(truth & ~np.eye(len(truth), dtype=bool))
        ax.plot(at[one], at[other], "s", color=style.FAINT, markersize=3.2, markeredgewidth=0.0, zorder=1)
        right = truth[j, k]
    for hit, color in ((True, style.COLORS[0]), (False, style.COLORS[1])):
        a, b = at[j[right == hit]], at[k[right == hit]]
        ax.plot(np.append(a, b), np.append(b, a), ".", color=color, markersize=5.5, markeredgewidth=0.0, zorder=2)
    ax.set_aspect("equal")
    ax.set_xlim(at.min() - 1, at.max() + 1)
    ax.set_ylim(at.max() + 1, at.min() - 1)
    if title is None and touches is not None:
        title = f"{right.sum()} of the {count} highest scores touch"
    style.label_axes(ax, "Column", "Column", title)
    return ax
