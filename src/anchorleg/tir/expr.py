"""Expressions of the loop language.

Operators on expressions (``a + b``, ``a < b`` …) are installed on ``PrimExpr`` by ``tir/op.py``, where constant folding and
type matching live; the constructors here take operands that already agree in dtype and build exactly the node named.
"""
from __future__ import annotations

from typing import Any as _Any, Sequence

from ..ir.expr import INDEX_DTYPE, Any, FloatImm, IntImm, PrimExpr, Range
from ..ir.node import BIND, BINDS, CHILD, CHILDREN, DATA, Node
from ..ir.op import Op
from ..support.errors import UnsupportedOpError

__all__ = ["INDEX_DTYPE", "Any", "FloatImm", "IntImm", "PrimExpr", "Range", "Var", "SizeVar", "IterVar", "StringImm", "Cast",
           "BinaryExpr", "Add", "Sub", "Mul", "Div", "Mod", "FloorDiv", "FloorMod", "Min", "Max", "CmpExpr", "EQ", "NE", "LT",
           "LE", "GT", "GE", "LogicalExpr", "And", "Or", "Not", "Select", "Ramp", "Broadcast", "Shuffle", "Let", "Call",
           "CommReducer", "Reduce"]


class Var(PrimExpr):
    """A scalar variable (or, with dtype ``handle``, a pointer; ``type_annotation`` then says into what)."""

    __slots__ = ("name", "type_annotation")
    FIELDS = {"name": DATA, "dtype": DATA, "type_annotation": CHILD}
    BINDABLE, LABELS = True, ("name",)
    __hash__ = PrimExpr.__hash__

    def __init__(self, name: str, dtype: str = INDEX_DTYPE, type_annotation: _Any = None, span: _Any = None) -> None:
        self.name, self.dtype, self.type_annotation, self.span = name, str(dtype), type_annotation, span


class SizeVar(Var):
    """A variable known to be at least 0: a tensor's dimension."""

    __slots__ = ()
    __hash__ = PrimExpr.__hash__


class IterVar(Node):
    """An axis: a variable and the range it runs over.

    ``iter_type`` is one of the class constants; ``thread_tag`` names a hardware axis, else ``""``.
    """

    __slots__ = ("dom", "var", "iter_type", "thread_tag")
    FIELDS = {"dom": CHILD, "var": BIND, "iter_type": DATA, "thread_tag": DATA}
    DataPar, ThreadIndex, CommReduce, Ordered, Opaque, Unrolled, Vectorized, Parallelized, Tensorized = range(9)

    def __init__(self, dom: Range | None, var: Var | str, iter_type: int = 0, thread_tag: str = "") -> None:
        self.dom, self.var = dom, Var(var) if isinstance(var, str) else var
        self.iter_type, self.thread_tag, self.span = iter_type, thread_tag, None


class StringImm(PrimExpr):
    """A string constant (an argument of an intrinsic)."""

    __slots__ = ("value",)
    FIELDS = {"value": DATA}
    __hash__ = PrimExpr.__hash__

    def __init__(self, value: str) -> None:
        self.value, self.dtype, self.span = value, "handle", None


class Cast(PrimExpr):
    """``value`` converted to ``dtype``."""

    __slots__ = ("value",)
    FIELDS = {"dtype": DATA, "value": CHILD}
    __hash__ = PrimExpr.__hash__

    def __init__(self, dtype: str, value: PrimExpr, span: _Any = None) -> None:
        self.dtype, self.value, self.span = str(dtype), _number(value), span


def _number(value: _Any) -> PrimExpr:
    """An expression as it is; a Python number as a constant."""
    if isinstance(value, PrimExpr):
        return value
    from .op import const

    return const(value)


class BinaryExpr(PrimExpr):
    """Two operands of one dtype, which is the result's."""

    __slots__ = ("a", "b")
    FIELDS = {"a": CHILD, "b": CHILD}
    __hash__ = PrimExpr.__hash__

    def __init__(self, a: PrimExpr, b: PrimExpr, span: _Any = None) -> None:
        self.a, self.b, self.dtype, self.span = a, b, a.dtype, span

    def _reset_caches(self, copy: Node) -> None:
        copy.dtype = self.dtype  # type: ignore[attr-defined]


class Add(BinaryExpr):
    """a + b"""

    __slots__ = ()


class Sub(BinaryExpr):
    """a - b"""

    __slots__ = ()


