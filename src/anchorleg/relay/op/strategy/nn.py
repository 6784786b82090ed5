"""Strategies of the neural network operators: the general implementation of each, right for every shape, layout and target.

Faster implementations are added by target key (see ``nn_cpu``) with a higher priority level.
"""
from __future__ import annotations

from typing import Any, Callable, Sequence

from .... import te
from ....target.generic_func import override_native_generic_func
from ....topi import nn, tag
from ....topi.nn.schedule import schedule_default
from ..op import OpStrategy, register_strategy

Compute = Callable[[Any, Sequence[Any], Any], Any]
DEFAULT_LEVEL = 10


def as_outputs(result: Any) -> list[Any]:
    """One tensor, or several, as a list."""
    return list(result) if isinstance(result, (list, tuple)) else [result]


def wrap_compute(fn: Compute) -> Callable[..., list[Any]]:
    """``fn(attrs, inputs, out_type)`` as the compute of an implementation."""
    def compute(attrs: Any, inputs: Sequence[Any], out_type: Any) -> list[Any]:
        return as_outputs(fn(attrs, inputs, out_type))

    return compute


def wrap_schedule(fn: Callable[..., Any]) -> Callable[..., Any]:
    """``fn(outs, target)`` as the schedule of an implementation."""
    def schedule(attrs: Any, outs: Sequence[Any], target: Any) -> Any:
        return fn(outs, target)

    return schedule


def _always(attrs: Any, inputs: Sequence[Any]) -> bool:
    return True


def general_strategy(name: str, compute: Compute, applies: Callable[[Any, Sequence[Any]], bool] = _always) -> Any:
    """The overridable strategy ``name`` with one implementation: ``compute`` under the schedule that is always right.

    Where ``applies(attrs, inputs)`` is false the compute can't take the inputs, and there is no such implementation.
    """
    def strategy(attrs: Any, inputs: Sequence[Any], out_type: Any, target: Any) -> OpStrategy:
        made = OpStrategy()
        if not applies(attrs, inputs):
            return made
        made.add_implementation(wrap_compute(compute), wrap_schedule(schedule_default), name=f"{name}.generic", plevel=DEFAULT_LEVEL)
        return made

    strategy.__name__ = f"{name}_strategy"
    return override_native_generic_func(f"{name}_strategy")(strategy)


def _conv(attrs: Any, ins: Sequence[Any], out: Any) -> Any:
    return nn.conv(ins[0], ins[1], attrs.strides, attrs.padding, attrs.dilation, attrs.groups, attrs.data_layout, attrs.kernel_layout,
                   attrs.out_layout, out.dtype, "conv", "conv")


def _conv_nchwc(attrs: Any, ins: Sequence[Any], out: Any) -> Any:
    kernel_layout = attrs.kernel_layout
    if sum(c.isalpha() for c in kernel_layout) != ins[1].ndim:
        kernel_layout = f"OIHW{nn.common.dims(ins[1])[4]}i{nn.common.dims(ins[1])[5]}o"
    return nn.conv(ins[0], ins[1], attrs.strides, attrs.padding, attrs.dilation, attrs.groups, attrs.data_layout, kernel_layout,
                   attrs.out_layout, out.dtype, "conv2d_NCHWc", "conv")


def _conv_transpose(attrs: Any, ins: Sequence[Any], out: Any) -> Any:
    return nn.conv_transpose(ins[0], ins[1], attrs.strides, attrs.padding, attrs.dilation, attrs.output_padding, attrs.groups,
                             attrs.data_layout, attrs.kernel_layout, attrs.out_layout, out.dtype)


def _deformable(attrs: Any, ins: Sequence[Any], out: Any) -> Any:
    return nn.deformable_conv2d(*ins, attrs.strides, attrs.padding, attrs.dilation, attrs.deformable_groups, attrs.groups,
                                attrs.data_layout, attrs.kernel_layout, attrs.out_layout, out.dtype)


def _winograd(attrs: Any, ins: Sequence[Any], out: Any) -> Any:
    return nn.conv2d_winograd_without_weight_transform(ins[0], ins[1], attrs.tile_size, attrs.kernel_size, attrs.padding,
                                                       attrs.data_layout, attrs.out_layout, out.dtype)


