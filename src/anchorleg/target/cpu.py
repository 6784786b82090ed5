"""What the processor of an ``llvm`` target can do, asked of LLVM itself.

Schedules need the vector width, the number of registers and a few instructions; tables by processor name go stale, so a
small probe module is compiled for the processor and the features are read off the instructions that came out.
"""
from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..support.errors import TargetError
from .kinds import hint
from .target import Target


@dataclass(frozen=True)
class CpuInfo:
    """A processor: LLVM's names for it, and what schedules ask.

    ``features`` are LLVM's switches (``+avx2``); ``vector_bytes`` the widest useful register; ``num_vector_registers`` how
    many there are; ``has_vnni`` a dot product of four bytes into i32 (x86: u8×s8), in vectors of up to ``dot_bytes``, and
    ``has_mixed_dot`` one of u8×s8; ``has_half`` arithmetic on float16 (not only conversion); cache sizes in bytes (a typical value when the processor is not this machine's).
    """

    triple: str
    cpu: str
    features: tuple[str, ...]
    vector_bytes: int
    num_vector_registers: int
    has_fma: bool
    has_vnni: bool
    dot_bytes: int
    has_mixed_dot: bool
    has_bf16: bool
    has_half: bool
    has_half_conversion: bool
    l1_bytes: int
    l2_bytes: int
    l3_bytes: int
    is_host: bool

    @property
    def arch(self) -> str:
        """The processor family in one spelling: x86_64, i686, aarch64, arm, riscv64 …"""
        return arch_of(self.triple)

    @property
    def feature_text(self) -> str:
        """The features as LLVM's option text."""
        return ",".join(self.features)

    @property
    def pointer_bytes(self) -> int:
        """Bytes of an address."""
        return 8 if "64" in self.arch else 4

    def lanes(self, dtype: str) -> int:
        """Elements of ``dtype`` in one vector register (at least 1)."""
        from ..runtime.dtype import DataType

        return max(1, self.vector_bytes // max(1, DataType(dtype).itemsize))

    @property
    def key(self) -> str:
        """Text that differs when generated code may differ (for caches)."""
        return f"{self.triple}|{self.cpu}|{self.feature_text}"


_ARCH = {"amd64": "x86_64", "arm64": "aarch64", "i386": "i686", "i586": "i686"}


def arch_of(triple: str) -> str:
    """The processor family of a triple."""
    word = triple.split("-")[0].lower()
    if word in _ARCH:
        return _ARCH[word]
    return "arm" if re.match(r"(arm|thumb)", word) else word


def resolve_cpu(target: Target | str | None = None) -> CpuInfo:
    """The processor that an ``llvm`` target (None: plain ``llvm``) names; TargetError when LLVM does not know it."""
    target = Target.canon_target(target if target is not None else "llvm")
    if target is None or target.kind.name not in ("llvm", "hexagon", "c"):
        raise TargetError(f"expected a target that LLVM compiles for the processor (kind llvm), got {target}")
    return _resolve(target.mtriple, target.mcpu, tuple(target.mattr), str(target.attrs.get("mfloat-abi", "")))


def host_cpu() -> CpuInfo:
    """This machine's processor."""
    return _resolve("", "", (), "")


@lru_cache(maxsize=None)
def _host_names() -> tuple[str, str, tuple[str, ...]]:
    import llvmlite.binding as llvm

    features = tuple(f for f in llvm.get_host_cpu_features().flatten().split(",") if f)
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), features


def _machine_part(triple: str) -> tuple[str, str]:
    system = next((s for s in ("linux", "darwin", "macos", "windows", "none") if s in triple), "")
    return arch_of(triple), "darwin" if system == "macos" else system


@lru_cache(maxsize=256)
def _resolve(triple: str, cpu: str, attrs: tuple[str, ...], float_abi: str) -> CpuInfo:
    host_triple, host_name, host_features = _host_names()
    whole_host = not triple and not cpu
    full_triple = triple or host_triple
    name, plus = _cpu_and_extensions(cpu)
    extra = tuple(a if a[:1] in "+-" else f"+{a}" for a in attrs) + plus + _float_abi_features(full_triple, float_abi)
    features = (host_features if whole_host else ()) + extra
    name = name or (host_name if whole_host else "generic" if arch_of(full_triple) != "x86_64" else "x86-64")
    facts = _probe(full_triple, name, features)
    is_host = whole_host or _machine_part(full_triple) == _machine_part(host_triple) and name == host_name
    sizes = _host_caches() if is_host else (32 << 10, 512 << 10, 8 << 20)
    return CpuInfo(full_triple, name, features, l1_bytes=sizes[0], l2_bytes=sizes[1], l3_bytes=sizes[2], is_host=is_host, **facts)


