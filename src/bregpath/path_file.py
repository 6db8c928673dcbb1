"""Paths on disk: one ``.npz`` file of arrays and one JSON text; no pickle."""

from __future__ import annotations

import json
import zipfile
import zlib
from dataclasses import asdict, fields
from os import PathLike, fspath
from typing import Any

import numpy as np

from bregpath._frames import ColumnEncoder
from bregpath._typing import Array
from bregpath._version import __version__
from bregpath.flow.stop import Result
from bregpath.flow.trajectory import Chunk, Trajectory
from bregpath.losses import GRAPH_LOSSES, LOSSES, AbstractLoss, loss_from_dict
from bregpath.path import Path, Stats, Units
from bregpath.penalties import AbstractPenalty, GroupPenalty, L1Penalty

__all__ = ["FORMAT_VERSION", "SavedUserLoss", "load_path", "write_path"]

FORMAT = "bregpath path"
FORMAT_VERSION = 1

# What reading a file that is damaged, or something else altogether, may raise.
_UNREADABLE = (
    *(ValueError, KeyError, TypeError, AttributeError, IndexError, EOFError, OSError),
    *(zipfile.BadZipFile, zlib.error, NotImplementedError, SyntaxError),
)


class SavedUserLoss(AbstractLoss):
    """Stands for a user's own loss on a loaded path: its code was not saved, so `predict` is the identity.

    Examples
    --------
    >>> SavedUserLoss("CauchyLoss")
    SavedUserLoss('CauchyLoss': its code was not saved, predict() returns the linear predictor)
    """

    name = "user"

    def __init__(
        self, class_name: str, *, n_outputs: int = 1, classes: Any = None, is_classifier: bool = False
    ) -> None:
        self.class_name = class_name
        self.n_outputs = n_outputs
        self.classes = classes
        self.is_classifier = is_classifier

    def value(self, eta: Array, y: Array, w: Array) -> float:
        raise self._gone()

    def gradient(self, eta: Array, y: Array, w: Array) -> Array:
        raise self._gone()

    def _gone(self) -> ValueError:
        return ValueError(f"The code of the loss {self.class_name!r} was not saved; trace the path anew.")

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "class": self.class_name}

    def __repr__(self) -> str:
        note = "its code was not saved, predict() returns the linear predictor"
        return f"SavedUserLoss({self.class_name!r}: {note})"


def write_path(path: Path, file: str | PathLike[str]) -> None:
    """Write a path to one file; `load_path` reads it back.

    Parameters
    ----------
    path : Path
    file : str or path-like
        Name of the file, kept exactly as given (nothing is appended) and overwritten where it exists.

    Examples
    --------
    >>> import bregpath, tempfile, os
    >>> data = bregpath.datasets.make_linear(50, 5, 2, seed=0)
    >>> path = bregpath.trace_path(data.X, data.y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_path(path, os.path.join(folder, "linear.path"))
    ...     again = load_path(os.path.join(folder, "linear.path"))
    >>> bool((again.coef == path.coef).all())
    True
    """
    trajectory, chunks = path.trajectory, path.trajectory.chunks
    penalty, penalty_arrays = _pack_penalty(trajectory.penalty)
    header = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "written_by": f"bregpath {__version__}",
        "loss": _pack_loss(path.loss),
        "penalty": penalty,
        "result": path.result.name,
        "stats": {name: _plain(value) for name, value in asdict(path.stats).items()},
        "degree": int(trajectory.degree),
        "encoder": None if path.encoder is None else path.encoder.to_dict(),
        "layout": None,
    }
    unit_arrays = _pack_units(path.units, header)
    arrays: dict[str, Any] = {
        "header": np.array(json.dumps(header)),
        "t": path.t,
        "deviance": path.deviance,
        "null_deviance": np.float64(path.null_deviance),
        "kappa": np.float64(trajectory.kappa),
        **unit_arrays,
        "alpha_null": trajectory.alpha_null,
        "beta_null": trajectory.beta_null,
        "order": np.array(trajectory.order, dtype=np.int64),
        "events": np.array(trajectory.events, dtype=np.int64).reshape(-1, 4),
        "located": np.array(trajectory.located, dtype=float).reshape(-1, 3),
        # Chunks one after the other; each has its own number of knots and of columns.
        "chunk_shapes": np.array([c.z.shape[:2] for c in chunks], dtype=np.int64).reshape(-1, 2),
        **{f"chunk_{f.name}": _flat([getattr(c, f.name) for c in chunks]) for f in fields(Chunk)},
        **penalty_arrays,
    }
    # Through an open file, because np.savez would append ".npz" to the name. No array holds objects.
    with open(fspath(file), "wb") as stream:
        np.savez_compressed(stream, **arrays)


