"""SimplifyExpr: local identities, as a table of rules per operator.

before::

    reshape(reshape(%x, newshape=[4, 6]), newshape=[24])

after::

    reshape(%x, newshape=[24])

Every rule is exact for every input, infinities, NaN and negative zeros included; casts are merged only where the
middle type loses nothing.
"""
from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...ir.op import Op
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, register_pass
from ...ir.type import TensorType
from ...runtime.dtype import DataType, numpy_dtype
from ...tir.data_layout import Layout
from ..expr import Call, Constant, Tuple
from ..function import Function
from ..op.registry import make_attrs
from .common import call, is_op, map_functions, rewrite_exprs, scalar_value

Rule = Callable[[Call], "RelayExpr | None"]
_MAX_STEPS = 16
_RESHAPES = ("reshape", "squeeze", "expand_dims", "nn.batch_flatten", "contrib_reverse_reshape", "reshape_like")


def _static(expr: RelayExpr) -> bool:
    ty = expr._checked_type
    return isinstance(ty, TensorType) and ty.is_static


def _same_type(a: RelayExpr, node: Call) -> bool:
    x, y = a._checked_type, node._checked_type
    return isinstance(x, TensorType) and isinstance(y, TensorType) and x.is_static and x.dims == y.dims and x.dtype == y.dtype


def _reshaped(data: RelayExpr, node: Call) -> RelayExpr:
    """``data`` with the shape of ``node``'s result; ``data`` itself when it has that shape."""
    if _same_type(data, node):
        return data
    return call("reshape", data, attrs=make_attrs("reshape", newshape=node.checked_type.dims), span=node.span)


def merge_reshapes(node: Call) -> RelayExpr | None:
    """A reshape of a reshape is one reshape; a reshape to the same shape is none."""
    if not _static(node) or not _static(node.args[0]):
        return None
    data = node.args[0]
    if _same_type(data, node):
        return data
    if not is_op(data, *_RESHAPES) or not _static(data.args[0]):  # type: ignore[attr-defined]
        return None
    return _reshaped(data.args[0], node)  # type: ignore[attr-defined]


def _lossless(source: str, middle: str) -> bool:
    if "bool" in (middle, source):
        return source == "bool"
    a, b = DataType(source), DataType(middle)
    if "bfloat16" in (source, middle) or "float8" in source + middle or a.lanes != 1:
        return source == middle
    return bool(np.can_cast(numpy_dtype(source), numpy_dtype(middle), "safe")) and b.bits >= a.bits


def merge_casts(node: Call) -> RelayExpr | None:
    """A cast to the same type is none; a cast of a lossless cast is one cast."""
    data = node.args[0]
    ty = data._checked_type
    if not isinstance(ty, TensorType):
        return None
    if ty.dtype == node.attrs.dtype:
        return data
    if is_op(data, "cast"):
        inner = data.args[0]  # type: ignore[attr-defined]
        if isinstance(inner._checked_type, TensorType) and _lossless(inner._checked_type.dtype, ty.dtype):
            return call("cast", inner, attrs=node.attrs, span=node.span)
    return None


def _permutation(node: Call) -> list[int]:
    rank = len(node.args[0].checked_type.dims)
    axes = node.attrs.axes
    return [a % rank for a in axes] if axes else list(range(rank))[::-1]


def merge_transposes(node: Call) -> RelayExpr | None:
    """Transposes in a row are one; one that moves only axes of extent 1 is a reshape."""
    if not _static(node.args[0]):
        return None
    order, data = _permutation(node), node.args[0]
    if is_op(data, "transpose") and _static(data.args[0]):  # type: ignore[attr-defined]
        inner = _permutation(data)  # type: ignore[arg-type]
        axes = [inner[a] for a in order]
        return call("transpose", data.args[0], attrs=make_attrs("transpose", axes=axes), span=node.span)  # type: ignore[attr-defined]
    moved = [a for a in order if data.checked_type.dims[a] != 1]
    if moved == sorted(moved):
        return _reshaped(data, node)
    return None


def _tokens(layout: str) -> list[str]:
    """The positions of a layout: ``NCHW4c`` → N, C, H, W, 4c."""
    return [f"{a.factor}{a.letter}" if a.factor else a.letter for a in Layout(layout).axes]


