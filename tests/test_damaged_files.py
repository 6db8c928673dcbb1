"""Saved paths that something happened to: either they are refused, with a reason, or they are what was saved."""

from __future__ import annotations

import json
import os
import pathlib
import re
import stat
import threading
import warnings
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import bregpath
from bregpath import _archive, load_path
from tests.saved_paths import NAMES, assert_same, read, trace, write

SAVED = pathlib.Path(__file__).parent / "saved"


@pytest.fixture(scope="module", name="paths")
def trace_all() -> dict[str, bregpath.Path]:
    return {name: trace(name) for name in NAMES}


def assert_refused_or_same(file: pathlib.Path, path: bregpath.Path) -> bool:
    """Whether it was refused."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            again = load_path(file)
    except ValueError as error:
        assert repr(str(file)) in str(error)
        assert re.search(r"damaged .* Found .+|version -?\d+ of the path format|not registered here", str(error), re.S)
        return True
    assert_same(again, path)
    return False


# --- files of all versions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["regression", "graph"])
def test_a_file_of_version_1(name: str) -> None:
    path, expected = load_path(SAVED / f"{name}_v1.npz"), json.loads((SAVED / "expected_v1.json").read_text())[name]
    for key in ("t", "coef", "intercept", "deviance"):
        assert_allclose(getattr(path, key), expected[key], rtol=1e-12, atol=1e-15, err_msg=key)
    entry = np.array(expected["entry_times"], dtype=float)
    assert_allclose(np.atleast_2d(path.entry_times), np.where(np.isnan(entry), np.inf, entry), rtol=1e-12)
    assert_allclose(path.at(expected["middle"]).coef, expected["coef_middle"], rtol=1e-12, atol=1e-15)
    assert path.result.name == expected["result"] and path.kappa == expected["kappa"]
    assert path.feature_names == expected["feature_names"]
    assert path.classes is None if name == "graph" else path.classes.tolist() == expected["classes"]


@pytest.mark.parametrize("name", ["regression", "graph"])
def test_a_file_of_version_1_saved_again(name: str, tmp_path: pathlib.Path) -> None:
    path = load_path(SAVED / f"{name}_v1.npz")
    path.save(tmp_path / "again.npz")
    assert_same(load_path(tmp_path / "again.npz"), path)


@pytest.mark.parametrize("name", NAMES)
def test_round_trip(name: str, paths: dict[str, bregpath.Path], tmp_path: pathlib.Path) -> None:
    paths[name].save(tmp_path / "path.npz")
    assert_same(load_path(tmp_path / "path.npz"), paths[name])
    longer = paths[name].extend(1.5 * paths[name].t[-1])
    longer.save(tmp_path / "path.npz")
    assert_same(load_path(tmp_path / "path.npz"), longer)


# --- random damage -----------------------------------------------------------------------------------------------


def flip_bytes(file: pathlib.Path, rng: np.random.Generator) -> None:
    data = bytearray(file.read_bytes())
    for i in rng.integers(len(data), size=rng.integers(1, 4)):
        data[i] ^= 1 << int(rng.integers(8))
    file.write_bytes(data)


def truncate(file: pathlib.Path, rng: np.random.Generator) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: rng.integers(len(data))])


def replace_bytes(file: pathlib.Path, rng: np.random.Generator) -> None:
    data = bytearray(file.read_bytes())
    start, length = rng.integers(len(data)), rng.integers(1, 60)
    data[start : start + length] = rng.bytes(length)
    file.write_bytes(data)


def change_member(file: pathlib.Path, rng: np.random.Generator) -> None:
    """A member of a sound archive with other bytes: its checksum holds."""
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name, other = rng.choice(list(members), 2)
    data = bytearray(members[name])
    match rng.integers(4):
        case 0:
            data = bytearray(members[other])
        case 1:
            data = data[: rng.integers(len(data))]
        case 2:
            data[rng.integers(len(data))] = rng.integers(256)
        case _:  # its head
            data[rng.integers(min(len(data), 100))] = rng.integers(256)
    members[name] = bytes(data)
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def numbers_in(part: Any) -> list[tuple[Any, Any]]:
    """Where the numbers of a JSON text are."""
    items = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    found = []
    for key, value in items:
        found += [(part, key)] if isinstance(value, int | float) else numbers_in(value)
    return found


def change_number(file: pathlib.Path, rng: np.random.Generator) -> None:
    arrays, header = read(file)
    part, key = numbers_in(header)[rng.integers(len(numbers_in(header)))]
    others = [part[key] + 1, -1, 0, 2**70, 0.5, float("nan"), float("inf"), None, "1", [], {"a": 1}]
    part[key] = others[rng.integers(len(others))]
    write(file, arrays, header)


def change_array(file: pathlib.Path, rng: np.random.Generator) -> None:
    arrays, header = read(file)
    name = rng.choice(list(arrays))
    array = arrays[name]
    others: list[Callable[[], Any]] = [
        lambda: array[..., None],
        lambda: array.ravel()[:-1],
        lambda: np.append(array, array),
        lambda: array.astype(np.float32),
        lambda: array.astype("U8"),
        lambda: -array,
        lambda: array + 1,
        lambda: array[::-1] if array.ndim else array,
        lambda: array.T,
        lambda: np.where(np.arange(array.size).reshape(array.shape) == 0, np.nan, array),
        lambda: np.zeros(0),
    ]
    arrays[name] = others[rng.integers(len(others))]()
    write(file, arrays, header)


DAMAGES = [flip_bytes, truncate, replace_bytes, change_member, change_number, change_array]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", NAMES)
def test_random_damage(
    name: str, damage: Callable[..., None], paths: dict[str, bregpath.Path], tmp_path: pathlib.Path
) -> None:
    rng, file = np.random.default_rng([NAMES.index(name), DAMAGES.index(damage)]), tmp_path / "path.npz"
    paths[name].save(file)
    whole, refused = file.read_bytes(), 0
    for _ in range(60):
        file.write_bytes(whole)
        damage(file, rng)
        refused += assert_refused_or_same(file, paths[name])
    assert refused > 10


@pytest.mark.parametrize("damage", [flip_bytes, truncate, replace_bytes])
def test_random_damage_of_version_1(damage: Callable[..., None], tmp_path: pathlib.Path) -> None:
    """Without a digest the archive's own checksums still see bytes that changed."""
    rng, file = np.random.default_rng(DAMAGES.index(damage)), tmp_path / "path.npz"
    for name in ("regression", "graph"):
        whole, path = (SAVED / f"{name}_v1.npz").read_bytes(), load_path(SAVED / f"{name}_v1.npz")
        for _ in range(60):
            file.write_bytes(whole)
            damage(file, rng)
            assert_refused_or_same(file, path)


