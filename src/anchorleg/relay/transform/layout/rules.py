"""How each operator takes to layouts: a table of rules.

A rule is ``rule(request) -> Plan | None``.  None means: give me everything in the program's layout.
"""
from __future__ import annotations

from typing import Any, Callable, NamedTuple, Sequence

from ....ir.op import Op, OpPattern
from .place import Place, Plan, Value, blocked_axis, divisible, new_axis, primal


class Request(NamedTuple):
    """An operator call under rewriting: its attributes before and after alteration, and its tensor arguments."""

    op: Op
    old_attrs: Any
    attrs: Any
    values: Sequence[Value]
    out_dims: tuple[Any, ...]


Rule = Callable[[Request], "Plan | None"]
_WITHOUT_AXES = frozenset({"cast", "clip", "nn.leaky_relu", "copy", "fixed_point_multiply", "zeros_like", "ones_like", "full_like",
                           "nn.hard_sigmoid"})


def _place(old: str, new: str) -> Place:
    return Place(old, new or old)


def convolution(r: Request) -> Plan:
    """Data and kernel in the layouts the (altered) attributes name."""
    old, new = r.old_attrs, r.attrs
    data = _place(old.data_layout, new.data_layout)
    kernel = _place(old.kernel_layout, new.kernel_layout)
    out = _place(old.out_layout or old.data_layout, new.out_layout or new.data_layout)
    if r.op.name == "nn.deformable_conv2d":  # its second argument, the offsets, is laid out as the data
        return Plan([data, data, kernel], [out], new)
    return Plan([data, kernel, *([None] * (len(r.values) - 2))], [out], new)


def winograd(r: Request) -> Plan:
    """A convolution whose weight is transformed, and packed, already."""
    plan = convolution(r)
    return plan._replace(inputs=[plan.inputs[0], None])


def _first_moved(values: Sequence[Value]) -> Place | None:
    moved = [v.place for v in values if v.place is not None and v.place.moved]
    return moved[0] if moved else None


def elementwise(r: Request) -> Plan | None:
    """Any layout will do, as long as all arguments share it; what is broadcast follows."""
    lead = _first_moved(r.values)
    if lead is None or _many_blocks(lead.new) or len(r.out_dims) != len(primal(lead.old)):
        return None
    if any(not _can_follow(v, lead) for v in r.values) or not divisible(r.out_dims, lead.old, lead.new):
        return None
    return Plan([None if not v.dims else lead for v in r.values], [lead], r.attrs, broadcasts=True)


def _can_follow(value: Value, lead: Place) -> bool:
    if value.place == lead or not value.dims:
        return True
    rank = len(primal(lead.old))
    dims = (1,) * (rank - len(value.dims)) + tuple(value.dims)
    if len(dims) != rank:
        return False
    axis, factor = blocked_axis(lead.new)
    if not axis:
        return True
    size = dims[primal(lead.old).index(axis)]
    return isinstance(size, int) and (size == 1 or size % factor == 0)


def layout_attribute(r: Request) -> Plan | None:
    """Pools and resizes, which have a ``layout`` attribute: the layout that alteration asks for, else the one the data is in."""
    place, old = r.values[0].place, r.old_attrs.layout
    if r.attrs.layout != old:
        place = Place(old, r.attrs.layout)
    elif place is None or not place.moved or place.old != old:
        return None
    axis, _ = blocked_axis(place.new)
    if axis not in _BLOCKS_TAKEN.get(r.op.name, ("", "C")) or not axis and any(c.islower() for c in place.new):
        return None
    changes = {"layout": place.new}
    if getattr(r.attrs, "out_layout", ""):
        changes["out_layout"] = place.new
    return Plan([place, *([None] * (len(r.values) - 1))], [place], r.attrs.replace(**changes))


def one_axis(r: Request) -> Plan | None:
    """Operators that work along their ``axis`` (their further arguments are vectors along it), where that is not blocked."""
    place = r.values[0].place
    if place is None or not place.moved or not isinstance(getattr(r.attrs, "axis", None), int):
        return None
    if primal(place.old)[r.attrs.axis % len(primal(place.old))] == blocked_axis(place.new)[0] or _many_blocks(place.new):
        return None
    attrs = r.attrs.replace(axis=new_axis(place, r.attrs.axis))
    count = 3 if r.op.name == "nn.batch_norm" else 1
    return Plan([place, *([None] * (len(r.values) - 1))], [place, *([None] * (count - 1))], attrs)


