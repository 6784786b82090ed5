"""Upsampling of planes and volumes by a factor: nearest, linear and cubic."""
from __future__ import annotations

import math
from typing import Any, Callable

import numpy as np

from ....ir.attrs import BOOL, FLOAT, STR, Attrs, Field
from ....ir.expr import Any as AnyDim, RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ....support.errors import TypeMismatchError
from ...expr import Call, Constant, const
from ..registry import declare
from ..transform.transpose import convert_layout
from .common import known, tensor, wide
from .conv import layout_map


class UpSamplingAttrs(Attrs, name="relay.attrs.UpSamplingAttrs"):
    """Attributes of nn.upsampling."""

    scale_h = Field(FLOAT, doc="Factor of the height.")
    scale_w = Field(FLOAT, doc="Factor of the width.")
    layout = Field(STR, "NCHW", "Layout of the data.")
    method = Field(STR, "nearest_neighbor", "nearest_neighbor, bilinear or bicubic.")
    align_corners = Field(BOOL, False, "Whether the corner pixels' centres stay in place.")


class UpSampling3DAttrs(Attrs, name="relay.attrs.UpSampling3DAttrs"):
    """Attributes of nn.upsampling3d."""

    scale_d = Field(FLOAT, doc="Factor of the depth.")
    scale_h = Field(FLOAT, doc="Factor of the height.")
    scale_w = Field(FLOAT, doc="Factor of the width.")
    layout = Field(STR, "NCDHW", "Layout of the data.")
    method = Field(STR, "nearest_neighbor", "nearest_neighbor or trilinear.")
    coordinate_transformation_mode = Field(STR, "half_pixel", "half_pixel, align_corners or asymmetric.")


def scaled(dim: Any, scale: float) -> Any:
    """The extent ``dim * scale``, rounded half away from zero."""
    return math.floor(dim * scale + 0.5) if known(dim) else AnyDim()


