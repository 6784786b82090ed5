"""``UMABackend``: an accelerator as one class."""
from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Callable, Mapping

from .....ir.module import IRModule
from .....ir.transform import ModulePass, Pass, PassInfo
from .....support.errors import ArgumentError
from .....target.kinds import BOOL, INT, KINDS, STR, register_kind
from ....dataflow_pattern import DFPattern
from .api import PassPhase, UMACodegen, UMALower, UMAPartitioner
from .api.utils import RELAY_PHASES, TIR_PHASES


class UMABackend(ABC):
    """Base of backends: a subclass names its target and registers its parts in ``__init__``.

    ::

        class Npu(UMABackend):
            def __init__(self):
                super().__init__()
                self._register_target_attr("cores", default=1)
                self._register_pattern("conv2d", is_op("nn.conv2d")(wildcard(), wildcard()))
                self._register_tir_pass(PassPhase.TIR_PHASE_0, CallTheNpu())
                self._register_codegen(fmt="c", includes=lambda: '#include "npu.h"')

            @property
            def target_name(self):
                return "npu"

        npu = Npu()
        npu.register()
        lib = relay.build(npu.partition(mod, params), target=["llvm", "npu -cores=4"])

    Parameters
    ----------
    merge_compiler_regions: whether parts that feed one another become one.
    """

    def __init__(self, merge_compiler_regions: bool = True) -> None:
        self._target_attrs: dict[str, Any] = {}
        self._relay_to_relay = UMAPartitioner(self.target_name, merge_compiler_regions)
        self._relay_to_tir = UMALower(self.target_name)
        self._tir_to_runtime = UMACodegen(self.target_name)

    @property
    @abstractmethod
    def target_name(self) -> str:
        """The name of the target kind and of the compiler."""

    # -- what a subclass registers

    def _register_target_attr(self, name: str, default: str | int | bool | None = "") -> None:
        """An option of the target; its type is that of the default."""
        self._target_attrs[name] = default

    def _register_relay_pass(self, phase: PassPhase, relay_pass: Pass) -> None:
        """A pass before or after the program is cut; passes of a phase run in the order they were registered."""
        self._relay_to_relay._relay_passes.append((_in(phase, RELAY_PHASES), relay_pass))

    def _register_pattern(self, name: str, pattern: DFPattern, predicate: Callable[[Any], bool] | None = None) -> None:
        """Something the backend takes; patterns are tried in the order they were registered."""
        self._relay_to_relay.add_pattern(name, pattern, predicate)

    def _register_operator_strategy(self, op: str, strategy: Callable[..., Any], plevel: int = 11) -> None:
        """How an operator is computed in the backend's functions: ``(attrs, inputs, out_type, target) -> OpStrategy``."""
        self._relay_to_tir._operator_strategies.append((op, strategy, plevel))

    def _register_tir_pass(self, phase: PassPhase, tir_pass: Any) -> None:
        """A pass over the backend's loop programs."""
        self._relay_to_tir._tir_passes.append((_in(phase, TIR_PHASES), tir_pass))

    def _register_codegen(self, fmt: str = "c", **kwargs: Any) -> None:
        """C code for the loop programs, see :class:`UMACodegen`; without it they are compiled like any other."""
        self._tir_to_runtime._register_codegen(fmt, **kwargs)

    # -- what a user calls

    def register(self) -> None:
        """Makes the target kind, the patterns and the code generator known; done once."""
        wrong = [n for n, default in self._target_attrs.items() if default is None]
        if wrong:
            raise ArgumentError(f"Target attribute None is not supported: give {', '.join(wrong)} a default")
        if self.target_name in KINDS:
            return
        types = {n: BOOL if isinstance(d, bool) else INT if isinstance(d, int) else STR for n, d in self._target_attrs.items()}
        hook = ModulePass(lambda mod, ctx: self._relay_to_tir.relay_to_tir(mod), PassInfo(0, f"{self.target_name}.RelayToTIR", ["InferType"]))
        more = {"TIRToRuntime": self._tir_to_runtime.tir_to_runtime} if self._tir_to_runtime.registered else {}
        register_kind(self.target_name, 1, options=types, defaults=self._target_attrs, attributes={"is_external_codegen": True, "RelayToTIR": hook, **more})
        self._relay_to_relay.register()

    def partition(self, mod: IRModule, params: Mapping[str, Any] | None = None) -> IRModule:
        """The module with the parts that the backend takes as functions of their own, after its Relay passes."""
        return self._relay_to_relay.partition(mod, params)


def _in(phase: PassPhase, phases: tuple[PassPhase, ...]) -> PassPhase:
    if phase not in phases:
        raise ArgumentError(f"the phase is expected to be one of {', '.join(p.name for p in phases)}, got {getattr(phase, 'name', phase)!r}")
    return phase
