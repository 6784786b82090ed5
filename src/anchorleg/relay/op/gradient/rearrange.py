"""Gradients of operators that move elements: reshapes, transposes, joins, slices."""
from __future__ import annotations

from itertools import accumulate

from ....ir.expr import RelayExpr
from ....support.errors import UnsupportedOpError
from ...expr import Call, Tuple, TupleWrapper
from ..reduce import sum as total
from ..tensor import zeros_like
from ..transform import concatenate, reshape_like, split, squeeze, strided_set, strided_slice, transpose
from ..transform.transpose import transpose_axes
from ..transform.slice import slice_plan
from .common import Gradients, register_table, static_shape


def _reshape(call: Call, grad: RelayExpr) -> Gradients:
    return [reshape_like(grad, call.args[0]), *map(zeros_like, call.args[1:])]


def _transpose(call: Call, grad: RelayExpr) -> Gradients:
    axes = transpose_axes(len(call.args[0].checked_type.shape), call.attrs.axes)
    return [transpose(grad, [axes.index(i) for i in range(len(axes))])]


def _pieces(pieces: TupleWrapper) -> Tuple:
    return Tuple([pieces[i] for i in range(len(pieces))])


def _concatenate(call: Call, grad: RelayExpr) -> Gradients:
    axis = int(call.attrs.axis)
    lengths = [int(t.concrete_shape[axis]) for t in call.args[0].checked_type.fields]
    return [_pieces(split(grad, tuple(accumulate(lengths[:-1])), axis)) if len(lengths) > 1 else Tuple([grad])]


def _stack(call: Call, grad: RelayExpr) -> Gradients:
    axis, count = int(call.attrs.axis), len(call.args[0].checked_type.fields)
    parts = split(grad, count, axis)
    return [Tuple([squeeze(parts[i], [axis]) for i in range(count)])]


def _split(call: Call, grad: RelayExpr) -> Gradients:
    return [concatenate(grad, int(call.attrs.axis))]


def _strided_slice(call: Call, grad: RelayExpr) -> Gradients:
    """The gradient where the slice was taken, zero elsewhere."""
    data = call.args[0]
    shape = static_shape(call, data)
    plan = slice_plan(shape, call.attrs)
    ends = [p.begin + p.stride * p.size for p in plan]
    ends = [-n - 1 if end < 0 else end for n, end in zip(shape, ends)]
    return [strided_set(zeros_like(data), grad, [p.begin for p in plan], ends, [p.stride for p in plan]), *map(zeros_like, call.args[1:])]


def _pad(call: Call, grad: RelayExpr) -> Gradients:
    """What lies inside the padding; the rest belongs to the padded value."""
    if call.attrs.pad_mode != "constant":
        raise UnsupportedOpError(f"the gradient of nn.pad expects pad_mode 'constant', got {call.attrs.pad_mode!r}")
    data, value = call.args
    before = [int(w[0]) for w in call.attrs.pad_width]
    inner = strided_slice(grad, before, [b + n for b, n in zip(before, static_shape(call, data))])
    return [inner, reshape_like(total(grad) - total(inner), value)]


RESHAPES = ("reshape", "dyn.reshape", "contrib_reverse_reshape", "reshape_like", "squeeze", "expand_dims", "nn.batch_flatten")

register_table({**dict.fromkeys(RESHAPES, _reshape), "transpose": _transpose, "concatenate": _concatenate, "stack": _stack, "split": _split,
                "strided_slice": _strided_slice, "nn.pad": _pad})