def _upsampling(attrs: Any, ins: Sequence[Any], out: Any) -> Any:
    axes = [a for a in attrs.layout if a.isalpha()]
    data, plain = ins[0], "h" not in axes and "w" not in axes and attrs.method == "nearest_neighbor" and not attrs.align_corners
    factors = {"H": attrs.scale_h, "W": attrs.scale_w}
    if plain and any(not isinstance(d, int) for d in out.dims) and all(f == int(f) for f in factors.values()):
        by = [int(factors.get(a, 1)) for a in axes]  # sizes that are not known, by whole factors
        return te.compute(tuple(out.dims), lambda *i: data(*(v // f if f > 1 else v for v, f in zip(i, by))), name="resized", tag=tag.INJECTIVE)
    return nn.upsampling(data, attrs.scale_h, attrs.scale_w, attrs.layout, attrs.method, attrs.align_corners)


def _dense_pack(attrs: Any, ins: Sequence[Any], out: Any) -> Any:
    return (nn.dense_pack if ins[1].ndim == 3 else nn.dense_pack4)(ins[0], ins[1], out.dtype, out.dims[-1])


def _pool(kind: str, rank: int) -> Compute:
    def compute(attrs: Any, ins: Sequence[Any], out: Any) -> Any:
        padding = [int(p) for p in attrs.padding]
        padding = padding * (2 * rank // len(padding)) if len(padding) != 2 * rank else padding
        return nn.pooling.pool_nd(ins[0], attrs.pool_size, attrs.strides, attrs.dilation, padding[:rank], padding[rank:], kind,
                                  attrs.ceil_mode, attrs.layout, attrs.get("count_include_pad", True))

    return compute


def _adaptive(kind: str, rank: int) -> Compute:
    def compute(attrs: Any, ins: Sequence[Any], out: Any) -> Any:
        axes = [nn.pooling.Layout(attrs.layout).index_of(a) for a in "DHW"[3 - rank:]]
        return nn.adaptive_pool(ins[0], [out.dims[a] for a in axes], kind, attrs.layout)

    return compute


def _batch_norm(attrs: Any, ins: Sequence[Any], out: Any) -> Any:
    return nn.batch_norm(*ins, attrs.axis, attrs.epsilon, attrs.center, attrs.scale)


def _affine(attrs: Any, ins: Sequence[Any]) -> tuple[Any, Any, Any]:
    return ins[0], ins[1] if attrs.scale else None, ins[2] if attrs.center else None


def _dropout(attrs: Any, ins: Sequence[Any], out: Any) -> Any:
    from .... import te, tir

    data = ins[0]
    return [te.compute(data.shape, lambda *i: data(*i), name="T_identity", tag="elemwise"),
            te.compute(data.shape, lambda *i: tir.const(1, data.dtype), name="T_mask", tag="elemwise")]


def _pad(attrs: Any, ins: Sequence[Any], out: Any) -> Any:
    before, after = zip(*attrs.pad_width) if attrs.pad_width else ((), ())
    value = ins[1](*[0] * ins[1].ndim).astype(ins[0].dtype)
    return nn.pad(ins[0], before, after, value, name="T_pad", mode=attrs.pad_mode)


def _space_to_batch(attrs: Any, ins: Sequence[Any], out: Any) -> Any:
    return nn.space_to_batch_nd(ins[0], attrs.block_shape, *zip(*attrs.paddings), attrs.pad_value)


def _mirror_pad(attrs: Any, ins: Sequence[Any], out: Any) -> Any:
    return nn.mirror_pad(ins[0], *zip(*attrs.pad_width), attrs.mode)


GENERAL: dict[str, Compute] = {
    **{f"nn.conv{r}d": _conv for r in (1, 2, 3)},
    **{f"nn.conv{r}d_transpose": _conv_transpose for r in (1, 2, 3)},
    "nn.contrib_conv2d_NCHWc": _conv_nchwc,
    "nn.contrib_depthwise_conv2d_NCHWc": _conv_nchwc,
    "nn.deformable_conv2d": _deformable,
    "nn.contrib_conv2d_winograd_weight_transform": lambda a, i, o: nn.conv2d_winograd_weight_transform(i[0], a.tile_size),
    "nn.contrib_conv2d_winograd_without_weight_transform": _winograd,
    "nn.dense": lambda a, i, o: nn.dense(*i, None, o.dtype),
    "nn.contrib_dense_pack": _dense_pack,
    "nn.matmul": lambda a, i, o: nn.matmul(*i, None, o.dtype, a.transpose_a, a.transpose_b),
    "nn.batch_matmul": lambda a, i, o: nn.batch_matmul(*i, None, o.dtype, a.transpose_a, a.transpose_b),
    "nn.bias_add": lambda a, i, o: nn.bias_add(*i, a.axis),
    "nn.relu": lambda a, i, o: nn.relu(i[0]),
    "nn.leaky_relu": lambda a, i, o: nn.leaky_relu(i[0], a.alpha),
    "nn.prelu": lambda a, i, o: nn.prelu(*i, a.axis),
    "nn.softmax": lambda a, i, o: nn.softmax(i[0], a.axis),
    "nn.fast_softmax": lambda a, i, o: nn.fast_softmax(i[0], a.axis),
    "nn.log_softmax": lambda a, i, o: nn.log_softmax(i[0], a.axis),
    "nn.batch_norm": _batch_norm,
    "nn.layer_norm": lambda a, i, o: nn.layer_norm(*_affine(a, i), a.axis, a.epsilon),
    "nn.instance_norm": lambda a, i, o: nn.instance_norm(*_affine(a, i), a.axis, None, a.epsilon),
    "nn.group_norm": lambda a, i, o: nn.group_norm(*_affine(a, i), a.num_groups, a.axis, None, a.epsilon),
    "nn.l2_normalize": lambda a, i, o: nn.l2_normalize(i[0], a.eps, a.axis),
    "nn.lrn": lambda a, i, o: nn.lrn(i[0], a.size, a.axis, a.alpha, a.beta, a.bias),
    "nn.dropout": _dropout,
    **{f"nn.{k}_pool{r}d": _pool(k, r) for k in ("max", "avg") for r in (1, 2, 3)},
    **{f"nn.adaptive_{k}_pool{r}d": _adaptive(k, r) for k in ("max", "avg") for r in (1, 2, 3)},
    **{f"nn.global_{k}_pool2d": _adaptive(k, 2) for k in ("max", "avg")},
    "nn.pad": _pad,
    "nn.mirror_pad": _mirror_pad,
    "nn.dilate": lambda a, i, o: nn.dilate(i[0], a.strides, a.dilation_value),
    "nn.upsampling": _upsampling,
    "nn.upsampling3d": lambda a, i, o: nn.upsampling3d(i[0], a.scale_d, a.scale_h, a.scale_w, a.layout, a.method,
                                                       a.coordinate_transformation_mode),
    "nn.batch_flatten": lambda a, i, o: nn.flatten(i[0]),
    "nn.depth_to_space": lambda a, i, o: nn.depth_to_space(i[0], a.block_size, a.layout, a.mode),
    "nn.space_to_depth": lambda a, i, o: nn.space_to_depth(i[0], a.block_size, a.layout, a.mode),
    "nn.space_to_batch_nd": _space_to_batch,
    "nn.batch_to_space_nd": lambda a, i, o: nn.batch_to_space_nd(i[0], a.block_shape, *zip(*a.crops)),
    "nn.fifo_buffer": lambda a, i, o: nn.fifo_buffer(*i, a.axis),
    "nn.correlation": lambda a, i, o: nn.correlation_nchw(*i, a.kernel_size, a.max_displacement, a.stride1, a.stride2, a.padding, a.is_multiply),
    "nn.cross_entropy": lambda a, i, o: nn.cross_entropy(*i),
    "nn.cross_entropy_with_logits": lambda a, i, o: nn.cross_entropy_with_logits(*i),
    "nn.nll_loss": lambda a, i, o: nn.nll_loss(*i, a.reduction, a.ignore_index),
    "nn.sparse_dense": lambda a, i, o: nn.sparse_dense(*i, a.sparse_lhs),
    "nn.sparse_transpose": lambda a, i, o: nn.sparse_transpose(*i),
    "nn.sparse_add": lambda a, i, o: nn.sparse_add(*i),
}

# where the general compute takes only some of what its operator allows
APPLIES: dict[str, Callable[[Any, Sequence[Any]], bool]] = {
    "nn.contrib_conv2d_winograd_without_weight_transform": lambda attrs, inputs: inputs[1].ndim == 4,  # packed weights have their own
}
STRATEGIES = {name: general_strategy(name.removeprefix("nn."), compute, APPLIES.get(name, _always)) for name, compute in GENERAL.items()}
for _name, _strategy in STRATEGIES.items():
    register_strategy(_name, _strategy)
