"""Loop programs to object code by way of C, compiled by the machine's C compiler.

A kernel's C file has a fast entry, as kernels made by LLVM have.  The packed entry, with its checks of arguments, is made by LLVM and
calls the fast one.
"""
from __future__ import annotations

from typing import Any, Mapping, NamedTuple

from ...support.errors import UnsupportedOpError
from ...support.names import c_identifier
from ...tir.function import PrimFunc
from ..codegen.c import CSource, emit_c_kernel

_SCALARS = {"int32": "int32_t", "int64": "int64_t", "float32": "float", "float64": "double"}


class CText(NamedTuple):
    """A kernel's C file: its text, the bytes of scratch memory it needs, the types of its parameters (``handle`` or the scalar's)."""

    text: str
    workspace_bytes: int
    arg_types: tuple[str, ...]


def c_text(func: PrimFunc, symbol: str) -> CText:
    """The file of a flat loop program, with the entry ``<symbol>__fast(parameters…, workspace)``.

    UnsupportedOpError for sizes that only the inputs tell, and for what C has no form for.
    """
    from ..codegen.llvm.kernel import implicit_variables

    unknown = implicit_variables(func)
    if unknown:
        raise UnsupportedOpError(f"{symbol}: the target c needs static shapes, but {unknown[0][0].name} is known from the arguments only: fix the input "
                                 "shapes, hand the size over as a parameter, or build for llvm")
    kernel = emit_c_kernel(func, f"{symbol}__body")
    types = tuple(var.dtype for var in func.params)
    names = [f"a{i}" for i in range(len(types))]
    declared = [*(f"{_parameter(t, symbol)} {n}" for t, n in zip(types, names)), "uint8_t* workspace"]
    signature = f"int32_t {symbol}__fast({', '.join(declared)})"
    arguments = ", ".join([*names, *(["workspace"] if kernel.workspace_bytes else [])])
    entry = f"{signature} {{\n    (void)workspace;\n    return {kernel.symbol}({arguments});\n}}\n"
    return CText(CSource(symbol, [kernel], [entry], (), (), [f"{signature};"]).text, kernel.workspace_bytes, types)


def _parameter(dtype: str, symbol: str) -> str:
    found = "void*" if dtype == "handle" else _SCALARS.get(dtype)
    if found is None:
        raise UnsupportedOpError(f"{symbol}: the target c takes scalars of the types {', '.join(_SCALARS)}, got {dtype}")
    return found


def packed_entry(func: PrimFunc, symbol: str, workspace_bytes: int) -> bytes:
    """Object code for this machine of the packed entry ``symbol``, which checks its arguments and calls the fast entry."""
    from ..codegen.llvm.kernel import emit_packed_entry
    from ..cpu import resolve_cpu
    from .llvm import compile_text

    return compile_text(emit_packed_entry(func, symbol, workspace_bytes, resolve_cpu("llvm")), "llvm")


def library_text(funcs: Mapping[str, PrimFunc]) -> str:
    """Kernels by name as one C file, without further entries."""
    return CSource("Kernels", [emit_c_kernel(f, c_identifier(name)) for name, f in funcs.items()]).text


def object_code(text: str) -> bytes:
    """A C file compiled; BuildError when the compiler refuses it."""
    from ...runtime.c_compiler import compile_objects

    return compile_objects({"kernel.c": text})[0]


def compiler_name() -> str:
    """The C compiler's command, which is part of what object code is made from; empty when there is none."""
    from ...runtime.c_compiler import find_compiler

    return " ".join(find_compiler() or ())


def require_compiler() -> None:
    """BuildError, which says what to do, when this machine has no C compiler."""
    from ...runtime.c_compiler import c_command

    c_command()


def is_c(target: Any) -> bool:
    """Whether kernels for a target are C code."""
    return target.kind.name == "c"
