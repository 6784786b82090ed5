"""Building ahead of time: results, names, pools, options, errors."""
from __future__ import annotations

import re
import shutil
import subprocess
import threading

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.contrib.aot_executor import AotModule
from anchorleg.ir.memory_pools import ConstantMemoryPools, ConstantPoolInfo, PoolInfoProperties, WorkspaceMemoryPools, WorkspacePoolInfo
from anchorleg.ir.module import IRModule
from anchorleg.ir.transform import PassContext
from anchorleg.micro import create_project
from anchorleg.relay.backend import Executor, Runtime
from anchorleg.runtime import array, cpu, load_module
from anchorleg.support.errors import AnchorlegError, ArgumentError, BuildError, TypeMismatchError

C_API = {"interface-api": "c", "unpacked-api": True}
TARGETS = [pytest.param("llvm"), pytest.param("c", marks=pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc"))]
RNG = np.random.default_rng(0)


def chain(depth=4, size=64):
    """Products, so that nothing is fused away."""
    x = relay.var("x", shape=(1, size), dtype="float32")
    y = x
    for _ in range(depth):
        y = relay.nn.relu(relay.nn.dense(y, relay.const((RNG.standard_normal((size, size)) / 8).astype("float32"))))
    return IRModule.from_expr(relay.Function([x], y))


def build_c(mod, options=None, **more):
    return relay.build(mod, target="c", executor=Executor("aot", {**C_API, **(options or {})}), runtime=Runtime("crt"), **more)


def run(factory, **inputs):
    module = AotModule(factory["default"](cpu(0)))
    module.run(**inputs)
    return [module.get_output(i).numpy() for i in range(module.get_num_outputs())]


def reference(mod, *args):
    return relay.create_executor("graph", mod, target="llvm").evaluate()(*args)


@pytest.mark.parametrize("target", TARGETS)
def test_results_equal_the_graph_executor(target, tmp_path):
    mod, x = chain(), RNG.standard_normal((1, 64)).astype("float32")
    factory = relay.build(mod, target=target, executor=Executor("aot"))
    expected = reference(mod, x).numpy()
    np.testing.assert_allclose(run(factory, x=x)[0], expected, rtol=1e-4, atol=1e-5)
    factory.export_library(tmp_path / "lib.so")
    loaded = load_module(tmp_path / "lib.so")
    assert loaded["list_module_names"]() == ["default"]
    np.testing.assert_allclose(run(loaded, x=x)[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_create_executor(target):
    x = relay.var("x", shape=(3,), dtype="float32")
    pair = relay.Tuple([x + relay.const(1.0), relay.Tuple([x, x * relay.const(2.0)])])
    got = relay.create_executor("aot", IRModule.from_expr(relay.Function([x], pair)), target=target).evaluate()(np.array([1, 2, 3], "float32"))
    assert [got[0].numpy().tolist(), got[1][0].numpy().tolist(), got[1][1].numpy().tolist()] == [[2, 3, 4], [1, 2, 3], [2, 4, 6]]


@pytest.mark.parametrize("target", TARGETS)
def test_results_that_are_inputs_constants_or_twice_the_same(target):
    x, c = relay.var("x", shape=(4,), dtype="float32"), relay.const(np.arange(4, dtype="float32"))
    y = relay.nn.relu(x)
    mod = IRModule.from_expr(relay.Function([x], relay.Tuple([x, c, y, y, relay.reshape(y, (2, 2))])))
    value = np.array([-1, 2, -3, 4], "float32")
    got = run(relay.build(mod, target=target, executor=Executor("aot")), x=value)
    relu = np.maximum(value, 0)
    for a, b in zip(got, [value, np.arange(4), relu, relu, relu.reshape(2, 2)]):
        np.testing.assert_array_equal(a, b)


def test_an_intermediate_that_is_a_result_is_not_overwritten():
    x = relay.var("x", shape=(1, 16), dtype="float32")
    w = relay.const(RNG.standard_normal((16, 16)).astype("float32"))
    a = relay.nn.dense(x, w)
    b = relay.annotation.stop_fusion(relay.nn.relu(a))
    mod = IRModule.from_expr(relay.Function([x], relay.Tuple([b, relay.nn.dense(b, w), relay.add(b, relay.nn.dense(b, w))])))
    value = RNG.standard_normal((1, 16)).astype("float32")
    for got, expected in zip(run(build_c(mod), x=value), reference(mod, value)):
        np.testing.assert_allclose(got, expected.numpy(), rtol=1e-4, atol=1e-4)


def test_element_wise_kernels_work_in_place():
    """a = relu(dense(x)); a + dense(relu(dense(a))): the sum is written over a."""
    x = relay.var("x", shape=(1, 512), dtype="float32")
    w = [relay.const((RNG.standard_normal((512, 512)) / 16).astype("float32")) for _ in range(4)]
    a = relay.nn.relu(relay.nn.dense(x, w[0]))
    mixed = relay.add(relay.nn.dense(relay.nn.relu(relay.nn.dense(a, w[1])), w[2]), a)
    mod = IRModule.from_expr(relay.Function([x], relay.nn.dense(mixed, w[3])))
    factory = build_c(mod)
    assert any(getattr(s, "in_place", False) for s in factory.built.program.steps)
    assert factory.plan.total <= 2 * 512 * 4
    value = RNG.standard_normal((1, 512)).astype("float32")
    np.testing.assert_allclose(run(factory, x=value)[0], reference(mod, value).numpy(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("operator", [relay.nn.softmax, relay.nn.log_softmax])
def test_what_works_row_by_row_needs_memory_for_one_row_only(operator):
    x = relay.var("x", shape=(2, 3, 200, 12), dtype="float32")
    y = operator(x)
    mod = IRModule.from_expr(relay.Function([x], relay.add(y, x)))
    factory = build_c(mod)
    assert factory.plan.total <= 12 * 4
    value = RNG.standard_normal((2, 3, 200, 12)).astype("float32")
    np.testing.assert_allclose(run(factory, x=value)[0], reference(mod, value).numpy(), rtol=1e-4, atol=1e-5)


def test_the_c_interface_has_upstreams_names():
    factory = build_c(chain(), mod_name="speech")
    header, source = factory.lib.sources.header, factory.lib.imported_modules[0].get_source()
    for text in ("struct tvmgen_speech_inputs {\n  void* x;\n};", "struct tvmgen_speech_outputs {\n  void* output;\n};",
                 "int32_t tvmgen_speech_run(struct tvmgen_speech_inputs* inputs, struct tvmgen_speech_outputs* outputs);",
                 "#define TVMGEN_SPEECH_X_SIZE 256", "#define TVMGEN_SPEECH_OUTPUT_SIZE 256", f"#define TVMGEN_SPEECH_WORKSPACE_SIZE {factory.plan.total}"):
        assert text in header
    assert re.search(r"if \(tvmgen_speech_fused_nn_dense_nn_relu\w*\(x_buffer_var, ", source)
    assert "TVMBackend" not in source and "#include <stdio.h>" not in source


def test_sources_name_the_models_nodes():
    from anchorleg.ir.span import SourceName, Span

    x = relay.var("x", shape=(4,), dtype="float32")
    call = relay.nn.relu(x)
    call.span = Span(SourceName("block3/activation"))
    assert "block3/activation" in build_c(IRModule.from_expr(relay.Function([x], call))).lib.imported_modules[0].get_source()


def test_input_names_are_turned_into_c_names():
    a, b = (relay.var(n, shape=(2,), dtype="float32") for n in ("input:0", "keys/é"))
    factory = build_c(IRModule.from_expr(relay.Function([a, b], a + b)))
    module = AotModule(factory["default"](cpu(0)))
    module.set_input("input:0", np.ones(2, "float32"))
    module.set_input("input_0", np.full(2, 3, "float32"))
    assert module.get_input_index("input:0") == 0 and module.get_input(0).numpy().tolist() == [3, 3]
    with pytest.raises(AnchorlegError, match="Invalid input name"):
        module.set_input("input_1", np.ones(2, "float32"))
    c = relay.var("input?0", shape=(2,), dtype="float32")
    with pytest.raises(ArgumentError, match="Sanitized input tensor name clash.*rename"):
        build_c(IRModule.from_expr(relay.Function([a, c], a + c)))


def pool(name, size=-1):
    return WorkspacePoolInfo(name, [], PoolInfoProperties(size_hint_bytes=size))


def constant_pool(name, size=-1):
    return ConstantPoolInfo(name, [], pool_info_properties=PoolInfoProperties(size_hint_bytes=size))


def test_declared_pools_are_handed_over_by_the_caller(tmp_path):
    mod = chain(5)
    factory = build_c(mod, workspace_memory_pools=WorkspaceMemoryPools([pool("sram", 256), pool("dram")]),
                      constant_memory_pools=ConstantMemoryPools([constant_pool("flash")]))
    assert "struct tvmgen_default_workspace_pools {\n  void* sram;\n  void* dram;\n  void* flash;\n};" in factory.lib.sources.header
    assert re.search(r"#define TVMGEN_DEFAULT_SRAM_WORKSPACE_POOL_SIZE (\d+)", factory.lib.sources.header)
    assert "#define TVMGEN_DEFAULT_FLASH_CONSTANT_POOL_SIZE 81920" in factory.lib.sources.header
    assert {p.name: p.limit for p in factory.plan.pools} == {"sram": 256, "dram": None} and factory.plan.pools[0].used <= 256
    x = RNG.standard_normal((1, 64)).astype("float32")
    np.testing.assert_allclose(run(factory, x=x)[0], reference(mod, x).numpy(), rtol=1e-4, atol=1e-5)
    project = create_project(factory, tmp_path, "host")
    assert project.make("run").rstrip().endswith("PASS")


def test_pools_too_small_say_what_is_missing():
    with pytest.raises(BuildError, match=r"sram: 300 bytes.*of tvmgen_default_fused_nn_dense_nn_relu\S* needs 256 bytes.*lacks \d+ of them"):
        build_c(chain(), workspace_memory_pools=WorkspaceMemoryPools([pool("sram", 300)]))
    with pytest.raises(BuildError, match=r"flash: 20000 bytes.*16384 bytes has no place.*need 65536 bytes"):
        build_c(chain(), constant_memory_pools=ConstantMemoryPools([constant_pool("flash", 20000)]))


@pytest.mark.parametrize("algorithm", ["greedy_by_size", "greedy_by_conflicts", "hill_climb"])
def test_planning_algorithms_can_be_chosen(algorithm):
    mod, x = chain(), RNG.standard_normal((1, 64)).astype("float32")
    with PassContext(opt_level=3, config={"tir.usmp.enable": True, "tir.usmp.algorithm": algorithm}):
        factory = build_c(mod)
    np.testing.assert_allclose(run(factory, x=x)[0], reference(mod, x).numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("alignment", [8, 16, 64])
def test_alignments(alignment):
    factory = build_c(chain(3, 9), {"workspace-byte-alignment": alignment, "constant-byte-alignment": alignment})
    assert all(p.offset % alignment == 0 for p in factory.plan.places)
    assert f"aligned({alignment})" in factory.lib.imported_modules[0].get_source()
    target = relay.build(chain(1, 8), target=f"c -constants-byte-alignment={alignment}", executor=Executor("aot", C_API), runtime=Runtime("crt"))
    assert f'__attribute__((section(".rodata.tvm"), aligned({alignment})))' in target.lib.imported_modules[0].get_source()


def test_parameters_that_are_not_linked_come_from_the_caller():
    mod, x = chain(), RNG.standard_normal((1, 64)).astype("float32")
    factory = build_c(mod, {"link-params": False})
    assert "struct tvmgen_default_params {" in factory.lib.sources.header and factory.linked_params
    np.testing.assert_allclose(run(factory, x=x)[0], reference(mod, x).numpy(), rtol=1e-4, atol=1e-5)


def test_large_weights_are_a_file_of_their_own():
    mod, x = chain(3, 512), RNG.standard_normal((1, 512)).astype("float32")
    factory = build_c(mod)
    assert len(factory.lib.sources.binaries["weights.bin"]) == 3 * 512 * 512 * 4 and len(factory.lib.sources.files["lib1.c"]) < 20_000
    np.testing.assert_allclose(run(factory, x=x)[0], reference(mod, x).numpy(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("options,runtime,text", [
    ({"interface-api": "c"}, "crt", 'Either need interface_api == "packed" (got: c) or unpacked-api == true (got: 0) when targeting c runtime'),
    ({"interface-api": "c"}, "cpp", 'Need unpacked-api == false (got: 0) and interface-api == "packed" (got: c) when targeting c++ runtime'),
    ({"unpacked-api": True}, "cpp", "leave both options out"),
    ({"interface-api": "rust"}, "crt", 'interface-api is expected to be "c" or "packed", got "rust"'),
    ({**C_API, "workspace-byte-alignment": 12}, "crt", "workspace-byte-alignment is expected to be a power of two up to 65536, got 12"),
])
def test_bad_options_are_refused_at_once(options, runtime, text):
    with pytest.raises(ArgumentError, match=re.escape(text)):
        relay.build(chain(1), target="c", executor=Executor("aot", options), runtime=Runtime(runtime))


def test_pools_need_the_c_interface():
    with pytest.raises(ArgumentError, match='need interface-api == "c"'):
        relay.build(chain(1), target="c", executor=Executor("aot"), workspace_memory_pools=WorkspaceMemoryPools([pool("sram")]))
    with pytest.raises(ArgumentError, match="name of its own"):
        WorkspaceMemoryPools([pool("a"), pool("a")])


def test_unknown_sizes_are_refused():
    x = relay.var("x", shape=(relay.Any(), 4), dtype="float32")
    with pytest.raises(TypeMismatchError, match="ahead-of-time executor needs static shapes.*parameter 'x'.*relay.vm.compile"):
        build_c(IRModule.from_expr(relay.Function([x], relay.nn.relu(x))))


def test_wrong_devices_and_zero_copy():
    factory = relay.build(chain(1), target="llvm", executor=Executor("aot"))
    with pytest.raises(AnchorlegError, match="Expect exactly 1 device passed"):
        factory["default"](cpu(0), cpu(0))
    module, x = AotModule(factory["default"](cpu(0))), RNG.standard_normal((1, 64)).astype("float32")
    given, taken = array(x), array(np.zeros((1, 64), "float32"))
    module.set_input_zero_copy("x", given)
    module.set_output_zero_copy(0, taken)
    module.run()
    assert taken.numpy().any()
    with pytest.raises(ArgumentError, match="expected to be float32"):
        module.set_output_zero_copy(0, array(np.zeros((1, 3), "float32")))


@pytest.mark.skipif(shutil.which("arm-none-eabi-nm") is None, reason="needs arm-none-eabi binutils (Debian: gcc-arm-none-eabi)")
def test_objects_for_other_machines(tmp_path):
    """LLVM makes an object for a Cortex-M7 with the same interface, its memory inside."""
    factory = relay.build(chain(2), target="llvm -mtriple=thumbv7em-none-eabi -mcpu=cortex-m7", executor=Executor("aot", C_API), runtime=Runtime("crt"))
    symbols = ""
    for i, code in enumerate(factory.lib.objects):
        (tmp_path / f"{i}.o").write_bytes(code)
        symbols += subprocess.run(["arm-none-eabi-nm", f"{i}.o"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "int32_t tvmgen_default_run(struct tvmgen_default_inputs* inputs, struct tvmgen_default_outputs* outputs);" in factory.interface_header
    assert re.search(r" T tvmgen_default_run$", symbols, re.M) and re.search(r" b global_workspace$", symbols, re.M)


def test_metadata():
    factory = build_c(chain(2), mod_name="m")
    main = factory.function_metadata["__tvm_main__"]
    assert list(main.workspace_sizes.values()) == [factory.plan.total] and list(main.io_sizes.values()) == [512]
    assert list(main.constant_sizes.values()) == [2 * 64 * 64 * 4]
    facts = factory.executor_codegen_metadata
    assert (facts.inputs, facts.outputs, facts.mod_name, facts.interface_api, facts.unpacked_api) == (["x"], ["output"], "m", "c", True)
    (own,) = facts.pool_inputs.values()
    assert (own.pool_info.pool_name, own.pool_info.is_internal, own.allocated_size) == ("global_workspace", True, factory.plan.total)
    assert factory.memory_picture().startswith("<svg") and "planned are" in factory.plan.report()


def test_metadata_of_declared_pools():
    factory = build_c(chain(5), workspace_memory_pools=WorkspaceMemoryPools([pool("sram", 256), pool("dram")]),
                      constant_memory_pools=ConstantMemoryPools([constant_pool("flash")]))
    found = {a.pool_info.pool_name: a for a in factory.executor_codegen_metadata.pool_inputs.values()}
    assert {n: a.allocated_size for n, a in found.items()} == {**{p.name: p.used for p in factory.plan.pools}, "flash": 81920}
    assert not any(a.pool_info.is_internal for a in found.values())
    assert [c.byte_offset for c in found["flash"].pool_info.constant_info_array] == [i * 16384 for i in range(5)]


def test_equal_constants_are_kept_once():
    x, same = relay.var("x", shape=(1, 64), dtype="float32"), RNG.standard_normal((64, 64)).astype("float32") / 8
    y = x
    for _ in range(3):
        y = relay.nn.relu(relay.nn.dense(y, relay.const(same.copy())))
    mod, value = IRModule.from_expr(relay.Function([x], y)), RNG.standard_normal((1, 64)).astype("float32")
    for factory in (build_c(mod), relay.build(mod, target="llvm", executor=Executor("aot"))):
        assert sum(factory.function_metadata["__tvm_main__"].constant_sizes.values()) == same.nbytes
        np.testing.assert_allclose(run(factory, x=value)[0], reference(mod, value).numpy(), rtol=1e-4, atol=1e-5)
    apart = build_c(mod, {"link-params": False})  # the caller may hand over different ones
    assert len(apart.linked_params) == 3


def test_the_main_function_as_a_loop_program():
    x, y = (relay.var(n, shape=(1, 10), dtype="float32") for n in "xy")
    main = build_c(IRModule.from_expr(relay.Function([x, y], relay.add(x, y)))).lowered_ir_mods.items()[0][1]["__tvm_main__"]
    assert re.fullmatch(r'T\.tvm_check_return\(.*0.*, .*-1.*, T\.call_extern\("int32", "tvmgen_default_fused_add", x_buffer_var, y_buffer_var, '
                        r'output_buffer_var\)\)', repr(main.body.value))
    assert [v.name for v in main.params] == ["x", "y", "output"] and main.attrs["global_symbol"] == "tvmgen_default___tvm_main__"
    mod = IRModule.from_expr(relay.Function([x], relay.Tuple([relay.nn.softmax(relay.nn.dense(x, relay.const(np.eye(10, dtype="float32")))), x])))
    text = str(build_c(mod, workspace_memory_pools=WorkspaceMemoryPools([pool("sram")])).lowered_ir_mods.items()[0][1]["__tvm_main__"])
    assert 'T.call_extern("int32", "tvmgen_default_fused_nn_dense", x_buffer_var, ' in text and "T.address_of(sram" in text
    assert re.search(r'T\.call_extern\("handle", "memcpy", output1_buffer_var, x_buffer_var, .*40', text)


@pytest.mark.parametrize("options,target,runtime", [({}, "llvm", "cpp"), (C_API, "llvm", "crt"), pytest.param(C_API, "c", "crt", marks=TARGETS[1].marks)])
def test_threads_share_the_code_and_not_its_memory(options, target, runtime):
    """Code with working memory of its own runs for one thread at a time."""
    mod = chain(6, 256)
    factory = relay.build(mod, target=target, executor=Executor("aot", options), runtime=Runtime(runtime))
    assert factory.facts.own_memory == (runtime == "crt")
    modules, wrong = [AotModule(factory["default"](cpu(0))) for _ in range(3)], []

    def work(number, module):
        value = np.full((1, 256), number + 1, "float32")
        expected = reference(mod, value).numpy()
        for _ in range(30):
            module.run(x=value)
            if not np.allclose(module.get_output(0).numpy(), expected, rtol=1e-3, atol=1e-4):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=pair) for pair in enumerate(modules)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
