"""The part of Python that becomes native code: what it computes, and what it refuses."""
from __future__ import annotations

import ctypes

import numpy as np
import pytest

from anchorleg.runtime.native import NativeLibrary
from anchorleg.runtime.native_python import compile_native, constants_of, translate
from anchorleg.runtime.vm.native_core import core
from anchorleg.support.errors import InternalError


def compiled(source, name, arity, constants=None):
    """A function of the text as a Python callable over integers."""
    library = NativeLibrary.from_objects([compile_native(source, [name], constants)], [f"np_{name}"], name="test")
    call = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * arity)(library[f"np_{name}"])
    call.library = library
    return call


LOOPS = """
def triangle(n):
    total = 0
    for i in range(n):
        if i == 3:
            continue
        if i == 8:
            break
        total += i
    return total


def between(first, n):
    total = 0
    for i in range(first, n):
        for j in range(i):
            total += 1
    return total
"""


@pytest.mark.parametrize("n", [-1, 0, 1, 4, 7, 20])
def test_for_loops_as_python_has_them(n):
    space: dict = {}
    exec(LOOPS, space)
    assert compiled(LOOPS, "triangle", 1)(n) == space["triangle"](n)
    assert compiled(LOOPS, "between", 2)(2, n) == space["between"](2, n)


def test_the_bound_of_a_for_loop_is_evaluated_once():
    source = """
def f(n):
    total = 0
    for i in range(n):
        n = 0
        total += 1
    return total
"""
    assert compiled(source, "f", 1)(5) == 5


TABLE = """
ADD = 1
SUB = ADD + 4

@inline
def add(a, b):
    return a + b

@inline
def sub(a, b):
    return a - b

@inline
def other(a, b):
    return 77

OPS = {ADD: add, SUB: sub, GIVEN: add, None: other}
FEW = {ADD: add}

def f(op, a, b):
    return dispatch(OPS, op, a, b)

def g(op, a, b):
    return dispatch(FEW, op, a, b)
"""


def test_dispatch_calls_the_function_for_the_key():
    call = compiled(TABLE, "f", 3, {"GIVEN": 9})
    assert [call(op, 10, 4) for op in (1, 5, 9, 2)] == [14, 6, 14, 77]
    assert compiled(TABLE, "g", 3, {"GIVEN": 9})(2, 10, 4) == 0
    assert constants_of(TABLE, {"GIVEN": 9}) == {"ADD": 1, "SUB": 5, "GIVEN": 9}


def test_inlined_functions_are_marked_for_llvm():
    text = translate(TABLE, ["f"], {"GIVEN": 9})
    assert "@np_add(i64 %arg.a, i64 %arg.b) alwaysinline" in text and "i64 @np_f(i64 %arg.op, i64 %arg.a, i64 %arg.b) {" in text


@pytest.mark.parametrize("body, text", [
    ("for i in a:\n        pass", "range"), ("x = [1]", "List is not in the language"), ("return nothing(a)", "no function 'nothing'"),
    ("return helper(a)", "helper takes 2 arguments, got 1"), ("return dispatch(NONE, a)", "the name of a table"), ("return b", "'b' is not known"),
])
def test_what_is_not_in_the_language_is_refused_with_its_line(body, text):
    with pytest.raises(InternalError, match=text) as info:
        translate(f"def helper(a, b):\n    return 0\n\ndef f(a):\n    {body}\n", ["f"])
    assert "function f, line 5" in str(info.value)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "float16", "float32", "float64", "bfloat16"])
def test_elements_of_tensors_as_integers(dtype):
    from anchorleg.runtime.dtype import DataType
    from anchorleg.runtime.vm.native import source
    from anchorleg.runtime.vm.native_core import _operations
    from anchorleg.runtime.vm.translate import dtype_words

    values = np.array([0, 1, 2, 7, 120, 100.75] + ([-3, -2.5, -0.0] if dtype[0] != "u" else []), "float64").astype(DataType(dtype).numpy_dtype)
    code, item = dtype_words(dtype)
    words = np.array([1, core().TENSOR, values.ctypes.data, 0, 1, code, item, len(values)], np.int64)
    element = compiled(source() + "\ndef f(o, i):\n    return element(o, i)\n", "f", 2, _operations())
    assert [element(words.ctypes.data, i) for i in range(len(values))] == [int(v) for v in values.astype("float64")]
    nonzero = compiled(source() + "\ndef f(o):\n    return nonzero_of(o)\n", "f", 1, _operations())
    assert nonzero(words.ctypes.data) == np.count_nonzero(values.astype("float64"))
