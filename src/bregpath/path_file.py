"""Paths on disk: one ``.npz`` file of arrays and one JSON text; no pickle."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, fields
from os import PathLike
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from bregpath._archive import DamagedError, digest_of, read_members, require, write_whole
from bregpath._frames import ColumnEncoder
from bregpath._typing import Array
from bregpath._version import __version__
from bregpath.flow.mean import AVERAGES, MeanTrajectory
from bregpath.flow.reading import READINGS
from bregpath.flow.stop import Result
from bregpath.flow.trajectory import Chunk, Trajectory
from bregpath.losses import GRAPH_LOSSES, LOSSES, AbstractLoss, loss_from_dict
from bregpath.path import Path
from bregpath.path_file_checks import check_arrays, check_encoder, check_layout, check_path, check_sizes, check_stats
from bregpath.path_file_eras import era_arrays, pack_eras, unpack_eras
from bregpath.penalties import PENALTIES, AbstractPenalty
from bregpath.units import Units

if TYPE_CHECKING:
    from bregpath.graphs.layouts import AbstractLayout
    from bregpath.graphs.path import GraphPath

__all__ = ["FORMAT_VERSION", "SavedUserLoss", "load_path", "write_path"]

FORMAT = "bregpath path"
FORMAT_VERSION = 4  # 1 had neither a digest nor a shift of the intercepts, 2 no means over time, 3 no eras
READABLE = (1, 2, 3, 4)
MAX_LABEL_BYTES = 2**20


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


def write_path(path: Path, file: str | PathLike[str], layout: AbstractLayout | None = None) -> None:
    """Write a path to one file, exactly of the name given; ``layout`` tells what the coefficients of a graph are."""
    trajectory, chunks = path.trajectory.closed(), path.trajectory.chunks
    penalty, penalty_arrays = _pack_penalty(trajectory.penalty)
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "written_by": f"bregpath {__version__}",
        "loss": _pack_loss(path.loss),
        "penalty": penalty,
        "result": path.result.name,
        "stats": {name: _plain(value) for name, value in asdict(path.stats).items()},
        "degree": trajectory.reading.degree,
        "encoder": None if path.encoder is None else path.encoder.to_dict(),
        "layout": None if layout is None else _pack_layout(layout),
        "average": trajectory.average,
        "has_eras": len(trajectory.eras) > 0,
    }
    if layout is None:
        path._require_intercepts()
    arrays: dict[str, Any] = {
        "t": path.t,
        "deviance": path.deviance,
        "null_deviance": np.float64(path.null_deviance),
        "kappa": np.float64(trajectory.kappa),
        **(_pack_units(path) if layout is None else {name: getattr(layout, name) for name in layout.array_names}),
        "alpha_null": trajectory.alpha_null,
        "beta_null": trajectory.beta_null,
        "order": np.array(trajectory.order, dtype=np.int64),
        "events": np.array(trajectory.events, dtype=np.int64).reshape(-1, 4),
        "located": trajectory.located,
        # Chunks one after the other; each has its own number of knots and of columns.
        "chunk_shapes": np.array([c.z.shape[:2] for c in chunks], dtype=np.int64).reshape(-1, 2),
        **{f"chunk_{f.name}": _flat([getattr(c, f.name) for c in chunks]) for f in fields(Chunk)},
        **(pack_eras(trajectory) if trajectory.eras else {}),
        **penalty_arrays,
    }
    header["digest"] = digest_of(header, arrays)
    # No array holds objects.
    write_whole(file, lambda stream: np.savez_compressed(stream, header=np.array(json.dumps(header)), **arrays))


def load_path(file: str | PathLike[str]) -> Path | GraphPath:
    """Read a path that `Path.save` or `GraphPath.save` wrote.

    Everything that can be read from the path is there again, exactly: ``at(t)``, ``coef``, ``entry_times``,
    ``predict``, names and classes. Only ``extend`` is not, because it needs the data.

    Parameters
    ----------
    file : str or path-like

    Returns
    -------
    Path or GraphPath

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
    name = os.fsdecode(file)
    with open(name, "rb") as stream:
        try:
            return _read_path(stream)
        except _RefusedError as error:
            raise ValueError(f"`file` {name!r} {error}") from None
        except Exception as error:  # whatever reading a file that is damaged, or something else altogether, may raise
            found = str(error) if isinstance(error, DamagedError) else f"{type(error).__name__}: {error}"
            raise ValueError(
                f"`file` {name!r} is not a path saved by bregpath, or it is damaged (was it copied in full?); save the "
                f"path again. Found {found[:300]}"
            ) from error


class _RefusedError(Exception):
    """A file that was understood, but cannot be used; the text is for the user."""


