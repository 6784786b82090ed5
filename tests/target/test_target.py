"""Targets: text, JSON, tags, scopes, hosts, and errors."""
from __future__ import annotations

import pickle
import threading

import pytest

from anchorleg.support.errors import TargetError
from anchorleg.target import Target, generic_func, list_tags, override_native_generic_func, register_tag
from anchorleg.target import arm_cpu, hexagon, intel_graphics, micro, riscv_cpu, stm32
from anchorleg.target.kinds import find_kind

TEXTS = ["llvm", "llvm -mcpu=znver4 -mattr=+avx2,-fma", "c -mcpu=cortex-m7 -march=armv7e-m", "cuda -arch=sm_80", "opencl -device=mali",
         "llvm -mtriple=aarch64-linux-gnu -libs=cblas -num-cores=4", "llvm -keys=x86,cpu", "vulkan -device_name='A GPU' -device_type=discrete"]


@pytest.mark.parametrize("text", TEXTS)
def test_text_and_export_round_trip(text):
    target = Target(text)
    assert Target(str(target)) == target
    assert Target(target.export()) == target
    assert hash(Target(str(target))) == hash(target)
    assert pickle.loads(pickle.dumps(target)) == target


def test_text_has_upstreams_form():
    assert str(Target("llvm -mcpu=core-avx2 -mattr=+avx2,-fma -mtriple=x86_64-linux-gnu")) == \
        "llvm -keys=cpu -mattr=+avx2,-fma -mcpu=core-avx2 -mtriple=x86_64-linux-gnu"
    assert str(Target("cuda -arch=sm_80")) == "cuda -keys=cuda,gpu -arch=sm_80 -max_num_threads=1024 -thread_warp_size=32"


def test_keys():
    assert Target("llvm").keys[-1] == "cpu"
    assert Target("llvm -mcpu=znver4 -mtriple=x86_64-linux-gnu").keys == ["cpu"]
    assert Target("opencl -device=mali").keys == ["mali", "opencl", "gpu"]
    assert Target("llvm -mtriple=aarch64-linux-gnu").keys == ["arm_cpu", "cpu"]
    assert Target("llvm -keys=arm_cpu,cpu -device=arm_cpu").keys == ["arm_cpu", "cpu"]


def test_options_are_typed():
    target = Target({"kind": "llvm", "mattr": ["+neon"], "num-cores": 4, "libs": ["cblas"], "host": "c"})
    assert (target.mattr, target.num_cores, target.libs, target.host.kind.name) == (["+neon"], 4, ["cblas"], "c")
    assert Target('{"kind": "cuda", "arch": "sm_61"}').supports_integer_dot_product
    with pytest.raises(TargetError, match="expected int"):
        Target({"kind": "cuda", "max_num_threads": "many"})
    with pytest.raises(TargetError, match="expected list of str"):
        Target({"kind": "llvm", "mattr": "+neon"})


@pytest.mark.parametrize("text, near", [("llvmm", "llvm"), ("llvm -mcpus=a", "mcpu"), ("nvidia/nvidia-a101", "nvidia/nvidia-a100")])
def test_unknown_names_suggest_near_ones(text, near):
    with pytest.raises(TargetError, match=f"did you mean.*{near}"):
        Target(text)


@pytest.mark.parametrize("bad", ["", "llvm -mcpu=a -mcpu=b", "llvm mcpu", "cuda -arch=xx", "{not json", {"keys": ["a"]}, 3, None])
def test_bad_targets_are_refused(bad):
    with pytest.raises(ValueError):
        Target(bad)


def test_quoting():
    target = Target("vulkan -device_name='It\\'s \"one\"' -driver_name=a\\\\b")
    assert target.attrs["device_name"] == 'It\'s "one"'
    assert target.attrs["driver_name"] == "a\\b"
    assert Target(str(target)) == target


def test_scopes_nest_and_belong_to_a_thread():
    seen = []
    with Target("llvm") as outer:
        with Target("cuda -arch=sm_80"):
            assert Target.current().kind.name == "cuda"
            worker = threading.Thread(target=lambda: seen.append(Target.current()))
            worker.start()
            worker.join()
        assert Target.current() is outer
    assert seen == [None] and Target.current() is None
    with pytest.raises(TargetError, match="required"):
        Target.current(allow_none=False)


def test_tags():
    assert Target("nvidia/nvidia-a100").l2_cache_size_bytes == 41943040
    assert Target("nvidia/jetson-agx-xavier").host.mcpu == "carmel"
    assert "aws/cpu/c5.large" in list_tags()
    register_tag("test/one", {"kind": "llvm", "mcpu": "znver4"}, override=True)
    assert Target("test/one").mcpu == "znver4"
    with pytest.raises(TargetError, match="already defined"):
        register_tag("test/one", {"kind": "llvm"})


def test_hosts():
    target, host = Target.canon_target_and_host("cuda -arch=sm_80", "llvm")
    assert target.host == host == Target("llvm")
    assert Target.canon_target_and_host(None) == (None, None)
    with pytest.raises(AssertionError, match="Target host is not empty when target is empty."):
        Target.canon_target_and_host(None, "llvm")
    assert [t.host.kind.name for t in Target.canon_multi_target_and_host(["llvm", "cuda -arch=sm_80"], "c")] == ["c", "c"]
    assert [t.kind.name for t in Target.canon_multi_target({1: "llvm", 2: "cuda -arch=sm_80"})] == ["llvm", "cuda"]
    mapped, host = Target.canon_target_map_and_host({"cuda -arch=sm_80": 1}, "llvm")
    assert list(mapped.values()) == [1] and next(iter(mapped)).host == host
    assert Target("cuda -arch=sm_80") != Target("cuda -arch=sm_80", host="llvm")


def test_m_profile_features():
    assert Target("c -mcpu=cortex-m55").features.has_mve and Target("llvm -mcpu=cortex-m7").features.has_dsp
    assert not Target("llvm -mcpu=cortex-m55 -mattr=+nomve").features.has_mve
    assert Target("cuda -arch=sm_80").features.anything is None


def test_constructors():
    assert arm_cpu("rasp4b64").mcpu == "cortex-a72" and arm_cpu().device_name == "arm_cpu"
    assert riscv_cpu().attrs["mabi"] == "lp64d" and intel_graphics().thread_warp_size == 16
    assert micro("nrf52840").mcpu == "cortex-m4+nodsp" and stm32("stm32H7xx").attrs["march"] == "armv7e-m"
    assert hexagon("v69").mattr[0] == "+hvxv69"
    with pytest.raises(TargetError, match="not supported"):
        micro("nrf5284")


def test_every_default_fits_its_type():
    for name in Target.list_kinds():
        kind = find_kind(name)
        assert Target(name).kind is kind and set(kind.defaults) <= set(kind.options)


def test_generic_functions_dispatch_by_key():
    @generic_func
    def pick(x, scale=1):
        return x * scale

    @pick.register(["cuda", "opencl"])
    def pick_gpu(x, scale=1):
        return -x * scale

    with Target("opencl"):
        assert pick(2, scale=3) == -6 and pick.get_packed_func() is pick_gpu
    assert pick(2) == 2
    with pytest.raises(ValueError, match="already registered"):
        pick.register("cuda", pick_gpu)


def test_native_generic_functions_are_shared_by_name():
    @override_native_generic_func("test.shared_by_name")
    def first(x):
        return x

    @override_native_generic_func("test.shared_by_name")
    def second(x):
        return x + 1

    second.register("gpu", lambda x: x + 10)
    assert first(1) == 2
    with Target("cuda -arch=sm_80"):
        assert first(1) == 11