def load_path(file: str | PathLike[str]) -> Path:
    """Read a path that `Path.save` wrote.

    Everything that can be read from the path is there again, exactly: ``at(t)``, ``coef``, ``entry_times``,
    ``predict``, names and classes. Only ``extend`` is not, because it needs the data.

    Parameters
    ----------
    file : str or path-like

    Returns
    -------
    Path

    Examples
    --------
    >>> import bregpath, tempfile, os
    >>> data = bregpath.datasets.make_logistic(100, 5, 2, seed=0)
    >>> path = bregpath.trace_path(data.X, data.y, loss="logistic")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path.save(os.path.join(folder, "path.npz"))
    ...     again = bregpath.load_path(os.path.join(folder, "path.npz"))
    >>> again.support(again.t[-1]).tolist() == path.support(path.t[-1]).tolist()
    True
    """
    name = fspath(file)
    with open(name, "rb") as stream:
        try:
            with np.load(stream, allow_pickle=False) as saved:
                header = _read_header(saved, name)
                arrays = {key: saved[key] for key in saved.files if key != "header"}
        except _RefusedError as error:
            raise ValueError(str(error)) from None
        except _UNREADABLE as error:
            raise ValueError(_not_a_path(name)) from error
    return _assemble(header, arrays, name)


def _plain(value: Any) -> Any:
    """A NumPy scalar as Python's own, which JSON knows."""
    return value.item() if isinstance(value, np.generic) else value


class _RefusedError(Exception):
    """A file that was understood, but cannot be used; the text is for the user."""


def _not_a_path(name: str) -> str:
    return (
        f"`file` {name!r} is not a path saved by bregpath, or it is damaged (was it copied in full?); "
        "save the path again."
    )


def _read_header(saved: Any, name: str) -> dict[str, Any]:
    """The JSON part, checked to be of a format that this version reads."""
    if not hasattr(saved, "files") or "header" not in saved.files:
        raise _RefusedError(_not_a_path(name))
    header = json.loads(str(saved["header"]))
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise _RefusedError(_not_a_path(name))
    if header["version"] != FORMAT_VERSION:
        raise _RefusedError(
            f"`file` {name!r} has version {header['version']} of the path format; bregpath {__version__} "
            f"reads version {FORMAT_VERSION}. Load it with {header.get('written_by')}, which wrote it."
        )
    return header


def _assemble(header: dict[str, Any], arrays: dict[str, Array], name: str) -> Path:
    """The Path from what was in the file."""
    try:
        beta_null = arrays["beta_null"]
        trajectory = Trajectory(
            penalty=_unpack_penalty(header["penalty"], arrays),
            kappa=float(arrays["kappa"]),
            degree=header["degree"],
            alpha_null=arrays["alpha_null"],
            beta_null=beta_null,
            chunks=_unpack_chunks(arrays, len(arrays["alpha_null"]), beta_null.shape[1]),
            order=arrays["order"].tolist(),
            events=[(j, chunk, row, bool(enters)) for j, chunk, row, enters in arrays["events"].tolist()],
            located=[(int(j), t, bool(enters)) for j, t, enters in arrays["located"].tolist()],
            is_thinned=len(arrays["located"]) > 0,
        )
        encoder = header["encoder"]
        path_type, units = _unpack_units(header, arrays)
        return path_type(
            t=arrays["t"],
            deviance=arrays["deviance"],
            null_deviance=float(arrays["null_deviance"]),
            result=Result[header["result"]],
            stats=Stats(**header["stats"]),
            loss=_unpack_loss(header["loss"], len(arrays["alpha_null"])),
            units=units,
            trajectory=trajectory,
            encoder=None if encoder is None else ColumnEncoder.from_dict(encoder),
        )
    except _RefusedError as error:
        raise ValueError(f"`file` {name!r}: {error}") from None
    except _UNREADABLE as error:
        raise ValueError(_not_a_path(name)) from error


# --- chunks ------------------------------------------------------------------------------------------


def _flat(pieces: list[Array]) -> Array:
    return np.concatenate([piece.ravel() for piece in pieces]) if pieces else np.zeros(0)


def _unpack_chunks(arrays: dict[str, Array], n_alpha: int, n_outputs: int) -> list[Chunk]:
    """Cut the flat arrays into chunks again."""
    taken = {f.name: 0 for f in fields(Chunk)}
    chunks = []
    for knots, columns in arrays["chunk_shapes"].tolist():
        per_knot: dict[str, tuple[int, ...]] = {"t": (), "trust": (), "alpha": (n_alpha,), "alpha_slope": (n_alpha,)}
        per_knot |= {"z": (columns, n_outputs), "slope": (columns, n_outputs)}
        pieces = {}
        for name, shape in per_knot.items():
            start = taken[name]
            taken[name] = start + knots * int(np.prod(shape, dtype=int))
            pieces[name] = arrays[f"chunk_{name}"][start : taken[name]].reshape(knots, *shape)
        chunks.append(Chunk(**pieces))
    if any(taken[name] != arrays[f"chunk_{name}"].size for name in taken):
        raise ValueError("the arrays of the chunks do not have the length that their shapes say")
    return chunks


