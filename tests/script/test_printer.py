"""The script of programs that lowering seldom makes, and the text itself."""
from __future__ import annotations

import numpy as np
import pytest

from anchorleg import relay, tir
from anchorleg.ir import IRModule, assert_structural_equal
from anchorleg.ir.expr import GlobalVar, IntImm, Range
from anchorleg.ir.type import PointerType, PrimType
from anchorleg.runtime.ndarray import array
from anchorleg.script import from_source
from anchorleg.script import ir as I  # noqa: E741
from anchorleg.script import tir as T
from anchorleg.tir import stmt as ts
from anchorleg.tir.buffer import Buffer, BufferLoad

TRUE = IntImm("bool", 1)


def _same(func: tir.PrimFunc) -> tir.PrimFunc:
    again = from_source(func.script())
    assert_structural_equal(again, func)
    return again


def _over(body: ts.Stmt, *params: object) -> tir.PrimFunc:
    return tir.PrimFunc(list(params), body)


def test_the_text() -> None:
    @T.prim_func
    def scale(a: T.handle, B: T.Buffer((4, 8), "float32", align=16), n: T.int32):
        T.func_attr({"tir.noalias": True})
        m = T.int64(is_size_var=True)
        A = T.match_buffer(a, (m, 8), "float32")
        p = T.allocate([8], "float32", "local")
        P = T.Buffer((8,), "float32", data=p)
        for i in T.parallel(4):
            for j in range(T.int32(8)):
                P[j] = A[i, j]
            B[i, 0:8] = P[0:8] * T.Broadcast(T.float32(2), 8)
        with T.attr(B, "mark", 1):
            T.call_extern("int32", "done", B.data, n)
        if n > 3:
            x: T.int32 = n + 1
            assert x < 9, "small"
            T.evaluate(x)

    assert _same(scale).script() == scale.script() == '''\
@T.prim_func
def scale(a: T.handle, B: T.Buffer((4, 8), "float32", align=16), n: T.int32):
    T.func_attr({"tir.noalias": True})
    m = T.int64(is_size_var=True)
    A = T.match_buffer(a, (m, 8), "float32")
    p = T.allocate([8], "float32", "local")
    P = T.Buffer((8,), "float32", data=p)
    for i in T.parallel(4):
        for j in range(T.int32(8)):
            P[j] = A[i, j]
        B[i, 0:8] = P[0:8] * T.Broadcast(T.float32(2.0), 8)
    with T.attr(B, "mark", 1):
        T.call_extern("int32", "done", B.data, n)
    if n > T.int32(3):
        x: T.int32 = n + T.int32(1)
        assert x < T.int32(9), "small"
        T.evaluate(x)'''


def test_modules_are_classes() -> None:
    @I.ir_module
    class Module:
        I.module_attrs({"version": 2})

        @T.prim_func
        def main(x: T.int32) -> T.int32:
            return Module.inc(x)

        @T.prim_func(private=True)
        def inc(x: T.int32) -> T.int32:
            return x + 1

    text = Module.script()
    assert text.startswith("# from tvm.script import ir as I\n# from tvm.script import tir as T\n\n@I.ir_module\nclass Module:\n    I.module_attrs({\"version\": 2})")
    assert "Module.inc(x)" in text and "private=True" in text
    assert_structural_equal(from_source(text), Module)


def test_show_prints(capsys: pytest.CaptureFixture[str]) -> None:
    func = _over(ts.Evaluate(0))
    func.show()
    IRModule({"f": func}).show()
    out = capsys.readouterr().out
    assert func.script() in out and "class Module:" in out


def test_modules_of_graphs_keep_their_format() -> None:
    mod = IRModule.from_expr(relay.Function([], relay.const(1.0)))
    assert mod.script() == mod.astext()


def test_functions_elsewhere_are_called_by_global_name() -> None:
    call = tir.Call("float32", GlobalVar("away"), [IntImm("int64", 3), tir.StringImm('say "x"')])
    assert 'T.call("float32", I.GlobalVar("away"), T.int64(3)' in _same(_over(ts.Evaluate(call))).script()


def _int_stores(*values: tir.PrimExpr) -> tir.PrimFunc:
    stores = [ts.BufferStore(Buffer(None, v.dtype, [1], name=f"b{i}"), v, [0]) for i, v in enumerate(values)]
    return _over(ts.SeqStmt(stores), *(s.buffer for s in stores))


@pytest.mark.parametrize("dtype, value", [("int8", -128), ("uint64", 2**64 - 1), ("int64", -(2**63)), ("bool", 1), ("float16", 0.333251953125),
                                          ("float32", float("nan")), ("float64", -float("inf")), ("float64", 5e-324), ("bfloat16", 3.0)])
