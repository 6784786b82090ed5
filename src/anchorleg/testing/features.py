"""Marks that say what a test needs: ``@requires_cuda`` skips the test where there is none.

A feature is a row of a table: what it builds on, the compiler's option, the target to be enabled, the device to be
there, or a check of its own.
"""
from __future__ import annotations

import functools
import platform
import shutil
from typing import Any, Callable, Iterator, Sequence

import pytest

from ..support.build_info import libinfo
from ..support.errors import ArgumentError
from . import targets

Check = Callable[[], "bool | str"]
_SUPPORT = ("compile-and-run", "compile-only", "optional")


class Feature:
    """A named need of tests; used as a decorator it marks a test and skips it where the need is not met.

    Parameters
    ----------
    name: the mark, for ``pytest -m``.
    long_name: for messages (default: the name).
    cmake_flag: an option of the build (``support.libinfo()``) that must be on.
    target_kind_enabled: a target kind that tests must have been asked to run on.
    compile_time_check, run_time_check: True, or False or a text saying why not.
    target_kind_hardware: a target kind whose device must exist.
    parent_features: features needed as well.
    """

    _all_features: dict[str, Feature] = {}

    def __init__(self, name: str, long_name: str | None = None, cmake_flag: str | None = None, target_kind_enabled: str | None = None,
                 compile_time_check: Check | None = None, target_kind_hardware: str | None = None, run_time_check: Check | None = None,
                 parent_features: str | Sequence[str] | None = None) -> None:
        self.name, self.long_name, self.cmake_flag = name, long_name or name, cmake_flag
        self.target_kind_enabled, self.target_kind_hardware = target_kind_enabled, target_kind_hardware
        self.compile_time_check, self.run_time_check = compile_time_check, run_time_check
        self.parent_features = [parent_features] if isinstance(parent_features, str) else list(parent_features or ())
        self._all_features[name] = self

    def lineage(self) -> Iterator[Feature]:
        """The features it builds on, then itself."""
        for parent in self.parent_features:
            yield from self._all_features[parent].lineage()
        yield self

    def marks(self, support_required: str = "compile-and-run") -> list[Any]:
        """The pytest marks that the decorator applies."""
        if support_required not in _SUPPORT:
            raise ArgumentError(f"support_required is expected to be one of {', '.join(_SUPPORT)}, got {support_required!r}")
        found: list[Any] = []
        for feature in self.lineage():
            if support_required == "compile-and-run":
                found += feature._run_marks()
            if support_required != "optional":
                found += feature._compile_marks()
            found.append(getattr(pytest.mark, feature.name))
        return found

    def _compile_marks(self) -> Iterator[Any]:
        yield from _check_mark(self.compile_time_check, f"Compile-time support for {self.long_name} not present")
        if self.target_kind_enabled is not None:
            kinds = {t.split()[0] for t in targets.requested_targets()}
            yield pytest.mark.skipif(self.target_kind_enabled.split()[0] not in kinds,
                                     reason=f"{self.target_kind_enabled} tests disabled by TVM_TEST_TARGETS environment variable")
        if self.cmake_flag is not None:
            yield pytest.mark.skipif(not is_built_with(self.cmake_flag), reason=f"{self.long_name} support not enabled ({self.cmake_flag})")

    def _run_marks(self) -> Iterator[Any]:
        yield from _check_mark(self.run_time_check, f"Run-time support for {self.long_name} not present")
        if self.target_kind_hardware is not None:
            yield pytest.mark.skipif(not targets.device_exists(self.target_kind_hardware),
                                     reason=f"No device exists for target {self.target_kind_hardware}")

    def __call__(self, func: Any = None, *, support_required: str = "compile-and-run") -> Any:
        marks = self.marks(support_required)

        def apply(test: Any) -> Any:
            return functools.reduce(lambda f, mark: mark(f), marks, test)

        return apply if func is None else apply(func)

    @classmethod
    def require(cls, name: str, support_required: str = "compile-and-run") -> Any:
        """The decorator of a feature by name."""
        return cls._all_features[name](support_required=support_required)


def _check_mark(check: Check | None, reason: str) -> Iterator[Any]:
    if check is not None:
        result = check()
        yield pytest.mark.skipif(isinstance(result, str) or not result, reason=result if isinstance(result, str) else reason)


def is_built_with(flag: str) -> bool:
    """Whether an option of the build is on."""
    return libinfo().get(flag, "OFF").lower() not in ("off", "false", "0")


def _gpu(index: int = 0) -> bool:
    from ..runtime.device import device

    return any(device(kind, index).exist for kind in ("cuda", "rocm", "opencl", "metal", "vulkan"))


def _cpu_has(*features: str) -> bool:
    from ..target.cpu import resolve_cpu
    from ..target.target import Target

    have = resolve_cpu(Target("llvm")).features
    return all(f"+{f}" in have for f in features)


def _arm_tools() -> bool | str:
    return True if shutil.which("arm-none-eabi-gcc") else "the embedded toolchain for ARM is not installed"


