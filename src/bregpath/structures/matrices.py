"""What of the coefficients is sparse: differences of neighbours on a line, a grid or a graph, or any linear map."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bregpath import _validation

__all__ = ["STRUCTURES", "Structure", "as_structure", "fused", "graph", "grid", "trend"]

REACH = 1000**0.5  # positions on a line over which noise is averaged before anything has entered
OTHER_NU = 0.1  # for grids, graphs, and maps of which nothing is known


def fused(p: int) -> Any:
    """First differences ``b[j + 1] - b[j]`` of p coefficients on a line: sparse for those that are constant in pieces.

    Examples
    --------
    >>> fused(3).toarray()
    array([[-1.,  1.,  0.],
           [ 0., -1.,  1.]])
    """
    return trend(p, 1)


def trend(p: int, order: int = 2) -> Any:
    """Differences of some order: by default second ones, sparse for coefficients that are linear in pieces.

    Examples
    --------
    >>> trend(4).toarray()
    array([[ 1., -2.,  1.,  0.],
           [ 0.,  1., -2.,  1.]])
    """
    from scipy.sparse import diags_array

    order = _validation.check_integer("order", order, 1)
    p = _validation.check_integer("p", p, order + 1)
    signs = [(-1.0) ** (order - k) * math.comb(order, k) for k in range(order + 1)]
    return diags_array(signs, offsets=range(order + 1), shape=(p - order, p)).tocsr()


def grid(shape: Any) -> Any:
    """Differences of neighbours on a grid of any dimension, along one axis after the other: total variation.

    Coefficients are those of the array in C order, as ``image.ravel()`` gives them.

    Examples
    --------
    >>> grid((2, 2)).toarray()
    array([[-1.,  0.,  1.,  0.],
           [ 0., -1.,  0.,  1.],
           [-1.,  1.,  0.,  0.],
           [ 0.,  0., -1.,  1.]])
    """
    from scipy.sparse import eye_array, kron, vstack

    sides = [_validation.check_integer("shape", side, 1) for side in np.atleast_1d(np.asarray(shape, dtype=object))]
    if math.prod(sides) < 2:
        raise ValueError(f"`shape`={tuple(sides)} is one point, which has no neighbours; give the sides of a grid.")
    parts = [
        kron(kron(eye_array(math.prod(sides[:axis])), fused(side)), eye_array(math.prod(sides[axis + 1 :])))
        for axis, side in enumerate(sides)
        if side > 1
    ]
    return vstack(parts, format="csr")


def graph(edges: Any, p: int) -> Any:
    """Differences ``b[k] - b[j]`` along the edges (j, k) of a graph with p nodes, one coefficient a node.

    Examples
    --------
    >>> graph([(0, 2)], 3).toarray()
    array([[-1.,  0.,  1.]])
    """
    from scipy.sparse import csr_array

    p = _validation.check_integer("p", p, 2)
    ends = np.atleast_2d(_validation.as_array("edges", edges))
    if ends.ndim != 2 or ends.shape[1] != 2 or ends.dtype.kind not in "iu":
        found = f"shape {ends.shape} and dtype {ends.dtype}"
        raise ValueError(f"`edges` must be pairs (j, k) of whole numbers, found {found}.")
    if ends.min() < 0 or ends.max() >= p or np.any(ends[:, 0] == ends[:, 1]):
        found = f"nodes {ends.min()} to {ends.max()}"
        raise ValueError(f"`edges` must join two different nodes from 0 to {p - 1}, found {found}.")
    m = len(ends)
    entries = np.tile([-1.0, 1.0], m), (np.repeat(np.arange(m), 2), ends.ravel())
    return csr_array(entries, shape=(m, p))


class Structure(NamedTuple):
    """A map D whose image is sparse, with a good ``nu`` for it and the unit in which that image is counted."""

    D: Any  # scipy.sparse, (m, p)
    nu: float = OTHER_NU
    unit: float = 1.0


def _on_a_line(p: int, order: int = 2) -> Structure:
    """Before anything enters, coefficients are smoothed over about ``nu ** (-1 / (2 order))`` positions.

    So many make a change of slope, which adds up over them, as visible as a jump.
    """
    return Structure(trend(p, order), REACH ** (-2 * order), REACH ** (1 - order))


def _on_a_grid(p: int, shape: Any = None) -> Structure:
    if shape is None:
        raise ValueError('`structure`="grid" needs the sides of the grid; pass structure=("grid", (rows, columns)).')
    D = grid(shape)
    if D.shape[1] != p:
        raise ValueError(f'`structure`=("grid", {shape}) has {D.shape[1]} points, but there are {p} coefficients.')
    return Structure(D)


def _on_a_graph(p: int, edges: Any = None) -> Structure:
    if edges is None:
        raise ValueError('`structure`="graph" needs its edges; pass structure=("graph", [(0, 1), (1, 2), ...]).')
    return Structure(graph(edges, p))


# Short names, alone or with one argument: ("trend", 3).
STRUCTURES: dict[str, Callable[..., Structure]] = {
    "fused": lambda p: _on_a_line(p, 1),
    "trend": _on_a_line,
    "grid": _on_a_grid,
    "graph": _on_a_graph,
}


def as_structure(structure: Any, p: int) -> Structure:
    """The structure of p coefficients that a name, a name with an argument, or a matrix means.

    Examples
    --------
    >>> as_structure(("trend", 3), 10).D.shape
    (7, 10)
    """
    if isinstance(structure, str):
        structure = (structure,)
    if isinstance(structure, tuple) and structure and isinstance(structure[0], str):
        name, *arguments = structure
        if name not in STRUCTURES:
            raise ValueError(
                f"`structure` must be one of {sorted(STRUCTURES)} or a matrix with one column a coefficient, "
                f"found {name!r}."
            )
        if len(arguments) > (name != "fused"):
            takes = "no argument" if name == "fused" else "one argument"
            raise ValueError(f"`structure`={structure!r}: {name!r} takes {takes}, found {len(arguments)}.")
        return STRUCTURES[name](p, *arguments)
    return Structure(_own_matrix(structure, p))


def _own_matrix(D: Any, p: int) -> Any:
    from scipy.sparse import csr_array

    D = D if _validation.is_sparse(D) else _validation.as_array("structure", D)
    if D.dtype.kind not in "fiub" or len(D.shape) != 2:
        raise ValueError(
            f"`structure` must be one of {sorted(STRUCTURES)} or a matrix of real numbers, found shape {D.shape} "
            f"and dtype {D.dtype}."
        )
    if D.shape[1] != p:
        hint = "; pass its transpose" if D.shape[0] == p else ""
        raise ValueError(f"`structure` must have a column for each of the {p} coefficients, found {D.shape[1]}{hint}.")
    D = csr_array(D, dtype=float)
    D.sum_duplicates()
    if not np.isfinite(D.data).all():
        raise ValueError("`structure` contains NaN or infinity; every entry of D must be a number.")
    D.eliminate_zeros()
    if not D.nnz:
        raise ValueError(f"`structure` is empty (shape {D.shape}): no row of D says what should be sparse.")
    D.indices, D.indptr = D.indices.astype(np.int32), D.indptr.astype(np.int32)
    return D
