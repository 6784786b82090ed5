"""Pooling over one, two and three spatial axes: by windows, global and adaptive, in any layout."""
from __future__ import annotations

import math
from typing import Any, Callable, NamedTuple, Sequence

import numpy as np

from ....ir.attrs import BOOL, INTS, STR, Attrs, Field
from ....ir.expr import Any as AnyDim, RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ....support.errors import TypeMismatchError
from ....tir.data_layout import Layout
from ...expr import Call
from ..registry import declare
from .common import is_float, shown, tensor
from .conv import attrs_class, check_sizes
from .numeric import pad, spans, windows
from .utils import pad_pairs, pad_tuple, repeat


class PoolSpec(NamedTuple):
    """What one pooling operator slides over: its name and spatial axes."""

    op: str
    axes: str

    @property
    def rank(self) -> int:
        """Number of spatial axes."""
        return len(self.axes)


def _pool_attrs(name: str, rank: int, layout_name: str, average: bool) -> type[Attrs]:
    fields = {
        "pool_size": Field(INTS, doc="Extent of the window."),
        "strides": Field(INTS, (1,) * rank, "Step of the window."),
        "dilation": Field(INTS, (1,) * rank, "Distance between the window's entries."),
        "padding": Field(INTS, (0,) * rank, "Entries put around the data: befores, then afters."),
        "layout": Field(STR, layout_name, "Layout of the data."),
        "out_layout": Field(STR, "", "Layout of the result; empty: that of the data."),
        "ceil_mode": Field(BOOL, False, "Whether a last window that is cut off counts."),
    }
    if average:
        fields["count_include_pad"] = Field(BOOL, False, "Whether padding counts in the average.")
    return attrs_class(name, fields)


def _size_attrs(name: str, layout_name: str) -> type[Attrs]:
    return attrs_class(name, {
        "output_size": Field(INTS, (), "Extent of the result; empty: that of the data."),
        "layout": Field(STR, layout_name, "Layout of the data."),
        "out_layout": Field(STR, "", "Layout of the result; empty: that of the data."),
    })


MaxPool1DAttrs = _pool_attrs("MaxPool1DAttrs", 1, "NCW", False)
MaxPool2DAttrs = _pool_attrs("MaxPool2DAttrs", 2, "NCHW", False)
MaxPool3DAttrs = _pool_attrs("MaxPool3DAttrs", 3, "NCDHW", False)
AvgPool1DAttrs = _pool_attrs("AvgPool1DAttrs", 1, "NCW", True)
AvgPool2DAttrs = _pool_attrs("AvgPool2DAttrs", 2, "NCHW", True)
AvgPool3DAttrs = _pool_attrs("AvgPool3DAttrs", 3, "NCDHW", True)
AdaptivePool1DAttrs = _size_attrs("AdaptivePool1DAttrs", "NCW")
AdaptivePool2DAttrs = _size_attrs("AdaptivePool2DAttrs", "NCHW")
AdaptivePool3DAttrs = _size_attrs("AdaptivePool3DAttrs", "NCDHW")


class GlobalPool2DAttrs(Attrs, name="relay.attrs.GlobalPool2DAttrs"):
    """Attributes of global pooling."""

    layout = Field(STR, "NCHW", "Layout of the data.")
    out_layout = Field(STR, "", "Layout of the result; empty: that of the data.")


def spatial(spec: PoolSpec, attrs: Any, rank: int) -> list[int]:
    """Where the spatial axes lie; TypeMismatchError when the layout lacks or splits one."""
    lay = Layout(attrs.layout)
    if any(a not in lay or a.lower() in lay for a in spec.axes):
        raise TypeMismatchError(f"{spec.op}: layout {lay} must have {', '.join(spec.axes)}, unsplit")
    if attrs.out_layout not in ("", attrs.layout):
        raise TypeMismatchError(f"{spec.op}: out_layout {attrs.out_layout!r} differs from layout {attrs.layout!r}; transform it apart")
    if len(lay) != rank:
        raise TypeMismatchError(f"{spec.op}: layout {lay} has {len(lay)} dimensions, the data has {rank}")
    return [lay.index_of(a) for a in spec.axes]


