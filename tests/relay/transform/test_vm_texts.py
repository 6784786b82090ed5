"""The passes from which the virtual machine's code is made, as text: before, after, and how deep programs may be."""
from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.ir import IRModule
from anchorleg.ir.structural import assert_structural_equal
from anchorleg.ir.transform import Pass
from anchorleg.relay.analysis.variables import exprs
from anchorleg.relay.backend.vm_pipeline import lower
from anchorleg.relay.transform.common import is_op
from anchorleg.runtime import cpu
from anchorleg.runtime.vm import VirtualMachine
from anchorleg.target import Target, VirtualDevice

transform = relay.transform
T = "Tensor[(3, 4), float32]"
D = "Tensor[(?, 4), float32]"
META = {"relay.Constant": [relay.const(np.array(s, "int64")) for s in ([3, 4], [2], [2, 6])],
        "VirtualDevice": [VirtualDevice(cpu(0), Target("llvm")), VirtualDevice(cpu(1), Target("llvm"))]}


def parsed(text: str) -> IRModule:
    """A module; ``T``, ``D`` stand for types, ``K(op, T)`` for a primitive function, ``#n`` and ``$n`` for constants and devices of the table."""
    for i in range(3):
        text = text.replace(f"#{i}", f"meta[relay.Constant][{i}]").replace(f"${i}", f"meta[VirtualDevice][{i}]")
    for kind, full in (("T", T), ("D", D)):
        for op in ("exp", "tanh"):
            text = text.replace(f"K({op}, {kind})", f"fn (%p: {full}, Primitive=1) -> {full} {{ {op}(%p) }}")
        text = re.sub(rf"\b{kind}\b", full, text)
    core = IRModule()
    core.import_from_std("core.rly")
    return relay.parse('#[version = "0.0.5"]\n' + text, "text", core, META)


def reread(mod: IRModule) -> IRModule:
    """The module after a way through its text."""
    return relay.parse(mod.astext())


def check(each: Pass, before: str, after: str) -> None:
    """One text becomes the other, the input stays, and what came out goes through its text unchanged."""
    mod = parsed(before)
    text = mod.astext()
    assert_structural_equal(reread(each(mod)), reread(parsed(after)), map_free_vars=True)
    assert mod.astext() == text


# --------------------------------------------------------------------------------------------------------- ManifestAlloc


def test_memory_of_known_size() -> None:
    check(transform.ManifestAlloc(),
          "def @main(%x: T) -> T { let %y = K(exp, T)(%x); let %z = K(tanh, T)(%y); %z }",
          """def @main(%x: T) -> T {
            let %n = 48i64; let %a = 64i64; let %s = memory.alloc_storage(%n, %a, dtype="float32"); let %o = 0i64;
            let %y = memory.alloc_tensor(%s, %o, #0, const_shape=#0, dtype="float32"); let %k = vm.invoke_tvm_op(K(exp, T), (%x,), (%y,));
            let %u = memory.alloc_storage(%n, %a, dtype="float32");
            let %z = memory.alloc_tensor(%u, %o, #0, const_shape=#0, dtype="float32"); let %l = vm.invoke_tvm_op(K(tanh, T), (%y,), (%z,));
            %z }""")


def test_memory_of_unknown_size_is_worked_out_first_and_once() -> None:
    program = "program=[[[1, 0, 0, 0], [16, 0, 0, 0], [0, 4, 0, 0], [16, 0, 1, 2]], [2], []]"
    check(transform.ManifestAlloc(),
          "def @main(%x: D) -> D { let %y = K(exp, D)(%x); let %z = K(tanh, D)(%y); %z }",
          f"""def @main(%x: D) -> D {{
            let %n = 16i64; let %a = 64i64; let %s = memory.alloc_storage(%n, %a, dtype="int64"); let %o = 0i64;
            let %d = memory.alloc_tensor(%s, %o, #1, const_shape=#1, dtype="int64");
            %0 = K(exp, D); let %q = vm.shape_func(%0, (%x,), (%d,), is_input=[1], {program});
            let %t = memory.alloc_storage(%d, %a, dtype="float32"); let %y = memory.alloc_tensor(%t, %o, %d, dtype="float32", assert_shape=[?, 4]);
            let %k = vm.invoke_tvm_op(%0, (%x,), (%y,));
            let %u = memory.alloc_storage(%d, %a, dtype="float32"); let %z = memory.alloc_tensor(%u, %o, %d, dtype="float32", assert_shape=[?, 4]);
            let %l = vm.invoke_tvm_op(K(tanh, D), (%y,), (%z,));
            %z }}""")


