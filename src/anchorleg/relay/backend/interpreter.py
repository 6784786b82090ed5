"""The interpreter: evaluates any Relay program, and the base class of all executors of ``relay.create_executor``."""
from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence

import numpy as np

from ...ir.expr import GlobalVar, RelayExpr
from ...ir.module import IRModule
from ...runtime import container, ndarray
from ...support.errors import ArgumentError
from ..analysis.variables import free_vars
from ..expr import Call, Constant, Let, Tuple, Var
from ..function import Function
from ..transform.target_hooks import has_external
from .evaluator import Closure, ConstructorValue, Evaluator, RefValue
from .operator_runner import JitRunner, NumpyRunner


class Executor:
    """Base of the executors: turns what a user gives into arguments, and expressions into callables."""

    mod: IRModule | None = None

    def _convert_args(self, expr: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """Positional arguments first, then keywords for the parameters that remain."""
        if expr is None:
            expr = self._module()["main"]
        if not kwargs:
            return tuple(args)
        if not isinstance(expr, Function):
            raise ArgumentError(f"can only supply keyword parameters for a relay.Function, found {type(expr).__name__}")
        names = [p.name_hint for p in expr.params]
        unknown = [k for k in kwargs if k not in names]
        if unknown:
            raise ArgumentError(f"unknown keyword argument{'s' if len(unknown) > 1 else ''} {', '.join(unknown)}; the parameters are: {', '.join(names)}")
        values = list(args)
        for i, name in enumerate(names):
            if i < len(args) and name in kwargs:
                raise ArgumentError(f"duplicate argument supplied in both positional args (at position: {i}), and keyword argument (with name: {name})")
            if i >= len(args) and name in kwargs:
                values.append(kwargs[name])
        if len(values) != len(names):
            raise ArgumentError(f"insufficient arguments, expected {len(names)}, provided {len(values)}")
        return tuple(values)

    def _module(self) -> IRModule:
        if self.mod is None:
            raise ArgumentError("this executor has no module: pass mod=... to create_executor")
        return self.mod

    def _make_executor(self, expr: RelayExpr | None = None) -> Callable[..., Any]:
        """A Python callable that runs ``expr`` (a function or global name; None: the module's ``main``)."""
        raise NotImplementedError

    def evaluate(self, expr: RelayExpr | None = None, binds: Mapping[Var, RelayExpr] | None = None) -> Any:
        """A callable for a function, a global name, or None (``main``); the value of any other expression.

        ``binds`` gives variables values: they become ``let``s around the expression.
        """
        if binds:
            if expr is None:
                raise ArgumentError("evaluate: binds need an expression to bind in")
            for var, value in reversed(list(binds.items())):
                expr = Let(var, as_expr(value), expr)
        if expr is None:
            return self._make_executor()
        if isinstance(expr, Function):
            unbound = free_vars(expr)
            if unbound:
                raise ArgumentError(f"the function has free variables: {', '.join(v.name_hint for v in unbound)}")
        if isinstance(expr, (Function, GlobalVar)):
            return self._make_executor(expr)
        return self._make_executor(Function([], expr))()


def as_expr(value: Any) -> RelayExpr:
    """A value as an expression: arrays and numbers as constants, tuples field by field."""
    if isinstance(value, RelayExpr):
        return value
    if isinstance(value, (tuple, list, container.ADT)):
        return Tuple([as_expr(v) for v in value])
    return Constant(value if isinstance(value, ndarray.NDArray) else ndarray.array(np.asarray(to_value(value))))


class Interpreter(Executor):
    """Evaluates all of Relay: closures, recursion, data types, references, higher-order functions.

    Parameters
    ----------
    mod: the module whose functions and types programs may use.
    device, target: where operators run; target ``"numpy"`` applies the operators' numpy rules and compiles nothing.
    """

    def __init__(self, mod: IRModule | None, device: Any, target: Any) -> None:
        from ...target.target import Target

        self.mod, self.device = mod, device
        ordinary, self._external_targets = ([target], []) if target == "numpy" else Target.split_external(Target.canon_multi_target(target))
        self.target = ordinary[0]
        self._runner = NumpyRunner() if self.target == "numpy" else JitRunner(self.target)
        self._prepared: tuple[tuple[Any, ...], IRModule] | None = None

    def optimize(self) -> IRModule:
        """The module ready for evaluation: typed, normalisations simplified.  Done once until the module changes."""
        mod = self._module()
        state = (mod, *mod.functions.values(), len(mod.type_definitions))
        if self._prepared is None or len(self._prepared[0]) != len(state) or any(a is not b for a, b in zip(self._prepared[0][:-1], state[:-1])):
            self._prepared = (state, _prepare(mod))
        return self._prepared[1]

    def _make_executor(self, expr: RelayExpr | None = None) -> Callable[..., Any]:
        if expr is None or isinstance(expr, GlobalVar):
            mod, name = self.optimize(), "main" if expr is None else expr.name_hint
        else:
            mod, name = self._prepared_function(expr), _NAME
        evaluator = self._evaluator(mod)
        func = evaluator.mod[name]

        def run(*args: Any, **kwargs: Any) -> Any:
            values = [to_value(a) for a in self._convert_args(func, args, kwargs)]
            if len(values) != len(func.params):
                raise ArgumentError(f"the function takes {len(func.params)} arguments "
                                    f"({', '.join(p.name_hint for p in func.params)}), got {len(values)}")
            return from_value(evaluator.call(func, values))

        return run

    def _evaluator(self, mod: IRModule) -> Evaluator:
        """The evaluator of a prepared module; functions of external compilers are theirs, but by the numpy rules they mean what their bodies say."""
        if self.target == "numpy" or not has_external(mod):
            return Evaluator(mod, self._runner)
        from .external import compile_external, external_callables

        compiled, code = compile_external(mod, self._external_targets)
        return Evaluator(compiled, self._runner, external_callables(compiled, code, self.target))

    def _prepared_function(self, expr: RelayExpr) -> IRModule:
        """An expression prepared inside a copy of the module."""
        mod = (self.mod or IRModule()).copy()
        mod[_NAME] = expr  # type: ignore[assignment]
        return _prepare(mod)


_NAME = "__interpreted__"


def _prepare(mod: IRModule) -> IRModule:
    from ...ir.transform import get_pass
    from ..transform import load_all

    load_all()
    return get_pass("InferType")(get_pass("SimplifyInference")(mod))


def to_value(arg: Any) -> Any:
    """An argument as the evaluator's value: NDArrays, numpy arrays, Python scalars, tuples, ADTs, Relay constants."""
    if isinstance(arg, ndarray.NDArray):
        return arg.numpy()
    if isinstance(arg, Constant):
        return arg.data.numpy()
    if isinstance(arg, Tuple):
        return tuple(to_value(f) for f in arg.fields)
    if isinstance(arg, Call) and hasattr(arg.op, "tag"):
        return ConstructorValue(arg.op.tag, [to_value(a) for a in arg.args], arg.op)  # type: ignore[arg-type]
    if isinstance(arg, container.ADT):
        return tuple(to_value(f) for f in arg)
    if isinstance(arg, (tuple, list)):
        return tuple(to_value(f) for f in arg)
    if isinstance(arg, (bool, int, float)):
        return _scalar(arg)
    if isinstance(arg, (np.ndarray, np.generic, RefValue, ConstructorValue, Closure)):
        return np.asarray(arg) if isinstance(arg, np.generic) else arg
    raise ArgumentError(f"an argument is expected to be a tensor, a number, a tuple or a Relay value, got {type(arg).__name__}")


def _scalar(value: Any) -> np.ndarray:
    if isinstance(value, bool):
        return np.asarray(value)
    return np.asarray(value, "int32" if isinstance(value, int) and -(2**31) <= value < 2**31 else "int64" if isinstance(value, int) else "float32")


def from_value(value: Any) -> Any:
    """The evaluator's value as users get it: tensors as NDArrays, tuples as ADTs of tag 0, the rest as it is."""
    if isinstance(value, (np.ndarray, np.generic)):
        return ndarray.array(np.asarray(value))
    if isinstance(value, tuple):
        return container.tuple_object([from_value(v) for v in value])
    if isinstance(value, ConstructorValue):
        return ConstructorValue(value.tag, [from_value(f) for f in value.fields], value.constructor)
    if isinstance(value, RefValue):
        return RefValue(from_value(value.value))
    if isinstance(value, Closure):
        return lambda *args: from_value(value(*[to_value(a) for a in args]))
    return value


__all__ = ["Executor", "Interpreter", "ConstructorValue", "RefValue", "Closure"]
