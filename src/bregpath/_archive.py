"""Arrays in one ``.npz`` file: written all or not at all, read without trust in what it says."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import stat
import zipfile
from collections.abc import Callable
from os import PathLike
from typing import Any, BinaryIO

import numpy as np

from bregpath._typing import Array

__all__ = ["DamagedError", "digest_of", "read_members", "require", "write_whole"]

# The head of an array as NumPy writes it for the few kinds that are saved.
_HEAD = re.compile(rb"\{'descr': '([<>|][fiU]\d{1,9})', 'fortran_order': (True|False), 'shape': \(([\d, ]*)\), \} *\n")


class DamagedError(Exception):
    """What is wrong inside a file, in a few words."""


def require(holds: Any, problem: str) -> None:
    """Refuse a file in which something does not hold."""
    if not holds:
        raise DamagedError(problem)


def write_whole(file: str | PathLike[str], write: Callable[[BinaryIO], None]) -> None:
    """Write a file all or not at all: next to its place, and then into it."""
    target = os.path.realpath(os.fsdecode(file))
    mode = None
    if os.path.exists(target):
        status = os.stat(target)
        if not stat.S_ISREG(status.st_mode):  # a pipe or a device is written to, not replaced
            with open(target, "wb") as stream:
                return write(stream)
        mode = stat.S_IMODE(status.st_mode)
    draft = os.path.join(os.path.dirname(target), f".bregpath-{secrets.token_hex(8)}.tmp")
    try:
        with open(draft, "xb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        if mode is not None:
            os.chmod(draft, mode)
        os.replace(draft, target)
    except BaseException as error:
        if os.path.exists(draft):
            os.unlink(draft)
        if isinstance(error, OSError) and error.filename == draft:
            error.filename = os.fsdecode(file)  # the name the user knows
        raise


def digest_of(header: dict[str, Any], arrays: dict[str, Any]) -> str:
    """A fingerprint of all that is saved."""
    digest = hashlib.blake2b(digest_size=16)
    rest = {key: value for key, value in header.items() if key != "digest"}
    digest.update(json.dumps(rest, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        digest.update(f"{name} {array.dtype.kind} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).data)
    return digest.hexdigest()


def read_members(stream: BinaryIO) -> dict[str, Array]:
    """All arrays of the file; none is larger than the bytes that are there for it."""
    arrays = {}
    with zipfile.ZipFile(stream) as archive:
        for member in archive.infolist():
            known = member.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
            require(known and member.filename.endswith(".npy"), f"a member {member.filename!r}")
            name = member.filename.removesuffix(".npy")
            require(name not in arrays, f"`{name}` twice")
            arrays[name] = _read_array(archive.read(member), name)
    return arrays


def _read_array(data: bytes, name: str) -> Array:
    require(data[:8] == b"\x93NUMPY\x01\x00", f"`{name}` that is no array")
    start = 10 + int.from_bytes(data[8:10], "little")
    head = _HEAD.fullmatch(data[10:start])
    require(head is not None, f"`{name}` of unknown kind")
    assert head is not None
    dtype = np.dtype(head[1].decode())
    shape = tuple(int(length) for length in head[3].replace(b" ", b"").split(b",") if length)
    size = dtype.itemsize
    for length in shape:
        size *= length
    require(size == len(data) - start, f"`{name}` of shape {shape} in {len(data) - start} bytes")
    flat = np.frombuffer(data, dtype, offset=start)
    return flat.reshape(shape, order="F" if head[2] == b"True" else "C").astype(dtype.newbyteorder("="))
