"""Which layouts convolutions and products want on a processor: channels packed by vector, weights packed to match.

Channels are packed by the widest block that divides them, one vector at most, so that the layouts of neighbouring operators agree.
"""
from __future__ import annotations

from typing import Any, Sequence

from ....ir.op import Op
from ....ir.transform import PassContext
from ....target.target import Target
from ....topi.nn.common import dims
from ....topi.nn.conv2d_cpu import registers_of
from ....topi.nn.schedule import lanes_of
from ....topi.nn.winograd import winograd_tile_size
from ...expr import Call, Constant
from ..nn.conv import Conv2DWinogradAttrs
from ..nn.dense import DensePackAttrs
from ..nn.winograd import USE_WINOGRAD, ConvWinogradWeightTransformAttrs
from ...transform.layout.place import blocked_axis
from ..op import register_alter_op_layout
from ..registry import make_attrs

PACKED_COLUMNS = 4  # vectors of columns in one block of a packed weight
MANY_ROWS = 16  # rows from which packing a weight at run time pays


def channel_block(channels: int, lanes: int) -> int:
    """By how many channels to pack: a vector, or the widest power of two that divides; few channels stay together."""
    block = lanes
    while block > 1 and channels % block:
        block //= 2
    return channels if block < 4 and channels <= lanes else block


def input_block(channels: int, lanes: int, known: bool) -> int:
    """By how many channels to pack what a convolution reads; few channels of a plane whose size is not known stay planes, which rows are copied of."""
    return 1 if channels < 4 and not known else channel_block(channels, lanes)


def for_processor() -> Any:
    """The current target when it is a processor whose vectors data may be packed for; else None."""
    target = Target.current(allow_none=True)
    return target if target is not None and "cpu" in target.keys and target.kind.name != "c" else None  # C code has no vectors to pack for


def of_bytes(tinfos: Sequence[Any], out_type: Any) -> bool:
    """Whether this is a product of bytes with signed bytes (or, channel by channel, int16), that is added up in int32."""
    return tinfos[0].dtype in ("int8", "uint8") and tinfos[1].dtype in ("int8", "int16") and out_type.dtype == "int32"


def pack_conv2d(attrs: Any, inputs: Sequence[Any], tinfos: Sequence[Any], out_type: Any, lanes: int) -> Any:
    """A convolution of bytes over packed channels: as many outputs as a vector of int32 has lanes, four input channels at a time."""
    if attrs.data_layout not in ("NCHW", "NHWC") or attrs.out_layout not in ("", attrs.data_layout) or sorted(attrs.kernel_layout) != sorted("OIHW"):
        return None
    channels, outputs = dims(tinfos[0])[attrs.data_layout.index("C")], out_type.dims[attrs.data_layout.index("C")]
    rows = dict(zip(attrs.kernel_layout, dims(tinfos[1])))
    if not all(isinstance(d, int) and d for d in (channels, outputs, *rows.values())):
        return None
    if attrs.groups == channels == rows["O"] and attrs.groups > 1:
        return _depthwise(attrs, inputs, channels, outputs, rows, lanes) if all(isinstance(d, int) for d in (*dims(tinfos[0]), *out_type.dims)) else None
    if tinfos[1].dtype != "int8":
        return None
    per_in, oc = channels // attrs.groups, channel_block(outputs // attrs.groups, lanes)
    offered = _offered_block(inputs[0], per_in)
    ic = offered if offered % 4 == 0 and offered else channel_block(per_in, max(4, lanes))
    if oc < 4 or ic % 4 or outputs // attrs.groups % oc:
        return None
    changes = _spelled_out(attrs, rows, outputs, data_layout=f"NCHW{ic}c", kernel_layout=f"OIHW{ic // 4}i{oc}o4i", out_layout=f"NCHW{oc}c")
    return Call(Op.get("nn.contrib_conv2d_NCHWc"), inputs, changes)


