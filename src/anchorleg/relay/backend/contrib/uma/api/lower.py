"""From a backend's Relay functions to loop programs."""
from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import Any, Callable, Iterator

from ......driver.build_module import lower
from ......ir.module import IRModule
from ......ir.op import Op
from ......ir.transform import PassContext
from ......support.errors import UnsupportedOpError
from ......target.target import Target
from ......te.lower.prim_func import create_prim_func
from .....function import Function
from .....transform.compiler_functions import OutlineCompilerFunctionsWithExistingGlobalSymbols, without_composites
from .....transform.infer_type import InferType, infer_type
from .... import te_lowering
from ....te_compiler import lower_call
from .utils import TIR_PHASES, PassPhase

STRATEGY = "FTVMStrategy"


class UMALower:
    """Operator strategies and loop program passes of a backend.

    Strategies hold for the backend's functions only, whatever other targets use.
    """

    def __init__(self, target_name: str) -> None:
        self.target_name = target_name
        self._operator_strategies: list[tuple[str, Callable[..., Any], int]] = []
        self._tir_passes: list[tuple[PassPhase, Any]] = []

    def relay_to_tir(self, mod: IRModule) -> IRModule:
        """The module with the backend's functions as loop programs of its target."""
        mod = InferType()(OutlineCompilerFunctionsWithExistingGlobalSymbols(self.target_name)(mod))
        functions: dict[Any, Any] = {}
        for var, func in mod.functions.items():
            if isinstance(func, Function) and func.get_attr("Compiler") == self.target_name:
                var._checked_type = func.checked_type
                func = self._lower_stir_to_nstir(self._lower_relay_to_tir(func))
            functions[var] = func
        return mod.with_functions(functions)

    def _lower_relay_to_tir(self, relay_prim_func: Function) -> Any:
        """A Relay function as a loop program over arrays of several dimensions, under the default schedule."""
        flat = infer_type(relay_prim_func.replace(body=without_composites(relay_prim_func.body)))
        target = self._target()
        with self._strategies(), target:
            tensors = te_lowering.to_tensors(flat, target, _select)  # type: ignore[arg-type]
        symbol = str(relay_prim_func.get_attr("global_symbol"))
        if tensors.constants:
            raise UnsupportedOpError(f"the function {symbol} for {self.target_name!r} holds constants: cut it out with PartitionGraph(bind_constants=False), "
                                     "and take constants by wildcard() in patterns")
        program = create_prim_func([*tensors.inputs, *tensors.outputs])
        return program.with_attr({"global_symbol": symbol, "target": target, "relay_attrs": relay_prim_func.attrs})

    def _lower_stir_to_nstir(self, prim_func: Any) -> Any:
        """A loop program after the usual lowering, with the backend's passes in between."""
        context, name = PassContext.current(), str(prim_func.get_attr("global_symbol"))
        added = [*context.config.get("tir.add_lower_pass", ()), *((TIR_PHASES.index(p), each) for p, each in self._tir_passes)]
        config = {**context.config, "tir.add_lower_pass": added}
        with PassContext(context.opt_level, context.required_pass, context.disabled_pass, context.instruments, config), Target("c"):
            return lower(prim_func, name=name)[name]

    def _target(self) -> Target:
        current = Target.current()
        return current if current is not None and current.kind.name == self.target_name else Target(self.target_name)

    @contextmanager
    def _strategies(self) -> Iterator[None]:
        """The backend's strategies, for a while."""
        best: dict[str, tuple[Callable[..., Any], int]] = {}
        for name, strategy, level in self._operator_strategies:
            if name not in best or level >= best[name][1]:
                best[name] = strategy, level
        with ExitStack() as stack:
            for name, (strategy, _) in best.items():
                stack.enter_context(_instead(Op.get(name), strategy))
            yield


@contextmanager
def _instead(op: Op, strategy: Callable[..., Any]) -> Iterator[None]:
    """Another strategy for an operator, for a while."""
    from .....op.strategy import load_all

    load_all()
    had, before = op.has_attr(STRATEGY), op.get_attr(STRATEGY)
    op.reset_attr(STRATEGY)
    op.set_attr(STRATEGY, strategy)
    try:
        yield
    finally:
        op.reset_attr(STRATEGY)
        if had:
            op.set_attr(STRATEGY, before)


def _select(call: Any, inputs: list[Any], target: Any, otype: Any) -> tuple[Any, list[Any]]:
    lowered = lower_call(call, inputs, target, otype)
    return lowered.implement, lowered.outputs
