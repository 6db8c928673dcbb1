"""Saved paths that were damaged: they load as they were, or not at all."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path as File
from tempfile import TemporaryDirectory

import numpy as np
from numpy.testing import assert_array_equal

import bregpath
from tests.fuzz.graphs import assert_clear
from tests.fuzz.paths import well_posed
from tests.fuzz.problems import stream
from tests.graphs.cases import CASES, path_of

Damage = Callable[[bytes, np.random.Generator], bytes]


def files(seed: int) -> str:
    """A file damaged at random is read as the path that was saved, or refused by a ValueError."""
    rng = stream(seed, 1)
    if rng.random() < 0.3:
        path: bregpath.Path = path_of(str(rng.choice(list(CASES))), n_times=5, t_ratio=3.0)
    else:
        problem = well_posed(seed)
        path = bregpath.trace_path(problem.X, problem.y, n_times=5, t_ratio=3.0, **problem.options)
    name = str(rng.choice(list(DAMAGES)))
    with TemporaryDirectory() as folder:
        file = File(folder) / "path.npz"
        path.save(file)
        file.write_bytes(DAMAGES[name](file.read_bytes(), rng))
        try:
            again = bregpath.load_path(file)
        except ValueError as error:
            assert_clear(error)
            return "refused"
    for what in ("t", "coef", "intercept", "deviance", "entry_times", "exit_times"):
        assert_array_equal(getattr(again, what), getattr(path, what), err_msg=f"{name}: {what}")
    return "read"


def _other_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    out = np.frombuffer(data, dtype=np.uint8).copy()
    places = rng.integers(len(out), size=rng.integers(1, 4))
    out[places] ^= rng.integers(1, 256, len(places)).astype(np.uint8)
    return out.tobytes()


def _cut(data: bytes, rng: np.random.Generator) -> bytes:
    begin, end = np.sort(rng.integers(len(data) + 1, size=2))
    return data[:begin] if rng.random() < 0.5 else data[:begin] + data[end:]


def _members(data: bytes, change: Callable[[dict[str, bytes]], None]) -> bytes:
    """The archive with its members changed, checksums and all."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def _member_lost(data: bytes, rng: np.random.Generator) -> bytes:
    def lose(members: dict[str, bytes]) -> None:
        del members[str(rng.choice(sorted(members)))]

    return _members(data, lose)


def _member_cut(data: bytes, rng: np.random.Generator) -> bytes:
    def cut(members: dict[str, bytes]) -> None:
        name = str(rng.choice(sorted(members)))
        members[name] = members[name][: rng.integers(len(members[name]))]

    return _members(data, cut)


def _member_of_other_shape(data: bytes, rng: np.random.Generator) -> bytes:
    def replace(members: dict[str, bytes]) -> None:
        name = str(rng.choice(sorted(members)))
        out = io.BytesIO()
        array = [np.zeros(0), np.zeros((2, 3, 4, 1, 5)), np.array("text"), np.array([1 + 2j]), np.full(3, np.nan)]
        np.save(out, array[rng.integers(len(array))])
        members[name] = out.getvalue()

    return _members(data, replace)


DAMAGES: dict[str, Damage] = {
    "other bytes": _other_bytes,
    "cut": _cut,
    "nothing": lambda data, rng: b"",
    "a member lost": _member_lost,
    "a member cut": _member_cut,
    "a member of another shape": _member_of_other_shape,
}
