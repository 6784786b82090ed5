"""How a function ``PrimFunc → PrimFunc`` becomes a pass over modules, and what several passes share."""
from __future__ import annotations

from typing import Any, Callable, Mapping

from ...ir.expr import IntImm, PrimExpr
from ...ir.module import IRModule
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ...support.errors import ArgumentError
from .. import expr as tir
from .. import stmt as ts
from ..buffer import Buffer
from ..function import PrimFunc
from ..functor import StmtMutator, substitute

FuncRewrite = Callable[[PrimFunc], PrimFunc]


def func_pass(name: str, rewrite: Callable[..., PrimFunc], opt_level: int = 0) -> Callable[..., Pass]:
    """Registers ``tir.<name>`` and gives its factory; arguments of the factory are handed to ``rewrite`` after the function."""
    def factory(*args: Any, **kwargs: Any) -> Pass:
        def run(mod: IRModule, ctx: PassContext) -> IRModule:
            return mod.with_functions({g: rewrite(f, *args, **kwargs) if isinstance(f, PrimFunc) else f for g, f in mod.functions.items()})

        return ModulePass(run, PassInfo(opt_level, f"tir.{name}"))

    factory.__name__ = factory.__qualname__ = name
    factory.__doc__ = rewrite.__doc__
    register_pass(f"tir.{name}", factory)
    return factory


def prim_func_pass(pass_func: Any = None, opt_level: int | None = None, name: str | None = None, required: Any = None,
                   traceable: bool = False) -> Any:
    """Makes a pass of a function ``(func, mod, ctx) -> func`` (or of a class with ``transform_function``)."""
    if opt_level is None:
        raise ArgumentError("prim_func_pass: opt_level is required")
    info = lambda target: PassInfo(opt_level, name or target.__name__, required, traceable)  # noqa: E731

    def over_module(fn: Callable[..., PrimFunc]) -> Callable[[IRModule, PassContext], IRModule]:
        return lambda mod, ctx: mod.with_functions({g: fn(f, mod, ctx) if isinstance(f, PrimFunc) else f for g, f in mod.functions.items()})

    def create(target: Any) -> Any:
        if not isinstance(target, type):
            return ModulePass(over_module(target), info(target))

        def make(*args: Any, **kwargs: Any) -> Pass:
            return ModulePass(over_module(target(*args, **kwargs).transform_function), info(target))

        make.__name__, make.__doc__ = target.__name__, target.__doc__
        return make

    return create(pass_func) if pass_func is not None else create


def const_int(e: PrimExpr) -> int | None:
    """The value of an integer constant, else None."""
    return e.value if type(e) is IntImm else None


def is_no_op(s: ts.Stmt) -> bool:
    """Whether a statement certainly does nothing."""
    return isinstance(s, ts.Evaluate) and isinstance(s.value, (IntImm, tir.Var, tir.FloatImm))


class _Refresh(StmtMutator):
    """Gives every variable and buffer bound inside a statement a new identity."""

    def __init__(self, values: Mapping[tir.Var, PrimExpr]) -> None:
        super().__init__()
        self.vars: dict[int, PrimExpr] = {id(v): e for v, e in values.items()}
        self.buffers: dict[int, tuple[Buffer, Buffer]] = {}

    def mutate_Var(self, v: tir.Var) -> PrimExpr:
        return self.vars.get(id(v), v)

    def enter_Let(self, e: tir.Let) -> PrimExpr:
        return substitute_let(self, e)

    def new_var(self, v: tir.Var) -> tir.Var:
        new = self.vars[id(v)] = type(v)(v.name, v.dtype, v.type_annotation)
        return new

    def buffer(self, b: Buffer) -> Buffer:
        hit = self.buffers.get(id(b))
        if hit is None:
            data = self.vars.get(id(b.data), b.data)
            new = b.replace(data=data if isinstance(data, tir.Var) else b.data, shape=tuple(map(self.expr, b.shape)),
                            strides=tuple(map(self.expr, b.strides)), elem_offset=self.expr(b.elem_offset))
            hit = self.buffers[id(b)] = (b, new)
        return hit[1]

    def visit_For(self, s: ts.For) -> Any:
        low, extent = self.expr(s.min), self.expr(s.extent)
        v = self.new_var(s.loop_var)
        return s.replace(loop_var=v, min=low, extent=extent, body=(yield s.body))

    def visit_LetStmt(self, s: ts.LetStmt) -> Any:
        value = self.expr(s.value)
        v = self.new_var(s.var)
        return s.replace(var=v, value=value, body=(yield s.body))

    def visit_Allocate(self, s: ts.Allocate) -> Any:
        v = self.new_var(s.buffer_var)
        extents = tuple(self.expr(e) for e in s.extents)
        return s.replace(buffer_var=v, extents=extents, body=(yield s.body))

    def visit_BufferRealize(self, s: ts.BufferRealize) -> Any:
        self.new_var(s.buffer.data)
        new = self.buffer(s.buffer)
        if new is s.buffer:
            new = s.buffer.replace(data=self.vars[id(s.buffer.data)])
            self.buffers[id(s.buffer)] = (s.buffer, new)
        return s.replace(buffer=new, bounds=tuple(map(self.range, s.bounds)), body=(yield s.body))


def substitute_let(m: _Refresh, e: tir.Let) -> PrimExpr:
    """A let expression with a new variable."""
    value = m.expr(e.value)
    return tir.Let(m.new_var(e.var), value, m.expr(e.body))


def fresh_copy(s: ts.Stmt, values: Mapping[tir.Var, PrimExpr] | None = None) -> ts.Stmt:
    """A copy of the statement whose loop variables, let variables and local buffers are its own; ``values`` replaces free variables."""
    return _Refresh(values or {}).stmt(s)


__all__ = ["FuncRewrite", "const_int", "fresh_copy", "func_pass", "is_no_op", "prim_func_pass", "substitute"]
