"""The options of an ahead-of-time build, checked at once and together."""
from __future__ import annotations

from typing import Any, NamedTuple

from ....ir.transform import PassContext
from ....support.errors import ArgumentError
from ..memory import ALGORITHMS
from .plan import custom_algorithm


DEFAULT_ALIGNMENT, LEAST_ALIGNMENT, MOST_ALIGNMENT = 16, 8, 1 << 16


class AotOptions(NamedTuple):
    """What an ahead-of-time build was asked for."""

    runtime: str
    interface: str
    unpacked: bool
    link_params: bool
    workspace_alignment: int
    constant_alignment: int
    algorithm: str
    workspace_io: bool = False
    custom_algorithm: str | None = None

    @property
    def is_c_interface(self) -> bool:
        """Whether the entry takes structures of pointers (else packed arguments)."""
        return self.interface == "c"


def check_options(executor: Any, runtime: Any, target: Any) -> AotOptions:
    """The options of an Executor("aot") and a Runtime; ArgumentError for what does not go together."""
    if target.kind.name not in ("c", "llvm"):
        raise ArgumentError(f"the ahead-of-time executor builds for the targets c and llvm, got {target}")
    interface = executor.get("interface-api", "packed")
    unpacked = bool(executor.get("unpacked-api", False))
    if interface not in ("c", "packed"):
        raise ArgumentError(f'interface-api is expected to be "c" or "packed", got "{interface}"')
    _check_pair(runtime.name, interface, unpacked)
    workspace_io = bool(PassContext.current().get("tir.usmp.use_workspace_io", False))
    if workspace_io:
        _check_workspace_io(interface, target)
    alignment = _alignment("workspace-byte-alignment", executor.get("workspace-byte-alignment"), target.attrs.get("workspace-byte-alignment"))
    constants = _alignment("constant-byte-alignment", target.attrs.get("constants-byte-alignment"), executor.get("constant-byte-alignment"))
    algorithm, custom = _algorithms()
    return AotOptions(runtime.name, interface, unpacked, bool(executor.get("link-params", True)), alignment,
                      constants, algorithm, workspace_io, custom)


def _algorithms() -> tuple[str, str | None]:
    """The planning algorithm, and the name of a user's own if there is one."""
    algorithm, custom = (PassContext.current().get(f"tir.usmp.{n}") for n in ("algorithm", "custom_algorithm"))
    if algorithm is not None and algorithm not in ALGORITHMS:
        raise ArgumentError(f"memory planning algorithm {algorithm!r} is not known; available: {', '.join(ALGORITHMS)}")
    if custom is not None:
        custom_algorithm(custom)
    return algorithm or "hill_climb", custom


def _check_workspace_io(interface: str, target: Any) -> None:
    if interface != "c":
        raise ArgumentError("tir.usmp.use_workspace_io option is only compatible with interface_api c.\n"
                            "Please use interface_api c to be able to enable tir.usmp.use_workspace_io")
    if target.kind.name != "c":
        raise ArgumentError(f"tir.usmp.use_workspace_io needs the target c, got {target.kind.name}: an object file has no functions that say where "
                            "the inputs and results lie")


def _check_pair(runtime: str, interface: str, unpacked: bool) -> None:
    if runtime == "crt" and interface == "c" and not unpacked:
        raise ArgumentError('Either need interface_api == "packed" (got: c) or unpacked-api == true (got: 0) when targeting c runtime: '
                            'set Executor("aot", {"interface-api": "c", "unpacked-api": True})')
    if runtime == "cpp" and (interface == "c" or unpacked):
        raise ArgumentError(f'Need unpacked-api == false (got: {int(unpacked)}) and interface-api == "packed" (got: {interface}) when targeting '
                            'c++ runtime: leave both options out, or build with Runtime("crt")')


def _alignment(what: str, *given: Any) -> int:
    """The first alignment given; never less than the widest element needs."""
    number = next((int(v) for v in given if v is not None), DEFAULT_ALIGNMENT)
    if number < 1 or number & (number - 1) or number > MOST_ALIGNMENT:
        raise ArgumentError(f"{what} is expected to be a power of two up to {MOST_ALIGNMENT}, got {number}")
    return max(number, LEAST_ALIGNMENT)
