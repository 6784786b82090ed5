"""RemoveStandaloneReshapes: lowered calls that only reshape take the memory of what they reshape.

Before → after::

    let %x = call_lowered(@multiply, (%a, %b));       let %x = call_lowered(@multiply, (%a, %b));
    let %y = call_lowered(@reshape, (%x,));           let %y = call_lowered(@multiply, (%a, %b));     (the same call, run once)

It runs after LowerTE, where types matter no longer.  Functions that nothing calls any more go.
"""
from __future__ import annotations

from typing import Any

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ...ir.visit import Walker
from ..expr import Call, Let, Tuple, Var
from ..op.call import is_call_lowered
from .common import is_op
from .remove_unused_functions import reachable


def RemoveStandaloneReshapes() -> Pass:
    """The pass; see the module's description."""
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        if "main" not in mod:
            return mod
        main = mod["main"]
        body = _Remover().visit(main.body)
        if body is main.body:
            return mod
        new = mod.copy()
        new["main"] = main.replace(body=body)
        unused = reachable(mod, ["main"]) - reachable(new, ["main"])
        return new.with_functions({v: f for v, f in new.functions.items() if v not in unused})

    return ModulePass(run, PassInfo(0, "RemoveStandaloneReshapes", []))


class _Remover(Walker):
    """Knows which lowered call each let-bound variable holds."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[int, Call] = {}

    def visit_Let(self, let: Let) -> Any:
        value = yield let.value
        call = value.args[0] if is_op(value, "on_device") else value
        if is_call_lowered(call):
            self.calls[id(let.var)] = call
        body = yield let.body
        return let.replace(value=value, body=body)

    def visit_Call(self, call: Call) -> Any:
        new = yield from self.visit_default(call)
        if not _reshapes(new) or not isinstance(new.args[1], Tuple) or not new.args[1].fields:
            return new
        first: RelayExpr = new.args[1].fields[0]
        return self.calls.get(id(first), new) if isinstance(first, Var) else new


def _reshapes(call: Any) -> bool:
    """Whether a call is one of a lowered function that only reshapes."""
    if not is_call_lowered(call):
        return False
    attrs = dict(getattr(call.attrs, "metadata", None) or {}).get("relay_attrs")
    return bool(attrs is not None and dict(attrs).get("relay.reshape_only"))


register_pass("RemoveStandaloneReshapes", RemoveStandaloneReshapes)
