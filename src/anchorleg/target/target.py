"""``Target``: for what code is generated.

A target comes from text (``"llvm -mcpu=znver4 -mattr=+avx2"``), a dict or JSON (``{"kind": "cuda", "arch": "sm_80"}``) or a tag
(``"nvidia/nvidia-a100"``).  Plain ``llvm`` means this machine with all its features; naming ``-mcpu`` or ``-mtriple`` means
exactly what is named.
"""
from __future__ import annotations

import json
import threading
import warnings
from types import MappingProxyType
from typing import Any, Callable, Mapping, Sequence

from ..support.errors import TargetError
from .kinds import KINDS, TARGET, TARGETS, TargetKind, find_kind, hint, is_m_profile
from .option_text import Strings, check_value, parse_words, value_text


class NoTargetError(TargetError, AssertionError):
    """A host was named where there is no target."""


class _Scopes(threading.local):
    def __init__(self) -> None:
        self.stack: list[Target] = []


_SCOPES = _Scopes()


class TargetFeatures:
    """What the processor of a target has: ``features.has_dotprod``; None for names that say nothing about it."""

    __slots__ = ("_target", "_table")

    def __init__(self, target: Target) -> None:
        self._target, self._table = target, None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self._table is None:
            self._table = _features_of(self._target)
        return self._table.get(name)


