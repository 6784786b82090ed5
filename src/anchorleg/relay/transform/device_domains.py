"""Where values are stored, as unknowns to be solved for: the domains of the planner of devices.

A domain stands for the device of a value; the domain of a function has one for each parameter and one for the result, and the function
itself is where its result is.  Data types, tuples and references have one device for all they hold.
"""
from __future__ import annotations

from typing import Any, Iterator

from ...ir.expr import GlobalVar, RelayExpr
from ...ir.module import IRModule
from ...ir.op import Op
from ...ir.type import FuncType, TensorType, Type, flatten_types
from ...support.errors import TargetError
from ...target.virtual_device import UNCONSTRAINED, CompilationConfig, VirtualDevice, default_to, join
from ..adt import Constructor
from ..expr import Call, Tuple, Var
from .common import is_op


class Domain:
    """An unknown device, or a function's parameters and result; domains that were found equal share a root."""

    __slots__ = ("link", "device", "parts", "size")

    def __init__(self, device: VirtualDevice = UNCONSTRAINED, parts: tuple[Domain, ...] = ()) -> None:
        self.link: Domain | None = None
        self.device, self.parts, self.size = device, parts, 1

    @property
    def root(self) -> Domain:
        """What stands for all domains equal to this one."""
        found = self
        while found.link is not None:
            found = found.link
        return found

    @property
    def result(self) -> Domain:
        """The root of what it gives after all arguments: the domain itself, unless it is a function's."""
        found = self.root
        while found.parts:
            found = found.parts[-1].root
        return found

    def leaves(self) -> Iterator[Domain]:
        """The roots of all devices in it."""
        stack = [self]
        while stack:
            each = stack.pop().root
            if each.parts:
                stack.extend(reversed(each.parts))
            else:
                yield each

    def __str__(self) -> str:
        return " -> ".join(repr(d.device) for d in self.leaves())


def callee_of(call: Call) -> tuple[RelayExpr, tuple[RelayExpr, ...]]:
    """What a call calls, and with what; those of a lowered function are in a tuple."""
    if is_op(call, "call_lowered") and isinstance(call.args[1], Tuple):
        return call.args[0], call.args[1].fields
    return call.op, call.args


def is_copyable(ty: Any) -> bool:
    """Whether values of a type can move between devices: tensors and tuples of them, but not data types, references and functions."""
    return all(isinstance(t, TensorType) for t in flatten_types(ty))


