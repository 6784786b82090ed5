"""The helpers of ahead-of-time tests: what they say of differences, and C programs with pools of their own."""
from __future__ import annotations

import shutil

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.ir.memory_pools import ConstantMemoryPools, ConstantPoolInfo, PoolInfoProperties, WorkspaceMemoryPools, WorkspacePoolInfo
from anchorleg.ir.module import IRModule
from anchorleg.support.errors import ArgumentError, BuildError
from anchorleg.testing.aot import AOTDataLinkage, AOTTestModel, AOTTestRunner, compile_and_run, compile_models, generate_ref_data, run_and_check

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
RNG = np.random.default_rng(0)


def constant(values):
    return IRModule.from_expr(relay.Function([], relay.const(values)))


def chain(name="default", depth=4, size=64):
    x = relay.var("x:0", shape=(1, size), dtype="float32")
    y = x
    for _ in range(depth):
        y = relay.nn.relu(relay.nn.dense(y, relay.const((RNG.standard_normal((size, size)) / 8).astype("float32"))))
    mod, inputs = IRModule.from_expr(relay.Function([x], y)), {"x:0": RNG.standard_normal((1, size)).astype("float32")}
    return AOTTestModel(mod, inputs, generate_ref_data(mod, inputs), name=name)


def test_differences_are_named():
    values = np.zeros((2, 4), "float32")
    values[1, 3] = 1
    with pytest.raises(RuntimeError, match=r"(?s)Actual, Reference.*Element \[1, 3\]: 1\.000000, 0\.000000.*Mismatched elements: 1 / 8 \(12\.50%\).*AOT_TEST_FAILURE"):
        compile_and_run(AOTTestModel(constant(values), {}, {"output": np.zeros((2, 4), "float32")}), AOTTestRunner(), "packed", True,
                        print_output_on_mismatch=True)
    with pytest.raises(RuntimeError, match=r"Mismatched elements: 1 / 8"):  # a NaN is equal to a NaN only
        compile_and_run(AOTTestModel(constant(values), {}, {"output": np.where(values, np.nan, 0).astype("float32")}), AOTTestRunner(), "packed", True)
    with pytest.raises(RuntimeError, match=r"Element \[1\]: 2, 3"):
        compile_and_run(AOTTestModel(constant(np.array([1, 2], "int8")), {}, {"output": np.array([1, 3], "int8")}), AOTTestRunner(), "packed", True)


PROLOGUE = """
    __attribute__((section(".bss.noinit"), aligned(TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES)))
    static uint8_t fast[TVMGEN_DEFAULT_FAST_WORKSPACE_POOL_SIZE];
    static uint8_t slow[TVMGEN_DEFAULT_SLOW_WORKSPACE_POOL_SIZE];
    __attribute__((section(".rodata.tvm"), aligned(TVM_RUNTIME_CONST_ALLOC_ALIGNMENT_BYTES)))
    static uint8_t flash[TVMGEN_DEFAULT_FLASH_CONSTANT_POOL_SIZE] = {TVMGEN_DEFAULT_FLASH_CONSTANT_POOL_DATA};
"""


def test_pools_that_the_application_places():
    pools = WorkspaceMemoryPools([WorkspacePoolInfo("fast", [], PoolInfoProperties(300)), WorkspacePoolInfo("slow", [])])
    compiled = compile_models(chain(), "c", True, workspace_memory_pools=pools, constant_memory_pools=ConstantMemoryPools([ConstantPoolInfo("flash", [])]))
    assert run_and_check(compiled, AOTTestRunner(prologue=PROLOGUE), "c")
    short = PROLOGUE.replace("slow[TVMGEN_DEFAULT_SLOW_WORKSPACE_POOL_SIZE]", "slower[4]")
    with pytest.raises(BuildError, match="slow"):
        run_and_check(compiled, AOTTestRunner(prologue=short), "c")


IO_PROLOGUE = """
    static uint8_t sram[TVMGEN_DEFAULT_SRAM_WORKSPACE_POOL_SIZE] __attribute__((aligned(16)));
    struct tvmgen_default_workspace_pools tvmgen_default_workspace_pools = {.sram = sram};
    struct tvmgen_default_inputs tvmgen_default_inputs = tvmgen_default_map_inputs(&tvmgen_default_workspace_pools);
    memcpy(tvmgen_default_inputs.x_0, tvmgen_default_input_data_x_0, 256);
    struct tvmgen_default_outputs tvmgen_default_outputs = tvmgen_default_map_outputs(&tvmgen_default_workspace_pools);
"""


def test_inputs_and_results_inside_a_pool_of_the_application():
    runner = AOTTestRunner(prologue=IO_PROLOGUE, pass_config={"tir.usmp.use_workspace_io": True})
    compiled = compile_models(chain(), "c", True, pass_config=runner.pass_config, workspace_memory_pools=WorkspaceMemoryPools([WorkspacePoolInfo("sram", [])]))
    assert run_and_check(compiled, runner, "c", use_workspace_io=True)


def test_two_models_share_a_pool_in_one_program(tmp_path):
    pool = WorkspaceMemoryPools([WorkspacePoolInfo("shared", [])])
    compiled = compile_models([chain("mod1"), chain("mod2", 3, 40)], "c", True, workspace_memory_pools=pool)
    runner = AOTTestRunner(prologue="static uint8_t shared[512];", epilogue='printf("done\\n");')
    assert run_and_check(compiled, runner, "c", test_dir=str(tmp_path), data_linkage=AOTDataLinkage(".data.test", 32))
    assert 'section(".data.test"), aligned(32)' in (tmp_path / "test.c").read_text()


def test_a_checker_decides_whether_the_program_is_built(tmp_path):
    seen = []
    compiled = compile_models(chain(), "c", True)
    assert not run_and_check(compiled, AOTTestRunner(), "c", test_dir=str(tmp_path), checker=lambda folder: seen.append(folder))
    assert seen == [str(tmp_path)] and not (tmp_path / "test").exists()


def test_what_such_programs_need():
    with pytest.raises(ArgumentError, match="interface-api c"):
        run_and_check(compile_models(chain(), "packed", True), AOTTestRunner(prologue="int a;"), "packed")
    with pytest.raises(ArgumentError, match="not on 'mps2-an500'"):
        run_and_check(compile_models(chain(), "c", True), AOTTestRunner("mps2-an500", prologue="int a;"), "c")
