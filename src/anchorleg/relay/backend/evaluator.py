"""The evaluator of Relay: what every program means, step by step.

It runs on a stack of its own, so that recursion and nesting of any depth work, and computes an expression that is used
several times once per activation.  Operators are applied through a function given by the caller: the operators' numpy
rules (the oracle), or kernels compiled one operator at a time.
"""
from __future__ import annotations

from types import GeneratorType
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from ...ir.expr import GlobalVar, RelayExpr
from ...ir.module import IRModule
from ...ir.op import Op
from ...runtime.container import RefValue
from ...support.errors import ArgumentError, BuildError
from ..adt import Constructor, Match, PatternConstructor, PatternTuple, PatternVar, PatternWildcard
from ..analysis.variables import free_vars
from ..expr import Call, Constant, If, Let, RefCreate, RefRead, RefWrite, Tuple, TupleGetItem, Var
from ..function import Function
from .value_types import check_sizes

Apply = Callable[[Call, "list[Any]"], Any]


class ConstructorValue:
    """A value of an algebraic data type: constructor ``tag``, its ``fields``, and the constructor itself."""

    __slots__ = ("tag", "fields", "constructor")

    def __init__(self, tag: int, fields: Sequence[Any], constructor: Constructor | None = None) -> None:
        self.tag, self.fields, self.constructor = tag, list(fields), constructor

    def __repr__(self) -> str:
        name = self.constructor.name_hint if self.constructor is not None else str(self.tag)
        return f"{name}({', '.join(map(repr, self.fields))})"


class Closure:
    """A function with the values of its free variables; calling it evaluates it."""

    __slots__ = ("func", "env", "evaluator")

    def __init__(self, func: Function, env: dict[int, Any], evaluator: Evaluator) -> None:
        self.func, self.env, self.evaluator = func, env, evaluator

    def __call__(self, *args: Any) -> Any:
        return self.evaluator.call(self, list(args))


class HostFunction:
    """A function that is compiled elsewhere: ``run`` maps the list of argument values to the result."""

    __slots__ = ("name", "run")

    def __init__(self, name: str, run: Callable[[list[Any]], Any]) -> None:
        self.name, self.run = name, run

    def __call__(self, *args: Any) -> Any:
        return self.run(list(args))


class _Frame:
    """One activation: values of variables and of the expressions computed so far."""

    __slots__ = ("env", "memo")

    def __init__(self, env: dict[int, Any]) -> None:
        self.env = env
        self.memo: dict[int, Any] = {}