class Mul(BinaryExpr):
    """a * b"""

    __slots__ = ()


class Div(BinaryExpr):
    """a / b; for integers the quotient is cut towards zero, as in C"""

    __slots__ = ()


class Mod(BinaryExpr):
    """The remainder of the division cut towards zero, as in C"""

    __slots__ = ()


class FloorDiv(BinaryExpr):
    """floor(a / b)"""

    __slots__ = ()


class FloorMod(BinaryExpr):
    """a - floor(a / b) * b; has the sign of b"""

    __slots__ = ()


class Min(BinaryExpr):
    """The smaller; a NaN operand gives NaN"""

    __slots__ = ()


class Max(BinaryExpr):
    """The larger; a NaN operand gives NaN"""

    __slots__ = ()


def bool_like(dtype: str) -> str:
    """The bool dtype with the lanes of ``dtype``."""
    lanes = dtype.rpartition("x")[2] if "x" in dtype else ""
    return f"boolx{lanes}" if lanes.isdigit() else "bool"


class CmpExpr(BinaryExpr):
    """A comparison; the result is bool."""

    __slots__ = ()
    __hash__ = PrimExpr.__hash__

    def __init__(self, a: PrimExpr, b: PrimExpr, span: _Any = None) -> None:
        super().__init__(a, b, span)
        self.dtype = bool_like(a.dtype)


class EQ(CmpExpr):
    """a == b; its truth in Python is that of identity (or of equal constants), so that nodes can be dict keys"""

    __slots__ = ()

    def __bool__(self) -> bool:
        a, b = self.a, self.b
        if isinstance(a, (IntImm, FloatImm)) and isinstance(b, (IntImm, FloatImm)):
            return a.value == b.value
        return a is b


class NE(CmpExpr):
    """a != b"""

    __slots__ = ()

    def __bool__(self) -> bool:
        return not bool(EQ(self.a, self.b))


class LT(CmpExpr):
    """a < b"""

    __slots__ = ()


class LE(CmpExpr):
    """a <= b"""

    __slots__ = ()


class GT(CmpExpr):
    """a > b"""

    __slots__ = ()


class GE(CmpExpr):
    """a >= b"""

    __slots__ = ()


class LogicalExpr(BinaryExpr):
    """Operands and result are bool."""

    __slots__ = ()


class And(LogicalExpr):
    """a and b"""

    __slots__ = ()


class Or(LogicalExpr):
    """a or b"""

    __slots__ = ()


class Not(PrimExpr):
    """not a"""

    __slots__ = ("a",)
    FIELDS = {"a": CHILD}
    __hash__ = PrimExpr.__hash__

    def __init__(self, a: PrimExpr, span: _Any = None) -> None:
        self.a, self.dtype, self.span = a, a.dtype, span

    def _reset_caches(self, copy: Node) -> None:
        copy.dtype = self.dtype  # type: ignore[attr-defined]


class _Typed(PrimExpr):
    """Keeps ``dtype`` on replacement, for nodes whose dtype follows from their operands."""

    __slots__ = ()
    __hash__ = PrimExpr.__hash__

    def _reset_caches(self, copy: Node) -> None:
        copy.dtype = self.dtype  # type: ignore[attr-defined]


class Select(_Typed):
    """``true_value if condition else false_value``; both are evaluated, so neither may fault."""

    __slots__ = ("condition", "true_value", "false_value")
    FIELDS = {"condition": CHILD, "true_value": CHILD, "false_value": CHILD}
    __hash__ = PrimExpr.__hash__

    def __init__(self, condition: PrimExpr, true_value: PrimExpr, false_value: PrimExpr, span: _Any = None) -> None:
        if not (isinstance(true_value, PrimExpr) and isinstance(false_value, PrimExpr) and isinstance(condition, PrimExpr)):
            from .op import _expr, match_types

            condition, (true_value, false_value) = _expr(condition), match_types(true_value, false_value)
        self.condition, self.true_value, self.false_value = condition, true_value, false_value
        self.dtype, self.span = true_value.dtype, span


def _lanes(value: _Any) -> int:
    """A number of lanes, which is a constant."""
    if isinstance(value, (int, IntImm)):
        return int(value)
    raise UnsupportedOpError(f"a vector with {value} lanes: scalable vectors are not supported, a constant is expected")


