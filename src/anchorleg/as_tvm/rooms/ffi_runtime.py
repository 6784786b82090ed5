"""``tvm._ffi.runtime_ctypes``: devices and data types."""
from __future__ import annotations

from ...runtime.device import Device
from ...runtime.dtype import DataType, DataTypeCode

__all__ = ["DataType", "DataTypeCode", "Device"]