class Target:
    """A target, immutable, equal by content; ``with target:`` makes it the current one of this thread.

    Attributes: ``kind`` (TargetKind), ``keys`` (names that generic functions dispatch on), ``attrs`` (option → value),
    ``host`` (Target or None), ``tag``.  Raises TargetError, naming the nearest valid names, for what it does not know.
    """

    __slots__ = ("kind", "keys", "attrs", "host", "tag", "_text", "_hash", "_features", "__weakref__")

    kind: TargetKind
    keys: Strings
    attrs: Mapping[str, Any]
    host: Target | None
    tag: str

    def __init__(self, target: Any, host: Any = None) -> None:
        if target is None or not isinstance(target, (Target, str, Mapping)):
            raise TargetError("target has to be a string or dictionary.")
        if host is not None and not isinstance(host, (Target, str, Mapping)):
            raise TargetError("target host has to be a string or dictionary.")
        if isinstance(target, Target):
            self._adopt(target.kind, target.keys, target.attrs, target.host, target.tag)
        else:
            self._from_config(_config_of(target))
        if host is not None:
            self.host = Target.canon_target(host)

    def _adopt(self, kind: TargetKind, keys: Sequence[str], attrs: Mapping[str, Any], host: Target | None, tag: str) -> None:
        self.kind, self.keys, self.host, self.tag = kind, Strings(dict.fromkeys(keys)), host, tag
        self.attrs = MappingProxyType(dict(attrs))
        self._text = self._hash = self._features = None

    def _from_config(self, given: Mapping[str, Any]) -> None:
        if "kind" not in given:
            raise TargetError(f"target: field 'kind' is not found in {dict(given)!r}; known kinds: {', '.join(sorted(KINDS))}")
        if not isinstance(given["kind"], str):
            raise TargetError(f"target: field 'kind' must be a string, got {given['kind']!r}")
        kind = find_kind(given["kind"])
        config = {k: _convert(kind, k, v) for k, v in given.items() if k != "kind"}
        config = kind.adjust({"kind": kind.name, **config})
        config.pop("kind")
        tag, host = config.pop("tag", ""), config.pop("host", None)
        keys = _keys_of(kind, config.pop("keys", None), config.get("device"))
        attrs = {**{k: v for k, v in kind.defaults.items() if k not in config}, **config}
        self._adopt(kind, keys, dict(sorted(attrs.items())), host, tag)

    # -- text, equality

    def __str__(self) -> str:
        if self._text is None:
            parts = [self.kind.name]
            if self.keys:
                parts.append("-keys=" + ",".join(self.keys))
            parts += [f"-{k}={value_text(v)}" for k, v in sorted(self.attrs.items()) if value_text(v)]
            self._text = " ".join(parts)
        return self._text

    def __repr__(self) -> str:
        return str(self)

    def _content(self) -> tuple[Any, ...]:
        return self.kind.name, tuple(self.keys), tuple(sorted(self.attrs.items())), self.host, self.tag

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return self._content() == other._content() if isinstance(other, Target) else NotImplemented

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((str(self), self.host))
        return self._hash

    def same_as(self, other: object) -> bool:
        """Whether both are one and the same object."""
        return self is other

    def __reduce__(self) -> tuple[Any, ...]:
        return Target, (self.export(),)

    def export(self) -> dict[str, Any]:
        """The configuration as a plain dict; ``Target(t.export()) == t``."""
        plain = {k: list(v) if isinstance(v, Strings) else [t.export() for t in v] if isinstance(v, tuple) else v
                 for k, v in self.attrs.items()}
        host = {} if self.host is None else {"host": self.host.export()}
        return {"kind": self.kind.name, "tag": self.tag, "keys": list(self.keys), **plain, **host}

    # -- scopes

    def __enter__(self) -> Target:
        _SCOPES.stack.append(self)
        return self

    def __exit__(self, *exc: Any) -> None:
        _SCOPES.stack.pop()

    @staticmethod
    def current(allow_none: bool = True) -> Target | None:
        """The innermost target entered in this thread; TargetError when there is none and ``allow_none`` is false."""
        if _SCOPES.stack:
            return _SCOPES.stack[-1]
        if allow_none:
            return None
        raise TargetError("a target is required here: enter one with `with anchorleg.target.Target(...):`")

    @staticmethod
    def target_or_current(target: Target | None) -> Target:
        """``target``, or the current one when it is None."""
        found = target if target is not None else Target.current()
        if found is None:
            raise TargetError("Target is not set in env or passed as argument.")
        return found

    # -- options

    def with_host(self, host: Any = None) -> Target:
        """The same target with that host."""
        new = Target(self)
        new.host = Target.canon_target(host)
        return new

    def _option(self, name: str) -> Any:
        if name not in self.attrs:
            raise TargetError(f"target {self} has no value for {name!r}; it has: {', '.join(self.attrs) or 'none'}")
        return self.attrs[name]

    @property
    def arch(self) -> str:
        """The CUDA architecture, or ``""``."""
        return str(self.attrs.get("arch", ""))

    @property
    def max_num_threads(self) -> int:
        """Most threads in a block."""
        return int(self._option("max_num_threads"))

    @property
    def max_block_size_x(self) -> int:
        """Largest first extent of a block."""
        return int(self._option("max_block_size_x"))

    @property
    def max_block_size_y(self) -> int:
        """Largest second extent of a block."""
        return int(self._option("max_block_size_y"))

    @property
    def thread_warp_size(self) -> int:
        """Threads that run in step."""
        return int(self._option("thread_warp_size"))

    @property
    def max_shared_memory_per_block(self) -> int:
        """Bytes of memory shared by a block."""
        return int(self._option("max_shared_memory_per_block"))

    @property
    def max_function_args(self) -> int:
        """Most arguments of a kernel; 0 when unlimited."""
        return int(self.attrs.get("max_function_args", 0))

    @property
    def vtcm_capacity(self) -> int:
        """Bytes of tightly coupled memory; 0 when there is none or no bound."""
        return int(self.attrs.get("vtcm-capacity", 0))

    @property
    def device_name(self) -> str:
        """The device named with ``-device``, or ``""``."""
        return str(self.attrs.get("device", ""))

    @property
    def model(self) -> str:
        """The model named with ``-model``, or ``"unknown"``."""
        return str(self.attrs.get("model", "unknown"))

    @property
    def mcpu(self) -> str:
        """The processor named with ``-mcpu``, or ``""``."""
        return str(self.attrs.get("mcpu", ""))

    @property
    def mtriple(self) -> str:
        """The triple named with ``-mtriple``, or ``""``."""
        return str(self.attrs.get("mtriple", ""))

    @property
    def mattr(self) -> list[str]:
        """The processor features switched with ``-mattr``."""
        return list(self.attrs.get("mattr", ()))

    @property
    def libs(self) -> list[str]:
        """External libraries to use."""
        return list(self.attrs.get("libs", ()))

    @property
    def num_cores(self) -> int:
        """Cores named with ``-num-cores``; 0 when not named."""
        return int(self.attrs.get("num-cores", 0))

    @property
    def supports_integer_dot_product(self) -> bool:
        """Whether the device multiplies and sums four bytes at once."""
        if self.attrs.get("supports_integer_dot_product"):
            return True
        digits = self.arch.partition("_")[2].rstrip("a")
        return self.kind.name == "cuda" and digits.isdigit() and int(digits) >= 61

    @property
    def supports_cooperative_matrix(self) -> bool:
        """Whether the device has cooperative matrices."""
        return bool(self.attrs.get("supports_cooperative_matrix", False))

    @property
    def l2_cache_size_bytes(self) -> int:
        """Bytes of second-level cache; 0 when not known."""
        return int(self.attrs.get("l2_cache_size_bytes", 0))

    @property
    def features(self) -> TargetFeatures:
        """Processor features by name."""
        if self._features is None:
            self._features = TargetFeatures(self)
        return self._features

    def get_kind_attr(self, attr_name: str) -> Any:
        """A property of the kind (``default_keys``, ``is_external_codegen`` …), None when unknown."""
        table = {"default_keys": list(self.kind.keys), "default_device_type": self.kind.device_type, "is_external_codegen": self.kind.is_external_codegen}
        return table.get(attr_name, self.kind.get_attr(attr_name))

    def get_target_device_type(self) -> int:
        """DLPack's number of the device this target runs on."""
        return int(self.attrs.get("target_device_type", self.kind.device_type))

    # -- collections

    @staticmethod
    def list_kinds() -> list[str]:
        """The names of all kinds."""
        return list(KINDS)

    @staticmethod
    def from_device(device: Any) -> Target:
        """The target of a device of this machine (``"cpu"``, ``"cuda"`` …)."""
        from .detect import detect_target_from_device

        return detect_target_from_device(device)

    @staticmethod
    def canon_target(target: Any) -> Target | None:
        """A Target from whatever denotes one; None stays None."""
        return target if target is None or isinstance(target, Target) else Target(target)

    @staticmethod
    def canon_target_and_host(target: Any, target_host: Any = None) -> tuple[Target | None, Target | None]:
        """The target (with the host put in) and its host."""
        target = Target.canon_target(target)
        if target is None:
            if target_host is not None:
                raise NoTargetError("Target host is not empty when target is empty.")
            return None, None
        if target.host is None and target_host is not None:
            _warn_host()
            target = target.with_host(target_host)
        return target, target.host

    @staticmethod
    def canon_multi_target(multi_targets: Any) -> list[Target] | None:
        """A list of targets from one target, several, or a map from device type to target."""
        if multi_targets is None:
            return None
        if isinstance(multi_targets, Mapping) and "kind" not in multi_targets:
            multi_targets = list(multi_targets.values())
        if isinstance(multi_targets, (list, tuple)):
            return [Target(t) if not isinstance(t, Target) else t for t in multi_targets]
        return [Target.canon_target(multi_targets)]  # type: ignore[list-item]

    @staticmethod
    def canon_multi_target_and_host(target: Any, target_host: Any = None) -> list[Target]:
        """The list of targets, each with the host put in."""
        targets = Target.canon_multi_target(target)
        if not targets:
            raise NoTargetError(f"expected at least one target, got {target!r}")
        if targets[0].host is None and target_host is not None:
            _warn_host()
            host = Target.canon_target(target_host)
            targets = [t.with_host(host) for t in targets]
        return targets

    @staticmethod
    def split_external(targets: Sequence[Target]) -> tuple[list[Target], list[Target]]:
        """The targets that operators are compiled for, and those of external compilers.

        Without the first, the host of the others takes their place; TargetError when there is none.
        """
        external = [t for t in targets if t.kind.is_external_codegen]
        ordinary = [t for t in targets if not t.kind.is_external_codegen] or [t.host for t in external if t.host is not None][:1]
        if not ordinary:
            raise TargetError(f"only targets of external compilers are given ({', '.join(map(str, external))}): add the one that everything else "
                              'is compiled for, e.g. ["llvm", …], or make it their host')
        return ordinary, external

    @staticmethod
    def canon_target_map_and_host(target_map: Mapping[Any, Any], target_host: Any = None) -> tuple[dict[Target, Any], Target | None]:
        """The map with its keys as Targets with their host put in, and that host."""
        result: dict[Target, Any] = {}
        host: Target | None = None
        for key, value in target_map.items():
            target = Target(key)
            if host is None:
                host = target.host if target.host is not None else Target.canon_target(target_host)
            if target.host is None and host is not None:
                target = target.with_host(host)
            result[target] = value
        return result, host


