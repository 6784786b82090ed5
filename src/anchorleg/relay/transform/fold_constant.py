"""FoldConstant: evaluates, by the operators' numpy rules, whatever depends on constants only.

before::

    add(%x, multiply(2f, 3f))

after::

    add(%x, 6f)
"""
from __future__ import annotations

from typing import Any, Callable

import numpy as np

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...ir.op import Op
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ...ir.type import TensorType, TupleType
from ...ir.visit import Walker
from ...runtime import ndarray
from ...runtime.dtype import DataType
from ..analysis.variables import exprs
from ..expr import Call, Constant, If, Let, Tuple, TupleGetItem
from ..op.registry import evaluate
from .common import carry_type, descends, is_op, map_functions, rewrite_exprs

# These make a large tensor of nothing: cheaper computed where they are used than stored.
_NOT_FOLDED = frozenset({"zeros_like", "ones_like", "full_like", "full", "zeros", "ones", "device_copy", "on_device", "annotation.stop_fusion", "nn.dropout"})
_FREE_BYTES = 1 << 20  # a result up to this size is always folded
_GROWTH = 4  # a larger one only when not over this many times its arguments


def _bare(expr: Any) -> RelayExpr:
    """What stands behind marks of the planner of devices, which change no value."""
    while is_op(expr, "on_device") and expr.attrs.constrain_body and expr.attrs.constrain_result:
        expr = expr.args[0]
    return expr  # type: ignore[no-any-return]


def _is_constant(expr: RelayExpr) -> bool:
    return isinstance(expr, Constant) or isinstance(expr, Tuple) and all(isinstance(f, Constant) for f in expr.fields)


def _arrays(expr: RelayExpr) -> Any:
    if isinstance(expr, Tuple):
        return tuple(f.data.as_numpy_view() for f in expr.fields)  # type: ignore[attr-defined]
    return expr.data.as_numpy_view()  # type: ignore[attr-defined]


def _bytes_of(ty: Any) -> int:
    if isinstance(ty, TupleType):
        return sum(_bytes_of(f) for f in ty.fields)
    return int(np.prod(ty.concrete_shape, dtype=np.int64)) * max(1, DataType(ty.dtype).bits // 8)


def _known(ty: Any) -> bool:
    if isinstance(ty, TupleType):
        return all(_known(f) for f in ty.fields)
    return isinstance(ty, TensorType) and ty.is_static


def _worth_it(call: Call) -> bool:
    size = _bytes_of(call.checked_type)
    return size <= _FREE_BYTES or size <= _GROWTH * sum(_bytes_of(a.checked_type) for a in call.args)


def _foldable(old: Call, new: Call, args: list[RelayExpr]) -> bool:
    op = new.op
    if not isinstance(op, Op) or op.name in _NOT_FOLDED or op.get_attr("TOpIsStateful") or not op.has_attr("FNumpy"):
        return False
    if not all(_is_constant(a) for a in args) or not all(_known(a.checked_type) for a in old.args):
        return False
    return not _known(old.checked_type) or _worth_it(old)


def _as_expr(value: Any) -> RelayExpr:
    if isinstance(value, tuple):
        return Tuple([_as_expr(v) for v in value])
    # a transposed or reshaped constant stays a view: whoever builds from it in the end copies it once, into its final form
    return Constant(ndarray.numpyasarray(np.asarray(value)))


def _shape_question(old: Call, new: Call) -> RelayExpr | None:
    """``shape_of`` and ``ndarray_size`` of a tensor whose shape is known do not need its value."""
    if not isinstance(new.op, Op) or new.op.name not in ("shape_of", "vm.shape_of", "ndarray_size", "contrib.ndarray_size"):
        return None
    ty = old.args[0].checked_type
    if not isinstance(ty, TensorType) or not ty.is_static:
        return None
    shape = np.array(ty.concrete_shape, dtype="int64")
    value = shape if "shape_of" in new.op.name else np.prod(shape, dtype="int64")
    return _as_expr(value.astype(old.checked_type.dtype))


def _fold(old: Any, new: Any) -> RelayExpr:
    if isinstance(new, Call):
        answer = _shape_question(old, new)
        if answer is not None:
            return answer
        args = [_bare(a) for a in new.args]
        if _foldable(old, new, args):
            return _as_expr(evaluate(new.op, new.attrs, [_arrays(a) for a in args], old.checked_type))
    if isinstance(new, TupleGetItem) and isinstance(new.tuple_value, Tuple):
        return new.tuple_value.fields[new.index]
    return new


def fold_node(expr: RelayExpr) -> RelayExpr:
    """One typed expression whose parts are folded already: its value when it is worth having, else the expression."""
    return _fold(expr, expr)


class _Folder(Walker):
    """Folds programs with bindings and branches: a constant takes its variable's place before the body is looked at."""

    def __init__(self, rule: Callable[[Any, Any], RelayExpr]) -> None:
        super().__init__()
        self.rule = rule

    def visit_Let(self, let: Let) -> Any:
        value = yield let.value
        if isinstance(_bare(value), Constant):
            self.memo[id(let.var)] = (let.var, value)
            return (yield let.body)
        body = yield let.body
        return carry_type(let, let.replace(value=value, body=body))

    def visit_If(self, node: If) -> Any:
        cond = yield node.cond
        known = _bare(cond)
        if isinstance(known, Constant):
            return (yield node.true_branch if bool(known.data.as_numpy_view()) else node.false_branch)
        yes, no = yield [node.true_branch, node.false_branch]
        return carry_type(node, node.replace(cond=cond, true_branch=yes, false_branch=no))

    def visit_default(self, node: Any) -> Any:
        if not descends(node):
            return node
        kids = node.children()
        results = yield kids
        table = {id(k): r for k, r in zip(kids, results)}
        new = carry_type(node, node.map_children(lambda c: table[id(c)]))
        return self.rule(node, new) if isinstance(node, RelayExpr) else new


def fold_constants(expr: RelayExpr, rule: Callable[[Any, Any], RelayExpr] = _fold) -> RelayExpr:
    """One typed expression with its constant parts evaluated."""
    if any(isinstance(n, (Let, If)) for n in exprs(expr)):
        return _Folder(rule).visit(expr)
    return rewrite_exprs(expr, rule)


def FoldConstant(fold_qnn: bool = False) -> Pass:
    """Evaluates constant parts by numpy; never compiles.  With ``fold_qnn`` false, quantised operators are left alone."""
    rule = _fold if fold_qnn else lambda old, new: new if _is_qnn(new) else _fold(old, new)

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        return map_functions(mod, lambda f: fold_constants(f, rule))  # type: ignore[arg-type,return-value]

    return ModulePass(run, PassInfo(2, "FoldConstant", ["InferType"]))


def _is_qnn(expr: Any) -> bool:
    return isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name.startswith("qnn.")


register_pass("FoldConstant", lambda: FoldConstant(fold_qnn=True))
