"""Upstream's constructors of targets for kinds of boards: ``cuda(arch="sm_80")``, ``arm_cpu("rasp4b64")`` …"""
from __future__ import annotations

import warnings
from typing import Any, Iterable, Sequence

from ..support.errors import TargetError
from .kinds import hint
from .target import Target



def _build(kind: str, options: Iterable[str], more: str | Sequence[str] | None) -> Target:
    extra = more.split() if isinstance(more, str) else list(more or ())
    return Target(" ".join([kind, *dict.fromkeys([*options, *extra])]))


def cuda(model: str = "unknown", arch: str | None = None, options: str | Sequence[str] | None = None) -> Target:
    """A CUDA target."""
    return _build("cuda", [*([f"-arch={arch}"] if arch else []), f"-model={model}"], options)


def rocm(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """An AMD GPU target."""
    return _build("rocm", [f"-model={model}"], options)


def mali(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """An Arm Mali GPU target."""
    return _build("opencl", ["-device=mali", f"-model={model}"], options)


def bifrost(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """An Arm Mali (Bifrost) GPU target."""
    return _build("opencl", ["-device=bifrost", f"-model={model}"], options)


def adreno(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """A Qualcomm Adreno GPU target."""
    return _build("opencl", ["-device=adreno", f"-model={model}"], options)


def intel_graphics(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """An Intel GPU target."""
    return _build("opencl", ["-device=intel_graphics", f"-model={model}", "-thread_warp_size=16"], options)


def vta(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """A VTA accelerator target."""
    return _build("ext_dev", ["-device=vta", "-keys=vta,cpu", f"-model={model}"], options)


_NEON64, _NEON = "-mtriple=aarch64-linux-gnu -mattr=+neon", "-mattr=+neon"
_ANDROID = f"-mtriple=arm64-linux-android {_NEON}"
_ARM_BOARDS = {
    "pixel2": f"-model=snapdragon835 {_ANDROID}", "mate10": f"-model=kirin970 {_ANDROID}",
    "mate10pro": f"-model=kirin970 {_ANDROID}", "p20": f"-model=kirin970 {_ANDROID}", "p20pro": f"-model=kirin970 {_ANDROID}",
    "rasp3b": f"-model=bcm2837 -mtriple=armv7l-linux-gnueabihf {_NEON}",
    "rasp4b": f"-model=bcm2711 -mtriple=armv8l-linux-gnueabihf {_NEON} -mcpu=cortex-a72",
    "rasp4b64": f"-model=bcm2711 {_NEON64} -mcpu=cortex-a72",
    "rk3399": f"-model=rk3399 {_NEON64}", "pynq": f"-model=pynq -mtriple=armv7a-linux-eabi {_NEON}",
    "ultra96": f"-model=ultra96 {_NEON64}",
    "beagleai": "-model=beagleai -mtriple=armv7a-linux-gnueabihf -mattr=+neon,+vfp4,+thumb2 -mcpu=cortex-a15",
    "stm32mp1": "-model=stm32mp1 -mtriple=armv7a-linux-gnueabihf -mattr=+neon,+vfp4,+thumb2 -mcpu=cortex-a7",
    "thunderx": "-model=thunderx -mtriple=aarch64-linux-gnu -mattr=+neon,+crc,+lse -mcpu=thunderxt88",
}
_RISCV_BOARDS = {name: f"-model={name} -mtriple=riscv{bits}-unknown-linux-gnu -mcpu={name} -mabi={abi}"
                 for name, bits, abi in [("sifive-e31", 32, "ilp32"), ("sifive-e76", 32, "ilp32"), ("sifive-u54", 64, "lp64d"),
                                         ("sifive-u74", 64, "lp64d")]}
_ARM_COMMON = ["-keys=arm_cpu,cpu", "-device=arm_cpu"]


def arm_cpu(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """An Arm processor target, by the name of a board or phone."""
    return _build("llvm", _ARM_COMMON + _ARM_BOARDS.get(model, f"-model={model}").split(), options)


def rasp(options: str | Sequence[str] | None = None) -> Target:
    """A Raspberry Pi 3b target; deprecated, use ``arm_cpu("rasp3b")``."""
    warnings.warn('target.rasp() is deprecated: use target.arm_cpu("rasp3b")', DeprecationWarning, stacklevel=2)
    return arm_cpu("rasp3b", options)


def riscv_cpu(model: str = "sifive-u54", options: str | Sequence[str] | None = None) -> Target:
    """A RISC-V processor target."""
    return _build("llvm", _ARM_COMMON + _RISCV_BOARDS.get(model, f"-model={model}").split(), options)


MICRO_SUPPORTED_MODELS: dict[str, list[str]] = {
    model: (f"-mcpu={cpu}".split() if cpu else []) for model, cpu in {
        "host": "", "atsamd51": "cortex-m4", "cxd5602gg": "cortex-m4", "esp32": "", "imxrt10xx": "cortex-m7", "mps2_an521": "cortex-m33",
        "mps3_an547": "cortex-m55", "nrf52840": "cortex-m4+nodsp", "nrf5340dk": "cortex-m33", "rp2040": "cortex-m0", "sam3x8e": "cortex-m3",
        "stm32f746xx": "cortex-m7 -march=armv7e-m", "stm32h7xx": "cortex-m7", "stm32l4r5zi": "cortex-m4", "stm32u5xx": "cortex-m33",
        "zynq_mp_r5": "cortex-r5"}.items()}
_STM32_SERIES = {"stm32H7xx": "cortex-m7 -march=armv7e-m", "stm32F7xx": "cortex-m7", "stm32F4xx": "cortex-m4", "stm32F2xx": "cortex-m3",
                 "stm32G0xx": "cortex-m0+", "stm32F0xx": "cortex-m0", "stm32F1xx": "cortex-m3", "stm32G4xx": "cortex-m4",
                 "stm32F3xx": "cortex-m4", "stm32U5xx": "cortex-m33", "stm32L5xx": "cortex-m33", "stm32L4xx": "cortex-m4",
                 "stm32L1xx": "cortex-m3", "stm32L0xx": "cortex-m0+"}
STM32_SUPPORTED_SERIES = {series: [*_ARM_COMMON, *f"-mcpu={cpu}".split()] for series, cpu in _STM32_SERIES.items()}


def _known(table: dict[str, Any], name: str, what: str) -> Any:
    if name not in table:
        raise TargetError(f"{what} {name} not supported{hint(name, table)}; known: {', '.join(table)}")
    return table[name]


def micro(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """A microcontroller board target (C code)."""
    return _build("c", [*_known(MICRO_SUPPORTED_MODELS, model, "Model"), f"-model={model}"], options)


def stm32(series: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """An STM32 board target (C code)."""
    return _build("c", _known(STM32_SUPPORTED_SERIES, series, "Series"), options)


_VTCM_BYTES = {"v65": 1 << 18, "v66": 1 << 18, "v68": 4 << 20, "v69": 8 << 20, "v73": 8 << 20, "v75": 8 << 20}
_HEXAGON_VERSIONS = ("v65", "v66", "v67", "v67t", "v68", "v69", "v71", "v73", "v75")


def hexagon(cpu_ver: str = "v68", **options: Any) -> Target:
    """A Hexagon target; options: hvx (0, 64 or 128), llvm_options, use_qfloat, use_ieee_fp, num_cores, vtcm_capacity."""
    version = cpu_ver[cpu_ver.find("v"):].lower()
    if version not in _HEXAGON_VERSIONS:
        raise TargetError(f"{cpu_ver} is not a valid Hexagon version\nvalid versions include {list(_HEXAGON_VERSIONS)}")
    number = int(version[1:3])
    words = ["-mtriple=hexagon", f"-mcpu=hexagon{version}", _hexagon_features(version, number, options)]
    llvm_options = f"{options.get('llvm_options') or ''}{' -force-hvx-float' if number == 68 else ''}".split()
    if llvm_options:
        words.append("--llvm-options=" + ",".join(o.replace("=", "@") for o in llvm_options))
    words.append(f"--num-cores={options.get('num_cores', 4)}")
    words.append(f"--vtcm-capacity={options.get('vtcm_capacity', _VTCM_BYTES.get(version, 0))}")
    return Target(" ".join(["hexagon", *words]))


def _hexagon_features(version: str, number: int, options: dict[str, Any]) -> str:
    hvx = options.get("hvx", 128)
    if hvx not in (0, 64, 128):
        raise TargetError("Invalid hvx value, should be one of [0, 64, 128]")
    found = [f"+hvx{version}", f"+hvx-length{hvx}b"] if hvx else ["-hvx"]
    if number >= 68:
        found.append("+-"[not options.get("use_qfloat", True)] + "hvx-qfloat")
        found.append("+-"[not options.get("use_ieee_fp", False)] + "hvx-ieee-fp")
    return "-mattr=" + ",".join(found)


def create(target: Any) -> Target:
    """Deprecated: use ``Target(target)``."""
    warnings.warn("target.create() is deprecated: use target.Target()", DeprecationWarning, stacklevel=2)
    return Target(target)
