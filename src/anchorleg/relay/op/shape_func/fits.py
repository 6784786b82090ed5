"""What operators ask of their arguments' sizes, for the sizes that only run time tells.

Type inference refuses arguments that do not fit each other as far as it knows their sizes; these rules are the same
conditions on the rest.  Compiled code relies on them: it reads and writes where they say that there is something.
"""
from __future__ import annotations

from typing import Sequence

from ..reduce import reduced_axes, reduced_dims
from .dims import Dim, product
from .registry import ShapeCase, fit_rule
from .rules import axis_names, broadcast, pads_of, sliced


def _equal(c: ShapeCase, a: Dim, b: Dim, text: str) -> None:
    c.check(c.table.equal(a, b), text)


def _at_most(c: ShapeCase, a: Dim, b: Dim, text: str) -> None:
    c.check(c.table.equal(c.table.less(b, a), 0), text)


def _some_or_unused(c: ShapeCase, size: Dim, indices: Sequence[Dim]) -> None:
    """An axis that is indexed has elements, unless there are no indices."""
    t = c.table
    c.check(t.maximum(t.less(0, size), t.equal(product(indices), 0)), "there are indices into an axis without elements")


# ---- vectors along an axis -------------------------------------------------------------------------------------------

@fit_rule("nn.bias_add", "nn.prelu", "nn.instance_norm", "nn.group_norm", "nn.layer_norm", "nn.batch_norm")
def _along_axis(c: ShapeCase) -> None:
    dims = c.dims(0)
    for i in range(1, len(c.args)):
        _equal(c, dims[c.attrs.axis % len(dims)], c.dims(i)[0], "a vector along an axis is not as long as the axis")


@fit_rule("sequence_mask")
def _sequence_mask(c: ShapeCase) -> None:
    _equal(c, c.dims(0)[1 - int(c.attrs.axis)], c.dims(1)[0], "valid_length is not as long as the batch axis")


@fit_rule("reverse_sequence")
def _reverse_sequence(c: ShapeCase) -> None:
    dims = c.dims(0)
    _equal(c, dims[int(c.attrs.batch_axis) % len(dims)], c.dims(1)[0], "seq_lengths is not as long as the batch axis")


# ---- picking and writing ---------------------------------------------------------------------------------------------

@fit_rule("take")
def _take(c: ShapeCase) -> None:
    data, indices, batch = c.dims(0), c.dims(1), int(c.attrs.batch_dims)
    if c.attrs.axis is None:
        _some_or_unused(c, product(data), indices)
        return
    _some_or_unused(c, data[int(c.attrs.axis) % len(data)], indices)
    for i in range(batch + len(indices) if batch < 0 else batch):
        _equal(c, data[i], indices[i], "data and indices differ in a batch dimension")


def _inside(c: ShapeCase, axis: int) -> None:
    """Indices along one axis lie, along the others, within the data."""
    for i, (d, n) in enumerate(zip(c.dims(0), c.dims(1))):
        if i != axis:
            _at_most(c, n, d, "indices are larger than data outside of the axis")
    _some_or_unused(c, c.dims(0)[axis], c.dims(1))


@fit_rule("gather")
def _gather(c: ShapeCase) -> None:
    _inside(c, int(c.attrs.axis) % len(c.dims(0)))


@fit_rule("scatter_elements")
def _scatter_elements(c: ShapeCase) -> None:
    _inside(c, int(c.attrs.axis) % len(c.dims(0)))
    for n, u in zip(c.dims(1), c.dims(2)):
        _equal(c, n, u, "indices and updates differ in size")


@fit_rule("scatter_nd")
def _scatter_nd(c: ShapeCase) -> None:
    data, indices = c.dims(0), c.dims(1)
    if isinstance(indices[0], int):
        for n, u in zip([*indices[1:], *data[indices[0]:]], c.dims(2)):
            _equal(c, n, u, "updates do not have the sizes that data and indices ask for")
        for d in data[:indices[0]]:
            _some_or_unused(c, d, indices[1:])


@fit_rule("gather_nd")
def _gather_nd(c: ShapeCase) -> None:
    data, indices, batch = c.dims(0), c.dims(1), int(c.attrs.batch_dims)
    for i in range(batch):
        _equal(c, data[i], indices[i + 1], "data and indices differ in a batch dimension")
    if isinstance(indices[0], int):
        for d in data[batch:batch + indices[0]]:
            _some_or_unused(c, d, indices[1:])


