"""Primitive functions whose inner sizes no argument tells."""
from __future__ import annotations

import numpy as np

import anchorleg
from anchorleg import relay
from anchorleg.ir.module import IRModule
from anchorleg.relay.transform.split_primitive import has_open_sizes, one_by_one
from anchorleg.runtime.vm import VirtualMachine


def fused(body):
    mod = IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
    return relay.transform.FuseOps(2)(relay.transform.InferType()(mod))["main"]


def example():
    data, shape = relay.var("x", shape=(relay.Any(), 6)), relay.var("s", shape=(3,), dtype="int64")
    middle = relay.transpose(relay.reshape(data, shape), [2, 0, 1])
    return relay.reshape(middle, [-1])


def test_open_sizes_are_found():
    call = fused(example()).body
    assert has_open_sizes(call.op)
    x = relay.var("x", shape=(relay.Any(), 6))
    assert not has_open_sizes(fused(relay.tanh(relay.exp(x))).body.op)


def test_each_operator_gets_a_function():
    call = fused(example()).body
    parts = one_by_one(call)
    assert [c.op.body.op.name for _, c in parts] == ["dyn.reshape", "transpose", "reshape"]
    assert parts[1][1].args[0] is parts[0][0] and parts[0][1].args[0] is call.args[0]
    assert one_by_one(fused(relay.exp(relay.var("x", shape=(3,)))).body) == []


def test_tuples_and_shared_values():
    x, y = relay.var("x", shape=(relay.Any(), 3)), relay.var("y", shape=(relay.Any(), 3))
    both = relay.concatenate([relay.exp(x), relay.exp(x), y], 0)
    call = fused(relay.tanh(both)).body
    parts = one_by_one(call)
    assert [c.op.body.op.name for _, c in parts] == ["exp", "exp", "concatenate", "tanh"]
    assert [a is b for a, b in zip(parts[2][1].args, (parts[0][0], parts[1][0], call.args[1]))] == [True] * 3


def test_results_are_computed_by_kernels():
    body = example()
    params = relay.analysis.free_vars(body)
    exe = relay.vm.compile(IRModule.from_expr(relay.Function(params, body)), "llvm")
    x, s = np.arange(24, dtype=np.float32).reshape(4, 6), np.array([2, 3, 4], np.int64)
    given = {"x": x, "s": s}
    got = VirtualMachine(exe, anchorleg.cpu(0)).invoke("main", *(given[p.name_hint] for p in params)).numpy()
    np.testing.assert_array_equal(got, x.reshape(2, 3, 4).transpose(2, 0, 1).reshape(-1))
    assert "host" not in exe.bytecode
