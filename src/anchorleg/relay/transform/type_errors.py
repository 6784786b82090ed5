"""Messages of type inference: what is wrong, in which function, at which expression, and where that came from."""
from __future__ import annotations

from typing import Any, Callable, Sequence

from ...ir.diagnostics import report
from ...ir.expr import GlobalVar, RelayExpr
from ...ir.node import Node
from ...ir.op import Op
from ...ir.span import SequentialSpan, Span
from ...ir.type import Type
from ...support.errors import TypeMismatchError
from ..adt import Constructor
from ..expr import Call, Constant, TupleGetItem, Var
from ..op.type_relations import show

TypeOf = Callable[[Node], "Type | None"]


class TypeProblem:
    """One thing that is wrong: the function, the expression, and the text."""

    __slots__ = ("function", "site", "text")

    def __init__(self, function: str, site: Any, text: str) -> None:
        self.function, self.site, self.text = function, site, text


def to_exception(problems: Sequence[TypeProblem], type_of: TypeOf) -> TypeMismatchError:
    """One exception that tells of all problems, in the order in which they were met."""
    parts = [_paragraph(p, type_of) for p in problems]
    report(None, zip((getattr(p.site, "span", None) for p in problems), parts))
    head = f"{len(parts)} type errors:\n" if len(parts) > 1 else ""
    return TypeMismatchError(head + "\n".join(parts))


def _paragraph(problem: TypeProblem, type_of: TypeOf) -> str:
    place = f"in @{problem.function}: " if problem.function else ""
    name = _callee(problem.site)
    named = name and not problem.text.startswith(f"{name}: ")
    lines = [f"{place}{name + ': ' if named else ''}{problem.text}"]
    line, start, width = expression_line(problem.site, type_of)
    lines += [f"  | {line}", f"  | {' ' * start}{'^' * width}"]
    origin = _origin(getattr(problem.site, "span", None))
    return "\n".join(lines + ([f"  from {origin}"] if origin else []))


def _origin(span: Any) -> str:
    if isinstance(span, SequentialSpan):
        return ", ".join(dict.fromkeys(repr(s) for s in span.spans))
    return repr(span) if isinstance(span, Span) else ""


def _callee(site: Any) -> str:
    if not isinstance(site, Call):
        return ""
    op = site.op
    if isinstance(op, Op):
        return op.name
    return f"@{op.name_hint}" if isinstance(op, GlobalVar) else f"%{op.name_hint}" if isinstance(op, Var) else ""


def expression_line(site: Any, type_of: TypeOf) -> tuple[str, int, int]:
    """An expression on one line, with the types of its parts, and the columns that a caret should mark."""
    if isinstance(site, Call):
        head = _callee(site) or _short(site.op)
        args = ", ".join(_typed(a, type_of) for a in site.args)
        return f"{head}({args}){_attributes(site.attrs)}", 0, max(1, len(head))
    if isinstance(site, RelayExpr):
        text = _short(site)
        parts = [c for c in site.children() if isinstance(c, RelayExpr)]
        inner = f" of {', '.join(_typed(c, type_of) for c in parts[:4])}" if parts else ""
        return text + inner, 0, len(text)
    return type(site).__name__, 0, len(type(site).__name__)


def _attributes(attrs: Any) -> str:
    shown = [] if attrs is None else [f"{k}={v!r}" for k, v in attrs.items()]
    text = ", ".join(shown)
    return f" [{text if len(text) <= 160 else text[:157] + '...'}]" if shown else ""


def _typed(expr: Any, type_of: TypeOf) -> str:
    known = type_of(expr)
    return _short(expr) if known is None else f"{_short(expr)}: {show(known)}"


def _short(expr: Any) -> str:
    if isinstance(expr, Var):
        return f"%{expr.name_hint}"
    if isinstance(expr, GlobalVar):
        return f"@{expr.name_hint}"
    if isinstance(expr, Constructor):
        return expr.name_hint
    if isinstance(expr, Op):
        return expr.name
    if isinstance(expr, Call):
        return f"{_callee(expr) or 'call'}(…)"
    if isinstance(expr, TupleGetItem):
        return f"{_short(expr.tuple_value) if not isinstance(expr.tuple_value, TupleGetItem) else '…'}.{expr.index}"
    return "constant" if isinstance(expr, Constant) else type(expr).__name__.lower()
