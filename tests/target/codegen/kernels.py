"""Building and running of flat loop programs, for the tests of code generation."""
from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from anchorleg.ir.attrs import DictAttrs
from anchorleg.ir.expr import FloatImm, IntImm, PrimExpr
from anchorleg.ir.type import PointerType, PrimType
from anchorleg.runtime.native import NativeLibrary
from anchorleg.runtime.dtype import numpy_dtype
from anchorleg.target.build.llvm import compile_text
from anchorleg.target.codegen.llvm import Kernel, emit_kernel
from anchorleg.tir import expr as tir
from anchorleg.tir import stmt as st
from anchorleg.tir.buffer import Buffer, BufferLoad, decl_buffer
from anchorleg.tir.function import PrimFunc
from anchorleg.tir.interpreter import run_primfunc

SERIAL, PARALLEL, UNROLLED = st.ForKind.SERIAL, st.ForKind.PARALLEL, st.ForKind.UNROLLED
TRUE = IntImm("bool", 1)


def imm(value: int) -> IntImm:
    """An index constant."""
    return IntImm("int64", value)


def f32(value: float) -> FloatImm:
    """A float32 constant."""
    return FloatImm("float32", value)


def ramp(base: PrimExpr | int, lanes: int, stride: int = 1) -> tir.Ramp:
    """A vector index."""
    return tir.Ramp(imm(base) if isinstance(base, int) else base, imm(stride), lanes)


def local(name: str, size: int, dtype: str = "float32", scope: str = "local") -> tuple[tir.Var, Buffer]:
    """A local buffer and its data variable."""
    var = tir.Var(name, "handle", PointerType(PrimType(dtype), scope))
    return var, Buffer(var, dtype, (size,), name=name, scope=scope)


def allocate(var: tir.Var, buffer: Buffer, body: st.Stmt) -> st.Allocate:
    """The buffer's memory around ``body``."""
    return st.Allocate(var, buffer.dtype, buffer.shape, TRUE, body)


def primfunc(params: list[Any], body: st.Stmt, name: str = "kernel") -> PrimFunc:
    """A function with its linker's name."""
    return PrimFunc(params, body, attrs=DictAttrs({"global_symbol": name}))


def elementwise(fn: Any, dtypes: list[str], n: int, lanes: int = 1) -> PrimFunc:
    """out[i] = fn(in0[i], …) for the buffers of ``dtypes`` (the last is the output)."""
    buffers = [decl_buffer((n,), d, name=f"A{k}") for k, d in enumerate(dtypes)]
    i = tir.Var("i")
    index = ramp(i * lanes, lanes) if lanes > 1 else i
    value = fn(*(BufferLoad(b, [index]) for b in buffers[:-1]))
    return primfunc(buffers, st.For(i, 0, n // lanes, SERIAL, st.BufferStore(buffers[-1], value, [index])))


class Built:
    """A kernel in this process."""

    def __init__(self, func: PrimFunc, target: str = "llvm") -> None:
        self.func, self.kernel = func, emit_kernel(func, target)
        self.library = NativeLibrary.from_objects([compile_text(self.kernel.ir_text, target)], [self.kernel.symbol, self.kernel.fast_symbol])

    def fast(self, *args: Any) -> int:
        """Calls the fast entry with arrays and numbers; returns its status."""
        k: Kernel = self.kernel
        kinds = [ctypes.c_void_p if isinstance(a, np.ndarray) else ctypes.c_float if isinstance(a, float) else ctypes.c_int64 for a in args]
        call = ctypes.CFUNCTYPE(ctypes.c_int, *kinds, ctypes.c_void_p)(self.library[k.fast_symbol])
        space = np.zeros(k.workspace_bytes + 16 * k.workspace_bytes_per_task + 64, np.uint8)
        start = space.ctypes.data + -space.ctypes.data % 64
        return call(*(a.ctypes.data if isinstance(a, np.ndarray) else a for a in args), start)


def run(func: PrimFunc, *args: Any, target: str = "llvm") -> None:
    """Builds and runs; fails unless the kernel reports success."""
    assert Built(func, target).fast(*args) == 0


def same_as_interpreter(func: PrimFunc, arrays: list[np.ndarray], rtol: float = 0.0, atol: float = 0.0, target: str = "llvm") -> None:
    """Runs the kernel and the interpreter on copies; all arrays must come out alike."""
    ours, theirs = [a.copy() for a in arrays], [a.copy() for a in arrays]
    run(func, *ours, target=target)
    run_primfunc(func, *theirs)
    for a, b in zip(ours, theirs):
        if rtol or atol:
            np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol=rtol, atol=atol)
        else:
            np.testing.assert_array_equal(a, b)


def values(dtype: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Random elements of ``dtype``, small enough for a few operations."""
    if dtype == "bool":
        return rng.integers(0, 2, n).astype(bool)
    if "int" in dtype:
        low = 0 if dtype.startswith("u") else -100
        return rng.integers(low, 100, n).astype(dtype)
    return (rng.standard_normal(n) * 4).astype(np.float32).astype(numpy_dtype(dtype))