def _read_path(stream: BinaryIO) -> Path | GraphPath:
    arrays = read_members(stream)
    require("header" in arrays and arrays["header"].dtype.kind == "U" and not arrays["header"].ndim, "no header")
    header = json.loads(str(arrays.pop("header")))
    require(isinstance(header, dict) and header.get("format") == FORMAT, "another format")
    version = header["version"]
    require(isinstance(version, int), f"version {version!r}")
    if version not in READABLE:
        raise _RefusedError(
            f"has version {version} of the path format; bregpath {__version__} reads versions {READABLE[0]} to "
            f"{READABLE[-1]}. Load it with {header.get('written_by')}, which wrote it."
        )
    if version == 1:  # the loss was not kept; where it falls that fast, slopes are trusted, as they were then
        arrays.setdefault("chunk_value", -1e200 * np.arange(len(arrays["chunk_t"])))
    layout, kind = None, None
    if header.get("layout") is not None:
        from bregpath.graphs.layouts import LAYOUTS

        kind = check_layout(header["layout"], LAYOUTS)
    check_arrays(arrays, _extra_arrays(header, kind), _era_arrays(header))
    if kind is not None:
        layout = _unpack_layout(kind, header["layout"], arrays)
        check_sizes(layout, arrays)
    path = _assemble(header, arrays, layout)
    check_path(path, layout)
    if version > 1 or "digest" in header:
        require(header["digest"] == digest_of(header, arrays), "contents that differ from what was saved")
    if layout is None:
        return path
    from bregpath.graphs.path import GraphPath

    return GraphPath(path, layout)


def _plain(value: Any) -> Any:
    """A NumPy scalar as Python's own, which JSON knows."""
    return value.item() if isinstance(value, np.generic) else value


def _extra_arrays(header: dict[str, Any], kind: type[AbstractLayout] | None) -> set[str]:
    """Arrays that only some files hold."""
    penalty = header["penalty"]["kind"]
    require(penalty in PENALTIES, f"a penalty {penalty!r}")
    extra = set(PENALTIES[penalty].array_names) - set(AbstractPenalty.array_names)
    if kind is not None:
        return extra | set(kind.array_names)
    return extra | {"center", "scale", "y_unit"} | ({"shift"} if header["version"] > 1 else set())


def _era_arrays(header: dict[str, Any]) -> dict[str, tuple[str, int]]:
    """Those of a record that has eras."""
    return era_arrays(header["average"] is not None) if header["version"] > 3 and header["has_eras"] is True else {}


def _assemble(header: dict[str, Any], arrays: dict[str, Array], layout: AbstractLayout | None) -> Path:
    """The Path from what was in the file."""
    n_alpha, q = len(arrays["alpha_null"]), arrays["beta_null"].shape[1]
    degree, result, encoder = header["degree"], header["result"], header["encoder"]
    require(degree in READINGS and isinstance(degree, int), f"`degree`={degree!r}")
    require(np.isinf(arrays["kappa"]) == (degree == 0), f"`kappa`={arrays['kappa']} with `degree`={degree}")
    require(result in Result.__members__, f"`result`={result!r}")
    require(((arrays["events"][:, 3] | 1) == 1).all() and np.isin(arrays["located"][:, 2], (0, 1)).all(), "odd events")
    if encoder is not None:
        check_encoder(encoder)
    trajectory = Trajectory(
        READINGS[degree](_unpack_penalty(PENALTIES[header["penalty"]["kind"]], arrays), float(arrays["kappa"])),
        alpha_null=arrays["alpha_null"],
        beta_null=arrays["beta_null"],
        chunks=_unpack_chunks(arrays, n_alpha, q),
        order=arrays["order"],
        events=[(j, chunk, row, bool(enters)) for j, chunk, row, enters in arrays["events"].tolist()],
        eras=unpack_eras(arrays, n_alpha, q, header["average"] is not None) if _era_arrays(header) else (),
        located=arrays["located"],
    )
    average = header["average"] if header["version"] > 2 else None
    if average is not None:
        # Of a record that was thinned, as they once were, no mean was saved.
        is_whole = bool(trajectory.eras) or not len(trajectory.located)
        require(isinstance(average, str) and average in AVERAGES and is_whole, "an unknown mean")
        ends = (arrays["ends_alpha"], arrays["ends_beta"]) if trajectory.eras else None
        trajectory = MeanTrajectory.of(trajectory, AVERAGES[average], ends)
    return Path(
        t=arrays["t"],
        _deviance=arrays["deviance"],
        null_deviance=float(arrays["null_deviance"]),
        result=Result[result],
        stats=check_stats(header["stats"]),
        loss=_unpack_loss(header["loss"], n_alpha, None if layout is None else layout.kind),
        units=Units.none(len(arrays["beta_null"])) if layout is not None else _unpack_units(arrays),
        trajectory=trajectory,
        encoder=None if encoder is None else ColumnEncoder.from_dict(encoder),
    )


# --- chunks ------------------------------------------------------------------------------------------


def _flat(pieces: list[Array]) -> Array:
    return np.concatenate([piece.ravel() for piece in pieces]) if pieces else np.zeros(0)


