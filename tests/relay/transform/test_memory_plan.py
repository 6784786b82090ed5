"""Putting blocks of memory together: before and after, and on the virtual machine."""
from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.ir import IRModule
from anchorleg.ir.structural import assert_structural_equal
from anchorleg.relay.backend import vm_pipeline
from anchorleg.relay.backend.vm import VMCompiler
from anchorleg.relay.op import memory
from anchorleg.relay.transform.common import is_op
from anchorleg.relay.transform.memory_plan import MemoryPlan, plan_function
from anchorleg.runtime import cpu
from anchorleg.runtime.vm import VirtualMachine
from anchorleg.target import Target, VirtualDevice

SHAPES = {"relay.Constant": [relay.const(np.array(s, "int64")) for s in ([6], [25], [2, 3])],
          "VirtualDevice": [VirtualDevice(cpu(0)), VirtualDevice(cpu(1))]}


def parsed(body: str, params: str = "") -> IRModule:
    """A module whose main is ``body``; ``#n`` stands for shape n, ``S(…)`` and ``T(…)`` for allocations, ``$n`` for device n."""
    text = body.replace("S(", "memory.alloc_storage(").replace("T(", "memory.alloc_tensor(")
    for i in range(3):
        text = text.replace(f", #{i})", f", meta[relay.Constant][{i}], const_shape=meta[relay.Constant][{i}], dtype=\"float32\")")
        text = text.replace(f"${i}", f"virtual_device=meta[VirtualDevice][{i}]")
    core = IRModule()
    core.import_from_std("core.rly")
    return relay.parse(f'#[version = "0.0.5"]\ndef @main({params}) {{ {text} }}', "text", core, SHAPES)


def check(before: str, after: str, params: str = "") -> None:
    mod = parsed(before, params)
    text = mod.astext()
    result = MemoryPlan()(mod)
    assert_structural_equal(relay.transform.InferType()(result), parsed(after.replace("dtype8", 'dtype="uint8"'), params), map_free_vars=True)
    assert mod.astext() == text and MemoryPlan()(result) is result


def test_blocks_of_a_stretch_become_one() -> None:
    check("""let %s = S(24i64, 64i64); let %t = T(%s, 0i64, #0); let %u = S(100i64, 64i64); let %v = T(%u, 0i64, #1); (%t, %v)""",
          """let %r = S(192i64, 64i64, dtype8); let %t = T(%r, 0i64, #0); let %v = T(%r, 64i64, #1); (%t, %v)""")


def test_sizes_in_variables_and_tensors_at_offsets() -> None:
    check("""let %n = 48i64; let %a = 16i64; let %z = 24i64; let %s = S(%n, %a); let %t = T(%s, %z, #0); let %w = T(%s, 0i64, #0);
             let %u = S(%n, %a); let %v = T(%u, %z, #2); let %k = memory.kill(%s); (%t, %v, %w)""",
          """let %n = 48i64; let %a = 16i64; let %z = 24i64; let %r = S(96i64, 16i64, dtype8); let %t = T(%r, 24i64, #0); let %w = T(%r, 0i64, #0);
             let %v = T(%r, 72i64, #2); (%t, %v, %w)""")


def test_branches_have_blocks_of_their_own() -> None:
    check("""let %s = S(24i64, 64i64); let %t = T(%s, 0i64, #0);
             let %c = if (%p) { let %a = S(24i64, 64i64); let %b = T(%a, 0i64, #0); let %d = S(24i64, 64i64); let %e = T(%d, 0i64, #0); (%b, %e) }
                      else { let %f = S(24i64, 64i64); let %g = T(%f, 0i64, #0); (%g, %t) };
             let %u = S(24i64, 64i64); let %v = T(%u, 0i64, #0); (%c, %v)""",
          """let %r = S(128i64, 64i64, dtype8); let %t = T(%r, 0i64, #0);
             let %c = if (%p) { let %q = S(128i64, 64i64, dtype8); let %b = T(%q, 0i64, #0); let %e = T(%q, 64i64, #0); (%b, %e) }
                      else { let %f = S(24i64, 64i64); let %g = T(%f, 0i64, #0); (%g, %t) };
             let %v = T(%r, 64i64, #0); (%c, %v)""", "%p: bool")


