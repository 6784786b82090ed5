"""The exported file: one archive with a manifest, code, graph and tensors, and nothing that runs when it is read.

It is a zip archive that any tool can open, with members stored, not compressed, each beginning on a 64-byte border so
that tensors are used straight from the mapped file.  Its bytes depend only on its content.  The archive may follow
other bytes (a linked shared library), as zip allows.

``manifest.json`` is the first member::

    {"format": "anchorleg", "version": 1, "kind": "graph", …, "members": {"graph.json": {"size": 123, "sha256": "…"}}}

A reader checks names, sizes, places, the manifest and what comes before the archive when it opens the file, and each
member's checksum when it is first used: a flipped bit anywhere is found before it is run.
"""

from __future__ import annotations

import hashlib
import io
import json
import mmap
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ..support.errors import ArgumentError, ArtifactError
from ..support.files import atomic_write_with, safe_member
from .dtype import DataType
from .ndarray import NDArray, array, empty

FORMAT = "anchorleg"
VERSION = 1
MANIFEST = "manifest.json"
_ALIGN = 64
_EPOCH = (1980, 1, 1, 0, 0, 0)
_LOCAL_HEADER = 30
_ZIP64_FROM = 0x7FFFFFFF
_END_SEARCH = 65557
Block = "bytes | bytearray | memoryview"


def write_artifact(
    path: "str | os.PathLike[str]", members: Mapping[str, "bytes | bytearray | memoryview"], manifest: Mapping,
    prefix: bytes = b"",
) -> None:
    """Write an archive, whole or not at all.

    Parameters
    ----------
    members : name → content, in the order wanted.
    manifest : JSON-able facts; ``format``, ``version`` and ``members`` are added.
    prefix : bytes that come before the archive, such as a shared library.

    Raises `ArtifactError` when the disk is full or the folder cannot be written; nothing is left behind then.
    """
    for name in members:
        safe_member(name)
    if MANIFEST in members:
        raise ArgumentError(f"{MANIFEST} is made by write_artifact; give its content as manifest")
    facts = {name: {"size": _size(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in members.items()}
    head = {"format": FORMAT, "version": VERSION, **manifest, "members": facts}
    if prefix:
        head["prefix"] = {"size": len(prefix), "sha256": hashlib.sha256(prefix).hexdigest()}
    text = json.dumps(head, indent=1, sort_keys=True).encode()
    try:
        atomic_write_with(path, lambda stream: _write_zip(stream, {MANIFEST: text, **members}, prefix))
    except OSError as err:
        raise ArtifactError(f"cannot write {os.fspath(path)}: {err.strerror or err}; nothing was left behind") from err


def _size(data: "bytes | bytearray | memoryview") -> int:
    return memoryview(data).nbytes


def _write_zip(stream: BinaryIO, members: Mapping[str, "bytes | bytearray | memoryview"], prefix: bytes) -> None:
    stream.write(prefix)
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name, _EPOCH)
            info.create_system = 3
            info.external_attr = 0o644 << 16
            info.file_size = _size(data)
            big = info.file_size > _ZIP64_FROM
            info.extra = _padding(stream.tell(), len(name.encode()), 20 if big else 0)
            with archive.open(info, "w", force_zip64=big) as member:
                member.write(data)


def _padding(at: int, name_length: int, more: int) -> bytes:
    """An extra field (of an id readers skip) that moves the data to a border."""
    start = at + _LOCAL_HEADER + name_length + more + 4
    fill = -start % _ALIGN
    return struct.pack("<HH", 0xD935, fill) + bytes(fill)


class Members(Mapping[str, memoryview]):
    """An archive's members by name, as views of the mapped file; checked against their checksums at first use."""

    def __init__(self, path: Path, data: memoryview, places: dict[str, tuple[int, int]], facts: Mapping) -> None:
        self._path = path
        self._data = data
        self._places = places
        self._facts = facts
        self._checked: set[str] = set()

    def __getitem__(self, name: str) -> memoryview:
        if name not in self._places:
            raise ArtifactError(f"{self._path} has no member {name!r}")
        start, size = self._places[name]
        view = self._data[start:start + size]
        if name not in self._checked:
            if hashlib.sha256(view).hexdigest() != self._facts[name]["sha256"]:
                raise ArtifactError(f"{self._path}: member {name!r} was altered or damaged; export the model again")
            self._checked.add(name)
        return view

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def has_artifact(path: "str | os.PathLike[str]") -> bool:
    """Whether the file ends like an archive."""
    try:
        with open(path, "rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - _END_SEARCH))
            return b"PK\x05\x06" in stream.read()
    except OSError:
        return False


def read_artifact(path: "str | os.PathLike[str]") -> tuple[dict, Members]:
    """The manifest and the members of an archive.

    Raises `ArtifactError` for a missing, truncated, altered or other-version file.
    """
    file = Path(path)
    data = _map(file)
    try:
        places = _places(data)
        if MANIFEST not in places:
            raise ArtifactError(f"{file} is an archive, but none that this package wrote")
        manifest = json.loads(bytes(_slice(data, places.pop(MANIFEST))))
        facts = manifest["members"]
        kind, version = manifest.get("format"), manifest.get("version")
        sizes = {name: int(fact["size"]) for name, fact in facts.items()}
        sums = all(isinstance(fact["sha256"], str) for fact in facts.values())
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, AttributeError, struct.error, OSError, EOFError,
            NotImplementedError, RecursionError) as err:
        raise ArtifactError(f"{file} is damaged or truncated ({type(err).__name__}: {err}); export the model again") from err
    if kind != FORMAT:
        raise ArtifactError(f"{file} is an archive, but none that this package wrote")
    if version != VERSION:
        raise ArtifactError(f"{file} has format version {version!r}, this version of the package reads {VERSION}; export it again")
    if not sums or {name: size for name, (_, size) in places.items()} != sizes:
        raise ArtifactError(f"{file} is damaged: its members are not those its manifest lists; export the model again")
    if not _prefix_is_whole(manifest, data):
        raise ArtifactError(f"{file} is damaged: its code was altered; export the model again")
    return manifest, Members(file, data, places, facts)


def _prefix_is_whole(manifest: Mapping, data: memoryview) -> bool:
    """Whether the bytes before the archive, a library that the system would run as it is, are those written."""
    wanted = manifest.get("prefix")
    if not isinstance(wanted, Mapping):
        return not manifest.get("shared")
    size = wanted.get("size")
    return isinstance(size, int) and hashlib.sha256(data[:size]).hexdigest() == wanted.get("sha256")


def _map(file: Path) -> memoryview:
    """The file, mapped so that pages are shared until written to."""
    try:
        with open(file, "rb") as stream:
            if os.fstat(stream.fileno()).st_size == 0:
                raise ArtifactError(f"{file} is empty; export the model again")
            return memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY))
    except OSError as err:
        raise ArtifactError(f"cannot read {file}: {err.strerror or err}") from err