def test_memory_in_branches_and_of_reshapes() -> None:
    flat = "fn (%p: Tensor[(3, 4), float32], Primitive=1) -> Tensor[(2, 6), float32] { reshape(%p, newshape=[2, 6]) }"
    check(transform.ManifestAlloc(),
          f"""def @main(%x: T, %c: bool) {{ let %y = if (%c) {{ %x }} else {{ let %w = K(exp, T)(%x); %w }}; let %z = {flat}(%y); %z }}""",
          """def @main(%x: T, %c: bool) {
            let %y = if (%c) { %x } else {
              let %n = 48i64; let %a = 64i64; let %s = memory.alloc_storage(%n, %a, dtype="float32"); let %o = 0i64;
              let %w = memory.alloc_tensor(%s, %o, #0, const_shape=#0, dtype="float32"); let %k = vm.invoke_tvm_op(K(exp, T), (%x,), (%w,)); %w };
            let %h = #2; let %z = vm.reshape_tensor(%y, %h, newshape=[2, 6]); %z }""")


def test_memory_is_on_the_device_of_the_primitive_function() -> None:
    check(transform.ManifestAlloc(),
          "def @main(%x: T) -> T { let %y = fn (%p: T, Primitive=1, virtual_device=$1) -> T { exp(%p) }(%x); %y }",
          """def @main(%x: T) -> T {
            let %n = 48i64; let %a = 64i64; let %s = memory.alloc_storage(%n, %a, dtype="float32", virtual_device=$1); let %o = 0i64;
            let %y = memory.alloc_tensor(%s, %o, #0, const_shape=#0, dtype="float32");
            let %k = vm.invoke_tvm_op(fn (%p: T, Primitive=1, virtual_device=$1) -> T { exp(%p) }, (%x,), (%y,)); %y }""")


# ------------------------------------------------------------------------------------------------------------ LambdaLift


def test_functions_that_are_only_called_are_given_what_they_capture() -> None:
    check(transform.LambdaLift(),
          """def @main(%n: int32, %x: float32) -> float32 {
            let %loop = fn (%i: int32) -> float32 { if (less(%i, %n)) { %loop(add(%i, 1)) } else { %x } }; %loop(0) }""",
          """def @main(%n: int32, %x: float32) -> float32 { @main_loop(0, %n, %x) }
            def @main_loop(%i: int32, %n: int32, %x: float32) -> float32 { if (less(%i, %n)) { @main_loop(add(%i, 1), %n, %x) } else { %x } }""")


def test_functions_that_are_values_become_closures() -> None:
    check(transform.LambdaLift(),
          """def @twice(%f: fn (float32) -> float32, %x: float32) -> float32 { %f(%f(%x)) }
            def @main(%a: float32) -> float32 { let %f = fn (%y: float32) -> float32 { add(%a, %y) }; @twice(%f, %a) }""",
          """def @twice(%f: fn (float32) -> float32, %x: float32) -> float32 { %f(%f(%x)) }
            def @main(%a: float32) -> float32 { @twice(@main_f(%a), %a) }
            def @main_f(%a: float32, Closure=1) -> fn (float32) -> float32 { fn (%y: float32) -> float32 { add(%a, %y) } }""")


# ------------------------------------------------------------------------- RemoveUnusedFunctions, EtaExpand, basic blocks


