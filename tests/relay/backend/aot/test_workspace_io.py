"""Inputs and results in the workspace: where they lie, that nothing overwrites them too early, and running in Python and C."""
from __future__ import annotations

import re
import shutil

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.contrib.aot_executor import AotModule
from anchorleg.ir.memory_pools import PoolInfoProperties, WorkspaceMemoryPools, WorkspacePoolInfo
from anchorleg.ir.module import IRModule
from anchorleg.ir.transform import PassContext
from anchorleg.micro import create_project
from anchorleg.relay.backend import Executor, Runtime
from anchorleg.runtime import array, cpu, load_module
from anchorleg.support.errors import ArgumentError

from ....cases.random_networks import FAMILIES, difference, reference, tolerance

RNG = np.random.default_rng(0)
C_API = {"interface-api": "c", "unpacked-api": True}
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


def build(mod, options=C_API, target="c", **more):
    with PassContext(opt_level=3, config={"tir.usmp.enable": True, "tir.usmp.use_workspace_io": True}):
        return relay.build(mod, target=target, executor=Executor("aot", options), runtime=Runtime("crt"), **more)


def branches():
    """An input that is read late, an input that is a result too, one value that is two results, a constant result."""
    a, b = (relay.var(n, shape=(4, 64), dtype="float32") for n in "ab")
    w = relay.const((RNG.standard_normal((64, 64)) / 8).astype("float32"))
    y = relay.nn.relu(relay.nn.dense(a, w))
    for _ in range(2):
        y = relay.nn.relu(relay.nn.dense(y, w))
    total = relay.add(y, b)
    return IRModule.from_expr(relay.Function([a, b], relay.Tuple([total, relay.nn.dense(total, w), a, total, relay.const(np.arange(4, dtype="int32"))])))


def expected(mod, *args):
    return [r.numpy() for r in relay.create_executor("graph", mod, target="llvm").evaluate()(*args)]


def pools(*sizes):
    return WorkspaceMemoryPools([WorkspacePoolInfo(f"pool{i}", [], PoolInfoProperties(size_hint_bytes=s)) for i, s in enumerate(sizes)])


@needs_gcc
@pytest.mark.parametrize("sizes", [(), (-1,), (1100, -1), (3000, 2048, -1)])
def test_results_equal_those_without(sizes, tmp_path):
    mod = branches()
    factory = build(mod, **({"workspace_memory_pools": pools(*sizes)} if sizes else {}))
    a, b = (RNG.standard_normal((4, 64)).astype("float32") for _ in range(2))
    want = expected(mod, a, b)
    factory.export_library(tmp_path / "lib.so")
    for lib in (factory, load_module(tmp_path / "lib.so")):
        module = AotModule(lib["default"](cpu(0)))
        for _ in range(2):  # inputs are written anew before every run
            module.run(a=a, b=b)
            for i, one in enumerate(want):
                np.testing.assert_allclose(module.get_output(i).numpy(), one, rtol=1e-3, atol=1e-4)


@needs_gcc
def test_projects_copy_inputs_and_results(tmp_path):
    for n, sizes in enumerate([(), (1100, -1)]):
        factory = build(branches(), **({"workspace_memory_pools": pools(*sizes)} if sizes else {}))
        project = create_project(factory, tmp_path / str(n), "host")
        assert project.make("run").rstrip().endswith("PASS")


def test_an_input_may_be_overwritten_once_it_is_read():
    x = relay.var("x", shape=(1, 256), dtype="float32")
    w = relay.const(np.eye(256, dtype="float32"))
    y = relay.nn.dense(relay.nn.relu(relay.nn.dense(x, w)), w)
    factory = build(IRModule.from_expr(relay.Function([x], y)))
    assert factory.plan.total == 2 * 1024 == factory.plan.lower_bound
    assert [p.kind for p in (*factory.built.program.input_places, *factory.built.program.output_places)] == ["workspace"] * 2


def test_the_header_declares_where_inputs_and_results_lie():
    internal, external = build(branches(), mod_name="m"), build(branches(), mod_name="m", workspace_memory_pools=pools(-1))
    for factory, given in ((internal, "void"), (external, "struct tvmgen_m_workspace_pools* workspace_pools")):
        header = factory.lib.sources.header
        assert f"struct tvmgen_m_inputs tvmgen_m_map_inputs({given});" in header and f"struct tvmgen_m_outputs tvmgen_m_map_outputs({given});" in header
        assert f"int32_t tvmgen_m_run({given});" in header and "#define TVMGEN_M_A_SIZE 1024" in header
        allocated = factory.executor_codegen_metadata.io_pool_allocations
        assert set(allocated) == {"a", "b", "output0", "output1", "output2", "output3", "output4"}
        offset = allocated["a"].byte_offset
        assert re.search(rf"inputs\.a = .* \+ {offset};", factory.lib.sources.files["lib1.c"])


def test_it_needs_the_c_interface_and_the_target_c():
    with pytest.raises(ArgumentError, match="only compatible with interface_api c"):
        build(branches(), {"interface-api": "packed"})
    with pytest.raises(ArgumentError, match="needs the target c, got llvm"):
        build(branches(), target="llvm -mtriple=thumbv7em-none-eabi -mcpu=cortex-m7")


@needs_gcc
@pytest.mark.parametrize("sizes", [(), (-1,)])
def test_instances_and_runs_know_nothing_of_each_other(sizes):
    """In Python inputs stay what they were set to, and results what they were, whatever else runs; memory of the caller's can be used."""
    mod = branches()
    factory = build(mod, **({"workspace_memory_pools": pools(*sizes)} if sizes else {}))
    first, second = (AotModule(factory["default"](cpu(0))) for _ in range(2))
    a, b, c = (RNG.standard_normal((4, 64)).astype("float32") for _ in range(3))
    given, taken = array(a), array(np.zeros((4, 64), "float32"))
    first.set_input_zero_copy("a", given)
    first.set_input("b", b)
    first.set_output_zero_copy(0, taken)
    first.run()
    second.run(a=c, b=c)
    np.testing.assert_allclose(taken.numpy(), expected(mod, a, b)[0], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(second.get_output(1).numpy(), expected(mod, c, c)[1], rtol=1e-3, atol=1e-4)
    first.run()
    np.testing.assert_allclose(first.get_output(1).numpy(), expected(mod, a, b)[1], rtol=1e-3, atol=1e-4)


@needs_gcc
@pytest.mark.parametrize("family,seed", [("conv", 100), ("transformer", 101), ("recurrent", 102), ("elementwise_i64", 103)])
def test_random_networks_in_two_pools(family, seed):
    model, feeds = FAMILIES[family](seed)
    mod, params = relay.frontend.from_onnx(model, freeze_params=True)
    module = AotModule(build(mod, params=params, workspace_memory_pools=pools(2048, -1))["default"](cpu(0)))
    for _ in range(2):
        module.run(**feeds)
        for i, want in enumerate(reference(model, feeds)):
            assert difference(module.get_output(i).numpy(), want) < tolerance(family)
