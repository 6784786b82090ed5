"""MemoryPlan: the blocks of memory that a stretch of code allocates become one block, with tensors at offsets in it.

A stretch is a chain of bindings: a function's body, a branch, a clause.  Blocks of constant size on one device and with one alignment
are put together where the first of them was allocated; they never overlap.  A block that is used as a whole (passed on, captured) or whose
tensors are at offsets not known stays by itself, and so does one alone in its stretch.

before::

    let %s = memory.alloc_storage(24, 64); let %t = memory.alloc_tensor(%s, 0, [6]); …
    let %u = memory.alloc_storage(100, 64); let %v = memory.alloc_tensor(%u, 0, [25]); …

after::

    let %region = memory.alloc_storage(192, 64); let %t = memory.alloc_tensor(%region, 0, [6]); …
    let %v = memory.alloc_tensor(%region, 64, [25]); …
"""
from __future__ import annotations

from typing import Any, Iterator, NamedTuple

import numpy as np

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ...ir.visit import trampoline
from ...runtime.dtype import DataType
from ..adt import Match
from ..analysis.variables import expr_children, exprs
from ..expr import Call, Constant, If, Let, Var
from ..function import Function
from ..op import memory
from .common import carry_type, constant, is_op, is_primitive, map_functions


class _Block(NamedTuple):
    """A block of constant size: bytes, alignment and device."""

    size: int
    alignment: int
    device: Any


class _Facts:
    """What is known of a function's blocks before anything is moved."""

    def __init__(self, func: Function) -> None:
        self.constants: dict[Var, Constant] = {}
        self.blocks: dict[Var, _Block] = {}
        whole = list(exprs(func))
        for node in whole:
            if isinstance(node, Let) and isinstance(node.value, Constant):
                self.constants[node.var] = node.value
        for node in whole:
            if isinstance(node, Let) and is_op(node.value, "memory.alloc_storage"):
                self._note(node.var, node.value)  # type: ignore[arg-type]
        for node in whole:
            for used in self._used_otherwise(node):
                self.blocks.pop(used, None)

    def number(self, expr: RelayExpr) -> int | None:
        """The value of an integer constant, or of a variable bound to one."""
        found = self.value(expr)
        return int(found) if found is not None and found.size == 1 and found.ndim == 0 else None

    def value(self, expr: RelayExpr) -> np.ndarray | None:
        """The constant that an operand stands for."""
        found = self.constants.get(expr) if isinstance(expr, Var) else expr  # type: ignore[call-overload]
        return found.data.as_numpy_view() if isinstance(found, Constant) else None

    def _note(self, var: Var, call: Call) -> None:
        attrs: Any = call.attrs
        size, alignment = self.value(call.args[0]), self.number(call.args[-1])
        if size is None or alignment is None or alignment <= 0:
            return
        count = int(size) if size.ndim == 0 else int(np.prod(size, dtype=np.int64)) * DataType(attrs.dtype or "uint8").itemsize
        self.blocks[var] = _Block(count, alignment, attrs.virtual_device)

    def _used_otherwise(self, node: RelayExpr) -> Iterator[Any]:
        """Variables that ``node`` uses other than as the block of a tensor at a known offset, or to end their life."""
        if is_op(node, "memory.kill"):
            return
        parts = expr_children(node)
        if isinstance(node, Let):
            parts = [node.value, node.body]
        elif is_op(node, "memory.alloc_tensor") and self.number(node.args[1]) is not None:  # type: ignore[attr-defined]
            parts = list(node.args[1:])  # type: ignore[attr-defined]
        yield from (p for p in parts if isinstance(p, Var))


