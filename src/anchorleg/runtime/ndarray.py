"""`NDArray`: a tensor in aligned host memory, exchanged with numpy, DLPack and C.

Memory made here starts on a 128-byte border, so that vector loads of any width are aligned.  An `NDArray` made from
foreign memory (DLPack, `numpyasarray`) keeps that memory's owner alive and may be unaligned or strided.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence

import numpy as np

from ..support.errors import ArgumentError, TypeMismatchError
from .c_abi import DLDataType, DLDevice, DLManagedTensor, DLTensor
from .device import Device, cpu, device as _device, kDLCPU, kDLCUDAHost
from .dtype import DataType, dtype_name

ALIGNMENT = 128


def aligned_bytes(size: int) -> np.ndarray:
    """``size`` uninitialised bytes whose address is a multiple of `ALIGNMENT`."""
    raw = np.empty(size + ALIGNMENT, np.uint8)
    return np.ndarray((size,), np.uint8, raw, -raw.ctypes.data % ALIGNMENT)


class NDArray:
    """A tensor: shape, element type, device and memory.

    Made by `array`, `empty` or `from_dlpack`; ``NDArray(storage, dtype)`` wraps a numpy array without copying.
    Attributes: ``shape`` (tuple of ints), ``dtype`` (text), ``device``.
    """

    __slots__ = ("_np", "_type", "device", "_c", "_owner", "__weakref__")

    def __init__(
        self, storage: np.ndarray, dtype: "str | DataType | None" = None, device: Device | None = None,
        owner: object = None,
    ) -> None:
        self._np = storage
        self._type = DataType(storage.dtype if dtype is None else dtype)
        self.device = device if device is not None else cpu(0)
        self._c: tuple | None = None
        self._owner = owner

    # -- what it is -------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return self._np.shape if self._type.lanes == 1 else self._np.shape[:-1]

    @property
    def dtype(self) -> str:
        return self._type._text

    @property
    def data_type(self) -> DataType:
        return self._type

    @property
    def ctx(self) -> Device:
        """The device, under its older name."""
        return self.device

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def nbytes(self) -> int:
        return self._np.nbytes

    @property
    def is_contiguous(self) -> bool:
        return self._np.flags.c_contiguous

    def same_as(self, other: object) -> bool:
        """Whether both are the same tensor object or describe the same memory."""
        if self is other:
            return True
        return isinstance(other, NDArray) and self.data_ptr == other.data_ptr and self.shape == other.shape \
            and self._np.strides == other._np.strides and self._type == other._type and self.nbytes > 0

    def __repr__(self) -> str:
        return f"<anchorleg.NDArray shape={self.shape}, dtype={self.dtype}, {self.device!r}>\n{self._np!r}"

    def __str__(self) -> str:
        return str(self._np)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tensor of rank 0 has no length")
        return self.shape[0]

    # -- numpy ------------------------------------------------------------------------------------

    def numpy(self) -> np.ndarray:
        """A copy as a numpy array (types numpy lacks come from ml_dtypes; lanes become a last dimension)."""
        return self._np.copy()

    asnumpy = numpy

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        if dtype is not None and np.dtype(dtype) != self._np.dtype:  # type: ignore[arg-type, call-overload]
            return self._np.astype(dtype)  # type: ignore[arg-type, call-overload]
        return self._np if copy is False else self._np.copy()

    def as_numpy_view(self) -> np.ndarray:
        """A numpy array over the same memory; it keeps the memory alive."""
        return self._np

    def __getitem__(self, index):  # noqa: ANN001, ANN204
        return np.array(self._np[index])

    def __setitem__(self, index, value) -> None:  # noqa: ANN001
        self._np[index] = value._np if isinstance(value, NDArray) else value

    def item(self) -> object:
        """The only element as a Python number."""
        return self._np.item()

    # -- copies -----------------------------------------------------------------------------------

    def copyfrom(self, source: object) -> "NDArray":
        """Copy ``source`` (tensor, numpy array, nested lists) into this tensor's memory.

        Shapes must be equal (`ArgumentError`); numpy values are converted to this tensor's type, another `NDArray`
        must have it already (`TypeMismatchError`).
        """
        if isinstance(source, NDArray):
            if source._type != self._type:
                raise TypeMismatchError(f"copyfrom: expected dtype {self.dtype}, got {source.dtype}")
            source = source._np
        values = np.asarray(source)
        if values.shape != self._np.shape:
            raise ArgumentError(f"copyfrom: expected shape {self._np.shape}, got {values.shape}")
        np.copyto(self._np, values, casting="unsafe")
        return self

    def copyto(self, target: "NDArray | Device", mem_scope: str | None = None) -> "NDArray":
        """Copy into ``target``; given a device, into a new tensor there."""
        if isinstance(target, NDArray):
            return target.copyfrom(self)
        if isinstance(target, Device):
            return empty(self.shape, self._type, target).copyfrom(self)
        raise TypeMismatchError(f"copyto: expected an NDArray or a Device, got {type(target).__name__}")

    def view(self, shape: Sequence[int], dtype: "str | DataType | None" = None) -> "NDArray":
        """A tensor of another shape (and type) over the first bytes of the same, contiguous memory."""
        kind = self._type if dtype is None else DataType(dtype)
        need = kind.itemsize * int(np.prod(shape, dtype=np.int64))
        if not self.is_contiguous or need > self.nbytes:
            raise ArgumentError(f"view of {need} bytes does not fit contiguous memory of {self.nbytes} bytes")
        flat = self._np.reshape(-1).view(np.uint8)[:need]
        return NDArray(_shaped(flat, shape, kind), kind, self.device, self._owner)

    def _create_view(self, shape: Sequence[int]) -> "NDArray":
        return self.view(shape)

    # -- C ----------------------------------------------------------------------------------------

    @property
    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._np.ctypes.data

    @property
    def handle(self):  # noqa: ANN201
        """A ctypes pointer to a `DLTensor` that lives as long as this tensor."""
        if self._c is None:
            self._c = _dl_tensor(self)
        return self._c[0]

    # -- exchange ---------------------------------------------------------------------------------

    def to_dlpack(self) -> object:
        """A DLPack capsule over the same memory."""
        return _to_capsule(self)

    def __dlpack__(self, *, stream: object = None, max_version: object = None, dl_device: object = None,
                   copy: bool | None = None) -> object:
        return _to_capsule(array(self) if copy else self, max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device.device_type, self.device.device_id

    def __reduce__(self) -> tuple:
        from .params import save_ndarray

        return _restore, (save_ndarray(self),)


def _restore(data: bytes) -> NDArray:
    from .params import load_ndarray

    return load_ndarray(data)


def _shaped(flat: np.ndarray, shape: Sequence[int], kind: DataType) -> np.ndarray:
    full = (*shape, kind.lanes) if kind.lanes > 1 else tuple(shape)
    return flat.view(kind.numpy_dtype).reshape(full)


def _checked_shape(shape: "Sequence[int] | int") -> tuple[int, ...]:
    extents = (shape,) if isinstance(shape, (int, np.integer)) else shape
    try:
        result = tuple(int(extent) for extent in extents)
    except (TypeError, ValueError):
        raise ArgumentError(f"shape {shape!r}: expected whole numbers") from None
    if any(extent < 0 for extent in result):
        raise ArgumentError(f"shape {result}: extents must not be negative")
    return result


def _require_host(where: Device) -> None:
    if where.device_type not in (kDLCPU, kDLCUDAHost):
        raise ArgumentError(f"device {where!r} is not available in this process; use cpu(0)")


def empty(
    shape: "Sequence[int] | int", dtype: "str | DataType | np.dtype | type" = "float32",
    device: "Device | str | None" = None, mem_scope: str | None = None,
) -> NDArray:
    """An uninitialised tensor in aligned memory."""
    where = cpu(0) if device is None else _device(device)
    _require_host(where)
    kind, extents = DataType(dtype), _checked_shape(shape)
    count = 1
    for extent in extents:
        count *= extent
    full = (*extents, kind.lanes) if kind.lanes > 1 else extents
    # not a reshape of bytes: numpy moves tensors of size zero to other, unaligned memory then
    return NDArray(np.ndarray(full, kind.numpy_dtype, aligned_bytes(count * kind.itemsize)), kind, where)


def tensor_at(address: int, shape: Sequence[int], dtype: "str | DataType", owner: object = None, device: Device | None = None) -> NDArray:
    """A dense tensor over memory at ``address`` that ``owner`` keeps alive."""
    kind, extents = DataType(dtype), _checked_shape(shape)
    size = int(np.prod(extents, dtype=np.int64)) * kind.itemsize
    block = (ctypes.c_uint8 * size).from_address(address) if size else (ctypes.c_uint8 * 0)()
    return NDArray(_shaped(np.frombuffer(block, np.uint8), extents, kind), kind, device, owner)


def array(
    arr: object, device: "Device | str | None" = None, mem_scope: str | None = None, dtype: object = None
) -> NDArray:
    """A new tensor holding a copy of ``arr`` (numpy array, tensor, nested lists or a number)."""
    if isinstance(arr, NDArray):
        return empty(arr.shape, arr._type, device or arr.device).copyfrom(arr)
    values = np.asarray(arr, dtype=dtype)  # type: ignore[arg-type, call-overload]
    result = empty(values.shape, dtype_name(values.dtype), device)
    np.copyto(result._np, values, casting="unsafe")
    return result


def numpyasarray(np_data: np.ndarray) -> NDArray:
    """A tensor over the memory of a numpy array, without a copy."""
    return NDArray(np_data, dtype_name(np_data.dtype))


def aligned(arr: "NDArray | np.ndarray", alignment: int = 64) -> NDArray:
    """``arr`` itself as a tensor when its memory is contiguous and aligned, else a copy that is."""
    tensor = arr if isinstance(arr, NDArray) else numpyasarray(arr)
    if tensor.is_contiguous and tensor.data_ptr % alignment == 0:
        return tensor
    return array(tensor)


# -- C structures and DLPack --------------------------------------------------------------------------


def _dl_tensor(tensor: NDArray) -> tuple:
    shape = tensor.shape
    rank = len(shape)
    extents = (ctypes.c_int64 * max(1, rank))(*shape)
    kind = tensor._type
    struct = DLTensor(
        data=tensor.data_ptr, device=DLDevice(tensor.device.device_type, tensor.device.device_id), ndim=rank,
        dtype=DLDataType(kind.type_code, kind.bits, kind.lanes), byte_offset=0,
    )
    struct.shape = ctypes.cast(extents, ctypes.POINTER(ctypes.c_int64))
    strides = None
    if not tensor.is_contiguous:
        strides = (ctypes.c_int64 * max(1, rank))(*(s // kind.itemsize for s in tensor._np.strides[:rank]))
        struct.strides = ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64))
    return ctypes.pointer(struct), struct, extents, strides


_CAPSULE_NAME = b"dltensor"
_USED_NAME = b"used_dltensor"
_api = ctypes.pythonapi
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_IsValid.restype = ctypes.c_int
_api.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_SetName.restype = ctypes.c_int
_api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]

# where DLPack's numbers of element kinds differ from upstream's: (DLPack's, our type)
_DL_CODES = ((6, "bool"), (10, "e4m3_float8"), (12, "e5m2_float8"), (8, "e4m3_float8"))


def _to_capsule(tensor: NDArray, max_version: object = None) -> object:
    """numpy makes the capsule (and owns its lifetime); types numpy cannot export travel as raw bits, then are named."""
    storage, kind = tensor._np, tensor._type
    if not storage.flags.writeable:
        storage = storage.copy()
    plain = kind.type_code <= 2 and kind.bits >= 8 or kind.is_bool
    if plain and kind.lanes == 1:
        return storage.__dlpack__() if max_version is None else _versioned(storage, max_version)
    capsule = (storage if plain else storage.view(f"u{storage.itemsize}")).__dlpack__()
    struct = DLManagedTensor.from_address(_api.PyCapsule_GetPointer(capsule, _CAPSULE_NAME)).dl_tensor
    code = next((number for number, name in _DL_CODES if name == str(kind.with_lanes(1))), kind.type_code)
    struct.dtype = DLDataType(code, kind.bits, kind.lanes)
    if kind.lanes > 1:
        struct.ndim -= 1
    return capsule


def _versioned(storage: np.ndarray, max_version: object) -> object:
    try:
        return storage.__dlpack__(max_version=max_version)  # type: ignore[call-arg, arg-type]
    except TypeError:  # numpy before 2.1
        return storage.__dlpack__()


def from_dlpack(source: object) -> NDArray:
    """A tensor over the memory of a DLPack capsule or of an object with ``__dlpack__``, without a copy.

    The memory is given back when the last tensor or numpy array over it is gone.
    """
    capsule = source.__dlpack__() if hasattr(source, "__dlpack__") else source
    if not _api.PyCapsule_IsValid(capsule, _CAPSULE_NAME):
        raise ArgumentError("from_dlpack: expected an unused DLPack capsule or an object with __dlpack__")
    address = _api.PyCapsule_GetPointer(capsule, _CAPSULE_NAME)
    struct = DLManagedTensor.from_address(address).dl_tensor
    where = Device(struct.device.device_type, struct.device.device_id)
    _require_host(where)
    kind = _from_dl_type(struct.dtype)
    shape = tuple(struct.shape[i] for i in range(struct.ndim))
    strides = tuple(struct.strides[i] for i in range(struct.ndim)) if struct.strides else None
    storage = _foreign(address, (struct.data or 0) + struct.byte_offset, shape, strides, kind)
    _api.PyCapsule_SetName(capsule, _USED_NAME)
    return NDArray(storage, kind, where)


def _from_dl_type(dtype: DLDataType) -> DataType:
    named = dict(_DL_CODES).get(dtype.code) if dtype.bits == 8 else None
    return DataType(named).with_lanes(dtype.lanes) if named else DataType.of(dtype.code, dtype.bits, dtype.lanes)


def _foreign(
    managed: int, data: int, shape: tuple[int, ...], strides: tuple[int, ...] | None, kind: DataType
) -> np.ndarray:
    item = kind.itemsize
    if strides is not None and any(s < 0 for s in strides):
        raise ArgumentError("from_dlpack: negative strides are not supported")
    if 0 in shape:
        extent = 0
    elif strides is None:
        extent = item * int(np.prod(shape, dtype=np.int64))
    else:
        extent = item * (1 + sum((n - 1) * s for n, s in zip(shape, strides)))
    block = (ctypes.c_uint8 * extent).from_address(data) if extent else (ctypes.c_uint8 * 0)()
    weakref.finalize(block, _give_back, managed)
    flat = np.frombuffer(block, np.uint8)
    if strides is None or extent == 0:
        return _shaped(flat, shape, kind)
    lane = (kind.numpy_dtype.itemsize,) if kind.lanes > 1 else ()
    full = (*shape, kind.lanes) if kind.lanes > 1 else shape
    return np.ndarray(full, kind.numpy_dtype, flat, 0, (*(s * item for s in strides), *lane))


def _give_back(managed: int) -> None:
    struct = DLManagedTensor.from_address(managed)
    if struct.deleter:
        struct.deleter(ctypes.byref(struct))


# upstream's module-level constructors for devices, reachable as ndarray.cpu and so on
device = _device
