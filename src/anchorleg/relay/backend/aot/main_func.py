"""The main function of a program as a loop program, for those who read or check it: what the C text of ``main`` says.

::

    def __tvm_main__(x: T.handle, output: T.handle):
        global_workspace = T.allocate([256], "uint8", "global")
        sid_0: T.handle = T.address_of(global_workspace_buffer[0])
        T.tvm_check_return(0, -1, T.call_extern("int32", "tvmgen_default_fused_nn_dense", x_buffer_var, p0_constant, sid_0))
        T.tvm_check_return(0, -1, T.call_extern("int32", "tvmgen_default_fused_nn_dense_1", sid_0, p1_constant, output_buffer_var))
"""
from __future__ import annotations

from typing import Any, Sequence

from ....ir.attrs import DictAttrs
from ....ir.expr import IntImm
from ....ir.type import PointerType, PrimType
from ....tir import expr as tir
from ....tir import op
from ....tir import stmt as ts
from ....tir.buffer import Buffer, BufferLoad
from ....tir.function import PrimFunc
from ..memory import MemoryLayout
from .program import CONSTANT, INPUT, OUTPUT, Copy, Place, Program

MAIN = "__tvm_main__"


def main_function(program: Program, layout: MemoryLayout, symbol: str, target: Any, external: Sequence[str], alignment: int) -> PrimFunc:
    """The loop program; pools named in ``external`` are parameters, the others are allocated around the calls."""
    return _MainFunction(program, layout, external, alignment).function(symbol, target)


class _MainFunction:
    def __init__(self, program: Program, layout: MemoryLayout, external: Sequence[str], alignment: int) -> None:
        self.program, self.layout, self.external, self.alignment = program, layout, list(external), alignment
        self.pools = {p.name: self._buffer(p.name, f"{p.name}_var", "uint8", [p.used]) for p in layout.pools if p.used}
        self.constants = [tir.Var(c.symbol, "handle", PointerType(PrimType(c.info.dtype))) for c in program.constants]
        self.border: list[tuple[tir.Var, Buffer]] = []
        self.where: dict[Place, tir.Var] = {}
        self.slots: dict[tuple[str, int], tir.Var] = {}
        for kind, tensors, places in ((INPUT, program.inputs, program.input_places), (OUTPUT, program.outputs, program.output_places)):
            for tensor, place in zip(tensors, places):
                if place.kind == kind:
                    buffer = self._buffer(tensor.symbol, f"{tensor.symbol}_buffer_var", tensor.info.dtype, tensor.info.shape)
                    self.border.append((tir.Var(tensor.symbol, "handle"), buffer))
                    self.where[place] = buffer.data

    def _buffer(self, name: str, data: str, dtype: str, shape: Sequence[int]) -> Buffer:
        return Buffer(tir.Var(data, "handle", PointerType(PrimType(dtype), "global")), dtype, list(shape), (), 0, f"{name}_buffer", self.alignment)

    def function(self, symbol: str, target: Any) -> PrimFunc:
        """The whole."""
        body = ts.seq(*(self._step(s) for s in self.program.steps))
        for (pool, offset), var in reversed(self.slots.items()):
            body = ts.LetStmt(var, op.address_of(BufferLoad(self.pools[pool], [IntImm("int64", offset)])), body)
        for name, buffer in self.pools.items():
            if name not in self.external:
                body = ts.Allocate(buffer.data, "uint8", list(buffer.shape), IntImm("bool", 1), body)
        for var, constant in zip(reversed(self.constants), reversed(self.program.constants)):
            body = ts.AllocateConst(var, constant.info.dtype, constant.info.shape, constant.data, body)
        given = [(tir.Var(n, "handle"), self.pools[n]) for n in self.external if n in self.pools]
        attrs = DictAttrs({"global_symbol": symbol, "runner_function": True, "target": target})
        return PrimFunc([v for v, _ in (*self.border, *given)], body, None, dict([*self.border, *given]), attrs)

    def _step(self, step: Any) -> ts.Stmt:
        if isinstance(step, Copy):
            return ts.Evaluate(op.call_extern("handle", "memcpy", self._pointer(step.target), self._pointer(step.source), step.size))
        pointers = [self._pointer(p) for p in (*step.args, *([step.scratch] if step.scratch is not None else []))]
        return ts.Evaluate(op.tvm_check_return(0, -1, op.call_extern("int32", step.kernel, *pointers)))

    def _pointer(self, place: Place) -> tir.Var:
        if place in self.where:
            return self.where[place]
        if place.kind == CONSTANT:
            return self.constants[place.index]
        found = self.layout.places[place.index]
        key = (found.pool, found.offset)
        if key not in self.slots:
            self.slots[key] = tir.Var(f"sid_{len(self.slots)}", "handle", PointerType(PrimType("uint8"), "global"))
        return self.slots[key]
