"""SimplifyInference: normalisations become element-wise arithmetic, dropout becomes its input.

before::

    nn.batch_norm(%x, %gamma, %beta, %mean, %var).0

after::

    add(multiply(%x, %scale), %shift)     # scale = 1 / sqrt(var + eps) * gamma, shift = -mean * scale + beta

With constant statistics the scale and the shift fold to constants, which FoldScaleAxis then moves into weights.

An operator whose vectors (scale, shift, slope …) may turn out not to fit the axis stays, so that running it can refuse them;
arithmetic would broadcast.  A vector known to have one entry, over an axis of unknown size, is meant to be broadcast.
"""
from __future__ import annotations

from typing import Any, Callable

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from ...ir.type import TensorType
from ..expr import Call, TupleGetItem
from ..function import Function
from ..op.registry import make_attrs
from .common import call, constant, declare_pass, is_op, rewrite_exprs


def _expanded(value: RelayExpr, rank: int, axis: int) -> RelayExpr:
    """A vector along ``axis`` as a tensor that broadcasts against ``rank`` dimensions (trailing ones added)."""
    trailing = rank - 1 - axis % rank
    if not trailing:
        return value
    return call("expand_dims", value, attrs=make_attrs("expand_dims", axis=1, num_newaxis=trailing))


def _reduce(name: str, data: RelayExpr, axes: list[int]) -> RelayExpr:
    return call(name, data, attrs=make_attrs(name, axis=axes, keepdims=True))


def _inverse_std(variance: RelayExpr, epsilon: float, dtype: str) -> RelayExpr:
    return call("rsqrt", call("add", variance, constant(epsilon, dtype)))


def _batch_norm(node: Call, data_type: TensorType) -> RelayExpr:
    attrs, (data, gamma, beta, mean, var) = node.attrs, node.args
    rank, dtype = len(data_type.dims), data_type.dtype
    scale: RelayExpr = call("divide", constant(1, dtype), call("sqrt", call("add", var, constant(attrs.epsilon, dtype))))
    if attrs.scale:
        scale = call("multiply", scale, gamma)
    shift = call("multiply", call("negative", mean), scale)
    if attrs.center:
        shift = call("add", shift, beta)
    scaled = call("multiply", data, _expanded(scale, rank, attrs.axis))
    return call("add", scaled, _expanded(shift, rank, attrs.axis), span=node.span)


def _affine(data: RelayExpr, gamma: RelayExpr, beta: RelayExpr, attrs: Any, rank: int) -> RelayExpr:
    if attrs.scale:
        data = call("multiply", data, _expanded(gamma, rank, attrs.axis))
    return call("add", data, _expanded(beta, rank, attrs.axis)) if attrs.center else data


def _normalised(data: RelayExpr, axes: list[int], epsilon: float, dtype: str) -> RelayExpr:
    mean = _reduce("mean", data, axes)
    centred = call("subtract", data, mean)
    variance = _reduce("mean", call("multiply", centred, centred), axes)
    return call("multiply", centred, _inverse_std(variance, epsilon, dtype))


def _layer_norm(node: Call, data_type: TensorType) -> RelayExpr:
    data, gamma, beta = node.args
    normal = _normalised(data, [node.attrs.axis], node.attrs.epsilon, data_type.dtype)
    return _affine(normal, gamma, beta, node.attrs, len(data_type.dims))


def _instance_norm(node: Call, data_type: TensorType) -> RelayExpr:
    data, gamma, beta = node.args
    rank = len(data_type.dims)
    axes = [i for i in range(1, rank) if i != node.attrs.axis % rank]
    normal = _normalised(data, axes, node.attrs.epsilon, data_type.dtype)
    return _affine(normal, gamma, beta, node.attrs, rank)


def _group_norm(node: Call, data_type: TensorType) -> RelayExpr:
    attrs, (data, gamma, beta) = node.attrs, node.args
    rank, axis = len(data_type.dims), node.attrs.axis % len(data_type.dims)
    split, joined = _group_shapes(list(data_type.dims), axis, attrs.num_groups)
    grouped = call("reshape", data, attrs=make_attrs("reshape", newshape=split))
    axes = [i for i in range(axis + 1, rank + 1)]
    normal = _normalised(grouped, axes, attrs.epsilon, data_type.dtype)
    return _affine(call("reshape", normal, attrs=make_attrs("reshape", newshape=joined)), gamma, beta, attrs, rank)