def test_constants(dtype: str, value: float) -> None:
    _same(_int_stores(tir.const(value, dtype), tir.const(value, dtype)))


def test_scopes_that_are_not_last() -> None:
    a, b = Buffer(None, "int32", [4], name="A"), Buffer(None, "int32", [4], name="B")
    n, v, p = tir.Var("n", "int32"), tir.Var("v", "int32"), tir.Var("p", "handle", PointerType(PrimType("int32"), "local"))
    view = Buffer(p, "int32", [4], name="view", scope="local")
    store = ts.BufferStore(a, v, [0])
    data = array(np.arange(4, dtype="int32"))
    q = tir.Var("q", "handle", PointerType(PrimType("int32"), "global"))
    scopes = [ts.LetStmt(v, n + 1, store), ts.AttrStmt(a, "x", 1, ts.BufferStore(a, n, [1])),
              ts.AssertStmt(n > 3, tir.StringImm("it's so"), ts.BufferStore(a, n, [2])),
              ts.Allocate(p, "int32", [4], TRUE, ts.BufferStore(view, n, [3])), ts.AllocateConst(q, "int32", [4], data, ts.Evaluate(q)),
              ts.DeclBuffer(Buffer(a.data, "int32", [2, 2], name="C"), ts.Evaluate(1)),
              ts.BufferRealize(b, [Range.from_min_extent(0, 4)], n < 2, ts.BufferStore(b, n, [0])), ts.Evaluate(0)]
    for i in range(len(scopes)):
        _same(_over(ts.SeqStmt([*scopes[i:], *scopes[:i]]), a, n))


def test_pointers_of_another_type_than_the_memory() -> None:
    p = tir.Var("p", "handle", PointerType(PrimType("float32"), "global"))
    untyped = tir.Var("q", "handle")
    view = Buffer(p, "int32", [4], name="view")
    body = ts.Allocate(p, "int8", [16], tir.Var("n", "int32") > 3, ts.BufferStore(view, IntImm("int32", 1), [0]), {"kind": "fast", "sizes": [1, (2,)]})
    func = _over(ts.Allocate(untyped, "int8", [16], TRUE, body))
    assert_structural_equal(from_source(func.script()), func, map_free_vars=True)


def test_parameters_with_pointers_of_their_own() -> None:
    data = tir.Var("data", "handle", PointerType(PrimType("uint8"), "global"))
    offset, stride = tir.Var("offset"), tir.SizeVar("stride")
    first = Buffer(data, "float32", [4, 4], [stride, 1], offset, "first", 8, "shared")
    second = Buffer(data, "float32", [16], name="second")
    handles = tir.Var("h1", "handle"), tir.Var("h2", "handle", PointerType(PrimType("float32"), "global"))
    body = ts.BufferStore(second, BufferLoad(first, [1, 2]), [3])
    _same(tir.PrimFunc(handles, body, None, dict(zip(handles, (first, second)))))