def test_claims_take_no_room(paths: dict[str, bregpath.Path], tmp_path: pathlib.Path) -> None:
    file = tmp_path / "path.npz"
    paths["plain"].save(file)
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    shape = re.search(rb"'shape': \((\d+),\)", members["t.npy"])
    assert shape
    claim = b"'shape': (%d,)" % 10**13
    end = 10 + int.from_bytes(members["t.npy"][8:10], "little")
    start = members["t.npy"][10:end].replace(shape[0], claim).rstrip() + b" "
    members["t.npy"] = members["t.npy"][:10] + start.ljust(end - 11) + b"\n" + members["t.npy"][end:]
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    with pytest.raises(ValueError, match=r"`t` of shape \(10000000000000,\) in \d+ bytes"):
        load_path(file)


def test_json_without_end(paths: dict[str, bregpath.Path], tmp_path: pathlib.Path) -> None:
    file = tmp_path / "path.npz"
    paths["plain"].save(file)
    arrays, _ = read(file)
    np.savez(file, header=np.array("[" * 100_000), **arrays)
    with pytest.raises(ValueError, match=r"damaged .* Found RecursionError"):
        load_path(file)


# --- saving all or nothing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_save_that_fails_keeps_the_old_file(
    error: BaseException, paths: dict[str, bregpath.Path], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "path.npz"
    paths["plain"].save(file)

    def half(stream: Any, **arrays: Any) -> None:
        stream.write(b"PK half of it")
        raise error

    monkeypatch.setattr(np, "savez_compressed", half)
    for target in (file, tmp_path / "new.npz"):
        with pytest.raises(type(error)):
            paths["classes"].save(target)
    monkeypatch.undo()
    assert [f.name for f in tmp_path.iterdir()] == ["path.npz"]
    assert_same(load_path(file), paths["plain"])


def test_two_writers_and_a_reader(paths: dict[str, bregpath.Path], tmp_path: pathlib.Path) -> None:
    file, failures = tmp_path / "path.npz", []
    paths["plain"].save(file)

    def work(name: str) -> None:
        for _ in range(25):
            try:
                paths[name].save(file)
            except Exception as error:
                failures.append(error)

    writers = [threading.Thread(target=work, args=(name,)) for name in ("plain", "ising")]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert type(load_path(file)) in (type(paths["plain"]), type(paths["ising"]))
    assert not failures
    assert [f.name for f in tmp_path.iterdir()] == ["path.npz"]


@pytest.mark.skipif(os.name != "posix", reason="permissions and links as on POSIX")
def test_permissions_and_links_are_kept(paths: dict[str, bregpath.Path], tmp_path: pathlib.Path) -> None:
    new, kept, link = (tmp_path / name for name in ("new.npz", "kept.npz", "link.npz"))
    plain = tmp_path / "plain"
    plain.touch()
    paths["plain"].save(new)
    assert stat.S_IMODE(new.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    kept.touch()
    kept.chmod(0o640)
    link.symlink_to(kept)
    paths["plain"].save(link)
    assert link.is_symlink() and stat.S_IMODE(kept.stat().st_mode) == 0o640
    assert_same(load_path(kept), paths["plain"])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_written_to(tmp_path: pathlib.Path) -> None:
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    _archive.write_whole(pipe, lambda stream: stream.write(b"abc"))
    reader.join()
    assert got == [b"abc"] and stat.S_ISFIFO(pipe.stat().st_mode)


def test_names_of_bytes(paths: dict[str, bregpath.Path], tmp_path: pathlib.Path) -> None:
    name = os.fsencode(tmp_path / "path")
    paths["plain"].save(name)
    assert_same(load_path(name), paths["plain"])


def test_no_folder(paths: dict[str, bregpath.Path], tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere.path\.npz"):
        paths["plain"].save(tmp_path / "nowhere" / "path.npz")
    with pytest.raises(IsADirectoryError):
        paths["plain"].save(tmp_path)