def _many_blocks(layout: str) -> bool:
    return sum(c.islower() for c in layout) > 1


def reduction(r: Request) -> Plan | None:
    """Reductions over axes that are not blocked."""
    (value,) = r.values
    place = value.place
    if place is None or not place.moved:
        return None
    letters, rank = primal(place.old), len(value.dims)
    axes = _reduced_axes(r.attrs, rank)
    if blocked_axis(place.new)[0] in {letters[a] for a in axes} or not axes or _many_blocks(place.new):
        return None
    if r.op.name.startswith("arg") and len(axes) > 1:  # the result counts through the axes in their order
        return None
    attrs = r.attrs.replace(axis=[new_axis(place, a) for a in axes], exclude=False)
    if r.attrs.keepdims:
        return Plan([place], [place], attrs)
    gone = {letters[a] for a in axes}
    out = Place(_drop(place.old, gone), _drop(place.new, gone))
    return Plan([place], [out if out.moved else None], attrs)


def _reduced_axes(attrs: Any, rank: int) -> list[int]:
    if attrs.axis is None:
        return list(range(rank))
    given = {a % rank for a in attrs.axis}
    return [a for a in range(rank) if (a in given) != bool(attrs.exclude)]


def _drop(layout: str, letters: set[str]) -> str:
    return "".join(c for c in layout if c not in letters)


def concatenation(r: Request) -> Plan | None:
    """All parts in one layout; parts joined along the blocked axis must fill their blocks."""
    lead = _first_moved(r.values)
    if lead is None or _many_blocks(lead.new) or any(len(v.dims) != len(primal(lead.old)) or not divisible(v.dims, lead.old, lead.new) for v in r.values):
        return None
    return Plan([lead] * len(r.values), [lead], r.attrs.replace(axis=new_axis(lead, r.attrs.axis)))


def padding(r: Request) -> Plan | None:
    """Padding of axes that are not blocked."""
    value = r.values[0]
    place = value.place
    if place is None or not place.moved:
        return None
    letters = primal(place.old)
    if _many_blocks(place.new) or getattr(r.attrs, "pad_mode", "constant") != "constant":
        return None
    widths = dict(zip(letters, r.attrs.pad_width))
    if tuple(widths.get(blocked_axis(place.new)[0], (0, 0))) != (0, 0):
        return None
    new_widths = [widths[c] if c.isupper() else (0, 0) for c in place.new if c.isalpha()]
    return Plan([place, *([None] * (len(r.values) - 1))], [place], r.attrs.replace(pad_width=new_widths))


def slicing(r: Request) -> Plan | None:
    """Slices; along the blocked axis only whole blocks (step 1, bounds on block edges)."""
    value, attrs = r.values[0], r.attrs
    place = value.place
    if place is None or not place.moved or len(r.values) != 1 or attrs.begin is None or attrs.end is None:
        return None
    letters = primal(place.old)
    axes = list(attrs.axes) if attrs.axes is not None else list(range(len(attrs.begin)))
    begin, end, strides = list(attrs.begin), list(attrs.end), list(attrs.strides or [1] * len(axes))
    if len(begin) != len(axes) or len(end) != len(axes) or len(value.dims) != len(letters) or _many_blocks(place.new):
        return None
    if any(not isinstance(value.dims[a % len(letters)], int) for a in axes):
        return None
    strides += [1] * (len(axes) - len(strides))
    if attrs.slice_mode == "size":
        begin, end = _bounds(begin, end, [value.dims[a % len(letters)] for a in axes])
        strides = [1] * len(axes)
    blocked, factor = blocked_axis(place.new)
    for i, a in enumerate(axes):
        if letters[a % len(letters)] != blocked:
            continue
        size = value.dims[a % len(letters)]
        lo, hi = _clamped(begin[i], size), _clamped(end[i], size)
        if strides[i] != 1 or lo % factor or hi % factor:
            return None
        begin[i], end[i] = lo // factor, hi // factor
    new = attrs.replace(begin=begin, end=end, strides=strides, axes=[new_axis(place, a) for a in axes], slice_mode="end")
    return Plan([place], [place], new)


def _bounds(begin: Sequence[int], sizes: Sequence[int], dims: Sequence[int]) -> tuple[list[int], list[int]]:
    """Begins and ends of a slice given by sizes, of which a negative one means: to the end."""
    starts = [b + d if b < 0 else b for b, d in zip(begin, dims)]
    return starts, [d if n < 0 else b + n for b, n, d in zip(starts, sizes, dims)]


