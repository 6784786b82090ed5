"""AnnotateTarget: marks the operators that external compilers can take.

before::

    nn.relu(%x)

after, for a compiler ``c`` that has said so by ``register_op_attr("nn.relu", "target.c")``::

    compiler_end(nn.relu(compiler_begin(%x, "c")), "c")

Everything else gets marks of the compiler ``default``; a second run, for another compiler, replaces only those.
"""
from __future__ import annotations

from typing import Any, Sequence

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...ir.op import Op
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo
from ...support.errors import ArgumentError
from ..analysis.annotated_regions import DEFAULT, is_begin, is_end
from ..expr import Call, If, Let, RefCreate, RefRead, RefWrite, Tuple, TupleGetItem, Var
from ..function import Function
from ..op.annotation import compiler_begin, compiler_end
from .common import descends, map_functions, rewrite_exprs

_VALUES = (RefCreate, RefRead, RefWrite, TupleGetItem)


def _marked(make: Any, expr: RelayExpr, target: str) -> Call:
    new = make(expr, target)
    new._checked_type = expr._checked_type
    return new


def _is_composite(node: Any) -> bool:
    return isinstance(node, Function) and node.get_attr("Composite") is not None


def _looks_below(node: Any) -> bool:
    return descends(node) and not _is_composite(node)


class _Annotator:
    """Rewrites one function; ``target_of`` is the choice made for each rewritten expression."""

    def __init__(self, targets: Sequence[str], non_calls: bool) -> None:
        self.targets, self.non_calls = list(targets), non_calls
        self.target_of: dict[int, str] = {}
        self._alive: list[Any] = []

    def rule(self, old: Any, new: Any) -> RelayExpr:
        """What an expression becomes."""
        if isinstance(old, Call):
            return self._call(old, new)
        if isinstance(old, (Tuple, TupleGetItem, RefCreate, RefRead, RefWrite)):
            return self._value(old, new)
        if isinstance(old, If):
            return self._replaced(old, new, {f: self._ended(getattr(new, f)) for f in ("cond", "true_branch", "false_branch")})
        if isinstance(old, Let):
            value = new.value if isinstance(new.value, Function) else self._ended(new.value)
            return self._replaced(old, new, {"value": value, "body": self._ended(new.body)})
        if isinstance(old, Function) and not _is_composite(old) and descends(old):
            return self._replaced(old, new, {"body": self._ended(new.body)})
        return new

    def _replaced(self, old: Any, new: Any, fields: dict[str, Any]) -> RelayExpr:
        if all(getattr(new, f) is v for f, v in fields.items()):
            return new
        made = new.replace(**fields)
        made._checked_type = old._checked_type
        return made

    def _chosen(self, expr: RelayExpr, target: str) -> RelayExpr:
        self.target_of[id(expr)] = target
        self._alive.append(expr)
        return expr

    # -- calls

    def _call(self, old: Call, new: Call) -> RelayExpr:
        if is_begin(old):
            return new  # looked at with the call it belongs to
        if is_end(old):
            return self._ended_again(old, new)
        if old.args and is_begin(old.args[0]) and old.args[0].attrs.compiler != DEFAULT:
            return new
        if isinstance(old.op, Var) and not self.non_calls:
            return self._replaced(old, new, {"args": tuple(self._ended(a) for a in new.args)})
        target = self._best(old)
        args, _ = self._entered(new.args, target)
        return self._chosen(self._replaced(old, new, {"args": tuple(args)}), target)

    def _ended_again(self, old: Call, new: Call) -> RelayExpr:
        """An end of an earlier run, with the compiler that has been chosen for what it ends by now."""
        target = self.target_of.get(id(new.args[0]))
        if target is None:
            self._chosen(new.args[0], str(new.attrs.compiler))
        return new if target in (None, str(new.attrs.compiler)) else _marked(compiler_end, new.args[0], target)

    def _best(self, call: Call) -> str:
        """The first of the compilers that takes a call."""
        if isinstance(call.op, Op):
            return next((t for t in self.targets if _takes(t, call)), DEFAULT)
        if _is_composite(call.op):
            maker, dot, _ = str(call.op.get_attr("Composite")).partition(".")  # type: ignore[attr-defined]
            return maker if dot and maker in self.targets else DEFAULT
        return DEFAULT

    # -- other values

    def _value(self, old: Any, new: Any) -> RelayExpr:
        children = new.fields if isinstance(new, Tuple) else new.children()
        if self.non_calls:
            parts, target = self._entered(children, "")
            return self._chosen(_with_parts(self, old, new, parts), target)
        return _with_parts(self, old, new, [self._ended(c) for c in children])

    # -- marks

    def _entered(self, args: Sequence[RelayExpr], target: str) -> tuple[list[RelayExpr], str]:
        """The arguments with a begin each, and their compiler: ``target``, or that of all arguments when it is not given."""
        found = [self._argument(a) for a in args]
        sources = {source for _, _, source in found}
        chosen = target or (next(iter(sources)) if len(sources) == 1 else DEFAULT if sources else "")
        return [expr if ready else _marked(compiler_begin, expr, chosen) for expr, ready, _ in found], chosen

    def _argument(self, arg: RelayExpr) -> tuple[RelayExpr, bool, str]:
        """An argument with its end, whether it has its begin already, and the compiler it comes from."""
        if is_begin(arg):
            _, _, source = self._argument(arg.args[0])  # type: ignore[attr-defined]
            return (arg, True, source) if arg.attrs.compiler != DEFAULT else (arg.args[0], False, source)  # type: ignore[attr-defined]
        if is_end(arg):
            return arg, False, str(arg.attrs.compiler)  # type: ignore[attr-defined]
        source = self.target_of.get(id(arg))
        if source is None:
            return arg, False, DEFAULT
        return (arg if isinstance(arg, Call) and not arg.args else _marked(compiler_end, arg, source)), False, source

    def _ended(self, expr: RelayExpr) -> RelayExpr:
        """``expr`` with an end, where it was begun."""
        target = self.target_of.get(id(expr))
        begun = isinstance(expr, _VALUES) or isinstance(expr, Call) and expr.args or isinstance(expr, Tuple) and expr.fields
        return _marked(compiler_end, expr, target) if target is not None and begun and not is_end(expr) else expr


