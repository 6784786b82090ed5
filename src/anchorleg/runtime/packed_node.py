"""A packed function as a node of the native loop: its tensors are described once, and get their addresses with each call."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from .c_abi import ArgTypeCode, DLDataType, DLDevice, DLTensor
from .device import Device
from .dtype import DataType
from .packed_func import PackedFunc

# What a native loop calls: the "kernel address" is that of a record {function, count, codes, tensors}.  The record is only read: the
# tensors are copied to the stack, where they get their addresses, so that any number of threads may call it.
THUNK = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define i32 @al_call_packed_node(ptr %record, ptr %args) {
entry:
  %result = alloca i64, align 8
  %code = alloca i32, align 4
  store i32 4, ptr %code, align 4
  %countat = getelementptr inbounds i64, ptr %record, i64 1
  %codesat = getelementptr inbounds ptr, ptr %record, i64 2
  %tensorsat = getelementptr inbounds ptr, ptr %record, i64 3
  %fn = load ptr, ptr %record, align 8
  %count = load i64, ptr %countat, align 8
  %codes = load ptr, ptr %codesat, align 8
  %described = load ptr, ptr %tensorsat, align 8
  %bytes = mul i64 %count, @SIZE@
  %tensors = alloca i8, i64 %bytes, align 16
  %values = alloca i64, i64 %count, align 16
  call void @llvm.memcpy.p0.p0.i64(ptr %tensors, ptr %described, i64 %bytes, i1 false)
  %none = icmp sle i64 %count, 0
  br i1 %none, label %call, label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i2, %loop ]
  %from = getelementptr inbounds ptr, ptr %args, i64 %i
  %data = load ptr, ptr %from, align 8
  %at = mul i64 %i, @SIZE@
  %tensor = getelementptr inbounds i8, ptr %tensors, i64 %at
  store ptr %data, ptr %tensor, align 8
  %value = getelementptr inbounds ptr, ptr %values, i64 %i
  store ptr %tensor, ptr %value, align 8
  %i2 = add i64 %i, 1
  %more = icmp slt i64 %i2, %count
  br i1 %more, label %loop, label %call
call:
  %n = trunc i64 %count to i32
  %status = call i32 %fn(ptr %values, ptr %codes, i32 %n, ptr %result, ptr %code, ptr null)
  ret i32 %status
}
""".replace("@SIZE@", str(ctypes.sizeof(DLTensor)))


class PackedNode:
    """The record of one node; read only.

    Parameters
    ----------
    function : native code in the packed convention.
    tensors : (shape, element type, device) of each input and result; their addresses come with each call.
    """

    def __init__(self, function: PackedFunc, tensors: Sequence[tuple[Sequence[int], DataType, Device]]) -> None:
        count = len(tensors)
        self._function, self._shapes = function, [(ctypes.c_int64 * max(1, len(s)))(*s) for s, _, _ in tensors]
        self._tensors = (DLTensor * max(1, count))()
        self._codes = (ctypes.c_int * max(1, count))(*[ArgTypeCode.DLTENSOR_HANDLE] * count)
        for i, (shape, kind, device) in enumerate(tensors):
            tensor = self._tensors[i]
            tensor.device, tensor.ndim = DLDevice(device.device_type, device.device_id), len(shape)
            tensor.dtype = DLDataType(kind.type_code, kind.bits, kind.lanes)
            tensor.shape = ctypes.cast(self._shapes[i], ctypes.POINTER(ctypes.c_int64))
        self._record = (ctypes.c_uint64 * 4)(function.handle, count, ctypes.addressof(self._codes), ctypes.addressof(self._tensors))

    @property
    def address(self) -> int:
        """Where the record is."""
        return ctypes.addressof(self._record)


__all__ = ["PackedNode", "THUNK"]