# name, long name, build option, target enabled, device, run-time check, compile-time check, parents
_TABLE: tuple[tuple[Any, ...], ...] = (
    ("llvm", "LLVM", "USE_LLVM", "llvm", "llvm", None, None, None),
    ("gpu", "GPU", None, None, None, _gpu, None, None),
    ("multi_gpu", "several GPUs", None, None, None, lambda: _gpu(0) and _gpu(1), None, None),
    ("x86", "x86 Architecture", None, None, None, lambda: platform.machine() in ("x86_64", "AMD64"), None, None),
    ("cuda", "CUDA", "USE_CUDA", "cuda", "cuda", None, None, "gpu"),
    ("tensorcore", "NVIDIA Tensor Core", None, None, None, lambda: False, None, "cuda"),
    ("cudnn", "cuDNN", "USE_CUDNN", None, None, None, None, "cuda"),
    ("cublas", "cuBLAS", "USE_CUBLAS", None, None, None, None, "cuda"),
    ("nccl", "NCCL", "USE_NCCL", None, None, None, None, "cuda"),
    ("nvptx", "NVPTX", None, "nvptx", "nvptx", None, None, ("llvm", "cuda")),
    ("cudagraph", "CUDA Graph", None, "cuda", None, None, lambda: False, "cuda"),
    ("opencl", "OpenCL", "USE_OPENCL", "opencl", "opencl", None, None, "gpu"),
    ("rocm", "ROCm", "USE_ROCM", "rocm", "rocm", None, None, "gpu"),
    ("matrixcore", "AMD Matrix Core", None, None, None, lambda: False, None, "rocm"),
    ("metal", "Metal", "USE_METAL", "metal", "metal", None, None, "gpu"),
    ("vulkan", "Vulkan", "USE_VULKAN", "vulkan", "vulkan", None, None, "gpu"),
    ("openclml", "CLML", "USE_CLML", "opencl", None, None, None, None),
    ("micro", "microcontrollers", "USE_MICRO", None, None, None, None, None),
    ("cutlass", "CUTLASS", "USE_CUTLASS", None, None, None, None, None),
    ("rpc", "RPC", "USE_RPC", None, None, None, None, None),
    ("ethosn", "Arm Ethos-N", "USE_ETHOSN", None, None, None, None, None),
    ("ethosu", "Arm Ethos-U", "USE_ETHOSU", None, None, None, None, None),
    ("libtorch", "LibTorch", "USE_LIBTORCH", None, None, None, None, None),
    ("mrvl", "Marvell", "USE_MRVL", None, None, None, None, None),
    ("hexagon", "Hexagon", "USE_HEXAGON", "hexagon", None, lambda: False, lambda: False, "llvm"),
    ("cmsisnn", "CMSIS NN", "USE_CMSISNN", None, None, None, None, None),
    ("corstone300", "Corstone-300", None, None, None, None, _arm_tools, "cmsisnn"),
    ("vitis_ai", "Vitis AI", "USE_VITIS_AI", None, None, None, None, None),
    ("arm_dot", "ARM dot product", None, None, None, lambda: _cpu_has("dotprod"), None, None),
    ("aarch64_sve", "AArch64 SVE", None, None, None, lambda: _cpu_has("sve"), None, None),
    ("x86_vnni", "x86 VNNI Extensions", None, None, None, lambda: _cpu_has("avx512vnni") or _cpu_has("avxvnni"), None, None),
    ("x86_avx512", "x86 AVX512 Extensions", None, None, None,
     lambda: _cpu_has("avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512f"), None, None),
    ("x86_amx", "x86 AMX Extensions", None, None, None, lambda: _cpu_has("amx-int8"), None, None),
)

for _name, _long, _flag, _enabled, _device, _run, _compile, _parents in _TABLE:
    globals()[f"requires_{_name}"] = Feature(_name, _long, _flag, _enabled, _compile, _device, _run, _parents)

uses_gpu = Feature.require("gpu", "optional")
uses_multi_gpu = Feature.require("multi_gpu", "optional")


def requires_nvcc_version(major_version: int, minor_version: int = 0, release_version: int = 0) -> Any:
    """The test needs NVIDIA's compiler of at least that version."""
    return _needs_cuda(f"needs NVIDIA's compiler of version {major_version}.{minor_version}.{release_version} or later")


def requires_cuda_compute_version(major_version: int, minor_version: int = 0) -> Any:
    """The test needs a GPU of at least that compute capability."""
    return _needs_cuda(f"needs a GPU of compute capability {major_version}.{minor_version} or later")


def _needs_cuda(reason: str) -> Any:
    marks = [pytest.mark.skipif(not targets.device_exists("cuda"), reason=reason), *Feature._all_features["cuda"].marks()]
    return lambda func: functools.reduce(lambda f, mark: mark(f), marks, func)


def is_ampere_or_newer() -> bool:
    """Whether the GPU is of compute capability 8 or later."""
    from ..runtime.device import device

    gpu = device("cuda")
    version = gpu.compute_version if gpu.exist else None
    return version is not None and float(version) >= 8