def _warn_host() -> None:
    warnings.warn("the target_host parameter is deprecated: pass Target(target, host=target_host) instead", DeprecationWarning, stacklevel=3)


def _config_of(target: str | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(target, Mapping):
        return target
    from .tags import find_tag

    text = str(target)
    tagged = find_tag(text)
    if tagged is not None:
        return tagged
    if text.lstrip().startswith("{"):
        return _from_json(text)
    if "/" in text.split(" ")[0]:
        from .tags import TAGS

        raise TargetError(f"target tag {text!r} is not defined{hint(text, TAGS)}")
    return parse_words(text)


def _from_json(text: str) -> Mapping[str, Any]:
    try:
        config = json.loads(text)
    except json.JSONDecodeError as exc:
        raise TargetError(f"target {text!r} is not valid JSON: {exc}") from None
    if not isinstance(config, dict):
        raise TargetError(f"target JSON must be an object, got {text!r}")
    return config


def _convert(kind: TargetKind, key: str, value: Any) -> Any:
    if not isinstance(key, str):
        raise TargetError(f"target: option names must be strings, got {key!r}")
    option_type = kind.type_of(key)
    if option_type == TARGET:
        return Target.canon_target(value)
    try:
        checked = check_value(value, option_type)
    except TargetError as exc:
        raise TargetError(f"target kind {kind.name!r}, option {key!r}: {exc}") from None
    return tuple(Target(v) if not isinstance(v, Target) else v for v in checked) if option_type == TARGETS else checked


def _keys_of(kind: TargetKind, given: Sequence[str] | None, device: str | None) -> list[str]:
    keys = list(given or ())
    if device:
        keys.append(device)
    return keys if given is not None else keys + list(kind.keys)


def _features_of(target: Target) -> dict[str, Any]:
    config = dict(target.attrs)
    if target.kind.name == "test":
        return {"is_test": True}
    if is_m_profile(config):
        return _m_profile_features(config)
    if target.kind.name == "llvm":
        from .cpu import llvm_features

        return llvm_features(target)
    return {}


_MVE = ("cortex-m55", "cortex-m85")
_DSP = (*_MVE, "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m35p")


def _m_profile_features(config: Mapping[str, Any]) -> dict[str, Any]:
    cpu, attr = str(config.get("mcpu", "")), " ".join(config.get("mattr", ()))
    without: Callable[[str], bool] = lambda flag: flag in cpu or flag in attr
    dsp = cpu.startswith(_DSP) and not without("+nodsp")
    return {"has_dsp": dsp, "has_mve": dsp and cpu.startswith(_MVE) and not without("+nomve")}


def __getattr__(name: str) -> Any:
    """Upstream keeps the functions that make targets at this address too."""
    from . import factories

    if name.startswith("_") or not hasattr(factories, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(factories, name)
