"""Implementations of the neural network operators for processors: packed convolutions, tiled products, row-wise normalisations."""
from __future__ import annotations

from typing import Any, Callable, Sequence

from ....tir.data_layout import Layout
from ....topi import nn
from ....topi.nn.conv2d_cpu import conv2d_packed, depthwise_conv2d_packed, schedule_conv2d_NCHWc, schedule_depthwise_conv2d_NCHWc
from ....topi.nn.dot import conv2d_NCHWc_dot, dense_pack_dot, takes_dots
from ....topi.nn.dense_cpu import batch_matmul_cpu, dense_cpu, schedule_product
from ....topi.nn.planes_cpu import schedule_planes
from ....topi.nn.rows_cpu import schedule_rows
from ....topi.nn.schedule import operations
from ....topi.nn.winograd import conv2d_winograd_NCHWc, schedule_conv2d_winograd_NCHWc
from ....topi.reduction_schedule import schedule_reduce
from ....topi.vector import lanes_of
from ..op import OpStrategy
from .alter_layout import channel_block
from .nn import GENERAL, STRATEGIES, wrap_compute, wrap_schedule

CPU_LEVEL = 15
Applies = Callable[[Any, Sequence[Any]], bool]


def add_for_cpu(op_name: str, compute: Any, schedule: Any, applies: Applies | None = None, in_c: bool = False) -> None:
    """Adds an implementation for processors, used where ``applies(attrs, inputs)``; the general one stays beside it.

    ``in_c``: for C code too, which has no vectors, since it needs less memory.
    """
    general, short = GENERAL[op_name], op_name.removeprefix("nn.")
    fallback = STRATEGIES[op_name].fdefault

    def strategy(attrs: Any, inputs: Sequence[Any], out_type: Any, target: Any) -> OpStrategy:
        made = fallback(attrs, inputs, out_type, target)
        if (in_c or target.kind.name != "c") and (applies is None or applies(attrs, inputs)):
            made.add_implementation(wrap_compute(compute or general), wrap_schedule(schedule), name=f"{short}.cpu", plevel=CPU_LEVEL)
        return made

    STRATEGIES[op_name].register("cpu", strategy)


def _blocks(name: str, letter: str) -> int:
    """The block of an axis of a layout, 0 when it has none or several."""
    found = [a.factor for a in Layout(name).axes if a.letter == letter]
    return found[0] if len(found) == 1 else 0


def _packed(attrs: Any, ins: Sequence[Any]) -> bool:
    """Data NCHW<n>c, weight OIHW<n>i<m>o, result NCHW<m>c, all of floats; or of bytes, the weight OIHW<n/4>i<m>o4i."""
    data, out = attrs.data_layout, attrs.out_layout or attrs.data_layout
    icb, ocb = _blocks(data, "c"), _blocks(out, "c")
    if data != f"NCHW{icb}c" or out != f"NCHW{ocb}c" or nn.common.dims(ins[0])[1] % _groups(attrs, ins) or not _whole_groups(attrs, ins):
        return False
    if attrs.kernel_layout == f"OIHW{icb // 4}i{ocb}o4i":
        return takes_dots(ins[0], ins[1], attrs.out_dtype)
    return attrs.kernel_layout == f"OIHW{icb}i{ocb}o" and ins[0].dtype == "float32" and ins[1].dtype == "float32"


def _groups(attrs: Any, ins: Sequence[Any]) -> int:
    return max(1, attrs.groups)


def _whole_groups(attrs: Any, ins: Sequence[Any]) -> bool:
    """Whether every group is whole blocks of input and of output channels."""
    chunks, per_group = nn.common.dims(ins[0])[1], nn.common.dims(ins[1])[1]
    return per_group * attrs.groups == chunks and nn.common.dims(ins[1])[0] % attrs.groups == 0


def _conv_nchwc(attrs: Any, ins: Sequence[Any], out: Any) -> Any:
    if ins[1].ndim == 7:
        return conv2d_NCHWc_dot(ins[0], ins[1], attrs.strides, attrs.padding, attrs.dilation, attrs.groups)
    return nn.conv2d_NCHWc(ins[0], ins[1], attrs.strides, attrs.padding, attrs.dilation, attrs.data_layout,
                           attrs.out_layout or attrs.data_layout, out.dtype, attrs.groups)


