"""Programs on several devices: built, run, and what their graphs say."""
from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.contrib.graph_executor import GraphModule, create
from anchorleg.ir import IRModule
from anchorleg.ir.op import Op
from anchorleg.ir.structural import assert_structural_equal
from anchorleg.ir.transform import PassContext
from anchorleg.relay.backend.graph_nodes import Entry, GraphNode, TensorInfo
from anchorleg.relay.backend.graph_plan_memory import plan_memory
from anchorleg.relay.backend.placement import main_target, place
from anchorleg.relay.backend.storage_info import graph_plan_memory
from anchorleg.relay.transform.common import rewrite_exprs
from anchorleg.relay.transform.device_scopes import unmarked
from anchorleg.runtime import cpu, cuda, load_module
from anchorleg.runtime.vm import Executable, VirtualMachine
from anchorleg.support.errors import ArgumentError, ArtifactError, TargetError
from anchorleg.target import Target, VirtualDevice, make_compilation_config

from ..transform.graphs import random_graph
from ..transform.passes import inputs, values

on_device = relay.annotation.on_device
A = np.linspace(-1, 1, 12, dtype="float32").reshape(3, 4)


def there_and_back() -> IRModule:
    """cpu(1): exp(x) + y; cpu(0): all of it times a constant; cpu(1): tanh."""
    x, y = relay.var("x", shape=(3, 4)), relay.var("y", shape=(3, 4))
    first = on_device(relay.exp(x) + y, cpu(1))
    second = on_device(first * relay.const(A), cpu(0))
    return IRModule.from_expr(relay.Function([x, y], on_device(relay.tanh(second), cpu(1))))


WANT = np.tanh((np.exp(A) + A[::-1]) * A)


def graph_of(lib: Any) -> tuple[list[str], dict[str, list[int]]]:
    graph = json.loads(lib.get_graph_json())
    return [n.get("attrs", {}).get("func_name", n["name"]) for n in graph["nodes"]], {k: v[1] for k, v in graph["attrs"].items()}


def run(lib: Any, *devices: Any) -> GraphModule:
    module = GraphModule(lib["default"](*devices))
    module.set_input("x", A)
    module.set_input("y", A[::-1].copy())
    module.run()
    return module


@pytest.mark.parametrize("target", ["llvm", {cpu(0): "llvm", cpu(1): "llvm"}, ["llvm"], ["llvm", "cuda"], {"cpu": "llvm", "cuda": "cuda"}])
def test_values_are_copied_between_devices(target: Any) -> None:
    lib = relay.build(there_and_back(), target)
    names, attrs = graph_of(lib)
    assert names.count("__copy") == 2 and set(attrs["device_index"]) == {1}
    assert attrs["device_id"] == [1, 1, 1, 0, 0, 0, 1, 1]
    module = run(lib, cpu(0), cpu(1))
    np.testing.assert_allclose(module.get_output(0).numpy(), WANT, rtol=1e-5)
    assert module.get_output(0).device == module.get_input("x").device == cpu(1)


def test_devices_of_an_executor() -> None:
    lib = relay.build(there_and_back(), "llvm")
    assert run(lib, cpu(0)).get_output(0).device == cpu(0)  # the one there is of that type
    again = create(lib.get_graph_json(), lib.get_lib(), [cpu(0), cpu(1)])
    assert again.module.executor.devices == (cpu(0), cpu(1))
    with pytest.raises(ArgumentError, match="asks for cuda\\(0\\), which this process does not have"):
        lib["default"](cpu(0), cuda(0))


def test_files_keep_devices(tmp_path: Any) -> None:
    path = relay.build(there_and_back(), "llvm").export_library(tmp_path / "model.al")
    module = run(load_module(path), cpu(0), cpu(1))
    np.testing.assert_allclose(module.get_output(0).numpy(), WANT, rtol=1e-5)
    assert module.get_output(0).device == cpu(1)


