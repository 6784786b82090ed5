"""EliminateCommonSubexpr: equal pure calls of the same arguments are computed once.

before::

    add(nn.relu(add(%x, 1f)), nn.relu(add(%x, 1f)))

after::

    %0 = nn.relu(add(%x, 1f)); add(%0, %0)
"""
from __future__ import annotations

from typing import Any, Callable

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...ir.op import Op
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ..expr import Call, Constant, Tuple, TupleGetItem
from ..function import Function
from .common import map_functions, rewrite_exprs, scalar_value

Skip = Callable[[RelayExpr], bool]


class _Merger:
    """Finds, for each rebuilt expression, an equal earlier one."""

    def __init__(self, skip: Skip | None) -> None:
        self.skip = skip
        self.known: dict[Any, RelayExpr] = {}

    def rule(self, old: RelayExpr, new: RelayExpr) -> RelayExpr:
        key = self._key(new)
        if key is None or self.skip is not None and self.skip(old):
            return new
        return self.known.setdefault(key, new)

    def _key(self, node: RelayExpr) -> Any:
        if isinstance(node, Call):
            return self._call_key(node)
        if isinstance(node, TupleGetItem):
            return "get", id(node.tuple_value), node.index
        if isinstance(node, Constant) and scalar_value(node) is not None:
            return "const", str(node.data.dtype), tuple(node.data.shape), node.data.as_numpy_view().tobytes()
        return None

    def _call_key(self, call: Call) -> Any:
        if not isinstance(call.op, Op) or call.op.get_attr("TOpIsStateful"):
            return None
        args = tuple(tuple(id(f) for f in a.fields) if isinstance(a, Tuple) else id(a) for a in call.args)
        return call.op.name, args, repr(call.attrs)


def eliminate(func: Function, skip: Skip | None = None) -> Function:
    """One function with equal calls merged.  Inner functions share with outer ones only what they use anyway."""
    return rewrite_exprs(func, _Merger(skip).rule)  # type: ignore[return-value]


def EliminateCommonSubexpr(fskip: Skip | None = None) -> Pass:
    """Merges equal calls; ``fskip(expr)`` true leaves an expression alone."""

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        return map_functions(mod, lambda f: eliminate(f, fskip))

    return ModulePass(run, PassInfo(3, "EliminateCommonSubexpr", ["InferType"]))


register_pass("EliminateCommonSubexpr", EliminateCommonSubexpr)
