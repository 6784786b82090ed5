"""AOTLowerMain: main as a loop program, before and after, and the metadata made of it."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.ir import assert_structural_equal
from anchorleg.ir.memory_pools import AllocatedPoolInfo, ConstantPoolInfo, PoolInfo, WorkspacePoolInfo
from anchorleg.relay.backend.aot import AOTLowerMain, CallType, CreateExecutorMetadata, CreateFunctionMetadata
from anchorleg.relay.backend.executor import Executor
from anchorleg.script import tir as T
from anchorleg.support.errors import AnchorlegError, ArgumentError, TypeMismatchError, UnsupportedOpError
from anchorleg.target import make_compilation_config
from anchorleg.tir import stmt as ts

_KERNEL = "def @k(%x: Tensor[(3, 5), float32], %y: Tensor[(3, 5), float32]) -> Tensor[(3, 5), float32] { %x }\n"
_PAIR = "def @p(%x: Tensor[(3, 5), float32]) -> (Tensor[(3, 5), float32], Tensor[(3, 5), float32]) { (%x, %x) }\n"


def _lower(main: str, call_type: CallType = CallType.CPacked, kernels: str = _KERNEL + _PAIR, attrs: Any = None, constants: Any = ()) -> Any:
    mod = relay.parse('#[version = "0.0.5"]\n' + kernels + main, init_meta_table={"relay.Constant": list(constants)})
    if attrs is not None:
        mod = mod.with_attr("device_contexts", {v: attrs for v in mod.get_global_vars() if v.name_hint != "main"})
    return AOTLowerMain("net", make_compilation_config(None, "llvm"), call_type)(mod)


def _main(text: str, *args: Any, **kwargs: Any) -> Any:
    return _lower(text, *args, **kwargs)["__tvm_main__"]


_TWO_CALLS = """def @main(%a: Tensor[(3, 5), float32]) -> Tensor[(3, 5), float32] {
  let %x = call_lowered(@k, (%a, %a));
  let %y = call_lowered(@k, (%x, %a));
  call_lowered(@k, (%x, %y))
}"""


def test_packed_c_calls_over_allocated_memory() -> None:
    @T.prim_func
    def expected(a: T.handle, output: T.handle):
        T.func_attr({"global_symbol": "net___tvm_main__", "runner_function": True, "target": T.target("llvm"), "input_vars": [a],
                     "output_vars": [output], "devices": []})
        A = T.match_buffer(a, [3, 5], "float32", align=16)
        OUT = T.match_buffer(output, [3, 5], "float32", align=16)
        y = T.allocate([60], "int8", "global.workspace")
        x = T.allocate([60], "int8", "global.workspace")
        T.evaluate(T.tvm_call_cpacked("k", A.data, A.data, x, T.reinterpret("handle", T.uint64(0))))
        T.evaluate(T.tvm_call_cpacked("k", x, A.data, y, T.reinterpret("handle", T.uint64(0))))
        T.evaluate(T.tvm_call_cpacked("k", x, y, OUT.data, T.reinterpret("handle", T.uint64(0))))

    assert_structural_equal(_main(_TWO_CALLS), expected)


@pytest.mark.parametrize("call_type, op", [(CallType.Packed, "tir.tvm_call_packed"), (CallType.Unpacked, "tir.call_extern")])
def test_other_calls_are_checked(call_type: CallType, op: str) -> None:
    calls = [s.value for s in _main(_TWO_CALLS, call_type).body.body.body.seq]
    assert [c.op.name for c in calls] == ["tir.tvm_check_return"] * 3
    assert [c.args[2].op.name for c in calls] == [op] * 3 and len(calls[0].args[2].args) == 4


def test_tuples_between_and_as_results() -> None:
    func = _main("""def @main(%a: Tensor[(3, 5), float32]) -> (Tensor[(3, 5), float32], Tensor[(3, 5), float32]) {
  %0 = call_lowered(@p, (%a,));
  (call_lowered(@k, (%0.1, %0.0)), %0.0)
}""")
    assert [v.name for v in func.get_attr("output_vars")] == ["output0", "output1"]
    first, second = func.body.body.seq
    second_half = func.body.buffer_var  # only the second of the pair is kept in memory of its own
    out0, out1 = (func.buffer_map[v].data for v in func.get_attr("output_vars"))
    assert list(first.value.args[1:4]) == [func.buffers[0].data, out1, second_half]
    assert list(second.value.args[1:4]) == [second_half, out1, out0]


def test_constants_lie_outermost() -> None:
    data = relay.const(np.arange(15, dtype="float32").reshape(3, 5))
    func = _main("def @main(%a: Tensor[(3, 5), float32]) { call_lowered(@k, (%a, meta[relay.Constant][0])) }", constants=[data])
    assert isinstance(func.body, ts.AllocateConst) and [int(e) for e in func.body.extents] == [3, 5]
    np.testing.assert_array_equal(func.body.data.numpy(), np.arange(15).reshape(3, 5))
    assert func.body.body.value.args[2] is func.body.buffer_var


def test_results_that_are_inputs_or_twice_the_same_are_copied() -> None:
    func = _main("""def @main(%a: Tensor[(3, 5), float32]) {
  let %x = call_lowered(@k, (%a, %a));
  (%x, %a, %x)
}""")
    call, *copies = func.body.seq
    outs = [func.buffer_map[v].data for v in func.get_attr("output_vars")]
    assert call.value.args[3] is outs[0]
    assert [(c.value, c.body.body.value.value) for c in copies] == [(outs[1], func.buffers[0].data), (outs[2], outs[0])]
    assert copies[0].body.extent.value == 60


def test_names_of_results_may_be_given() -> None:
    mod = relay.parse('#[version = "0.0.5"]\n' + _KERNEL + "def @main(%a: Tensor[(3, 5), float32]) { call_lowered(@k, (%a, %a)) }")
    mod["main"] = mod["main"].with_attr("output_tensor_names", ["probabilities"])
    func = AOTLowerMain("net", make_compilation_config(None, "llvm"), CallType.CPacked)(mod)["__tvm_main__"]
    assert [v.name for v in func.params] == ["a", "probabilities"]


def test_devices_get_their_hooks() -> None:
    func = _main("def @main(%a: Tensor[(3, 5), float32]) { call_lowered(@k, (%a, %a)) }", CallType.Unpacked, attrs="my-npu")
    assert [v.name for v in func.params] == ["a", "output", "device_context_my_npu"] and func.get_attr("devices") == ["my_npu"]
    names = [s.value.args[2].args[0].value for s in func.body.seq]
    assert names == ["TVMDeviceMyNpuActivate", "TVMDeviceMyNpuOpen", "k", "TVMDeviceMyNpuClose", "TVMDeviceMyNpuDeactivate"]
    assert func.body.seq[2].value.args[2].args[-1] is func.params[2]
    with pytest.raises(UnsupportedOpError, match="device context"):
        _main("def @main(%a: Tensor[(3, 5), float32]) { call_lowered(@k, (%a, %a)) }", CallType.Packed, attrs="my-npu")


@pytest.mark.parametrize("main", ["def @main(%a: Tensor[(3, 5), float32]) { nn.relu(%a) }", "def @main(%a: Tensor[(?, 5), float32]) { %a }",
                                  "def @main(%a: Tensor[(3, 5), float32]) { @k(%a, %a) }"])
def test_what_is_not_lowered_is_refused(main: str) -> None:
    with pytest.raises(UnsupportedOpError, match="AOTLowerMain"):
        _main(main)


def test_5000_calls_in_a_row() -> None:
    lines = "\n".join(f"  let %v{i} = call_lowered(@k, (%{'a' if i == 0 else f'v{i - 1}'}, %a));" for i in range(5000))
    func = _main(f"def @main(%a: Tensor[(3, 5), float32]) {{\n{lines}\n  %v4999\n}}")
    depth, s = 0, func.body
    while isinstance(s, ts.Allocate):
        depth, s = depth + 1, s.body
    assert depth == 4999 and len(s.seq) == 5000


# ---------------------------------------------------------------- metadata


def _pools(target: Any) -> tuple[AllocatedPoolInfo, AllocatedPoolInfo]:
    return AllocatedPoolInfo(WorkspacePoolInfo("ram", [target]), 100, 0), AllocatedPoolInfo(ConstantPoolInfo("rom", [target]), 30, 1)


def test_sizes_of_functions() -> None:
    mod = _lower(_TWO_CALLS)
    found = CreateFunctionMetadata(mod, 16, 1)["__tvm_main__"]
    target = mod["__tvm_main__"].get_attr("target")
    assert found.workspace_sizes.items() == [(target, 128)] and found.io_sizes.items() == [(target, 120)]
    assert found.constant_sizes.items() == [(target, 0)] and found.tir_primfuncs[target] is mod["__tvm_main__"]


def test_pools_count_for_main() -> None:
    mod = _lower(_TWO_CALLS)
    target = mod["__tvm_main__"].get_attr("target")
    found = CreateFunctionMetadata(mod.with_attr("pool_args", list(_pools(target))), 1, 1)["__tvm_main__"]
    assert found.workspace_sizes[target] == 220 and found.constant_sizes[target] == 30
    with pytest.raises(TypeMismatchError, match="WorkspacePoolInfo or a ConstantPoolInfo"):
        CreateFunctionMetadata(mod.with_attr("pool_args", [AllocatedPoolInfo(PoolInfo("x", [target]), 1)]), 1, 1)


def test_the_border_of_main() -> None:
    mod = _lower(_TWO_CALLS)
    main = mod["__tvm_main__"]
    mod["__tvm_main__"] = main.with_attr("pool_args", list(_pools(main.get_attr("target"))))
    found = CreateExecutorMetadata(mod, "net", Executor("aot", {"interface-api": "c"}), 16, 4)
    assert found.inputs[0] is main.params[0] and found.outputs == ["output"] and found.interface_api == "c"
    assert found.input_tensor_types == found.output_tensor_types == [relay.TensorType((3, 5), "float32")]
    assert found.pools == list(main.params) and (found.workspace_alignment, found.constant_alignment) == (16, 4)
    assert found.pool_inputs[main.params[1]].pool_info.pool_name == "rom" and found.devices == []


def test_metadata_of_what_is_not_lowered() -> None:
    mod = relay.parse('#[version = "0.0.5"]\ndef @main(%a: Tensor[(3, 5), float32]) { %a }')
    with pytest.raises(ArgumentError, match="AOTLowerMain"):
        CreateExecutorMetadata(mod, "net", Executor("aot"), 16, 1)
    assert CreateFunctionMetadata(mod, 16, 1) == {}
    assert issubclass(ArgumentError, AnchorlegError)
