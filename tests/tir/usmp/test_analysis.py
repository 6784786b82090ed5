"""Which buffers of a program live at the same time."""
from __future__ import annotations

from typing import Any

import pytest

from anchorleg.ir import IRModule
from anchorleg.ir.memory_pools import ConstantPoolInfo, WorkspacePoolInfo
from anchorleg.relay.backend.executor import Executor
from anchorleg.script import ir as I  # noqa: E741
from anchorleg.script import tir as T
from anchorleg.support.errors import ArgumentError
from anchorleg.tir.usmp.analysis import extract_buffer_info
from anchorleg.tir.usmp.utils import BufferInfoAnalysis, BufferInfoKind, PoolAllocation, get_io_pool_allocations

RAM, ROM = WorkspacePoolInfo("ram", ["llvm"]), ConstantPoolInfo("rom", ["llvm"])
POOLS, CONSTANTS = {"candidate_memory_pools": [RAM]}, {"candidate_memory_pools": [ROM]}
INPUT, OUTPUT = {**POOLS, "input_tensor": "image"}, {**POOLS, "output_tensor": "scores"}


def _conflicts(found: BufferInfoAnalysis) -> dict[str, list[str]]:
    return {b.name_hint: sorted(c.name_hint for c in b.conflicts) for b in found.buffer_info_stmts}


def _run(mod: IRModule, main: str = "main") -> BufferInfoAnalysis:
    return extract_buffer_info(mod[main], mod)


@I.ir_module
class Calls:
    @T.prim_func
    def main(A: T.Buffer((16,), "int8"), D: T.Buffer((16,), "int8")):
        x = T.allocate([16], "int8", "global", annotations=POOLS)
        y = T.allocate([16], "int8", "global", annotations=POOLS)
        z = T.allocate([16], "int8", "global", annotations=POOLS)
        T.evaluate(T.tvm_call_cpacked("step", A.data, x))
        T.evaluate(T.tvm_call_cpacked("step", x, y))
        T.evaluate(T.tvm_check_return(0, -1, T.call_extern("int32", "step", y, z)))
        T.evaluate(T.call_extern("int32", "elsewhere", z, D.data))

    @T.prim_func
    def step(A: T.Buffer((16,), "int8"), B: T.Buffer((16,), "int8")):
        t = T.allocate([32], "int8", "global", annotations=POOLS)
        S = T.Buffer((32,), "int8", data=t)
        for i in range(16):
            S[i] = A[i]
        for i in range(16):
            B[i] = S[i]


def test_lifetimes_reach_through_calls() -> None:
    found = _run(Calls)
    assert _conflicts(found) == {"x": ["t"], "y": ["t"], "z": ["t"], "t": ["x", "y", "z"]}  # a step has read its input before it writes
    assert found.memory_pressure == 48
    sizes = {b.name_hint: (b.size_bytes, b.alignment, [p.pool_name for p in b.pool_candidates]) for b in found.buffer_info_stmts}
    assert sizes["t"] == (32, 16, ["ram"]) and sizes["x"] == (16, 16, ["ram"])


def test_what_a_loop_touches_lives_for_all_of_it() -> None:
    @I.ir_module
    class Loop:
        @T.prim_func
        def main(A: T.Buffer((4,), "int8")):
            x = T.allocate([4], "int8", "global", annotations=POOLS)
            X = T.Buffer((4,), "int8", data=x)
            y = T.allocate([4], "int8", "global", annotations=POOLS)
            Y = T.Buffer((4,), "int8", data=y)
            z = T.allocate([4], "int8", "global", annotations=POOLS)
            Z = T.Buffer((4,), "int8", data=z)
            for i in range(4):
                X[0] = A[i]
                A[i] = X[0]
                Y[0] = A[i]
                A[i] = Y[0]
            Z[0] = A[0]
            A[0] = Z[0]

    assert _conflicts(_run(Loop)) == {"x": ["y"], "y": ["x"], "z": []}


