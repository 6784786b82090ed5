"""Defunctionalization: a program without functions as values.

Every function that is a value becomes a constructor of a data type, one type for each type of function, whose fields are what the
function captures; calling a value becomes a call of that type's apply function, which matches the constructor and calls the function it
stands for.  Polymorphic functions are copied for the types they are used at.

before::

    def @twice[A](%f: fn (A) -> A, %x: A) -> A { %f(%f(%x)) }
    def @main(%a: float32, %x: float32) -> float32 { @twice(fn (%y: float32) -> float32 { add(%a, %y) }, %x) }

after::

    type Function { Of_main_fn(float32), }
    def @main_fn(%a: float32, %y: float32) -> float32 { add(%a, %y) }
    def @apply(%f: Function[], %x0: float32) -> float32 { match (%f) { Of_main_fn(%c0) => @main_fn(%c0, %x0), } }
    def @twice_1(%f: Function[], %x: float32) -> float32 { @apply(%f, @apply(%f, %x)) }
    def @main(%a: float32, %x: float32) -> float32 { @twice_1(Of_main_fn(%a), %x) }
"""
from __future__ import annotations

import itertools
from collections import deque
from typing import Any, Iterator, NamedTuple, Sequence

from ...ir.expr import GlobalVar, RelayExpr
from ...ir.module import IRModule
from ...ir.op import Op
from ...ir.structural import structural_hash
from ...ir.type import FuncType, GlobalTypeVar, IncompleteType, RefType, TupleType, Type, TypeCall, TypeVar
from ...ir.visit import Walker, post_order, rewrite
from ...support.errors import ArgumentError, UnsupportedOpError
from ...support.names import NameSupply
from ..adt import Clause, Constructor, Match, Pattern, PatternConstructor, PatternTuple, PatternVar, TypeData
from ..analysis.variables import free_vars_of_parts
from ..expr import Call, Let, Var
from ..function import Function
from .common import is_primitive
from .type_solver import substitute

MOST_COPIES = 128  # of one polymorphic function: more of them means that there is no end to them


class _Case(NamedTuple):
    """A function as a value: its constructor, and the global function that is called with the fields and the arguments."""

    constructor: Constructor
    target: GlobalVar


class _Kind:
    """What stands for all functions of one type."""

    def __init__(self, ty: FuncType, header: GlobalTypeVar, apply: GlobalVar) -> None:
        self.type, self.header, self.apply = ty, header, apply
        self.cases: list[_Case] = []
        self.of_global: dict[str, _Case] = {}


class _Task(NamedTuple):
    """A function to translate: as which global, with which values of type variables, capturing what, and the case that makes it again."""

    target: GlobalVar
    func: Function
    types: dict[TypeVar, Type]
    captured: tuple[Var, ...]
    own_name: Var | None
    case: _Case | None
    free_in: dict[int, tuple[Var, ...]]


def _holds_function(ty: Type) -> bool:
    return any(isinstance(t, FuncType) for t in post_order(ty))


def _is_function_like(expr: RelayExpr) -> bool:
    return isinstance(expr, GlobalVar) or isinstance(expr, Function) and not is_primitive(expr)