@pytest.mark.parametrize("level", [0, 3])
def test_networks_with_marks(level: int) -> None:
    rng = np.random.default_rng(0)
    x, w = relay.var("x", shape=(1, 8, 9, 9)), relay.const(rng.standard_normal((8, 8, 3, 3)).astype("float32"))
    one = relay.nn.batch_norm(relay.nn.conv2d(x, w, padding=(1, 1)), *(relay.const(np.abs(rng.standard_normal(8)).astype("float32") + 0.5) for _ in range(4)))[0]
    two = relay.nn.conv2d(on_device(relay.nn.relu(one), cpu(1)), w, padding=(1, 1))
    parts = relay.split(on_device(two, cpu(0)), 2, axis=1)
    func = relay.Function([x], relay.nn.softmax(relay.concatenate([on_device(parts[1], cpu(1)), parts[0]], axis=1), axis=1))
    data = rng.standard_normal((1, 8, 9, 9)).astype("float32")
    want = relay.create_executor("debug", mod=IRModule.from_expr(func), target="numpy").evaluate()(data).numpy()
    with PassContext(opt_level=level):
        lib = relay.build(IRModule.from_expr(func), "llvm")
    assert graph_of(lib)[0].count("__copy") >= 2
    module = GraphModule(lib["default"](cpu(0), cpu(1)))
    module.set_input("x", data)
    module.run()
    np.testing.assert_allclose(module.get_output(0).numpy(), want, rtol=1e-4, atol=1e-5)


def marked_at_random(mod: IRModule, seed: int) -> IRModule:
    """The program with a quarter of its values placed on one of three processors."""
    rng = random.Random(seed)

    def rule(old: Any, new: Any) -> Any:
        if isinstance(new, (relay.Function, Op)) or rng.random() > 0.25:
            return new
        placed = on_device(new, cpu(rng.randrange(3)))
        placed._checked_type = old._checked_type
        return placed

    main = mod["main"]
    return relay.transform.InferType()(IRModule.from_expr(relay.Function(main.params, rewrite_exprs(main.body, rule))))


