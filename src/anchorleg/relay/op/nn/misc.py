"""Operators with no family: dropout, fifo_buffer, correlation."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.attrs import BOOL, FLOAT, INT, INTS, STR, Attrs, Field
from ....ir.expr import RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, TupleType, Type
from ....support.errors import TypeMismatchError
from ...expr import Call, TupleWrapper
from ..registry import declare
from .common import add, check_axis, check_rank, expect, known, shown, tensor
from .numeric import pad, windows
from .utils import get_pad_tuple2d, pad_pairs


class DropoutAttrs(Attrs, name="relay.attrs.DropoutAttrs"):
    """Attributes of nn.dropout."""

    rate = Field(FLOAT, 0.5, "Fraction of the entries dropped while training.")


class FIFOBufferAttrs(Attrs, name="relay.attrs.FIFOBufferAttrs"):
    """Attributes of nn.fifo_buffer."""

    axis = Field(INT, 0, "The axis along which the buffer moves.")


class CorrelationAttrs(Attrs, name="relay.attrs.CorrelationAttrs"):
    """Attributes of nn.correlation."""

    kernel_size = Field(INT, 1, "Side of the patches compared; odd.")
    max_displacement = Field(INT, 1, "Largest displacement.")
    stride1 = Field(INT, 1, "Step of the patches of data1.")
    stride2 = Field(INT, 1, "Step of the displacements.")
    padding = Field(INTS, (0, 0), "Zeros put around both: befores, then afters.")
    is_multiply = Field(BOOL, True, "Whether patches are compared by products or by absolute differences.")
    layout = Field(STR, "NCHW", "Layout of the data.")


def _dropout_relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    data = tensor(args[0], "nn.dropout, data")
    return None if data is None else TupleType((data, data))


def _dropout_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> tuple[np.ndarray, np.ndarray]:
    return args[0], np.ones_like(args[0])


def _fifo_relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    op = "nn.fifo_buffer"
    data, buffer = tensor(args[0], f"{op}, data"), tensor(args[1], f"{op}, buffer")
    if data is None or buffer is None:
        return None
    axis = check_axis(op, attrs.axis, len(buffer.dims))
    same = len(data.dims) == len(buffer.dims) and data.dtype == buffer.dtype
    fits = same and all(a == b for i, (a, b) in enumerate(zip(data.dims, buffer.dims)) if known(a, b) and i != axis)
    if not fits or (known(data.dims[axis], buffer.dims[axis]) and data.dims[axis] >= buffer.dims[axis]):
        raise TypeMismatchError(f"{op}: data {shown(data.dims)} {data.dtype} must have the shape of buffer {shown(buffer.dims)} "
                                f"{buffer.dtype}, and be shorter along axis {axis}")
    return buffer


def _fifo_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    data, buffer = args
    kept = [slice(None)] * buffer.ndim
    kept[attrs.axis] = slice(data.shape[attrs.axis], None)
    return np.concatenate([buffer[tuple(kept)], data], axis=attrs.axis)


def _correlation_relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    op = "nn.correlation"
    a, b = tensor(args[0], f"{op}, data1"), tensor(args[1], f"{op}, data2")
    if a is None or b is None:
        return None
    check_rank(op, a, 4, "data1")
    expect(ctx, op, "data2", b, a.dims, a.dtype)
    if attrs.layout != "NCHW" or attrs.kernel_size % 2 == 0:
        raise TypeMismatchError(f"{op}: expected layout NCHW and an odd kernel_size, got {attrs.layout!r} and {attrs.kernel_size}")
    side = 2 * (attrs.max_displacement // attrs.stride2) + 1
    border = attrs.max_displacement + (attrs.kernel_size - 1) // 2
    space = []
    for d, (before, after) in zip(a.dims[2:], pad_pairs(attrs.padding, 2)):
        room = add(add(d, before + after), attrs.stride1 - 1 - 2 * border)
        if known(room) and room < attrs.stride1:
            raise TypeMismatchError(f"{op}: max_displacement {attrs.max_displacement} leaves nothing of {d} entries")
        space.append(room // attrs.stride1 if known(room) else room)
    return TensorType((a.dims[0], side * side, *space), a.dtype)


def _correlation_numpy(attrs: Any, args: list[np.ndarray], out_type: TensorType) -> np.ndarray:
    widths = [(0, 0), (0, 0), *pad_pairs(attrs.padding, 2)]
    a, b = pad(args[0], widths), pad(args[1], widths)
    n, side2, oh, ow = out_type.concrete_shape
    k, reach, s1 = attrs.kernel_size, attrs.max_displacement, attrs.stride1
    radius = reach // attrs.stride2
    patches_a, patches_b = (windows(x, (2, 3), (k, k), (1, 1), (1, 1)) for x in (a, b))
    base = patches_a[:, :, reach:reach + s1 * (oh - 1) + 1:s1, reach:reach + s1 * (ow - 1) + 1:s1]
    out = np.empty((n, side2, oh, ow), a.dtype)
    for i in range(side2):
        dy, dx = (i // (2 * radius + 1) - radius) * attrs.stride2 + reach, (i % (2 * radius + 1) - radius) * attrs.stride2 + reach
        other = patches_b[:, :, dy:dy + s1 * (oh - 1) + 1:s1, dx:dx + s1 * (ow - 1) + 1:s1]
        value = base * other if attrs.is_multiply else np.abs(base - other)
        out[:, i] = value.sum(axis=(1, 4, 5)) / (k * k * a.shape[1])
    return out


declare("nn.dropout", attrs=DropoutAttrs, relation=_dropout_relation, numpy=_dropout_numpy, level=1,
        doc="data unchanged (dropping is for training), and a mask of ones.")
declare("nn.fifo_buffer", inputs=("data", "buffer"), attrs=FIFOBufferAttrs, relation=_fifo_relation, numpy=_fifo_numpy, level=3,
        doc="The buffer with its oldest entries dropped and data appended along an axis.")
declare("nn.correlation", inputs=("data1", "data2"), attrs=CorrelationAttrs, relation=_correlation_relation,
        pattern=OpPattern.OUT_ELEMWISE_FUSABLE, numpy=_correlation_numpy, level=2,
        doc="How well each patch of data1 agrees with the displaced patches of data2.")


def dropout(data: RelayExpr, rate: float = 0.5) -> Any:
    """``data``; while training, a fraction ``rate`` of its entries would be dropped."""
    return TupleWrapper(dropout_raw(data, rate), 2)[0]


def dropout_raw(data: RelayExpr, rate: float = 0.5) -> Call:
    """The pair (data, mask)."""
    return Call(Op.get("nn.dropout"), [data], DropoutAttrs(rate=rate))


def fifo_buffer(data: RelayExpr, buffer: RelayExpr, axis: int) -> Call:
    """``buffer`` moved along ``axis`` so that ``data`` comes in at the end."""
    return Call(Op.get("nn.fifo_buffer"), [data, buffer], FIFOBufferAttrs(axis=axis))


def correlation(data1: RelayExpr, data2: RelayExpr, kernel_size: int, max_displacement: int, stride1: int, stride2: int, padding: Any,
                is_multiply: bool, layout: str) -> Call:
    """Compares each patch of ``data1`` with the patches of ``data2`` displaced by up to ``max_displacement``."""
    attrs = CorrelationAttrs(kernel_size=kernel_size, max_displacement=max_displacement, stride1=stride1, stride2=stride2,
                             padding=get_pad_tuple2d(padding), is_multiply=is_multiply, layout=layout)
    return Call(Op.get("nn.correlation"), [data1, data2], attrs)
