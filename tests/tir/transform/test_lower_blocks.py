"""Blocks as plain loops: before and after, and what the interpreter says of both."""
from __future__ import annotations

import numpy as np
import pytest

from anchorleg import tir
from anchorleg.ir import assert_structural_equal
from anchorleg.ir.expr import IntImm, Range
from anchorleg.tir import stmt as ts
from anchorleg.tir.block import Block, BlockRealize, BufferRegion, MatchBufferRegion
from anchorleg.tir.buffer import Buffer, BufferLoad
from anchorleg.tir.expr import IterVar, Var
from anchorleg.tir.functor import contains
from anchorleg.support.errors import ArgumentError
from anchorleg.tir import transform as T
from anchorleg.tir.transform import lower_blocks


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
    assert isinstance(after.body.body, ts.Allocate) and isinstance(after.body.body.body.body, ts.IfThenElse)
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


def _both(func: tir.PrimFunc, *steps: object) -> None:
    for step in steps:
        func = step(func)  # type: ignore[operator]
    a, c = np.arange(24, dtype="int32").reshape(4, 6), np.zeros(4, "int32")
    tir.run_primfunc(func, a, c)
    np.testing.assert_array_equal(c, a.sum(1))


def test_single_steps_keep_the_meaning() -> None:
    func = _sum_block()
    after = T.lower_init_block(func)
    block = after.body.body.body.block
    assert block.init is None and isinstance(block.body.seq[0], ts.IfThenElse) and len(block.iter_vars) == 2
    opaque = T.convert_blocks_to_opaque(after)
    realize = opaque.body.body.body
    assert realize.iter_values == () and realize.block.iter_vars == () and realize.block.reads[0].region[1].min is opaque.body.body.loop_var
    plain = T.lower_opaque_block(opaque)
    assert not contains(plain.body, lambda n: isinstance(n, Block))
    for steps in ((), (T.lower_init_block,), (T.lower_init_block, T.convert_blocks_to_opaque),
                  (T.lower_init_block, T.convert_blocks_to_opaque, T.lower_match_buffer, T.lower_opaque_block)):
        _both(func, *steps)


def test_opening_a_block_with_axes_is_refused() -> None:
    with pytest.raises(ArgumentError, match="ConvertBlocksToOpaque"):
        T.lower_opaque_block(_sum_block())


def test_opened_blocks_lose_loops_that_run_once_and_bind_threads() -> None:
    a = Buffer(None, "int32", [8], name="A")
    i, j = Var("i"), Var("j")
    thread = IterVar(None, Var("", "int32"), IterVar.ThreadIndex, "threadIdx.x")
    body = BlockRealize((), True, Block([], [], [], "", ts.BufferStore(a, IntImm("int32", 1), [i * 2 + j])))
    inner = ts.For(j, 1, 1, ts.ForKind.SERIAL, body)
    after = T.lower_opaque_block(tir.PrimFunc([a], ts.For(i, 0, 4, ts.ForKind.THREAD_BINDING, inner, thread)))
    assert after.body.attr_key == "thread_extent" and after.body.node.var is i
    assert_structural_equal(after.body.body, ts.BufferStore(a, IntImm("int32", 1), [i * 2 + 1]))


def test_strided_buffers_get_memory_for_their_gaps() -> None:
    a, b = Buffer(None, "int32", [2], name="A"), Buffer(None, "int32", [2, 3], [16, 2], name="B")
    stores = ts.SeqStmt([ts.BufferStore(b, IntImm("int32", 5), [1, 2]), ts.BufferStore(a, BufferLoad(b, [1, 2]), [0])])
    func = tir.PrimFunc([a], BlockRealize((), True, Block([], [], [], "", stores, None, [b])))
    after = lower_blocks(func)
    assert [int(e) for e in after.body.extents] == [2, 16]
    out = np.zeros(2, "int32")
    tir.run_primfunc(T.flatten(func), out)
    assert out[0] == 5
