"""Planning devices: before and after, over two processors and a GPU."""
from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from anchorleg import relay, te, tir
from anchorleg.ir import IRModule
from anchorleg.ir.expr import GlobalVar
from anchorleg.ir.structural import assert_structural_equal
from anchorleg.ir.transform import PassContext
from anchorleg.relay.transform.device_scopes import devices_of, pin_devices, recover_virtual_device_map, split_tuple_copies, unmarked
from anchorleg.relay.transform.plan_devices import is_marked
from anchorleg.runtime import cpu, cuda
from anchorleg.support.errors import ArgumentError, TargetError
from anchorleg.target import Target, VirtualDevice, make_compilation_config

transform = relay.transform
CPU_TARGET = Target("llvm", host="llvm")
ZERO, ONE = VirtualDevice(cpu(0), CPU_TARGET), VirtualDevice(cpu(1), CPU_TARGET)
NEAR, FAR = (VirtualDevice(cpu(0), CPU_TARGET, scope) for scope in ("near", "far"))
HOST = VirtualDevice(cpu(0), Target("llvm"))
DEVICES = {"VirtualDevice": [ZERO, ONE, NEAR, FAR, HOST]}
CONFIG = make_compilation_config(PassContext(), CPU_TARGET)


def parsed(text: str) -> IRModule:
    """A typed module; ``$n`` stands for device n of the table."""
    for i in range(len(DEVICES["VirtualDevice"])):
        text = text.replace(f"${i}", f"meta[VirtualDevice][{i}]")
    core = IRModule()
    core.import_from_std("core.rly")
    return relay.parse('#[version = "0.0.5"]\n' + text, "text", core, DEVICES)


def planned(mod: IRModule, config: Any = CONFIG) -> IRModule:
    return transform.InferType()(transform.PlanDevices(config)(mod))


def check(before: str, after: str, config: Any = CONFIG) -> None:
    """One text becomes the other, the input stays as it was, and a second run gives the module back."""
    mod = parsed(before)
    text = mod.astext()
    result = planned(mod, config)
    assert_structural_equal(result, parsed(after), map_free_vars=True)
    assert mod.astext() == text and transform.PlanDevices(config)(result) is result


T = "Tensor[(2, 3), float32]"


def test_everything_is_on_the_default_device_unless_said_otherwise() -> None:
    mod = parsed(f"def @main(%a: {T}, %b: {T}) {{ multiply(add(%a, %b), %b) }}")
    main = planned(mod)["main"]
    assert not is_marked(mod) and [p.virtual_device_ for p in main.params] == [ZERO, ZERO] and main.virtual_device_ == ZERO
    gpu = make_compilation_config(PassContext(config={"relay.fallback_device_type": 2}), ["llvm", "cuda"])
    assert planned(mod, gpu)["main"].virtual_device_.device_type == 2


def test_marked_operands_are_copied_to_where_they_are_used() -> None:
    check(f"""def @main(%a: {T}, %b: {T}, %c: {T}) {{ subtract(on_device(add(%a, %b), virtual_device=$1), %c) }}""",
          f"""def @main(%a {{virtual_device=$1}}: {T}, %b {{virtual_device=$1}}: {T}, %c {{virtual_device=$0}}: {T}, virtual_device=$0) {{
            %0 = on_device(add(%a, %b), virtual_device=$1, constrain_result=True);
            subtract(device_copy(%0, src_virtual_device=$1, dst_virtual_device=$0), %c) }}""")


def test_a_marked_result_stays_where_it_is() -> None:
    check(f"def @main(%a: {T}) {{ on_device(exp(%a), virtual_device=$1) }}",
          f"def @main(%a {{virtual_device=$1}}: {T}, virtual_device=$1) {{ exp(%a) }}")


def test_copies_of_the_user_are_constraints_and_those_that_move_nothing_go() -> None:
    check(f"""def @main(%a: {T}) {{
            exp(device_copy(tanh(device_copy(%a, src_virtual_device=$0, dst_virtual_device=$0)), src_virtual_device=$0, dst_virtual_device=$1)) }}""",
          f"""def @main(%a {{virtual_device=$0}}: {T}, virtual_device=$1) {{
            %0 = on_device(tanh(%a), virtual_device=$0, constrain_result=True);
            exp(device_copy(%0, src_virtual_device=$0, dst_virtual_device=$1)) }}""")


