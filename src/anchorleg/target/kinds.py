"""Target kinds: which options each takes, their types and defaults, the device it runs on and its dispatch keys."""
from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Mapping

from ..support.errors import TargetError

INT, BOOL, STR, STRS, TARGET, TARGETS = "int", "bool", "str", "list of str", "target", "list of target"
_COMMON = {"keys": STRS, "tag": STR, "device": STR, "model": STR, "libs": STRS, "host": TARGET, "from_device": INT,
           "target_device_type": INT}
Config = dict[str, Any]


@dataclass(frozen=True)
class TargetKind:
    """A way to generate code.

    ``option_types`` maps option name to type; ``defaults`` option name to value; ``device_type`` is DLPack's number;
    ``adjust`` completes or checks a configuration.  Prints as its name.

    ``attributes`` says more: ``is_external_codegen`` (the kind is an external compiler: functions with ``Compiler="<kind>"`` are its
    own), ``RelayToTIR`` (its pass, run on modules that have such functions) and ``TIRToRuntime`` (``(module, target) → runtime module``
    for loop programs with a target of this kind).
    """

    name: str
    device_type: int
    keys: tuple[str, ...] = ()
    option_types: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    adjust: Callable[[Config], Config] = field(default=lambda config: config, compare=False)
    attributes: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def get_attr(self, name: str, default: Any = None) -> Any:
        """One of the ``attributes``."""
        return self.attributes.get(name, default)

    def set_attr(self, name: str, value: Any) -> TargetKind:
        """Sets one of the ``attributes``; returns the kind."""
        self.attributes[name] = value
        return self

    @property
    def is_external_codegen(self) -> bool:
        """Whether the kind is an external compiler, which takes functions, not operators."""
        return bool(self.attributes.get("is_external_codegen"))

    @property
    def options(self) -> dict[str, str]:
        """Option name → type."""
        return dict(self.option_types)

    @staticmethod
    def options_from_name(kind_name: str) -> dict[str, str]:
        """Option name → type of the kind of that name."""
        return find_kind(kind_name).options

    @property
    def default_keys(self) -> tuple[str, ...]:
        """The dispatch keys a target of this kind has unless it names others."""
        return self.keys

    def type_of(self, option: str) -> str:
        """The type of an option; TargetError with near names when there is none."""
        found = self.option_types.get(option)
        if found is None:
            raise TargetError(f"target kind {self.name!r} has no option {option!r}{hint(option, self.option_types)}; "
                              f"its options: {', '.join(sorted(self.option_types))}")
        return found

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return find_kind, (self.name,)


def hint(name: str, known: Iterable[str]) -> str:
    """`` (did you mean …?)`` with the known names nearest to ``name``, or nothing."""
    near = difflib.get_close_matches(name, list(known), 3, 0.6)
    return f" (did you mean {', '.join(near)}?)" if near else ""


_ARM_KEYS = ("arm_cpu", "cpu")
_M_PROFILE = ("cortex-m0", "cortex-m3", "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m35p", "cortex-m55", "cortex-m85")


def is_m_profile(config: Mapping[str, Any]) -> bool:
    """Whether the configuration names an Arm microcontroller core."""
    return str(config.get("mcpu") or "").startswith(_M_PROFILE)


def is_a_profile(config: Mapping[str, Any]) -> bool:
    """Whether the configuration names an Arm application core."""
    triple = str(config.get("mtriple") or "")
    return triple.startswith(("aarch64", "arm64")) or triple.startswith("arm") and not is_m_profile(config)


def _adjust_cpu(config: Config) -> Config:
    triple_given = config.get("mtriple") or config.get("mcpu")
    arm_host = config["kind"] == "llvm" and not triple_given and _host_is_arm()
    if not (is_m_profile(config) or is_a_profile(config) or arm_host):
        return config
    keys = list(config.get("keys") or ())
    return {**config, "keys": keys + [k for k in _ARM_KEYS if k not in keys]}


def _host_is_arm() -> bool:
    import platform

    return platform.machine().lower() in ("aarch64", "arm64")


def _adjust_cuda(config: Config) -> Config:
    arch = config.get("arch")
    if arch is None:
        return {**config, "arch": "sm_50"}
    if not str(arch).startswith("sm_"):
        raise TargetError(f"cuda target: invalid -arch={arch}: expected sm_ and a number, e.g. sm_80")
    return config


def _forced(config: Config, key: str, value: str) -> Config:
    if config.get(key, value) != value:
        raise TargetError(f"target kind {config['kind']!r}: -{key} must be {value!r}, got {config[key]!r}")
    return {**config, key: value}


def _adjust_nvptx(config: Config) -> Config:
    mcpu = config.get("mcpu", "sm_50")
    if not mcpu.startswith("sm_"):
        raise TargetError(f"nvptx target: invalid -mcpu={mcpu}: expected sm_ and a number, e.g. sm_80")
    return {**_forced(config, "mtriple", "nvptx64-nvidia-cuda"), "mcpu": mcpu}


def _adjust_rocm(config: Config) -> Config:
    mcpu = config.get("mcpu", "gfx900")
    if not mcpu.startswith("gfx"):
        raise TargetError(f"rocm target: invalid -mcpu={mcpu}: expected gfx and a number, e.g. gfx906")
    return {**_forced(config, "mtriple", "amdgcn-amd-amdhsa-hcc"), "mcpu": mcpu}


def _table(*specs: tuple[str, Iterable[str]]) -> dict[str, str]:
    return {name: kind for kind, names in specs for name in names}


def _words(text: str) -> list[str]:
    return text.split()


