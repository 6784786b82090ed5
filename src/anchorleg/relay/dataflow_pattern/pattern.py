"""The patterns, and the short ways to write them."""
from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence

from ...ir.expr import RelayExpr
from ...ir.node import ATTRS, CHILD, DATA, Node
from ...ir.op import Op
from ...ir.type import Type
from ...ir.visit import Walker


class DFPattern(Node):
    """Base of patterns.  Calling one gives the pattern of a call; ``|`` an alternative; ``+ - * /`` the operators."""

    __slots__ = ()
    __hash__ = Node.__hash__

    def __call__(self, *args: Any) -> CallPattern:
        return CallPattern(self, None if len(args) == 1 and args[0] is None else args)

    def __or__(self, other: DFPattern) -> AltPattern:
        return AltPattern(self, other)

    def __add__(self, other: DFPattern) -> CallPattern:
        return is_op("add")(self, other)

    def __sub__(self, other: DFPattern) -> CallPattern:
        return is_op("subtract")(self, other)

    def __mul__(self, other: DFPattern) -> CallPattern:
        return is_op("multiply")(self, other)

    def __truediv__(self, other: DFPattern) -> CallPattern:
        return is_op("divide")(self, other)

    def has_attr(self, attrs: Mapping[str, Any]) -> AttrPattern:
        """This pattern, where the call, operator or function also has these attributes."""
        return AttrPattern(self, attrs)

    def has_type(self, ttype: Type) -> TypePattern:
        """This pattern, where the expression also has this type."""
        return TypePattern(self, ttype)

    def has_dtype(self, dtype: str) -> DataTypePattern:
        """This pattern, where the expression is also a tensor of this dtype."""
        return DataTypePattern(self, dtype)

    def has_shape(self, shape: Sequence[Any]) -> ShapePattern:
        """This pattern, where the expression is also a tensor of this shape."""
        return ShapePattern(self, shape)

    def dominates(self, parent: DFPattern, path: DFPattern | None = None) -> DominatorPattern:
        """This pattern, where every way up from it leads over ``path`` (default: anything) to ``parent``."""
        return DominatorPattern(parent, wildcard() if path is None else path, self)

    def optional(self, option_constructor: Callable[[DFPattern], DFPattern]) -> AltPattern:
        """This pattern, or what ``option_constructor`` makes around it."""
        return self | option_constructor(self)

    def match(self, expr: RelayExpr) -> bool:
        """Whether ``expr`` fits this pattern."""
        from .matcher import match

        return match(self, expr)

    def partition(self, expr: RelayExpr, attrs: Mapping[str, Any] | None = None,
                  check: Callable[[RelayExpr], bool] = lambda x: True) -> RelayExpr:
        """``expr`` with every fitting part turned into a call of a function of its own."""
        from .rewrite import partition

        return partition(self, expr, attrs, check)

    def __repr__(self) -> str:
        return _Text().visit(self)

    def astext(self, show_meta_data: bool = True, annotate: Any = None) -> str:
        """The pattern as text."""
        return repr(self)


class ExprPattern(DFPattern):
    """Exactly this expression (structurally)."""

    __slots__ = ("expr",)
    FIELDS = {"expr": DATA}

    def __init__(self, expr: RelayExpr) -> None:
        self.expr, self.span = expr, None


class VarPattern(DFPattern):
    """A variable, of that name if one is given."""

    __slots__ = ("name",)
    FIELDS = {"name": DATA}

    def __init__(self, name_hint: str = "") -> None:
        self.name, self.span = name_hint, None


class ConstantPattern(DFPattern):
    """Any constant."""

    __slots__ = ()

    def __init__(self) -> None:
        self.span = None


class CallPattern(DFPattern):
    """A call; ``args`` None accepts any arguments."""

    __slots__ = ("op", "args")
    FIELDS = {"op": CHILD, "args": DATA}

    def __init__(self, op: DFPattern, args: Sequence[DFPattern] | None) -> None:
        self.op, self.args, self.span = op, None if args is None else tuple(args), None


class FunctionPattern(DFPattern):
    """A function; ``params`` None accepts any parameters."""

    __slots__ = ("params", "body")
    FIELDS = {"params": DATA, "body": CHILD}

    def __init__(self, params: Sequence[DFPattern] | None, body: DFPattern) -> None:
        self.params, self.body, self.span = None if params is None else tuple(params), body, None


