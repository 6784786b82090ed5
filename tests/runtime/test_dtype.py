"""Element types: text, numbers, numpy."""

from __future__ import annotations

import pickle

import ml_dtypes
import numpy as np
import pytest

from anchorleg.runtime import DataType
from anchorleg.runtime.dtype import dtype_name, numpy_dtype
from anchorleg.support.errors import ArgumentError


@pytest.mark.parametrize(
    "text, code, bits, lanes, size, name",
    [
        ("float32", 2, 32, 1, 4, "float32"), ("int8x4", 0, 8, 4, 4, "int8x4"), ("bool", 1, 1, 1, 1, "bool"),
        ("uint1", 1, 1, 1, 1, "bool"), ("handle", 3, 64, 1, 8, "handle"), ("bfloat16", 4, 16, 1, 2, "bfloat16"),
        ("float8_e4m3fn", 6, 8, 1, 1, "e4m3_float8"), ("e5m2_float8", 7, 8, 1, 1, "e5m2_float8"),
        ("int", 0, 32, 1, 4, "int32"), ("float", 2, 32, 1, 4, "float32"), ("boolx16", 1, 1, 16, 16, "boolx16"),
        ("float16x8", 2, 16, 8, 16, "float16x8"), ("int4", 0, 4, 1, 1, "int4"), ("e4m3_float8x4", 6, 8, 4, 4, "e4m3_float8x4"),
    ],
)
def test_parse(text, code, bits, lanes, size, name):
    kind = DataType(text)
    assert (kind.type_code, kind.bits, kind.lanes, kind.itemsize, str(kind)) == (code, bits, lanes, size, name)
    assert DataType(name) is kind and DataType.of(code, bits, lanes) is kind
    assert kind == name and hash(kind) == hash(name) and pickle.loads(pickle.dumps(kind)) is kind


@pytest.mark.parametrize("text", ["float33", "int3", "floot", "float32x", "float32x0", "x4", "bfloat32", "int8x4x2", "float-32"])
def test_unknown(text):
    with pytest.raises(ArgumentError, match="unknown data type"):
        DataType(text)


@pytest.mark.parametrize("kind", [np.float32, np.int64, np.uint8, np.bool_, np.float16, np.float64, ml_dtypes.bfloat16,
                                  ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.int4])
def test_numpy_both_ways(kind):
    assert numpy_dtype(dtype_name(kind)) == np.dtype(kind) == DataType(np.dtype(kind)).numpy_dtype


def test_types_without_form():
    for kind in (np.complex64, "datetime64[s]", object, np.longdouble):
        with pytest.raises(ArgumentError):
            DataType(np.dtype(kind))
    with pytest.raises(ArgumentError, match="not a data type"):
        dtype_name(3.5)
