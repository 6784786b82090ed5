"""The packed entry: what it accepts, and what it says when it refuses."""
from __future__ import annotations

import ctypes

import numpy as np
import pytest

from anchorleg.runtime.c_abi import DLDataType, DLDevice, DLTensor, TVMValue
from anchorleg.runtime.native import NativeLibrary, last_error_text
from anchorleg.target.build.llvm import compile_text
from anchorleg.target.codegen.llvm import emit_kernel
from anchorleg.tir import expr as tir
from anchorleg.tir import stmt as st
from anchorleg.tir.buffer import BufferLoad, decl_buffer

from .kernels import PARALLEL, SERIAL, allocate, f32, local, primfunc

FLOAT32 = DLDataType(2, 32, 1)


class Packed:
    """Calls a kernel through its packed entry with hand-made tensors."""

    def __init__(self, func):
        kernel = emit_kernel(func)
        self.library = NativeLibrary.from_objects([compile_text(kernel.ir_text)], [kernel.symbol])
        kinds = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
        self.entry = ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(self.library[kernel.symbol])

    def __call__(self, *args, codes=None):
        slots = (TVMValue * len(args))()
        for slot, a in zip(slots, args):
            if isinstance(a, DLTensor):
                slot.v_handle = ctypes.addressof(a)
            elif isinstance(a, float):
                slot.v_float64 = a
            else:
                slot.v_int64 = a
        kinds = codes or [7 if isinstance(a, DLTensor) else 2 if isinstance(a, float) else 0 for a in args]
        self.ret, self.ret_code = TVMValue(), ctypes.c_int(-1)
        status = self.entry(slots, (ctypes.c_int * len(args))(*kinds), len(args), ctypes.byref(self.ret), ctypes.byref(self.ret_code), None)
        return status, last_error_text()


def tensor(array, dtype=FLOAT32, device=1, strides=None, shape=None, offset=0):
    shape = array.shape if shape is None else shape
    t = DLTensor()
    t.data, t.device, t.ndim, t.dtype, t.byte_offset = array.ctypes.data, DLDevice(device, 0), len(shape), dtype, offset
    t.keep = ((ctypes.c_int64 * len(shape))(*shape), array)
    t.shape = ctypes.cast(t.keep[0], ctypes.POINTER(ctypes.c_int64))
    if strides is not None:
        t.keep += ((ctypes.c_int64 * len(strides))(*strides),)
        t.strides = ctypes.cast(t.keep[2], ctypes.POINTER(ctypes.c_int64))
    return t


def scale(shape, strides=()):
    """B[...] = A[...] * factor"""
    a, b, factor = decl_buffer(shape, name="A", strides=strides), decl_buffer(shape, name="B"), tir.Var("factor", "float32")
    loops = [tir.Var(f"i{k}") for k in range(len(shape))]
    body = st.BufferStore(b, tir.Mul(BufferLoad(a, loops), factor), loops)
    for v, extent in reversed(list(zip(loops, shape))):
        body = st.For(v, 0, extent, SERIAL, body)
    return primfunc([a, b, factor], body, "scale")


def arrays(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape), np.zeros(shape, np.float32)


def test_a_right_call():
    x, out = arrays(2, 3)
    status, _ = Packed(scale((2, 3)))(tensor(x), tensor(out), 2.0)
    assert status == 0
    np.testing.assert_array_equal(out, x * 2)


@pytest.mark.parametrize("shape", [(2, 3), ()])
def test_data_that_is_nowhere(shape):
    x, out = arrays(*shape)
    lost = tensor(x)
    lost.data = None
    status, text = Packed(scale(shape))(lost, tensor(out), 2.0)
    assert status == -1 and "argument 0 (A): expected the data of a tensor of shape" in text and "null pointer" in text


def test_no_data_is_fine_where_there_are_no_elements():
    empty = np.zeros((0, 3), np.float32)
    lost = tensor(empty)
    lost.data = None
    assert Packed(scale((0, 3)))(lost, tensor(empty), 2.0)[0] == 0


def test_accepted_variations():
    call = Packed(scale((2, 3)))
    x, out = arrays(2, 3)
    assert call(tensor(x, strides=(3, 1)), tensor(out), 3)[0] == 0  # an integer for a float, explicit compact strides
    np.testing.assert_array_equal(out, x * 3)
    assert call(tensor(x), tensor(out), 1.0, codes=[13, 3, 2])[0] == 0  # arrays and opaque handles
    store = np.arange(8, dtype=np.float32)
    assert call(tensor(store, shape=(2, 3), offset=8), tensor(out), 1.0)[0] == 0
    np.testing.assert_array_equal(out.ravel(), store[2:])


