"""Inputs and outputs as memory to plan: the main function allocates them instead of taking them as parameters."""
from __future__ import annotations

from typing import Any

from ...ir.expr import IntImm
from ...ir.module import IRModule
from ...ir.op import Op
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ...support.errors import ArgumentError
from .. import expr as tir
from .. import stmt as ts
from ..analysis import buffer_access
from ..function import PrimFunc
from ..functor import post_order
from .utils import INPUT_TENSOR_ATTR, OUTPUT_TENSOR_ATTR

_MAIN = "__tvm_main__"


def create_allocates_for_io() -> Pass:
    """The pass.

    Every tensor of ``__tvm_main__`` becomes an allocation annotated ``input_tensor`` or ``output_tensor`` with its parameter's name: an
    output, if anything writes to it, in the function or in those of the module it calls.  ArgumentError for a tensor that is read as
    well as written, or neither.
    """
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        if _MAIN not in mod:
            raise ArgumentError(f"the module has no function {_MAIN!r}: run AOTLowerMain first")
        new = mod.copy()
        new[mod.get_global_var(_MAIN)] = _without_io(mod[_MAIN], mod)
        return new

    return ModulePass(run, PassInfo(0, "tir.usmp.CreateAllocatesForIO"))


def _without_io(main: PrimFunc, mod: IRModule) -> PrimFunc:
    read, written = _uses(main, mod)
    body, params = main.body, []
    for param, b in zip(main.params, main.buffers):
        if b is None:
            params.append(param)
            continue
        is_input, is_output = id(b.data) in read, id(b.data) in written
        if is_input == is_output:
            raise ArgumentError(f"the tensor {param.name!r} is expected to be read or written, but it is {'both' if is_input else 'neither'}")
        notes = {OUTPUT_TENSOR_ATTR if is_output else INPUT_TENSOR_ATTR: param.name}
        body = ts.Allocate(b.data, b.dtype, b.shape, IntImm("bool", 1), body, notes)
    return PrimFunc(params, body, main.ret_type, None, main.attrs)


def _uses(main: PrimFunc, mod: IRModule) -> tuple[set[int], set[int]]:
    """Ids of the pointers of ``main`` that are read and that are written, through calls of the module's functions."""
    functions = {g.name_hint: f for g, f in mod.functions.items() if isinstance(f, PrimFunc)}
    read: set[int] = set()
    written: set[int] = set()
    own = {id(b.data): id(b.data) for b in main.buffers if b is not None}
    todo: list[tuple[PrimFunc, dict[int, int]]] = [(main, own)]
    done: set[tuple[Any, ...]] = set()
    while todo:
        func, aliases = todo.pop()
        found = buffer_access(func.body)
        read.update(aliases[id(b.data)] for b in found.reads if id(b.data) in aliases)
        written.update(aliases[id(b.data)] for b in found.writes if id(b.data) in aliases)
        for callee, args in _calls(func, functions):
            inner = {id(b.data): aliases[id(a)] for a, b in zip(args, callee.buffers) if b is not None and id(a) in aliases}
            key = (id(callee), *sorted(inner.items()))
            if inner and key not in done:
                done.add(key)
                todo.append((callee, inner))
    return read, written


def _calls(func: PrimFunc, functions: dict[str, PrimFunc]) -> list[tuple[PrimFunc, tuple[Any, ...]]]:
    found: list[tuple[PrimFunc, tuple[Any, ...]]] = []
    for n in post_order(func.body):
        if isinstance(n, tir.Call) and isinstance(n.op, Op) and n.op.name in ("tir.call_extern", "tir.tvm_call_cpacked"):
            callee = functions.get(getattr(n.args[0], "value", ""))
            if callee is not None:
                found.append((callee, n.args[1:]))
    return found


register_pass("tir.usmp.CreateAllocatesForIO", create_allocates_for_io)

__all__ = ["create_allocates_for_io"]
