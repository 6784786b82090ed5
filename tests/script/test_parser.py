"""What each construct of the script language becomes, held against programs built by hand or run by the interpreter."""
from __future__ import annotations

import re

import numpy as np
import pytest

from anchorleg import tir
from anchorleg.ir import assert_structural_equal
from anchorleg.ir.expr import IntImm, Range
from anchorleg.ir.type import PointerType, PrimType
from anchorleg.script import ScriptError, from_source
from anchorleg.script import tir as T
from anchorleg.tir import run_primfunc
from anchorleg.tir import stmt as ts
from anchorleg.tir.buffer import Buffer, BufferLoad

SCALE = 3


def _body(func: tir.PrimFunc) -> ts.Stmt:
    return func.body


def test_a_loop_over_buffers_is_what_hand_made_nodes_are() -> None:
    @T.prim_func
    def double(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            B[i] = A[i] * T.float32(2)

    a, b, i = Buffer(None, "float32", [16], name="A"), Buffer(None, "float32", [16], name="B"), tir.Var("i", "int64")
    store = ts.BufferStore(b, BufferLoad(a, [i]) * tir.const(2.0, "float32"), [i])
    expected = tir.PrimFunc([a, b], ts.For(i, 0, 16, ts.ForKind.SERIAL, store)).with_attr("global_symbol", "double")
    assert_structural_equal(double, expected)


def test_parameters_of_every_kind() -> None:
    @T.prim_func
    def f(a: T.handle, p: T.handle("uint8", "global"), n: T.int32, x: T.float32, B: T.Buffer((4, n), "int8")):  # noqa: F821
        A = T.match_buffer(a, [4, 4], "int8", align=16, scope="shared")
        A[0, 0] = B[0, 0]

    assert [v.dtype for v in f.params] == ["handle", "handle", "int32", "float32", "handle"]
    assert f.params[1].type_annotation == PointerType(PrimType("uint8"), "global")
    assert f.params[0].type_annotation is None
    assert list(f.buffer_map) == [f.params[0], f.params[4]]
    assert f.buffers[0].data_alignment == 16 and f.buffers[0].scope() == "shared"
    assert f.buffers[4].shape[1] is f.params[2]


@pytest.mark.parametrize("header, kind", [("range", "SERIAL"), ("T.serial", "SERIAL"), ("T.parallel", "PARALLEL"), ("T.vectorized", "VECTORIZED"),
                                          ("T.unroll", "UNROLLED")])
def test_kinds_of_loops(header: str, kind: str) -> None:
    func = from_source(f"""
@T.prim_func
def f(A: T.Buffer((16,), "int32")):
    for i in {header}(2, 16):
        A[i] = 1
""")
    assert func.body.kind is ts.ForKind[kind]
    assert (func.body.min.value, func.body.extent.value) == (2, 14)


def test_loops_take_the_dtype_of_their_bounds_and_annotations() -> None:
    @T.prim_func
    def f(A: T.Buffer((16,), "int32"), n: T.int32):
        for i in T.serial(0, n, annotations={"pragma_x": 1}):
            A[i] = i

    assert f.body.loop_var.dtype == "int32" and f.body.min.dtype == "int32"
    assert f.body.annotations == {"pragma_x": 1}


def test_thread_bindings() -> None:
    @T.prim_func
    def f(A: T.Buffer((16,), "int32")):
        for i in T.thread_binding(16, thread="threadIdx.x"):
            A[i] = 1
        tx = T.env_thread("threadIdx.y")
        with T.launch_thread(tx, 4):
            A[tx] = 2

    loop, launch = f.body.seq
    assert loop.kind is ts.ForKind.THREAD_BINDING and loop.thread_binding.thread_tag == "threadIdx.x"
    assert launch.attr_key == "thread_extent" and launch.node.thread_tag == "threadIdx.y" and launch.value.value == 4
    assert launch.body.indices[0] is launch.node.var


def test_grid_nests_loops() -> None:
    @T.prim_func
    def f(A: T.Buffer((4, 5), "int64")):
        for i, j in T.grid(4, 5):
            A[i, j] = i * 5 + j

    out = np.zeros((4, 5), "int64")
    run_primfunc(f, out)
    np.testing.assert_array_equal(out, np.arange(20).reshape(4, 5))


def test_allocations_hold_what_follows_them() -> None:
    @T.prim_func
    def f(A: T.Buffer((8,), "float32")):
        p = T.allocate([8], "float32", "global.workspace")
        P = T.Buffer((8,), "float32", data=p)
        c = T.allocate_const([1, 2, 3, 4, 5, 6, 7, 8], "float32", [8])
        C = T.decl_buffer((8,), "float32", data=c)
        for i in range(8):
            P[i] = C[i] + A[i]
        for i in range(8):
            A[i] = P[i]

    assert isinstance(f.body, ts.Allocate) and isinstance(f.body.body, ts.AllocateConst) and isinstance(f.body.body.body, ts.DeclBuffer)
    assert f.body.buffer_var.type_annotation.storage_scope == "global.workspace"
    a = np.ones(8, "float32")
    run_primfunc(f, a)
    np.testing.assert_array_equal(a, np.arange(2, 10))


def test_a_scope_in_with_ends_where_it_ends() -> None:
    @T.prim_func
    def f(A: T.Buffer((8,), "float32")):
        with T.decl_buffer((8,), "float32") as B:
            B[0] = A[0]
        A[1] = T.float32(0)

    first, second = f.body.seq
    assert isinstance(first, ts.Allocate) and isinstance(first.body, ts.DeclBuffer) and isinstance(second, ts.BufferStore)


def test_names_of_a_scope_end_with_it() -> None:
    with pytest.raises(ScriptError, match="'x' is not defined"):
        from_source("""
@T.prim_func
def f(A: T.Buffer((8,), "int32"), n: T.int32):
    for i in range(8):
        x = n + 1
    A[0] = x
""")


def test_lets_plain_annotated_and_stated() -> None:
    @T.prim_func
    def f(A: T.Buffer((4,), "int32"), n: T.int32):
        x = n + 1
        y: T.int64 = n
        with T.LetStmt(n * 2) as z:
            A[0] = x + z
        A[1] = y
        m = T.meta_var(n + 5)
        A[2] = m

    a = np.zeros(4, "int32")
    run_primfunc(f, a, 7)
    np.testing.assert_array_equal(a, [22, 7, 12, 0])
    assert isinstance(f.body, ts.LetStmt) and f.body.body.var.dtype == "int64"


def test_pointers_keep_their_type() -> None:
    @T.prim_func
    def f(A: T.Buffer((4,), "float32")):
        p: T.handle("uint8") = A.data
        q = A.data
        T.evaluate(T.call_extern("int32", "use", p, q, T.address_of(A[1])))

    assert f.body.var.type_annotation == PointerType(PrimType("uint8"), "global")
    assert f.body.body.value.args[2] is f.buffers[0].data  # another name, not another variable


def test_branches_at_run_time_and_while_parsing() -> None:
    wide = True

    @T.prim_func
    def f(A: T.Buffer((4,), "int32"), n: T.int32):
        if n > 3:
            A[0] = 1
        elif n > 1:
            A[0] = 2
        else:
            A[0] = 3
        if wide:
            A[1] = 4
        else:
            A[1] = 5

    assert isinstance(f.body.seq[0].else_case, ts.IfThenElse)
    for n, want in ((5, 1), (2, 2), (0, 3)):
        a = np.zeros(4, "int32")
        run_primfunc(f, a, n)
        np.testing.assert_array_equal(a[:2], [want, 4])


def test_the_builder_style_branch() -> None:
    @T.prim_func
    def f(A: T.Buffer((1,), "int32"), n: T.int32):
        with T.If(n > 3):
            with T.Then():
                A[0] = 1
            with T.Else():
                A[0] = 2

    assert isinstance(f.body, ts.IfThenElse) and f.body.then_case.value.value == 1 and f.body.else_case.value.value == 2


def test_while_loops_and_augmented_stores() -> None:
    @T.prim_func
    def f(A: T.Buffer((2,), "int32")):
        while A[0] < 10:
            A[0] += 3
            A[1] -= 1

    a = np.zeros(2, "int32")
    run_primfunc(f, a)
    np.testing.assert_array_equal(a, [12, -4])


def test_asserts_and_attributes_hold_what_follows() -> None:
    @T.prim_func
    def f(A: T.Buffer((2,), "int32"), n: T.int32):
        assert n > 0, "n is positive"
        T.attr(A, "pragma_unroll", 1)
        A[0] = n
        with T.attr("default", "device_id", 0):
            A[1] = n

    attr = f.body.body
    assert f.body.message.value == "n is positive" and attr.attr_key == "pragma_unroll" and attr.node is f.buffers[0]
    assert attr.body.seq[1].node.value == "default"


def test_operators_build_nodes() -> None:
    @T.prim_func
    def f(A: T.Buffer((12,), "int32"), x: T.int32, y: T.int32):
        A[0] = x // y
        A[1] = x % y
        A[2] = T.truncdiv(x, y)
        A[3] = T.truncmod(x, y)
        A[4] = -x
        A[5] = x << 2 | y & 3 ^ 1
        A[6] = T.if_then_else(not x < y, 1, 2, dtype="int32")
        A[7] = 5 if 0 < x < 10 and y != 3 or x == -7 else 6
        A[8] = T.max(x, T.min(y, 4))
        A[9] = T.Select(x > y, x, y)
        A[10] = T.abs(x)
        A[11] = ~x

    a = np.zeros(12, "int32")
    run_primfunc(f, a, -7, 2)
    np.testing.assert_array_equal(a, [-4, 1, -3, -1, 7, -7 << 2 | 2 & 3 ^ 1, 2, 5, 2, 2, 7, 6])


def test_constants_of_every_type() -> None:
    @T.prim_func
    def f(A: T.Buffer((6,), "float64")):
        A[0] = T.float64(1.5)
        A[1] = T.Cast("float64", T.int8(-3))
        A[2] = T.float64("inf")
        A[3] = T.Cast("float64", T.bool(True))
        A[4] = T.Cast("float64", T.max_value("uint8"))
        A[5] = 2

    a = np.zeros(6)
    run_primfunc(f, a)
    np.testing.assert_array_equal(a, [1.5, -3, np.inf, 1, 255, 2])


@pytest.mark.parametrize("text", ["T.int8(300)", "T.uint8(-1)", "T.int32('x')", "T.uint64(1.5)"])
def test_constants_out_of_range_are_refused(text: str) -> None:
    with pytest.raises(ScriptError):
        from_source(f"""
@T.prim_func
def f():
    T.evaluate({text})
""")


def test_vectors() -> None:
    @T.prim_func
    def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        B[0:8] = A[8:16] * T.Broadcast(T.float32(2), 8)
        B[T.Ramp(8, 2, 4)] = T.float32x4(1)
        B[9:16:2] = A[0:8:2]

    a = np.arange(16, dtype="float32")
    b = np.zeros(16, "float32")
    run_primfunc(f, a, b)
    want = np.zeros(16, "float32")
    want[:8], want[8::2], want[9::2] = a[8:] * 2, 1, a[0:8:2]
    np.testing.assert_array_equal(b, want)


def test_slices_over_narrow_positions() -> None:
    @T.prim_func
    def f(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32"), n: T.int32):
        for j in range(n):
            A[j * 4:j * 4 + 4] = B[4 * j + 1 - 1:4 + j * 4] + T.Broadcast(T.int32(1), 4)

    a, b = np.zeros(64, "int32"), np.arange(64, dtype="int32")
    run_primfunc(f, a, b, 5)
    np.testing.assert_array_equal(a, np.where(np.arange(64) < 20, b + 1, 0))


def test_lanes_are_constants() -> None:
    with pytest.raises(ScriptError, match="scalable vectors are not supported"):
        from_source("""
@T.prim_func
def f(A: T.Buffer((16,), "int32")):
    A[T.Ramp(0, 1, T.vscale() * 4)] = T.Broadcast(1, T.vscale() * 4)
""")


def test_names_from_outside() -> None:
    size, fill = 6, 4

    @T.prim_func
    def f(A: T.Buffer((size,), "int32")):
        for i in range(size):
            A[i] = fill * SCALE

    a = np.zeros(6, "int32")
    run_primfunc(f, a)
    np.testing.assert_array_equal(a, [12] * 6)


def test_python_makes_sequences_while_parsing() -> None:
    shape = (2, 3)

    @T.prim_func
    def f(A: T.Buffer(shape, "int64")):
        for axes in T.grid(*[d for d in shape]):
            A[axes] = axes[0] * 10 + axes[1]

    a = np.zeros(shape, "int64")
    run_primfunc(f, a)
    np.testing.assert_array_equal(a, [[0, 1, 2], [10, 11, 12]])


def test_results_and_their_type() -> None:
    @T.prim_func
    def f(x: T.int32) -> T.int32:
        return x + 1

    assert f.ret_type == PrimType("int32")
    assert run_primfunc(f, 4) == 5


def test_calls_of_both_spellings() -> None:
    @T.prim_func
    def f(p: T.handle):
        T.evaluate(T.call_extern("int32", "g", p, 1))
        T.evaluate(T.call_extern("g", p, 1, dtype="int32"))
        T.call_packed("h", p)
        T.evaluate(T.tvm_call_packed("h", p, dtype="int32"))
        T.evaluate(T.reinterpret(T.uint64(0), dtype="handle"))
        T.evaluate(T.reinterpret("handle", T.uint64(0)))

    seq = f.body.seq
    for a, b in ((0, 1), (2, 3), (4, 5)):
        assert_structural_equal(seq[a], seq[b], True)
    assert seq[0].value.args[2].dtype == "int32"


def test_struct_intrinsics() -> None:
    @T.prim_func
    def f(p: T.handle):
        s = T.tvm_stack_alloca("array", 1)
        T.evaluate(T.tvm_struct_set(s, 0, 1, T.tvm_struct_get(p, 0, 1, "handle")))
        T.evaluate(T.tvm_check_return(0, -1, T.call_extern("int32", "g", s)))
        T.evaluate(T.lookup_param("weight"))

    assert f.body.value.op.name == "tir.tvm_stack_alloca"
    assert [c.value.op.name for c in f.body.body.seq] == ["tir.tvm_struct_set", "tir.tvm_check_return", "tir.lookup_param"]


def test_let_expressions_and_realized_buffers() -> None:
    @T.prim_func
    def f(A: T.Buffer((4,), "int32"), n: T.int32):
        v = T.int32()
        A[0] = T.Let(v + v, where={v: n * 3})
        B = T.Buffer((4,), "int32")
        with T.realize(B[0:4], "local"):
            B[0] = 1
            A[1] = B[0]

    realize = f.body.seq[1]
    assert isinstance(realize, ts.BufferRealize) and realize.bounds[0].extent.value == 4
    a = np.zeros(4, "int32")
    run_primfunc(f, a, 5)
    np.testing.assert_array_equal(a[:2], [30, 1])


def test_function_attributes() -> None:
    @T.prim_func(private=True)
    def f(a: T.handle):
        T.func_attr({"tir.noalias": True, "names": [a], "target": T.target({"kind": "llvm", "keys": ["cpu"]})})
        T.evaluate(0)

    attrs = dict(f.attrs)
    assert "global_symbol" not in attrs and attrs["tir.noalias"] is True and attrs["names"][0] is f.params[0]
    assert attrs["target"].kind.name == "llvm"
    assert isinstance(f.body, ts.Evaluate)


def test_statements_say_where_they_come_from() -> None:
    first = from_source.__code__.co_firstlineno  # any line of another file: spans are of this one
    assert first

    @T.prim_func
    def f(A: T.Buffer((4,), "int32")):
        A[0] = 1
        for i in range(4):
            A[i] = 2

    store, loop = f.body.seq
    assert store.span.source_name.name.endswith("test_parser.py")
    assert loop.span.line == store.span.line + 1 and loop.body.span.line == loop.span.line + 1
    assert store.span.line > f.span.line
    with open(store.span.source_name.name) as file:
        assert file.readlines()[store.span.line - 1].strip() == "A[0] = 1"


def test_long_sequences_of_scopes_need_no_recursion() -> None:
    lines = "\n".join(f"    v{i}: T.int64 = n + {i}" for i in range(20000))
    func = from_source(f"@T.prim_func\ndef f(A: T.Buffer((1,), 'int64'), n: T.int64):\n{lines}\n    A[0] = v19999\n")
    depth, s = 0, func.body
    while isinstance(s, ts.LetStmt):
        depth, s = depth + 1, s.body
    assert depth == 20000


# ---------------------------------------------------------------- blocks


def test_blocks_compute_what_they_say() -> None:
    @T.prim_func
    def total(A: T.Buffer((4, 6), "float32"), B: T.Buffer((4,), "float32")):
        for i, k in T.grid(4, 6):
            with T.block("total"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.where(vk < 5)
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]

    realize = total.body.block.body.body.body
    block = realize.block
    assert isinstance(realize, tir.BlockRealize) and block.name_hint == "total"
    assert [a.iter_type for a in block.iter_vars] == [tir.IterVar.DataPar, tir.IterVar.CommReduce]
    assert block.iter_vars[1].dom.extent.value == 6
    assert [r.buffer.name for r in block.reads] == ["A"] and [w.buffer.name for w in block.writes] == ["B"]
    a, b = np.random.rand(4, 6).astype("float32"), np.zeros(4, "float32")
    run_primfunc(total, a, b)
    np.testing.assert_allclose(b, a[:, :5].sum(1), rtol=1e-6)


def test_axes_with_ranges_of_their_own() -> None:
    @T.prim_func
    def f(A: T.Buffer((16,), "int64")):
        for i, j in T.grid(4, 4):
            with T.block():
                v = T.axis.spatial((0, 16), i * 4 + j)
                T.reads()
                T.writes(A[v])
                T.block_attr({"kind": 1})
                A[v] = v

    block = f.body.block.body.body.body.block
    assert block.annotations == {"kind": 1} and block.reads == () and block.iter_vars[0].dom.extent.value == 16
    a = np.zeros(16, "int64")
    run_primfunc(f, a)
    np.testing.assert_array_equal(a, np.arange(16))


def test_buffers_of_blocks_and_parts_of_buffers() -> None:
    @T.prim_func
    def f(A: T.Buffer((4, 8), "int32"), C: T.Buffer((4, 8), "int32")):
        B = T.alloc_buffer((4, 8), "int32")
        for i in range(4):
            with T.block("row"):
                vi = T.axis.spatial(4, i)
                row = T.match_buffer(B[vi, 0:8], (8,), "int32")
                for j in range(8):
                    row[j] = A[vi, j] * 2
        for i, j in T.grid(4, 8):
            with T.block("out"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] + 1

    root = f.body.block
    assert [b.name for b in root.alloc_buffers] == ["B"] and root.name_hint == "root"
    a, c = np.arange(32, dtype="int32").reshape(4, 8), np.zeros((4, 8), "int32")
    run_primfunc(f, a, c)
    np.testing.assert_array_equal(c, a * 2 + 1)


def test_regions_found_cover_inner_loops() -> None:
    @T.prim_func
    def f(A: T.Buffer((16, 8), "int32"), B: T.Buffer((16,), "int32")):
        for i in range(4):
            with T.block():
                vi = T.axis.spatial(4, i)
                for j, k in T.grid(4, 8):
                    B[vi * 4 + j] = A[vi * 4 + j, k]

    block = f.body.block.body.body.block
    vi = block.iter_vars[0].var
    read, write = block.reads[0].region, block.writes[0].region
    for r in (read[0], write[0]):
        assert_structural_equal(Range.from_min_extent(vi * 4, 4), r, True)
    assert read[1].min.value == 0 and read[1].extent.value == 8


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize("body, expected", [
    ("    A[0] = missing", "name 'missing' is not defined"),
    ("    A[0] = T.nothing(1)", "no T.nothing"),
    ("    for i in 5:\n        A[i] = 1", "a loop is expected after 'in'"),
    ("    with 5:\n        A[0] = 1", "what opens a scope is expected after 'with'"),
    ("    A[0, 0, 0:2] = 1", "3 subscripts"),
    ("    break", "Break is no statement"),
    ("    p = T.allocate([4], 'int32', 'global')\n    p[0] = 1", "a buffer is expected before"),
    ("    p = T.allocate([4], 'int32', 'global')\n    A[0] = p[0]", "is a pointer, not a buffer"),
    ("    vi = T.axis.spatial(4, 1)", "stands in no block"),
    ("    A[0] = A.__class__", "not for scripts"),
    ("    x, y = 1", "2 values are expected"),
    ("    A[0] = (lambda q: q.__class__)(1)", "not for scripts"),
    ("    B = T.match_buffer(A[0], (4,))", "stands in no block"),
    ("    n = T.int32()\n    B = T.match_buffer(n, (4,))", "no parameter of the function"),
])
def test_errors_say_where_and_what(body: str, expected: str) -> None:
    text = f"@T.prim_func\ndef f(A: T.Buffer((16,), 'int32')):\n{body}\n"
    with pytest.raises(ScriptError, match=re.escape(expected)) as caught:
        from_source(text)
    assert caught.value.filename == "<str>" and caught.value.line >= 3
    assert "^" in str(caught.value)


def test_errors_in_files_name_the_file_and_line() -> None:
    with pytest.raises(ScriptError) as caught:
        @T.prim_func
        def f(A: T.Buffer((4,), "int32")):
            A[0] = 1
            A[0] = undefined_name  # noqa: F821

    assert caught.value.filename.endswith("test_parser.py")
    with open(__file__) as file:
        assert "undefined_name" in file.readlines()[caught.value.line - 1]


@pytest.mark.parametrize("text, expected", [
    ("@T.prim_func\ndef f(a): pass", "has no type"),
    ("@T.prim_func\ndef f(a: 5): pass", "a type such as"),
    ("@T.prim_func\ndef f(*a): pass", "plain parameters"),
    ("def f(a: T.handle): pass", "decorated with @T.prim_func"),
    ("x = 1", "functions, classes and imports"),
    ("import os", "functions, classes and imports"),
    ("def f(:", "no Python"),
    ("", "a function or a class is expected"),
])
def test_texts_that_are_no_programs(text: str, expected: str) -> None:
    with pytest.raises(ScriptError, match=expected):
        from_source(text)


def test_integers_without_a_type_are_indices() -> None:
    @T.prim_func
    def f(p: T.handle):
        T.evaluate(7)

    value = f.body.value
    assert isinstance(value, IntImm) and value.dtype == "int64"


def test_parts_of_buffers_count_as_what_they_are_parts_of() -> None:
    @T.prim_func
    def f(A: T.Buffer((8, 8), "int32"), B: T.Buffer((8,), "int32")):
        for i in range(8):
            with T.block():
                vi = T.axis.spatial(8, i)
                row = T.match_buffer(A[vi, 0:8], (8,), "int32")
                B[vi] = row[0] + row[7]

    block = f.body.block.body.body.block
    assert [r.buffer.name for r in block.reads] == ["A"] and block.reads[0].region[1].extent.value == 8


def test_reducers_and_device_intrinsics() -> None:
    @T.prim_func
    def f(A: T.Buffer((8,), "float32")):
        with T.attr(T.comm_reducer(lambda x, y: T.max(x, y), [T.float32(0)]), "reduce_scope", T.reinterpret("handle", T.uint64(0))):
            T.tvm_fill_fragment(A.data, 16, 16, 16, 0, T.float32(0), dtype="handle")
            T.ptx_mma("float32", "m8n8k4", A.data, 0)
            A[0] = T.float32(T.tvm_warp_activemask())

    reducer = f.body.node
    assert isinstance(reducer, tir.CommReducer) and isinstance(reducer.result[0], tir.Max) and reducer.lhs[0].dtype == "float32"
    fill, mma, mask = f.body.body.seq
    assert (fill.value.dtype, mma.value.dtype, mask.value.value.dtype) == ("handle", "float32", "int32")
    assert mma.value.args[0].value == "m8n8k4"


def test_variables_that_are_there_get_values_of_their_type() -> None:
    @T.prim_func
    def f():
        i = T.int32()
        with T.LetStmt(42, var=i):
            T.evaluate(i)

    assert f.body.value.dtype == f.body.var.dtype == "int32"


def test_a_starred_name_stands_for_several_loops() -> None:
    @T.prim_func
    def f(A: T.Buffer((2, 3, 4), "int64")):
        for *outer, k in T.grid(*A.shape):
            A[(*outer, k)] = outer[0] * 100 + outer[1] * 10 + k

    a = np.zeros((2, 3, 4), "int64")
    run_primfunc(f, a)
    assert a[1, 2, 3] == 123 and a[0, 1, 0] == 10


@pytest.mark.parametrize("lines, expected", [
    ("T.reads(A[vi])\n            T.reads(A[vi])", "states twice what it reads"), ("T.where(vi < 3)\n            T.where(vi < 2)", "two conditions"),
    ("vi = T.axis.spatial(16, i)", "two axes 'vi'"), ("vf = T.axis.spatial(16, T.float32(1))", "positions are integers"),
    ("with T.init():\n                A[vi] = 0\n            with T.init():\n                A[vi] = 0", "two T.init"),
])
def test_blocks_state_everything_once(lines: str, expected: str) -> None:
    with pytest.raises(ScriptError, match=expected):
        from_source(f"""
@T.prim_func
def f(A: T.Buffer((16,), 'int32')):
    for i in range(16):
        with T.block():
            vi = T.axis.spatial(16, i)
            {lines}
            A[vi] = 1
""")


def test_private_functions_have_no_symbol() -> None:
    with pytest.raises(ScriptError, match="private function has no global_symbol"):
        from_source("@T.prim_func(private=True)\ndef f():\n    T.func_attr({'global_symbol': 'f'})\n")


def test_errors_go_to_the_renderer_of_diagnostics() -> None:
    from anchorleg.ir.diagnostics import override_renderer

    seen: list = []
    override_renderer(lambda ctx: seen.extend(ctx.diagnostics))
    try:
        with pytest.raises(ScriptError):
            from_source("@T.prim_func\ndef f():\n    T.evaluate(missing)\n")
    finally:
        override_renderer(None)
    assert len(seen) == 1 and seen[0].span.line == 3 and "missing" in seen[0].message
