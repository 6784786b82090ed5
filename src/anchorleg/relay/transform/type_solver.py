"""Unification of types and the queue of relations that wait for a type to become known.

An ``IncompleteType`` node is a *hole*.  Holes are bound to types as equations are met; a relation between argument types
and a result runs as soon as it can answer, and sleeps on the holes among its arguments until one of them is bound.
"""
from __future__ import annotations

from collections import deque
from types import GeneratorType
from typing import Any as _Any
from typing import Callable, Generator, Iterable, Sequence

from ...ir.type import (FuncType, GlobalTypeVar, IncompleteType, PointerType, PrimType, RefType, TensorType, TupleType, Type,
                        TypeCall, TypeVar)
from ...ir.visit import rewrite
from ...support.errors import TypeMismatchError
from ..op.type_relations import is_any, same_dim, same_dims, show

_LEAVES = (TensorType, TypeVar, GlobalTypeVar, PrimType, PointerType)


class Pending:
    """A relation that waits: ``fn`` maps resolved argument types to the result type, or None to wait on."""

    __slots__ = ("site", "fn", "args", "result", "done")

    def __init__(self, site: _Any, fn: Callable[[tuple[Type, ...]], Type | None], args: Sequence[Type], result: Type) -> None:
        self.site, self.fn, self.args, self.result, self.done = site, fn, tuple(args), result, False


