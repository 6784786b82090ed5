"""ONNX tensors, element types and attributes as numpy arrays, Relay dtypes and Python values."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....runtime import ndarray
from ....runtime.dtype import dtype_name
from ....support.errors import ArgumentError, ParseError, UnsupportedOpError

_STRING = 8


def numpy_dtype_of(code: int, what: str) -> np.dtype:
    """The numpy dtype of an ONNX element type."""
    import onnx

    if code == _STRING:
        raise UnsupportedOpError(f"{what} holds strings: only numbers and bools can be compiled")
    try:
        return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(code))
    except (KeyError, ValueError):
        raise ParseError(f"{what} has element type {code}, which ONNX does not define") from None


def relay_dtype(code: int, what: str) -> str:
    """The Relay dtype of an ONNX element type."""
    return dtype_name(numpy_dtype_of(code, what))


def tensor_value(proto: Any, base: str | None) -> ndarray.NDArray:
    """The value of a TensorProto in aligned memory.  ``base`` is the folder that external data lies in."""
    name = f"tensor {proto.name!r}" if proto.name else "a tensor"
    dtype, shape = numpy_dtype_of(proto.data_type, name), tuple(proto.dims)
    if any(d < 0 for d in shape):
        raise ParseError(f"{name} has the shape {shape}: sizes must not be negative")
    if proto.data_location == proto.EXTERNAL:
        from .external import read_external

        return read_external(proto, base, shape, dtype, name)
    if proto.HasField("raw_data") and dtype.itemsize * 8 == _bits(proto.data_type, dtype):
        return ndarray.array(_from_bytes(proto.raw_data, shape, dtype, name))
    return ndarray.array(_from_fields(proto, shape, name))


def _bits(code: int, dtype: np.dtype) -> int:
    """Bits per element as stored: types of less than a byte are packed."""
    import onnx

    name = onnx.TensorProto.DataType.Name(code)
    return 4 if name.endswith(("INT4", "FLOAT4E2M1")) else 2 if name.endswith("INT2") else dtype.itemsize * 8


def _from_bytes(raw: bytes, shape: tuple[int, ...], dtype: np.dtype, name: str) -> np.ndarray:
    need = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if len(raw) != need:
        raise ParseError(f"{name} of shape {shape} and type {dtype} needs {need} bytes, but the file has {len(raw)}: it is damaged")
    return np.frombuffer(raw, dtype).reshape(shape)


def _from_fields(proto: Any, shape: tuple[int, ...], name: str) -> np.ndarray:
    import onnx

    try:
        return onnx.numpy_helper.to_array(proto).reshape(shape)
    except (ValueError, TypeError) as exc:
        raise ParseError(f"{name} of shape {shape} does not hold the values it should: {exc}") from None


def sparse_value(proto: Any, base: str | None) -> ndarray.NDArray:
    """The dense value of a SparseTensorProto."""
    values, indices = tensor_value(proto.values, base).numpy(), tensor_value(proto.indices, base).numpy()
    shape = tuple(proto.dims)
    dense = np.zeros(int(np.prod(shape, dtype=np.int64)), values.dtype)
    flat = indices if indices.ndim == 1 else np.ravel_multi_index(tuple(indices.T), shape)
    dense[flat] = values
    return ndarray.array(dense.reshape(shape))


def attribute_value(proto: Any, base: str | None) -> Any:
    """The value of an attribute: numbers, str, lists of them, NDArray for tensors; graphs as they are."""
    kind = proto.AttributeType.Name(proto.type)
    if kind == "UNDEFINED":
        kind = _guess_kind(proto)
    if kind in ("FLOAT", "INT", "GRAPH", "TYPE_PROTO"):
        return getattr(proto, {"FLOAT": "f", "INT": "i", "GRAPH": "g", "TYPE_PROTO": "tp"}[kind])
    if kind == "STRING":
        return proto.s.decode("utf-8", "replace")
    if kind == "STRINGS":
        return [s.decode("utf-8", "replace") for s in proto.strings]
    if kind in ("FLOATS", "INTS", "GRAPHS"):
        return list(getattr(proto, kind.lower()))
    if kind == "TENSOR":
        return tensor_value(proto.t, base)
    if kind == "TENSORS":
        return [tensor_value(t, base) for t in proto.tensors]
    if kind == "SPARSE_TENSOR":
        return sparse_value(proto.sparse_tensor, base)
    raise ArgumentError(f"attribute {proto.name!r} has the kind {kind}, which is not supported")


def _guess_kind(proto: Any) -> str:
    for field, kind in (("g", "GRAPH"), ("t", "TENSOR"), ("s", "STRING"), ("f", "FLOAT"), ("i", "INT")):
        if proto.HasField(field):
            return kind
    for field in ("floats", "ints", "strings", "tensors", "graphs"):
        if len(getattr(proto, field)):
            return field.upper()
    return "INTS"