@fit_rule("adv_index")
def _adv_index(c: ShapeCase) -> None:
    indices = broadcast(c, [a.dims for a in c.args[1:]])
    for d in c.dims(0)[:len(c.args) - 1]:
        _some_or_unused(c, d, indices)


@fit_rule("vm.put_row")
def _put_row(c: ShapeCase) -> None:
    for a, b in zip(c.dims(0)[1:], c.dims(2)):
        _equal(c, a, b, "the row does not have the sizes of the data's rows")


@fit_rule("matrix_set_diag")
def _matrix_set_diag(c: ShapeCase) -> None:
    data, diagonal, t = c.dims(0), c.dims(1), c.table
    low, high = int(c.attrs.k1), int(c.attrs.k2)
    for a, b in zip(data[:-2], diagonal):
        _equal(c, a, b, "data and diagonal differ in a batch dimension")
    rows, columns = data[-2:]
    c.check(t.minimum(t.less(-low, rows), t.less(high, columns)), "a diagonal lies outside of the matrix")
    _equal(c, t.minimum(rows + min(high, 0), columns - max(low, 0)), diagonal[-1], "the diagonals do not have the length of the matrix's")
    if low != high:
        _equal(c, high - low + 1, diagonal[-2], "the number of diagonals is not what k says")


@fit_rule("searchsorted")
def _searchsorted(c: ShapeCase) -> None:
    if len(c.dims(0)) > 1:
        for a, b in zip(c.dims(0)[:-1], c.dims(1)):
            _equal(c, a, b, "sorted_sequence and values differ in size outside of the last axis")


@fit_rule("slice_like")
def _slice_like(c: ShapeCase) -> None:
    data, like = c.dims(0), c.dims(1)
    for a in c.attrs.axes or range(min(len(data), len(like))):
        _at_most(c, like[int(a)], data[int(a)], "slice_like: an axis has fewer elements than are asked for")


# ---- shapes ----------------------------------------------------------------------------------------------------------

@fit_rule("reshape_like")
def _reshape_like(c: ShapeCase) -> None:
    a, b, at = c.dims(0), c.dims(1), c.attrs
    lhs_end, rhs_end = (len(d) if e is None else e % len(d) if e < 0 else e for d, e in ((a, at.lhs_end), (b, at.rhs_end)))
    _equal(c, product(a[at.lhs_begin:lhs_end]), product(b[at.rhs_begin:rhs_end]), "reshape_like: the numbers of elements differ")


def _broadcasts_to(c: ShapeCase, target: Sequence[Dim]) -> None:
    t, dims = c.table, c.dims(0)
    for d, n in zip(dims[::-1], target[::-1]):
        c.check(t.maximum(t.equal(d, 1), t.equal(d, n)), "Invalid broadcast shapes: a size is neither 1 nor the one asked for")


@fit_rule("broadcast_to")
def _broadcast_to(c: ShapeCase) -> None:
    _broadcasts_to(c, [int(d) for d in c.attrs.shape] if c.attrs.shape is not None else c.values(1))


@fit_rule("dyn.broadcast_to")
def _dyn_broadcast_to(c: ShapeCase) -> None:
    _broadcasts_to(c, c.values(1))


@fit_rule("strided_set")
def _strided_set(c: ShapeCase) -> None:
    begin, end, strides = (c.values(i) for i in (2, 3, 4))
    for i, (d, v) in enumerate(zip(c.dims(0), c.dims(1))):
        size = sliced(c, d, begin[i], end[i], strides[i] if i < len(strides) else 1, "end") if i < len(begin) else d
        _equal(c, size, v, "what is written does not have the sizes of the slice")


@fit_rule("broadcast_to_like")
def _broadcast_to_like(c: ShapeCase) -> None:
    _broadcasts_to(c, c.dims(1))


@fit_rule("argmax", "argmin")
def _arg_reduce(c: ShapeCase) -> None:
    dims, t = c.dims(0), c.table
    axes = reduced_axes(len(dims), c.attrs)
    rest = reduced_dims(dims, axes, False)
    c.check(t.maximum(t.less(0, product(dims[a] for a in axes)), t.equal(product(rest), 0)), "there is no extreme element among none")


# ---- networks --------------------------------------------------------------------------------------------------------

def _divides(c: ShapeCase, layout: str, names: str, by: int) -> None:
    for n, d in zip(layout, c.dims(0)):
        if n in names:
            _equal(c, c.table.remainder(d, by), 0, f"the size of axis {n} is no multiple of {by}")


@fit_rule("nn.depth_to_space")
def _depth_to_space(c: ShapeCase) -> None:
    _divides(c, c.attrs.layout, "C", int(c.attrs.block_size) ** 2)