# --- units, or the layout of a graph -----------------------------------------------------------------


def _pack_units(units: Any, header: dict[str, Any]) -> dict[str, Any]:
    """Arrays of the units of a regression; what a graph has in their place goes into the header too."""
    if isinstance(units, Units):
        return {"center": units.center, "scale": units.scale, "y_unit": np.float64(units.y_unit)}
    header["layout"] = units.to_dict()
    if hasattr(units, "levels"):
        header["layout"]["levels"] = [_pack_labels(labels) for labels in units.levels]
        return {}
    return {"scale": units.scale, "mean": units.mean}


def _unpack_units(header: dict[str, Any], arrays: dict[str, Array]) -> tuple[type[Path], Any]:
    record = header.get("layout")
    if record is None:
        return Path, Units(arrays["center"], arrays["scale"], float(arrays["y_unit"]))
    from bregpath.graphs.layouts import LAYOUTS
    from bregpath.graphs.path import GraphPath

    options = {key: value for key, value in record.items() if key != "kind"}
    options["names"] = tuple(options["names"])
    if "levels" in options:
        options["levels"] = tuple(_unpack_labels(labels) for labels in options["levels"])
    else:
        options.update(scale=arrays["scale"], mean=arrays["mean"])
    return GraphPath, LAYOUTS[record["kind"]](**options)


# --- penalties ---------------------------------------------------------------------------------------

_PENALTIES: dict[str, type[AbstractPenalty]] = {"l1": L1Penalty, "group": GroupPenalty}


def _pack_penalty(penalty: AbstractPenalty) -> tuple[dict[str, Any], dict[str, Array]]:
    for kind, cls in _PENALTIES.items():
        if type(penalty) is cls:
            arrays = {"weights": penalty.weights, "lower": penalty.lower, "upper": penalty.upper}
            if isinstance(penalty, GroupPenalty):
                arrays["groups"] = np.asarray(penalty.groups, dtype=np.int64)
            return {"kind": kind}, arrays
    raise ValueError(
        f"`path` has a penalty of class {type(penalty).__name__}, only {sorted(_PENALTIES)} can be saved; "
        "keep path.coef, path.t and path.intercept instead."
    )


def _unpack_penalty(record: dict[str, Any], arrays: dict[str, Array]) -> AbstractPenalty:
    limits = arrays["weights"], arrays["lower"], arrays["upper"]
    if record["kind"] == "group":
        return GroupPenalty(*limits, groups=arrays["groups"].astype(np.intp))
    return _PENALTIES[record["kind"]](*limits)


# --- losses and class labels -------------------------------------------------------------------------


def _pack_loss(loss: AbstractLoss) -> dict[str, Any]:
    """A registered loss by its options, any other by the name of its class."""
    record = loss.to_dict()
    if type(loss) is not {**LOSSES, **GRAPH_LOSSES}.get(loss.name):
        class_name = record.get("class", type(loss).__name__)
        record = {"name": "user", "class": class_name, "is_classifier": bool(loss.is_classifier)}
    if loss.classes is not None:
        record["classes"] = _pack_labels(np.asarray(loss.classes))
    return record


def _unpack_loss(record: dict[str, Any], n_outputs: int) -> AbstractLoss:
    if record.get("classes") is not None:
        record = {**record, "classes": _unpack_labels(record["classes"])}
    if record["name"] == "user":
        return SavedUserLoss(
            record["class"],
            n_outputs=n_outputs,
            classes=record.get("classes"),
            is_classifier=record["is_classifier"],
        )
    if record["name"] not in {**LOSSES, **GRAPH_LOSSES}:
        raise _RefusedError(
            f"the path was traced with loss={record['name']!r}, which is not registered here; "
            "import the module that registers it, or use the bregpath that wrote the file."
        )
    return loss_from_dict(record)


def _pack_labels(labels: Array) -> dict[str, Any]:
    """Labels with their dtype: 1, 1.0, True and "1" stay different."""
    values = [_plain(label) for label in labels.tolist()]
    odd = [label for label in values if not isinstance(label, str | int | float | bool)]
    if odd:
        raise ValueError(
            f"`path` has class labels of type {type(odd[0]).__name__}, such as {odd[0]!r}, not for a file; "
            "trace the path on labels that are numbers or strings."
        )
    return {"values": values, "dtype": "T" if labels.dtype.kind == "T" else labels.dtype.str}


def _unpack_labels(record: dict[str, Any]) -> Array:
    return np.array(record["values"], dtype=np.dtype(record["dtype"]))
