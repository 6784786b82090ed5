"""Planned memory in programs: allocations become places in pools, which functions take as parameters.

Before → after (pool ``ram``, ``x`` placed at byte 64)::

    def __tvm_main__(A, B):                         def __tvm_main__(A, B, ram_0_var: T.handle("uint8")):
        x = T.allocate([16], "int8", "global")          ram_0 = T.match_buffer(ram_0_var, [80], "uint8", strides=[1], align=16)
        T.call_extern("int32", "f", A.data, x)          x_let: T.handle("int8") = T.address_of(ram_0[64])
                                                        T.call_extern("int32", "f", A.data, x_let, ram_0.data)
"""
from __future__ import annotations

from typing import Any, Mapping

from ...ir.attrs import DictAttrs
from ...ir.expr import PrimExpr
from ...ir.memory_pools import AllocatedPoolInfo, ConstantInfo, ConstantPoolInfo, WorkspacePoolInfo
from ...ir.module import IRModule
from ...ir.op import Op
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ...ir.type import PointerType, PrimType
from ...support.errors import ArgumentError
from .. import expr as tir
from .. import op
from .. import stmt as ts
from ..buffer import Buffer, BufferLoad
from ..function import PrimFunc
from ..functor import StmtMutator
from .io_allocates import create_allocates_for_io
from .utils import CANDIDATE_MEMORY_POOL_ATTR, PoolAllocation, extents_bytes

_MAIN = "__tvm_main__"
_CALLS = ("tir.call_extern", "tir.tvm_call_cpacked")
_BYTES = PointerType(PrimType("uint8"), "global")


def convert_pool_allocations_to_offsets(pool_allocations: Mapping[Any, PoolAllocation], emit_tvmscript_printable: bool = False) -> Pass:
    """The pass; ``pool_allocations`` maps ``Allocate`` and ``AllocateConst`` statements to their places.

    ``__tvm_main__`` and the functions it calls take every pool as a further parameter, ordered by name (before a resource handle, a last
    parameter without a buffer).  Attribute ``pool_args`` of functions and module lists the pools with their sizes;
    ``emit_tvmscript_printable`` leaves all attributes but ``global_symbol`` out.
    """
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        return _Converter(mod, pool_allocations, emit_tvmscript_printable).run()

    return ModulePass(run, PassInfo(0, "tir.usmp.ConvertPoolAllocationsToOffsets"))


class _Converter:
    """Converts a module, function by function from the main function on."""

    def __init__(self, mod: IRModule, places: Mapping[Any, PoolAllocation], bare: bool) -> None:
        self.mod, self.bare = mod, bare
        self.places = {id(s): place for s, place in places.items()}
        self.constants: dict[int, list[ConstantInfo]] = {}
        self.pools = _pool_sizes(places)
        self.count = 0
        self.names = {g.name_hint: g for g, f in mod.functions.items() if isinstance(f, PrimFunc)}
        self.todo: list[str] = []
        self.called: set[str] = set()

    def run(self) -> IRModule:
        """The module after planning."""
        if _MAIN not in self.mod:
            raise ArgumentError(f"the module has no function {_MAIN!r}, whose memory is planned: run AOTLowerMain first")
        new = self.mod.copy()
        self.call(_MAIN)
        converted: dict[str, tuple[PrimFunc, list[int]]] = {}
        while self.todo:
            name = self.todo.pop(0)
            converted[name] = self._function(self.mod[name])
        infos = {id(pool): self._with_constants(pool) for pool, _ in self.pools}
        for name, (func, at) in converted.items():
            new[self.names[name]] = self._with_pools(func, at, infos)
        return new if self.bare else new.with_attr("pool_args", self._pool_args(converted[_MAIN][1], infos))

    def call(self, name: str) -> PrimFunc | None:
        """The function of a name, to be converted as well; None when the module has none."""
        if name not in self.names:
            return None
        if name not in self.called:
            self.called.add(name)
            self.todo.append(name)
        return self.mod[name]

    def _function(self, func: PrimFunc) -> tuple[PrimFunc, list[int]]:
        """The function with its pools, and the positions of their parameters."""
        params = [*func.params]
        handle = params.pop() if _has_resource_handle(func) else None
        buffers = dict(func.buffer_map)
        pools: dict[int, Buffer] = {}
        at: list[int] = []
        for pool, size in self.pools:
            name = f"{pool.pool_name}_{self.count}"
            self.count += 1
            var, data = tir.Var(f"{name}_var", "handle", _BYTES), tir.Var(f"{name}_var", "handle", _BYTES)
            pools[id(pool)] = buffers[var] = Buffer(data, "uint8", [size], [1], 0, f"{name}_buffer_var", 16)
            at.append(len(params))
            params.append(var)
        body = _Body(self, pools).stmt(func.body)
        return PrimFunc([*params, *([handle] if handle is not None else [])], body, func.ret_type, buffers, func.attrs), at

    def _with_pools(self, func: PrimFunc, at: list[int], infos: Mapping[int, Any]) -> PrimFunc:
        if not self.bare:
            return func.with_attr("pool_args", self._pool_args(at, infos))
        symbol = func.get_attr("global_symbol")
        return func.replace(attrs=DictAttrs({} if symbol is None else {"global_symbol": symbol}))

    def _pool_args(self, at: list[int], infos: Mapping[int, Any]) -> list[AllocatedPoolInfo]:
        return [AllocatedPoolInfo(infos[id(pool)], size, index) for (pool, size), index in zip(self.pools, at)]

    def _with_constants(self, pool: Any) -> Any:
        found = self.constants.get(id(pool))
        return pool if found is None else ConstantPoolInfo(pool.pool_name, pool.targets, found, pool.properties)