class IfPattern(DFPattern):
    """A condition."""

    __slots__ = ("cond", "true_branch", "false_branch")
    FIELDS = {"cond": CHILD, "true_branch": CHILD, "false_branch": CHILD}

    def __init__(self, cond: DFPattern, true_branch: DFPattern, false_branch: DFPattern) -> None:
        self.cond, self.true_branch, self.false_branch, self.span = cond, true_branch, false_branch, None


class LetPattern(DFPattern):
    """A let."""

    __slots__ = ("var", "value", "body")
    FIELDS = {"var": CHILD, "value": CHILD, "body": CHILD}

    def __init__(self, var: DFPattern, value: DFPattern, body: DFPattern) -> None:
        self.var, self.value, self.body, self.span = var, value, body, None


class TuplePattern(DFPattern):
    """A tuple; ``fields`` None accepts any fields."""

    __slots__ = ("fields",)
    FIELDS = {"fields": DATA}

    def __init__(self, fields: Sequence[DFPattern] | None) -> None:
        self.fields, self.span = None if fields is None else tuple(fields), None

    def __getitem__(self, index: int) -> TupleGetItemPattern:
        if index >= len(self):
            raise IndexError("TuplePattern index out of range")
        return TupleGetItemPattern(self, index)

    def __len__(self) -> int:
        return len(self.fields or ())

    def __bool__(self) -> bool:
        return True


class TupleGetItemPattern(DFPattern):
    """A projection; ``index`` None accepts any field."""

    __slots__ = ("tuple", "index")
    FIELDS = {"tuple": CHILD, "index": DATA}

    def __init__(self, tuple_value: DFPattern, index: int | None = None) -> None:
        self.tuple, self.index, self.span = tuple_value, index, None


class AltPattern(DFPattern):
    """Either of two patterns; the left is tried first."""

    __slots__ = ("left", "right")
    FIELDS = {"left": CHILD, "right": CHILD}

    def __init__(self, left: DFPattern, right: DFPattern) -> None:
        self.left, self.right, self.span = left, right, None


class WildcardPattern(DFPattern):
    """Anything, until it is redirected to a pattern made later."""

    __slots__ = ("pattern",)
    FIELDS = {"pattern": CHILD}

    def __init__(self) -> None:
        self.pattern: DFPattern | None = None
        self.span = None

    def redirect_to(self, pat: DFPattern) -> None:
        """From now on this is ``pat``."""
        self.pattern = pat


class TypePattern(DFPattern):
    """A pattern with a type."""

    __slots__ = ("pattern", "type")
    FIELDS = {"pattern": CHILD, "type": DATA}

    def __init__(self, pattern: DFPattern, ttype: Type) -> None:
        self.pattern, self.type, self.span = pattern, ttype, None


class DataTypePattern(DFPattern):
    """A pattern with a dtype."""

    __slots__ = ("pattern", "dtype")
    FIELDS = {"pattern": CHILD, "dtype": DATA}

    def __init__(self, pattern: DFPattern, dtype: str) -> None:
        self.pattern, self.dtype, self.span = pattern, str(dtype), None


class ShapePattern(DFPattern):
    """A pattern with a shape."""

    __slots__ = ("pattern", "shape")
    FIELDS = {"pattern": CHILD, "shape": DATA}

    def __init__(self, pattern: DFPattern, shape: Sequence[Any]) -> None:
        self.pattern, self.shape, self.span = pattern, tuple(shape), None


class AttrPattern(DFPattern):
    """A pattern with attributes."""

    __slots__ = ("pattern", "attrs")
    FIELDS = {"pattern": CHILD, "attrs": ATTRS}

    def __init__(self, pattern: DFPattern, attrs: Mapping[str, Any]) -> None:
        self.pattern, self.attrs, self.span = pattern, dict(attrs.items()), None


class DominatorPattern(DFPattern):
    """``child``, from which every way up leads over ``path`` to ``parent``."""

    __slots__ = ("parent", "path", "child")
    FIELDS = {"parent": CHILD, "path": CHILD, "child": CHILD}

    def __init__(self, parent: DFPattern, path: DFPattern, child: DFPattern) -> None:
        self.parent, self.path, self.child, self.span = parent, path, child, None


def pattern_children(node: Any) -> list[Any]:
    """The patterns under a pattern, in the order in which they are tried."""
    if isinstance(node, CallPattern):
        return [node.op, *(node.args or ())]
    if isinstance(node, TuplePattern):
        return list(node.fields or ())
    if isinstance(node, FunctionPattern):
        return [*(node.params or ()), node.body]
    return node.children()