@pytest.mark.parametrize("apart", [
    "let %s = S(24i64, 64i64); let %t = T(%s, 0i64, #0); %t",  # alone
    "let %s = S(%n, 64i64); let %t = T(%s, 0i64, #0); let %u = S(%n, 64i64); let %v = T(%u, 0i64, #0); (%t, %v)",  # of unknown size
    "let %s = S(24i64, 64i64); let %t = T(%s, 0i64, #0); let %u = S(24i64, 64i64); (%t, %u)",  # used as a whole
    "let %s = S(24i64, 64i64); let %t = T(%s, %n, #0); let %u = S(24i64, 64i64); let %v = T(%u, 0i64, #0); (%t, %v)",  # at an unknown offset
    "let %s = S(24i64, 64i64, $0); let %t = T(%s, 0i64, #0); let %u = S(24i64, 64i64, $1); let %v = T(%u, 0i64, #0); (%t, %v)",  # on two devices
    "let %s = S(24i64, 64i64); let %t = T(%s, 0i64, #0); let %u = S(24i64, 16i64); let %v = T(%u, 0i64, #0); (%t, %v)",  # aligned differently
])
def test_blocks_that_stay_by_themselves(apart: str) -> None:
    mod = parsed(apart, "%n: int64")
    assert MemoryPlan()(mod) is mod


def allocations(mod: IRModule) -> int:
    return sum(is_op(e, "memory.alloc_storage") for f in mod.functions.values() for e in relay.analysis.variables.exprs(f))


def test_the_virtual_machine_runs_planned_programs() -> None:
    x = relay.var("x", shape=(3, 4))
    first = relay.annotation.stop_fusion(relay.exp(x))
    both = relay.If(relay.less(relay.sum(x), relay.const(0.0)), relay.nn.dense(first, relay.const(np.ones((4, 4), "float32"))), relay.tanh(first) * x)
    func = relay.Function([x], relay.Tuple([both, relay.annotation.stop_fusion(relay.nn.softmax(first)) + x]))
    results = []
    for planned in (False, True):
        compiler = VMCompiler()
        compiler.lower(IRModule.from_expr(func), "llvm")
        lowered, *rest = compiler._lowered  # type: ignore[misc]
        if planned:
            fewer = MemoryPlan()(lowered)
            assert allocations(fewer) < allocations(lowered)
            compiler._lowered = (fewer, *rest)
        compiler.codegen()
        machine = VirtualMachine(compiler.get_exec(), cpu(0))
        results.append([t.numpy() for sign in (1, -1) for t in machine.run(sign * np.arange(12, dtype="float32").reshape(3, 4) / 9)])
    for a, b in zip(*results):
        np.testing.assert_array_equal(a, b)


def test_lowered_programs_keep_one_block_for_each_stretch() -> None:
    x = relay.var("x", shape=(5,))
    func = relay.Function([x], relay.nn.softmax(relay.annotation.stop_fusion(relay.exp(x))))
    with Target("llvm"):
        lowered = vm_pipeline.lower(vm_pipeline.optimise(IRModule.from_expr(func)))
    assert allocations(lowered) == 2 and allocations(MemoryPlan()(lowered)) == 1


def long_chain(count: int) -> Any:
    shape = SHAPES["relay.Constant"][0]
    lets = []
    for _ in range(count):
        storage = relay.Var("s")
        lets.append((storage, memory.alloc_storage(relay.const(24, "int64"), relay.const(64, "int64"))))
        lets.append((relay.Var("t"), memory.alloc_tensor(storage, relay.const(0, "int64"), shape)))
    body: Any = lets[-1][0]
    for var, value in reversed(lets):
        body = relay.Let(var, value, body)
    return body


@pytest.mark.parametrize("count", [sys.getrecursionlimit() + 200, pytest.param(20_000, marks=pytest.mark.slow)])
def test_depth(count: int) -> None:
    planned = plan_function(relay.Function([], long_chain(count)))
    blocks = [e for e in relay.analysis.variables.exprs(planned) if is_op(e, "memory.alloc_storage")]
    assert len(blocks) == 1 and int(blocks[0].args[0].data.numpy()) == 64 * count
    body: Any = long_chain(2)
    for _ in range(count):
        body = relay.If(relay.const(True), body, relay.const(1.0))
    nested = plan_function(relay.Function([], body))
    assert sum(is_op(e, "memory.alloc_storage") for e in relay.analysis.variables.exprs(nested)) == 1