def pack_dense(attrs: Any, inputs: Sequence[Any], tinfos: Sequence[Any], lanes: int) -> Any:
    """A product of bytes with a weight packed in blocks of columns, four rows at a time."""
    units, inner = dims(tinfos[1])
    if not tinfos[0].ndim or not all(isinstance(d, int) and d for d in (units, inner)) or inner % 4 or tinfos[1].dtype != "int8" or not isinstance(inputs[1], Constant):
        return None
    attrs = DensePackAttrs(units=units, out_dtype=attrs.out_dtype, weight_layout=f"NC{column_block(units, lanes)}n4c")
    return Call(Op.get("nn.contrib_dense_pack"), inputs, attrs)


def alter_conv2d(attrs: Any, inputs: Sequence[Any], tinfos: Sequence[Any], out_type: Any) -> Any:
    """``nn.conv2d`` over floats in NCHW or NHWC as a convolution over packed channels; None where it is left alone."""
    target = for_processor()
    data, weight = tinfos[0], tinfos[1]
    if target is not None and of_bytes(tinfos, out_type):
        return pack_conv2d(attrs, inputs, tinfos, out_type, lanes_of(target, "int32"))
    if target is None or data.dtype != "float32" or weight.dtype != "float32" or out_type.dtype != "float32":
        return None
    if attrs.data_layout not in ("NCHW", "NHWC") or attrs.out_layout not in ("", attrs.data_layout) or "G" in attrs.kernel_layout:
        return None
    if sorted(attrs.kernel_layout) != sorted("OIHW"):
        return None
    channels, outputs = dims(data)[attrs.data_layout.index("C")], out_type.dims[attrs.data_layout.index("C")]
    rows = dict(zip(attrs.kernel_layout, dims(weight)))
    lanes = lanes_of(target, "float32")
    if not all(isinstance(d, int) for d in (channels, outputs, *rows.values())):
        return None
    known = all(isinstance(d, int) for d in (*dims(data), *out_type.dims))
    if attrs.groups == channels == rows["O"] and attrs.groups > 1:
        return _depthwise(attrs, inputs, channels, outputs, rows, lanes)
    per_in, per_out = channels // attrs.groups, outputs // attrs.groups
    ic, oc = _offered_block(inputs[0], per_in) or input_block(per_in, lanes, known), channel_block(per_out, lanes)
    if oc < 4 or (attrs.groups > 1 and ic < 4):
        return None
    filtered = _winograd(attrs, inputs, rows, out_type, ic, oc, registers_of(target)) if known else None
    if filtered is not None:
        return filtered
    changes = _spelled_out(attrs, rows, outputs, data_layout=f"NCHW{ic}c", kernel_layout=f"OIHW{ic}i{oc}o", out_layout=f"NCHW{oc}c")
    return Call(Op.get("nn.contrib_conv2d_NCHWc"), inputs, changes)


def _offered_block(data: Any, channels: int) -> int:
    """The block by which the channels are packed already, where a convolution can sum over such blocks; else 0.

    ``data`` is offered in the program's layout: unpacked, by a ``layout_transform`` that goes away when the block is kept.
    """
    if not isinstance(data, Call) or data.op is not Op.get("layout_transform"):
        return 0
    axis, block = blocked_axis(data.attrs.src_layout)
    packed = data.attrs.src_layout == f"NCHW{block}c"
    return block if axis == "C" and packed and block >= 4 and channels % block == 0 else 0


def _spelled_out(attrs: Any, rows: dict[str, int], outputs: int, **layouts: str) -> Any:
    return attrs.replace(channels=outputs, kernel_size=(rows["H"], rows["W"]), **layouts)