def test_an_operand_of_primitives_on_two_devices_is_copied_for_the_second() -> None:
    check(f"""def @main(%a: {T}) {{
            %0 = on_device(exp(%a), virtual_device=$1); %1 = on_device(tanh(%a), virtual_device=$0); add(%0, %1) }}""",
          f"""def @main(%a {{virtual_device=$1}}: {T}, virtual_device=$0) {{
            %0 = on_device(exp(%a), virtual_device=$1, constrain_result=True);
            %1 = device_copy(%a, src_virtual_device=$1, dst_virtual_device=$0);
            add(device_copy(%0, src_virtual_device=$1, dst_virtual_device=$0), tanh(%1)) }}""")


def test_let_bound_values_carry_marks() -> None:
    check(f"""def @main(%a: {T}, %b: {T}) {{ let %x = exp(%a); let %y = on_device(tanh(%x), virtual_device=$1); let %z = exp(%b);
            add(on_device(%y, virtual_device=$1), %z) }}""",
          f"""def @main(%a {{virtual_device=$1}}: {T}, %b {{virtual_device=$0}}: {T}, virtual_device=$0) {{
            let %x = on_device(exp(%a), virtual_device=$1, constrain_result=True); let %y = on_device(tanh(%x), virtual_device=$1, constrain_result=True);
            let %z = on_device(exp(%b), virtual_device=$0, constrain_result=True);
            add(device_copy(%y, src_virtual_device=$1, dst_virtual_device=$0), %z) }}""")


def test_functions_have_one_device_per_parameter_and_calls_follow_them() -> None:
    check(f"""def @f(%x: {T}, %y: {T}) -> {T} {{ add(on_device(%x, virtual_device=$1), %y) }}
            def @main(%a: {T}, %b: {T}) -> {T} {{ @f(%b, exp(%a)) }}""",
          f"""def @f(%x {{virtual_device=$1}}: {T}, %y {{virtual_device=$0}}: {T}, virtual_device=$0) -> {T} {{
              add(device_copy(%x, src_virtual_device=$1, dst_virtual_device=$0), %y) }}
            def @main(%a {{virtual_device=$0}}: {T}, %b {{virtual_device=$1}}: {T}, virtual_device=$0) -> {T} {{ @f(%b, exp(%a)) }}""")


def test_arguments_on_another_device_than_the_call_are_marked() -> None:
    check(f"""def @f(%x {{virtual_device=$1}}: {T}) -> {T} {{ on_device(exp(device_copy(%x, src_virtual_device=$1, dst_virtual_device=$0)), virtual_device=$0) }}
            def @main(%a: {T}) -> {T} {{ @f(tanh(%a)) }}""",
          f"""def @f(%x {{virtual_device=$1}}: {T}, virtual_device=$0) -> {T} {{ exp(device_copy(%x, src_virtual_device=$1, dst_virtual_device=$0)) }}
            def @main(%a {{virtual_device=$1}}: {T}, virtual_device=$0) -> {T} {{
              @f(on_device(tanh(%a), virtual_device=$1, constrain_result=True)) }}""")


def test_devices_flow_through_functions_that_are_values() -> None:
    check(f"""def @main(%a: {T}) {{
            let %twice = fn (%f: fn ({T}) -> {T}, %x: {T}) -> {T} {{ %f(%f(%x)) }};
            let %g = fn (%y: {T}) -> {T} {{ exp(%y) }};
            exp(on_device(%twice(%g, %a), virtual_device=$1)) }}""",
          f"""def @main(%a {{virtual_device=$1}}: {T}, virtual_device=$0) {{
            let %twice = fn (%f {{virtual_device=$1}}: fn ({T}) -> {T}, %x {{virtual_device=$1}}: {T}, virtual_device=$1) -> {T} {{ %f(%f(%x)) }};
            let %g = fn (%y {{virtual_device=$1}}: {T}, virtual_device=$1) -> {T} {{ exp(%y) }};
            %0 = on_device(%twice(%g, %a), virtual_device=$1, constrain_result=True);
            exp(device_copy(%0, src_virtual_device=$1, dst_virtual_device=$0)) }}""")


