"""Programs on the virtual machine: unknown sizes, branches, loops, closures, data types."""
from __future__ import annotations

import threading

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.ir.module import IRModule
from anchorleg.runtime import cpu
from anchorleg.runtime.vm import Executable, VirtualMachine
from anchorleg.support.errors import ArgumentError, ArtifactError, TypeMismatchError

RNG = np.random.default_rng(3)


def machine(program, **options):
    mod = program if isinstance(program, IRModule) else IRModule.from_expr(program)
    return VirtualMachine(relay.vm.compile(mod, "llvm"), cpu(0), **options)


def floats(*shape):
    return RNG.standard_normal(shape).astype("float32")


def counting_loop(limit_dtype="int64"):
    """fn (n) { i = 0; s = 0; while i < n: s += i; i += 1; s }"""
    n, i, s = (relay.var(x, shape=(), dtype=limit_dtype) for x in "nis")
    loop = relay.var("loop")
    one, zero = relay.const(1, limit_dtype), relay.const(0, limit_dtype)
    body = relay.If(relay.less(i, n), relay.Call(loop, [relay.add(i, one), relay.add(s, i)]), s)
    func = relay.Function([i, s], body, relay.TensorType((), limit_dtype))
    return relay.Function([n], relay.Let(loop, func, relay.Call(loop, [zero, zero])))


@pytest.mark.parametrize("rows", [0, 1, 2, 5, 6, 7, 13, 64])
def test_one_executable_for_all_sizes(rows):
    x, w = relay.var("x", shape=(relay.Any(), 40)), relay.const(floats(24, 40))
    vm = machine(relay.Function([x], relay.tanh(relay.nn.dense(x, w))))
    value = floats(rows, 40)
    np.testing.assert_allclose(vm.run(value).numpy(), np.tanh(value @ w.data.numpy().T), rtol=2e-5, atol=2e-5)


def test_sizes_that_do_not_broadcast_are_refused_and_the_machine_stays_usable():
    x, y = relay.var("x", shape=(relay.Any(), 3)), relay.var("y", shape=(relay.Any(), 3))
    vm = machine(relay.Function([x, y], relay.add(x, y)))
    a, b = floats(4, 3), floats(2, 3)
    with pytest.raises(ArgumentError, match="broadcast"):
        vm.run(a, b)
    np.testing.assert_array_equal(vm.run(a, a).numpy(), a + a)
    np.testing.assert_array_equal(vm.run(a, b[:1]).numpy(), a + b[:1])


def test_loop_counts():
    vm = machine(counting_loop())
    assert [int(vm.run(np.array(n, "int64")).numpy()) for n in (0, 1, 10, 1000)] == [0, 0, 45, 499500]


def test_branches_do_not_share_registers():
    b = relay.var("b", shape=(), dtype="bool")
    t0, t1 = relay.Tuple([relay.const(0)]), relay.Tuple([relay.const(1)])
    v0, v1, v2, v3 = (relay.var(f"v{i}") for i in range(4))
    body = relay.Let(v0, t0, relay.Let(v1, t1, relay.Let(v2, relay.If(b, v0, v1), relay.Let(v3, relay.If(b, v1, v0), relay.Tuple([v2, v3])))))
    vm = machine(relay.Function([b], body))
    for flag, want in ((False, (1, 0)), (True, (0, 1))):
        got = vm.run(np.array(flag))
        assert tuple(int(f[0].numpy()) for f in got) == want


def test_closures_keep_what_they_capture():
    x, y = relay.var("x", shape=()), relay.var("y", shape=())
    adder = relay.Function([y], relay.Function([x], relay.add(x, y)))
    made = relay.var("made")
    main = relay.Function([], relay.Let(made, relay.Call(adder, [relay.const(2.0)]), relay.Call(made, [relay.const(5.0)])))
    assert float(machine(main).run().numpy()) == 7.0


