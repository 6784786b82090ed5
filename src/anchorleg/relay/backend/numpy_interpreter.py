"""Evaluating a Relay function by the operators' numpy rules: the definition of what a program means, without a compiler.

The function must be typed.  Values are numpy arrays; tuples are Python tuples.  Everything runs on an explicit stack.
"""
from __future__ import annotations

from typing import Any, Generator, Mapping, Sequence

import numpy as np

from ...ir.expr import GlobalVar, RelayExpr
from ...ir.module import IRModule
from ...ir.op import Op
from ...ir.type import TensorType, TupleType
from ...runtime.dtype import dtype_name, numpy_dtype
from ...runtime.ndarray import NDArray
from ...support.errors import ArgumentError, UnsupportedOpError
from ..expr import Call, Constant, If, Let, Tuple, TupleGetItem, Var
from ..function import Function
from ..op.registry import attrs_of
from ..op.registry import evaluate as apply_operator

Env = dict[int, Any]
_Frame = Generator["tuple[RelayExpr, Env]", Any, Any]


class Closure:
    """A function together with the values of its free variables."""

    def __init__(self, function: Function, env: Env) -> None:
        self.function, self.env = function, env


def evaluate(func: Function | IRModule, args: Sequence[Any] | Mapping[str, Any] = (), mod: IRModule | None = None) -> Any:
    """The result of calling a typed function on numpy arrays.

    Parameters
    ----------
    func: a function, or a module whose ``main`` is called.
    args: the arguments in order, or by the names of the parameters.
    mod: the module that global names refer to.

    Returns
    -------
    A numpy array, or a tuple of them.
    """
    if isinstance(func, IRModule):
        mod, func = func, func["main"]
    values = _arguments(func, args)
    return _run(func.body, {id(p): v for p, v in zip(func.params, values)}, mod)


def _arguments(func: Function, args: Sequence[Any] | Mapping[str, Any]) -> list[Any]:
    if isinstance(args, Mapping):
        names = [p.name_hint for p in func.params]
        if set(names) != set(args):
            raise ArgumentError(f"the function's parameters are {', '.join(names)}; got {', '.join(args) or 'none'}")
        args = [args[n] for n in names]
    if len(args) != len(func.params):
        raise ArgumentError(f"{len(func.params)} arguments are expected, got {len(args)}")
    return [_as_value(a, p.type_annotation) for a, p in zip(args, func.params)]


def _as_value(value: Any, t: Any) -> Any:
    if isinstance(value, NDArray):
        value = value.as_numpy_view()
    if isinstance(t, TupleType):
        return tuple(_as_value(v, f) for v, f in zip(value, t.fields))
    return np.asarray(value, dtype=numpy_dtype(t.dtype) if isinstance(t, TensorType) else None)


def _run(body: RelayExpr, env: Env, mod: IRModule | None) -> Any:
    stack: list[_Frame] = [_frame(body, env, mod)]
    value: Any = None
    while stack:
        try:
            inner = stack[-1].send(value)
        except StopIteration as done:
            stack.pop()
            value = done.value
            continue
        stack.append(_frame(*inner, mod))
        value = None
    return value


def _frame(root: RelayExpr, env: Env, mod: IRModule | None) -> _Frame:
    """Evaluates one body; yields (body, environment) for each call of a function it needs the value of."""
    uses = _uses(root)
    stack: list[tuple[Any, int]] = [(root, 0)]
    while stack:
        node, stage = stack.pop()
        if id(node) in env:
            continue
        if isinstance(node, Let):
            if stage == 0:
                stack += [(node, 1), (node.value, 0)]
            elif stage == 1:
                env[id(node.var)] = env[id(node.value)]
                stack += [(node, 2), (node.body, 0)]
            else:
                env[id(node)] = env[id(node.body)]
        elif isinstance(node, If):
            if stage == 0:
                stack += [(node, 1), (node.cond, 0)]
            elif stage == 1:
                stack += [(node, 2), (_taken(node, env), 0)]
            else:
                env[id(node)] = env[id(_taken(node, env))]
        elif stage == 0:
            stack.append((node, 1))
            stack.extend((c, 0) for c in reversed(_parts(node)) if id(c) not in env)
        else:
            value = _value(node, env, mod)
            if isinstance(value, tuple) and value and value[0] is _CALL:
                value = yield value[1]
            env[id(node)] = value
            _forget(node, env, uses)
    return env[id(root)]