def test_tuples_branches_and_references_are_in_one_place_with_what_they_hold() -> None:
    check(f"""def @main(%c: bool, %a: {T}, %b: {T}) {{
            let %t = (%a, exp(%b)); let %r = ref(%t.1); ref_write(%r, %a);
            if (%c) {{ on_device(ref_read(%r), virtual_device=$1, constrain_result=True) }} else {{ %t.0 }} }}""",
          f"""def @main(%c {{virtual_device=$1}}: bool, %a {{virtual_device=$1}}: {T}, %b {{virtual_device=$1}}: {T}, virtual_device=$1) {{
            let %t = on_device((%a, exp(%b)), virtual_device=$1, constrain_result=True);
            let %r = on_device(ref(%t.1), virtual_device=$1, constrain_result=True);
            on_device(ref_write(%r, %a), virtual_device=$1, constrain_result=True);
            if (%c) {{ ref_read(%r) }} else {{ %t.0 }} }}""")


def test_a_field_is_taken_before_it_is_copied() -> None:
    check("""def @main(%x: Tensor[(4, 4), float32]) { let %t = split(%x, indices_or_sections=2, axis=0);
            exp(on_device(%t, virtual_device=$1).1) }""",
          """def @main(%x {virtual_device=$1}: Tensor[(4, 4), float32], virtual_device=$0) {
            let %t = on_device(split(%x, indices_or_sections=2, axis=0), virtual_device=$1, constrain_result=True);
            %0 = on_device(%t.1, virtual_device=$1, constrain_result=True);
            exp(device_copy(%0, src_virtual_device=$1, dst_virtual_device=$0)) }""")


def test_data_types_are_in_one_place_with_their_fields() -> None:
    types = "type Pair[A] { Both(A, A), One(A), }\n"
    check(types + f"""def @main(%a: {T}, %b: {T}) {{
            let %p = Both(%a, on_device(%b, virtual_device=$1, constrain_result=True)); match (%p) {{ Both(%x, _) => %x, One(%y) => %y, }} }}""",
          types + f"""def @main(%a {{virtual_device=$1}}: {T}, %b {{virtual_device=$1}}: {T}, virtual_device=$1) {{
            let %p = on_device(Both(%a, %b), virtual_device=$1, constrain_result=True); match (%p) {{ Both(%x, _) => %x, One(%y) => %y, }} }}""")


def test_sizes_are_on_the_host() -> None:
    check("def @main(%x: Tensor[(?, 4), float32]) { vm.shape_of(on_device(%x, virtual_device=$1, constrain_result=True), dtype=\"int64\") }",
          "def @main(%x {virtual_device=$1}: Tensor[(?, 4), float32], virtual_device=$4) { vm.shape_of(%x, dtype=\"int64\") }")
    main = planned(parsed("def @main(%n: int64, %k: int64) { memory.alloc_storage(%n, %k, virtual_device=$1) }"))["main"]
    assert [p.virtual_device_ for p in main.params] == [HOST, HOST] and main.virtual_device_ == ONE


def test_loose_marks_allow_copies_and_ask_for_none() -> None:
    check(f"""def @f(%x {{virtual_device=$3}}: {T}, virtual_device=$3) -> {T} {{ %x }}
            def @main(%a {{virtual_device=$0}}: {T}, %b {{virtual_device=$2}}: {T}, virtual_device=$3) -> {T} {{
              add(@f(on_device(%a, constrain_body=False)), @f(on_device(%b, constrain_body=False))) }}""",
          f"""def @f(%x {{virtual_device=$3}}: {T}, virtual_device=$3) -> {T} {{ %x }}
            def @main(%a {{virtual_device=$3}}: {T}, %b {{virtual_device=$2}}: {T}, virtual_device=$3) -> {T} {{
              add(@f(%a), @f(device_copy(%b, src_virtual_device=$2, dst_virtual_device=$3))) }}""")


def test_primitive_functions_are_not_looked_into() -> None:
    text = f"""def @main(%a: {T}) {{ %0 = fn (%p {{virtual_device=$2}}: {T}, Primitive=1, virtual_device=$3) -> {T} {{ exp(%p) }}; %0(%a) }}"""
    main = planned(parsed(text))["main"]
    assert main.params[0].virtual_device_ == NEAR and main.virtual_device_ == FAR


def lowered(scopes: tuple[str, str]) -> tir.PrimFunc:
    x = te.placeholder((2, 3), name="x")
    y = te.compute((2, 3), lambda i, j: x[i, j] + 1.0, name="y")
    from anchorleg.ir.type import FuncType, TensorType
    from anchorleg.tir.device_constraints import apply_prim_func_arg_and_result_memory_constraints

    kind = TensorType((2, 3), "float32")
    return apply_prim_func_arg_and_result_memory_constraints(te.create_prim_func([x, y]), FuncType([kind], kind), scopes)


