"""Reading a model file without holding its weights twice.

A protobuf parser copies every byte it reads.  So the file is scanned first: the bytes of large initializers are left
where they are (only their place is noted) and the rest, which is small, is parsed.  Each weight is later read from the
file straight into the memory it will be used from.
"""
from __future__ import annotations

import mmap
import os
from typing import Any, Iterator, NamedTuple

from ....support.errors import ArgumentError, ParseError, TypeMismatchError

_LARGE = 1024  # bytes: initializers from this size stay in the file
_GRAPH, _INITIALIZER, _RAW = 7, 5, 9  # field numbers of ModelProto.graph, GraphProto.initializer, TensorProto.raw_data


class Model(NamedTuple):
    """A parsed model, where its file lies, and the places of the initializers left in it (by their index)."""

    proto: Any
    base: str | None
    path: str | None
    places: dict[int, tuple[int, int]]


class _Field(NamedTuple):
    number: int
    start: int  # of the whole field
    data: int  # of its value
    end: int
    is_bytes: bool


def open_model(model: Any) -> Model:
    """A model from a path, bytes or a ModelProto; ParseError when it is not a whole ONNX model."""
    if isinstance(model, (str, os.PathLike)):
        found = _open_file(os.fspath(model))
    elif isinstance(model, (bytes, bytearray)):
        found = Model(_parse(bytes(model), "the model"), None, None, {})
    elif hasattr(model, "graph") and hasattr(model, "opset_import"):
        found = Model(model, None, None, {})
    else:
        raise TypeMismatchError(f"from_onnx expects a path, the bytes of a model or an onnx.ModelProto, got {type(model).__name__}")
    _check(found)
    return found


def _check(model: Model) -> None:
    where = f"{model.path}: " if model.path else ""
    proto = model.proto
    if not proto.HasField("graph") or not (proto.graph.node or proto.graph.output):
        raise ParseError(f"{where}this is not an ONNX model, or an empty one: it has no graph")


def _open_file(path: str) -> Model:
    if not os.path.isfile(path):
        raise ArgumentError(f"there is no model file {path!r}")
    base = os.path.dirname(os.path.abspath(path))
    if path.endswith((".json", ".textproto", ".prototxt", ".pbtxt", ".onnxtxt", ".onnxjson")):
        return Model(_load_text(path), base, path, {})
    if os.path.getsize(path) == 0:
        raise ParseError(f"{path} is empty: it is not an ONNX model; export or download it again")
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        small, places = _strip(data, path)
    return Model(_parse(small, path), base, path, places)


def _load_text(path: str) -> Any:
    import onnx

    try:
        return onnx.load(path, load_external_data=False)
    except Exception as exc:  # whatever the text parser of protobuf raises
        raise ParseError(f"{path} is not an ONNX model in text form: {exc}") from None


def _parse(data: bytes, path: str) -> Any:
    import onnx
    from google.protobuf.message import DecodeError

    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except (DecodeError, RuntimeError, ValueError) as exc:
        raise ParseError(f"{path} is not an ONNX model, or it is damaged or cut short ({exc}); export or download it again") from None
    return proto


# ---- scanning ----------------------------------------------------------------------------------------------------------

def _varint(data: Any, at: int, end: int, path: str) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ParseError(f"{path} is not an ONNX model, or it is damaged or cut short (at byte {at}); export or download it again")


def _fields(data: Any, at: int, end: int, path: str) -> Iterator[_Field]:
    while at < end:
        start = at
        key, at = _varint(data, at, end, path)
        wire, size = key & 7, {1: 8, 5: 4}.get(key & 7)
        if wire == 0:
            _, after = _varint(data, at, end, path)
        elif wire == 2:
            length, at = _varint(data, at, end, path)
            after = at + length
        elif size is not None:
            after = at + size
        else:
            raise ParseError(f"{path} is not an ONNX model, or it is damaged (at byte {start}); export or download it again")
        if after > end:
            raise ParseError(f"{path} is cut short: {after - end} bytes are missing after byte {end}; export or download it again")
        yield _Field(key >> 3, start, at, after, wire == 2)
        at = after


def _encode(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _wrapped(number: int, parts: list[bytes]) -> list[bytes]:
    return [_encode(number << 3 | 2) + _encode(sum(map(len, parts))), *parts]


def _strip(data: Any, path: str) -> tuple[bytes, dict[int, tuple[int, int]]]:
    """The file without the bytes of large initializers, and (offset, length) of those by initializer."""
    out: list[bytes] = []
    places: dict[int, tuple[int, int]] = {}
    for field in _fields(data, 0, len(data), path):
        if field.number == _GRAPH and field.is_bytes:
            out += _wrapped(_GRAPH, _strip_graph(data, field, path, places))
        else:
            out.append(data[field.start:field.end])
    return b"".join(out), places


def _strip_graph(data: Any, graph: _Field, path: str, places: dict[int, tuple[int, int]]) -> list[bytes]:
    out: list[bytes] = []
    count = len(places)
    for field in _fields(data, graph.data, graph.end, path):
        if field.number == _INITIALIZER and field.is_bytes:
            parts = _strip_tensor(data, field, path, places, count)
            out += _wrapped(_INITIALIZER, parts) if parts else [data[field.start:field.end]]
            count += 1
        else:
            out.append(data[field.start:field.end])
    return out


def _strip_tensor(data: Any, tensor: _Field, path: str, places: dict[int, tuple[int, int]], index: int) -> list[bytes] | None:
    if tensor.end - tensor.data < _LARGE:
        return None
    fields = list(_fields(data, tensor.data, tensor.end, path))
    raw = [f for f in fields if f.number == _RAW and f.is_bytes and f.end - f.data >= _LARGE]
    if len(raw) != 1:
        return None
    places[index] = (raw[0].data, raw[0].end - raw[0].data)
    return [data[f.start:f.end] for f in fields if f is not raw[0]]