def _clamped(bound: int, size: int) -> int:
    return max(0, min(size, bound + size if bound < 0 else bound))


def splitting(r: Request) -> Plan | None:
    """Splits along any axis; along the blocked one only at block edges."""
    value = r.values[0]
    place = value.place
    if place is None or not place.moved or _many_blocks(place.new):
        return None
    letters = primal(place.old)
    letter = letters[r.attrs.axis % len(letters)]
    blocked, factor = blocked_axis(place.new)
    parts = r.attrs.indices_or_sections
    size = value.dims[r.attrs.axis % len(letters)]
    count = parts if isinstance(parts, int) else len(parts) + 1
    if letter == blocked:
        if isinstance(parts, int):
            if size % parts or (size // parts) % factor:
                return None
        elif any(p % factor for p in parts):
            return None
        else:
            parts = [p // factor for p in parts]
    attrs = r.attrs.replace(axis=new_axis(place, r.attrs.axis), indices_or_sections=parts)
    return Plan([place], [place] * count, attrs)


def packed_dense(r: Request) -> Plan:
    """``contrib_dense_pack``: the weight is packed, the data stays."""
    new = r.attrs.weight_layout
    old = getattr(r.old_attrs, "weight_layout", primal(new))  # packed already, or packed now
    return Plan([None, Place(old, new), *([None] * (len(r.values) - 2))], [None], r.attrs)


def recurrent(r: Request) -> Plan:
    """Recurrent layers: the weight is packed, everything else stays."""
    weight = Place(r.old_attrs.weight_layout, r.attrs.weight_layout)
    states = 2 if r.op.name == "nn.contrib_lstm" else 1
    return Plan([None, weight, *([None] * (len(r.values) - 2))], [None] * (1 + states), r.attrs)


_CONVOLUTIONS = ("nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose",
                 "nn.contrib_conv2d_NCHWc", "nn.contrib_depthwise_conv2d_NCHWc",
                 "nn.deformable_conv2d")
_POOLS = tuple(f"nn.{kind}_pool{n}d" for kind in ("max", "avg", "adaptive_max", "adaptive_avg") for n in (1, 2, 3))
_RESIZES = ("image.resize1d", "image.resize2d", "image.resize3d")
_UNBLOCKED = ("nn.upsampling3d", "nn.depth_to_space", "nn.space_to_depth",
              "vision.roi_align", "vision.roi_pool")
_LAYOUT_ATTRIBUTE = (*_POOLS, *_RESIZES, "nn.global_max_pool2d", "nn.global_avg_pool2d", "nn.upsampling", *_UNBLOCKED)
_BLOCKS_TAKEN = dict.fromkeys(_UNBLOCKED, ("",))
_ONE_AXIS = ("nn.softmax", "nn.log_softmax", "nn.fast_softmax", "nn.bias_add", "nn.batch_norm", "nn.prelu", "nn.lrn", "nn.layer_norm")
_REDUCTIONS = ("sum", "mean", "max", "min", "prod", "all", "any", "argmax", "argmin")

RULES: dict[str, Rule] = {
    **dict.fromkeys(_CONVOLUTIONS, convolution),
    "nn.contrib_conv2d_winograd_without_weight_transform": winograd,
    **dict.fromkeys(_LAYOUT_ATTRIBUTE, layout_attribute),
    **dict.fromkeys(_REDUCTIONS, reduction),
    **dict.fromkeys(_ONE_AXIS, one_axis),
    "concatenate": concatenation,
    "nn.pad": padding,
    "strided_slice": slicing,
    "split": splitting,
    "nn.contrib_dense_pack": packed_dense,
    **dict.fromkeys(("nn.contrib_lstm", "nn.contrib_gru", "nn.contrib_rnn"), recurrent),
}


def rule_for(op: Op, attrs: Any) -> Rule | None:
    """The operator's rule; for plain element-wise and broadcasting operators the general one."""
    if op.name in RULES:
        return RULES[op.name]
    pattern = int(op.get_attr("TOpPattern", OpPattern.OPAQUE))
    if pattern <= OpPattern.BROADCAST and (attrs is None or not attrs.keys() or op.name in _WITHOUT_AXES):
        return elementwise
    return None
