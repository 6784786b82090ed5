"""``dyn.image.resize2d``: resize2d whose size and region are inputs."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.expr import Any as AnyDim, RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ...expr import Call
from ..image.resize import Resize2DAttrs, spatial_axes
from ..registry import declare, evaluate
from ..transform.common import require_integer, tensors


def _resize2d_rel(args: tuple[Type, ...], attrs: Resize2DAttrs, ctx: Any) -> Type | None:
    types = tensors(args, ("data", "size", "roi"))
    if types is None:
        return None
    data = types[0]
    require_integer("size", types[1])
    dims = list(data.dims)
    for axis in spatial_axes(attrs.layout, "HW", len(dims)):
        dims[axis] = AnyDim()
    return TensorType(dims, attrs.out_dtype or data.dtype)


def _resize2d_numpy(attrs: Resize2DAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    static = attrs.replace(size=args[1].reshape(-1).tolist(), roi=args[2].reshape(-1).tolist())
    return evaluate("image.resize2d", static, args[:1], out_type)


declare("dyn.image.resize2d", inputs=("data", "size", "roi"), attrs=Resize2DAttrs, relation=_resize2d_rel, pattern=OpPattern.INJECTIVE,
        numpy=_resize2d_numpy, level=5, doc="resize2d whose size and region are inputs.")


def resize2d(data: RelayExpr, size: RelayExpr, roi: RelayExpr, layout: str = "NCHW", method: str = "linear",
             coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "", cubic_alpha: float = -0.5,
             cubic_exclude: int = 0, extrapolation_value: float = 0.0, out_dtype: str | None = None) -> Call:
    """``image.resize2d`` whose ``size`` (height, width) and ``roi`` are vectors."""
    attrs = Resize2DAttrs(layout=layout, method=method, coordinate_transformation_mode=coordinate_transformation_mode,
                          rounding_method=rounding_method, cubic_alpha=cubic_alpha, cubic_exclude=cubic_exclude,
                          extrapolation_value=extrapolation_value, out_dtype=out_dtype)
    return Call(Op.get("dyn.image.resize2d"), [data, size, roi], attrs)


__all__ = ["resize2d"]