class _Text(Walker):
    """Patterns as text, close to how they are written."""

    def visit_ExprPattern(self, node: ExprPattern) -> str:
        return f'is_op("{node.expr.name}")' if isinstance(node.expr, Op) else f"is_expr({node.expr})"

    def visit_VarPattern(self, node: VarPattern) -> str:
        return f'is_var("{node.name}")' if node.name else "is_var()"

    def visit_ConstantPattern(self, node: ConstantPattern) -> str:
        return "is_constant()"

    def visit_WildcardPattern(self, node: WildcardPattern) -> str:
        return "*" if node.pattern is None else "*redirected"

    def visit_CallPattern(self, node: CallPattern) -> Any:
        op = yield node.op
        args = ["..."] if node.args is None else (yield list(node.args))
        return f"{op}({', '.join(args)})"

    def visit_TuplePattern(self, node: TuplePattern) -> Any:
        fields = ["..."] if node.fields is None else (yield list(node.fields))
        return f"({', '.join(fields)})"

    def visit_TupleGetItemPattern(self, node: TupleGetItemPattern) -> Any:
        whole = yield node.tuple
        return f"{whole}.{'*' if node.index is None else node.index}"

    def visit_AltPattern(self, node: AltPattern) -> Any:
        left, right = yield [node.left, node.right]
        return f"({left} | {right})"

    def visit_AttrPattern(self, node: AttrPattern) -> Any:
        return f"{(yield node.pattern)}.has_attr({node.attrs})"

    def visit_TypePattern(self, node: TypePattern) -> Any:
        return f"{(yield node.pattern)}.has_type({node.type})"

    def visit_DataTypePattern(self, node: DataTypePattern) -> Any:
        return f"{(yield node.pattern)}.has_dtype({node.dtype!r})"

    def visit_ShapePattern(self, node: ShapePattern) -> Any:
        return f"{(yield node.pattern)}.has_shape({list(node.shape)})"

    def visit_default(self, node: Any) -> Any:
        parts = yield pattern_children(node)
        return f"{type(node).__name__}({', '.join(parts)})"


# ------------------------------------------------------------------------------------------------- short ways to write them


def is_var(name: str = "") -> VarPattern:
    """A variable, of that name if one is given."""
    return VarPattern(name)


def is_constant() -> ConstantPattern:
    """Any constant."""
    return ConstantPattern()


def is_expr(expr: RelayExpr) -> ExprPattern:
    """Exactly this expression (structurally)."""
    return ExprPattern(expr)


def is_op(op_name: str) -> ExprPattern:
    """The operator of that name; call it for the pattern of its calls."""
    return ExprPattern(Op.get(op_name))


def is_tuple(fields: Sequence[DFPattern] | None) -> TuplePattern:
    """A tuple of these fields; None accepts any."""
    return TuplePattern(fields)


def is_tuple_get_item(tuple_value: DFPattern, index: int | None = None) -> TupleGetItemPattern:
    """A projection out of a tuple; index None accepts any field."""
    return TupleGetItemPattern(tuple_value, index)


def is_if(cond: DFPattern, true_branch: DFPattern, false_branch: DFPattern) -> IfPattern:
    """A condition."""
    return IfPattern(cond, true_branch, false_branch)


def is_let(var: DFPattern, value: DFPattern, body: DFPattern) -> LetPattern:
    """A let."""
    return LetPattern(var, value, body)


def wildcard() -> WildcardPattern:
    """Anything."""
    return WildcardPattern()


def has_type(ttype: Type, pattern: DFPattern | None = None) -> TypePattern:
    """A pattern (default: anything) of this type."""
    return TypePattern(wildcard() if pattern is None else pattern, ttype)


def has_dtype(dtype: str, pattern: DFPattern | None = None) -> DataTypePattern:
    """A pattern (default: anything) of this dtype."""
    return DataTypePattern(wildcard() if pattern is None else pattern, dtype)


def has_shape(shape: Sequence[Any], pattern: DFPattern | None = None) -> ShapePattern:
    """A pattern (default: anything) of this shape."""
    return ShapePattern(wildcard() if pattern is None else pattern, shape)


def has_attr(attrs: Mapping[str, Any], pattern: DFPattern | None = None) -> AttrPattern:
    """A pattern (default: anything) with these attributes."""
    return AttrPattern(wildcard() if pattern is None else pattern, attrs)


def dominates(parent: DFPattern, path: DFPattern, child: DFPattern) -> DominatorPattern:
    """``child``, from which every way up leads over ``path`` to ``parent``."""
    return DominatorPattern(parent, path, child)
