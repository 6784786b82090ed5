"""``dyn.*`` forms of the transform operators: the shape (or axis, or slice) is an input."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.attrs import INT, Attrs, Field
from ....ir.expr import Any as AnyDim, RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ....runtime.dtype import numpy_dtype
from ....support.errors import ArgumentError, TypeMismatchError
from ...expr import Call, const
from ..attrs_common import InitOpAttrs
from ..registry import declare
from ..transform.broadcast import TileAttrs
from ..transform.common import known, normalize_axis, require_integer, show, tensors
from ..transform.index import OneHotAttrs
from ..transform.reshape import ReshapeAttrs, SqueezeAttrs, expand_dims_shape, infer_newshape, squeeze_dims
from ..transform.slice import AxisSlice, StridedSliceAttrs, as_slices, resolve_axis
from ..transform.sparse import check_sparse, fill_sparse


class DynExpandDimsAttrs(Attrs, name="relay.attrs.DynExpandDimsAttrs"):
    """Attributes of dyn.expand_dims."""

    num_newaxis = Field(INT, 1, "How many axes are inserted.")


def _length(what: str, t: TensorType) -> int:
    """The known length of an integer vector."""
    require_integer(what, t)
    return _count(what, t)


def _count(what: str, t: TensorType) -> int:
    """The known length of a vector."""
    if len(t.dims) != 1 or not known(t.dims[0]):
        raise TypeMismatchError(f"{what} must be a vector of known length, got shape {show(t.dims)}")
    return int(t.dims[0])


def _unknown(n: int) -> list[AnyDim]:
    return [AnyDim() for _ in range(n)]


def _ints(array: np.ndarray) -> list[int]:
    return [int(v) for v in array.reshape(-1)]


# ---- reshape, squeeze, expand_dims -----------------------------------------------------------------------------------

def _reshape_rel(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    types = tensors(args, ("data", "newshape"))
    return types and TensorType(_unknown(_length("newshape", types[1])), types[0].dtype)


def _reshape_numpy(attrs: ReshapeAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    return args[0].reshape(infer_newshape(args[0].shape, _ints(args[1]), attrs.allowzero))


def _squeeze_rel(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    types = tensors(args, ("data", "axes"))
    if types is None:
        return None
    left = len(types[0].dims) - _length("axes", types[1])
    if left < 0:
        raise TypeMismatchError(f"more axes are removed than data of shape {show(types[0].dims)} has")
    return TensorType(_unknown(left), types[0].dtype)


def _squeeze_numpy(attrs: Any, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    return args[0].reshape(squeeze_dims(args[0].shape, _ints(args[1])))


def _expand_dims_rel(args: tuple[Type, ...], attrs: DynExpandDimsAttrs, ctx: Any) -> Type | None:
    types = tensors(args, ("data", "axis"))
    if types is None:
        return None
    require_integer("axis", types[1])
    if types[1].dims:
        raise TypeMismatchError(f"axis must be a scalar, got shape {show(types[1].dims)}")
    return TensorType(_unknown(len(types[0].dims) + attrs.num_newaxis), types[0].dtype)


def _expand_dims_numpy(attrs: DynExpandDimsAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    return args[0].reshape(expand_dims_shape(args[0].shape, int(args[1]), attrs.num_newaxis))


# ---- broadcast_to, tile, one_hot -------------------------------------------------------------------------------------

def _broadcast_to_rel(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    types = tensors(args, ("data", "shape"))
    return types and TensorType(_unknown(_length("shape", types[1])), types[0].dtype)


def _broadcast_to_numpy(attrs: Any, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    return np.broadcast_to(args[0], _ints(args[1])).copy()


def _tile_rel(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    types = tensors(args, ("data", "reps"))
    return types and TensorType(_unknown(max(len(types[0].dims), _count("reps", types[1]))), types[0].dtype)


def _tile_numpy(attrs: Any, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    return np.tile(args[0], _ints(args[1]))


def _one_hot_rel(args: tuple[Type, ...], attrs: OneHotAttrs, ctx: Any) -> Type | None:
    types = tensors(args, ("indices", "on_value", "off_value", "depth"))
    if types is None:
        return None
    require_integer("indices", types[0])
    require_integer("depth", types[3])
    dims = types[0].dims
    axis = normalize_axis(attrs.axis, len(dims) + 1)
    return TensorType([*dims[:axis], AnyDim(), *dims[axis:]], attrs.dtype or types[1].dtype)


def _one_hot_numpy(attrs: OneHotAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    from ..registry import evaluate

    return evaluate("one_hot", attrs.replace(depth=_ints(args[3])[0]), args[:3], out_type)


# ---- zeros, ones, full -----------------------------------------------------------------------------------------------

def _init_rel(args: tuple[Type, ...], attrs: InitOpAttrs, ctx: Any) -> Type | None:
    types = tensors(args, ("shape",))
    return types and TensorType(_unknown(_length("shape", types[0])), attrs.dtype)


def _full_rel(args: tuple[Type, ...], attrs: InitOpAttrs, ctx: Any) -> Type | None:
    types = tensors(args, ("fill_value", "shape"))
    if types is None:
        return None
    if types[0].dims:
        raise TypeMismatchError(f"fill_value must be a scalar, got shape {show(types[0].dims)}")
    return TensorType(_unknown(_length("shape", types[1])), attrs.dtype or types[0].dtype)


def _init_numpy(value: int) -> Any:
    return lambda attrs, args, out_type: np.full(_ints(args[0]), value, numpy_dtype(out_type.dtype))


def _full_numpy(attrs: InitOpAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    return np.full(_ints(args[1]), args[0].astype(numpy_dtype(out_type.dtype)))  # type: ignore[attr-defined]


# ---- strided_slice, sparse_to_dense ----------------------------------------------------------------------------------

def _strided_slice_rel(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    types = tensors(args, ("data", "begin", "end", "strides"))
    if types is None:
        return None
    data, n = types[0], _length("begin", types[1])
    if n > len(data.dims):
        raise TypeMismatchError(f"{n} axes are sliced, data has shape {show(data.dims)}")
    return TensorType([*_unknown(n), *data.dims[n:]], data.dtype)


def _strided_slice_numpy(attrs: StridedSliceAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    data, begin, end, strides = args[0], *map(_ints, args[1:])
    strides += [1] * (len(begin) - len(strides))
    plan = [AxisSlice(0, 1, n) for n in data.shape]
    for i, (b, e, s) in enumerate(zip(begin, end, strides)):
        plan[i] = resolve_axis(data.shape[i], b, e, s, attrs.slice_mode)
    return data[as_slices(plan)].copy()


def _sparse_to_dense_rel(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    types = tensors(args, ("sparse_indices", "sparse_values", "default_value", "output_shape"))
    if types is None:
        return None
    rank = _length("output_shape", types[3])
    check_sparse(*types[:3], rank)
    return TensorType(_unknown(rank), types[1].dtype)


def _sparse_to_dense_numpy(attrs: Any, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    return fill_sparse(tuple(_ints(args[3])), *args[:3])


declare("dyn.reshape", inputs=("data", "newshape"), attrs=ReshapeAttrs, relation=_reshape_rel, pattern=OpPattern.INJECTIVE,
        numpy=_reshape_numpy, level=3, TReshapeOp=True, doc="Reshape to a shape that is an input.")
declare("dyn.squeeze", inputs=("data", "axes"), attrs=SqueezeAttrs, relation=_squeeze_rel, pattern=OpPattern.INJECTIVE,
        numpy=_squeeze_numpy, level=3, TReshapeOp=True, doc="Removes axes of size 1 that an input names.")
declare("dyn.expand_dims", inputs=("data", "axis"), attrs=DynExpandDimsAttrs, relation=_expand_dims_rel, pattern=OpPattern.INJECTIVE,
        numpy=_expand_dims_numpy, level=3, doc="Inserts axes of size 1 where an input says.")
declare("dyn.broadcast_to", inputs=("data", "shape"), attrs=InitOpAttrs, relation=_broadcast_to_rel, pattern=OpPattern.BROADCAST,
        numpy=_broadcast_to_numpy, level=4, doc="Repeats the data to fill a shape that is an input.")
declare("dyn.tile", inputs=("data", "reps"), attrs=TileAttrs, relation=_tile_rel, pattern=OpPattern.INJECTIVE, numpy=_tile_numpy,
        level=3, doc="Repeats a tensor as often as an input says.")
declare("dyn.one_hot", inputs=("indices", "on_value", "off_value", "depth"), attrs=OneHotAttrs, relation=_one_hot_rel,
        pattern=OpPattern.OUT_ELEMWISE_FUSABLE, numpy=_one_hot_numpy, level=10, doc="one_hot whose depth is an input.")
declare("dyn.zeros", inputs=("shape",), attrs=InitOpAttrs, relation=_init_rel, pattern=OpPattern.ELEMWISE, numpy=_init_numpy(0), level=3,
        doc="Zeros of a shape that is an input.")
declare("dyn.ones", inputs=("shape",), attrs=InitOpAttrs, relation=_init_rel, pattern=OpPattern.ELEMWISE, numpy=_init_numpy(1), level=3,
        doc="Ones of a shape that is an input.")
declare("dyn.full", inputs=("fill_value", "shape"), attrs=InitOpAttrs, relation=_full_rel, pattern=OpPattern.ELEMWISE,
        numpy=_full_numpy, level=3, doc="One value in a shape that is an input.")
declare("dyn.strided_slice", inputs=("data", "begin", "end", "strides"), attrs=StridedSliceAttrs, relation=_strided_slice_rel,
        pattern=OpPattern.INJECTIVE, numpy=_strided_slice_numpy, level=4, doc="A strided slice whose bounds are inputs.")
declare("dyn.sparse_to_dense", inputs=("sparse_indices", "sparse_values", "default_value", "output_shape"),
        relation=_sparse_to_dense_rel, pattern=OpPattern.OPAQUE, numpy=_sparse_to_dense_numpy, level=3,
        doc="sparse_to_dense whose output shape is an input.")


def reshape(data: RelayExpr, newshape: RelayExpr, allowzero: bool = False) -> Call:
    """``data`` in the shape held by the vector ``newshape`` (special values as in the static operator)."""
    return Call(Op.get("dyn.reshape"), [data, newshape], ReshapeAttrs(allowzero=allowzero))


def squeeze(data: RelayExpr, axis: RelayExpr) -> Call:
    """``data`` without the axes named by the vector ``axis``."""
    return Call(Op.get("dyn.squeeze"), [data, axis], SqueezeAttrs())


def expand_dims(data: RelayExpr, axis: RelayExpr, num_newaxis: int = 1) -> Call:
    """``data`` with axes of size 1 inserted at the scalar ``axis``."""
    return Call(Op.get("dyn.expand_dims"), [data, axis], DynExpandDimsAttrs(num_newaxis=num_newaxis))


def broadcast_to(data: RelayExpr, shape: RelayExpr) -> Call:
    """``data`` repeated to fill the shape held by the vector ``shape``."""
    return Call(Op.get("dyn.broadcast_to"), [data, shape], InitOpAttrs())


def tile(data: RelayExpr, reps: RelayExpr) -> Call:
    """``data`` repeated as often as the vector ``reps`` says."""
    return Call(Op.get("dyn.tile"), [data, reps], TileAttrs())


def one_hot(indices: RelayExpr, on_value: RelayExpr, off_value: RelayExpr, depth: RelayExpr, axis: int, dtype: str) -> Call:
    """``one_hot`` whose depth is a scalar input."""
    return Call(Op.get("dyn.one_hot"), [indices, on_value, off_value, depth], OneHotAttrs(axis=int(axis), dtype=dtype))


def zeros(shape: RelayExpr, dtype: str) -> Call:
    """Zeros in the shape held by the vector ``shape``."""
    return Call(Op.get("dyn.zeros"), [shape], InitOpAttrs(dtype=dtype))


def ones(shape: RelayExpr, dtype: str) -> Call:
    """Ones in the shape held by the vector ``shape``."""
    return Call(Op.get("dyn.ones"), [shape], InitOpAttrs(dtype=dtype))


def full(fill_value: RelayExpr, shape: RelayExpr, dtype: str) -> Call:
    """The scalar ``fill_value`` in the shape held by the vector ``shape``."""
    return Call(Op.get("dyn.full"), [fill_value, shape], InitOpAttrs(dtype=dtype))


def strided_slice(data: RelayExpr, begin: Any, end: Any, strides: Any = None, axes: Any = None, slice_mode: str = "end") -> Call:
    """A strided slice of the first axes whose ``begin``, ``end`` and ``strides`` are lists or vectors.

    Negative positions count from the end.
    """
    if axes is not None:
        raise ArgumentError("strided_slice: axes cannot be given when begin, end or strides are expressions; slice the leading axes")
    begin, end, strides = (v if isinstance(v, RelayExpr) or v is None else const(np.array(v, np.int64)) for v in (begin, end, strides))
    if strides is None:
        strides = Call(Op.get("ones_like"), [begin])
    return Call(Op.get("dyn.strided_slice"), [data, begin, end, strides], StridedSliceAttrs(slice_mode=slice_mode))


def sparse_to_dense(sparse_indices: RelayExpr, output_shape: RelayExpr, sparse_values: RelayExpr, default_value: RelayExpr) -> Call:
    """``sparse_to_dense`` whose output shape is a vector input."""
    return Call(Op.get("dyn.sparse_to_dense"), [sparse_indices, sparse_values, default_value, output_shape])


__all__ = ["DynExpandDimsAttrs", "reshape", "squeeze", "expand_dims", "broadcast_to", "tile", "one_hot", "zeros", "ones", "full",
           "strided_slice", "sparse_to_dense"]
