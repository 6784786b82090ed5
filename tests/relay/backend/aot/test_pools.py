"""Declared pools: what is refused at once, names in C, targets, limits, what an error says."""
from __future__ import annotations

import re
import shutil

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.contrib.aot_executor import AotModule
from anchorleg.ir.memory_pools import ConstantMemoryPools, ConstantPoolInfo, PoolInfoProperties, WorkspaceMemoryPools, WorkspacePoolInfo
from anchorleg.relay.backend import Executor, Runtime
from anchorleg.runtime import cpu
from anchorleg.support.errors import AnchorlegError, ArgumentError, BuildError, TargetError, TypeMismatchError
from anchorleg.target import Target

from .test_build import C_API, chain

RNG = np.random.default_rng(0)


def build(workspace=None, constants=None, options=C_API, target="c", mod=None):
    return relay.build(mod or chain(), target=target, executor=Executor("aot", options), runtime=Runtime("crt"),
                       workspace_memory_pools=workspace, constant_memory_pools=constants)


def workspace(*rows):
    return WorkspaceMemoryPools([WorkspacePoolInfo(name, targets, PoolInfoProperties(size)) for name, targets, size in rows])


def constants(*rows):
    return ConstantMemoryPools([ConstantPoolInfo(name, targets, [], PoolInfoProperties(size)) for name, targets, size in rows])


@pytest.mark.parametrize("given,text", [
    (lambda: build([WorkspacePoolInfo("a", [])]), r"workspace_memory_pools is expected to be a WorkspaceMemoryPools, got list: write WorkspaceMemoryPools\(\[…\]\)"),
    (lambda: build(constants(("a", [], -1))), "expected to be a WorkspaceMemoryPools, got ConstantMemoryPools"),
    (lambda: build(workspace(("a", [], 0))), "size_hint_bytes of the memory pool 'a' is expected to be positive, or -1 for no limit, got 0"),
    (lambda: build(workspace(("a", [], -7))), "expected to be positive, or -1 for no limit, got -7"),
    (lambda: build(workspace(("", [], -1))), "every pool needs a name"),
    (lambda: build(workspace(("my-pool", [], -1), ("my pool", [], -1))), "'my-pool' and 'my pool' are both 'my_pool' in C; rename one of them"),
    (lambda: build(workspace(("a", [], -1)), constants(("a", [], -1))), "'a' and 'a' are both 'a' in C"),
    (lambda: build(workspace(("a", [Target("llvm")], -1))), "none of the workspace_memory_pools can be reached by code for c.*'a' is for llvm.*Name the target"),
    (lambda: build(constants=constants(("a", [Target("cuda")], -1))), "none of the constant_memory_pools can be reached"),
    (lambda: build(workspace(("a", {Target("c"): "ro"}, -1))), """is expected to have the access "rw" to pool 'a', got 'ro'"""),
    (lambda: build(workspace(("a", [], -1)), options={}), 'need interface-api == "c"'),
])
def test_what_cannot_be_is_refused_at_once(given, text):
    with pytest.raises(ArgumentError, match=text):
        given()


def test_kinds_of_arguments():
    with pytest.raises(TargetError, match="nonsense"):
        build(workspace(("a", ["nonsense"], -1)))
    with pytest.raises(TypeMismatchError, match="targets of the memory pool 'a' are expected to be a list, got str c"):
        WorkspacePoolInfo("a", "c")
    with pytest.raises(ArgumentError, match="size_hint_bytes is expected to be a number of bytes, or -1 for no limit, got '1MB'"):
        PoolInfoProperties("1MB")
    with pytest.raises(AnchorlegError, match="made of WorkspacePoolInfo objects, got ConstantPoolInfo"):
        WorkspaceMemoryPools([ConstantPoolInfo("a", [])])


def test_names_become_c_names():
    factory = build(workspace(("fast memory", [], 300), ("int", [], -1)), constants(("2nd flash", [], -1)))
    header = factory.lib.sources.header
    assert "struct tvmgen_default_workspace_pools {\n  void* fast_memory;\n  void* int_;\n  void* _2nd_flash;\n};" in header
    assert "TVMGEN_DEFAULT_FAST_MEMORY_WORKSPACE_POOL_SIZE" in header and "TVMGEN_DEFAULT__2ND_FLASH_CONSTANT_POOL_DATA" in header


def test_a_pool_of_another_target_is_left_out():
    factory = build(workspace(("dsp", ["llvm"], -1), ("both", ["llvm", "c"], 600), ("any", [], -1)))
    assert [p.name for p in factory.plan.pools] == ["both", "any"] and "dsp" not in factory.lib.sources.header


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_constants_and_workspace_in_several_pools():
    mod, value = chain(), RNG.standard_normal((1, 64)).astype("float32")
    factory = build(workspace(("a", [], 256), ("b", [], 256)), constants(("flash0", [], 20_000), ("flash1", [], -1)), mod=mod)
    module = AotModule(factory["default"](cpu(0)))
    module.run(x=value)
    expected = relay.create_executor("graph", mod, target="llvm").evaluate()(value).numpy()
    np.testing.assert_allclose(module.get_output(0).numpy(), expected, rtol=1e-4, atol=1e-5)
    sizes = {n: int(s) for n, s in re.findall(r"#define TVMGEN_DEFAULT_(FLASH\d)_CONSTANT_POOL_SIZE (\d+)", factory.lib.sources.header)}
    assert sizes == {"FLASH0": 16384, "FLASH1": 3 * 16384}


def test_an_error_says_what_is_missing_and_what_would_do():
    with pytest.raises(BuildError, match=r"sram: 300 bytes.*of tvmgen_default_fused_nn_dense_nn_relu\S* needs 256 bytes.*lacks (\d+) of them"
                                         r".*at least 512 bytes.*with 512 bytes in 'sram' the plan fits"):
        build(workspace(("sram", [], 300)))
    with pytest.raises(BuildError, match="need 65536 bytes, at least 45536 more than there are"):
        build(constants=constants(("flash", [], 20_000)))
