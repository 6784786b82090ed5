"""``dyn.nn.pad``, ``dyn.nn.upsampling`` and ``dyn.nn.upsampling3d``: the widths, or the factors, are inputs."""
from __future__ import annotations

from typing import Any, Callable

import numpy as np

from ....ir.attrs import BOOL, STR, Attrs, Field
from ....ir.expr import Any as AnyDim
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ....support.errors import TypeMismatchError
from ..nn.conv import layout_map
from ..nn.pad import PadAttrs
from ..nn.upsampling import METHODS, UpSampling3DAttrs, UpSamplingAttrs
from ..registry import declare, evaluate
from ..transform.common import known, require_integer, show, tensors


class DynPadAttrs(Attrs, name="relay.attrs.DynPadAttrs"):
    """Attributes of dyn.nn.pad."""

    pad_mode = Field(STR, "constant", "constant, edge or reflect.")


class DynUpSamplingAttrs(Attrs, name="relay.attrs.DynUpSamplingAttrs"):
    """Attributes of dyn.nn.upsampling."""

    layout = Field(STR, "NCHW", "Layout of the data.")
    method = Field(STR, "nearest_neighbor", "nearest_neighbor, bilinear or bicubic.")
    align_corners = Field(BOOL, False, "Whether the corner pixels' centres stay in place.")


class DynUpSampling3DAttrs(Attrs, name="relay.attrs.DynUpSampling3DAttrs"):
    """Attributes of dyn.nn.upsampling3d."""

    layout = Field(STR, "NCDHW", "Layout of the data.")
    method = Field(STR, "nearest_neighbor", "nearest_neighbor or trilinear.")
    coordinate_transformation_mode = Field(STR, "half_pixel", "half_pixel, align_corners or asymmetric.")


def _as_static(op: str, attrs: Attrs, data: np.ndarray, *rest: np.ndarray) -> Any:
    """The static operator's result, whose shape its own type relation tells."""
    types = [TensorType(a.shape, str(a.dtype)) for a in (data, *rest)]
    return evaluate(op, attrs, [data, *rest], Op.get(op).relation(tuple(types), attrs, None))


def _pad_rel(args: tuple[Type, ...], attrs: DynPadAttrs, ctx: Any) -> Type | None:
    types = tensors(args, ("data", "pad_width", "pad_value"))
    if types is None:
        return None
    data, widths, value = types
    require_integer("pad_width", widths)
    wanted = (len(data.dims), 2)
    if len(widths.dims) != 2 or any(known(d) and d != w for d, w in zip(widths.dims, wanted)):
        raise TypeMismatchError(f"pad_width must have shape {show(wanted)} for data of shape {show(data.dims)}, got {show(widths.dims)}")
    if value.dims:
        raise TypeMismatchError(f"pad_value must be a scalar, got shape {show(value.dims)}")
    return TensorType([AnyDim() for _ in data.dims], data.dtype)


def _pad_numpy(attrs: DynPadAttrs, args: list[np.ndarray], out_type: Type) -> Any:
    static = PadAttrs(pad_width=args[1].tolist(), pad_mode=attrs.pad_mode)
    return _as_static("nn.pad", static, args[0], args[2].astype(args[0].dtype))


def _upsampling_rel(canonical: str, names: tuple[str, ...]) -> Any:
    def relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
        types = tensors(args, names)
        if types is None:
            return None
        if attrs.method not in METHODS:
            raise TypeMismatchError(f"method must be one of {', '.join(METHODS)}, got {attrs.method!r}")
        if bad := [f"{n} of shape {show(t.dims)}" for n, t in zip(names[1:], types[1:]) if t.dims]:
            raise TypeMismatchError(f"the factors must be scalars, got {', '.join(bad)}")
        mapping = layout_map("upsampling", "layout", attrs.layout, canonical)
        shape = mapping.forward_shape(types[0].dims)
        return TensorType(mapping.backward_shape((*shape[:2], *(AnyDim() for _ in shape[2:]))), types[0].dtype)

    return relation


def _upsampling_numpy(op: str, static: type[Attrs], names: tuple[str, ...]) -> Callable[..., Any]:
    def rule(attrs: Any, args: list[np.ndarray], out_type: Type) -> Any:
        scales = {n: float(a) for n, a in zip(names, args[1:])}
        return _as_static(op, static(**scales, **dict(attrs.items())), args[0])

    return rule


def _declare_upsampling(op: str, canonical: str, static: type[Attrs], dynamic: type[Attrs], scales: tuple[str, ...], doc: str) -> None:
    inputs = ("data", *scales)
    declare(f"dyn.{op}", inputs=inputs, attrs=dynamic, relation=_upsampling_rel(canonical, inputs), pattern=OpPattern.INJECTIVE,
            numpy=_upsampling_numpy(op, static, scales), level=2, doc=doc)


declare("dyn.nn.pad", inputs=("data", "pad_width", "pad_value"), attrs=DynPadAttrs, relation=_pad_rel, pattern=OpPattern.INJECTIVE,
        numpy=_pad_numpy, level=2, doc="pad whose widths are an input.")
_declare_upsampling("nn.upsampling", "NCHW", UpSamplingAttrs, DynUpSamplingAttrs, ("scale_h", "scale_w"),
                    "Planes made larger by factors that are inputs.")
_declare_upsampling("nn.upsampling3d", "NCDHW", UpSampling3DAttrs, DynUpSampling3DAttrs, ("scale_d", "scale_h", "scale_w"),
                    "Volumes made larger by factors that are inputs.")
