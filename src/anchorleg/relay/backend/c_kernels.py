"""Kernels for the target ``c``: C code that the machine's C compiler turns into object code.

Each has a fast entry, as kernels made by LLVM have, and none for packed calls.
"""
from __future__ import annotations

from typing import Any, Mapping, NamedTuple

from ...support.errors import UnsupportedOpError
from ...tir.function import PrimFunc


class CText(NamedTuple):
    """A kernel's C file: its text, the bytes of scratch memory it needs, the element types of its parameters."""

    text: str
    workspace_bytes: int
    arg_types: tuple[str, ...]


def c_text(func: PrimFunc, symbol: str) -> CText:
    """The file of a flat loop program, with the entry ``<symbol>__fast(pointers…, workspace)``.

    UnsupportedOpError for sizes that only the inputs tell.
    """
    from ...target.codegen.c import CSource, emit_c_kernel

    if any(var.dtype != "handle" for var in func.params):
        raise UnsupportedOpError(f"{symbol}: the target c needs static shapes: fix the input shapes, or build for llvm")
    kernel = emit_c_kernel(func, symbol)
    names = [f"a{i}" for i in range(len(func.params))]
    signature = f"int32_t {symbol}__fast({', '.join([*(f'void* {n}' for n in names), 'uint8_t* workspace'])})"
    arguments = ", ".join([*names, *(["workspace"] if kernel.workspace_bytes else [])])
    entry = f"{signature} {{\n    (void)workspace;\n    return {symbol}({arguments});\n}}\n"
    return CText(CSource(symbol, [kernel], [entry], (), (), [f"{signature};"]).text, kernel.workspace_bytes,
                 tuple(b.dtype if b is not None else "handle" for b in func.buffers))


def object_code(text: str) -> bytes:
    """A C file compiled; BuildError when the compiler refuses it."""
    from ...runtime.c_compiler import compile_objects

    return compile_objects({"kernel.c": text})[0]


def library_text(funcs: Mapping[str, PrimFunc]) -> str:
    """Kernels by name as one C file, without further entries."""
    from ...target.codegen.c import CSource, emit_c_kernel

    return CSource("Kernels", [emit_c_kernel(f, name) for name, f in funcs.items()]).text


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