class Ramp(_Typed):
    """The vector (base, base + stride, …) of ``lanes`` entries."""

    __slots__ = ("base", "stride", "lanes")
    FIELDS = {"base": CHILD, "stride": CHILD, "lanes": DATA}
    __hash__ = PrimExpr.__hash__

    def __init__(self, base: PrimExpr, stride: PrimExpr, lanes: int, span: _Any = None) -> None:
        base = _number(base)
        if not isinstance(stride, PrimExpr):
            stride = IntImm(base.dtype, stride)
        self.base, self.stride, self.lanes, self.span = base, stride, _lanes(lanes), span
        self.dtype = f"{base.dtype}x{self.lanes}"


class Broadcast(_Typed):
    """A vector of ``lanes`` copies of ``value``."""

    __slots__ = ("value", "lanes")
    FIELDS = {"value": CHILD, "lanes": DATA}
    __hash__ = PrimExpr.__hash__

    def __init__(self, value: PrimExpr, lanes: int, span: _Any = None) -> None:
        value = _number(value)
        self.value, self.lanes, self.span = value, _lanes(lanes), span
        self.dtype = f"{value.dtype}x{self.lanes}"


class Shuffle(PrimExpr):
    """Lanes ``indices`` (ints) picked from the concatenation of ``vectors``."""

    __slots__ = ("vectors", "indices")
    FIELDS = {"dtype": DATA, "vectors": CHILDREN, "indices": DATA}
    __hash__ = PrimExpr.__hash__

    def __init__(self, vectors: Sequence[PrimExpr], indices: Sequence[int], span: _Any = None) -> None:
        self.vectors, self.indices, self.span = tuple(vectors), tuple(int(i) for i in indices), span
        base = vectors[0].dtype.split("x")[0] if vectors[0].dtype[-1].isdigit() else vectors[0].dtype
        self.dtype = base if len(self.indices) == 1 else f"{base}x{len(self.indices)}"


class Let(_Typed):
    """``let var = value in body``, as an expression."""

    __slots__ = ("var", "value", "body")
    FIELDS = {"value": CHILD, "var": BIND, "body": CHILD}
    __hash__ = PrimExpr.__hash__

    def __init__(self, var: Var, value: PrimExpr, body: PrimExpr, span: _Any = None) -> None:
        self.var, self.value, self.body, self.dtype, self.span = var, value, body, body.dtype, span


class Call(PrimExpr):
    """A call of an intrinsic (``op`` is an Op such as ``tir.exp``) or of a global function."""

    __slots__ = ("op", "args")
    FIELDS = {"dtype": DATA, "op": CHILD, "args": CHILDREN}
    __hash__ = PrimExpr.__hash__

    def __init__(self, dtype: str, op: Op | _Any, args: Sequence[PrimExpr], span: _Any = None) -> None:
        self.dtype, self.op, self.args, self.span = str(dtype), Op.get(op) if isinstance(op, str) else op, tuple(args), span


class CommReducer(Node):
    """A commutative reduction: ``result`` combines ``lhs`` and ``rhs`` (tuples of vars), starting from ``identity_element``."""

    __slots__ = ("lhs", "rhs", "result", "identity_element")
    FIELDS = {"lhs": BINDS, "rhs": BINDS, "result": CHILDREN, "identity_element": CHILDREN}

    def __init__(self, lhs: Sequence[Var], rhs: Sequence[Var], result: Sequence[PrimExpr], identity_element: Sequence[PrimExpr]) -> None:
        self.lhs, self.rhs = tuple(lhs), tuple(rhs)
        self.result, self.identity_element, self.span = tuple(result), tuple(identity_element), None


class Reduce(_Typed):
    """Output ``value_index`` of reducing ``source`` over ``axis`` where ``condition`` holds; ``init`` adds start values."""

    __slots__ = ("combiner", "source", "axis", "condition", "value_index", "init")
    FIELDS = {"combiner": CHILD, "axis": CHILDREN, "source": CHILDREN, "condition": CHILD, "value_index": DATA, "init": CHILDREN}
    __hash__ = PrimExpr.__hash__

    def __init__(self, combiner: CommReducer, source: Sequence[PrimExpr], axis: Sequence[IterVar], condition: PrimExpr,
                 value_index: int = 0, init: Sequence[PrimExpr] = (), span: _Any = None) -> None:
        self.combiner, self.source, self.axis, self.condition = combiner, tuple(source), tuple(axis), condition
        self.value_index, self.init, self.dtype, self.span = value_index, tuple(init), source[value_index].dtype, span