def _float_abi_features(triple: str, float_abi: str) -> tuple[str, ...]:
    """What ``-mfloat-abi`` means for LLVM's switches; TargetError for an ABI that its code generator does not have here."""
    if arch_of(triple) != "arm" or float_abi in ("", "softfp"):
        return ()
    if float_abi == "soft":
        return ("+soft-float",)
    raise TargetError(f"-mfloat-abi={float_abi}: functions that LLVM compiles here take floats in integer registers, so they go together with code "
                      "compiled with -mfloat-abi=softfp (floating-point instructions) or soft (none): choose one of these, or the target c")


_ALIASES = {"apple-latest": "apple-m4"}


def _cpu_and_extensions(cpu: str) -> tuple[str, tuple[str, ...]]:
    """``cortex-m4+nodsp`` → the processor and LLVM's switches."""
    if cpu.endswith("+"):  # cortex-m0+ is a name, not an extension
        return {"cortex-m0+": "cortex-m0plus"}.get(cpu, cpu), ()
    name, *extensions = cpu.split("+")
    switches = tuple(f"-{e[2:]}" if e.startswith("no") else f"+{e}" for e in extensions if e)
    return _ALIASES.get(name, name), switches


_VECTOR_IR = """
define void @f512(ptr %a) "min-legal-vector-width"="512" "prefer-vector-width"="512" {
  %x = load <16 x float>, ptr %a
  %y = fadd <16 x float> %x, %x
  store <16 x float> %y, ptr %a
  ret void
}
define void @f256(ptr %a) {
  %x = load <8 x float>, ptr %a
  %y = fadd <8 x float> %x, %x
  store <8 x float> %y, ptr %a
  ret void
}
define void @f128(ptr %a) {
  %x = load <4 x float>, ptr %a
  %y = fadd <4 x float> %x, %x
  store <4 x float> %y, ptr %a
  ret void
}
define void @fma(ptr %a) {
  %x = load float, ptr %a
  %y = call float @llvm.fma.f32(float %x, float %x, float %x)
  store float %y, ptr %a
  ret void
}
define i32 @dot(ptr %a, ptr %b) {
  %x = load <16 x i8>, ptr %a
  %y = load <16 x i8>, ptr %b
  %u = zext <16 x i8> %x to <16 x i32>
  %s = @@SIGNED@@ext <16 x i8> %y to <16 x i32>
  %m = mul <16 x i32> %u, %s
  %r = call i32 @llvm.vector.reduce.add.v16i32(<16 x i32> %m)
  ret i32 %r
}
define i32 @dot512(ptr %a, ptr %b) "min-legal-vector-width"="512" "prefer-vector-width"="512" {
  %x = load <64 x i8>, ptr %a
  %y = load <64 x i8>, ptr %b
  %u = zext <64 x i8> %x to <64 x i32>
  %s = sext <64 x i8> %y to <64 x i32>
  %m = mul <64 x i32> %u, %s
  %r = call i32 @llvm.vector.reduce.add.v64i32(<64 x i32> %m)
  ret i32 %r
}
define i32 @dotmixed(ptr %a, ptr %b) {
  %x = load <16 x i8>, ptr %a
  %y = load <16 x i8>, ptr %b
  %u = zext <16 x i8> %x to <16 x i32>
  %s = sext <16 x i8> %y to <16 x i32>
  %m = mul <16 x i32> %u, %s
  %r = call i32 @llvm.vector.reduce.add.v16i32(<16 x i32> %m)
  ret i32 %r
}
define void @bf16(ptr %a, ptr %b) {
  %x = load <8 x float>, ptr %a
  %y = fptrunc <8 x float> %x to <8 x bfloat>
  store <8 x bfloat> %y, ptr %b
  ret void
}
define void @half(ptr %a) {
  %x = load <8 x half>, ptr %a
  %y = fadd <8 x half> %x, %x
  store <8 x half> %y, ptr %a
  ret void
}
define void @halfcvt(ptr %a, ptr %b) {
  %x = load <8 x half>, ptr %a
  %y = fpext <8 x half> %x to <8 x float>
  store <8 x float> %y, ptr %b
  ret void
}
declare float @llvm.fma.f32(float, float, float)
declare i32 @llvm.vector.reduce.add.v16i32(<16 x i32>)
declare i32 @llvm.vector.reduce.add.v64i32(<64 x i32>)
"""
# what to look for in the assembly of each probe, by processor family
_SIGNS = {
    "x86_64": {"f512": "zmm", "f256": "ymm", "f128": "xmm", "fma": "vfmadd", "dot": "vpdpbusd", "dot512": r"vpdpbusd.*zmm", "dotmixed": "vpdpbusd", "bf16": "vcvtneps2bf16", "half": "vaddph",
               "halfcvt": "vcvtph2ps"},
    "aarch64": {"f128": r"fadd\s+v\d+\.4s", "fma": "fmadd", "dot": "udot", "dotmixed": "usdot", "bf16": r"bfcvt", "half": r"fadd\s+v\d+\.8h",
                "halfcvt": r"fcvtl"},
    "arm": {"f128": r"vadd\.f32\s+q", "fma": "vfma", "half": r"vadd\.f16", "halfcvt": r"vcvt[bt]?\.f32\.f16"},
    "riscv64": {"f128": "vfadd", "fma": "fmadd", "half": r"vfadd", "halfcvt": "vfwcvt"},
    "wasm32": {"f128": r"f32x4\.add"},
}
_SIGNS["i686"], _SIGNS["riscv32"] = _SIGNS["x86_64"], _SIGNS["riscv64"]
_REGISTERS = {"x86_64": 16, "i686": 8, "aarch64": 32, "arm": 16, "riscv64": 32, "riscv32": 32, "wasm32": 16}