@pytest.mark.parametrize("seed", range(6))
def test_random_programs_with_random_marks(seed: int) -> None:
    mod = random_graph(seed)
    marked, args, devices = marked_at_random(mod, seed), inputs(mod, seed), [cpu(i) for i in range(3)]
    module = GraphModule(relay.build(marked, "llvm")["default"](*devices))
    for param, value in zip(mod["main"].params, args):
        module.set_input(param.name_hint, value)
    module.run()
    machine = VirtualMachine(relay.vm.compile(marked, "llvm"), devices)
    result = machine.run(*args)
    for i, want in enumerate(values(mod, *args)):
        np.testing.assert_allclose(module.get_output(i).numpy(), want, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose((result if hasattr(result, "numpy") else result[i]).numpy(), want, rtol=1e-4, atol=1e-4)


def test_functions_and_tuples_across_devices() -> None:
    mod = IRModule()
    x, y = relay.var("x", shape=(3, 4)), relay.var("y", shape=(3, 4))
    mod["f"] = relay.Function([x, y], relay.Tuple([on_device(relay.exp(x), cpu(1)), relay.tanh(y)]))
    a, b = relay.var("x", shape=(3, 4)), relay.var("y", shape=(3, 4))
    pair = relay.Call(mod.get_global_var("f"), [a, b])
    mod["main"] = relay.Function([a, b], on_device(relay.concatenate(on_device(pair, cpu(0)), axis=0), cpu(1)))
    lib = relay.build(mod, "llvm")
    want = np.concatenate([np.exp(A), np.tanh(A[::-1])])
    np.testing.assert_allclose(run(lib, cpu(0), cpu(1)).get_output(0).numpy(), want, rtol=1e-5)


def test_programs_in_one_place_are_as_without_marks() -> None:
    x = relay.var("x", shape=(3, 4))
    marked, plain = (relay.build(IRModule.from_expr(relay.Function([x], relay.tanh(mark(relay.exp(x))))), "llvm")
                     for mark in (lambda e: on_device(e, cpu(0)), lambda e: e))
    assert marked.get_graph_json() == plain.get_graph_json() and "device_id" not in graph_of(plain)[1]
    mod = IRModule.from_expr(relay.exp(x))
    assert place(mod, [Target("llvm")]) is mod


def test_ahead_of_time_processors_are_one() -> None:
    from anchorleg.contrib.aot_executor import AotModule

    module = AotModule(relay.build(there_and_back(), "llvm", executor=relay.backend.Executor("aot"))["default"](cpu(0)))
    module.set_input("x", A)
    module.set_input("y", A[::-1].copy())
    module.run()
    np.testing.assert_allclose(module.get_output(0).numpy(), WANT, rtol=1e-5)


def test_devices_that_are_not_there() -> None:
    x = relay.var("x", shape=(3, 4))
    far = IRModule.from_expr(relay.Function([x], relay.tanh(on_device(relay.exp(x), cuda(0)))))
    with pytest.raises(TargetError, match="no target was given for devices of type 2 \\(cuda\\)"):
        relay.build(far, "llvm")
    with pytest.raises(TargetError, match="expected a target that LLVM compiles for the processor .*got cuda"):
        relay.build(far, ["llvm", "cuda"])
    with pytest.raises(TargetError, match="the aot executor runs on the host; the program places values on .*device_type=2"):
        relay.build(far, ["llvm", "cuda"], executor=relay.backend.Executor("aot"))
    with pytest.raises(TargetError, match="several targets are given for the kind 'llvm'"):
        relay.build(far, ["llvm", "llvm -mcpu=x86-64"])


def test_the_target_of_what_nobody_places() -> None:
    targets = [Target("cuda"), Target("llvm")]
    assert main_target(targets).kind.name == "llvm"
    with PassContext(config={"relay.fallback_device_type": 2}):
        assert main_target(targets).kind.name == "cuda"


def test_storage_is_not_shared_between_devices() -> None:
    info = [TensorInfo((16,), "float32")]
    nodes = [GraphNode("x", None, (), info)]
    for i, device in enumerate([(1, 0), (1, 1), (1, 0), (1, 1), (1, 0)]):
        nodes.append(GraphNode(f"n{i}", "f", [Entry(i)], info, device=device))
    plan = plan_memory(nodes, [Entry(5)])
    owners: dict[int, set[tuple[int, int]]] = {}
    for node, row in zip(nodes, plan.storage):
        owners.setdefault(row[0], set()).add(node.device)
    assert all(len(d) == 1 for d in owners.values()) and len(owners) < len(nodes)


# ---------------------------------------------------------------------------------------------------- the virtual machine


def opcodes(exe: Any) -> list[str]:
    return [i.op.name for f in exe.functions for i in f.instructions]


@pytest.mark.parametrize("target", ["llvm", {cpu(0): "llvm", cpu(1): "llvm"}, ["cuda", "llvm"]])
def test_the_virtual_machine_copies_between_devices(target: Any) -> None:
    exe = relay.vm.compile(there_and_back(), target)
    assert opcodes(exe).count("DeviceCopy") == 2
    assert "VirtualDevice[0]: device type 1, id 0" in exe.virtual_devices and "VirtualDevice[1]: device type 1, id 1" in exe.virtual_devices
    storage = [i.device_index for f in exe.functions for i in f.instructions if i.op.name == "AllocStorage"]
    copies = [(i.src_device_index, i.dst_device_index) for f in exe.functions for i in f.instructions if i.op.name == "DeviceCopy"]
    assert storage == [1, 0, 1] and copies == [(1, 0), (0, 1)]
    result = VirtualMachine(exe, [cpu(0), cpu(1)]).run(A, A[::-1].copy())
    np.testing.assert_allclose(result.numpy(), WANT, rtol=1e-5)
    assert result.device == cpu(1) and VirtualMachine(exe, cpu(0)).run(A, A[::-1].copy()).device == cpu(0)


def test_executables_keep_devices(tmp_path: Any) -> None:
    exe = relay.vm.compile(there_and_back(), "llvm")
    back = Executable.load_exec(*exe.save())
    assert back.devices == exe.devices == [(1, 0), (1, 1)] and back.constant_devices == exe.constant_devices
    loaded = load_module(exe.export_library(tmp_path / "exe.al"))
    result = VirtualMachine(loaded, [cpu(0), cpu(1)]).run(A, A[::-1].copy())
    np.testing.assert_allclose(result.numpy(), WANT, rtol=1e-5)
    assert result.device == cpu(1)


def test_constants_are_where_they_are_used() -> None:
    x = relay.var("x", shape=(3, 4))
    body = relay.tanh(on_device(relay.exp(x) * relay.const(A), cpu(1))) + relay.const(A)
    exe = relay.vm.compile(IRModule.from_expr(relay.Function([x], body)), "llvm")
    places = [d for c, d in zip(exe.constant_data, exe.constant_devices) if c.shape == (3, 4)]
    assert sorted(places) == [0, 1]
    assert "NDArray[(3,4),float32,(1,1)] on device index 1" in exe.constants and "NDArray[(),int64,(1,0)]=[48] on device index 0" in exe.constants
    np.testing.assert_allclose(VirtualMachine(exe, cpu(0)).run(A).numpy(), np.tanh(np.exp(A) * A) + A, rtol=1e-5)


def test_branches_loops_and_closures_over_devices() -> None:
    text = """#[version = "0.0.5"]
    type List[A] { Cons(A, List[A]), Nil, }
    def @sum(%l: List[Tensor[(?, 4), float32]], %z: Tensor[(?, 4), float32]) -> Tensor[(?, 4), float32] {
      match (%l) { Cons(%h, %t) => @sum(%t, add(%z, %h)), Nil => %z, } }
    def @main(%x: Tensor[(?, 4), float32], %n: int32) -> Tensor[(?, 4), float32] {
      let %far = fn (%v: Tensor[(?, 4), float32]) -> Tensor[(?, 4), float32] { on_device(exp(%v), virtual_device=meta[VirtualDevice][0]) };
      let %loop = fn (%i: int32, %v: Tensor[(?, 4), float32]) -> Tensor[(?, 4), float32] {
        if (equal(%i, 0)) { %v } else { %loop(subtract(%i, 1), tanh(on_device(%far(on_device(%v, virtual_device=meta[VirtualDevice][1])),
          virtual_device=meta[VirtualDevice][0]))) } };
      let %y = %loop(%n, %x);
      @sum(Cons(%y, Cons(%x, Nil)), %x) }"""
    mod = relay.parse(text, "text", None, {"VirtualDevice": [VirtualDevice(cpu(1)), VirtualDevice(cpu(0))]})
    exe = relay.vm.compile(mod, "llvm")
    assert "DeviceCopy" in opcodes(exe)
    want = A
    for _ in range(3):
        want = np.tanh(np.exp(want))
    np.testing.assert_allclose(VirtualMachine(exe, [cpu(0), cpu(1)]).run(A, np.int32(3)).numpy(), want + A + A, rtol=1e-5)


class Programs:
    """Random programs with branches, bindings, local functions and tuples, whose values are placed at random."""

    def __init__(self, seed: int) -> None:
        self.rng, self.count = random.Random(seed), 0
        self.kind = relay.TensorType((2, 4), "float32")
        self.params = [relay.var("c", shape=(), dtype="bool"), *(relay.var(n, self.kind) for n in "ab")]

    def name(self, hint: str) -> relay.Var:
        self.count += 1
        return relay.var(f"{hint}{self.count}", self.kind if hint == "v" else None)

    def expr(self, env: list[Any], funs: list[Any], depth: int) -> Any:
        if depth <= 0:
            return self.rng.choice(env)
        made = self.rng.choice([self.binary, self.binary, self.branch, self.let, self.function, self.call, self.field])(env, funs, depth - 1)
        if self.rng.random() > 0.3:
            return made
        return on_device(made, cpu(self.rng.randrange(3)), constrain_result=self.rng.random() < 0.1)

    def binary(self, env: list[Any], funs: list[Any], depth: int) -> Any:
        return self.rng.choice([relay.add, relay.multiply, relay.maximum])(self.expr(env, funs, depth), self.expr(env, funs, depth))

    def branch(self, env: list[Any], funs: list[Any], depth: int) -> Any:
        return relay.If(self.params[0], self.expr(env, funs, depth), self.expr(env, funs, depth))

    def let(self, env: list[Any], funs: list[Any], depth: int) -> Any:
        var = self.name("v")
        return relay.Let(var, self.expr(env, funs, depth), self.expr([*env, var], funs, depth))

    def function(self, env: list[Any], funs: list[Any], depth: int) -> Any:
        var, param = self.name("f"), self.name("v")
        return relay.Let(var, relay.Function([param], self.expr([*env, param], funs, depth - 1), self.kind), self.expr(env, [*funs, var], depth))

    def call(self, env: list[Any], funs: list[Any], depth: int) -> Any:
        return self.rng.choice(funs or [relay.tanh])(self.expr(env, funs, depth))

    def field(self, env: list[Any], funs: list[Any], depth: int) -> Any:
        pair = relay.Tuple([self.expr(env, funs, depth), self.expr(env, funs, depth)])
        return relay.TupleGetItem(on_device(pair, cpu(1)) if self.rng.random() < 0.2 else pair, self.rng.randrange(2))


@pytest.mark.parametrize("seed", range(5))
def test_random_programs_with_control_flow(seed: int) -> None:
    programs = Programs(seed)
    mod = relay.transform.InferType()(IRModule.from_expr(relay.Function(programs.params, programs.expr(programs.params[1:], [], 5))))
    rng = np.random.default_rng(seed)
    args = [np.array(seed % 2 == 0), *(rng.standard_normal((2, 4)).astype("float32") for _ in range(2))]
    (want,) = values(unmarked(mod), *args)
    result = VirtualMachine(relay.vm.compile(mod, "llvm"), [cpu(i) for i in range(3)]).run(*args)
    np.testing.assert_allclose(result.numpy(), want, rtol=1e-4, atol=1e-4)
    config = make_compilation_config(PassContext(), "llvm")
    planned = relay.transform.InferType()(relay.transform.PlanDevices(config)(mod))
    assert_structural_equal(relay.transform.PlanDevices(config)(planned), planned)


def test_lists_and_polymorphic_functions_over_devices() -> None:
    prelude = relay.Prelude(IRModule())
    mod, (_, cons, nil), kind = prelude.mod, prelude.mod.get_type("List"), relay.TensorType((3,), "float32")
    x, h, acc, e = relay.var("x", kind), relay.var("h", kind), relay.var("acc", kind), relay.var("e", kind)
    each = relay.Function([h], on_device(relay.exp(on_device(h, cpu(0))), cpu(1)), kind)
    total = relay.Function([acc, e], relay.add(on_device(acc, cpu(1)), e), kind)
    mapped = relay.Call(mod.get_global_var("map"), [each, cons(x, cons(on_device(relay.tanh(x), cpu(2)), nil()))])
    mod["main"] = relay.Function([x], relay.Call(mod.get_global_var("foldl"), [total, relay.zeros((3,), "float32"), mapped]))
    exe = relay.vm.compile(relay.transform.InferType()(mod), "llvm")
    value = np.float32([0.1, 0.2, 0.3])
    np.testing.assert_allclose(VirtualMachine(exe, [cpu(i) for i in range(3)]).run(value).numpy(), np.exp(value) + np.exp(np.tanh(value)), rtol=1e-5)
    assert len(exe.devices) == 3


def test_machines_without_the_device() -> None:
    exe = relay.vm.compile(there_and_back(), "llvm")
    with pytest.raises(ArgumentError, match="got cuda\\(0\\), which this process does not have"):
        VirtualMachine(exe, [cpu(0), cuda(0)])
    far = Executable(exe.functions, exe.constant_data, exe.packed, exe.lib, exe.param_types, None, [(1, 0), (2, 0)], exe.constant_devices)
    with pytest.raises(ArgumentError, match="the program places values on cuda\\(0\\)"):
        VirtualMachine(far, cpu(0))
    wrong = Executable(exe.functions, exe.constant_data, exe.packed, exe.lib, exe.param_types, None, [(1, 0)], exe.constant_devices)
    with pytest.raises(ArtifactError, match="names devices that it does not have"):
        Executable.load_exec(*wrong.save())
    x = relay.var("x", shape=(3, 4))
    with pytest.raises(TargetError, match="no target was given for devices of type 2"):
        relay.vm.compile(IRModule.from_expr(on_device(relay.exp(x), cuda(0))), "llvm")
    with pytest.raises(TargetError, match="got cuda"):
        relay.vm.compile(IRModule.from_expr(on_device(relay.exp(x), cuda(0))), ["llvm", "cuda"])


# ---------------------------------------------------------------------------------------------------------- storage


def fused(expr: Any) -> relay.Function:
    return relay.transform.FuseOps(0)(relay.transform.InferType()(IRModule.from_expr(expr)))["main"]


def test_the_storage_of_every_expression() -> None:
    x, y = relay.var("x", shape=(10,)), relay.var("y", shape=(1,))
    first = relay.exp(y)
    total = relay.add(x, first)
    func = fused(relay.Function([x, y], relay.exp(relay.exp(relay.exp(total)))))
    plan = graph_plan_memory(func).expr_to_storage_info
    ids = [i for info in plan.values() for i in info.storage_ids]
    assert len(set(ids)) == 4 and len(plan) == len(ids) == 7
    sizes = {i: s for info in plan.values() for i, s in zip(info.storage_ids, info.storage_sizes)}
    assert sizes == {0: 40, 1: 4, 2: 4, 3: 40}  # the bytes that each was made for


def test_storage_in_other_memory_scopes() -> None:
    near, far = (VirtualDevice(cpu(0), Target("llvm"), scope) for scope in ("global", "global.texture"))
    x = relay.var("x", shape=(10,))
    body: Any = x
    for i in range(6):
        body = on_device(relay.exp(body), far if i % 2 else near)
    mod = relay.transform.InferType()(IRModule.from_expr(relay.Function([x], body)))
    planned = place(mod, [Target("llvm")])
    func = relay.transform.FuseOps(0)(planned)["main"]
    scopes: dict[int, set[str]] = {}
    for info in graph_plan_memory(func).expr_to_storage_info.values():
        for i, d in zip(info.storage_ids, info.virtual_devices):
            scopes.setdefault(i, set()).add(d.memory_scope)
    assert all(len(s) == 1 for s in scopes.values()) and {"global", "global.texture"} == set.union(*scopes.values())
    graph = json.loads(relay.build(mod, "llvm").get_graph_json())["attrs"]
    assert set(graph["storage_scope"][1]) == {"global", "global.texture"}
