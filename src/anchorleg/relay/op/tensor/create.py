"""Operators that make a tensor of one value: zeros, ones, full, and their forms that follow another tensor's shape."""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from ....ir.expr import Any as AnyDim
from ....ir.expr import RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ....runtime.dtype import numpy_dtype
from ....support.errors import TypeMismatchError
from ...expr import Call, Constant
from ..attrs_common import InitOpAttrs
from ..registry import declare
from ..type_relations import identity_rel, is_any, show, tensor, tensors
from .common import elementwise, unary
from .convert import cast_numpy


def _init_rel(args: tuple[Type, ...], attrs: InitOpAttrs, ctx: Any) -> Type | None:
    return TensorType(attrs.shape or (), attrs.dtype or "float32")


def _dims_from(shape: Type) -> tuple[Any, ...] | None:
    """Unknown dimensions, as many as the shape tensor has entries."""
    t = tensor(shape, "the shape")
    if t is None:
        return None
    if len(t.dims) > 1 or t.dims and is_any(t.dims[0]):
        raise TypeMismatchError(f"the shape is expected to be a tensor of one dimension of known size, got {show(t)}")
    return tuple(AnyDim() for _ in range(t.dims[0])) if t.dims else ()


def _dyn_init_rel(args: tuple[Type, ...], attrs: InitOpAttrs, ctx: Any) -> Type | None:
    dims = _dims_from(args[0])
    return None if dims is None else TensorType(dims, attrs.dtype or "float32")


def _scalar(fill: TensorType) -> TensorType:
    if fill.dims:
        raise TypeMismatchError(f"fill_value is expected to be a scalar, got {show(fill)}")
    return fill


def _full_rel(args: tuple[Type, ...], attrs: InitOpAttrs, ctx: Any) -> Type | None:
    fill = tensor(args[0], "fill_value")
    return None if fill is None else TensorType(attrs.shape or (), attrs.dtype or _scalar(fill).dtype)


def _dyn_full_rel(args: tuple[Type, ...], attrs: InitOpAttrs, ctx: Any) -> Type | None:
    fill, dims = tensor(args[0], "fill_value"), _dims_from(args[1])
    return None if fill is None or dims is None else TensorType(dims, attrs.dtype or _scalar(fill).dtype)


def _full_like_rel(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    both = tensors(args, ("the input", "fill_value"))
    if both is None:
        return None
    _scalar(both[1])
    return both[0]


def _filled(shape: Any, value: Any, out_type: Any) -> np.ndarray:
    return np.full([int(d) for d in shape], value, numpy_dtype(out_type.dtype))


def _constant_rule(value: int) -> Any:
    return lambda attrs, args, out_type: _filled(attrs.shape or (), value, out_type)


def _dyn_constant_rule(value: int) -> Any:
    return lambda attrs, args, out_type: _filled(args[0].reshape(-1), value, out_type)


def _full_rule(attrs: InitOpAttrs, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    return _filled(attrs.shape or (), cast_numpy(args[0], out_type.dtype), out_type)


def _dyn_full_rule(attrs: InitOpAttrs, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    return _filled(args[1].reshape(-1), cast_numpy(args[0], out_type.dtype), out_type)


def _full_like_rule(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    return _filled(args[0].shape, cast_numpy(args[1], out_type.dtype), out_type)


for _name, _value in (("zeros", 0), ("ones", 1)):
    declare(_name, inputs=(), attrs=InitOpAttrs, relation=_init_rel, pattern=OpPattern.ELEMWISE, numpy=_constant_rule(_value),
            level=3, doc=f"A tensor of {_name}.")
    declare(f"dyn.{_name}", inputs=("shape",), attrs=InitOpAttrs, relation=_dyn_init_rel, pattern=OpPattern.OPAQUE,
            numpy=_dyn_constant_rule(_value), level=3, doc=f"A tensor of {_name} whose shape is known at run time.")
    declare(f"{_name}_like", relation=identity_rel, pattern=OpPattern.ELEMWISE, level=4, doc=f"{_name}, shaped as the input.",
            numpy=elementwise(np.zeros_like if _value == 0 else np.ones_like))
declare("full", inputs=("fill_value",), attrs=InitOpAttrs, relation=_full_rel, pattern=OpPattern.ELEMWISE, numpy=_full_rule, level=3,
        doc="A tensor of one value.")
declare("dyn.full", inputs=("fill_value", "shape"), attrs=InitOpAttrs, relation=_dyn_full_rel, pattern=OpPattern.OPAQUE,
        numpy=_dyn_full_rule, level=3, doc="A tensor of one value whose shape is known at run time.")
declare("full_like", inputs=("data", "fill_value"), relation=_full_like_rel, pattern=OpPattern.ELEMWISE, numpy=_full_like_rule, level=4,
        doc="A tensor of one value, shaped and typed as the first input.")


def _static_shape(shape: Any) -> tuple[Any, ...] | None:
    """The shape as a tuple, or None when it is an expression whose value is not known."""
    if isinstance(shape, Constant):
        return tuple(int(d) for d in shape.data.numpy().reshape(-1))
    if isinstance(shape, RelayExpr):
        return None
    return (shape,) if isinstance(shape, int) else tuple(shape)


def _init(name: str, shape: Any, dtype: Any) -> Call:
    static = _static_shape(shape)
    if static is None:
        return Call(Op.get(f"dyn.{name}"), [shape], InitOpAttrs(shape=None, dtype=dtype))
    return Call(Op.get(name), [], InitOpAttrs(shape=static, dtype=dtype))


def zeros(shape: int | Sequence[Any] | RelayExpr, dtype: Any) -> Call:
    """A tensor of zeros; ``shape`` may be an expression (a 1-D integer tensor)."""
    return _init("zeros", shape, dtype)


def ones(shape: int | Sequence[Any] | RelayExpr, dtype: Any) -> Call:
    """A tensor of ones; ``shape`` may be an expression (a 1-D integer tensor)."""
    return _init("ones", shape, dtype)


def full(fill_value: RelayExpr, shape: int | Sequence[Any] | RelayExpr = (), dtype: Any = "") -> Call:
    """A tensor of one value (a scalar expression); ``dtype`` is that of the value when not given."""
    static = _static_shape(shape)
    if static is None:
        return Call(Op.get("dyn.full"), [fill_value, shape], InitOpAttrs(shape=None, dtype=dtype))  # type: ignore[list-item]
    return Call(Op.get("full"), [fill_value], InitOpAttrs(shape=static, dtype=dtype))


def full_like(data: RelayExpr, fill_value: RelayExpr) -> Call:
    """A tensor of one value (a scalar expression), shaped and typed as ``data``."""
    return Call(Op.get("full_like"), [data, fill_value])


zeros_like = unary("zeros_like", "Zeros, shaped and typed as ``data``.")
ones_like = unary("ones_like", "Ones, shaped and typed as ``data``.")

__all__ = ["zeros", "ones", "full", "full_like", "zeros_like", "ones_like"]