def test_only_global_memory_of_known_size_outside_of_parallel_loops_counts() -> None:
    @I.ir_module
    class Kinds:
        @T.prim_func
        def main(A: T.Buffer((4,), "int8"), n: T.int32):
            local = T.allocate([4], "int8", "local")
            L = T.Buffer((4,), "int8", data=local)
            unknown = T.allocate([n], "int8", "global")
            U = T.Buffer((n,), "int8", data=unknown)
            for i in T.parallel(4):
                inside = T.allocate([4], "int8", "global")
                P = T.Buffer((4,), "int8", data=inside)
                P[i] = L[i] + U[i]
            workspace = T.allocate([4], "int32", "global.workspace", annotations=POOLS)
            W = T.Buffer((4,), "int32", data=workspace)
            W[0] = 1

    found = _run(Kinds)
    assert [(b.name_hint, b.size_bytes) for b in found.buffer_info_stmts] == [("workspace", 16)] and found.memory_pressure == 16


def test_constants_conflict_with_one_another_only() -> None:
    @I.ir_module
    class Constants:
        @T.prim_func
        def main(A: T.Buffer((2,), "int8")):
            c = T.allocate_const([1, 2], "int8", [2], annotations=CONSTANTS)
            C = T.Buffer((2,), "int8", data=c)
            d = T.allocate_const([3, 4], "int8", [2], annotations=CONSTANTS)
            D = T.Buffer((2,), "int8", data=d)
            x = T.allocate([2], "int8", "global", annotations=POOLS)
            X = T.Buffer((2,), "int8", data=x)
            X[0] = C[0]
            A[0] = X[0] + D[0]

    assert _conflicts(_run(Constants)) == {"c": ["d"], "d": ["c"], "x": []}


def test_inputs_and_outputs_keep_their_names() -> None:
    @I.ir_module
    class Border:
        @T.prim_func
        def main(A: T.Buffer((2,), "int8")):
            a = T.allocate([2], "int8", "global", annotations=INPUT)
            b = T.allocate([2], "int8", "global", annotations=OUTPUT)
            T.evaluate(T.call_extern("int32", "f", a, b))

    found = _run(Border)
    assert [(b.name_hint, b.kind) for b in found.buffer_info_stmts] == [("image", BufferInfoKind.Input), ("scores", BufferInfoKind.Output)]
    places = {b: PoolAllocation(RAM, 16 * i) for i, b in enumerate(found.buffer_info_stmts)}
    assert {n: p.byte_offset for n, p in get_io_pool_allocations(places).items()} == {"image": 0, "scores": 16}


def test_the_executor_says_how_buffers_are_aligned() -> None:
    aligned = Calls.with_attr("executor", Executor("aot", {"workspace-byte-alignment": 32}))
    assert {b.alignment for b in _run(aligned).buffer_info_stmts} == {32}


def test_an_allocation_without_pools_is_refused() -> None:
    @T.prim_func
    def f(A: T.Buffer((2,), "int8")):
        x = T.allocate([2], "int8", "global")
        T.evaluate(x)

    with pytest.raises(ArgumentError, match="'x' names no pools"):
        extract_buffer_info(f, IRModule({"f": f}))


def _chain(length: int) -> Any:
    lines = "\n".join(f"    v{i} = T.allocate([4], 'int8', 'global', annotations=POOLS)" for i in range(length))
    calls = "\n".join(f"    T.evaluate(T.call_extern('int32', 'f', v{i}, v{i + 1}))" for i in range(length - 1))
    from anchorleg.script import from_source

    return from_source(f"@T.prim_func\ndef main():\n{lines}\n{calls}\n", {"POOLS": POOLS})


def test_long_programs_need_no_recursion() -> None:
    found = extract_buffer_info(_chain(2000), IRModule())
    assert len(found.buffer_info_stmts) == 2000 and found.memory_pressure == 8