METHODS = {"nearest_neighbor": "nearest", "bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}


def _relation(op: str, canonical: str, scales: tuple[str, ...]) -> Any:
    def relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
        data = tensor(args[0], f"{op}, data")
        if data is None:
            return None
        if attrs.method not in METHODS:
            raise TypeMismatchError(f"{op}: method must be one of {', '.join(METHODS)}, got {attrs.method!r}")
        mapping = layout_map(op, "layout", attrs.layout, canonical)
        shape = mapping.forward_shape(data.dims)
        space = [scaled(d, attrs[s]) for d, s in zip(shape[2:], scales)]
        return TensorType(mapping.backward_shape((*shape[:2], *space)), data.dtype)

    return relation


def positions(extent: int, out: int, mode: str) -> np.ndarray:
    """Where each of ``out`` entries lies among ``extent`` entries."""
    at = np.arange(out, dtype=np.float64)
    if mode == "align_corners":
        return at * ((extent - 1) / (out - 1) if out > 1 else 0.0)
    if mode == "half_pixel":
        return (at + 0.5) * (extent / out) - 0.5
    return at * (extent / out)


def cubic_weights(t: np.ndarray, alpha: float) -> list[np.ndarray]:
    """Weights of the four neighbours at distance ``t`` past the second one (Keys, 1981)."""
    def near(d: np.ndarray) -> np.ndarray:
        return ((alpha + 2) * d - (alpha + 3)) * d * d + 1

    def far(d: np.ndarray) -> np.ndarray:
        return ((alpha * d - 5 * alpha) * d + 8 * alpha) * d - 4 * alpha

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def resample(x: np.ndarray, axis: int, out: int, kind: str, mode: str, alpha: float = -0.5) -> np.ndarray:
    """``x`` resampled to ``out`` entries along an axis."""
    extent = x.shape[axis]
    at = positions(extent, out, mode)
    if kind == "nearest":
        pick: Callable[[np.ndarray], np.ndarray] = np.floor if mode != "align_corners" else lambda v: np.floor(v + 0.5)
        return np.take(x, np.clip(pick(at), 0, extent - 1).astype(np.int64), axis=axis)
    base = np.floor(at)
    t = at - base
    weights, first = ([1 - t, t], 0) if kind == "linear" else (cubic_weights(t, alpha), -1)
    total: Any = 0
    for i, w in enumerate(weights):
        index = np.clip(base + first + i, 0, extent - 1).astype(np.int64)
        total = total + np.take(x, index, axis=axis) * w.astype(x.dtype).reshape([-1 if a == axis else 1 for a in range(x.ndim)])
    return total


def _numpy(canonical: str, mode_of: Callable[[Any], str]) -> Any:
    def rule(attrs: Any, args: list[np.ndarray], out_type: TensorType) -> np.ndarray:
        x = convert_layout(args[0], attrs.layout, canonical)
        mapping = layout_map("upsampling", "layout", attrs.layout, canonical)
        kind = METHODS[attrs.method]
        x = x if kind == "nearest" else x.astype(wide(str(x.dtype)) if x.dtype.kind not in "iu" else np.float32)
        for axis, out in enumerate(mapping.forward_shape(out_type.concrete_shape)[2:], 2):
            x = resample(x, axis, out, kind, mode_of(attrs))
        return convert_layout(x, canonical, attrs.layout)

    return rule


declare("nn.upsampling", attrs=UpSamplingAttrs, relation=_relation("nn.upsampling", "NCHW", ("scale_h", "scale_w")),
        pattern=OpPattern.INJECTIVE, numpy=_numpy("NCHW", lambda a: "align_corners" if a.align_corners else "asymmetric"), level=2,
        doc="Planes made larger by a factor.")
declare("nn.upsampling3d", attrs=UpSampling3DAttrs, relation=_relation("nn.upsampling3d", "NCDHW", ("scale_d", "scale_h", "scale_w")),
        pattern=OpPattern.INJECTIVE, numpy=_numpy("NCDHW", lambda a: a.coordinate_transformation_mode), level=2,
        doc="Volumes made larger by a factor.")


def _number(scale: Any) -> Any:
    return scale.data.numpy().item() if isinstance(scale, Constant) else scale


def _call(op: str, data: RelayExpr, scales: dict[str, Any], **values: Any) -> Call:
    scales = {k: _number(v) for k, v in scales.items()}
    if any(isinstance(v, RelayExpr) for v in scales.values()):
        from ..registry import make_attrs

        exprs = [v if isinstance(v, RelayExpr) else const(v, "float64") for v in scales.values()]
        return Call(Op.get(f"dyn.{op}"), [data, *exprs], make_attrs(f"dyn.{op}", **values))
    cls = UpSamplingAttrs if op == "nn.upsampling" else UpSampling3DAttrs
    return Call(Op.get(op), [data], cls(**scales, **values))


def upsampling(data: RelayExpr, scale_h: Any = 1, scale_w: Any = 1, layout: str = "NCHW", method: str = "nearest_neighbor",
               align_corners: bool = False) -> Call:
    """Planes made ``scale_h`` × ``scale_w`` times larger; a factor may be an expression."""
    return _call("nn.upsampling", data, {"scale_h": scale_h, "scale_w": scale_w}, layout=layout, method=method,
                 align_corners=align_corners)


def upsampling3d(data: RelayExpr, scale_d: Any = 1, scale_h: Any = 1, scale_w: Any = 1, layout: str = "NCDHW",
                 method: str = "nearest_neighbor", coordinate_transformation_mode: str = "half_pixel") -> Call:
    """Volumes made larger by a factor per axis; a factor may be an expression."""
    return _call("nn.upsampling3d", data, {"scale_d": scale_d, "scale_h": scale_h, "scale_w": scale_w}, layout=layout, method=method,
                 coordinate_transformation_mode=coordinate_transformation_mode)
