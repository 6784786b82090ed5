"""Calls from kernels into registered functions: ``al_call_packed(name, args, codes, count, ret, ret code)``."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from .c_abi import ArgTypeCode, DLTensor, TVMValue
from .dtype import DataType, numpy_dtype
from .packed_func import PackedFunc
from .registry import get_global_func

SYMBOL = "al_call_packed"
_TENSORS = (ArgTypeCode.DLTENSOR_HANDLE, ArgTypeCode.NDARRAY_HANDLE)


def tensor_view(address: int) -> Any:
    """The tensor a ``DLTensor*`` describes, over the same memory."""
    from .ndarray import numpyasarray

    t = DLTensor.from_address(address)
    dtype = DataType.of(t.dtype.code, t.dtype.bits, t.dtype.lanes)
    shape = tuple(t.shape[i] for i in range(t.ndim)) + ((dtype.lanes,) if dtype.lanes > 1 else ())
    kind = numpy_dtype(dtype)
    if not all(shape):
        return numpyasarray(np.empty(shape, kind))
    strides = None
    if t.strides:
        strides = tuple(t.strides[i] * kind.itemsize * dtype.lanes for i in range(t.ndim)) + ((kind.itemsize,) if dtype.lanes > 1 else ())
    size = kind.itemsize + sum((d - 1) * s for d, s in zip(shape, strides)) if strides else int(np.prod(shape)) * kind.itemsize
    memory = (ctypes.c_char * size).from_address(t.data + t.byte_offset)
    return numpyasarray(np.ndarray(shape, kind, memory, 0, strides))


def _argument(value: TVMValue, code: int) -> object:
    if code in _TENSORS:
        return tensor_view(value.v_handle)
    if code == ArgTypeCode.INT:
        return value.v_int64
    if code == ArgTypeCode.FLOAT:
        return value.v_float64
    if code == ArgTypeCode.STR:
        return (value.v_str or b"").decode(errors="replace")
    return None if code == ArgTypeCode.NULL else ctypes.c_void_p(value.v_handle)


def _store_result(result: object, ret: int, ret_code: int) -> None:
    slot, code = TVMValue.from_address(ret), ctypes.c_int.from_address(ret_code)
    if isinstance(result, (bool, int, np.integer)):
        slot.v_int64, code.value = int(result), ArgTypeCode.INT
    elif isinstance(result, (float, np.floating)):
        slot.v_float64, code.value = float(result), ArgTypeCode.FLOAT
    else:
        slot.v_int64, code.value = 0, ArgTypeCode.NULL


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
def _call_packed(name: bytes, args: int, codes: int, count: int, ret: int, ret_code: int) -> int:
    return _answer(name.decode(), lambda: get_global_func(name.decode()), args, codes, count, ret, ret_code)


def _answer(name: str, function_of: Callable[[], Any], args: int, codes: int, count: int, ret: int, ret_code: int) -> int:
    """Calls a Python function for native code; 0, or -1 with the error text left behind."""
    from . import native

    try:
        values, kinds = (TVMValue * count).from_address(args), (ctypes.c_int * count).from_address(codes)
        result = function_of()(*(_argument(v, k) for v, k in zip(values, kinds)))
        _store_result(result, ret, ret_code)
        return 0
    except BaseException as exc:  # must not cross native frames: it becomes the error text
        native.set_last_error(f"{name}: {type(exc).__name__}: {exc}")
        return -1


_PACKED = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


def packed_address(function: PackedFunc) -> tuple[int, object]:
    """The address at which native code calls a packed function, and what must be kept alive for it."""
    if function.handle:
        return function.handle, function
    entry = _PACKED(lambda args, codes, count, ret, code, resource: _answer(function.name, lambda: function, args, codes, count, ret, code))
    return ctypes.cast(entry, ctypes.c_void_p).value or 0, (entry, function)


def address() -> int:
    """The address kernels call."""
    return ctypes.cast(_call_packed, ctypes.c_void_p).value or 0