def _slice(data: memoryview, place: tuple[int, int]) -> memoryview:
    return data[place[0]:place[0] + place[1]]


class _View(io.RawIOBase):
    """A seekable stream over a memoryview, so that reading the directory copies no member."""

    def __init__(self, data: memoryview) -> None:
        self._data, self._at = data, 0

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = max(0, (0, self._at, len(self._data))[whence] + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:  # noqa: ANN001
        block = self._data[self._at:self._at + len(buffer)]
        buffer[:len(block)] = block
        self._at += len(block)
        return len(block)


def _places(data: memoryview) -> dict[str, tuple[int, int]]:
    """Name → (start, size) of each member, every number checked."""
    places: dict[str, tuple[int, int]] = {}
    with zipfile.ZipFile(io.BufferedReader(_View(data))) as archive:
        for info in archive.infolist():
            safe_member(info.filename)
            if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1 or info.filename in places:
                raise zipfile.BadZipFile(f"member {info.filename!r} is compressed, encrypted or there twice")
            at = info.header_offset
            if at < 0 or bytes(data[at:at + 4]) != b"PK\x03\x04":
                raise zipfile.BadZipFile(f"member {info.filename!r} does not begin where it should")
            name_length, extra_length = struct.unpack_from("<HH", data, at + 26)
            start = at + _LOCAL_HEADER + name_length + extra_length
            if info.file_size != info.compress_size or start + info.file_size > len(data):
                raise zipfile.BadZipFile(f"member {info.filename!r} reaches beyond the file's end")
            places[info.filename] = (start, info.file_size)
            if info.filename == MANIFEST and zlib.crc32(_slice(data, places[MANIFEST])) != info.CRC:
                raise zipfile.BadZipFile("the manifest was altered")
    return places


# -- tensors ------------------------------------------------------------------------------------------


def pack_tensors(tensors: Mapping[str, object], folder: str = "params") -> tuple[list[dict], dict[str, memoryview]]:
    """Tensors as members: the manifest's list (name, dtype, shape, member) and the members, without copying aligned ones."""
    index, members = [], {}
    for number, (name, value) in enumerate(tensors.items()):
        tensor = value if isinstance(value, NDArray) else array(value)
        member = f"{folder}/{number:05d}.bin"
        storage = np.ascontiguousarray(tensor.as_numpy_view())
        members[member] = storage.reshape(-1).view(np.uint8).data
        index.append({"name": name, "dtype": tensor.dtype, "shape": list(tensor.shape), "member": member})
    return index, members


def unpack_tensors(index: object, members: Mapping[str, memoryview]) -> dict[str, NDArray]:
    """The tensors that `pack_tensors` listed, over the mapped file where it is aligned."""
    try:
        return {str(entry["name"]): _tensor(entry, members) for entry in index}  # type: ignore[attr-defined]
    except (KeyError, TypeError, ValueError) as err:
        if isinstance(err, ArtifactError):
            raise
        raise ArtifactError(f"the list of tensors is malformed ({type(err).__name__}: {err})") from err


def _tensor(entry: Mapping, members: Mapping[str, memoryview]) -> NDArray:
    kind, shape = DataType(entry["dtype"]), tuple(int(extent) for extent in entry["shape"])
    data = members[entry["member"]]
    count = kind.itemsize
    for extent in shape:
        count *= extent
    if min(shape, default=0) < 0 or count != data.nbytes:
        raise ArtifactError(f"tensor {entry['name']!r}: {data.nbytes} bytes do not make {kind} of shape {shape}")
    flat = np.frombuffer(data, np.uint8)
    if flat.ctypes.data % _ALIGN:
        copy = empty((count,), "uint8")
        copy.as_numpy_view()[:] = flat
        flat = copy.as_numpy_view()
    full = (*shape, kind.lanes) if kind.lanes > 1 else shape
    return NDArray(flat.view(kind.numpy_dtype).reshape(full), kind)