class Domains:
    """The domains of a module's expressions and what is known of them."""

    def __init__(self, mod: IRModule, config: CompilationConfig) -> None:
        self.mod, self.config = mod, config
        self.host = Domain(config.host_virtual_device)
        self._of: dict[Any, tuple[Any, Domain]] = {}
        self._callees: dict[int, tuple[Call, Domain]] = {}

    # -- making domains

    def free(self, ty: Type | None, device: VirtualDevice | None = None) -> Domain:
        """A domain for values of a type, whose result (if it is a function's) is on ``device``."""
        first = Domain()
        stack: list[tuple[Domain, Type | None, VirtualDevice | None]] = [(first, ty, device)]
        while stack:
            domain, t, where = stack.pop()
            if isinstance(t, FuncType):
                domain.parts = tuple(Domain() for _ in (*t.arg_types, t.ret_type))
                stack.extend((p, a, None) for p, a in zip(domain.parts, t.arg_types))
                stack.append((domain.parts[-1], t.ret_type, where))
            elif where is not None:
                domain.device = self.config.canonical(where)
        return first

    def of(self, expr: RelayExpr) -> Domain:
        """The domain of an expression; global functions are told apart by name."""
        key: Any = expr.name_hint if isinstance(expr, GlobalVar) else id(expr)
        found = self._of.get(key)
        if found is None:
            ty = self.type_of_global(expr) if isinstance(expr, GlobalVar) else expr._checked_type
            found = self._of[key] = (expr, self.free(ty))
        return found[1]

    def type_of_global(self, var: GlobalVar) -> Any:
        """The type a global function has in the graph language (a lowered one's is kept with its name)."""
        if var._checked_type is not None or var.name_hint not in self.mod:
            return var._checked_type
        return self.mod[var.name_hint]._checked_type

    def of_callee(self, call: Call) -> Domain:
        """The domain of what is called: an operator's is the call's own, as it may run on another device each time."""
        op, args = callee_of(call)
        if not isinstance(op, (Op, Constructor)):
            return self.of(op)
        found = self._callees.get(id(call))
        if found is None:
            parts = _OPERATORS.get(op.name, Domains._same)(self, call) if isinstance(op, Op) else self._constructor(call)
            found = self._callees[id(call)] = (call, Domain(parts=tuple(parts)))
        return found[1]

    def _constructor(self, call: Call) -> list[Domain]:
        result = self.free(call._checked_type)
        return [*(result for _ in call.args), result]

    def _same(self, call: Call) -> list[Domain]:
        """Everything on one device."""
        one = Domain()
        return [one] * (len(call.args) + 1)

    def _on_device(self, call: Call) -> list[Domain]:
        attrs: Any = call.attrs
        where, ty = attrs.virtual_device, call.args[0]._checked_type
        if not is_copyable(ty):
            one = self.free(ty, where if attrs.constrain_body or attrs.constrain_result else None)
            return [one, one]
        return [self.free(ty, where if attrs.constrain_body else None), self.free(ty, where if attrs.constrain_result else None)]

    def _device_copy(self, call: Call) -> list[Domain]:
        attrs: Any = call.attrs
        return [self.free(call.args[0]._checked_type, attrs.src_virtual_device), self.free(call._checked_type, attrs.dst_virtual_device)]

    def _alloc_storage(self, call: Call) -> list[Domain]:
        return [*(self.host for _ in call.args), self.free(call._checked_type, call.attrs.virtual_device)]  # type: ignore[union-attr]

    def _first_and_host(self, call: Call) -> list[Domain]:
        """The result is with the first argument; sizes are on the host."""
        one = Domain()
        return [one, *(self.host for _ in call.args[1:]), one]

    def _shape_of(self, call: Call) -> list[Domain]:
        return [Domain(), self.host]

    def _shape_func(self, call: Call) -> list[Domain]:
        return [self.free(call.args[0]._checked_type), *(self.host for _ in call.args)]

    def _invoke(self, call: Call) -> list[Domain]:
        one = Domain()
        return [self.free(call.args[0]._checked_type), *(one for _ in call.args)]

    # -- solving

    def unify(self, lhs: Domain, rhs: Domain) -> bool:
        """Makes two domains equal; False, with nothing changed, when they contradict each other.

        Where a function meets a value of another kind (it is held in a tuple, say), all its parts are on the value's device.
        """
        trail: list[tuple[Domain, VirtualDevice, Domain]] = []
        stack = [(lhs, rhs)]
        while stack:
            a, b = (d.root for d in stack.pop())
            if a is b:
                continue
            if bool(a.parts) != bool(b.parts):
                whole, one = (a, b) if a.parts else (b, a)
                stack.extend((p, one) for p in whole.parts)
                continue
            joined = UNCONSTRAINED if a.parts else self._join(a.device, b.device)
            if joined is None or len(a.parts) != len(b.parts):
                self._undo(trail)
                return False
            a, b = (a, b) if a.size >= b.size else (b, a)  # so that no root is far away
            trail.append((a, a.device, b))
            a.device, b.link, a.size = joined, a, a.size + b.size
            stack.extend(zip(a.parts, b.parts))
        return True

    def _join(self, lhs: VirtualDevice, rhs: VirtualDevice) -> VirtualDevice | None:
        if lhs is rhs or rhs is UNCONSTRAINED:
            return lhs
        joined = join(lhs, rhs)
        return self.config.canonical(joined) if joined is not None else None

    @staticmethod
    def _undo(trail: list[tuple[Domain, VirtualDevice, Domain]]) -> None:
        for kept, device, linked in reversed(trail):
            kept.device, linked.link, kept.size = device, None, kept.size - linked.size

    def require(self, expr: RelayExpr, domain: Domain, why: str) -> None:
        """The expression's domain equals ``domain``; TargetError when it can't."""
        mine = self.of(expr)
        if not self.unify(mine, domain):
            advice = ("let it be copied by relay.annotation.on_device(…) around it, or by relay.op.device_copy(…)" if is_copyable(expr._checked_type) else
                      f"values of type {expr._checked_type} are not copied between devices, only tensors and tuples of them are")
            raise TargetError(f"{why}: {_shown(expr)} is on {mine}, and {domain} is wanted; {advice}")

    def default(self, domain: Domain, device: VirtualDevice) -> None:
        """What the domain leaves open is as in ``device``."""
        for leaf in list(domain.leaves()):
            leaf = leaf.root
            leaf.device = self.config.canonical(default_to(leaf.device, device))

    def default_result_first(self, domain: Domain) -> None:
        """The result is on the default device where that is open, and parameters are where the result is."""
        self.default(domain.result, self.config.default_primitive_virtual_device)
        self.default(domain, domain.result.device)

    def device_of(self, expr: RelayExpr) -> VirtualDevice:
        """Where a value is: behind marks, that of what is marked."""
        while is_op(expr, "on_device"):
            expr = expr.args[0]  # type: ignore[attr-defined]
        leaf = self.of(expr).result
        if leaf.device.is_fully_unconstrained:
            leaf.device = self.config.default_primitive_virtual_device
        return leaf.device


def _shown(expr: RelayExpr) -> str:
    text = f"%{expr.name_hint}" if isinstance(expr, Var) else str(expr)
    lines = text.strip().splitlines()
    where = f" (from {expr.span.source_name.name}:{expr.span.line})" if expr.span is not None else ""
    return (text if len(lines) == 1 else f"{lines[0]} … {lines[-1]}") + where


_OPERATORS: dict[str, Any] = {
    "on_device": Domains._on_device, "device_copy": Domains._device_copy, "memory.alloc_storage": Domains._alloc_storage,
    "memory.alloc_tensor": Domains._first_and_host, "vm.reshape_tensor": Domains._first_and_host, "vm.shape_of": Domains._shape_of,
    "vm.shape_func": Domains._shape_func, "vm.invoke_tvm_op": Domains._invoke,
}

__all__ = ["Domain", "Domains", "callee_of", "is_copyable"]