def _unpack_chunks(arrays: dict[str, Array], n_alpha: int, n_outputs: int) -> list[Chunk]:
    """Cut the flat arrays into chunks again."""
    taken = {f.name: 0 for f in fields(Chunk)}
    chunks = []
    for knots, columns in arrays["chunk_shapes"].tolist():
        per_knot: dict[str, tuple[int, ...]] = {"t": (), "value": (), "alpha": (n_alpha,), "alpha_slope": (n_alpha,)}
        per_knot |= {"z": (columns, n_outputs), "slope": (columns, n_outputs)}
        pieces = {}
        for name, shape in per_knot.items():
            start = taken[name]
            taken[name] = start + knots * int(np.prod(shape, dtype=int))
            pieces[name] = arrays[f"chunk_{name}"][start : taken[name]].reshape(knots, *shape)
        chunks.append(Chunk(**pieces))
    return chunks


# --- units, or the layout of a graph -----------------------------------------------------------------


def _pack_units(path: Path) -> dict[str, Any]:
    units, n_alpha = path.units, len(path.trajectory.alpha_null)
    shift = np.broadcast_to(np.asarray(units.shift, dtype=float), (n_alpha,))
    return {"center": units.center, "scale": units.scale, "y_unit": np.float64(units.y_unit), "shift": shift}


def _unpack_units(arrays: dict[str, Array]) -> Units:
    return Units(arrays["center"], arrays["scale"], float(arrays["y_unit"]), arrays.get("shift", 0.0))


def _pack_layout(layout: AbstractLayout) -> dict[str, Any]:
    record = layout.to_dict()
    if hasattr(layout, "levels"):
        record["levels"] = [_pack_labels(labels) for labels in layout.levels]
    return record


def _unpack_layout(kind: type[AbstractLayout], record: dict[str, Any], arrays: dict[str, Array]) -> AbstractLayout:
    parts: dict[str, Any] = {key: value for key, value in record.items() if key != "kind"}
    parts |= {"names": tuple(record["names"]), **{name: arrays[name] for name in kind.array_names}}
    if "levels" in record:
        parts["levels"] = tuple(_unpack_labels(labels) for labels in record["levels"])
    return kind(**parts)


# --- penalties ---------------------------------------------------------------------------------------


def _pack_penalty(penalty: AbstractPenalty) -> tuple[dict[str, Any], dict[str, Array]]:
    if PENALTIES.get(penalty.name) is not type(penalty):
        raise ValueError(
            f"`path` has a penalty of class {type(penalty).__name__}, only {sorted(PENALTIES)} can be saved; "
            "keep path.coef, path.t and path.intercept instead."
        )
    arrays = penalty.arrays()
    wide = {name: array.astype(np.int64) for name, array in arrays.items() if array.dtype.kind == "i"}
    return {"kind": penalty.name}, {**arrays, **wide}


def _unpack_penalty(cls: type[AbstractPenalty], arrays: dict[str, Array]) -> AbstractPenalty:
    own = {name: arrays[name] for name in cls.array_names}
    return cls(**{name: array.astype(np.intp) if array.dtype.kind == "i" else array for name, array in own.items()})


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


def _unpack_loss(record: dict[str, Any], n_outputs: int, layout: str | None) -> AbstractLoss:
    if record.get("classes") is not None:
        record = {**record, "classes": _unpack_labels(record["classes"])}
    if record["name"] == "user":
        require(isinstance(record["class"], str), "a loss without a name")
        return SavedUserLoss(
            record["class"],
            n_outputs=n_outputs,
            classes=record.get("classes"),
            is_classifier=bool(record["is_classifier"]),
        )
    if record["name"] not in {**LOSSES, **GRAPH_LOSSES}:
        raise _RefusedError(
            f"was traced with loss={record['name']!r}, which is not registered here; "
            "import the module that registers it, or use the bregpath that wrote the file."
        )
    fits = record["name"] in LOSSES if layout is None else record["name"].startswith(f"{layout}-")
    require(fits, f"a loss {record['name']!r} that is not for such a path")
    sizes = np.append(record.get("n_states", n_outputs), [])
    require((sizes >= 1).all() and sizes.sum() == n_outputs, "a loss of another size than the intercepts")
    loss = loss_from_dict(record)
    if loss.is_classifier and layout is None:
        require(loss.classes is not None and len(loss.classes) == max(2, n_outputs), "a loss with other classes")
    return loss


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
    values, dtype = record["values"], np.dtype(record["dtype"])
    require(isinstance(values, list) and all(isinstance(v, str | int | float) for v in values), "odd labels")
    require(dtype.kind in "biufUTO" and dtype.itemsize <= MAX_LABEL_BYTES, f"labels of dtype {dtype}")
    labels = np.array(values, dtype=dtype)
    same = [type(a) is type(b) and a == b for a, b in zip(labels.tolist(), values, strict=True)]
    require(all(same) and len(set(values)) == len(values), f"labels {values[:5]}")
    return labels
