"""The C structures and numbers that kernels, DLPack and packed functions share, as ctypes.

The packed calling convention is
``int fn(TVMValue* args, int* type_codes, int num_args, TVMValue* ret, int* ret_type_code, void* resource)``:
0 means success; anything else means that an error text was left with ``TVMAPISetLastError``.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_double, c_int, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p
from enum import IntEnum


class ArgTypeCode(IntEnum):
    """What a `TVMValue` holds, numbered as in upstream's C header."""

    INT = 0
    FLOAT = 2
    HANDLE = 3
    NULL = 4
    TVM_TYPE = 5
    DLDEVICE = 6
    DLTENSOR_HANDLE = 7
    OBJECT_HANDLE = 8
    MODULE_HANDLE = 9
    PACKED_FUNC_HANDLE = 10
    STR = 11
    BYTES = 12
    NDARRAY_HANDLE = 13
    OBJECT_RVALUE_REF_ARG = 14
    BOOL = 15


class DLDevice(ctypes.Structure):
    _fields_ = [("device_type", c_int32), ("device_id", c_int32)]


class DLDataType(ctypes.Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class DLTensor(ctypes.Structure):
    """A tensor seen from C: address, device, rank, element type, shape, strides (in elements) and byte offset."""

    _fields_ = [
        ("data", c_void_p), ("device", DLDevice), ("ndim", c_int32), ("dtype", DLDataType),
        ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("byte_offset", c_uint64),
    ]


class DLManagedTensor(ctypes.Structure):
    """A `DLTensor` with its owner and the function that gives it back."""


DLManagedTensorDeleter = ctypes.CFUNCTYPE(None, POINTER(DLManagedTensor))
DLManagedTensor._fields_ = [("dl_tensor", DLTensor), ("manager_ctx", c_void_p), ("deleter", DLManagedTensorDeleter)]


class TVMValue(ctypes.Union):
    _fields_ = [
        ("v_int64", c_int64), ("v_float64", c_double), ("v_handle", c_void_p), ("v_str", c_char_p),
        ("v_type", DLDataType), ("v_device", DLDevice),
    ]


class TVMByteArray(ctypes.Structure):
    _fields_ = [("data", POINTER(ctypes.c_char)), ("size", ctypes.c_size_t)]


PackedCFunc = ctypes.CFUNCTYPE(
    c_int, POINTER(TVMValue), POINTER(c_int), c_int, POINTER(TVMValue), POINTER(c_int), c_void_p
)
