"""LLVM text to object code and assembly, for this machine and others."""
from __future__ import annotations

import pytest

from anchorleg.support import knobs
from anchorleg.support.errors import BuildError
from anchorleg.target.build.llvm import assembly_of, compile_many, compile_text, llvm_text_of, required_features
from anchorleg.target.codegen.llvm import emit_kernel
from anchorleg.tir import op

from ..codegen.kernels import elementwise


def kernel_text(target, lanes=1, fn=None):
    return emit_kernel(elementwise(fn or (lambda a, b: a * b + b), ["float32"] * 3, 64, lanes), target).ir_text


@pytest.mark.parametrize("target, magic", [
    ("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72", b"\x7fELF\x02"), ("llvm -mtriple=thumbv7em-none-eabi -mcpu=cortex-m7", b"\x7fELF\x01"),
    ("llvm -mtriple=riscv32-unknown-elf -mattr=+m,+f", b"\x7fELF\x01"), ("llvm -mtriple=riscv64-unknown-linux-gnu -mattr=+m,+f,+d", b"\x7fELF\x02"),
    ("llvm -mtriple=x86_64-apple-macos -mcpu=haswell", b"\xcf\xfa\xed\xfe"), ("llvm -mtriple=arm64-apple-macos", b"\xcf\xfa\xed\xfe"),
    ("llvm -mtriple=armv7l-linux-gnueabihf -mattr=+neon", b"\x7fELF\x01")])
def test_object_code_for_other_machines(target, magic):
    for lanes, fn in ((4, None), (1, lambda a, b: op.exp(a) + op.tanh(b))):
        assert compile_text(kernel_text(target, lanes, fn), target).startswith(magic)


def test_the_code_uses_what_the_processor_has():
    base = "llvm -mtriple=x86_64-linux-gnu -mcpu="
    assert "vfmadd" in assembly_of(kernel_text(base + "znver4", 16), base + "znver4")
    assert "zmm" in assembly_of(kernel_text(base + "skylake-avx512", 16), base + "skylake-avx512")
    plain = assembly_of(kernel_text(base + "x86-64", 4), base + "x86-64")
    assert "mulps" in plain and "vmulps" not in plain


def test_refused_text_names_the_kernel_and_the_line(tmp_path):
    text = kernel_text("llvm").replace("fmul contract float", "fmul contract flat", 1)
    with knobs.DUMP.override(tmp_path), pytest.raises(BuildError, match="kernel 'kernel'") as caught:
        compile_text(text)
    assert "flat" in str(caught.value) and (tmp_path / "kernel.ll").read_text() == text


def test_many_kernels_are_compiled_in_order():
    texts = [kernel_text("llvm", lanes) for lanes in (1, 2, 4, 8)]
    assert compile_many(texts, threads=2) == [compile_text(t) for t in texts]
    assert compile_many([]) == []


def test_text_forms():
    text = kernel_text("llvm")
    assert "target datalayout" in llvm_text_of(text) and "kernel__fast:" in assembly_of(text).replace("_kernel", "kernel")


def test_required_features():
    assert "avx512f" in required_features("llvm -mtriple=x86_64-linux-gnu -mcpu=znver4")
    assert required_features("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64") == ("cx16",)
    assert {"avx2", "fma", "bmi2"} <= set(required_features("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3"))
    assert "avx512f" not in required_features("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3")
    assert "avx512fp16" in required_features("llvm -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids")
    assert {"avx", "sse4.2"} <= set(required_features("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64 -mattr=+avx2"))
    assert required_features("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a76 -mattr=+sve") == ("sve",)
