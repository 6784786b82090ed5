"""Parameters as bytes, in upstream's format, so that files can be exchanged with it.

Little endian throughout::

    list    u64 0xF7E58D4F05049CB7 · u64 0 · u64 n · n × (u64 length · name) · u64 n · n × tensor
    tensor  u64 0xDD5E40F096B4A13F · u64 0 · i32 device type · i32 device id · i32 rank
            · u8 kind · u8 bits · u16 lanes · rank × i64 extent · i64 size · data

A reader checks every count and length against the bytes that remain before it uses or allocates anything.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ..support.errors import ArgumentError, ArtifactError
from ..support.files import atomic_write
from .dtype import DataType
from .ndarray import NDArray, empty, numpyasarray

LIST_MAGIC = 0xF7E58D4F05049CB7
ARRAY_MAGIC = 0xDD5E40F096B4A13F
_U64 = struct.Struct("<Q")
_ARRAY_HEAD = struct.Struct("<QQiiiBBH")
_MAX_RANK = 64


class _Reader:
    """A cursor over bytes that refuses to pass their end."""

    __slots__ = ("data", "at", "what")

    def __init__(self, data: "bytes | bytearray | memoryview", what: str) -> None:
        self.data = memoryview(data).cast("B")
        self.at = 0
        self.what = what

    def left(self) -> int:
        return len(self.data) - self.at

    def fail(self, why: str) -> ArtifactError:
        return ArtifactError(f"{self.what} is damaged at byte {self.at}: {why}")

    def take(self, count: int, what: str) -> memoryview:
        if count < 0 or count > self.left():
            raise self.fail(f"{what} needs {count} bytes, {self.left()} are left")
        block = self.data[self.at:self.at + count]
        self.at += count
        return block

    def unpack(self, form: struct.Struct, what: str) -> tuple:
        return form.unpack(self.take(form.size, what))

    def u64(self, what: str) -> int:
        return self.unpack(_U64, what)[0]


def _as_tensor(value: object) -> NDArray:
    if isinstance(value, NDArray):
        return value
    return numpyasarray(np.asarray(value))


def _array_parts(tensor: NDArray) -> list[bytes | memoryview]:
    kind, shape = tensor.data_type, tensor.shape
    head = _ARRAY_HEAD.pack(ARRAY_MAGIC, 0, 1, 0, len(shape), kind.type_code, kind.bits, kind.lanes)
    extents = struct.pack(f"<{len(shape)}q", *shape)
    data = np.ascontiguousarray(tensor.as_numpy_view())
    flat = data.reshape(-1).view(np.uint8)
    return [head, extents, struct.pack("<q", flat.nbytes), flat.data]


def save_ndarray(tensor: "NDArray | np.ndarray") -> bytes:
    """One tensor in upstream's binary format."""
    return b"".join(_array_parts(_as_tensor(tensor)))


def load_ndarray(data: "bytes | bytearray | memoryview") -> NDArray:
    """The tensor saved by `save_ndarray`; `ArtifactError` for damaged bytes."""
    reader = _Reader(data, "saved tensor")
    tensor = _read_array(reader)
    if reader.left():
        raise reader.fail(f"{reader.left()} bytes follow the tensor")
    return tensor


def _read_array(reader: _Reader) -> NDArray:
    magic, _, _, _, rank, code, bits, lanes = reader.unpack(_ARRAY_HEAD, "tensor header")
    if magic != ARRAY_MAGIC:
        raise reader.fail("a tensor should start here, its mark is missing")
    if not 0 <= rank <= _MAX_RANK:
        raise reader.fail(f"tensor rank {rank} is impossible")
    kind = _known_type(reader, code, bits, lanes)
    shape = struct.unpack(f"<{rank}q", reader.take(8 * rank, "shape"))
    (size,) = struct.unpack("<q", reader.take(8, "data size"))
    count = 1
    for extent in shape:
        if extent < 0:
            raise reader.fail(f"shape {shape} has a negative extent")
        count *= extent
    if size != count * kind.itemsize:
        raise reader.fail(f"{size} bytes of data for shape {shape} of {kind}, expected {count * kind.itemsize}")
    block = reader.take(size, "tensor data")
    tensor = empty(shape, kind)
    tensor.as_numpy_view().reshape(-1).view(np.uint8)[:] = np.frombuffer(block, np.uint8)
    return tensor


def _known_type(reader: _Reader, code: int, bits: int, lanes: int) -> DataType:
    if lanes >= 1:
        kind = DataType.of(code, bits, lanes)
        try:
            if DataType(str(kind)) == kind and kind.numpy_dtype is not None:
                return kind
        except ArgumentError:
            pass
    raise reader.fail(f"unknown element type (kind {code}, {bits} bits, {lanes} lanes)")


def _list_parts(params: Mapping[str, object]) -> list[bytes | memoryview]:
    parts: list[bytes | memoryview] = [_U64.pack(LIST_MAGIC), _U64.pack(0), _U64.pack(len(params))]
    for name in params:
        raw = str(name).encode()
        parts += [_U64.pack(len(raw)), raw]
    parts.append(_U64.pack(len(params)))
    for value in params.values():
        parts += _array_parts(_as_tensor(value))
    return parts


def save_param_dict(params: Mapping[str, object]) -> bytearray:
    """Parameters (name → tensor or numpy array) as bytes in upstream's format."""
    return bytearray(b"".join(_list_parts(params)))


def load_param_dict(param_bytes: "bytes | bytearray | memoryview") -> dict[str, NDArray]:
    """The parameters saved by `save_param_dict` or by upstream, as new aligned tensors.

    Raises `ArtifactError` saying what is wrong, and at which byte, for truncated or altered data.
    """
    reader = _Reader(param_bytes, "parameter data")
    if reader.u64("header") != LIST_MAGIC:
        reader.at = 0
        raise reader.fail("this is not a parameter file, its mark is missing")
    reader.u64("header")
    names = _read_names(reader)
    count = reader.u64("tensor count")
    if count != len(names):
        raise reader.fail(f"{len(names)} names but {count} tensors")
    return {name: _read_array(reader) for name in names}


def _read_names(reader: _Reader) -> list[str]:
    count = reader.u64("name count")
    if count > reader.left() // 8:
        raise reader.fail(f"{count} names cannot fit in {reader.left()} bytes")
    names = []
    for _ in range(count):
        raw = reader.take(reader.u64("name length"), "name")
        try:
            names.append(bytes(raw).decode())
        except UnicodeDecodeError:
            raise reader.fail("a name is not UTF-8 text") from None
    return names


def save_param_dict_to_file(params: Mapping[str, object], path: "str | os.PathLike[str]") -> None:
    """Write parameters to ``path``, whole or not at all, without joining them in memory first."""
    atomic_write(path, _list_parts(params))


def load_param_dict_from_file(path: "str | os.PathLike[str]") -> dict[str, NDArray]:
    """Read parameters from ``path``."""
    try:
        data = Path(path).read_bytes()
    except OSError as err:
        raise ArtifactError(f"cannot read parameters from {path}: {err.strerror or err}") from err
    return load_param_dict(data)