def _with_parts(annotator: _Annotator, old: Any, new: Any, parts: Sequence[RelayExpr]) -> RelayExpr:
    """A tuple, field or reference with other parts."""
    if isinstance(new, Tuple):
        return annotator._replaced(old, new, {"fields": tuple(parts)})
    names = {TupleGetItem: ("tuple_value",), RefCreate: ("value",), RefRead: ("ref",), RefWrite: ("ref", "value")}[type(new)]
    return annotator._replaced(old, new, dict(zip(names, parts)))


def _takes(target: str, call: Call) -> bool:
    check = call.op.get_attr(f"target.{target}")  # type: ignore[attr-defined]
    return check is not None and bool(check(call))


def AnnotateTarget(targets: str | Sequence[str], include_non_call_ops: bool = True) -> Pass:
    """Marks regions for external compilers.

    Parameters
    ----------
    targets: names of compilers, the preferred first.  A compiler takes an operator's call when the operator has an attribute
        ``target.<name>``, a function of the call that says so; it takes calls of functions with ``Composite="<name>.…"``.
    include_non_call_ops: whether tuples, their fields and references go with the operators around them.
    """
    names = [targets] if isinstance(targets, str) else [str(t) for t in targets]
    if not names or not all(names):
        raise ArgumentError(f"AnnotateTarget: the names of compilers are expected, got {targets!r}")

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        from ..op import contrib  # noqa: F401  (registers what the compilers known here take)
        from .infer_type import InferType

        def annotate(func: Function) -> Function:
            return rewrite_exprs(func, _Annotator(names, include_non_call_ops).rule, below=_looks_below)  # type: ignore[return-value]

        return InferType()(map_functions(mod, annotate))

    return ModulePass(run, PassInfo(0, "AnnotateTarget", ["InferType"]))


__all__ = ["AnnotateTarget"]