def test_lists_of_the_prelude():
    mod = IRModule()
    prelude = relay.Prelude(mod)
    _, cons, nil = mod.get_type("List")
    items = nil()
    for v in (1, 2, 3):
        items = cons(relay.const(v), items)
    x = relay.var("x", shape=(), dtype="int32")
    double = relay.Function([x], relay.multiply(x, relay.const(2)))
    mod["main"] = relay.Function([], prelude.sum(prelude.map(double, items)))
    assert int(machine(mod).run().numpy()) == 12


def test_deep_recursion_and_an_endless_one():
    mod = IRModule()
    f, n = relay.GlobalVar("f"), relay.var("n", shape=(), dtype="int32")
    again = relay.add(relay.const(1), f(relay.subtract(n, relay.const(1))))
    mod[f] = relay.Function([n], relay.If(relay.equal(n, relay.const(0)), relay.const(0), again), relay.TensorType((), "int32"))
    m = relay.var("m", shape=(), dtype="int32")
    mod["main"] = relay.Function([m], f(m))
    vm = machine(mod)
    assert int(vm.run(np.array(20000, "int32")).numpy()) == 20000
    with pytest.raises(Exception, match="nested too deep"):
        vm.run(np.array(-1, "int32"))
    assert int(vm.run(np.array(3, "int32")).numpy()) == 3


def test_results_whose_sizes_depend_on_values():
    x = relay.var("x", shape=(relay.Any(), relay.Any()), dtype="bool")
    vm = machine(relay.Function([x], relay.argwhere(x)))
    for shape in ((3, 4), (1, 1), (5, 2)):
        value = RNG.random(shape) > 0.5
        np.testing.assert_array_equal(vm.run(value).numpy(), np.argwhere(value))


@pytest.mark.parametrize("config", [None, "naive", "pooled"])
def test_allocators(config):
    x = relay.var("x", shape=(relay.Any(),))
    vm = machine(relay.Function([x], relay.Tuple([relay.exp(x), x])), memory_cfg=config)
    for n in (1, 1000, 70000, 3):
        value = floats(n)
        out, same = vm.run(value)
        np.testing.assert_allclose(out.numpy(), np.exp(value), rtol=1e-5)
        np.testing.assert_array_equal(same.numpy(), value)


def test_large_results_outlive_the_machine():
    x = relay.var("x", shape=(relay.Any(),))
    vm = machine(relay.Function([x], relay.negative(x)))
    first, second = vm.run(np.ones(100000, "float32")), vm.run(np.full(100000, 2, "float32"))
    del vm
    assert first.numpy().sum() == -100000 and second.numpy().sum() == -200000


def test_inputs_are_never_changed_in_place():
    from anchorleg.relay.op import vm as machine_ops

    x, i, row = relay.var("x", shape=(4, 3)), relay.var("i", shape=(), dtype="int64"), relay.var("row", shape=(3,))
    vm = machine(relay.Function([x, i, row], machine_ops.put_row(x, i, row)))
    given = np.zeros((4, 3), "float32")
    result = vm.run(given, np.array(1, "int64"), np.ones(3, "float32")).numpy()
    assert result.sum() == 3 and not given.any()


def test_a_function_given_out_keeps_the_inputs_it_captures():
    x, y = relay.var("x", shape=(1000,)), relay.var("y", shape=(1000,))
    vm = machine(relay.Function([x], relay.Function([y], relay.add(x, y))))
    made = vm.run(np.full(1000, 7, "float32"))
    junk = [np.full(1000, k, "float32") for k in range(50)]
    assert len(vm._border.given) == 1 and vm._border.given[0][1].sum() == 7000 and junk
    del made
    vm._memory.settle()
    vm._border.let_go()
    assert vm._border.given == []


def test_inputs_are_checked():
    x = relay.var("x", shape=(relay.Any(), 3))
    vm = machine(relay.Function([x], relay.exp(x)))
    with pytest.raises(TypeMismatchError, match="'x': expected a tensor of float32, got float64"):
        vm.run(np.zeros((2, 3)))
    with pytest.raises(ArgumentError, match=r"'x': expected shape \(\?, 3\), got \(2, 4\)"):
        vm.run(floats(2, 4))
    with pytest.raises(ArgumentError, match="no parameter 'y'"):
        vm.run(y=floats(2, 3))
    with pytest.raises(ArgumentError, match="no function 'other'"):
        vm.invoke("other")


