"""The arguments of `trace_path` once more, for paths on some of the rows."""

from __future__ import annotations

from typing import Any, NamedTuple

from bregpath import _frames, _validation
from bregpath._typing import Array
from bregpath.path import Path

__all__ = ["Again", "read_again"]

# What belongs to the path on all rows only.
ONCE = ("sample_weight", "offset", "t", "t_ratio", "n_times", "stop", "progress")


class Again(NamedTuple):
    """Data and options that every replicate shares."""

    X: Any
    y: Array
    offset: Array | None
    options: dict[str, Any]


def read_again(path: Path, X: Any, y: Any, options: dict[str, Any]) -> Again:
    """What ``path`` was traced on. A frame is encoded as the path did, so that all replicates have the same columns."""
    y = _frames.series_to_numpy(y)
    offset = options.get("offset")
    if offset is not None:
        offset = _validation.check_offset(offset, len(y), path.n_outputs)
    rest = {key: value for key, value in options.items() if key not in ONCE}
    if path.encoder is not None and path.encoder.has_categories and rest.get("groups") is None:
        rest["groups"] = path.encoder.groups
        rest["penalty"] = "group" if rest.get("penalty", "l1") == "l1" else rest["penalty"]
    matrix = path.encode(X)
    if _validation.is_sparse(matrix):
        matrix = matrix.tocsr()  # rows are picked
    return Again(matrix, y, offset, rest)