class _Program:
    """The program being made."""

    def __init__(self, mod: IRModule) -> None:
        self.mod = mod
        self.functions: dict[GlobalVar, Function] = {}
        self.kinds: dict[int, _Kind] = {}
        self.names = NameSupply(taken=[v.name_hint for v in mod.functions])
        self.type_names = NameSupply(taken=[v.name_hint for v in mod.type_definitions])
        self.constructor_names = NameSupply(taken=[c.name_hint for d in mod.type_definitions.values() for c in d.constructors])
        self.tasks: deque[_Task] = deque()
        self.instances: dict[tuple[str, tuple[int, ...]], GlobalVar] = {}
        self.copies: dict[str, int] = {}

    # -- types

    def translated(self, ty: Type) -> Type:
        """A type with data types in the place of functions."""
        return rewrite(ty, self._encoded, descend=lambda t: not isinstance(t, FuncType))  # type: ignore[return-value,arg-type]

    def _encoded(self, ty: Any) -> Type:
        return TypeCall(self.kind(ty).header, []) if isinstance(ty, FuncType) else ty

    def kind(self, ty: FuncType) -> _Kind:
        """What stands for functions of a type, in which no type may be open."""
        if ty.type_params or any(isinstance(t, (TypeVar, IncompleteType)) for t in post_order(ty)):
            raise UnsupportedOpError(f"a function of type {ty} is used as a value: give it one type, with nothing left open, "
                                     "or pass it straight to where its type is known")
        key = structural_hash(ty)
        if key not in self.kinds:
            self.kinds[key] = _Kind(ty, GlobalTypeVar(self.type_names.fresh("Function")), GlobalVar(self.names.fresh("apply")))
        return self.kinds[key]

    # -- functions

    def type_of_global(self, var: GlobalVar) -> Any:
        """The type of a global function."""
        return self.mod[var.name_hint].checked_type

    def type_of_callee(self, op: RelayExpr) -> Any:
        """The type of what is called; a constructor's is made of its definition."""
        if isinstance(op, Constructor):
            variables = self.mod.type_definitions[op.belong_to].type_vars
            return FuncType(op.inputs, TypeCall(op.belong_to, variables), variables)
        return self.type_of_global(op) if isinstance(op, GlobalVar) else op.checked_type

    def instance(self, var: GlobalVar, type_args: Sequence[Type]) -> GlobalVar:
        """The translated function for some values of its type parameters."""
        func = self.mod[var.name_hint]
        if not isinstance(func, Function) or is_primitive(func):
            return var
        if len(type_args) != len(func.type_params):
            raise UnsupportedOpError(f"@{var.name_hint} has {len(func.type_params)} type parameters and is called with {len(type_args)} types")
        key = (var.name_hint, tuple(map(structural_hash, type_args)))
        if key not in self.instances:
            self.instances[key] = self._new_instance(var, func, type_args)
        return self.instances[key]

    def _new_instance(self, var: GlobalVar, func: Function, type_args: Sequence[Type]) -> GlobalVar:
        self.copies[var.name_hint] = self.copies.get(var.name_hint, 0) + 1
        if self.copies[var.name_hint] > MOST_COPIES:
            raise UnsupportedOpError(f"@{var.name_hint} is used at more than {MOST_COPIES} types: a function that calls itself at ever other types "
                                     "can't be copied for each")
        types = dict(zip(func.type_params, type_args))
        same_name = not types and not any(_holds_function(t) for t in (*func.checked_type.arg_types, func.checked_type.ret_type))
        target = var if same_name else GlobalVar(self.names.fresh(var.name_hint))
        self.tasks.append(_Task(target, func, types, (), None, None, free_vars_of_parts(func)))
        return target

    def global_value(self, var: GlobalVar, ty: FuncType) -> RelayExpr:
        """A global function as a value of a type."""
        generic = self.type_of_global(var)
        found = _matched(generic, ty)
        target = self.instance(var, [found[p] for p in generic.type_params])
        kind = self.kind(ty)
        if target.name_hint not in kind.of_global:
            kind.of_global[target.name_hint] = self._case(kind, target, ())
        return Call(kind.of_global[target.name_hint].constructor, [])

    def _case(self, kind: _Kind, target: GlobalVar, fields: Sequence[Type]) -> _Case:
        name = self.constructor_names.fresh("Of_" + target.name_hint)
        case = _Case(Constructor(name, fields, kind.header), target)
        kind.cases.append(case)
        return case

    def closure(self, func: Function, ty: FuncType, own_name: Var | None, body: _Body) -> RelayExpr:
        """A function literal as a value of a type."""
        captured = body.captured(func, own_name)
        case = self._case(self.kind(ty), GlobalVar(self.names.fresh(body.task.target.name_hint + "_fn")), [body.type_of(v) for v in captured])
        self._lift(func, ty, captured, own_name, case, body)
        return Call(case.constructor, [body.vars[id(v)] for v in captured])

    def lifted(self, func: Function, ty: FuncType, body: _Body) -> tuple[GlobalVar, list[RelayExpr]]:
        """A function literal that is called where it stands, as a global one, and what it captures."""
        captured = body.captured(func, None)
        case = _Case(None, GlobalVar(self.names.fresh(body.task.target.name_hint + "_fn")))  # type: ignore[arg-type]
        self._lift(func, ty, captured, None, case, body)
        return case.target, [body.vars[id(v)] for v in captured]

    def _lift(self, func: Function, ty: FuncType, captured: tuple[Var, ...], own_name: Var | None, case: _Case, body: _Body) -> None:
        types = {**body.task.types, **_matched(func.checked_type, ty)}
        self.tasks.append(_Task(case.target, func, types, captured, own_name, case, body.task.free_in))

    def run(self) -> None:
        """Translates all functions that are reached."""
        while self.tasks:
            task = self.tasks.popleft()
            self.functions[task.target] = _Body(self, task).function()

    # -- data types and apply functions

    def definitions(self) -> Iterator[TypeData]:
        """The data types that stand for functions."""
        for kind in self.kinds.values():
            yield TypeData(kind.header, [], [c.constructor for c in kind.cases])

    def apply_functions(self) -> Iterator[tuple[GlobalVar, Function]]:
        """Their apply functions."""
        for at in itertools.count():  # a type met on the way may be of a new kind
            if at == len(self.kinds):
                return
            kind = list(self.kinds.values())[at]
            value = Var("f", TypeCall(kind.header, []))
            args = [Var(f"x{i}", self.translated(t)) for i, t in enumerate(kind.type.arg_types)]
            body: RelayExpr = Match(value, [_clause(c, args) for c in kind.cases])
            if not kind.cases:  # there is no such function, so that nothing calls this
                body = Call(kind.apply, [value, *args])
            yield kind.apply, Function([value, *args], body, self.translated(kind.type.ret_type))