class TypeSolver:
    """Bindings of holes, and the relations that wait for them.

    ``on_error(site, exception)`` is told of relations that fail when they are woken.
    """

    def __init__(self, on_error: Callable[[_Any, TypeMismatchError], None]) -> None:
        self.on_error = on_error
        self.queue: deque[Pending] = deque()
        self.pending: list[Pending] = []
        self._bindings: dict[int, Type] = {}
        self._waiting: dict[int, list[Pending]] = {}
        self._ground: dict[int, Type] = {}
        self._holes: list[IncompleteType] = []  # keeps bound holes alive, so that ids stay unique

    # -- what a type is by now --------------------------------------------------------------------

    def is_ground(self, t: Type) -> bool:
        """Whether a resolved type has no hole in it."""
        return isinstance(t, _LEAVES) or id(t) in self._ground

    def resolve(self, t: Type) -> Type:
        """The type with every bound hole replaced; the same object when nothing changes."""
        if isinstance(t, _LEAVES) or id(t) in self._ground:
            return t
        memo: dict[int, Type] = {}
        stack: list[tuple[Type, bool]] = [(t, False)]
        while stack:
            node, ready = stack.pop()
            if ready:
                memo[id(node)] = self._resolved(node, memo)
            elif id(node) not in memo:
                parts = self._parts(node)
                if parts:
                    stack.append((node, True))
                    stack.extend((p, False) for p in parts)
                else:
                    memo[id(node)] = self._resolved(node, memo)
        return memo[id(t)]

    def _parts(self, t: Type) -> list[Type]:
        if isinstance(t, IncompleteType):
            bound = self._bindings.get(id(t))
            return [] if bound is None else [bound]
        return [] if self.is_ground(t) else t.children()  # type: ignore[return-value]

    def _resolved(self, t: Type, memo: dict[int, Type]) -> Type:
        if isinstance(t, IncompleteType):
            bound = self._bindings.get(id(t))
            if bound is None:
                return t
            self._bindings[id(t)] = memo[id(bound)]
            return memo[id(bound)]
        if self.is_ground(t):
            return t
        new = t.map_children(lambda c: memo[id(c)])
        if all(self.is_ground(c) for c in new.children()):  # type: ignore[arg-type]
            self._ground[id(new)] = new
        return new

    def holes(self, t: Type) -> list[IncompleteType]:
        """The unbound holes of a resolved type."""
        found, seen, stack = [], set(), [t]
        while stack:
            node = stack.pop()
            if id(node) in seen or self.is_ground(node):
                continue
            seen.add(id(node))
            if isinstance(node, IncompleteType):
                found.append(node)
            else:
                stack.extend(node.children())  # type: ignore[arg-type]
        return found

    # -- equations --------------------------------------------------------------------------------

    def unify(self, a: Type, b: Type) -> Type:
        """Makes both types equal and returns it; TypeMismatchError with both types when they cannot be.

        Where one has ``?`` for a dimension and the other a number, they agree and the result has ``?``.
        """
        if a is b:
            return a
        if isinstance(a, TensorType) and isinstance(b, TensorType):
            return _unify_tensors(a, b)
        return _trampoline(self._unify, a, b)

    def _unify(self, a: Type, b: Type) -> Generator[tuple[Type, Type], Type, Type]:
        if a is b:
            return a
        if isinstance(a, TensorType) and isinstance(b, TensorType):
            return _unify_tensors(a, b)
        if isinstance(a, IncompleteType) or isinstance(b, IncompleteType):
            return (yield from self._unify_hole(a, b))
        if isinstance(a, TupleType) and isinstance(b, TupleType) and len(a.fields) == len(b.fields):
            fields = yield from _each(a.fields, b.fields)
            return _keep(a, b, a.fields, b.fields, fields, TupleType)
        if isinstance(a, RefType) and isinstance(b, RefType):
            value = yield (a.value, b.value)
            return a if value is a.value else RefType(value)
        if isinstance(a, FuncType) and isinstance(b, FuncType):
            return (yield from self._unify_functions(a, b))
        if _is_adt(a) and _is_adt(b):
            return (yield from self._unify_adts(_as_call(a), _as_call(b)))
        if isinstance(a, PrimType) and isinstance(b, PrimType) and a.dtype == b.dtype:
            return a
        raise _mismatch(a, b)

    def _unify_hole(self, a: Type, b: Type) -> Generator[tuple[Type, Type], Type, Type]:
        hole, other = (a, b) if isinstance(a, IncompleteType) else (b, a)
        bound = self._bindings.get(id(hole))
        if bound is None:
            return self._bind(hole, other)  # type: ignore[arg-type]
        merged = yield (bound, other)
        if merged is not bound and not isinstance(bound, IncompleteType):
            self._bindings[id(hole)] = merged
        return merged

    def _bind(self, hole: IncompleteType, value: Type) -> Type:
        value = self.resolve(value)
        if value is hole:
            return hole
        if not isinstance(value, IncompleteType) and any(h is hole for h in self.holes(value)):
            raise TypeMismatchError("this expression would need a type that contains itself")
        self._bindings[id(hole)] = value
        self._holes.append(hole)
        self.queue.extend(self._waiting.pop(id(hole), ()))
        return value

    def _unify_functions(self, a: FuncType, b: FuncType) -> Generator[tuple[Type, Type], Type, Type]:
        if len(a.arg_types) != len(b.arg_types):
            raise _mismatch(a, b)
        a, b = self._same_number_of_parameters(a, b)
        if b.type_params:
            b = substitute(FuncType(b.arg_types, b.ret_type), dict(zip(b.type_params, a.type_params)))  # type: ignore[assignment]
        mine, other = (*a.arg_types, a.ret_type), (*b.arg_types, b.ret_type)
        merged = yield from _each(mine, other)
        if all(x is y for x, y in zip(merged, mine)):
            return a
        return FuncType(merged[:-1], merged[-1], a.type_params, a.type_constraints)

    @staticmethod
    def _same_number_of_parameters(a: FuncType, b: FuncType) -> tuple[FuncType, FuncType]:
        """Both with as many type parameters as the one that has fewer; the other's last ones become holes."""
        count = min(len(a.type_params), len(b.type_params))

        def cut(f: FuncType) -> FuncType:
            if len(f.type_params) == count:
                return f
            plain = FuncType(f.arg_types, f.ret_type, (), f.type_constraints)
            open_type = substitute(plain, {p: IncompleteType(p.kind) for p in f.type_params[count:]})
            return FuncType(open_type.arg_types, open_type.ret_type, f.type_params[:count], open_type.type_constraints)  # type: ignore[attr-defined]

        return cut(a), cut(b)

    def _unify_adts(self, a: TypeCall, b: TypeCall) -> Generator[tuple[Type, Type], Type, Type]:
        if a.func is not b.func and getattr(a.func, "name_hint", 0) != getattr(b.func, "name_hint", 1) or len(a.args) != len(b.args):
            raise _mismatch(a, b)
        args = yield from _each(a.args, b.args)
        return a if all(x is y for x, y in zip(args, a.args)) else TypeCall(a.func, args)

    def instantiate(self, t: Type, type_args: Sequence[Type] = ()) -> tuple[FuncType, tuple[Type, ...]]:
        """A function type with its type parameters replaced by ``type_args`` (fresh holes where none are given)."""
        func = self.resolve(t)
        if not isinstance(func, FuncType) or not func.type_params:
            return func, ()  # type: ignore[return-value]
        if type_args and len(type_args) != len(func.type_params):
            raise TypeMismatchError(f"{len(func.type_params)} type arguments are expected, got {len(type_args)}")
        args = tuple(type_args) or tuple(IncompleteType(p.kind) for p in func.type_params)
        plain = FuncType(func.arg_types, func.ret_type, (), func.type_constraints)
        return substitute(plain, dict(zip(func.type_params, args))), args  # type: ignore[return-value]

    # -- relations --------------------------------------------------------------------------------

    def suspend(self, pending: Pending, args: Iterable[Type]) -> None:
        """Puts a relation to sleep on the holes of its (resolved) arguments."""
        for hole in {id(h): h for a in args for h in self.holes(a)}.values():
            self._waiting.setdefault(id(hole), []).append(pending)
            self._holes.append(hole)

    def add(self, site: _Any, fn: Callable[[tuple[Type, ...]], Type | None], args: Sequence[Type]) -> Type:
        """The result type of a relation: at once if it can answer, else a hole that it will bind."""
        resolved = tuple([self.resolve(a) for a in args])
        out = fn(resolved)
        if out is not None:
            return out
        pending = Pending(site, fn, args, IncompleteType())
        self.pending.append(pending)
        self.suspend(pending, resolved)
        return pending.result

    def drain(self) -> None:
        """Runs the relations that were woken, and those that they wake."""
        while self.queue:
            pending = self.queue.popleft()
            if not pending.done:
                self._retry(pending)

    def _retry(self, pending: Pending) -> None:
        resolved = tuple(self.resolve(a) for a in pending.args)
        try:
            out = pending.fn(resolved)
            if out is None:
                self.suspend(pending, resolved)
                return
            pending.done = True
            self.unify(pending.result, out)
        except TypeMismatchError as exc:
            pending.done = True
            self.on_error(pending.site, exc)

    def unsolved(self) -> list[Pending]:
        """Relations that still wait, without those that only wait for another's result."""
        waiting = [p for p in self.pending if not p.done]
        results = {id(self.resolve(p.result)) for p in waiting}
        roots = [p for p in waiting if not any(id(h) in results for a in p.args for h in self.holes(self.resolve(a)))]
        return roots or waiting[:1]