def test_functions_that_nothing_reaches_go() -> None:
    check(transform.RemoveUnusedFunctions(),
          """def @a(%x: float32) -> float32 { @b(%x) } def @b(%x: float32) -> float32 { exp(%x) } def @c(%x: float32) -> float32 { @c(%x) }
            def @main(%x: float32) -> float32 { let %f = @a; %f(%x) }""",
          """def @a(%x: float32) -> float32 { @b(%x) } def @b(%x: float32) -> float32 { exp(%x) }
            def @main(%x: float32) -> float32 { let %f = @a; %f(%x) }""")


def test_constructors_that_are_values_become_functions() -> None:
    box = "type Box[A] { Box(A), }\ndef @use(%f: fn (float32) -> Box[float32]) -> Box[float32] { %f(1f) }\n"
    check(transform.EtaExpand(), box + "def @main() -> Box[float32] { @use(Box) }",
          box + "def @main() -> Box[float32] { @use(fn [A](%x: A) -> Box[A] { Box(%x) }) }")


def test_values_shared_by_blocks_are_bound_before_them() -> None:
    check(transform.ToBasicBlockNormalForm(),
          """def @main(%c: bool, %x: float32) -> float32 { %0 = exp(%x); %1 = tanh(%0); if (%c) { add(%1, %0) } else { multiply(%1, %1) } }""",
          """def @main(%c: bool, %x: float32) -> float32 {
            let %a = exp(%x); let %b = tanh(%a); if (%c) { add(%b, %a) } else { multiply(%b, %b) } }""")


# ---------------------------------------------------------------------------------------------------------------- depth



def scalar(name: str) -> relay.Var:
    return relay.var(name, shape=(2,))


def chain(count: int) -> Any:
    x = body = scalar("x")
    for _ in range(count):
        body = relay.annotation.stop_fusion(relay.exp(body))
    return relay.Function([x], body)


def branches(count: int) -> Any:
    x, c = scalar("x"), relay.var("c", shape=(), dtype="bool")
    body: Any = x
    for _ in range(count):
        body = relay.If(c, relay.exp(body), x)
    return relay.Function([c, x], body)


def local_functions(count: int) -> Any:
    x = scalar("x")
    lets, value = [], x
    for i in range(count):
        y, f, v = scalar("y"), relay.var(f"f{i}"), relay.var(f"v{i}")
        lets += [(f, relay.Function([y], relay.add(y, x))), (v, relay.Call(f, [value]))]
        value = v
    body: Any = value
    for var, bound in reversed(lets):
        body = relay.Let(var, bound, body)
    return relay.Function([x], body)


def go_deep(make: Any, count: int) -> None:
    mod = transform.InferType()(IRModule.from_expr(make(count)))
    for each in (transform.EtaExpand(), transform.RemoveUnusedFunctions(), transform.ToBasicBlockNormalForm()):
        assert isinstance(each(mod), IRModule)
    with Target("llvm"):
        lowered = lower(mod)
    assert sum(is_op(e, "vm.invoke_tvm_op") for f in lowered.functions.values() for e in exprs(f)) == count
    for each in (transform.ManifestLifetimes(), transform.MemoryPlan()):
        assert isinstance(each(lowered), IRModule)


@pytest.mark.parametrize("make", [chain, branches, local_functions])
def test_beyond_the_recursion_limit(make: Any) -> None:
    go_deep(make, sys.getrecursionlimit() + 200)


@pytest.mark.slow
@pytest.mark.parametrize("make", [chain, branches, local_functions])
def test_depth(make: Any) -> None:
    go_deep(make, 20_000)


@pytest.mark.slow
def test_deep_programs_run() -> None:
    machine = VirtualMachine(relay.vm.compile(IRModule.from_expr(local_functions(5000)), "llvm"), cpu(0))
    np.testing.assert_allclose(machine.run(np.float32([1, 2])).numpy(), np.float32([1, 2]) * 5001)