class _Body(StmtMutator):
    """The body of one function; ``lets`` maps pointers to what they are now."""

    def __init__(self, owner: _Converter, pools: dict[int, Buffer]) -> None:
        super().__init__()
        self.owner, self.pools = owner, pools
        self.lets: dict[int, tir.Var] = {}
        self.buffers: dict[int, tuple[Buffer, Buffer]] = {}

    def buffer(self, b: Buffer) -> Buffer:
        found = self.buffers.get(id(b))
        if found is None:
            let = self.lets.get(id(b.data))
            found = self.buffers[id(b)] = (b, b if let is None else b.replace(data=let))
        return found[1]

    def _finish(self, e: PrimExpr) -> PrimExpr:
        if isinstance(e, tir.Var):
            return self.lets.get(id(e), e)
        return self._called(e) if isinstance(e, tir.Call) else e

    def _called(self, e: tir.Call) -> PrimExpr:
        """A call of a function of the module, with the pools handed over before a context."""
        if not isinstance(e.op, Op) or e.op.name not in _CALLS or not isinstance(e.args[0], tir.StringImm):
            return e
        func = self.owner.call(e.args[0].value)
        if func is None:
            return e
        args = list(e.args)
        extra = len(args) - 1 - len(func.params)
        context = [args.pop()] if extra == 1 or extra == 0 and _has_resource_handle(func) else []
        return tir.Call(e.dtype, e.op, [*args, *(b.data for b in self.pools.values()), *context])

    def visit_Allocate(self, s: ts.Allocate) -> Any:
        place = self.owner.places.get(id(s))
        if place is None:
            return (yield from self.default(s))
        return (yield from self._let(s, place))

    def visit_AllocateConst(self, s: ts.AllocateConst) -> Any:
        place = self.owner.places.get(id(s))
        if place is None:
            return (yield from self.default(s))
        info = ConstantInfo(f"{s.buffer_var.name}_let", place.byte_offset, s.data)
        self.owner.constants.setdefault(id(place.pool_info), []).append(info)
        return (yield from self._let(s, place))

    def _let(self, s: Any, place: PoolAllocation) -> Any:
        kind: Any = s.buffer_var.type_annotation
        let = tir.Var(f"{s.buffer_var.name}_let", "handle", PointerType(kind.element_type, "global" if self.owner.bare else kind.storage_scope))
        self.lets[id(s.buffer_var)] = let
        body = yield s.body
        return ts.LetStmt(let, op.address_of(BufferLoad(self.pools[id(place.pool_info)], [int(place.byte_offset)])), body, s.span)


def _pool_sizes(places: Mapping[Any, PoolAllocation]) -> list[tuple[Any, int]]:
    """Each pool with the bytes that are used of it, by name."""
    sizes: dict[int, int] = {}
    pools: dict[int, Any] = {}
    for s, place in places.items():
        pool, end = place.pool_info, int(place.byte_offset) + (extents_bytes(s) or 0)
        pools[id(pool)] = pool
        sizes[id(pool)] = max(sizes.get(id(pool), 0), end)
    return sorted(((pool, sizes[key]) for key, pool in pools.items()), key=lambda item: item[0].pool_name)


def _has_resource_handle(func: PrimFunc) -> bool:
    """Whether the last parameter is no tensor."""
    return bool(func.params) and func.buffers[-1] is None


# ---------------------------------------------------------------- which pools


class _Assign(StmtMutator):
    def __init__(self, workspace: list[Any], constants: list[Any]) -> None:
        super().__init__()
        self.workspace, self.constants = workspace, constants

    def _assigned(self, s: Any, pools: list[Any]) -> Any:
        new = yield from self.default(s)
        return new if CANDIDATE_MEMORY_POOL_ATTR in s.annotations else new.replace(annotations={**s.annotations, CANDIDATE_MEMORY_POOL_ATTR: pools})

    def visit_Allocate(self, s: ts.Allocate) -> Any:
        return (yield from self._assigned(s, self.workspace))

    def visit_AllocateConst(self, s: ts.AllocateConst) -> Any:
        return (yield from self._assigned(s, self.constants))


def assign_pool_info() -> Pass:
    """The pass that tells every allocation which pools it may lie in: those of the module's attributes ``workspace_memory_pools`` and
    ``constant_memory_pools`` that its function's target reaches, else one without a limit."""
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        default = (WorkspacePoolInfo("global_workspace", []), ConstantPoolInfo("global_const_workspace", []))

        def assigned(func: Any) -> Any:
            target = func.get_attr("target")
            given = [_reached(mod.get_attr(name, None), target) for name in ("workspace_memory_pools", "constant_memory_pools")]
            return _Assign(given[0] or [default[0]], given[1] or [default[1]]).func(func)

        return mod.with_functions({g: assigned(f) if isinstance(f, PrimFunc) else f for g, f in mod.functions.items()})

    return ModulePass(run, PassInfo(0, "tir.usmp.AssignPoolInfo"))


def _reached(pools: Any, target: Any) -> list[Any]:
    """The pools of a list that a target reaches (all, where no target is known)."""
    return [p for p in getattr(pools, "pools", pools or ()) if target is None or not p.targets or any(str(t) == str(target) or t == target for t in p.targets)]


register_pass("tir.usmp.AssignPoolInfo", assign_pool_info)

__all__ = ["assign_pool_info", "create_allocates_for_io", "convert_pool_allocations_to_offsets"]
