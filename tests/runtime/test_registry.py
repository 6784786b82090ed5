"""Global functions and conversion of values."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from anchorleg.runtime import (
    ADT, NDArray, PackedFunc, ShapeTuple, String, convert, get_global_func, list_global_func_names, register_func,
    remove_global_func, tuple_object,
)
from anchorleg.support.errors import ArgumentError, TypeMismatchError


@pytest.fixture(autouse=True)
def forget():
    before = set(list_global_func_names())
    yield
    for name in set(list_global_func_names()) - before:
        remove_global_func(name)


def test_register():
    @register_func("test.add")
    def add(a, b):
        return a + b

    @register_func
    def test_plain(x):
        return -x

    register_func("test.lambda", lambda: 5)
    assert get_global_func("test.add")(2, 3) == add(2, 3) == 5
    assert get_global_func("test_plain")(1) == -1 and get_global_func("test.lambda")() == 5
    assert {"test.add", "test_plain", "test.lambda"} <= set(list_global_func_names())
    assert get_global_func("test.add").is_global


def test_override_and_missing():
    register_func("test.f", lambda: 1)
    with pytest.raises(ArgumentError, match="override=True"):
        register_func("test.f", lambda: 2)
    register_func("test.f", lambda: 2, override=True)
    assert get_global_func("test.f")() == 2
    assert get_global_func("test.none", allow_missing=True) is None
    with pytest.raises(ValueError, match="cannot find global function 'test.none'"):
        get_global_func("test.none")
    with pytest.raises(ArgumentError):
        remove_global_func("test.none")


def test_convert():
    assert isinstance(convert(np.zeros(2)), NDArray) and isinstance(convert(lambda: 1), PackedFunc)
    assert convert([1, "a", None]) == (1, "a", None) and isinstance(convert((np.zeros(1),))[0], NDArray)
    with pytest.raises(TypeMismatchError):
        convert({1, 2})


def test_containers():
    value = tuple_object([1, ADT(3, [2])])
    assert value.tag == 0 and value[1].tag == 3 and len(value) == 2 and list(value)[0] == 1
    with pytest.raises(IndexError):
        value[2]
    assert String("a") == "a" and String("a").__tvm_object__ == "a"
    shape = ShapeTuple([1, -2])
    assert shape == (1, -2) and shape == [1, -2] and not shape != [1, -2] and shape != [1] and shape != 3 and shape in {(1, -2)}
    assert pickle.loads(pickle.dumps(shape)) == shape and isinstance(pickle.loads(pickle.dumps(shape)), ShapeTuple)
    with pytest.raises(ArgumentError, match="made of ints"):
        ShapeTuple([1.5])