_CALL = object()


def _taken(node: If, env: Env) -> RelayExpr:
    return node.true_branch if bool(env[id(node.cond)]) else node.false_branch


def _parts(node: Any) -> list[Any]:
    if isinstance(node, Call):
        return [*([] if isinstance(node.op, (Op, GlobalVar)) else [node.op]), *node.args]
    if isinstance(node, Tuple):
        return list(node.fields)
    return [node.tuple_value] if isinstance(node, TupleGetItem) else []


def _value(node: Any, env: Env, mod: IRModule | None) -> Any:
    if isinstance(node, Call):
        return _call(node, [env[id(a)] for a in node.args], env, mod)
    if isinstance(node, Constant):
        return node.data.as_numpy_view()
    if isinstance(node, Tuple):
        return tuple(env[id(f)] for f in node.fields)
    if isinstance(node, TupleGetItem):
        return env[id(node.tuple_value)][node.index]
    if isinstance(node, Function):
        return Closure(node, env)
    if isinstance(node, Var):
        raise ArgumentError(f"the variable %{node.name_hint} is not bound")
    raise UnsupportedOpError(f"{type(node).__name__} cannot be evaluated by numpy rules")


def _call(node: Call, args: list[Any], env: Env, mod: IRModule | None) -> Any:
    if isinstance(node.op, Op):
        return apply_operator(node.op, node.attrs, args, _result_type(node, args))
    if isinstance(node.op, GlobalVar):
        if mod is None:
            raise ArgumentError(f"@{node.op.name_hint} is called, but no module is given")
        closure = Closure(mod[node.op], {})
    else:
        closure = env[id(node.op)]
    inner = {**closure.env, **{id(p): a for p, a in zip(closure.function.params, args)}} if closure.env else {
        id(p): a for p, a in zip(closure.function.params, args)}
    return _CALL, (closure.function.body, inner)


def _result_type(node: Call, args: list[Any]) -> Any:
    """The type of a call; sizes not known in the program are worked out from the arguments' own."""
    found = node.checked_type
    if _is_static(found):
        return found
    given = tuple(map(_type_of, args))
    return node.op.relation(given, attrs_of(node.op, node.attrs), _Values()) or found  # type: ignore[attr-defined]


def _is_static(t: Any) -> bool:
    return all(map(_is_static, t.fields)) if isinstance(t, TupleType) else not isinstance(t, TensorType) or t.is_static


def _type_of(value: Any) -> Any:
    return TupleType(list(map(_type_of, value))) if isinstance(value, tuple) else TensorType(value.shape, dtype_name(value.dtype))


class _Values:
    """The context of a type relation at evaluation: all argument types are known and were checked before."""

    def unify(self, a: Any, b: Any) -> Any:
        """The first type."""
        return a


def _uses(root: RelayExpr) -> dict[int, int]:
    """How often each expression of a body without bindings, branches and closures is read; empty for other bodies."""
    counts: dict[int, int] = {id(root): 1}
    seen, stack = {id(root)}, [root]
    while stack:
        node = stack.pop()
        if isinstance(node, (Let, If, Function)):
            return {}
        for part in _parts(node):
            counts[id(part)] = counts.get(id(part), 0) + 1
            if id(part) not in seen:
                seen.add(id(part))
                stack.append(part)
    return counts


def _forget(node: Any, env: Env, uses: dict[int, int]) -> None:
    """Drops values that nothing reads any more (those of calls; arguments and constants stay)."""
    if not uses:
        return
    for part in _parts(node):
        uses[id(part)] -= 1
        if uses[id(part)] == 0 and not isinstance(part, Var):
            env.pop(id(part), None)
