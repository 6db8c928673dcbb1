r"""Which pairs of positions of a family of sequences touch: scores of the blocks of a Potts model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bregpath._frames import import_pandas
from bregpath._typing import Array, IntArray
from bregpath._validation import as_array, check_integer
from bregpath.graphs.alignments import GAP
from bregpath.graphs.base_model import as_discrete_model
from bregpath.graphs.models import PottsModel

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["contact_precision", "contact_scores", "contact_table", "ranked_pairs"]


def contact_scores(model: Any, gap: Any = GAP, correct: bool = True) -> Array:
    r"""Score of each pair of nodes of a Potts model, (p, p): the larger, the likelier they touch.

    The Frobenius norm of the block in the zero-sum gauge, without the label ``gap``, and less what its nodes share with
    all others (the average product correction),

    .. math:: S_{jk} - \bar S_j \bar S_k / \bar S .

    Parameters
    ----------
    model : PottsModel, or a fitted `bregpath.PottsGraph`
    gap : label, default "-"
        The label of a gap, whose couplings tell of how sequences were aligned and not of contacts; None: no label is.
    correct : bool, default True
        Whether to apply the correction.

    Examples
    --------
    >>> import numpy as np
    >>> couplings = np.kron([[0, 1, 0], [1, 0, 0], [0, 0, 0]], np.eye(2))
    >>> model = PottsModel(np.zeros(6), couplings, n_states=2)
    >>> contact_scores(model, correct=False)
    array([[0., 1., 0.], [1., 0., 0.], [0., 0., 0.]])
    """
    model = as_discrete_model(model)
    if not isinstance(model, PottsModel):
        raise TypeError(f"`model` must be a PottsModel or a fitted PottsGraph, found {type(model).__name__}.")
    centred = model.to_zero_sum()
    counts = np.concatenate([[label != gap for label in labels.tolist()] for labels in model.labels])
    squares = centred.couplings**2 * counts * counts[:, None]
    starts = model.offsets[:-1]
    norms = np.sqrt(np.add.reduceat(np.add.reduceat(squares, starts, axis=0), starts, axis=1))
    return _corrected(norms) if correct else norms


def _corrected(scores: Array) -> Array:
    """Less the product of the means of both nodes over that of all."""
    p, means = len(scores), scores.sum(axis=0) / (len(scores) - 1)
    if not means.any():
        return scores
    corrected = scores - np.outer(means, means) * p / means.sum()
    np.fill_diagonal(corrected, 0.0)
    return corrected


def contact_table(
    scores: Any, min_separation: int = 4, columns: IntArray | None = None, names: Any = None
) -> pd.DataFrame:
    """Pairs of positions with their scores as a data frame, highest first.

    Parameters
    ----------
    scores : array-like of shape (p, p)
        Symmetric; see `contact_scores`.
    min_separation : int, default 4
        Pairs that are closer in the sequence are left out: they touch anyway.
    columns : array of shape (p,), optional
        Position of each node in the sequence; 0, 1, ... by default.
    names : sequence of str, optional
        Names of the nodes, as two more columns.

    Examples
    --------
    >>> contact_table([[0, 1, 2], [1, 0, 3], [2, 3, 0]], min_separation=1)
       i  j  score
    0  1  2      3
    1  0  2      2
    2  0  1      1
    """
    matrix, (j, k), columns = ranked_pairs(scores, min_separation, columns)
    table = {"i": columns[j], "j": columns[k], "score": matrix[j, k]}
    if names is not None:
        label = np.asarray(names, dtype=object)
        table |= {"first": label[j], "second": label[k]}
    return import_pandas("contacts()").DataFrame(table)


def contact_precision(scores: Any, touches: Any, counts: Any, min_separation: int = 4) -> Array:
    """Share of true contacts among the highest scores, for several numbers of pairs.

    Parameters
    ----------
    scores, touches : array-like of shape (p, p)
        Scores, and which pairs truly touch.
    counts : sequence of int
        How many of the highest scores are looked at.
    min_separation : int, default 4

    Examples
    --------
    >>> import numpy as np
    >>> contact_precision([[0, 1, 2], [1, 0, 3], [2, 3, 0]], np.eye(3)[::-1], [1, 2], min_separation=1)
    array([0. , 0.5])
    """
    matrix, (j, k), _ = ranked_pairs(scores, min_separation)
    truth = as_array("touches", touches)
    if truth.shape != matrix.shape:
        raise ValueError(f"`touches` must have the shape of `scores`, {matrix.shape}, found {truth.shape}.")
    hits = np.cumsum(truth[j, k] != 0)
    wanted = [check_integer("counts", count, 1) for count in counts]
    if max(wanted) > len(hits):
        raise ValueError(f"`counts` asks for {max(wanted)} pairs, but there are {len(hits)}; ask for fewer.")
    return np.array([hits[count - 1] / count for count in wanted])


def ranked_pairs(
    scores: Any, min_separation: int, columns: Any = None
) -> tuple[Array, tuple[IntArray, IntArray], IntArray]:
    """Scores, the pairs that are far enough from each other, highest first, and the positions of all nodes."""
    matrix = as_array("scores", scores)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"`scores` must have one entry a pair of nodes, found shape {matrix.shape}.")
    least = check_integer("min_separation", min_separation, 1)
    at = np.arange(len(matrix)) if columns is None else np.asarray(columns)
    if at.shape != (len(matrix),):
        raise ValueError(f"`columns` must have one position for each of the {len(matrix)} nodes, found {at.shape}.")
    j, k = np.triu_indices(len(matrix), 1)
    far = np.abs(at[k] - at[j]) >= least
    j, k = j[far], k[far]
    order = np.argsort(-matrix[j, k], kind="stable")
    return matrix, (j[order], k[order]), at