def _winograd(attrs: Any, inputs: Sequence[Any], rows: dict[str, int], out_type: Any, ic: int, oc: int, registers: int) -> Any:
    """A 3x3 convolution by minimal filtering where that is faster and the weight is known; else None."""
    fits = (rows["H"], rows["W"]) == (3, 3) and attrs.groups == 1 and set(map(int, (*attrs.strides, *attrs.dilation))) == {1}
    if not fits or min(ic, oc) < 8 or not isinstance(inputs[1], Constant) or not PassContext.current().get(USE_WINOGRAD, True):
        return None
    height, width = (out_type.dims[attrs.data_layout.index(a)] for a in "HW")
    m = winograd_tile_size(height, width, rows["I"], rows["O"], oc, registers)
    if not m:
        return None
    plain = _relaid(inputs[1], attrs.kernel_layout, "OIHW")
    weight = Call(Op.get("nn.contrib_conv2d_winograd_weight_transform"), [plain], ConvWinogradWeightTransformAttrs(tile_size=m))
    layout = f"OHWI{ic}i{oc}o"
    spelled = {"tile_size": m, "padding": attrs.padding, "channels": rows["O"], "kernel_size": (3, 3), "data_layout": f"NCHW{ic}c",
               "kernel_layout": layout, "out_layout": f"NCHW{oc}c", "out_dtype": attrs.out_dtype}
    return Call(Op.get("nn.contrib_conv2d_winograd_without_weight_transform"), [inputs[0], _relaid(weight, "HWOI", layout)],
                Conv2DWinogradAttrs(**spelled))


def _relaid(expr: Any, src: str, dst: str) -> Any:
    if src == dst:
        return expr
    return Call(Op.get("layout_transform"), [expr], make_attrs("layout_transform", src_layout=src, dst_layout=dst))


def _depthwise(attrs: Any, inputs: Sequence[Any], channels: int, outputs: int, rows: dict[str, int], lanes: int) -> Any:
    block = channel_block(channels, lanes)
    if outputs != channels or block < 4:
        return None
    changes = _spelled_out(attrs, rows, outputs, data_layout=f"NCHW{block}c", kernel_layout=f"OIHW1i{block}o", out_layout=f"NCHW{block}c")
    return Call(Op.get("nn.contrib_depthwise_conv2d_NCHWc"), inputs, changes)


def alter_dense(attrs: Any, inputs: Sequence[Any], tinfos: Sequence[Any], out_type: Any) -> Any:
    """``nn.dense`` over floats as a product with a weight packed in blocks of columns."""
    target = for_processor()
    if target is not None and of_bytes(tinfos, out_type):
        return pack_dense(attrs, inputs, tinfos, lanes_of(target, "int32"))
    if target is None or tinfos[0].dtype != "float32" or tinfos[1].dtype not in ("float32", "int8") or out_type.dtype != "float32":
        return None
    if not tinfos[0].ndim:
        return None
    units, inner = dims(tinfos[1])
    rows = 1
    for d in dims(tinfos[0])[:-1]:
        rows *= d if isinstance(d, int) else MANY_ROWS
    if not all(isinstance(d, int) and d for d in (units, inner)) or not rows or (not isinstance(inputs[1], Constant) and rows < MANY_ROWS):
        return None
    block = column_block(units, lanes_of(target, "float32"))
    attrs = DensePackAttrs(units=units, out_dtype=attrs.out_dtype, weight_layout=f"NC{block}n")
    return Call(Op.get("nn.contrib_dense_pack"), inputs, attrs)


alter_conv2d.takes_unknown_sizes = True  # type: ignore[attr-defined]  # of planes: channels must be known
alter_dense.takes_unknown_sizes = True  # type: ignore[attr-defined]  # the weight's must be known


def column_block(units: int, lanes: int) -> int:
    """Columns per block of a packed weight: the widest that leaves at most a sixteenth unused, else the one that leaves least."""
    candidates = [n * lanes for n in range(PACKED_COLUMNS, 0, -1)]
    waste = {b: -(-units // b) * b - units for b in candidates}
    return next((b for b in candidates if waste[b] * 16 <= units), min(candidates, key=lambda b: (waste[b], -b)))


register_alter_op_layout("nn.conv2d", alter_conv2d)
register_alter_op_layout("nn.dense", alter_dense)
