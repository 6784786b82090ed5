"""What LLVM says about processors."""
from __future__ import annotations

import pytest

from anchorleg.support.errors import TargetError
from anchorleg.target import Target
from anchorleg.target.cpu import host_cpu, resolve_cpu

X86 = "llvm -mtriple=x86_64-linux-gnu -mcpu="


@pytest.mark.parametrize("cpu, width, registers, fma, vnni", [("x86-64", 16, 16, False, False), ("x86-64-v3", 32, 16, True, False),
                                                              ("skylake-avx512", 64, 32, True, False), ("znver4", 64, 32, True, True)])
def test_x86_features_come_from_llvm(cpu, width, registers, fma, vnni):
    info = resolve_cpu(X86 + cpu)
    assert (info.vector_bytes, info.num_vector_registers, info.has_fma, info.has_vnni) == (width, registers, fma, vnni)
    assert info.lanes("float32") == width // 4 and info.lanes("int8") == width


@pytest.mark.parametrize("text, width, mixed", [
    ("-mtriple=x86_64-linux-gnu -mcpu=znver4", 64, True), ("-mtriple=x86_64-linux-gnu -mcpu=alderlake", 32, True),
    ("-mtriple=x86_64-linux-gnu -mcpu=znver5 -mattr=-avx512vnni", 32, True), ("-mtriple=x86_64-linux-gnu -mcpu=x86-64-v3", 0, False),
    ("-mtriple=aarch64-linux-gnu -mcpu=cortex-a72", 0, False), ("-mtriple=aarch64-linux-gnu -mcpu=neoverse-n1", 16, False),
    ("-mtriple=aarch64-linux-gnu -mcpu=neoverse-v1", 16, True)])
def test_dot_products_of_bytes(text, width, mixed):
    info = resolve_cpu("llvm " + text)
    assert (info.dot_bytes, info.has_mixed_dot, info.has_vnni) == (width, mixed, width > 0)


def test_features_can_be_switched_off():
    assert resolve_cpu(X86 + "znver4 -mattr=-avx512f").vector_bytes == 32


@pytest.mark.parametrize("text, arch, width", [("-mtriple=aarch64-linux-gnu", "aarch64", 16), ("-mtriple=thumbv7em-none-eabi -mcpu=cortex-m7", "arm", 4),
                                               ("-mtriple=riscv32-unknown-elf -mattr=+m,+f", "riscv32", 4)])
def test_other_families(text, arch, width):
    info = resolve_cpu("llvm " + text)
    assert (info.arch, info.vector_bytes, info.is_host) == (arch, width, False)


def test_plain_llvm_is_this_machine():
    assert resolve_cpu(Target("llvm")) == host_cpu() and host_cpu().is_host and host_cpu().l1_bytes >= 1024


def test_aarch64_features_by_upstreams_names():
    features = Target("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-v2").features
    assert features.is_aarch64 and features.has_asimd and features.has_dotprod
    assert not Target("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72").features.has_dotprod


@pytest.mark.parametrize("text, near", [("-mcpu=znver9 -mtriple=x86_64-linux-gnu", "znver"), ("-mattr=+avx3 -mtriple=x86_64-linux-gnu", "avx"),
                                        ("-mtriple=foo-bar", "no such target")])
def test_unknown_processors_are_named(text, near):
    with pytest.raises(TargetError, match=near):
        resolve_cpu("llvm " + text)


def test_the_abi_of_floats_on_arm():
    target = "llvm -mtriple=thumbv7em-none-eabi -mcpu=cortex-m7"
    assert "+soft-float" in resolve_cpu(f"{target} -mfloat-abi=soft").features
    assert resolve_cpu(f"{target} -mfloat-abi=softfp").features == resolve_cpu(target).features
    with pytest.raises(TargetError, match="softfp"):
        resolve_cpu(f"{target} -mfloat-abi=hard")
    assert "+soft-float" not in resolve_cpu("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64 -mfloat-abi=soft").features