def scopes_of(func: tir.PrimFunc) -> list[str]:
    return [b.scope() for b in func.buffers]


def test_memory_scopes_of_lowered_functions_flow_both_ways() -> None:
    from anchorleg.ir.type import FuncType, TensorType

    kind = TensorType((2, 3), "float32")
    gvar = GlobalVar("k", FuncType([kind], kind))
    mod = IRModule({gvar: lowered(("near", ""))})
    text = f"""#[version = "0.0.5"]
    def @main(%a {{virtual_device=meta[VirtualDevice][0]}}: {T}, virtual_device=meta[VirtualDevice][3]) {{ call_lowered(@k, (%a,)) }}"""
    result = planned(relay.parse(text, "text", mod, DEVICES))
    assert result["main"].params[0].virtual_device_ == NEAR and scopes_of(result["k"]) == ["near", "far"]
    clash = text.replace("meta[VirtualDevice][0]}", "meta[VirtualDevice][3]}")
    result = planned(relay.parse(clash, "text", IRModule({gvar: lowered(("near", "near"))}), DEVICES))
    assert transform.PlanDevices(CONFIG)(result) is result
    shown = result["main"].astext(show_meta_data=False)
    assert shown.count("device_copy(") == 2  # to the kernel's scope and back


def test_arguments_of_lowered_functions_are_in_scopes_of_their_own() -> None:
    from anchorleg.ir.type import FuncType, TensorType

    kind = TensorType((2, 3), "float32")
    x, y = (te.placeholder((2, 3), name=n) for n in "xy")
    func = te.create_prim_func([x, y, te.compute((2, 3), lambda i, j: x[i, j] + y[i, j])])
    gvar = GlobalVar("k", FuncType([kind, kind], kind))
    from anchorleg.tir.device_constraints import apply_prim_func_arg_and_result_memory_constraints

    mod = IRModule({gvar: apply_prim_func_arg_and_result_memory_constraints(func, gvar.checked_type, ["near", "far", "near"])})
    text = f"""#[version = "0.0.5"]
    def @main(%a {{virtual_device=meta[VirtualDevice][0]}}: {T}, %b {{virtual_device=meta[VirtualDevice][0]}}: {T},
              virtual_device=meta[VirtualDevice][2]) {{ call_lowered(@k, (%a, %b)) }}"""
    assert [p.virtual_device_ for p in planned(relay.parse(text, "text", mod, DEVICES))["main"].params] == [NEAR, FAR]


def test_contradictions_are_refused() -> None:
    with pytest.raises(TargetError, match="(?s)%x .*is on .*is wanted; let it be copied by relay.annotation.on_device"):
        planned(parsed(f"""def @f(%x {{virtual_device=$0}}: {T}, virtual_device=$1) -> {T} {{ %x }} def @main(%a: {T}) -> {T} {{ @f(%a) }}"""))
    with pytest.raises(TargetError, match="no target was given for devices of type 2"):
        planned(IRModule.from_expr(relay.annotation.on_device(relay.exp(relay.var("x", shape=(2,))), cuda(0))))
    with pytest.raises(ArgumentError, match="a CompilationConfig is expected"):
        transform.PlanDevices("llvm")


def test_conditions_are_copied_to_where_the_branch_is() -> None:
    check(f"""def @main(%c {{virtual_device=$0}}: bool, %a: {T}) {{ if (%c) {{ on_device(exp(%a), virtual_device=$1, constrain_result=True) }} else {{ %a }} }}""",
          f"""def @main(%c {{virtual_device=$0}}: bool, %a {{virtual_device=$1}}: {T}, virtual_device=$1) {{
            if (device_copy(%c, src_virtual_device=$0, dst_virtual_device=$1)) {{ exp(%a) }} else {{ %a }} }}""")


