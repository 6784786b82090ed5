"""Tensors whose data lies in files beside the model.

A path is taken relative to the model's folder and may not leave it; data is read straight into the tensor's memory.
"""
from __future__ import annotations

import os
from typing import Any

import numpy as np

from ....runtime import ndarray
from ....support.errors import ArgumentError, ParseError


def external_path(location: str, base: str | None, name: str) -> str:
    """The file that holds external data; ArgumentError when it is missing or outside of the model's folder."""
    if base is None:
        raise ArgumentError(f"{name} lies in the file {location!r}, and where that is is not known: give from_onnx the path of the "
                            "model, or load the data first (onnx.load_external_data_for_model)")
    root = os.path.realpath(base)
    path = os.path.realpath(os.path.join(root, location))
    if os.path.isabs(location) or os.path.commonpath([root, path]) != root or "\0" in location:
        raise ArgumentError(f"{name} names the data file {location!r}, which is outside of the model's folder {root}: refused")
    if not os.path.isfile(path):
        raise ArgumentError(f"{name} needs the data file {path}, which does not exist: put it beside the model")
    return path


def read_external(proto: Any, base: str | None, shape: tuple[int, ...], dtype: np.dtype, name: str) -> ndarray.NDArray:
    """The value of a tensor with external data."""
    entries = {e.key: e.value for e in proto.external_data}
    if "location" not in entries:
        raise ParseError(f"{name} is said to lie in another file, but the model does not say which")
    path = external_path(entries["location"], base, name)
    need = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    offset, length = _number(entries, "offset", 0, name), _number(entries, "length", need, name)
    if length != need:
        raise ParseError(f"{name} of shape {shape} and type {dtype} needs {need} bytes, but {length} are announced in {path}")
    return read_range(path, offset, shape, dtype, name)


def _number(entries: dict[str, str], key: str, default: int, name: str) -> int:
    try:
        value = int(entries.get(key, default))
    except ValueError:
        value = -1
    if value < 0:
        raise ParseError(f"{name}: the {key} of its external data is {entries[key]!r}, not a number of bytes")
    return value


def read_range(path: str, offset: int, shape: tuple[int, ...], dtype: np.dtype, name: str) -> ndarray.NDArray:
    """A tensor read from a place in a file, without a copy on the way."""
    result = ndarray.empty(shape, dtype)
    view = memoryview(result.as_numpy_view().reshape(-1).view(np.uint8))
    with open(path, "rb", buffering=0) as file:
        file.seek(offset)
        done = 0
        while done < len(view):
            got = file.readinto(view[done:])
            if not got:
                raise ParseError(f"{name} needs {len(view)} bytes at {offset} of {path}, which ends before: the file is truncated")
            done += got
    return result