def _as_layout_transform(node: RelayExpr, src: str, dst: str) -> tuple[str, str] | None:
    """Between which layouts ``node`` carries its argument, given one of them; transposes count, undefined where it can't be told."""
    if is_op(node, "layout_transform"):
        return node.attrs.src_layout, node.attrs.dst_layout  # type: ignore[attr-defined]
    if not is_op(node, "transpose"):
        return None
    order = _permutation(node)  # type: ignore[arg-type]
    if dst:
        found = [""] * len(order)
        for at, token in zip(order, _tokens(dst)):
            found[at] = token
        return "".join(found), dst
    tokens = _tokens(src)
    return src, "".join(tokens[a] for a in order)


def _changed_layout(data: RelayExpr, src: str, dst: str, node: Call) -> RelayExpr | None:
    if src == dst:
        return data
    if not Layout(src).convertible(Layout(dst)):
        return None
    if src.isalpha() and dst.isalpha():
        return call("transpose", data, attrs=make_attrs("transpose", axes=[src.index(c) for c in dst]), span=node.span)
    return call("layout_transform", data, attrs=make_attrs("layout_transform", src_layout=src, dst_layout=dst), span=node.span)


def merge_layout_transforms(node: Call) -> RelayExpr | None:
    """Layout changes in a row, transposes among them, are one, or none when they cancel."""
    data = node.args[0]
    if is_op(node, "layout_transform"):
        src, dst = node.attrs.src_layout, node.attrs.dst_layout
        if src == dst:
            return data
        first = _as_layout_transform(data, "", src) if _static(data) and len(_tokens(src)) == len(data.checked_type.dims) else None  # type: ignore[attr-defined]
    elif is_op(data, "layout_transform"):
        first = (data.attrs.src_layout, data.attrs.dst_layout)  # type: ignore[attr-defined]
        src, dst = _as_layout_transform(node, first[1], "")  # type: ignore[misc]
    else:
        return None
    if first is None or first[1] != src or not _static(data.args[0]) or not _static(node):  # type: ignore[attr-defined]
        return None
    if not _same_size(data.args[0], data, node):  # type: ignore[attr-defined]
        return None
    return _changed_layout(data.args[0], first[0], dst, node)  # type: ignore[attr-defined]


def _same_size(*nodes: RelayExpr) -> bool:
    """Whether no step pads a block: every tensor has the same number of elements."""
    return len({int(np.prod(n.checked_type.concrete_shape, dtype=np.int64)) for n in nodes}) == 1


def _identity_operand(value: Any, dtype: str, op_name: str, on_right: bool) -> bool:
    """Whether ``x op value`` (or ``value op x``) is x, bit for bit."""
    if value is None:
        return False
    floating = numpy_dtype(dtype).kind not in "iub"
    if op_name == "multiply":
        return bool(value == 1)
    if op_name == "divide":
        return on_right and bool(value == 1)
    if op_name == "add":
        return bool(value == 0) and (not floating or bool(np.signbit(value)))
    return op_name == "subtract" and on_right and bool(value == 0) and not (floating and bool(np.signbit(value)))


def drop_identity(node: Call) -> RelayExpr | None:
    """``x * 1``, ``x / 1``, ``x - 0``, and ``x + 0`` of integers, are x."""
    for i in (0, 1):
        data, other = node.args[i], node.args[1 - i]
        if isinstance(other, Constant) and _same_type(data, node):
            if _identity_operand(scalar_value(other), node.checked_type.dtype, node.op.name, on_right=i == 0):  # type: ignore[attr-defined]
                return data
    return None


def merge_integer_sums(node: Call) -> RelayExpr | None:
    """``(x - a) + b`` of integers, with constants that are no larger together than apart, is ``x + (b - a)``: sums of integers wrap."""
    inner = next((a for a in node.args if is_op(a, "add", "subtract")), None)
    ty = node._checked_type
    if inner is None or not isinstance(ty, TensorType) or numpy_dtype(ty.dtype).kind not in "iu":
        return None
    x, a = _with_constant(inner)
    whole, b = _with_constant(node)
    if x is None or whole is not inner or not _broadcast_to_one(a, b):
        return None
    minus, negative = is_op(inner, "subtract"), is_op(node, "subtract")
    both = call("add", a, b) if minus == negative else call("subtract", a, b) if negative else call("subtract", b, a)
    both._checked_type = TensorType(np.broadcast_shapes(*(c.data.shape for c in (a, b))), ty.dtype)
    return call("subtract" if minus and negative else "add", x, both, span=node.span)