def _packed_depthwise(attrs: Any, ins: Sequence[Any]) -> bool:
    """Data and result NCHW<n>c, weight OIHW1i<n>o with one output per input channel; of floats, or of bytes added up in int32."""
    data, out = attrs.data_layout, attrs.out_layout or attrs.data_layout
    block = _blocks(data, "c")
    kinds = ins[0].dtype, ins[1].dtype
    taken = kinds == ("float32", "float32") or kinds[0] in ("int8", "uint8") and kinds[1] in ("int8", "int16") and attrs.out_dtype == "int32"
    return (data == out == f"NCHW{block}c" and attrs.kernel_layout == f"OIHW1i{block}o" and taken and nn.common.dims(ins[1])[:2] == (nn.common.dims(ins[0])[1], 1))


def _depthwise_nchwc(attrs: Any, ins: Sequence[Any], out: Any) -> Any:
    return nn.depthwise_conv2d_NCHWc(ins[0], ins[1], attrs.strides, attrs.padding, attrs.dilation, attrs.data_layout,
                                     attrs.out_layout or attrs.data_layout, out.dtype)


def _packed_winograd(attrs: Any, ins: Sequence[Any]) -> bool:
    """Data and result NCHW<n>c, the transformed weight OHWI<n>i<m>o, of constant sizes."""
    data, out = attrs.data_layout, attrs.out_layout or attrs.data_layout
    icb, ocb = _blocks(data, "c"), _blocks(out, "c")
    return (data == f"NCHW{icb}c" and out == f"NCHW{ocb}c" and attrs.kernel_layout == f"OHWI{icb}i{ocb}o" and ins[0].dtype == "float32"
            and ins[1].dtype == "float32" and all(isinstance(d, int) and d > 0 for d in nn.common.dims(ins[0])))


def _winograd(attrs: Any, ins: Sequence[Any], out: Any) -> Any:
    return conv2d_winograd_NCHWc(*ins, attrs.tile_size, attrs.padding, out.dtype)


def _batch_matmul(attrs: Any, ins: Sequence[Any], out: Any) -> Any:
    return batch_matmul_cpu(*ins, out.dtype, attrs.transpose_a, attrs.transpose_b)


def _packed_once(attrs: Any, ins: Sequence[Any]) -> bool:
    """A weight packed by columns; or, of bytes, by columns and fours of rows."""
    return ins[1].ndim == 3 or takes_dots(ins[0], ins[1], attrs.out_dtype)


def _dense_pack(attrs: Any, ins: Sequence[Any], out: Any) -> Any:
    return GENERAL["nn.contrib_dense_pack"](attrs, ins, out) if ins[1].ndim == 3 else dense_pack_dot(*ins, out.dims[-1])