def test_only_tensors_are_copied() -> None:
    types = "type Pair[A] { Both(A, A), }\n"
    taken = "match (%p) { Both(%x, _) => %x, }"
    check(types + f"""def @main(%a: {T}, %b: {T}) {{ let %p = on_device(Both(%a, exp(%b)), virtual_device=$1); {taken} }}""",
          types + f"""def @main(%a {{virtual_device=$1}}: {T}, %b {{virtual_device=$1}}: {T}, virtual_device=$1) {{
            let %p = on_device(Both(%a, exp(%b)), virtual_device=$1, constrain_result=True); {taken} }}""")
    with pytest.raises(TargetError, match="values of type Pair.* are not copied between devices, only tensors"):
        planned(parsed(types + f"""def @f(%p {{virtual_device=$0}}: Pair[{T}]) -> {T} {{ {taken} }}
            def @main(%a: {T}) -> {T} {{ @f(on_device(Both(%a, %a), virtual_device=$1)) }}"""))
    with pytest.raises(TargetError, match="values of type Pair.* are not copied"):
        planned(parsed(types + f"def @main(%p: Pair[{T}]) {{ device_copy(%p, src_virtual_device=$0, dst_virtual_device=$1) }}"))


def test_the_device_of_every_expression_can_be_told() -> None:
    mod = planned(parsed(f"def @main(%a: {T}, %c: {T}) {{ let %x = on_device(exp(%a), virtual_device=$1); add(on_device(%x, virtual_device=$1), %c) }}"))
    found = recover_virtual_device_map(mod, mod["main"])
    by_name = {e.op.name: d for e, d in found.items() if isinstance(e, relay.Call)}
    assert by_name == {"exp": ONE, "on_device": ONE, "device_copy": ZERO, "add": ZERO}
    assert {e.name_hint: d for e, d in found.items() if isinstance(e, relay.Var)} == {"a": ONE, "x": ONE, "c": ZERO}
    assert devices_of(mod) == {ZERO, ONE}
    plain = unmarked(mod)
    assert not is_marked(plain) and "on_device" not in plain.astext() and "virtual_device" not in plain.astext()


def test_fused_functions_say_where_they_run() -> None:
    mod = planned(parsed(f"def @main(%a: {T}, %c: {T}) {{ add(on_device(exp(tanh(%a)), virtual_device=$1), %c) }}"))
    pinned = pin_devices(transform.FuseOps(2)(mod))
    text = pinned.astext(show_meta_data=False)
    kernels = [e for e in recover_virtual_device_map(pinned, pinned["main"]) if isinstance(e, relay.Function) and e.get_attr("Primitive")]
    assert "on_device" not in text and len(kernels) == 3
    assert sorted(f.virtual_device_.virtual_device_id for f in kernels) == [0, 0, 1]  # type: ignore[union-attr]


def test_tuples_are_copied_field_by_field() -> None:
    mod = planned(parsed("""def @main(%x: Tensor[(4, 4), float32]) {
      on_device(concatenate(on_device(split(%x, indices_or_sections=2), virtual_device=$0), axis=0), virtual_device=$1) }"""))
    text = split_tuple_copies(mod).astext(show_meta_data=False)
    assert mod.astext(show_meta_data=False).count("device_copy(") == 1 and text.count("device_copy(") == 2


@pytest.mark.parametrize("chain", ["calls", "lets", "marks"])
@pytest.mark.parametrize("count", [sys.getrecursionlimit() + 200, pytest.param(20_000, marks=pytest.mark.slow)])
def test_depth(chain: str, count: int) -> None:
    x = relay.var("x", shape=(2,))
    body, bindings = x, []
    for i in range(count):
        body = relay.exp(body)
        if chain == "marks" and i % 2:
            body = relay.annotation.on_device(body, ONE if i % 4 == 1 else ZERO)
        if chain == "lets":
            bindings.append((relay.var(f"v{i}"), body))
            body = bindings[-1][0]
    for var, value in reversed(bindings):
        body = relay.Let(var, value, body)
    mod = planned(transform.InferType()(IRModule.from_expr(relay.annotation.on_device(body, ONE))))
    assert mod["main"].virtual_device_ == ONE
    assert len(recover_virtual_device_map(mod, mod["main"])) > count
    assert pin_devices(split_tuple_copies(mod))["main"].virtual_device_ == ONE


def test_values_stay(seed: int = 0) -> None:
    mod = parsed(f"""def @main(%a: {T}, %c: {T}) {{ %0 = on_device(exp(%a), virtual_device=$1); %1 = on_device(tanh(%a), virtual_device=$0);
      add(multiply(%0, %c), %1) }}""")
    args = [np.random.default_rng(seed).standard_normal((2, 3)).astype("float32") for _ in range(2)]
    want, got = (relay.create_executor("debug", mod=m, target="numpy").evaluate()(*args).numpy() for m in (mod, planned(mod)))
    np.testing.assert_array_equal(want, got)
