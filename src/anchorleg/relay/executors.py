"""``relay.create_executor``: one way to run a program, whichever executor does it."""
from __future__ import annotations

from typing import Any, Callable, Mapping

import numpy as np

from ..ir.expr import GlobalVar, RelayExpr
from ..ir.module import IRModule
from ..ir.transform import get_pass
from ..ir.type import TensorType, TupleType, Type
from ..runtime.dtype import numpy_dtype
from ..support.errors import ArgumentError, TypeMismatchError
from .backend.interpreter import Executor, Interpreter
from .build_module import build
from .transform.bind import bind_params_by_name


class StaticExecutor(Executor):
    """Runs programs of static shape: compiled whole, inputs set by number, outputs read back in order."""

    name = ""

    def __init__(self, mod: IRModule, device: Any, target: Any) -> None:
        self.mod, self.device, self.target = mod, device, target

    def _runner(self, mod: IRModule) -> Any:
        """The module built: an object with ``set_input``, ``run``, ``get_output`` and ``get_num_outputs``."""
        raise NotImplementedError

    def _make_executor(self, expr: RelayExpr | None = None) -> Callable[..., Any]:
        from .transform.fuse_ops import is_static

        mod = self._module().copy()
        if expr is not None:
            mod["main"] = mod[expr.name_hint] if isinstance(expr, GlobalVar) else expr  # type: ignore[assignment]
        mod = get_pass("InferType")(mod)
        main = mod["main"]
        ret_type = main.checked_type.ret_type
        if not is_static(ret_type):
            raise TypeMismatchError(f"{self.name} Executor only supports static graphs, got output type {ret_type}; "
                                    "use kind='vm' (or 'debug') for dynamic shapes")
        runner = self._runner(mod)

        def run(*args: Any, **kwargs: Any) -> Any:
            for i, (arg, param) in enumerate(zip(self._convert_args(main, args, kwargs), main.params)):
                runner.set_input(i, fitting(arg, param.checked_type))
            runner.run()
            outputs = iter([runner.get_output(i).copyto(self.device) for i in range(runner.get_num_outputs())])
            return nest(outputs, ret_type)

        return run


class GraphExecutor(StaticExecutor):
    """Runs programs of static shape by the graph executor."""

    name = "Graph"

    def _runner(self, mod: IRModule) -> Any:
        from ..runtime.graph_executor import GraphModule

        return GraphModule(build(mod, target=self.target)["default"](self.device))


class AotExecutor(StaticExecutor):
    """Runs programs of static shape compiled ahead of time: by LLVM, or for the target ``c`` by the machine's C compiler."""

    name = "AOT"

    def _runner(self, mod: IRModule) -> Any:
        from ..runtime.aot_executor import AotModule
        from .backend.executor import Executor as ExecutorConfig

        return AotModule(build(mod, target=self.target, executor=ExecutorConfig("aot"))["default"](self.device))


def fitting(arg: Any, ty: Type) -> Any:
    """A numpy array or number as an array of the parameter's data type, as upstream's executors convert it."""
    if isinstance(arg, (np.ndarray, np.generic, bool, int, float, list)) and isinstance(ty, TensorType):
        return np.asarray(arg).astype(numpy_dtype(ty.dtype), copy=False)
    return arg


def nest(flat: Any, ty: Type) -> Any:
    """Results in the nested form of their type (lists for tuples)."""
    return [nest(flat, f) for f in ty.fields] if isinstance(ty, TupleType) else next(flat)


def _vm_executor(mod: IRModule, device: Any, target: Any) -> Executor:
    from .backend.vm import VMExecutor  # loaded only for those who use it

    return VMExecutor(mod, device, target)


_KINDS: dict[str, Callable[[IRModule, Any, Any], Executor]] = {"debug": Interpreter, "graph": GraphExecutor, "aot": AotExecutor, "vm": _vm_executor}


def register_executor_kind(kind: str, maker: Callable[[IRModule, Any, Any], Executor]) -> None:
    """Makes ``create_executor(kind)`` available."""
    _KINDS[kind] = maker


def create_executor(kind: str = "debug", mod: IRModule | None = None, device: Any = None, target: Any = "llvm",
                    params: Mapping[str, Any] | None = None) -> Executor:
    """An executor for programs.

    Parameters
    ----------
    kind: ``debug`` (the interpreter: everything, slowly), ``graph`` (static shapes, fast), ``aot`` (static shapes, compiled whole), ``vm`` (everything but references, fast).
    mod: the module whose functions can be used (default: an empty one).
    device: where to run; default: the target's.
    target: what to compile for.
    params: values for ``main``'s parameters, bound once.

    ``executor.evaluate(expr)(*args)`` runs a function; see ``Executor.evaluate``.
    """
    from ..runtime.device import device as make_device
    from ..target.target import Target

    if kind not in _KINDS:
        raise ArgumentError(f"unknown execution strategy: {kind}; available: {', '.join(_KINDS)}")
    mod = mod if mod is not None else IRModule()
    if params:
        mod = mod.copy()
        mod["main"] = bind_params_by_name(mod["main"], params)
    if device is None:
        first = Target.canon_multi_target(target)[0] if target != "numpy" else None
        device = make_device(first.kind.name if first is not None else "cpu", 0)
    return _KINDS[kind](mod, device, target)
