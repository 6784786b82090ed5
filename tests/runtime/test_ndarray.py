"""Tensors: memory, copies, DLPack, C structure, pickling."""

from __future__ import annotations

import gc
import pickle

import ml_dtypes
import numpy as np
import pytest

from anchorleg.runtime import NDArray, array, cpu, cuda, empty, from_dlpack, numpyasarray
from anchorleg.support.errors import ArgumentError, TypeMismatchError

TYPES = ["float32", "float64", "float16", "int8", "uint8", "int64", "bool", "bfloat16", "e4m3_float8", "e5m2_float8", "int4"]
SHAPES = [(), (3,), (2, 0, 3), (4, 5)]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_round_trips(dtype, shape):
    kind = empty(shape, dtype).numpy().dtype
    values = (np.arange(int(np.prod(shape))).reshape(shape) % 2).astype(kind)
    tensor = array(values, cpu(0))
    assert tensor.shape == shape and tensor.dtype == dtype and tensor.data_ptr % 64 == 0
    again = pickle.loads(pickle.dumps(tensor))
    shared = from_dlpack(tensor.to_dlpack())
    for other in (tensor, again, shared, array(tensor), tensor.copyto(cpu(0))):
        assert other.dtype == dtype and other.numpy().dtype == kind
        np.testing.assert_array_equal(other.numpy(), values)
    assert shared.data_ptr == tensor.data_ptr or not tensor.size


def test_copyfrom():
    tensor = empty((2, 3), "float32")
    tensor.copyfrom([[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(tensor.asnumpy(), [[1, 2, 3], [4, 5, 6]])
    tensor.copyfrom(np.arange(6.0).reshape(2, 3))
    with pytest.raises(ArgumentError, match=r"expected shape \(2, 3\), got \(3, 2\)"):
        tensor.copyfrom(np.zeros((3, 2)))
    with pytest.raises(TypeMismatchError, match="expected dtype float32, got int32"):
        tensor.copyfrom(array(np.zeros((2, 3), np.int32)))
    with pytest.raises(TypeMismatchError):
        tensor.copyto("cpu")


def test_items():
    tensor = array(np.zeros((2, 2), np.float32))
    tensor[:] = 3
    tensor[0, 1] = 5
    np.testing.assert_array_equal(tensor[0], [3, 5])
    assert tensor[1, 1] == 3 and len(tensor) == 2 and np.asarray(tensor).sum() == 14


def test_lanes():
    tensor = empty((3,), "float32x4")
    assert tensor.shape == (3,) and tensor.numpy().shape == (3, 4) and tensor.nbytes == 48
    shared = from_dlpack(tensor.to_dlpack())
    assert shared.dtype == "float32x4" and shared.shape == (3,)


def test_shape_errors():
    for shape in ((-1,), ("a",), (2, None)):
        with pytest.raises(ArgumentError):
            empty(shape)
    with pytest.raises(ArgumentError, match="not available"):
        empty((2,), "float32", cuda(0))


def test_view():
    tensor = array(np.arange(6, dtype=np.float32))
    view = tensor.view((3, 2))
    view[0, 0] = 9
    assert tensor[0] == 9 and tensor.view((3,), "int64").dtype == "int64"
    assert not view.same_as(tensor) and tensor.view((6,)).same_as(tensor)
    with pytest.raises(ArgumentError):
        tensor.view((7,))


def test_numpy_exchange():
    tensor = array(np.arange(6, dtype=np.float32).reshape(2, 3))
    view = np.from_dlpack(tensor)
    view[0, 0] = 7
    assert tensor[0, 0] == 7
    del tensor
    gc.collect()
    assert view[0, 0] == 7
    strided = np.arange(12, dtype=np.int32).reshape(3, 4)[:, ::2]
    other = from_dlpack(strided)
    np.testing.assert_array_equal(other.numpy(), strided)
    assert not other.is_contiguous and other.handle.contents.strides[1] == 2
    wrapped = numpyasarray(strided)
    wrapped[0, 0] = 100
    assert strided[0, 0] == 100


def test_capsule_is_used_once():
    capsule = array(np.zeros(3)).to_dlpack()
    from_dlpack(capsule)
    with pytest.raises(ArgumentError, match="unused DLPack capsule"):
        from_dlpack(capsule)
    with pytest.raises(ArgumentError):
        from_dlpack(42)


def test_capsules_give_memory_back():
    import weakref

    block = np.zeros(1000, np.float32)
    alive = weakref.ref(block)
    shared = from_dlpack(block)
    kept = shared.as_numpy_view()
    capsule = NDArray(block).to_dlpack()
    del block, shared
    gc.collect()
    assert alive() is not None
    del capsule, kept
    gc.collect()
    assert alive() is None


def test_c_structure():
    tensor = array(np.zeros((2, 3), np.int16))
    struct = tensor.handle.contents
    assert (struct.ndim, struct.shape[0], struct.shape[1], struct.data) == (2, 2, 3, tensor.data_ptr)
    assert (struct.dtype.code, struct.dtype.bits, struct.dtype.lanes) == (0, 16, 1)
    assert (struct.device.device_type, struct.device.device_id, struct.byte_offset) == (1, 0, 0) and not struct.strides


def test_bfloat16_is_exchanged_as_bfloat16():
    values = np.array([1.5, -2, np.nan, np.inf], ml_dtypes.bfloat16)
    got = from_dlpack(array(values).to_dlpack()).numpy()
    np.testing.assert_array_equal(got.view(np.uint16), values.view(np.uint16))