def _plain_blocks(attrs: Any, ins: Sequence[Any]) -> tuple[int, int]:
    """By how many input and output channels a convolution in a plain layout is packed inside its kernel; zeros where it is not."""
    plain = attrs.data_layout in ("NCHW", "NHWC") and attrs.out_layout in ("", attrs.data_layout)
    if not plain or sorted(attrs.kernel_layout) != sorted("OIHW") or any(t.dtype != "float32" for t in ins):
        return 0, 0
    shape, rows = nn.common.dims(ins[0]), dict(zip(attrs.kernel_layout, nn.common.dims(ins[1])))
    if not all(isinstance(d, int) and d > 0 for d in (*shape, *rows.values())):
        return 0, 0
    lanes, channels = lanes_of("float32"), shape[attrs.data_layout.index("C")]
    if channels // attrs.groups != rows["I"] or rows["O"] % attrs.groups:
        return 0, 0
    icb, ocb = channel_block(rows["I"], lanes), channel_block(rows["O"] // attrs.groups, lanes)
    return (icb, ocb) if ocb >= 4 and (attrs.groups == 1 or icb >= 4) else (0, 0)


def _depthwise_block(attrs: Any, ins: Sequence[Any]) -> int:
    """By how many channels a depthwise convolution in a plain layout is packed inside its kernel; 0 where it is not."""
    plain = attrs.data_layout in ("NCHW", "NHWC") and attrs.out_layout in ("", attrs.data_layout)
    in_rows = attrs.data_layout == "NCHW" and int(attrs.strides[-1]) == 1  # vectors along the rows do as well
    if not plain or in_rows or sorted(attrs.kernel_layout) != sorted("OIHW") or any(t.dtype != "float32" for t in ins):
        return 0
    channels, rows = nn.common.dims(ins[0])[attrs.data_layout.index("C")], dict(zip(attrs.kernel_layout, nn.common.dims(ins[1])))
    if not all(isinstance(d, int) and d > 0 for t in ins for d in nn.common.dims(t)):
        return 0
    block = channel_block(channels, lanes_of("float32"))
    return block if attrs.groups == channels == rows["O"] and rows["I"] == 1 and channels % block == 0 and block >= 4 else 0


def _conv2d(attrs: Any, ins: Sequence[Any], out: Any) -> Any:
    """Packed inside the kernel where there are channels enough, else as it is."""
    depth = _depthwise_block(attrs, ins)
    if depth:
        return depthwise_conv2d_packed(*ins, attrs.strides, attrs.padding, attrs.dilation, attrs.data_layout, attrs.kernel_layout, depth,
                                       out.dtype)
    icb, ocb = _plain_blocks(attrs, ins)
    if not ocb:
        return GENERAL["nn.conv2d"](attrs, ins, out)
    return conv2d_packed(*ins, attrs.strides, attrs.padding, attrs.dilation, attrs.groups, attrs.data_layout, attrs.kernel_layout, icb, ocb,
                         out.dtype)


def _schedule_conv2d(outs: Any, target: Any) -> Any:
    tags = {op.tag for op in operations(outs)}
    if "conv2d_NCHWc" in tags:
        return schedule_conv2d_NCHWc(outs, target)
    return (schedule_depthwise_conv2d_NCHWc if "depthwise_conv2d_NCHWc" in tags else schedule_planes)(outs, target)


def _channels_first(attrs: Any, ins: Sequence[Any]) -> bool:
    return attrs.data_layout in ("NCW", "NCHW", "NCDHW") and attrs.out_layout in ("", attrs.data_layout)


def _few_rows(attrs: Any, ins: Sequence[Any]) -> bool:
    rows = 1
    for d in nn.common.dims(ins[0])[:-1]:
        rows = rows * d if isinstance(d, int) else 0
    return 0 < rows < 4


add_for_cpu("nn.conv2d", _conv2d, _schedule_conv2d, lambda a, i: _channels_first(a, i) or _plain_blocks(a, i)[1] > 0 or _depthwise_block(a, i) > 0)
add_for_cpu("nn.conv1d", None, schedule_planes, _channels_first)
add_for_cpu("nn.conv3d", None, schedule_planes, _channels_first)
add_for_cpu("nn.dense", lambda a, i, o: dense_cpu(*i, o.dtype), schedule_product, lambda a, i: not _few_rows(a, i))
add_for_cpu("nn.contrib_conv2d_NCHWc", _conv_nchwc, schedule_conv2d_NCHWc, _packed)
add_for_cpu("nn.contrib_depthwise_conv2d_NCHWc", _depthwise_nchwc, schedule_depthwise_conv2d_NCHWc, _packed_depthwise)
add_for_cpu("nn.contrib_conv2d_winograd_without_weight_transform", _winograd, schedule_conv2d_winograd_NCHWc, _packed_winograd)
add_for_cpu("nn.contrib_dense_pack", _dense_pack, schedule_product, _packed_once)
add_for_cpu("nn.matmul", None, schedule_product)
add_for_cpu("nn.batch_matmul", _batch_matmul, schedule_product)
for _name in ("nn.max_pool2d", "nn.avg_pool2d"):
    add_for_cpu(_name, None, schedule_depthwise_conv2d_NCHWc, lambda a, i: i[0].ndim == 5 and a.layout[:4] == "NCHW")
for _name in GENERAL:
    if _name.startswith(("nn.global_", "nn.adaptive_")):
        add_for_cpu(_name, None, lambda outs, target: schedule_reduce(outs))
for _name in ("nn.softmax", "nn.fast_softmax", "nn.log_softmax", "nn.layer_norm", "nn.instance_norm", "nn.l2_normalize"):
    add_for_cpu(_name, None, schedule_rows, in_c=True)
