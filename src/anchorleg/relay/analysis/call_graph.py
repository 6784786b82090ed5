"""Which function of a module refers to which."""
from __future__ import annotations

from ...ir.expr import BaseFunc, GlobalVar
from ...ir.module import IRModule
from ...support.errors import ArgumentError
from ..function import Function
from .variables import exprs


class CallGraph:
    """The references between the functions of a module: of each function, the global names it mentions, one entry per name."""

    def __init__(self, module: IRModule) -> None:
        self.module = module
        self.calls: dict[GlobalVar, list[GlobalVar]] = {g: _mentions(f) for g, f in module.functions.items()}
        self.references: dict[GlobalVar, int] = {g: 0 for g in self.calls}
        for callees in list(self.calls.values()):
            for callee in callees:
                self.references[callee] = self.references.get(callee, 0) + 1
                self.calls.setdefault(callee, [])

    def ref_count(self, var: str | GlobalVar) -> int:
        """How many functions refer to ``var``."""
        return self.references[self._global(var)]

    def global_call_count(self, var: str | GlobalVar) -> int:
        """How many functions ``var`` refers to."""
        return len(self.calls[self._global(var)])

    def is_recursive(self, var: str | GlobalVar) -> bool:
        """Whether ``var`` refers to itself."""
        gvar = self._global(var)
        return gvar in self.calls[gvar]

    def callees(self, var: str | GlobalVar) -> list[GlobalVar]:
        """The functions ``var`` refers to."""
        return list(self.calls[self._global(var)])

    def topological_order(self) -> list[GlobalVar]:
        """Every function, callers before callees where there is no recursion; those nobody refers to come first."""
        order: list[GlobalVar] = []
        done: set[GlobalVar] = set()
        for root in sorted(self.calls, key=lambda g: (self.references[g] > 0, g.name_hint)):
            stack = [(root, False)]
            while stack:
                gvar, ready = stack.pop()
                if ready:
                    order.append(gvar)
                elif gvar not in done:
                    done.add(gvar)
                    stack.append((gvar, True))
                    stack.extend((c, False) for c in self.calls[gvar])
        return order[::-1]

    def reachable(self, roots: list[str | GlobalVar]) -> set[GlobalVar]:
        """The given functions and everything they lead to."""
        found: set[GlobalVar] = set()
        stack = [self._global(r) for r in roots]
        while stack:
            gvar = stack.pop()
            if gvar not in found:
                found.add(gvar)
                stack.extend(self.calls[gvar])
        return found

    def print_var(self, var: str | GlobalVar) -> str:
        """One function's entry as text."""
        gvar = self._global(var)
        lines = [f"Call graph node: {gvar.name_hint},  #refs = {self.references[gvar]}"]
        lines.extend(f"  call site: <{gvar.name_hint}> calls {callee.name_hint}" for callee in self.calls[gvar])
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        return "CallGraph:\n" + "\n".join(self.print_var(g) for g in self.topological_order())

    def _global(self, var: str | GlobalVar) -> GlobalVar:
        if isinstance(var, str):
            var = self.module.get_global_var(var)
        if var not in self.calls:
            raise ArgumentError(f"the call graph has no function {getattr(var, 'name_hint', var)!r}; "
                                f"it has: {', '.join(g.name_hint for g in self.calls)}")
        return var


def _mentions(func: BaseFunc) -> list[GlobalVar]:
    return [n for n in exprs(func) if isinstance(n, GlobalVar)] if isinstance(func, Function) else []