@fit_rule("nn.space_to_depth")
def _space_to_depth(c: ShapeCase) -> None:
    _divides(c, c.attrs.layout, "HW", int(c.attrs.block_size))


def _windows(c: ShapeCase, sizes: Sequence[Dim], windows: Sequence[int]) -> None:
    """Windows (dilated) lie within what there is of an axis, its padding included."""
    for d, w, dil, (before, after) in zip(sizes, windows, c.attrs.dilation, pads_of(c.attrs.padding, len(sizes))):
        _at_most(c, (int(w) - 1) * int(dil) + 1, d + before + after, "a window does not fit into the data")


@fit_rule("nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d", "nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d")
def _pool(c: ShapeCase) -> None:
    if not c.attrs.ceil_mode:
        sizes = [d for n, d in zip(axis_names(c.attrs.layout), c.dims(0)) if n in "DHW"]
        _windows(c, sizes, [int(k) for k in c.attrs.pool_size])


def _plain(layout: str) -> bool:
    return layout.isalpha() and layout.isupper()


def _channels_fit(c: ShapeCase, inner: Dim, outer: Dim, channels: Dim) -> Dim:
    """Whether a weight (outer, inner, …) is (channels out, channels in of a group); or, depthwise, (channels, multiplier)."""
    t, groups, wanted = c.table, int(c.attrs.groups), c.attrs.channels
    plain = t.minimum(t.equal(inner * groups, channels), 1 if wanted is None else t.equal(outer, int(wanted)))
    if groups == 1:
        return plain
    depthwise = t.minimum(t.equal(outer, groups), t.equal(channels, groups))
    return t.select(depthwise, 1 if wanted is None else t.equal(inner * groups, int(wanted)), plain)


def _weight_fits(c: ShapeCase, transposed: bool) -> None:
    """A plain convolution's weight against its data."""
    at = c.attrs
    data, weight = dict(zip(at.data_layout, c.dims(0))), dict(zip(at.kernel_layout, c.dims(1)))
    channels, groups, text = data["C"], int(at.groups), "the weight does not fit the data's channels"
    inner, outer = (weight["O"], weight["I"]) if transposed else (weight["I"], weight["O"])
    if transposed:
        _equal(c, outer, channels, text)
        if at.channels is not None:
            _equal(c, inner * groups, int(at.channels), text)
    else:
        c.check(_channels_fit(c, inner, outer, channels), text)
    for n, k in zip((n for n in at.kernel_layout if n in "DHW"), at.kernel_size or ()):
        _equal(c, weight[n], int(k), "the weight does not have the kernel's size")


@fit_rule("nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.contrib_conv2d_NCHWc", "nn.contrib_depthwise_conv2d_NCHWc",
          "nn.contrib_conv2d_winograd_without_weight_transform")
def _conv(c: ShapeCase) -> None:
    at = c.attrs
    if _plain(at.data_layout) and _plain(at.kernel_layout) and "G" not in at.kernel_layout and len(c.dims(1)) == len(at.kernel_layout):
        _weight_fits(c, False)
    if at.kernel_size:
        _windows(c, [d for n, d in zip(axis_names(at.data_layout), c.dims(0)) if n in "DHW"], [int(k) for k in at.kernel_size])


@fit_rule(*(f"nn.{how}_{kind}_pool{n}d" for how in ("global", "adaptive") for kind in ("avg", "max") for n in (1, 2, 3)))
def _global_pool(c: ShapeCase) -> None:
    for n, d in zip(axis_names(c.attrs.layout), c.dims(0)):
        if n in "DHW":
            c.check(c.table.less(0, d), "there is nothing to pool along an axis")


@fit_rule("image.resize1d", "image.resize2d", "image.resize3d", "dyn.image.resize2d")
def _resize(c: ShapeCase) -> None:
    for n, d in zip(axis_names(c.attrs.layout), c.dims(0)):
        if n in "DHW":
            c.check(c.table.less(0, d), "there is nothing to resize along an axis")


@fit_rule("nn.mirror_pad")
def _mirror_pad(c: ShapeCase) -> None:
    room = 1 if c.attrs.mode == "REFLECT" else 0
    for d, width in zip(c.dims(0), c.attrs.pad_width):
        _at_most(c, max(int(w) for w in width) + room, d, "an axis cannot be mirrored by more than it has")


@fit_rule("nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose")
def _conv_transpose(c: ShapeCase) -> None:
    at = c.attrs
    if _plain(at.data_layout) and _plain(at.kernel_layout) and "G" not in at.kernel_layout:
        _weight_fits(c, True)