def _group_shapes(dims: list[Any], axis: int, groups: int) -> tuple[list[int], list[int]]:
    """The new shapes that split an axis into groups, and that join it again; unknown sizes are copied (0), split (-4), joined (-3)."""
    parts = [groups, dims[axis] // groups]
    if all(isinstance(d, int) for d in dims):
        return [*dims[:axis], *parts, *dims[axis + 1:]], dims
    before, after = [0] * axis, [0] * (len(dims) - axis - 1)
    return [*before, -4, *parts, *after], [*before, -3, *after]


def _l2_normalize(node: Call, data_type: TensorType) -> RelayExpr:
    (data,) = node.args
    total = _reduce("sum", call("multiply", data, data), list(node.attrs.axis))
    bound = call("maximum", total, constant(node.attrs.eps, data_type.dtype))
    return call("divide", data, call("sqrt", bound))


def _one_bias(node: Call, data_type: TensorType) -> RelayExpr:
    return call("add", *node.args, span=node.span)


def _one_slope(node: Call, data_type: TensorType) -> RelayExpr:
    data, slope = node.args
    positive = call("greater", data, constant(0, data_type.dtype))
    return call("where", positive, data, call("multiply", data, slope), span=node.span)


# Operators with vectors along an axis: the numbers of these arguments.
VECTORS: dict[str, tuple[int, ...]] = {
    "nn.batch_norm": (1, 2, 3, 4), "nn.layer_norm": (1, 2), "nn.instance_norm": (1, 2), "nn.group_norm": (1, 2), "nn.bias_add": (1,),
    "nn.prelu": (1,),
}
_ONE_ENTRY = {"nn.bias_add": _one_bias, "nn.prelu": _one_slope}


def _sizes(node: Call) -> tuple[Any, list[Any]]:
    """The size of a call's axis, and those of its vectors."""
    data = node.args[0].checked_type
    return data.dims[node.attrs.axis % len(data.dims)], [node.args[i].checked_type.dims[0] for i in VECTORS[node.op.name]]  # type: ignore[attr-defined]


def vectors_fit(node: Call) -> bool:
    """Whether the types alone say that the vectors of a call are as long as its axis."""
    if node.op.name not in VECTORS:  # type: ignore[attr-defined]
        return True
    size, lengths = _sizes(node)
    return all(n is size or isinstance(n, int) and isinstance(size, int) for n in lengths)


def _has_one_entry(node: Call) -> bool:
    size, lengths = _sizes(node)
    return lengths == [1] and not isinstance(size, int)


_SINGLE: dict[str, Callable[[Call, TensorType], RelayExpr]] = {
    "nn.layer_norm": _layer_norm,
    "nn.instance_norm": _instance_norm,
    "nn.group_norm": _group_norm,
    "nn.l2_normalize": _l2_normalize,
}


def _rule(old: Any, new: Any) -> RelayExpr:
    if isinstance(new, TupleGetItem) and new.index == 0:
        inner = new.tuple_value
        if is_op(inner, "nn.batch_norm") and vectors_fit(old.tuple_value):
            return _batch_norm(inner, old.tuple_value.args[0].checked_type)  # type: ignore[arg-type]
        if is_op(inner, "nn.dropout"):
            return inner.args[0]  # type: ignore[attr-defined]
    name = getattr(new.op, "name", None) if isinstance(new, Call) else None
    if name in _SINGLE and vectors_fit(old):
        return _SINGLE[name](new, old.args[0].checked_type)
    if name in _ONE_ENTRY and _has_one_entry(old):
        return _ONE_ENTRY[name](new, old.args[0].checked_type)
    return new


def simplify(func: Function, mod: IRModule, ctx: Any) -> Function:
    """Turns normalisations into arithmetic and dropout into its input."""
    return rewrite_exprs(func, _rule)  # type: ignore[return-value]


SimplifyInference = declare_pass("SimplifyInference", 0, simplify)
