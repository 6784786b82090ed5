"""Which processor features machine code may use, asked of LLVM's inliner.

LLVM tells nobody what a processor's name stands for, but it inlines a function only where every feature the function
was compiled for is there.  So a function compiled for the processor calls one function per feature, and the calls that
are gone after inlining are the features it has.
"""
from __future__ import annotations

import re
from functools import lru_cache

from .cpu import CpuInfo, make_machine
from .llvm_setup import start_llvm

# What LLVM emits of its own accord; the others (cryptography, virtual machines, tiles …) come from intrinsics only.
_EMITTED = re.compile(r"sse3|ssse3|sse4|avx|fma|f16c|bmi|lzcnt|popcnt|movbe|xop|tbm|gfni|cx16|egpr|ndd|ccmp|nf$|zu$|push2pop2")


def code_features(cpu: CpuInfo) -> tuple[str, ...]:
    """LLVM's names of the features that code for the processor may use beyond its family's baseline."""
    if cpu.arch == "x86_64":
        return _implied(cpu.triple, cpu.cpu, cpu.features)
    return tuple(f[1:] for f in cpu.features if f.startswith("+"))


@lru_cache(maxsize=64)
def _implied(triple: str, cpu: str, features: tuple[str, ...]) -> tuple[str, ...]:
    names = sorted(n for n in start_llvm().get_host_cpu_features() if _EMITTED.match(n))
    left = _inlined(_calls_text(cpu, features, names), triple, cpu, features)
    return tuple(n for n in names if re.search(rf'@"?reached\.{re.escape(n)}"?\(', left))


def _calls_text(cpu: str, features: tuple[str, ...], names: list[str]) -> str:
    calls = "".join(f'  call void @"needs.{n}"()\n' for n in names)
    user = f'define void @user() "target-cpu"="{cpu}" "target-features"="{",".join(features)}" {{\n{calls}  ret void\n}}\n'
    bodies = "".join(f'declare void @"reached.{n}"()\ndefine internal void @"needs.{n}"() "target-cpu"="" "target-features"="+{n}" {{\n'
                     f'  call void @"reached.{n}"()\n  ret void\n}}\n' for n in names)
    return user + bodies


def _inlined(text: str, triple: str, cpu: str, features: tuple[str, ...]) -> str:
    """The body of ``@user`` after inlining."""
    llvm = start_llvm()
    machine = make_machine(triple, cpu, features)
    with llvm.create_context() as context, llvm.parse_assembly(text, context) as module:
        module.triple = triple
        builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(2))
        builder.getModulePassManager().run(module, builder)
        return str(module).partition("@user")[2].partition("\n}")[0]