def test_loops_whose_bounds_are_no_plain_pair() -> None:
    a = Buffer(None, "int32", [64], name="A")
    n, m = tir.Var("n"), tir.Var("m")
    loops = []
    for low, extent in ((n, m), (n + m, n * 2 - m), (n // 3, (n + m) // 3 - n // 3), (3, n), (0, n)):
        i = tir.Var("i")
        loops.append(ts.For(i, low, extent, ts.ForKind.UNROLLED, ts.BufferStore(a, IntImm("int32", 1), [i]), None, {"hint": 1}))
    j = tir.Var("j", "int32")
    thread = tir.IterVar(None, tir.Var("", "int32"), tir.IterVar.ThreadIndex, "threadIdx.x")
    loops.append(ts.For(j, IntImm("int32", 0), IntImm("int32", 4), ts.ForKind.THREAD_BINDING, ts.BufferStore(a, j, [j]), thread))
    _same(_over(ts.SeqStmt(loops), a, n, m))


def test_odd_expressions() -> None:
    a, x = Buffer(None, "int32", [64], name="A"), tir.Var("x", "int32")
    y = tir.Var("y", "int32")
    vector = tir.Ramp(x, IntImm("int32", 2), 4)
    values = [tir.Let(y, x + 1, y * y), tir.Shuffle([vector, vector], [0, 5, 2, 7]), tir.Shuffle([vector], [2]),
              BufferLoad(a, [tir.Ramp(IntImm("int64", 4), IntImm("int64", -1), 4)]), BufferLoad(a, [vector]),
              tir.Select(x > 3, x, y), tir.Not(tir.op.isnan(tir.op.reinterpret("float32", x))), tir.call_intrin("float32x4", "tir.vectorlow", tir.Broadcast(x, 8)),
              tir.op.call_llvm_pure_intrin("int32", "llvm.ctpop", x), tir.op.tvm_struct_get(a.data, 0, 1, "handle"), tir.op.type_annotation("int8"),
              tir.op.tvm_access_ptr(tir.op.type_annotation("int32"), a.data, 0, 4, 1), tir.op.address_of(BufferLoad(a, [x])),
              tir.op.bitwise_and(x, y), tir.op.popcount(x), tir.op.reinterpret("float32", x), tir.op.ret(x), tir.op.truncmod(x, y),
              tir.op.if_then_else(x > 3, 1, 0), tir.op.q_multiply_shift(x, y, 31, 2), tir.Mod(x, y), tir.And(x < 3, tir.Or(x > 1, tir.And(y < 1, x != y)))]
    _same(_over(ts.SeqStmt([ts.Evaluate(v) for v in values]), a, x, y))


def test_control_flow() -> None:
    a, n = Buffer(None, "int32", [4], name="A"), tir.Var("n", "int32")
    set_to = lambda v: ts.BufferStore(a, IntImm("int32", v), [0])  # noqa: E731
    chain = ts.IfThenElse(n > 1, set_to(1), ts.IfThenElse(n > 2, set_to(2), ts.Evaluate(0)))
    _same(_over(ts.SeqStmt([chain, ts.While(BufferLoad(a, [0]) < n, set_to(9)), ts.IfThenElse(TRUE, set_to(3))]), a, n))


def test_names_that_clash_or_are_none() -> None:
    names = ["x", "x", "x_1", "for", "T", "9lives", "a.b", "a b", "", "ü", "range", "inf"]
    variables = [tir.Var(n, "int32") for n in names]
    again = _same(_over(ts.SeqStmt([ts.Evaluate(v) for v in variables]), *variables))
    assert len({p.name for p in again.params}) == len(names)


def test_blocks() -> None:
    @T.prim_func(private=True)
    def f(A: T.Buffer((16, 16), "float32"), n: T.int32):
        B = T.alloc_buffer((16, 16), "float32", scope="local")
        for i, j, k in T.grid(4, 4, 16):
            with T.block("update"):
                vi, vk = T.axis.remap("SR", [i, k])
                vj = T.axis.scan((2, 6), j)
                vo = T.axis.opaque(16, i * 4 + j)
                T.where(i * 4 + j < 15)
                T.block_attr({"tensor": [1, 2]})
                P = T.match_buffer(A[vi * 4:vi * 4 + 4, 0:16], (4, 16), "float32", strides=[T.int64(16), T.int64(1)], elem_offset=vo * 64)
                with T.init():
                    B[vi, vj] = T.float32(0)
                B[vi, vj] += P[0, vk]
        with T.block("one", no_realize=True):
            T.reads(B[0:2, 0])
            T.writes()
            T.evaluate(n)

    _same(f)


def test_attributes_of_every_kind() -> None:
    @T.prim_func
    def f(a: T.handle):
        T.func_attr({"list": [1, "two", 3.5, None, True], "tuple": (1,), "map": {"k": [a]}, "target": T.target("llvm -mcpu=core-avx2", host="llvm"),
                     "quote": 'it\'s "so"\n'})
        T.evaluate(0)

    _same(f)


def test_deep_programs_need_no_recursion() -> None:
    n = tir.Var("n")
    body: ts.Stmt = ts.Evaluate(n)
    for i in range(20000):
        body = ts.LetStmt(tir.Var("v"), n + i, body)
    text = _over(body, n).script()
    assert text.count("\n") > 20000
    e: tir.PrimExpr = n
    for i in range(20000):
        e = e * n + i
    assert len(_over(ts.Evaluate(e), n).script()) > 100000


def test_regions_and_axes_that_no_slice_states() -> None:
    a, n, m, vi = Buffer(None, "int32", [64], name="A"), tir.Var("n"), tir.Var("m"), tir.Var("vi")
    odd = Range.from_min_extent(n // 3, (n + m) // 3 - n // 3)
    axis = tir.IterVar(odd, vi)
    realize = tir.BlockRealize([n // 3], True, tir.Block([axis], [tir.BufferRegion(a, [odd])], [], "odd", ts.Evaluate(vi)))
    root = tir.BlockRealize([], True, tir.Block([], [], [], "root", realize))
    text = _same(_over(root, a, n, m)).script()
    assert "T.Range.from_min_extent" in text


def test_reducers_and_attributes_with_nodes_of_the_function() -> None:
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), b: T.handle):
        B = T.match_buffer(b, (8,))
        T.func_attr({"inputs": [b], "buffers": {"first": A, "second": B}})
        T.attr(T.comm_reducer(lambda x0, y0, x1, y1: (T.min(x0, x1), y0 + y1), [T.float32(0), T.int32(1)]), "reduce_scope", 0)
        A[0] = B[0]

    _same(f)