def substitute(t: Type, mapping: dict[TypeVar, Type]) -> Type:
    """The type with type variables replaced."""
    by_id = {id(k): v for k, v in mapping.items()}
    return rewrite(t, lambda n: by_id.get(id(n), n), descend=lambda n: not isinstance(n, _LEAVES))  # type: ignore[return-value]


def same_type(a: Type, b: Type) -> bool:
    """Whether two types are structurally the same."""
    if a is b:
        return True
    if isinstance(a, TensorType) or isinstance(b, TensorType):
        return isinstance(a, TensorType) and isinstance(b, TensorType) and a.dtype == b.dtype and same_dims(a.dims, b.dims)
    from ...ir.structural import structural_equal

    return structural_equal(a, b)


def _unify_tensors(a: TensorType, b: TensorType) -> TensorType:
    if a.dtype != b.dtype or len(a.dims) != len(b.dims):
        raise _mismatch(a, b)
    dims: list[_Any] = []
    for x, y in zip(a.dims, b.dims):
        if x is y or is_any(x):
            dims.append(x)
        elif is_any(y):
            dims.append(y)
        elif same_dim(x, y):
            dims.append(x)
        else:
            raise _mismatch(a, b)
    return a if all(x is y for x, y in zip(dims, a.dims)) else TensorType(dims, a.dtype)


def _mismatch(a: Type, b: Type) -> TypeMismatchError:
    return TypeMismatchError(f"the type {show(a)} is expected, got {show(b)}")


def _is_adt(t: Type) -> bool:
    return isinstance(t, (TypeCall, GlobalTypeVar))


def _as_call(t: Type) -> TypeCall:
    return t if isinstance(t, TypeCall) else TypeCall(t, ())


def _each(a: Sequence[Type], b: Sequence[Type]) -> Generator[tuple[Type, Type], Type, list[Type]]:
    merged = []
    for x, y in zip(a, b):
        merged.append((yield (x, y)))
    return merged


def _keep(a: Type, b: Type, mine: Sequence[Type], other: Sequence[Type], merged: Sequence[Type], make: _Any) -> Type:
    if all(x is y for x, y in zip(merged, mine)):
        return a
    return b if all(x is y for x, y in zip(merged, other)) else make(merged)


def _trampoline(step: Callable[..., _Any], a: Type, b: Type) -> Type:
    """Runs a generator that yields pairs to unify, on an explicit stack; each pair of nodes is met once."""
    memo: dict[tuple[int, int], Type] = {}
    keep: list[tuple[Type, Type]] = []
    stack: list[tuple[tuple[int, int], GeneratorType[_Any, _Any, _Any]]] = [((id(a), id(b)), step(a, b))]
    value: _Any = None
    while stack:
        key, gen = stack[-1]
        try:
            x, y = gen.send(value)
        except StopIteration as stop:
            stack.pop()
            value = memo[key] = stop.value
            continue
        key = (id(x), id(y))
        value = memo.get(key)
        if value is None:
            keep.append((x, y))
            stack.append((key, step(x, y)))
    return value


__all__ = ["Pending", "TypeSolver", "substitute", "same_type"]