class _Region:
    """One block for several: its variable, its size so far, and where each of them is in it."""

    def __init__(self, number: int, block: _Block) -> None:
        self.var = Var(f"region_{number}", memory.STORAGE_TYPE)
        self.var._checked_type = memory.STORAGE_TYPE
        self.block, self.size = block, 0
        self.offsets: dict[Var, int] = {}

    def add(self, var: Var, size: int) -> None:
        """Puts a block behind the others."""
        self.offsets[var] = self.size
        self.size += -(-max(size, 1) // self.block.alignment) * self.block.alignment

    def allocation(self) -> Call:
        """The call that allocates it."""
        size, alignment = (constant(v, "int64") for v in (self.size, self.block.alignment))
        call = memory.alloc_storage(size, alignment, self.block.device, "uint8")
        call._checked_type = memory.STORAGE_TYPE
        return call


class _Coalescer:
    """Rewrites one function."""

    def __init__(self, facts: _Facts) -> None:
        self.facts = facts
        self.homes: dict[Var, _Region] = {}
        self.count = 0

    def chain(self, expr: RelayExpr) -> Any:
        """A chain of bindings with its blocks put together."""
        lets: list[Let] = []
        rest = expr
        while isinstance(rest, Let):
            lets.append(rest)
            rest = rest.body
        firsts = self._plan(lets)
        values = []
        for let in lets:
            values.append((yield self.value(let.value)))
        result = yield self.value(rest)
        for let, value in zip(reversed(lets), reversed(values)):
            result = self._bound(let, value, result, firsts.get(let.var))
        return result

    def _plan(self, lets: list[Let]) -> dict[Var, _Region]:
        """Makes the regions of a chain; each by the variable in whose place it is allocated."""
        groups: dict[Any, list[Var]] = {}
        for let in lets:
            block = self.facts.blocks.get(let.var)
            if block is not None:
                groups.setdefault((block.alignment, block.device), []).append(let.var)
        return {members[0]: self._region(members) for members in groups.values() if len(members) > 1}

    def _region(self, members: list[Var]) -> _Region:
        region = _Region(self.count, self.facts.blocks[members[0]])
        self.count += 1
        for var in members:
            region.add(var, self.facts.blocks[var].size)
            self.homes[var] = region
        return region

    def _bound(self, let: Let, value: RelayExpr, body: RelayExpr, region: _Region | None) -> RelayExpr:
        if region is not None:
            made = Let(region.var, region.allocation(), body)
            made._checked_type = let._checked_type
            return made
        if let.var in self.homes or is_op(value, "memory.kill") and value.args[0] in self.homes:  # type: ignore[attr-defined]
            return body
        return carry_type(let, let.replace(value=value, body=body))  # type: ignore[no-any-return]

    def value(self, value: RelayExpr) -> Any:
        """A bound value: tensors move to their region; what has bindings of its own has regions of its own."""
        if isinstance(value, Let):
            return (yield self.chain(value))
        if isinstance(value, Function):
            return value if is_primitive(value) else (yield self.function(value))
        if isinstance(value, If):
            yes = yield self.chain(value.true_branch)
            no = yield self.chain(value.false_branch)
            return carry_type(value, value.replace(true_branch=yes, false_branch=no))
        if isinstance(value, Match):
            clauses = []
            for clause in value.clauses:
                clauses.append(clause.replace(rhs=(yield self.chain(clause.rhs))))
            return carry_type(value, value.replace(clauses=tuple(clauses)))
        return self._moved(value)

    def _moved(self, value: Any) -> RelayExpr:
        if not is_op(value, "memory.alloc_tensor") or value.args[0] not in self.homes:
            return value  # type: ignore[no-any-return]
        region = self.homes[value.args[0]]
        offset = region.offsets[value.args[0]] + (self.facts.number(value.args[1]) or 0)
        return carry_type(value, value.replace(args=(region.var, constant(offset, "int64"), *value.args[2:])))  # type: ignore[no-any-return]

    def function(self, func: Function) -> Any:
        """A function with the blocks of its body put together."""
        return carry_type(func, func.replace(body=(yield self.chain(func.body))))


def plan_function(func: Function) -> Function:
    """One function with its blocks put together."""
    facts = _Facts(func)
    return trampoline(_Coalescer(facts).function(func)) if len(facts.blocks) > 1 else func  # type: ignore[no-any-return]


def memory_plan(mod: IRModule) -> IRModule:
    """The module with the blocks of each stretch of code put together; functions are in A-normal form (after ManifestAlloc)."""
    return map_functions(mod, plan_function)


def MemoryPlan() -> Pass:
    """Puts blocks of memory together.

    The virtual machine's compiler does without: its blocks come from pools and go back at the last use of what is in them, so that one
    block that lives as long as its function saves no time and takes more memory.
    """
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        return memory_plan(mod)

    return ModulePass(run, PassInfo(0, "MemoryPlan"))


register_pass("MemoryPlan", MemoryPlan)
__all__ = ["MemoryPlan", "memory_plan", "plan_function"]