def _probe(triple: str, cpu: str, features: tuple[str, ...]) -> dict[str, Any]:
    arch = arch_of(triple)
    found = _probe_functions(triple, cpu, features, arch)
    vector = 64 if "f512" in found else 32 if "f256" in found else 16 if "f128" in found else 0
    registers = 32 if vector == 64 else _REGISTERS.get(arch, 16)
    return {"vector_bytes": vector or (8 if "64" in arch else 4), "num_vector_registers": registers, "has_fma": "fma" in found, "has_vnni": "dot" in found,
            "dot_bytes": 64 if "dot512" in found else min(vector, 32) if "dot" in found else 0, "has_mixed_dot": "dotmixed" in found, "has_bf16": "bf16" in found, "has_half": "half" in found, "has_half_conversion": "halfcvt" in found}


def _probe_functions(triple: str, cpu: str, features: tuple[str, ...], arch: str) -> set[str]:
    signs = _SIGNS.get(arch)
    if signs is None:
        make_machine(triple, cpu, features)
        return set()
    from .llvm_setup import start_llvm

    llvm = start_llvm()
    machine = make_machine(triple, cpu, features)
    # only what has a sign: not every family can compile every probe
    wanted = [f for f in re.split(r"(?=^define|^declare)", _VECTOR_IR, flags=re.M) if f.startswith("declare") or _name_of(f) in signs]
    text = "".join(wanted).replace("@@SIGNED@@", "s" if arch in ("x86_64", "i686") else "z")
    with llvm.create_context() as context, llvm.parse_assembly(text, context) as module:
        module.triple = triple
        module.data_layout = str(machine.target_data)
        assembly = machine.emit_assembly(module)
    return {name for name, sign in signs.items() if re.search(sign, _body_of(assembly, name))}


def _name_of(function: str) -> str:
    return function.partition("@")[2].partition("(")[0]


def _body_of(assembly: str, name: str) -> str:
    match = re.search(rf"^_?{name}:(.*?)^\s*\.?(?:Lfunc_end|cfi_endproc|size|fnend)", assembly, re.S | re.M)
    return match[1] if match else ""


def make_machine(triple: str, cpu: str, features: tuple[str, ...], opt: int = 2, jit: bool = False, reloc: str = "pic") -> Any:
    """LLVM's code generator for a processor; TargetError when the triple or the processor is unknown."""
    from .llvm_setup import start_llvm

    llvm = start_llvm()
    try:
        backend = llvm.Target.from_triple(triple)
    except RuntimeError as exc:
        raise TargetError(f"-mtriple={triple}: LLVM has no such target ({exc})") from None
    if features != _host_names()[2]:
        _check_names(triple, cpu, features)
    return backend.create_target_machine(cpu=cpu, features=",".join(features), opt=opt, reloc=reloc, codemodel="jitdefault" if jit else "default", jit=jit)


@lru_cache(maxsize=256)
def _check_names(triple: str, cpu: str, features: tuple[str, ...]) -> None:
    from .llvm_setup import known_names, unknown_names

    wrong = unknown_names(triple, cpu, features)
    if not wrong:
        return
    cpus, switches = known_names(triple)
    if wrong[0] == cpu:
        raise TargetError(f"-mcpu={cpu}: LLVM knows no such processor for {triple}{hint(cpu, cpus)}")
    raise TargetError(f"-mattr={wrong[0]}: LLVM knows no such feature for {triple}{hint(wrong[0].lstrip('+-'), switches)}")


@lru_cache(maxsize=None)
def _host_caches() -> tuple[int, int, int]:
    sizes = {1: 32 << 10, 2: 512 << 10, 3: 8 << 20}
    for entry in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            kind, level, size = ((entry / name).read_text().strip() for name in ("type", "level", "size"))
            if kind != "Instruction":
                sizes[int(level)] = int(size.rstrip("KM")) << (20 if size.endswith("M") else 10)
        except (OSError, ValueError):
            continue
    return sizes[1], sizes[2], sizes[3]


def llvm_features(target: Target) -> dict[str, Any]:
    """The features that upstream names, for application processors of Arm."""
    info = resolve_cpu(target)
    if info.arch != "aarch64":
        return {}
    names = set(info.features)
    return {"is_aarch64": True, "has_asimd": info.vector_bytes >= 16, "has_sve": "+sve" in names, "has_dotprod": info.has_vnni,
            "has_matmul_i8": "+i8mm" in names, "has_fp16_simd": info.has_half, "has_sme": "+sme" in names}