@pytest.mark.parametrize("change, message", [
    (dict(shape=(2, 4)), r"argument 0 \(A\): expected shape \(2, 3\), got 4 in dimension 1"),
    (dict(shape=(6,)), r"argument 0 \(A\): expected rank 2 with shape \(2, 3\), got rank 1"),
    (dict(dtype=DLDataType(2, 64, 1)), r"argument 0 \(A\): expected dtype float32, got type code 2 with 64 bits and 1 lanes"),
    (dict(device=2), r"argument 0 \(A\): expected a tensor on the host"),
    (dict(strides=(1, 2)), r"argument 0 \(A\): expected stride 1 in dimension 1 of a tensor of shape \(2, 3\), got 2"),
    (dict(offset=2), r"argument 0 \(A\): expected data aligned to 4 bytes"),
])
def test_refused_tensors(change, message):
    import re

    x, out = arrays(2, 3)
    status, text = Packed(scale((2, 3)))(tensor(x, **change), tensor(out), 2.0)
    assert status == -1 and re.search(message, text), text


def test_refused_arguments():
    x, out = arrays(2, 3)
    call = Packed(scale((2, 3)))
    assert "expected 3 arguments" in call(tensor(x), tensor(out))[1]
    assert "argument 1 (B): expected a tensor, got type code 0" in call(tensor(x), 7, 2.0)[1]
    assert "argument 2 (factor): expected a number (float32)" in call(tensor(x), tensor(out), 0, codes=[7, 7, 11])[1]
    assert "got a null pointer" in call(0, tensor(out), 2.0, codes=[7, 7, 2])[1]


def test_strides_do_not_matter_where_they_are_not_used():
    x, out = arrays(1, 3)
    assert Packed(scale((1, 3)))(tensor(x, strides=(77, 1)), tensor(out), 1.0)[0] == 0
    empty = np.zeros((0, 3), np.float32)
    assert Packed(scale((0, 3)))(tensor(empty, strides=(5, 9)), tensor(empty), 1.0)[0] == 0


def test_given_strides_are_checked():
    store, out = np.arange(8, dtype=np.float32), np.zeros((2, 3), np.float32)
    call = Packed(scale((2, 3), strides=(4, 1)))
    assert call(tensor(store, shape=(2, 3), strides=(4, 1)), tensor(out), 1.0)[0] == 0
    np.testing.assert_array_equal(out, store.reshape(2, 4)[:, :3])
    assert "expected stride 4 in dimension 0" in call(tensor(store, shape=(2, 3)), tensor(out), 1.0)[1]


def test_shape_variables_are_bound_and_must_agree():
    n = tir.SizeVar("n")
    a, b = decl_buffer((n,), name="A"), decl_buffer((n,), name="B")
    i = tir.Var("i")
    func = primfunc([a, b], st.For(i, 0, n, SERIAL, st.BufferStore(b, tir.Add(BufferLoad(a, [i]), f32(1)), [i])), "plus")
    assert emit_kernel(func).implicit == ((0, "shape", 0),)
    call = Packed(func)
    for size in (0, 1, 9):
        x, out = arrays(size)
        assert call(tensor(x), tensor(out))[0] == 0
        np.testing.assert_array_equal(out, x + 1)
    status, text = call(tensor(np.zeros(3, np.float32)), tensor(np.zeros(4, np.float32)))
    assert status == -1 and "argument 1 (B): expected shape (n,), got 4 in dimension 0" in text


def test_workspaces_are_allocated():
    a, b = decl_buffer((4,), name="A"), decl_buffer((4,), name="B")
    outer_var, outer = local("outer", 4096, scope="global")
    inner_var, inner = local("inner", 4096, scope="global")
    i, j, k = tir.Var("i"), tir.Var("j"), tir.Var("k")
    fill = st.For(j, 0, 4096, SERIAL, st.BufferStore(outer, tir.Cast("float32", j), [j]))
    copy = st.For(k, 0, 4096, SERIAL, st.BufferStore(inner, tir.Add(BufferLoad(outer, [k]), BufferLoad(a, [i])), [k]))
    work = st.For(i, 0, 4, PARALLEL, allocate(inner_var, inner, st.SeqStmt([copy, st.BufferStore(b, BufferLoad(inner, [i * 1000]), [i])])))
    x, out = arrays(4)
    status, text = Packed(primfunc([a, b], allocate(outer_var, outer, st.SeqStmt([fill, work])), "work"))(tensor(x), tensor(out))
    assert (status, text) == (0, "")
    np.testing.assert_array_equal(out, x * 1001)


def test_results():
    n = tir.Var("n", "int32")
    call = Packed(primfunc([n], st.Evaluate(tir.Call("int32", "tir.ret", [tir.Add(n, n)])), "twice"))
    assert call(21)[0] == 0 and call.ret.v_int64 == 42 and call.ret_code.value == 0
    x = tir.Var("x", "float32")
    call = Packed(primfunc([x], st.Evaluate(tir.Call("float32", "tir.ret", [tir.Mul(x, f32(0.5))])), "half"))
    assert call(3.0)[0] == 0 and call.ret.v_float64 == 1.5 and call.ret_code.value == 2