def pool_extent(dim: Any, pads: tuple[int, int], size: int, dilation: int, stride: int, ceil_mode: bool) -> Any:
    """How many windows there are along an axis.

    With ``ceil_mode`` a last window may reach beyond the end padding, but none starts in it.
    """
    if isinstance(dim, AnyDim):
        return AnyDim()
    room = dim + sum(pads) - ((size - 1) * dilation + 1)
    if isinstance(room, int) and room < 0 and not ceil_mode:
        raise TypeMismatchError(f"a window of {size} (dilation {dilation}) does not fit into {dim} entries with padding {pads[0]} + {pads[1]}")
    if not ceil_mode:
        return room // stride + 1
    count = -(-room // stride) + 1
    if isinstance(count, int) and count > 0 and (count - 1) * stride >= dim + pads[0]:
        count -= 1
    return count


def _pool_relation(spec: PoolSpec) -> Any:
    def relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
        data = tensor(args[0], f"{spec.op}, data")
        if data is None:
            return None
        check_sizes(spec.op, spec.rank, attrs)
        if len(attrs.pool_size) != spec.rank:
            raise TypeMismatchError(f"{spec.op}: pool_size needs {spec.rank} values, got {list(attrs.pool_size)}")
        dims = list(data.dims)
        for axis, pads, k, d, s in zip(spatial(spec, attrs, len(dims)), pad_pairs(attrs.padding, spec.rank), attrs.pool_size,
                                       attrs.dilation, attrs.strides):
            dims[axis] = pool_extent(dims[axis], pads, k, d, s, attrs.ceil_mode)
        return TensorType(dims, data.dtype)

    return relation


def lowest(dtype: np.dtype) -> Any:
    """What max starts from."""
    if dtype.kind in "iub":
        return np.iinfo(dtype).min if dtype.kind != "b" else False
    return -np.inf


def _window_view(spec: PoolSpec, attrs: Any, x: np.ndarray, out: Sequence[int], fill: Any) -> np.ndarray:
    axes = spatial(spec, attrs, x.ndim)
    widths = [(0, 0)] * x.ndim
    for axis, (before, after), k, d, s in zip(axes, pad_pairs(attrs.padding, spec.rank), attrs.pool_size, attrs.dilation, attrs.strides):
        reach = (out[axis] - 1) * s + (k - 1) * d + 1 - before - x.shape[axis]
        widths[axis] = (before, max(after, reach))
    view = windows(pad(x, widths, fill), axes, attrs.pool_size, attrs.strides, attrs.dilation)
    return view[tuple(slice(0, n) for n in out)]


def _max_numpy(spec: PoolSpec) -> Any:
    def rule(attrs: Any, args: list[np.ndarray], out_type: TensorType) -> np.ndarray:
        view = _window_view(spec, attrs, args[0], out_type.concrete_shape, lowest(args[0].dtype))
        return view.max(axis=tuple(range(args[0].ndim, view.ndim)))

    return rule


def counts(spec: PoolSpec, attrs: Any, shape: Sequence[int], out: Sequence[int]) -> np.ndarray:
    """How many entries each window averages, shaped to broadcast against the result.

    Padding counts only with ``count_include_pad``; what lies beyond the padding never counts.
    """
    total = np.ones([1] * len(shape), np.int64)
    for axis, (before, after), k, d, s in zip(spatial(spec, attrs, len(shape)), pad_pairs(attrs.padding, spec.rank), attrs.pool_size,
                                              attrs.dilation, attrs.strides):
        at = np.arange(out[axis])[:, None] * s - before + np.arange(k) * d
        low, high = (-before, shape[axis] + after) if attrs.count_include_pad else (0, shape[axis])
        inside = ((at >= low) & (at < high)).sum(axis=1)
        total = total * inside.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return np.maximum(total, 1)


def accumulator(dtype: np.dtype) -> np.dtype:
    """The dtype sums of a pooling are formed in: double precision for floats, at least 32 bits for integers."""
    if is_float(str(dtype)):
        return np.dtype("float64")
    return np.dtype("int32") if dtype.itemsize < 4 else dtype


def mean_of(total: np.ndarray, count: Any, dtype: np.dtype) -> np.ndarray:
    """total / count; for integers the quotient is cut towards zero."""
    if dtype.kind in "iu":
        return (np.sign(total) * (np.abs(total) // count)).astype(dtype)
    return (total / np.asarray(count).astype(total.dtype)).astype(dtype)


def _avg_numpy(spec: PoolSpec) -> Any:
    def rule(attrs: Any, args: list[np.ndarray], out_type: TensorType) -> np.ndarray:
        x, out = args[0], out_type.concrete_shape
        view = _window_view(spec, attrs, x.astype(accumulator(x.dtype), copy=False), out, 0)
        total = view.sum(axis=tuple(range(x.ndim, view.ndim)), dtype=view.dtype)
        return mean_of(total, counts(spec, attrs, x.shape, out), x.dtype)

    return rule


def _need_some(spec: PoolSpec, data: TensorType, axis: int) -> None:
    if data.dims[axis] == 0:
        raise TypeMismatchError(f"{spec.op}: there is nothing to pool along axis {axis} of shape {shown(data.dims)}")


def _global_relation(spec: PoolSpec) -> Any:
    def relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
        data = tensor(args[0], f"{spec.op}, data")
        if data is None:
            return None
        dims = list(data.dims)
        for axis in spatial(spec, attrs, len(dims)):
            _need_some(spec, data, axis)
            dims[axis] = 1
        return TensorType(dims, data.dtype)

    return relation


def _mean(x: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    total = x.sum(axis=tuple(axes), keepdims=True, dtype=accumulator(x.dtype))
    return mean_of(total, math.prod(x.shape[a] for a in axes), x.dtype)


def _global_numpy(spec: PoolSpec, reduce: Callable[..., np.ndarray]) -> Any:
    def rule(attrs: Any, args: list[np.ndarray], out_type: TensorType) -> np.ndarray:
        return reduce(args[0], spatial(spec, attrs, args[0].ndim))

    return rule


def _max(x: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    return x.max(axis=tuple(axes), keepdims=True, initial=lowest(x.dtype))


def output_sizes(spec: PoolSpec, attrs: Any, dims: Sequence[Any], axes: Sequence[int]) -> list[Any]:
    """The result's extent along each spatial axis of adaptive pooling."""
    size = tuple(attrs.output_size)
    if not size:
        return [dims[a] for a in axes]
    if len(size) not in (1, spec.rank):
        raise TypeMismatchError(f"{spec.op}: output_size needs 1 or {spec.rank} values, got {list(size)}")
    return list(size) if len(size) == spec.rank else list(size) * spec.rank


def _adaptive_relation(spec: PoolSpec) -> Any:
    def relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
        data = tensor(args[0], f"{spec.op}, data")
        if data is None:
            return None
        dims, axes = list(data.dims), spatial(spec, attrs, len(data.dims))
        for axis, size in zip(axes, output_sizes(spec, attrs, data.dims, axes)):
            _need_some(spec, data, axis)
            dims[axis] = size
        return TensorType(dims, data.dtype)

    return relation


def _slabs(x: np.ndarray, axis: int, parts: int, reduce: Callable[..., np.ndarray]) -> np.ndarray:
    rows = np.moveaxis(x, axis, 0)
    return np.moveaxis(np.stack([reduce(rows[a:b]) for a, b in spans(len(rows), parts)]), 0, axis)


def _adaptive_max_numpy(spec: PoolSpec) -> Any:
    def rule(attrs: Any, args: list[np.ndarray], out_type: TensorType) -> np.ndarray:
        x = args[0]
        for axis in spatial(spec, attrs, x.ndim):
            x = _slabs(x, axis, out_type.concrete_shape[axis], lambda part: part.max(axis=0))
        return x

    return rule


def _adaptive_avg_numpy(spec: PoolSpec) -> Any:
    def rule(attrs: Any, args: list[np.ndarray], out_type: TensorType) -> np.ndarray:
        x, count = args[0].astype(accumulator(args[0].dtype), copy=False), np.ones([1] * args[0].ndim, np.int64)
        for axis in spatial(spec, attrs, x.ndim):
            parts = out_type.concrete_shape[axis]
            size = np.array([b - a for a, b in spans(x.shape[axis], parts)])
            count = count * size.reshape([-1 if i == axis else 1 for i in range(x.ndim)])
            x = _slabs(x, axis, parts, lambda part: part.sum(axis=0, dtype=part.dtype))
        return mean_of(x, count, args[0].dtype)

    return rule


_AXES = {1: "W", 2: "HW", 3: "DHW"}
_FUSE = OpPattern.OUT_ELEMWISE_FUSABLE
SPECS: dict[str, PoolSpec] = {}


def _spec(op: str, rank: int) -> PoolSpec:
    return SPECS.setdefault(op, PoolSpec(op, _AXES[rank]))


def _declare_all() -> None:
    for rank in (1, 2, 3):
        most, mean = _spec(f"nn.max_pool{rank}d", rank), _spec(f"nn.avg_pool{rank}d", rank)
        classes = Attrs.REGISTRY
        declare(most.op, attrs=classes[f"relay.attrs.MaxPool{rank}DAttrs"], relation=_pool_relation(most), pattern=_FUSE,
                numpy=_max_numpy(most), level=2, doc="The largest entry of each window.")
        declare(mean.op, attrs=classes[f"relay.attrs.AvgPool{rank}DAttrs"], relation=_pool_relation(mean), pattern=_FUSE,
                numpy=_avg_numpy(mean), level=2, doc="The mean of each window.")
        most, mean = _spec(f"nn.adaptive_max_pool{rank}d", rank), _spec(f"nn.adaptive_avg_pool{rank}d", rank)
        cls = classes[f"relay.attrs.AdaptivePool{rank}DAttrs"]
        declare(most.op, attrs=cls, relation=_adaptive_relation(most), pattern=_FUSE, numpy=_adaptive_max_numpy(most), level=10,
                doc="The largest entry of each of output_size windows that cover the data evenly.")
        declare(mean.op, attrs=cls, relation=_adaptive_relation(mean), pattern=_FUSE, numpy=_adaptive_avg_numpy(mean), level=10,
                doc="The mean of each of output_size windows that cover the data evenly.")
    most, mean = _spec("nn.global_max_pool2d", 2), _spec("nn.global_avg_pool2d", 2)
    declare(most.op, attrs=GlobalPool2DAttrs, relation=_global_relation(most), pattern=_FUSE, numpy=_global_numpy(most, _max), level=2,
            doc="The largest entry of each channel.")
    declare(mean.op, attrs=GlobalPool2DAttrs, relation=_global_relation(mean), pattern=_FUSE, numpy=_global_numpy(mean, _mean), level=2,
            doc="The mean of each channel.")


_declare_all()


def _window_call(op: str, rank: int, data: RelayExpr, **values: Any) -> Call:
    for name in ("pool_size", "strides", "dilation"):
        values[name] = repeat(values[name], rank)
    values["padding"] = pad_tuple(values["padding"], rank)
    kind = "Max" if "max" in op else "Avg"
    return Call(Op.get(op), [data], Attrs.REGISTRY[f"relay.attrs.{kind}Pool{rank}DAttrs"](**values))


def max_pool1d(data: RelayExpr, pool_size: Any = (1,), strides: Any = (1,), dilation: Any = (1,), padding: Any = (0,),
               layout: str = "NCW", out_layout: str = "", ceil_mode: bool = False) -> Call:
    """The largest entry of each window of a row."""
    return _window_call("nn.max_pool1d", 1, data, pool_size=pool_size, strides=strides, dilation=dilation, padding=padding,
                        layout=layout, out_layout=out_layout, ceil_mode=ceil_mode)


def max_pool2d(data: RelayExpr, pool_size: Any = (1, 1), strides: Any = (1, 1), dilation: Any = (1, 1), padding: Any = (0, 0),
               layout: str = "NCHW", out_layout: str = "", ceil_mode: bool = False) -> Call:
    """The largest entry of each window of a plane.

    ``padding`` is 1, 2 or 4 ints; padded entries never win.  With ``ceil_mode`` a last window that reaches beyond the data counts,
    unless it would start in the end padding.
    """
    return _window_call("nn.max_pool2d", 2, data, pool_size=pool_size, strides=strides, dilation=dilation, padding=padding,
                        layout=layout, out_layout=out_layout, ceil_mode=ceil_mode)


def max_pool3d(data: RelayExpr, pool_size: Any = (1, 1, 1), strides: Any = (1, 1, 1), dilation: Any = (1, 1, 1),
               padding: Any = (0, 0, 0), layout: str = "NCDHW", out_layout: str = "", ceil_mode: bool = False) -> Call:
    """The largest entry of each window of a volume."""
    return _window_call("nn.max_pool3d", 3, data, pool_size=pool_size, strides=strides, dilation=dilation, padding=padding,
                        layout=layout, out_layout=out_layout, ceil_mode=ceil_mode)


def avg_pool1d(data: RelayExpr, pool_size: Any = (1,), strides: Any = (1,), dilation: Any = (1,), padding: Any = (0,),
               layout: str = "NCW", out_layout: str = "", ceil_mode: bool = False, count_include_pad: bool = False) -> Call:
    """The mean of each window of a row."""
    return _window_call("nn.avg_pool1d", 1, data, pool_size=pool_size, strides=strides, dilation=dilation, padding=padding,
                        layout=layout, out_layout=out_layout, ceil_mode=ceil_mode, count_include_pad=count_include_pad)


def avg_pool2d(data: RelayExpr, pool_size: Any = (1, 1), strides: Any = (1, 1), dilation: Any = (1, 1), padding: Any = (0, 0),
               layout: str = "NCHW", out_layout: str = "", ceil_mode: bool = False, count_include_pad: bool = False) -> Call:
    """The mean of each window of a plane; the divisor counts padding only with ``count_include_pad``, and never what lies beyond it."""
    return _window_call("nn.avg_pool2d", 2, data, pool_size=pool_size, strides=strides, dilation=dilation, padding=padding,
                        layout=layout, out_layout=out_layout, ceil_mode=ceil_mode, count_include_pad=count_include_pad)


def avg_pool3d(data: RelayExpr, pool_size: Any = (1, 1, 1), strides: Any = (1, 1, 1), dilation: Any = (1, 1, 1),
               padding: Any = (0, 0, 0), layout: str = "NCDHW", out_layout: str = "", ceil_mode: bool = False,
               count_include_pad: bool = False) -> Call:
    """The mean of each window of a volume."""
    return _window_call("nn.avg_pool3d", 3, data, pool_size=pool_size, strides=strides, dilation=dilation, padding=padding,
                        layout=layout, out_layout=out_layout, ceil_mode=ceil_mode, count_include_pad=count_include_pad)


def global_max_pool2d(data: RelayExpr, layout: str = "NCHW", out_layout: str = "") -> Call:
    """The largest entry of each channel; spatial extents become 1."""
    return Call(Op.get("nn.global_max_pool2d"), [data], GlobalPool2DAttrs(layout=layout, out_layout=out_layout))


def global_avg_pool2d(data: RelayExpr, layout: str = "NCHW", out_layout: str = "") -> Call:
    """The mean of each channel; spatial extents become 1."""
    return Call(Op.get("nn.global_avg_pool2d"), [data], GlobalPool2DAttrs(layout=layout, out_layout=out_layout))


def _adaptive_call(op: str, rank: int, data: RelayExpr, output_size: Any, layout: str, out_layout: str) -> Call:
    cls = Attrs.REGISTRY[f"relay.attrs.AdaptivePool{rank}DAttrs"]
    size = () if output_size is None else output_size
    return Call(Op.get(op), [data], cls(output_size=size, layout=layout, out_layout=out_layout))


def adaptive_max_pool1d(data: RelayExpr, output_size: Any = None, layout: str = "NCW", out_layout: str = "") -> Call:
    """Max pooling to ``output_size`` entries (None: as many as there are)."""
    return _adaptive_call("nn.adaptive_max_pool1d", 1, data, output_size, layout, out_layout)


def adaptive_avg_pool1d(data: RelayExpr, output_size: Any = None, layout: str = "NCW", out_layout: str = "") -> Call:
    """Average pooling to ``output_size`` entries (None: as many as there are)."""
    return _adaptive_call("nn.adaptive_avg_pool1d", 1, data, output_size, layout, out_layout)


def adaptive_max_pool2d(data: RelayExpr, output_size: Any = None, layout: str = "NCHW", out_layout: str = "") -> Call:
    """Max pooling to ``output_size`` (height, width); one int is used for both."""
    return _adaptive_call("nn.adaptive_max_pool2d", 2, data, output_size, layout, out_layout)


def adaptive_avg_pool2d(data: RelayExpr, output_size: Any = None, layout: str = "NCHW", out_layout: str = "") -> Call:
    """Average pooling to ``output_size`` (height, width); one int is used for both."""
    return _adaptive_call("nn.adaptive_avg_pool2d", 2, data, output_size, layout, out_layout)


def adaptive_max_pool3d(data: RelayExpr, output_size: Any = None, layout: str = "NCDHW", out_layout: str = "") -> Call:
    """Max pooling to ``output_size`` (depth, height, width); one int is used for all."""
    return _adaptive_call("nn.adaptive_max_pool3d", 3, data, output_size, layout, out_layout)


def adaptive_avg_pool3d(data: RelayExpr, output_size: Any = None, layout: str = "NCDHW", out_layout: str = "") -> Call:
    """Average pooling to ``output_size`` (depth, height, width); one int is used for all."""
    return _adaptive_call("nn.adaptive_avg_pool3d", 3, data, output_size, layout, out_layout)


def global_max_pool1d(data: RelayExpr, layout: str = "NCW", out_layout: str = "") -> Call:
    """The largest entry of each channel of a row."""
    return adaptive_max_pool1d(data, [1], layout, out_layout)


def global_avg_pool1d(data: RelayExpr, layout: str = "NCW", out_layout: str = "") -> Call:
    """The mean of each channel of a row."""
    return adaptive_avg_pool1d(data, [1], layout, out_layout)


def global_max_pool3d(data: RelayExpr, layout: str = "NCDHW", out_layout: str = "") -> Call:
    """The largest entry of each channel of a volume."""
    return adaptive_max_pool3d(data, [1, 1, 1], layout, out_layout)


def global_avg_pool3d(data: RelayExpr, layout: str = "NCDHW", out_layout: str = "") -> Call:
    """The mean of each channel of a volume."""
    return adaptive_avg_pool3d(data, [1, 1, 1], layout, out_layout)