class Evaluator:
    """Evaluates expressions of a typed module.

    Tensors are numpy arrays, tuples Python tuples, data types ``ConstructorValue``, references ``RefValue``, functions
    ``Closure`` (or the Op or Constructor itself).  ``apply(call, args)`` computes operator calls; ``external`` are the functions of
    the module that are compiled elsewhere, by name.
    """

    def __init__(self, mod: IRModule, apply: Apply, external: Mapping[str, Callable[[list[Any]], Any]] | None = None) -> None:
        self.mod, self.apply, self.external = mod, apply, dict(external or {})
        self._free: dict[int, tuple[Function, list[Var]]] = {}

    def evaluate(self, expr: RelayExpr, env: Mapping[Var, Any] | None = None) -> Any:
        """The value of ``expr`` with its free variables as in ``env``."""
        return self._run(expr, _Frame({id(v): x for v, x in (env or {}).items()}))

    def call(self, callee: Any, args: list[Any]) -> Any:
        """The result of applying a closure (or function) to values."""
        closure = callee if isinstance(callee, Closure) else Closure(callee, {}, self)
        return check_sizes(self._run(closure.func.body, self._enter(closure, args)), closure.func.ret_type, "the result of a function")

    def _enter(self, closure: Closure, args: list[Any]) -> _Frame:
        params = closure.func.params
        if len(params) != len(args):
            raise ArgumentError(f"a function of {len(params)} parameters is called with {len(args)} arguments")
        env = dict(closure.env)
        env.update((id(p), check_sizes(a, p.type_annotation, f"argument {p.name_hint!r}")) for p, a in zip(params, args))
        return _Frame(env)

    def _run(self, expr: RelayExpr, frame: _Frame) -> Any:
        stack: list[tuple[Any, _Frame, Any]] = []
        node, where, value = expr, frame, None
        while True:
            if node is not None:
                if id(node) in where.memo:
                    value = where.memo[id(node)]
                else:
                    result = _HANDLERS[_kind(node)](self, node, where)
                    if isinstance(result, GeneratorType):
                        stack.append((node, where, result))
                        value = None
                    else:
                        value = where.memo[id(node)] = result
            if not stack:
                return value
            owner, owner_frame, gen = stack[-1]
            try:
                node, where = gen.send(value)
            except StopIteration as stop:
                stack.pop()
                value = owner_frame.memo[id(owner)] = stop.value
                node = None

    def _free_vars(self, func: Function) -> list[Var]:
        found = self._free.get(id(func))
        if found is None:
            found = self._free[id(func)] = (func, free_vars(func))
        return found[1]

    # One handler per kind of expression: a value, or a generator that yields (expression, frame) and is sent its value.

    def _var(self, node: Var, frame: _Frame) -> Any:
        if id(node) not in frame.env:
            raise ArgumentError(f"variable {node.name_hint!r} has no value: bind it, or make it a parameter")
        return frame.env[id(node)]

    def _constant(self, node: Constant, frame: _Frame) -> Any:
        return node.data.as_numpy_view()

    def _itself(self, node: Any, frame: _Frame) -> Any:
        return node

    def _global(self, node: GlobalVar, frame: _Frame) -> Any:
        if node.name_hint in self.external:
            return HostFunction(node.name_hint, self.external[node.name_hint])
        func = self.mod[node.name_hint]
        if not isinstance(func, Function):
            raise BuildError(f"@{node.name_hint} is not a Relay function and can't be interpreted")
        return Closure(func, {}, self)

    def _function(self, node: Function, frame: _Frame) -> Any:
        return Closure(node, {id(v): frame.env[id(v)] for v in self._free_vars(node) if id(v) in frame.env}, self)

    def _tuple(self, node: Tuple, frame: _Frame) -> Any:
        fields = []
        for field in node.fields:
            fields.append((yield field, frame))
        return tuple(fields)

    def _field(self, node: TupleGetItem, frame: _Frame) -> Any:
        value = yield node.tuple_value, frame
        return value[node.index]

    def _let(self, node: Let, frame: _Frame) -> Any:
        current: Any = node
        while isinstance(current, Let):
            value = yield current.value, frame
            if isinstance(value, Closure) and isinstance(current.value, Function):
                value.env[id(current.var)] = value  # a local function may call itself
            frame.env[id(current.var)] = value
            current = current.body
        return (yield current, frame)

    def _if(self, node: If, frame: _Frame) -> Any:
        cond = yield node.cond, frame
        return (yield (node.true_branch if bool(np.asarray(cond).reshape(())) else node.false_branch), frame)

    def _call(self, node: Call, frame: _Frame) -> Any:
        callee = node.op if isinstance(node.op, (Op, Constructor)) else (yield node.op, frame)
        args = []
        for arg in node.args:
            args.append((yield arg, frame))
        if isinstance(callee, Op):
            return self.apply(node if callee is node.op else node.replace(op=callee), args)
        if isinstance(callee, Constructor):
            return _constructed(callee, args)
        if isinstance(callee, HostFunction):
            return callee.run(args)
        if not isinstance(callee, Closure):
            raise ArgumentError(f"a {type(callee).__name__} can't be called")
        result = check_sizes((yield callee.func.body, self._enter(callee, args)), callee.func.ret_type, "the result of a function")
        return check_sizes(result, node._checked_type, "the result of a function")

    def _new_ref(self, node: RefCreate, frame: _Frame) -> Any:
        return RefValue((yield node.value, frame))

    def _read_ref(self, node: RefRead, frame: _Frame) -> Any:
        ref = yield node.ref, frame
        return check_sizes(ref.value, node._checked_type, "what a reference holds")

    def _write_ref(self, node: RefWrite, frame: _Frame) -> Any:
        ref = yield node.ref, frame
        ref.value = yield node.value, frame
        return ()

    def _match(self, node: Match, frame: _Frame) -> Any:
        value = yield node.data, frame
        for clause in node.clauses:
            bound = match_pattern(clause.lhs, value)
            if bound is not None:
                frame.env.update((id(v), check_sizes(x, v._checked_type, f"field {v.name_hint} of a value")) for v, x in bound)
                return (yield clause.rhs, frame)
        raise ArgumentError(f"no clause of the match fits the value {value!r}")


def _constructed(constructor: Constructor, args: list[Any]) -> ConstructorValue:
    """A value of a data type; the sizes that the constructor's parameters tell are checked."""
    for i, (a, t) in enumerate(zip(args, constructor.inputs)):
        check_sizes(a, t, f"argument {i} of {constructor.name_hint}")
    return ConstructorValue(constructor.tag, args, constructor)


def match_pattern(pattern: Any, value: Any) -> list[tuple[Var, Any]] | None:
    """The variables a pattern binds when it fits ``value``; None when it does not fit."""
    bound: list[tuple[Var, Any]] = []
    stack = [(pattern, value)]
    while stack:
        p, v = stack.pop()
        if isinstance(p, PatternVar):
            bound.append((p.var, v))
        elif isinstance(p, PatternConstructor):
            if not isinstance(v, ConstructorValue) or not _same_constructor(p.constructor, v):
                return None
            stack.extend(zip(p.patterns, v.fields))
        elif isinstance(p, PatternTuple):
            stack.extend(zip(p.patterns, v))
        elif not isinstance(p, PatternWildcard):
            raise BuildError(f"unknown pattern {type(p).__name__}")
    return bound


def _same_constructor(wanted: Constructor, value: ConstructorValue) -> bool:
    if value.constructor is None:
        return wanted.tag == value.tag
    return wanted is value.constructor or (wanted.name_hint == value.constructor.name_hint
                                           and wanted.belong_to.name_hint == value.constructor.belong_to.name_hint)


_HANDLERS: dict[type, Callable[..., Any]] = {
    Var: Evaluator._var, Constant: Evaluator._constant, Op: Evaluator._itself, Constructor: Evaluator._itself,
    GlobalVar: Evaluator._global, Function: Evaluator._function, Tuple: Evaluator._tuple, TupleGetItem: Evaluator._field,
    Let: Evaluator._let, If: Evaluator._if, Call: Evaluator._call, RefCreate: Evaluator._new_ref, RefRead: Evaluator._read_ref,
    RefWrite: Evaluator._write_ref, Match: Evaluator._match,
}


def _kind(node: Any) -> type:
    cls = type(node)
    if cls not in _HANDLERS:
        raise BuildError(f"a {cls.__name__} can't be evaluated")
    return cls
