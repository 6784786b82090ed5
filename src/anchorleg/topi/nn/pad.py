"""Padding and dilation."""
from __future__ import annotations

from typing import Any, Sequence

from ... import te
from ...ir.expr import PrimExpr
from ...support.errors import ArgumentError
from ...te import tag
from ...te.tensor import Tensor
from ...tir import op as tir_op
from .common import as_int, dims, guarded


def pad(data: Tensor, pad_before: Sequence[Any], pad_after: Sequence[Any] | None = None, pad_value: Any = 0.0, name: str = "PadInput",
        attrs: Any = None, mode: str = "constant") -> Tensor:
    """``data`` with a border; negative widths cut.  ``mode`` is constant, edge or reflect."""
    before = [as_int(p) for p in pad_before]
    after = before if pad_after is None else [as_int(p) for p in pad_after]
    shape = dims(data)
    if len(before) != len(shape) or len(after) != len(shape):
        raise ArgumentError(f"pad: expected {len(shape)} widths, got {len(before)} and {len(after)}")
    value = pad_value if isinstance(pad_value, PrimExpr) else tir_op.const(pad_value, data.dtype)
    out = [d + b + a for d, b, a in zip(shape, before, after)]

    def element(*index: Any) -> PrimExpr:
        at, inside = [], []
        for i, b, a, d in zip(index, before, after, shape):
            at.append(i - b if b != 0 else i)
            if mode == "constant":
                inside += [i >= b] if _positive(b) else []
                inside += [i < d + b] if _positive(a) else []
        if mode == "constant":
            return guarded(inside, data(*at), value)
        return data(*[_folded(i, d, mode) for i, d in zip(at, shape)])

    return te.compute(out, element, name=name, tag=f"{tag.INJECTIVE},pad", attrs=attrs)


def _positive(width: Any) -> bool:
    return not isinstance(width, int) or width > 0


def _folded(i: Any, extent: Any, mode: str) -> Any:
    last = extent - 1
    if mode == "edge":
        return tir_op.minimum(tir_op.maximum(i, 0), last)
    low = tir_op.if_then_else(i < 0, -i if mode == "reflect" else -i - 1, i)
    return tir_op.if_then_else(i > last, (2 * last - i) if mode == "reflect" else (2 * extent - 1 - i), low)


def mirror_pad(data: Tensor, pad_before: Sequence[Any], pad_after: Sequence[Any] | None = None, mode: str = "SYMMETRIC",
               name: str = "MirrorPadInput") -> Tensor:
    """``data`` with a mirrored border; SYMMETRIC repeats the edge, REFLECT does not."""
    before = [as_int(p) for p in pad_before]
    after = before if pad_after is None else [as_int(p) for p in pad_after]
    shape = dims(data)
    kind = "reflect" if mode == "REFLECT" else "symmetric"

    def element(*index: Any) -> PrimExpr:
        return data(*[_folded(i - b, d, kind) if (b, a) != (0, 0) else i for i, b, a, d in zip(index, before, after, shape)])

    return te.compute([d + b + a for d, b, a in zip(shape, before, after)], element, name=name, tag=tag.INJECTIVE)


def dilate(data: Tensor, strides: Sequence[int], dilation_value: Any = 0.0, name: str = "DilatedInput") -> Tensor:
    """``data`` spread out by ``strides``, with ``dilation_value`` in between."""
    shape = dims(data)
    if len(strides) != len(shape):
        raise ArgumentError(f"dilate: expected {len(shape)} strides, got {len(strides)}")
    steps = [as_int(s) for s in strides]

    def element(*index: Any) -> PrimExpr:
        on_grid = [tir_op.equal(i % s, 0) for i, s in zip(index, steps) if s != 1]
        return guarded(on_grid, data(*[i // s if s != 1 else i for i, s in zip(index, steps)]), dilation_value)

    return te.compute([(d - 1) * s + 1 for d, s in zip(shape, steps)], element, name=name, tag=tag.INJECTIVE)


def pad_axes(data: Tensor, axes: Sequence[int], pads: Sequence[tuple[int, int]], value: Any = 0.0, name: str = "data_pad") -> Tensor:
    """``data`` padded along some axes; the same tensor when nothing is to be padded."""
    if not any(b or a for b, a in pads):
        return data
    before, after = [0] * data.ndim, [0] * data.ndim
    for axis, (b, a) in zip(axes, pads):
        before[axis], after[axis] = b, a
    return pad(data, before, after, value, name=name)