def _clause(case: _Case, args: list[Var]) -> Clause:
    fields = [Var(f"c{i}") for i, _ in enumerate(case.constructor.inputs)]
    return Clause(PatternConstructor(case.constructor, [PatternVar(v) for v in fields]), Call(case.target, [*fields, *args]))


def _matched(generic: FuncType, ty: FuncType) -> dict[TypeVar, Type]:
    """The values of a generic type's parameters that make it ``ty``."""
    wanted, found = set(generic.type_params), {}
    stack: list[tuple[Any, Any]] = list(zip((*generic.arg_types, generic.ret_type), (*ty.arg_types, ty.ret_type))) if wanted else []
    while stack:
        a, b = stack.pop()
        if isinstance(a, TypeVar) and a in wanted:
            found.setdefault(a, b)
        elif type(a) is type(b) and isinstance(a, (FuncType, TupleType, RefType, TypeCall)):
            stack.extend(zip(a.children(), b.children()))
    if len(found) < len(wanted):
        raise UnsupportedOpError(f"a function of type {generic} is used as one of type {ty}, which leaves some of its types open")
    return found


class _Body(Walker):
    """Translates the body of one function."""

    def __init__(self, program: _Program, task: _Task) -> None:
        super().__init__()
        self.program, self.task = program, task
        self.vars: dict[int, RelayExpr] = {}

    def function(self) -> Function:
        """The translated function: what it captures comes first among its parameters."""
        func, case = self.task.func, self.task.case
        params = [self.new_var(v) for v in (*self.task.captured, *func.params)]
        if self.task.own_name is not None and case is not None:
            self.vars[id(self.task.own_name)] = Call(case.constructor, params[:len(self.task.captured)])
        result = self.mono(func.checked_type.ret_type if not isinstance(func.ret_type, Type) else func.ret_type)
        attrs = func.attrs if case is None else None
        return Function(params, self.visit(func.body), self.program.translated(result), (), attrs, func.span)

    # -- small parts

    def mono(self, ty: Type) -> Type:
        """A type of the old program at the values of its type variables."""
        return substitute(ty, self.task.types) if self.task.types else ty

    def type_of(self, expr: RelayExpr) -> Type:
        """The new type of an old expression."""
        return self.program.translated(self.mono(expr.checked_type))

    def new_var(self, var: Var) -> Var:
        """The variable in the new program."""
        new = Var(var.name_hint, self.type_of(var), var.span)
        self.vars[id(var)] = new
        return new

    def captured(self, func: Function, own_name: Var | None) -> tuple[Var, ...]:
        """What a function literal captures, its own name aside."""
        return tuple(v for v in self.task.free_in[id(func)] if v is not own_name)

    def value(self, func: RelayExpr, ty: Any, own_name: Var | None = None) -> RelayExpr:
        """A global function or a literal as a value of a type."""
        if isinstance(func, GlobalVar):
            return self.program.global_value(func, ty)
        return self.program.closure(func, ty, own_name, self)  # type: ignore[arg-type]

    # -- expressions

    def visit_Type(self, ty: Any) -> Any:
        return ty

    def visit_Op(self, op: Op) -> Op:
        return op

    def visit_Var(self, var: Var) -> RelayExpr:
        return self.vars[id(var)]

    def visit_GlobalVar(self, var: GlobalVar) -> RelayExpr:
        return self.value(var, self.mono(self.program.type_of_global(var)))

    def visit_Function(self, func: Function) -> RelayExpr:
        return func if is_primitive(func) else self.value(func, self.mono(func.checked_type))

    def visit_Constructor(self, constructor: Constructor) -> RelayExpr:
        raise UnsupportedOpError(f"the constructor {constructor.name_hint} is used as a function that is a value: run EtaExpand before")

    def visit_Let(self, let: Let) -> Any:
        if _is_function_like(let.value):
            own = let.var if isinstance(let.value, Function) else None
            value = self.value(let.value, self.mono(let.value.checked_type if own is not None else self.program.type_of_global(let.value)), own)  # type: ignore[arg-type]
        else:
            value = yield let.value
        var = self.new_var(let.var)
        return Let(var, value, (yield let.body), let.span)

    def visit_Match(self, match: Match) -> Any:
        data = yield match.data
        clauses = []
        for clause in match.clauses:
            pattern = rewrite(clause.lhs, self._pattern, descend=lambda p: isinstance(p, (PatternConstructor, PatternTuple)))
            clauses.append(Clause(pattern, (yield clause.rhs)))  # type: ignore[arg-type]
        return match.replace(data=data, clauses=tuple(clauses))

    def _pattern(self, pattern: Any) -> Pattern:
        if isinstance(pattern, PatternConstructor):
            _check_fields(pattern.constructor)
        if not isinstance(pattern, PatternVar):
            return pattern  # type: ignore[no-any-return]
        new = Var(pattern.var.name_hint, None if pattern.var._checked_type is None else self.type_of(pattern.var))
        self.vars[id(pattern.var)] = new
        return PatternVar(new)

    def visit_Call(self, call: Call) -> Any:
        op = call.op
        if isinstance(op, Op) or is_primitive(op):
            return call.replace(args=tuple((yield list(call.args))))
        types: Any = None
        if not isinstance(op, (Constructor, GlobalVar)) or any(map(_is_function_like, call.args)):
            types = self._parameters(call)
        args = []
        for i, arg in enumerate(call.args):
            args.append(self.value(arg, types.arg_types[i]) if _is_function_like(arg) else (yield arg))
        if isinstance(op, Constructor):
            _check_fields(op)
            return call.replace(args=tuple(args), type_args=tuple(self.program.translated(self.mono(t)) for t in call.type_args))
        if isinstance(op, GlobalVar):
            return Call(self.program.instance(op, [self.mono(t) for t in call.type_args]), args, call.attrs, (), call.span)
        if isinstance(op, Function):
            target, captured = self.program.lifted(op, types, self)
            return Call(target, [*captured, *args], None, (), call.span)
        return Call(self.program.kind(types).apply, [(yield op), *args], None, (), call.span)

    def _parameters(self, call: Call) -> FuncType:
        """The type of the callee at this call."""
        ty = self.program.type_of_callee(call.op)
        if not ty.type_params:
            return self.mono(ty)  # type: ignore[return-value]
        bare = FuncType(ty.arg_types, ty.ret_type)
        if len(call.type_args) == len(ty.type_params):
            return self.mono(substitute(bare, dict(zip(ty.type_params, call.type_args))))  # type: ignore[return-value]
        return self.mono(substitute(bare, _matched(ty, FuncType([a.checked_type for a in call.args], call.checked_type))))  # type: ignore[return-value]


