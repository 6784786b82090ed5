"""What the compiler makes of operators, written as script and read back: the same program, at every stage of lowering."""
from __future__ import annotations

from typing import Any

import pytest

from anchorleg import relay, te, tir
from anchorleg.driver.build_module import schedule_to_module
from anchorleg.driver.pipeline import lowering_passes, run_passes
from anchorleg.ir import IRModule, assert_structural_equal
from anchorleg.relay import nn
from anchorleg.relay.backend.te_compiler import lower_to_primfunc
from anchorleg.script import from_source
from anchorleg.target import Target

X = relay.var("x", shape=(1, 4, 9, 9), dtype="float32")
V = relay.var("v", shape=(3, 16), dtype="float32")
W = relay.var("w", shape=(8, 4, 3, 3), dtype="float32")
Q = relay.var("q", shape=(1, 4, 9, 9), dtype="int8")
I = relay.var("i", shape=(5,), dtype="int64")  # noqa: E741
B = relay.var("b", shape=(3, 16), dtype="bool")
F16 = relay.var("h", shape=(3, 16), dtype="float16")
BF16 = relay.var("g", shape=(3, 16), dtype="bfloat16")
PROGRAMS: dict[str, Any] = {
    "conv2d": (nn.conv2d(X, W, padding=(1, 1), channels=8, kernel_size=(3, 3)), X, W),
    "conv2d_relu": (nn.relu(nn.conv2d(X, W, channels=8, kernel_size=(3, 3)) + relay.const(1.5)), X, W),
    "conv2d_int8": (nn.conv2d(Q, relay.cast(W, "int8"), channels=8, kernel_size=(3, 3), out_dtype="int32"), Q, W),
    "dense": (nn.dense(V, relay.transpose(relay.reshape(V, (16, 3)))), V),
    "batch_matmul": (nn.batch_matmul(relay.expand_dims(V, 0), relay.expand_dims(V, 0)), V),
    "softmax": (nn.softmax(V), V),
    "layer_norm": (nn.layer_norm(V, relay.ones((16,), "float32"), relay.zeros((16,), "float32")), V),
    "max_pool": (nn.max_pool2d(X, (3, 3), (2, 2), padding=(1, 1), ceil_mode=True), X),
    "avg_pool": (nn.avg_pool2d(X, (3, 3), (2, 2), padding=(1, 1)), X),
    "pad": (nn.pad(X, ((0, 0), (0, 0), (2, 1), (0, 3)), 0.5, "constant"), X),
    "resize": (relay.image.resize2d(X, (5, 13), method="cubic"), X),
    "argmax": (relay.argmax(V, axis=1), V),
    "sum_all": (relay.sum(V), V),
    "any": (relay.any(B, axis=0), B),
    "cumsum": (relay.cumsum(V, axis=1), V),
    "argsort": (relay.argsort(V), V),
    "topk": (relay.topk(V, k=3, ret_type="values"), V),
    "take": (relay.take(V, I, axis=1), V, I),
    "one_hot": (relay.one_hot(I, relay.const(1.0), relay.const(0.0), 7, -1, "float32"), I),
    "scatter": (relay.scatter_nd(V, relay.reshape(relay.cast(relay.take(I, I), "int64"), (1, 5)), relay.zeros((5, 16), "float32"), "add"), V, I),
    "strided_slice": (relay.strided_slice(V, [0, 1], [3, 15], [1, 2]), V),
    "concatenate": (relay.concatenate([V, V * relay.const(2.0)], axis=1), V),
    "split_first": (relay.split(V, 4, axis=1)[1], V),
    "transpose": (relay.transpose(X, (0, 2, 3, 1)), X),
    "where": (relay.where(B, V, -V), B, V),
    "special": (relay.exp(V) + relay.erf(V) * relay.sigmoid(relay.sqrt(relay.abs(V))), V),
    "integers": (relay.floor_mod(relay.floor_divide(relay.right_shift(relay.cast(V, "int32"), relay.const(2)), relay.const(3)), relay.const(5)), V),
    "logical": (relay.logical_and(B, relay.logical_not(relay.less(V, relay.const(float("inf"))))), B, V),
    "half": (relay.tanh(F16) * F16, F16),
    "bfloat": (relay.cast(BF16, "float32") + relay.const(1.0), BF16),
    "fixed_point": (relay.fixed_point_multiply(relay.cast(V, "int32"), 1395864371, 4), V),
}


def _primitive(name: str) -> tir.PrimFunc:
    body, *params = PROGRAMS[name]
    mod = relay.transform.InferType()(IRModule.from_expr(relay.Function(params, body)))
    return lower_to_primfunc(mod["main"].with_attr("Primitive", 1), Target("llvm"))


def _check(mod: IRModule) -> None:
    for func in mod.functions.values():
        assert_structural_equal(from_source(func.script()), func)
    assert_structural_equal(from_source(mod.script()), mod)


@pytest.mark.parametrize("name", PROGRAMS)
def test_operators_at_every_stage(name: str) -> None:
    mod = IRModule({"main": _primitive(name)})
    _check(mod)
    with Target("llvm"):
        for each in lowering_passes():
            after = run_passes(mod, [each])
            if after is not mod:
                _check(after)
            mod = after


def _schedule(kind: str) -> tuple[Any, list[Any]]:
    n = te.size_var("n")
    a = te.placeholder((n, 33), name="A")
    b = te.compute((n, 33), lambda i, j: a[i, j] * 2, name="B.x")
    k = te.reduce_axis((0, 33), "k")
    c = te.compute((n,), lambda i: te.sum(b[i, k], axis=k), name="for")
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], 7)
    if kind == "threads":
        s[c].bind(outer, te.thread_axis("blockIdx.x"))
        s[c].bind(inner, te.thread_axis("threadIdx.x"))
        s[b].compute_at(s[c], inner)
    elif kind == "annotated":
        s[c].parallel(outer)
        s[c].pragma(inner, "auto_unroll_max_step", 8)
        s[b].compute_at(s[c], outer)
        s[b].storage_align(b.op.axis[0], 8, 4)
        s[b].vectorize(b.op.axis[1])
    elif kind == "factored":
        ko, _ = s[c].split(k, 5)
        s.rfactor(c, ko)
    return s, [a, c]


@pytest.mark.parametrize("kind", ["plain", "threads", "annotated", "factored"])
def test_schedules_over_unknown_sizes(kind: str) -> None:
    s, args = _schedule(kind)
    mod = schedule_to_module(s, args, "f")
    _check(mod)
    for each in lowering_passes():
        mod = run_passes(mod, [each])
        _check(mod)