def _with_constant(node: Any) -> tuple[Any, Any]:
    """The two sides of a sum, the constant second; (None, None) where neither is one, or where it is what is subtracted from."""
    a, b = node.args
    if isinstance(b, Constant) and not isinstance(a, Constant):
        return a, b
    return (b, a) if isinstance(a, Constant) and not isinstance(b, Constant) and is_op(node, "add") else (None, None)


def _broadcast_to_one(a: Constant, b: Constant) -> bool:
    """Whether two constants combined have as many elements as the larger one."""
    sizes = [int(np.prod(c.data.shape)) for c in (a, b)]
    return int(np.prod(np.broadcast_shapes(a.data.shape, b.data.shape))) == max(sizes)


def simple_powers(node: Call) -> RelayExpr | None:
    """``x ** 2`` is ``x * x``; ``x ** 1`` is x."""
    base, exponent = node.args
    value = scalar_value(exponent)
    if value is None or not _same_type(base, node):
        return None
    if value == 1:
        return base
    return call("multiply", base, base, span=node.span) if value == 2 else None


def single_concatenate(node: Call) -> RelayExpr | None:
    """The concatenation of one tensor is that tensor."""
    parts = node.args[0]
    return parts.fields[0] if isinstance(parts, Tuple) and len(parts.fields) == 1 else None


def concrete_likes(node: Call) -> RelayExpr | None:
    """``zeros_like`` and its kin of a known shape need no input tensor."""
    name = node.op.name  # type: ignore[attr-defined]
    if not _static(node):
        return None
    ty = node.checked_type
    if name in ("zeros_like", "ones_like"):
        plain = name.removesuffix("_like")
        return call(plain, attrs=make_attrs(plain, shape=ty.dims, dtype=ty.dtype), span=node.span)
    if name == "full_like":
        return _filled(node.args[1], ty)
    if name == "collapse_sum_like":
        return call("collapse_sum_to", node.args[0], attrs=make_attrs("collapse_sum_to", shape=ty.dims))
    if name == "broadcast_to_like":
        return call("broadcast_to", node.args[0], attrs=make_attrs("broadcast_to", shape=ty.dims))
    return _reshaped(node.args[0], node) if name == "reshape_like" else None


def _filled(value: RelayExpr, ty: TensorType) -> RelayExpr:
    return call("full", value, attrs=make_attrs("full", shape=ty.dims, dtype=ty.dtype))


def concrete_cast(node: Call) -> RelayExpr | None:
    """``cast_like`` needs the dtype only."""
    ty = node._checked_type
    return call("cast", node.args[0], attrs=make_attrs("cast", dtype=ty.dtype), span=node.span) if isinstance(ty, TensorType) else None


def broadcast_to_same(node: Call) -> RelayExpr | None:
    """A broadcast to the shape a tensor has is that tensor."""
    return node.args[0] if _same_type(node.args[0], node) else None


RULES: dict[str, Sequence[Rule]] = {
    **dict.fromkeys(_RESHAPES, (merge_reshapes,)),
    "reshape_like": (concrete_likes,),
    "cast": (merge_casts,),
    "transpose": (merge_transposes, merge_layout_transforms),
    "layout_transform": (merge_layout_transforms,),
    **dict.fromkeys(("add", "subtract"), (drop_identity, merge_integer_sums)),
    **dict.fromkeys(("multiply", "divide"), (drop_identity,)),
    "power": (simple_powers,),
    "concatenate": (single_concatenate,),
    **dict.fromkeys(("zeros_like", "ones_like", "full_like", "broadcast_to_like", "collapse_sum_like"), (concrete_likes,)),
    "cast_like": (concrete_cast,),
    "broadcast_to": (broadcast_to_same,),
}


def simplify_node(node: RelayExpr, ty: Any) -> RelayExpr:
    """Applies the rules of the node's operator until none applies."""
    for _ in range(_MAX_STEPS):
        rules = RULES.get(node.op.name, ()) if isinstance(node, Call) and isinstance(node.op, Op) else ()
        result = next((r for r in (rule(node) for rule in rules) if r is not None), None)  # type: ignore[arg-type]
        if result is None:
            return node
        if result._checked_type is None:
            result._checked_type = ty
        node = result
    return node


def simplify(func: Function) -> Function:
    """One typed function with its local identities applied."""
    return rewrite_exprs(func, lambda old, new: simplify_node(new, old._checked_type))  # type: ignore[return-value]


def SimplifyExpr() -> Pass:
    """Applies local identities."""

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        return map_functions(mod, simplify)

    return ModulePass(run, PassInfo(0, "SimplifyExpr", ["InferType"]))


register_pass("SimplifyExpr", SimplifyExpr)
