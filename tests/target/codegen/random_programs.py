"""Random small loop programs that access their buffers within bounds."""
from __future__ import annotations

import random

from anchorleg.ir.expr import FloatImm, IntImm, PrimExpr
from anchorleg.tir import expr as tir
from anchorleg.tir import op
from anchorleg.tir import stmt as st
from anchorleg.tir.buffer import Buffer, BufferLoad, decl_buffer
from anchorleg.tir.function import PrimFunc

from .kernels import SERIAL, UNROLLED, allocate, imm, local, primfunc

DTYPES = ["float32", "int32", "int64", "uint8", "int8", "bool", "float64"]


class Program:
    """One random program; equal seeds give equal programs."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.inputs = [decl_buffer((self.r.randrange(5, 40),), d, name=f"A{k}") for k, d in enumerate(DTYPES)]
        self.outputs = [decl_buffer((self.r.randrange(20, 64),), self.r.choice(DTYPES), name=f"O{k}") for k in range(2)]

    def func(self) -> PrimFunc:
        """The function."""
        return primfunc(self.inputs + self.outputs, st.SeqStmt([self.stmt([], 4, []) for _ in range(3)]))

    def index(self, loops: list[tir.Var], extent: int) -> PrimExpr:
        r = self.r
        if not loops or r.random() < 0.1:
            return imm(r.randrange(extent))
        e = r.choice(loops) * r.randrange(1, 4) + r.randrange(5)
        if r.random() < 0.4:
            e = e + r.choice(loops) * r.randrange(-2, 5)
        if r.random() < 0.3:
            e = op.floordiv(e, r.randrange(1, 6))
        if r.random() < 0.2:
            e = op.truncdiv(e - 7, r.randrange(1, 6))
        return op.floormod(e, extent)

    def leaf(self, loops: list[tir.Var], buffers: list[Buffer], dtype: str) -> PrimExpr:
        r, fitting = self.r, [b for b in buffers if b.dtype == dtype]
        if fitting and r.random() < 0.8:
            b = r.choice(fitting)
            return BufferLoad(b, [self.index(loops, b.shape[0].value)])
        if dtype.startswith("float"):
            return FloatImm(dtype, r.choice([0.0, 1.0, -2.5, 3.25]))
        if dtype == "int64" and loops and r.random() < 0.5:
            return r.choice(loops)
        return IntImm(dtype, r.randrange(0, 2 if dtype == "bool" else 50))

    def expr(self, loops: list[tir.Var], buffers: list[Buffer], dtype: str, depth: int) -> PrimExpr:
        r = self.r
        if depth == 0 or r.random() < 0.15:
            return self.leaf(loops, buffers, dtype)

        def g(d: str = dtype) -> PrimExpr:
            return self.expr(loops, buffers, d, depth - 1)

        k, is_float = r.random(), dtype.startswith("float")
        if dtype == "bool":
            return self._bool(g, k)
        if k < 0.35:
            return r.choice([tir.Add, tir.Sub, tir.Mul])(g(), g())
        if k < 0.45:
            return r.choice([tir.Min, tir.Max])(g(), g())
        if k < 0.65:
            return tir.Select(g("bool"), g(), g()) if k < 0.55 else op.if_then_else(g("bool"), g(), g())
        if k < 0.75:
            source = r.choice(["int32", "int64", "uint8", "bool", "int8"] + ["float32"] * is_float)
            return tir.Cast(dtype, g(source)) if source != dtype else g()
        if is_float:
            return op.abs(g())
        if k < 0.9:
            divisor = IntImm(dtype, r.choice([1, 2, 3, 4, 7, 8, 16])) if r.random() < 0.8 else tir.Max(g(), IntImm(dtype, 1))
            return r.choice([tir.FloorDiv, tir.FloorMod, tir.Div, tir.Mod])(g(), divisor)
        if k < 0.95:
            return r.choice([op.bitwise_and, op.bitwise_or, op.bitwise_xor])(g(), g())
        v = tir.Var("v", dtype)
        return tir.Let(v, g(), tir.Add(v, v))

    def _bool(self, g, k: float) -> PrimExpr:
        r = self.r
        if k < 0.6:
            d = r.choice(["int32", "float32", "int64", "uint8"])
            return r.choice([tir.LT, tir.LE, tir.GT, tir.GE, tir.EQ, tir.NE])(g(d), g(d))
        return r.choice([tir.And, tir.Or])(g(), g()) if k < 0.8 else tir.Not(g())

    def store(self, loops: list[tir.Var], locals_: list[Buffer]) -> st.Stmt:
        r = self.r
        b = r.choice(self.outputs + locals_ * 2)
        extent = b.shape[0].value
        value = self.expr(loops, self.inputs + locals_ + self.outputs, b.dtype, r.randrange(1, 4))
        place = imm(r.randrange(extent)) if not loops else op.floormod(r.choice(loops) * r.randrange(1, 3) + r.randrange(3), extent)
        if b in locals_ and r.random() < 0.5:  # static, so that the buffer may live in registers
            unrolled = [v for v in loops if v.name.startswith("u")]
            place = unrolled[0] if unrolled and extent >= 4 else imm(r.randrange(extent))
        return st.BufferStore(b, value, [place])

    def stmt(self, loops: list[tir.Var], depth: int, locals_: list[Buffer]) -> st.Stmt:
        r, k = self.r, self.r.random()
        if depth == 0 or k < 0.3:
            return self.store(loops, locals_)
        if k < 0.55:
            return self._loop(loops, depth, locals_)
        if k < 0.7:
            return st.SeqStmt([self.stmt(loops, depth - 1, locals_) for _ in range(r.randrange(2, 4))])
        if k < 0.82:
            condition = self.expr(loops, self.inputs + self.outputs, "bool", 2)
            return st.IfThenElse(condition, self.stmt(loops, depth - 1, locals_), self.stmt(loops, depth - 1, locals_) if r.random() < 0.5 else None)
        if k < 0.9:
            value = r.choice(loops) * 2 + 1 if loops else self.expr(loops, self.inputs, "int64", 2)
            return st.LetStmt(tir.Var("let", "int64"), value, self.stmt(loops, depth - 1, locals_))
        return self._scratch(loops, depth, locals_)

    def _loop(self, loops: list[tir.Var], depth: int, locals_: list[Buffer]) -> st.Stmt:
        r, kind = self.r, self.r.choice([SERIAL, SERIAL, UNROLLED])
        v = tir.Var(("u" if kind == UNROLLED else "i") + str(depth))
        extent, low = (r.randrange(1, 4), 0) if kind == UNROLLED else (r.randrange(1, 6), r.choice([0, 0, 1]))
        return st.For(v, low, extent, kind, self.stmt([*loops, v], depth - 1, locals_))

    def _scratch(self, loops: list[tir.Var], depth: int, locals_: list[Buffer]) -> st.Stmt:
        dtype, size = self.r.choice(["float32", "int32"]), self.r.randrange(3, 6)
        var, b = local(f"L{depth}", size, dtype)
        zero = FloatImm(dtype, 0.0) if dtype == "float32" else IntImm(dtype, 0)
        first = [st.BufferStore(b, zero, [imm(j)]) for j in range(size)]
        return allocate(var, b, st.SeqStmt(first + [self.stmt(loops, depth - 1, [*locals_, b]) for _ in range(2)]))
