"""Blocks as plain loops: before and after, and what the interpreter says of both."""
from __future__ import annotations

import numpy as np

from anchorleg import tir
from anchorleg.ir import assert_structural_equal
from anchorleg.ir.expr import IntImm, Range
from anchorleg.tir import stmt as ts
from anchorleg.tir.block import Block, BlockRealize, BufferRegion, MatchBufferRegion
from anchorleg.tir.buffer import Buffer, BufferLoad
from anchorleg.tir.expr import IterVar, Var
from anchorleg.tir.functor import contains
from anchorleg.tir.transform.lower_blocks import lower_blocks


def _point(b: Buffer, *at: object) -> BufferRegion:
    return BufferRegion(b, [Range.from_min_extent(i, 1) for i in at])


def _sum_block() -> tir.PrimFunc:
    a, c = Buffer(None, "int32", [4, 6], name="A"), Buffer(None, "int32", [4], name="C")
    i, k, vi, vk = (Var(n) for n in ("i", "k", "vi", "vk"))
    axes = [IterVar(Range(0, 4), vi, IterVar.DataPar), IterVar(Range(0, 6), vk, IterVar.CommReduce)]
    body = ts.BufferStore(c, BufferLoad(c, [vi]) + BufferLoad(a, [vi, vk]), [vi])
    block = Block(axes, [_point(a, vi, vk)], [_point(c, vi)], "sum", body, ts.BufferStore(c, IntImm("int32", 0), [vi]))
    inner = ts.For(k, 0, 6, ts.ForKind.SERIAL, BlockRealize([i, k], True, block))
    return tir.PrimFunc([a, c], ts.For(i, 0, 4, ts.ForKind.SERIAL, inner))


def test_axes_become_their_values_and_init_the_first_round() -> None:
    func = _sum_block()
    after = lower_blocks(func)
    a, c = func.buffers
    i, k = Var("i"), Var("k")
    first = ts.IfThenElse(tir.op.equal(k, 0), ts.BufferStore(c, IntImm("int32", 0), [i]))
    step = ts.BufferStore(c, BufferLoad(c, [i]) + BufferLoad(a, [i, k]), [i])
    loops = ts.For(i, 0, 4, ts.ForKind.SERIAL, ts.For(k, 0, 6, ts.ForKind.SERIAL, ts.SeqStmt([first, step])))
    assert_structural_equal(after, func.replace(body=loops))


def test_a_function_without_blocks_is_left_alone() -> None:
    func = lower_blocks(_sum_block())
    assert lower_blocks(func) is func


def test_predicates_buffers_and_parts() -> None:
    a = Buffer(None, "int32", [8], name="A")
    b, part = Buffer(None, "int32", [8], name="B"), Buffer(None, "int32", [4], name="P", elem_offset=Var("offset"))
    i, vi, j = Var("i"), Var("vi"), Var("j")
    source = BufferRegion(b, [Range.from_min_extent(vi * 4, 4)])
    fill = ts.For(j, 0, 4, ts.ForKind.SERIAL, ts.BufferStore(part, tir.cast(vi * 10 + j, "int32"), [j]))
    copy = ts.For(j, 0, 4, ts.ForKind.SERIAL, ts.BufferStore(a, BufferLoad(part, [j]), [vi * 4 + j]))
    block = Block([IterVar(Range(0, 3), vi)], [], [], "rows", ts.SeqStmt([fill, copy]), None, [b], [MatchBufferRegion(part, source)])
    func = tir.PrimFunc([a], ts.For(i, 0, 3, ts.ForKind.SERIAL, BlockRealize([i], i < 2, block)))
    after = lower_blocks(func)
    assert not contains(after.body, lambda n: isinstance(n, (Block, BlockRealize)) or getattr(n, "buffer", None) is part)
    assert isinstance(after.body.body, ts.BufferRealize) and isinstance(after.body.body.body, ts.IfThenElse)
    for each in (func, after):
        out = np.zeros(8, "int32")
        tir.run_primfunc(each, out)
        np.testing.assert_array_equal(out, [0, 1, 2, 3, 10, 11, 12, 13])


def test_blocks_in_blocks_20000_deep() -> None:
    a = Buffer(None, "int64", [1], name="A")
    value: tir.PrimExpr = IntImm("int64", 7)
    axes = [Var(f"v{n}") for n in range(20000)]
    body: ts.Stmt = ts.BufferStore(a, axes[-1], [0])
    for n in reversed(range(20000)):
        outer = axes[n - 1] if n else value
        body = BlockRealize([outer], True, Block([IterVar(Range(0, 8), axes[n])], [], [], "", body))
    after = lower_blocks(tir.PrimFunc([a], body))
    assert isinstance(after.body, ts.BufferStore) and after.body.value.value == 7


def test_flattening_lowers_blocks_first() -> None:
    flat = tir.transform.flatten(_sum_block())
    a, c = np.arange(24, dtype="int32").reshape(4, 6), np.zeros(4, "int32")
    tir.run_primfunc(flat, a, c)
    np.testing.assert_array_equal(c, a.sum(1))
