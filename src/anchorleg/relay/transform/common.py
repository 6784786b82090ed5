"""What passes share: mapping over a module's functions, rewriting expressions, small constructors."""
from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from ...ir.expr import GlobalVar, RelayExpr
from ...ir.module import IRModule
from ...ir.node import Node
from ...ir.op import Op
from ...ir.transform import Pass, PassContext, ModulePass, PassInfo, register_pass
from ...ir.type import Type
from ..adt import Clause, Constructor, Pattern
from ..expr import Call, Constant, Tuple, Var
from ..function import Function

Rule = Callable[[Any, Any], RelayExpr]
FunctionTransform = Callable[[Function, IRModule, PassContext], Function]


def is_primitive(node: Any) -> bool:
    """Whether the node is a function already made primitive, one for an external compiler, or one that such a compiler has compiled."""
    return isinstance(node, Function) and bool(node.get_attr("Primitive") or node.get_attr("Compiler") or node.get_attr("Extern"))


_LEAVES = (Type, Op, GlobalVar, Var, Pattern, Constructor, Constant)


def descends(node: Node) -> bool:
    """Whether rewriting looks below ``node``: not into types, patterns, operators, or primitive functions."""
    return type(node) is Call or not isinstance(node, _LEAVES) and not is_primitive(node)


def rewrite_exprs(root: RelayExpr, rule: Rule, keep_types: bool = True, below: Callable[[Node], bool] = descends) -> RelayExpr:
    """Rebuilds ``root`` children first through ``rule(old, new)``.

    ``old`` is the expression as it was (with its type), ``new`` the same with rewritten parts; the rule gives the
    replacement, most often ``new``.  With ``keep_types`` a rebuilt expression keeps the type of the old one, which is
    right as long as replacements have the type of what they replace.  ``below(node)`` says whether to look under a node.
    """
    memo: dict[int, tuple[Node, Node]] = {}
    stack: list[tuple[Node, list[Node] | None]] = [(root, None)]
    while stack:
        node, kids = stack.pop()
        if kids is None:
            if id(node) in memo:
                continue
            if not below(node):
                memo[id(node)] = (node, rule(node, node) if isinstance(node, RelayExpr) else node)
                continue
            kids = node.children()
            waiting = [c for c in kids if id(c) not in memo]
            if waiting:
                stack.append((node, kids))
                stack.extend((c, None) for c in reversed(waiting))
                continue
        new = node
        if any(memo[id(c)][1] is not c for c in kids):
            new = node.map_children(lambda c: memo[id(c)][1])
        if isinstance(node, RelayExpr):
            if keep_types and new is not node:
                carry_type(node, new)
            new = rule(node, new)
        memo[id(node)] = (node, new)
    return memo[id(root)][1]  # type: ignore[return-value]


def carry_type(old: Any, new: Any) -> Any:
    """Gives ``new`` the type of ``old``, unless a part of it has no type yet: inference then has to come by."""
    if new is not old and isinstance(new, RelayExpr) and all(_is_typed(c) for c in new.children()):
        new._checked_type = old._checked_type
    return new


def _is_typed(node: Any) -> bool:
    if isinstance(node, Clause):  # of a match
        node = node.rhs
    return not isinstance(node, RelayExpr) or isinstance(node, (Op, GlobalVar, Constructor)) or node._checked_type is not None


def typed_replace(node: Any, **changes: Any) -> Any:
    """``node.replace`` for changes that leave the type as it is."""
    return carry_type(node, node.replace(**changes))


def mentions(mod: IRModule, wanted: Callable[[Node], bool]) -> bool:
    """Whether any expression of the module's functions satisfies ``wanted``: a cheap question before a costly walk."""
    seen: set[int] = set()
    stack: list[Node] = [f for f in mod.functions.values() if isinstance(f, Function)]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if wanted(node):
            return True
        if descends(node):
            stack.extend(node.children())
    return False


def map_functions(mod: IRModule, fn: Callable[[Function], Function]) -> IRModule:
    """The module with ``fn`` applied to each Relay function that is not primitive."""
    return mod.with_functions({v: fn(f) if isinstance(f, Function) and not is_primitive(f) else f for v, f in mod.functions.items()})


def declare_pass(name: str, opt_level: int, transform: FunctionTransform, required: Sequence[str] = ("InferType",)) -> Callable[[], Pass]:
    """Registers a pass that works function by function, and gives its public constructor."""

    def create() -> Pass:
        def run(mod: IRModule, ctx: PassContext) -> IRModule:
            return map_functions(mod, lambda f: transform(f, mod, ctx))

        return ModulePass(run, PassInfo(opt_level, name, required))

    create.__name__ = create.__qualname__ = name
    create.__doc__ = transform.__doc__
    register_pass(name, create)
    return create


def call(op_name: str, *args: RelayExpr, attrs: Any = None, span: Any = None) -> Call:
    """A call of an operator by name."""
    return Call(Op.get(op_name), args, attrs, (), span)


def is_op(expr: Any, *names: str) -> bool:
    """Whether ``expr`` is a call of one of these operators."""
    return isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name in names


def constant(value: Any, dtype: str) -> Constant:
    """A constant tensor of that dtype."""
    from ...runtime import ndarray
    from ...runtime.dtype import numpy_dtype

    return Constant(ndarray.array(np.asarray(value, dtype=numpy_dtype(dtype))))


def scalar_value(expr: Any) -> Any:
    """The value of a constant that holds one element (of any rank), else None."""
    if not isinstance(expr, Constant) or int(np.prod(expr.data.shape)) != 1:
        return None
    return expr.data.as_numpy_view().reshape(())[()]


__all__ = ["Clause", "Tuple", "call", "carry_type", "constant", "declare_pass", "descends", "is_op", "is_primitive", "map_functions", "mentions", "rewrite_exprs",
           "scalar_value", "typed_replace"]
