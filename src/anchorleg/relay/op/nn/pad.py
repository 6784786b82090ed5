"""Padding: with a value, by repeating the edge, and by mirroring; and dilation."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.attrs import FLOAT, INTS, NESTED_INTS, STR, Attrs, Field
from ....ir.expr import Any as AnyDim, RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ....support.errors import TypeMismatchError
from ...expr import Call, Constant, const
from ..registry import declare
from .common import add, known, shown, tensor
from .numeric import pad as pad_with


class PadAttrs(Attrs, name="relay.attrs.PadAttrs"):
    """Attributes of nn.pad."""

    pad_width = Field(NESTED_INTS, doc="(before, after) for each axis.")
    pad_mode = Field(STR, "constant", "constant, edge or reflect.")


class MirrorPadAttrs(Attrs, name="relay.attrs.MirrorPadAttrs"):
    """Attributes of nn.mirror_pad."""

    mode = Field(STR, "SYMMETRIC", "SYMMETRIC repeats the edge itself, REFLECT does not.")
    pad_width = Field(NESTED_INTS, doc="(before, after) for each axis.")


class DilateAttrs(Attrs, name="relay.attrs.DilateAttrs"):
    """Attributes of nn.dilate."""

    strides = Field(INTS, (1, 1), "Distance of the data's entries in the result, per axis.")
    dilation_value = Field(FLOAT, 0.0, "What lies between them.")


def _padded(op: str, data: TensorType, widths: Any) -> TensorType:
    if len(widths) != len(data.dims):
        raise TypeMismatchError(f"{op}: expected pad_width of {len(data.dims)} pairs for shape {shown(data.dims)}, got {len(widths)}")
    if any(not isinstance(w, tuple) or len(w) != 2 or not known(*w) for w in widths):
        raise TypeMismatchError(f"{op}: each entry of pad_width must be a pair (before, after), got {list(widths)}")
    dims = [add(add(d, b), a) for d, (b, a) in zip(data.dims, widths)]
    if any(known(d) and d < 0 for d in dims):
        raise TypeMismatchError(f"{op}: pad_width {list(widths)} cuts more than shape {shown(data.dims)} has")
    return TensorType(dims, data.dtype)


def _pad_relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    data = tensor(args[0], "nn.pad, data")
    if data is None:
        return None
    if attrs.pad_mode not in ("constant", "edge", "reflect"):
        raise TypeMismatchError(f"nn.pad: pad_mode must be constant, edge or reflect, got {attrs.pad_mode!r}")
    return _padded("nn.pad", data, attrs.pad_width)


def _pad_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    widths = [(int(b), int(a)) for b, a in attrs.pad_width]
    if attrs.pad_mode == "constant":
        return pad_with(args[0], widths, np.asarray(args[1]).astype(args[0].dtype).reshape(-1)[0])
    grow = [(max(b, 0), max(a, 0)) for b, a in widths]
    cut = [(min(b, 0), min(a, 0)) for b, a in widths]
    return np.pad(pad_with(args[0], cut), grow, mode=attrs.pad_mode)


def _mirror_relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    data = tensor(args[0], "nn.mirror_pad, data")
    if data is None:
        return None
    if attrs.mode not in ("SYMMETRIC", "REFLECT"):
        raise TypeMismatchError(f"nn.mirror_pad: mode must be SYMMETRIC or REFLECT, got {attrs.mode!r}")
    room = 1 if attrs.mode == "REFLECT" else 0
    out = _padded("nn.mirror_pad", data, attrs.pad_width)
    for d, width in zip(data.dims, attrs.pad_width):
        if min(width) < 0 or (known(d) and max(width) > d - room):
            raise TypeMismatchError(f"nn.mirror_pad: an axis of extent {d} cannot be mirrored by {width} with mode {attrs.mode}")
    return out


def _mirror_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    return np.pad(args[0], [tuple(map(int, w)) for w in attrs.pad_width], mode=attrs.mode.lower())


def _dilate_relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    data = tensor(args[0], "nn.dilate, data")
    if data is None:
        return None
    if len(attrs.strides) != len(data.dims):
        raise TypeMismatchError(f"nn.dilate: expected {len(data.dims)} strides for shape {shown(data.dims)}, got {len(attrs.strides)}")
    return TensorType([d if isinstance(d, AnyDim) else (d - 1) * s + 1 for d, s in zip(data.dims, attrs.strides)], data.dtype)


def _dilate_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    out = np.full(out_type.concrete_shape, attrs.dilation_value, args[0].dtype)
    out[tuple(slice(None, None, s) for s in attrs.strides)] = args[0]
    return out


declare("nn.pad", inputs=("data", "pad_value"), attrs=PadAttrs, relation=_pad_relation, pattern=OpPattern.INJECTIVE, numpy=_pad_numpy,
        level=2, doc="data with a border; negative widths cut.")
declare("nn.mirror_pad", attrs=MirrorPadAttrs, relation=_mirror_relation, pattern=OpPattern.INJECTIVE, numpy=_mirror_numpy, level=2,
        doc="data with a border that mirrors it.")
declare("nn.dilate", inputs=("x",), attrs=DilateAttrs, relation=_dilate_relation, pattern=OpPattern.INJECTIVE, numpy=_dilate_numpy,
        level=10, doc="data spread out, with a value in between.")


def pad(data: RelayExpr, pad_width: Any, pad_value: Any = 0, pad_mode: str = "constant") -> Call:
    """``data`` with ``pad_width[i] = (before, after)`` entries around axis i.

    ``pad_value`` is a number or a scalar expression; ``pad_width`` may be an expression, and then the result's shape is known at
    run time only.
    """
    if isinstance(pad_width, Constant):
        pad_width = pad_width.data.numpy().tolist()
    if not isinstance(pad_value, RelayExpr):
        pad_value = const(pad_value)
    if isinstance(pad_width, RelayExpr):
        from ..registry import make_attrs

        return Call(Op.get("dyn.nn.pad"), [data, pad_width, pad_value], make_attrs("dyn.nn.pad", pad_mode=pad_mode))
    return Call(Op.get("nn.pad"), [data, pad_value], PadAttrs(pad_width=pad_width, pad_mode=pad_mode))


def mirror_pad(data: RelayExpr, pad_width: Any, mode: str = "SYMMETRIC") -> Call:
    """``data`` with a mirrored border."""
    return Call(Op.get("nn.mirror_pad"), [data], MirrorPadAttrs(mode=mode, pad_width=pad_width))


def dilate(data: RelayExpr, strides: Any, dilation_value: float = 0.0) -> Call:
    """``data`` spread out by ``strides``, with ``dilation_value`` in between."""
    return Call(Op.get("nn.dilate"), [data], DilateAttrs(strides=strides, dilation_value=dilation_value))