def test_stateful_calls_and_given_outputs():
    x = relay.var("x", shape=(10,))
    vm = machine(relay.Function([x], relay.Tuple([relay.add(x, x), x])))
    vm.set_input("main", x=np.ones(10, "float32"))
    vm.invoke_stateful("main")
    assert [o.numpy()[0] for o in vm.get_outputs()] == [2, 1]
    assert vm.get_input_index("x") == 0 and vm.get_input_index("z") == -1


def test_save_and_load(tmp_path):
    x = relay.var("x", shape=(relay.Any(), 8))
    exe = relay.vm.compile(IRModule.from_expr(relay.Function([x], relay.nn.relu(relay.add(x, relay.const(floats(8)))))), "llvm")
    value = floats(3, 8)
    want = VirtualMachine(exe, cpu(0)).run(value).numpy()
    code, lib = exe.save()
    np.testing.assert_array_equal(VirtualMachine(Executable.load_exec(code, lib), cpu(0)).run(value).numpy(), want)
    from anchorleg.runtime import load_module

    path = tmp_path / "model.alx"
    exe.mod.export_library(str(path))
    np.testing.assert_array_equal(VirtualMachine(load_module(str(path)), cpu(0)).run(value).numpy(), want)


def test_damaged_executables_are_refused():
    x = relay.var("x", shape=(relay.Any(),))
    code, lib = relay.vm.compile(IRModule.from_expr(relay.Function([x], relay.exp(x))), "llvm").save()
    random = np.random.default_rng(1)
    for _ in range(300):
        broken = bytearray(code)
        at = int(random.integers(len(broken)))
        broken[at] ^= int(random.integers(1, 256))
        with pytest.raises(ArtifactError):
            Executable.load_exec(broken, lib)
    for cut in (0, 5, 40, len(code) - 1):
        with pytest.raises(ArtifactError):
            Executable.load_exec(code[:cut], lib)
    newer = bytearray(code)
    newer[8] += 1
    with pytest.raises(ArtifactError, match="format version"):
        Executable.load_exec(newer, lib)


def test_late_bound_constants():
    x, data = relay.var("x", shape=(200,)), floats(200)
    exe = relay.vm.compile(IRModule.from_expr(relay.Function([x], relay.add(x, relay.const(data)))), "llvm")
    taken = exe.get_late_bound_consts(256)
    with pytest.raises(ArgumentError, match="bound late"):
        VirtualMachine(exe, cpu(0))
    exe.load_late_bound_consts_from_map(taken)
    np.testing.assert_array_equal(VirtualMachine(exe, cpu(0)).run(data).numpy(), data + data)


def test_threads_share_an_executable():
    exe = relay.vm.compile(IRModule.from_expr(counting_loop()), "llvm")
    wrong = []

    def work(n):
        vm = VirtualMachine(exe, cpu(0))
        for _ in range(30):
            if int(vm.run(np.array(n, "int64")).numpy()) != n * (n - 1) // 2:
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(50 + i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_memory_does_not_grow():
    x = relay.var("x", shape=(relay.Any(), 16))
    vm = machine(relay.Function([x], relay.nn.softmax(relay.exp(x))))
    words, held = vm._memory.words, vm._memory.core.M_HELD // 8
    sizes = [int(n) for n in np.random.default_rng(2).integers(1, 600, 150)]
    for n in sizes:
        vm.run(floats(n, 16))
    before = int(words[held])
    for n in sizes:
        vm.run(floats(n, 16))
    assert int(words[held]) == before


def test_profiler_names_kernels():
    from anchorleg.runtime.profiler_vm import VirtualMachineProfiler

    x = relay.var("x", shape=(relay.Any(),))
    exe = relay.vm.compile(IRModule.from_expr(relay.Function([x], relay.exp(x))), "llvm")
    report = VirtualMachineProfiler(exe, cpu(0)).profile(floats(5))
    assert any("fused_exp" in c["Name"] for c in report.calls) and "Total" in str(report)
