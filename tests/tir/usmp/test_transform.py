"""Planned memory in programs: before and after, and that the planned program computes what the other does."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anchorleg import tir
from anchorleg.ir import IRModule, assert_structural_equal
from anchorleg.ir.memory_pools import ConstantPoolInfo, WorkspaceMemoryPools, WorkspacePoolInfo
from anchorleg.script import ir as I  # noqa: E741
from anchorleg.script import tir as T
from anchorleg.support.errors import ArgumentError
from anchorleg.target import Target
from anchorleg.tir.functor import post_order
from anchorleg.tir.usmp.algo import hill_climb
from anchorleg.tir.usmp.analysis import extract_buffer_info
from anchorleg.tir.usmp.transform import assign_pool_info, convert_pool_allocations_to_offsets
from anchorleg.tir.usmp.utils import CANDIDATE_MEMORY_POOL_ATTR, PoolAllocation, assign_stmt_pool_allocations


@I.ir_module
class Program:
    @T.prim_func
    def __tvm_main__(A: T.Buffer((16,), "int8"), B: T.Buffer((16,), "int8")):
        x = T.allocate([16], "int8", "global")
        T.evaluate(T.call_extern("int32", "double", A.data, x))
        T.evaluate(T.call_extern("int32", "double", x, B.data))
        T.evaluate(T.call_extern("int32", "outside", x))

    @T.prim_func
    def double(A: T.Buffer((16,), "int8"), B: T.Buffer((16,), "int8")):
        t = T.allocate([16], "int8", "global")
        S = T.Buffer((16,), "int8", data=t)
        for i in range(16):
            S[i] = A[i]
        for i in range(16):
            B[i] = S[15 - i] * T.int8(2)


def _planned(mod: IRModule, bare: bool) -> IRModule:
    mod = assign_pool_info()(mod)
    found = extract_buffer_info(mod["__tvm_main__"], mod)
    places = hill_climb(list(found.buffer_info_stmts), found.memory_pressure)
    return convert_pool_allocations_to_offsets(assign_stmt_pool_allocations(found.buffer_info_stmts, places), bare)(mod)


def test_allocations_become_places_in_a_pool_that_is_handed_down() -> None:
    @I.ir_module
    class Expected:
        @T.prim_func
        def __tvm_main__(A: T.Buffer((16,), "int8"), B: T.Buffer((16,), "int8"), p: T.handle("uint8")):
            P = T.match_buffer(p, [32], "uint8", strides=[1], align=16)
            x: T.handle("int8") = T.address_of(P[0])
            T.evaluate(T.call_extern("int32", "double", A.data, x, P.data))
            T.evaluate(T.call_extern("int32", "double", x, B.data, P.data))
            T.evaluate(T.call_extern("int32", "outside", x))

        @T.prim_func
        def double(A: T.Buffer((16,), "int8"), B: T.Buffer((16,), "int8"), p: T.handle("uint8")):
            P = T.match_buffer(p, [32], "uint8", strides=[1], align=16)
            t: T.handle("int8") = T.address_of(P[16])
            S = T.Buffer((16,), "int8", data=t)
            for i in range(16):
                S[i] = A[i]
            for i in range(16):
                B[i] = S[15 - i] * T.int8(2)

    assert_structural_equal(_planned(Program, True), Expected)


def test_attributes_list_the_pools_and_their_sizes() -> None:
    after = _planned(Program, False)
    for args in (after.get_attr("pool_args"), after["double"].get_attr("pool_args")):
        (pool,) = args
        assert (pool.pool_info.pool_name, pool.allocated_size, pool.pool_var_idx) == ("global_workspace", 32, 2)
    assert Program["double"].get_attr("pool_args") is None


def test_the_planned_kernel_computes_the_same() -> None:
    a, want, got = np.arange(16, dtype="int8"), np.zeros(16, "int8"), np.zeros(16, "int8")
    tir.run_primfunc(Program["double"], a, want)
    tir.run_primfunc(_planned(Program, True)["double"], a, got, np.zeros(32, "uint8"))
    np.testing.assert_array_equal(got, want)


def test_constants_become_contents_of_their_pool() -> None:
    rom = ConstantPoolInfo("rom", [])
    notes = {CANDIDATE_MEMORY_POOL_ATTR: [rom]}

    @I.ir_module
    class Constant:
        @T.prim_func
        def __tvm_main__(A: T.Buffer((2,), "int8"), handle: T.handle):
            c = T.allocate_const([7, 8], "int8", [2], annotations=notes)
            T.evaluate(T.tvm_call_cpacked("f", c, A.data, handle))

    stmt = Constant["__tvm_main__"].body
    after = convert_pool_allocations_to_offsets({stmt: PoolAllocation(rom, 32)})(Constant)
    (pool,) = after.get_attr("pool_args")
    (info,) = pool.pool_info.constant_info_array
    assert (info.byte_offset, info.data.numpy().tolist(), pool.allocated_size, pool.pool_var_idx) == (32, [7, 8], 34, 1)
    assert rom.constant_info_array == [] and after["__tvm_main__"].params[-1].name == "handle"


def _pools_of(mod: IRModule) -> list[list[str]]:
    found: list[list[str]] = []
    for f in mod.functions.values():
        found += [[p.pool_name for p in n.annotations[CANDIDATE_MEMORY_POOL_ATTR]] for n in post_order(f.body) if isinstance(n, tir.Allocate)]
    return found


def test_pools_are_those_the_target_reaches() -> None:
    llvm, c = Target("llvm"), Target("c")
    pools = WorkspaceMemoryPools([WorkspacePoolInfo("near", [c]), WorkspacePoolInfo("far", [llvm, c])])
    targets = iter([llvm, c])
    mod = Program.with_functions({g: f.with_attr("target", next(targets)) for g, f in Program.items()}).with_attr("workspace_memory_pools", pools)
    after = assign_pool_info()(mod)
    assert _pools_of(after) == [["far"], ["near", "far"]]
    assert _pools_of(assign_pool_info()(Program)) == [["global_workspace"]] * 2
    assert assign_pool_info()(after) is after


def test_a_module_without_main_is_refused() -> None:
    other: Any = IRModule({"f": Program["double"]})
    with pytest.raises(ArgumentError, match="__tvm_main__"):
        convert_pool_allocations_to_offsets({})(other)