_FAST_MATH = ["fast-math"] + [f"fast-math-{flag}" for flag in _words("nnan ninf nsz arcp contract reassoc")]
_LLVM = _table((STRS, ["mattr", "cl-opt"]), (STR, _words("mcpu mtriple mfloat-abi mabi jit")), (INT, ["num-cores", "opt-level"]),
               (BOOL, _FAST_MATH))
_C = _table((STR, ["mcpu", "march"]), (INT, ["workspace-byte-alignment", "constants-byte-alignment"]))
_CUDA = _table((STR, ["mcpu", "arch"]), (INT, _words("max_shared_memory_per_block max_threads_per_block thread_warp_size "
                                                     "registers_per_block l2_cache_size_bytes max_num_threads")))
_NVPTX = _table((STR, ["mcpu", "mtriple"]), (INT, ["max_num_threads", "thread_warp_size"]))
_ROCM = _table((STR, ["mcpu", "mtriple"]), (STRS, ["mattr"]),
               (INT, _words("max_num_threads max_threads_per_block max_shared_memory_per_block thread_warp_size")))
_OPENCL = _table((INT, _words("max_threads_per_block max_shared_memory_per_block max_num_threads thread_warp_size "
                              "texture_spatial_limit max_function_args")))
_METAL = _table((INT, _words("max_num_threads max_threads_per_block max_shared_memory_per_block thread_warp_size max_function_args")))
_VULKAN = _table(
    (STRS, ["mattr"]),
    (BOOL, ["supports_" + s for s in _words("float16 float32 float64 int8 int16 int32 int64 8bit_buffer 16bit_buffer storage_buffer_storage_class "
                                            "push_descriptor dedicated_allocation integer_dot_product cooperative_matrix")]),
    (INT, _words("supported_subgroup_operations max_num_threads max_threads_per_block thread_warp_size max_block_size_x max_block_size_y "
                 "max_block_size_z max_push_constants_size max_uniform_buffer_range max_storage_buffer_range "
                 "max_per_stage_descriptor_storage_buffer max_shared_memory_per_block driver_version vulkan_api_version max_spirv_version")),
    (STR, ["device_type", "device_name", "driver_name"]))
_HEXAGON = _table((STRS, ["mattr", "llvm-options"]), (STR, ["mcpu", "mtriple"]), (INT, ["num-cores", "vtcm-capacity"]))

KINDS: dict[str, TargetKind] = {}


def register_kind(name: str, device_type: int, keys: Iterable[str] = (), options: Mapping[str, str] | None = None,
                  defaults: Mapping[str, Any] | None = None, adjust: Callable[[Config], Config] | None = None,
                  attributes: Mapping[str, Any] | None = None) -> TargetKind:
    """Adds a target kind; options common to all kinds (keys, tag, device, model, libs, host …) are included."""
    kind = TargetKind(name, device_type, tuple(keys), {**_COMMON, **(options or {})}, dict(defaults or {}), adjust or (lambda c: c), dict(attributes or {}))
    KINDS[name] = kind
    return kind


def find_kind(name: str) -> TargetKind:
    """The kind of that name; TargetError with near names when there is none."""
    if name not in KINDS:
        raise TargetError(f"Target kind {name!r} is not defined{hint(name, KINDS)}; known kinds: {', '.join(sorted(KINDS))}")
    return KINDS[name]


register_kind("llvm", 1, ["cpu"], _LLVM, adjust=_adjust_cpu)
register_kind("c", 1, ["cpu"], _C, adjust=_adjust_cpu)
register_kind("cuda", 2, ["cuda", "gpu"], _CUDA, {"thread_warp_size": 32, "max_num_threads": 1024}, _adjust_cuda)
register_kind("nvptx", 2, ["cuda", "gpu"], _NVPTX, {"max_num_threads": 1024, "thread_warp_size": 32}, _adjust_nvptx)
register_kind("rocm", 10, ["rocm", "gpu"], _ROCM, {"max_num_threads": 256, "max_threads_per_block": 256, "max_shared_memory_per_block": 65536,
                                                   "thread_warp_size": 64}, _adjust_rocm)
register_kind("opencl", 4, ["opencl", "gpu"], _OPENCL, {"max_threads_per_block": 256, "max_shared_memory_per_block": 16384, "max_num_threads": 256,
                                                        "thread_warp_size": 1, "texture_spatial_limit": 16384, "max_function_args": 128})
register_kind("metal", 8, ["metal", "gpu"], _METAL, {"max_num_threads": 256, "max_threads_per_block": 256, "max_shared_memory_per_block": 32768,
                                                     "thread_warp_size": 16, "max_function_args": 31})
register_kind("vulkan", 7, ["vulkan", "gpu"], _VULKAN, {"supports_float32": True, "supports_int32": True, "max_num_threads": 256,
                                                        "max_threads_per_block": 256, "thread_warp_size": 1})
register_kind("webgpu", 15, ["webgpu", "gpu"], {"max_num_threads": INT}, {"max_num_threads": 256})
register_kind("sdaccel", 4, ["sdaccel", "hls"])
register_kind("aocl", 32, ["aocl", "hls"])
register_kind("aocl_sw_emu", 32, ["aocl", "hls"])
register_kind("hexagon", 16, ["hexagon", "cpu"], _HEXAGON)
register_kind("stackvm", 1, ["cpu"])
register_kind("ext_dev", 12)
register_kind("hybrid", 1)
register_kind("composite", 1, ["cpu"], {"devices": TARGETS})
register_kind("test", 1)
register_kind("ccompiler", 1, options={"header": STR}, defaults={"header": ""}, attributes={"is_external_codegen": True})