def _check_fields(constructor: Constructor) -> None:
    if any(map(_holds_function, constructor.inputs)):
        raise UnsupportedOpError(f"the constructor {constructor.name_hint} has a field that is a function: give its data type a type parameter for it")


def defunctionalize(func: Function, mod: IRModule) -> tuple[Function, IRModule]:
    """``func`` without functions as values, and a module with what it needs: ``mod`` and the functions and types made for it.

    ``func`` and ``mod`` are typed.  ArgumentError when ``func`` is polymorphic, or takes or gives a function.
    """
    ty: Any = func.checked_type
    if func.type_params:
        raise ArgumentError("defunctionalization begins at a function whose types are all known; this one has type parameters")
    if any(map(_holds_function, (*ty.arg_types, ty.ret_type))):
        raise ArgumentError(f"defunctionalization begins at a function that takes and gives no functions; this one is of type {ty}")
    program = _Program(mod)
    entry = next((v for v, f in mod.functions.items() if f is func), None) or GlobalVar(program.names.fresh("main"))
    program.instances[entry.name_hint, ()] = entry
    program.tasks.append(_Task(entry, func, {}, (), None, None, free_vars_of_parts(func)))
    program.run()
    made = dict(program.apply_functions())  # may name further types
    result = mod.copy()
    for data in program.definitions():
        result.add_type_def(data.header, data)
    for var, new in {**program.functions, **made}.items():
        result[var] = new
    return program.functions[entry], result


def Defunctionalization(func: Function, mod: IRModule) -> Function:
    """``func`` without functions as values; the functions and data types made for it are added to ``mod``.

    Errors as `defunctionalize`.
    """
    new, result = defunctionalize(func, mod)
    mod.update(result)
    return new


__all__ = ["Defunctionalization", "defunctionalize"]
