"""The shape rules of all operators whose results' sizes are formulas."""
from __future__ import annotations

import functools
import math
from typing import Any, Sequence

from ....support.einsum import checked_equation, label_sizes
from ..reduce import reduced_axes, reduced_dims
from ..transform.slice import slice_axes
from .dims import Dim, product
from .registry import ShapeCase, shape_rule

_FAR = 2**31 - 1

# ---- element by element ----------------------------------------------------------------------------------------------

_SAME = ("""abs acos acosh asin asinh atan atanh bitwise_not cast cast_like ceil clip copy cos cosh cumprod cumsum device_copy
    erf exp fast_erf fast_exp fast_tanh fixed_point_multiply fixed_point_multiply_per_axis floor full_like isfinite isinf isnan log
    log10 log2 logical_not negative ones_like reinterpret reverse rint reverse_sequence round rsqrt scatter_elements scatter_nd sequence_mask
    sigmoid sign sin sinh sqrt strided_set tan tanh trilu trunc zeros_like annotation.stop_fusion on_device annotation.cast_hint
    nn.bias_add nn.dropout_raw nn.fast_softmax nn.instance_norm nn.group_norm nn.l2_normalize nn.layer_norm nn.leaky_relu
    nn.log_softmax nn.lrn nn.prelu nn.relu nn.softmax sort argsort invert_permutation qnn.dequantize qnn.quantize qnn.requantize
    qnn.simulated_quantize qnn.simulated_dequantize matrix_set_diag qnn.leaky_relu qnn.softmax searchsorted_ vm.put_row""").split()
_BINARY = ("""add subtract multiply divide floor_divide trunc_divide mod floor_mod trunc_mod power maximum minimum left_shift right_shift
    logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor equal not_equal less less_equal greater greater_equal atan2
    qnn.add qnn.subtract qnn.multiply""").split()


@shape_rule(*_SAME)
def _same(c: ShapeCase) -> list[list[Dim]]:
    if c.attrs is not None and c.attrs.get("axis", 0) is None and len(c.dims(0)) != 1:  # of the flattened data
        return [[product(c.dims(0))]]
    return [c.dims(0)]


def broadcast(c: ShapeCase, shapes: Sequence[Sequence[Dim]]) -> list[Dim]:
    """numpy's rule for several shapes."""
    result: list[Dim] = []
    for dims in shapes:
        width = max(len(result), len(dims))
        a, b = [1] * (width - len(result)) + result, [1] * (width - len(dims)) + list(dims)
        result = [_broadcast_dim(c, x, y) for x, y in zip(a, b)]
    return result


def _broadcast_dim(c: ShapeCase, a: Dim, b: Dim) -> Dim:
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    t = c.table
    a_is_one = t.equal(a, 1)
    one = t.maximum(a_is_one, t.equal(b, 1))
    c.check(t.maximum(one, t.equal(a, b)), "Invalid broadcast shapes: two sizes are neither equal nor 1")
    if isinstance(b, int):
        return b
    return a if isinstance(a, int) else t.select(a_is_one, b, a)


@shape_rule(*_BINARY)
def _binary(c: ShapeCase) -> list[list[Dim]]:
    return [broadcast(c, [a.dims for a in c.args[:2]])]


@shape_rule("where")
def _where(c: ShapeCase) -> list[list[Dim]]:
    return [broadcast(c, [a.dims for a in c.args])]


# ---- reductions ------------------------------------------------------------------------------------------------------

@shape_rule("sum", "mean", "max", "min", "prod", "all", "any", "argmax", "argmin", "variance", "logsumexp")
def _reduce(c: ShapeCase) -> list[list[Dim]]:
    dims = c.dims(0)
    return [list(reduced_dims(dims, reduced_axes(len(dims), c.attrs), c.attrs.keepdims))]


# ---- shapes ----------------------------------------------------------------------------------------------------------

@shape_rule("shape_of", "vm.shape_of")
def _shape_of(c: ShapeCase) -> list[list[Dim]]:
    return [[len(c.dims(0))]]


@shape_rule("ndarray_size")
def _ndarray_size(c: ShapeCase) -> list[list[Dim]]:
    return [[]]


def new_shape(c: ShapeCase, dims: list[Dim], sizes: Sequence[Dim], allowzero: bool) -> list[Dim]:
    """The dimensions that ``newshape`` with its special values gives."""
    out: list[Dim] = []
    at, infer = 0, None
    i = 0
    while i < len(sizes):
        s = sizes[i]
        if not isinstance(s, int):
            out.append(s)
            at += 1
        elif s > 0 or s == 0 and allowzero:
            out.append(s)
            at += 1
        elif s == 0:
            out.append(dims[at])
            at += 1
        elif s == -1:
            infer = len(out)
            out.append(1)
            at += 1
        elif s == -2:
            out.extend(dims[at:])
            at = len(dims)
        elif s == -3:
            out.append(product(dims[at:at + 2]))
            at += 2
        elif s == -4:
            first, second = sizes[i + 1], sizes[i + 2]
            whole = dims[at]
            out.append(whole // second if first == -1 else first)
            out.append(whole // first if second == -1 else second)
            at, i = at + 1, i + 2
        i += 1
    whole, rest = product(dims), product(d for k, d in enumerate(out) if k != infer)
    if infer is not None:
        out[infer] = _inferred(c, whole, rest)
    c.check(c.table.equal(whole, product(out)), "a reshape does not keep the number of elements")
    return out


def _inferred(c: ShapeCase, whole: Dim, rest: Dim) -> Dim:
    if rest == 1:
        return whole
    return c.table.quotient(whole, rest)


@shape_rule("reshape")
def _reshape(c: ShapeCase) -> list[list[Dim]]:
    return [new_shape(c, c.dims(0), [int(v) for v in c.attrs.newshape], bool(c.attrs.allowzero))]


@shape_rule("contrib_reverse_reshape")
def _reverse_reshape(c: ShapeCase) -> list[list[Dim]]:
    return [new_shape(c, c.dims(0)[::-1], [int(v) for v in c.attrs.newshape][::-1], False)[::-1]]


@shape_rule("dyn.reshape")
def _dyn_reshape(c: ShapeCase) -> list[list[Dim]]:
    """Values that are known only at run time may be 0, -1 or -3 there: formulas handle all of them."""
    dims, t = c.dims(0), c.table
    given = c.values(1)
    out, at = [], 0  # ``at``: the dimension of the data that the next value is about
    for i, v in enumerate(given):
        special = not isinstance(v, int) and _may_be_special(c, v)
        joins = t.equal(v, -3) if special else int(v == -3)
        copies = int(not c.attrs.allowzero) and (t.equal(v, 0) if special else int(v == 0 and _reaches(at, dims)))
        out.append(_chosen(c, copies, _dim_at(c, dims, at, i), _chosen(c, joins, _pair_at(c, dims, at, i), v)))
        at = at + 1 + joins
    unknown = [i for i, v in enumerate(given) if not isinstance(v, int) and _may_be_special(c, v) or v == -1]
    if not unknown:
        return [out]
    known = product(1 if v == -1 else t.select(t.equal(v, -1), 1, v) if i in unknown else v for i, v in enumerate(out))
    inferred = t.quotient(product(dims), known)
    return [[inferred if v == -1 else t.select(t.equal(v, -1), inferred, v) if i in unknown else v for i, v in enumerate(out)]]


def _chosen(c: ShapeCase, condition: Dim, yes: Dim, no: Dim) -> Dim:
    if isinstance(condition, int):
        return yes if condition else no
    return c.table.select(condition, yes, no)


def _reaches(at: Dim, dims: list[Dim]) -> bool:
    return not isinstance(at, int) or at < len(dims)


def _dim_at(c: ShapeCase, dims: list[Dim], at: Dim, least: int) -> Dim:
    """The dimension at a place that may be known only at run time, but is ``least`` or later; 0 beyond the last."""
    if isinstance(at, int):
        return dims[at] if at < len(dims) else 0
    found: Dim = 0
    for k in reversed(range(least, len(dims))):
        found = c.table.select(c.table.equal(at, k), dims[k], found)
    return found


def _pair_at(c: ShapeCase, dims: list[Dim], at: Dim, least: int) -> Dim:
    return _dim_at(c, dims, at, least) * _dim_at(c, dims, at + 1, least + 1)


def _may_be_special(c: ShapeCase, value: Dim) -> bool:
    """Whether a value may be 0 or -1: it does not come from dimensions alone."""
    stack, seen = [value], set()
    while stack:
        v = stack.pop()
        if isinstance(v, int):
            continue
        if any(k < 0 for _, k in v.terms) or len(v.terms) > 1:
            return True
        for at in {a for m, _ in v.terms for a in m}:
            if at not in seen:
                seen.add(at)
                what = c.table.atoms[at]
                if what[0] not in ("dim", "param"):
                    return True
    return False


@shape_rule("reshape_like")
def _reshape_like(c: ShapeCase) -> list[list[Dim]]:
    a, b, at = c.dims(0), c.dims(1), c.attrs
    lhs_end = len(a) if at.lhs_end is None else at.lhs_end
    rhs_end = len(b) if at.rhs_end is None else at.rhs_end
    lhs_end, rhs_end = lhs_end + len(a) * (lhs_end < 0), rhs_end + len(b) * (rhs_end < 0)
    return [[*a[:at.lhs_begin], *b[at.rhs_begin:rhs_end], *a[lhs_end:]]]


@shape_rule("squeeze")
def _squeeze(c: ShapeCase) -> list[list[Dim]]:
    dims = c.dims(0)
    if c.attrs.axis is None:
        if any(not isinstance(d, int) for d in dims):
            return [[d for d in dims if d != 1]]
        return [[d for d in dims if d != 1]]
    gone = {int(a) % len(dims) for a in c.attrs.axis}
    for a in gone:
        c.check(c.table.equal(dims[a], 1), "squeeze removes an axis whose size is not 1")
    return [[d for i, d in enumerate(dims) if i not in gone]]


@shape_rule("dyn.squeeze")
def _dyn_squeeze(c: ShapeCase) -> list[list[Dim]] | None:
    dims, axes = c.dims(0), c.values(1)
    if all(isinstance(a, int) for a in axes):
        gone = {a % len(dims) for a in axes}
        return [[d for i, d in enumerate(dims) if i not in gone]]
    return None


@shape_rule("expand_dims")
def _expand_dims(c: ShapeCase) -> list[list[Dim]]:
    dims = c.dims(0)
    at = c.attrs.axis + len(dims) + 1 if c.attrs.axis < 0 else c.attrs.axis
    return [[*dims[:at], *[1] * c.attrs.num_newaxis, *dims[at:]]]


@shape_rule("dyn.expand_dims")
def _dyn_expand_dims(c: ShapeCase) -> list[list[Dim]]:
    dims, t = c.dims(0), c.table
    n, total = c.attrs.num_newaxis, len(c.dims(0)) + c.attrs.num_newaxis
    at = c.value(1)
    at = t.select(t.less(at, 0), at + len(dims) + 1, at)
    out: list[Dim] = []
    for i in range(total):
        before = dims[i] if i < len(dims) else 1
        after = dims[i - n] if 0 <= i - n < len(dims) else 1
        out.append(t.select(t.less(i, at), before, t.select(t.less(i, at + n), 1, after)))
    return [out]


@shape_rule("nn.batch_flatten")
def _flatten(c: ShapeCase) -> list[list[Dim]]:
    return [[c.dims(0)[0], product(c.dims(0)[1:])]]


@shape_rule("transpose")
def _transpose(c: ShapeCase) -> list[list[Dim]]:
    dims = c.dims(0)
    axes = [int(a) % len(dims) for a in c.attrs.axes] if c.attrs.axes else list(range(len(dims)))[::-1]
    return [[dims[a] for a in axes]]


@shape_rule("layout_transform")
def _layout_transform(c: ShapeCase) -> list[list[Dim]]:
    return [convert_dims(c.dims(0), c.attrs.src_layout, c.attrs.dst_layout)]


def convert_dims(dims: Sequence[Dim], source: str, target: str) -> list[Dim]:
    """The sizes of a tensor in another layout (blocked axes included)."""
    whole: dict[str, Dim] = {}
    for name, factor, d in zip(*_axes(source), dims):
        key = name.upper()
        whole[key] = d * whole[key] if key in whole and not isinstance(d, int) else whole.get(key, 1) * d
    names, factors = _axes(target)
    out: list[Dim] = []
    for name, factor in zip(names, factors):
        if name.islower():
            out.append(factor)
            continue
        block = math.prod(f for n, f in zip(names, factors) if n.islower() and n.upper() == name)
        size = whole[name]
        out.append(size if block == 1 else (size + (block - 1)) // block)
    return out


def axis_names(layout: str) -> list[str]:
    """The axes of a layout, blocks included, in order."""
    return _axes(layout)[0]


def _axes(text: str) -> tuple[list[str], list[int]]:
    names, factors, number = [], [], ""
    for ch in text:
        if ch.isdigit():
            number += ch
        else:
            names.append(ch)
            factors.append(int(number or 1))
            number = ""
    return names, factors


# ---- joining, cutting, picking ---------------------------------------------------------------------------------------

@shape_rule("concatenate", "qnn.concatenate")
def _concatenate(c: ShapeCase) -> list[list[Dim]]:
    shapes = [list(a.dims) for a in c.args if len(a.dims) == len(c.args[0].dims)]
    if c.attrs.__class__.__name__ != "ConcatenateAttrs" and c.out_type is not None:
        shapes = shapes[:1]
    axis = c.attrs.axis % len(shapes[0])
    out = list(shapes[0])
    for s in shapes[1:]:
        out = [a + b if i == axis else c.agree(a, b, "concatenated tensors differ in size outside of the axis") for i, (a, b) in enumerate(zip(out, s))]
    return [out]


@shape_rule("stack")
def _stack(c: ShapeCase) -> list[list[Dim]]:
    dims = c.dims(0)
    for other in c.args[1:]:
        dims = [c.agree(a, b, "stacked tensors differ in size") for a, b in zip(dims, other.dims)]
    axis = c.attrs.axis % (len(dims) + 1)
    return [[*dims[:axis], len(c.args), *dims[axis:]]]


@shape_rule("einsum")
def _einsum(c: ShapeCase) -> list[list[Dim]]:
    terms, result = checked_equation(c.attrs.equation, [len(a.dims) for a in c.args])
    sizes = label_sizes(terms, [a.dims for a in c.args])
    agreed = {label: functools.reduce(lambda a, b: _broadcast_dim(c, a, b), found) for label, found in sizes.items()}
    return [[agreed[label] for label in result]]


@shape_rule("split")
def _split(c: ShapeCase) -> list[list[Dim]]:
    dims, sections = c.dims(0), c.attrs.indices_or_sections
    axis = c.attrs.axis % len(dims)

    def cut(size: Dim) -> list[Dim]:
        return [*dims[:axis], size, *dims[axis + 1:]]

    if isinstance(sections, int) or not hasattr(sections, "__len__"):
        c.check(c.table.equal(c.table.remainder(dims[axis], int(sections)), 0), "the axis does not split into equal parts")
        return [cut(dims[axis] // int(sections) if not isinstance(dims[axis], int) else dims[axis] // int(sections))] * int(sections)
    places = [0, *(int(s) for s in sections)]
    clipped = [c.table.minimum(p, dims[axis]) for p in places]
    return [cut(b - a) for a, b in zip(clipped, [*clipped[1:], dims[axis]])]


def sliced(c: ShapeCase, size: Dim, begin: Dim | None, end: Dim | None, stride: Dim, mode: str) -> Dim:
    """How many elements a slice of an axis has."""
    t = c.table
    if mode == "size":
        first = 0 if begin is None else _from_front(c, begin, size)
        if end is None or isinstance(end, int) and end < 0:
            return _positive(c, size - first)
        if not isinstance(end, int):
            end = t.select(t.less(end, 0), size - first, end)
        return t.minimum(end, _positive(c, size - first))
    if isinstance(stride, int) and stride > 0:
        start = 0 if begin is None else _clip(c, _from_front(c, begin, size), 0, size)
        stop = size if end is None or isinstance(end, int) and end >= _FAR else _clip(c, _from_front(c, end, size), 0, size)
        span = stop - start
        return _positive(c, span if stride == 1 else (span + (stride - 1)) // stride)
    if isinstance(stride, int):
        start = size - 1 if begin is None else _clip(c, _from_front(c, begin, size), -1, size - 1)
        stop = -1 if end is None or isinstance(end, int) and end <= -_FAR else _clip(c, _from_front(c, end, size), -1, size - 1)
        return _positive(c, (start - stop + (-stride - 1)) // -stride)
    forward = t.select(t.less(0, stride), 1, 0)
    low, high = t.select(forward, 0, -1), t.select(forward, size, size - 1)
    start, stop = (_clip(c, _from_front(c, v, size), low, high) for v in (begin, end))
    up = (stop - start + stride - 1) // stride
    down = (start - stop + (0 - stride) - 1) // (0 - stride)
    return _positive(c, t.select(forward, up, down))


def _from_front(c: ShapeCase, at: Any, size: Dim) -> Dim:
    if isinstance(at, int):
        return at if at >= 0 else size + at
    return c.table.select(c.table.less(at, 0), at + size, at) if _may_be_special(c, at) else at


def _clip(c: ShapeCase, at: Dim, low: Dim, high: Dim) -> Dim:
    return at if at == low or at == high else c.table.maximum(low, c.table.minimum(at, high))


def _positive(c: ShapeCase, n: Dim) -> Dim:
    if isinstance(n, int):
        return max(n, 0)
    return n if all(k > 0 for _, k in n.terms) and not _may_be_special(c, n) else c.table.maximum(0, n)


@shape_rule("strided_slice")
def _strided_slice(c: ShapeCase) -> list[list[Dim]]:
    out = c.dims(0)
    for axis, begin, end, stride in slice_axes(len(out), c.attrs):
        out[axis] = sliced(c, out[axis], *(None if v is None else int(v) for v in (begin, end)), int(stride), c.attrs.slice_mode)
    return [out]


@shape_rule("dyn.strided_slice")
def _dyn_strided_slice(c: ShapeCase) -> list[list[Dim]]:
    out = c.dims(0)
    begin, end, strides = c.values(1), c.values(2), c.values(3) if len(c.args) > 3 else []
    for i, (b, e) in enumerate(zip(begin, end)):
        out[i] = sliced(c, out[i], b, e, strides[i] if i < len(strides) else 1, c.attrs.slice_mode)
    return [out]


@shape_rule("slice_like")
def _slice_like(c: ShapeCase) -> list[list[Dim]]:
    out, like = c.dims(0), c.dims(1)
    axes = c.attrs.axes if c.attrs.axes else range(min(len(out), len(like)))
    for a in axes:
        out[int(a)] = like[int(a)]
    return [out]


@shape_rule("take")
def _take(c: ShapeCase) -> list[list[Dim]]:
    data, indices, batch = c.dims(0), c.dims(1), c.attrs.batch_dims
    if c.attrs.axis is None:
        return [indices]
    axis = int(c.attrs.axis) % len(data)
    batch = batch + len(indices) if batch < 0 else batch
    return [[*data[:axis], *indices[batch:], *data[axis + 1:]]]


@shape_rule("gather")
def _gather(c: ShapeCase) -> list[list[Dim]]:
    return [c.dims(1)]


@shape_rule("gather_nd")
def _gather_nd(c: ShapeCase) -> list[list[Dim]] | None:
    data, indices = c.dims(0), c.dims(1)
    depth = indices[0] if isinstance(indices[0], int) else c.attrs.index_rank
    if depth is None:
        return None
    return [[*indices[1:], *data[int(depth) + c.attrs.batch_dims:]]]


@shape_rule("adv_index")
def _adv_index(c: ShapeCase) -> list[list[Dim]]:
    return [[*broadcast(c, [a.dims for a in c.args[1:]]), *c.dims(0)[len(c.args) - 1:]]]


@shape_rule("one_hot")
def _one_hot(c: ShapeCase) -> list[list[Dim]]:
    return [_with_depth(c, int(c.attrs.depth))]


@shape_rule("dyn.one_hot")
def _dyn_one_hot(c: ShapeCase) -> list[list[Dim]]:
    return [_with_depth(c, c.value(3))]


def _with_depth(c: ShapeCase, depth: Dim) -> list[Dim]:
    dims = c.dims(0)
    axis = c.attrs.axis % (len(dims) + 1)
    return [*dims[:axis], depth, *dims[axis:]]


@shape_rule("argwhere")
def _argwhere(c: ShapeCase) -> list[list[Dim]]:
    return [[c.nonzero(0), len(c.dims(0))]]


@shape_rule("unravel_index")
def _unravel_index(c: ShapeCase) -> list[list[Dim]]:
    return [[c.dims(1)[0], *c.dims(0)]]


@shape_rule("sliding_window")
def _sliding_window(c: ShapeCase) -> list[list[Dim]]:
    dims, axis = c.dims(0), c.attrs.axis % len(c.dims(0))
    counts = [_positive(c, (d - int(w) + int(s)) // int(s)) for d, w, s in zip(dims[axis:], c.attrs.window_shape, c.attrs.strides)]
    return [[*dims[:axis], *counts, *(int(w) for w in c.attrs.window_shape)]]


@shape_rule("searchsorted")
def _searchsorted(c: ShapeCase) -> list[list[Dim]]:
    return [c.dims(1)]


def topk(c: ShapeCase, k: Dim) -> list[list[Dim]]:
    """The results of topk."""
    dims, t = c.dims(0), c.table
    axis = c.attrs.axis % len(dims)
    count = dims[axis] if isinstance(k, int) and k < 1 else t.minimum(k, dims[axis])
    if not isinstance(k, int):
        count = t.select(t.less(k, 1), dims[axis], count)
    return [[*dims[:axis], count, *dims[axis + 1:]]] * (2 if c.attrs.ret_type == "both" else 1)


@shape_rule("topk")
def _topk(c: ShapeCase) -> list[list[Dim]]:
    return topk(c, int(c.attrs.k or 0))


@shape_rule("dyn.topk")
def _dyn_topk(c: ShapeCase) -> list[list[Dim]]:
    return topk(c, c.value(1))


# ---- making and repeating --------------------------------------------------------------------------------------------

@shape_rule("zeros", "ones", "full")
def _static_init(c: ShapeCase) -> list[list[Dim]]:
    return [[int(d) for d in c.attrs.shape]]


@shape_rule("dyn.zeros", "dyn.ones")
def _dyn_init(c: ShapeCase) -> list[list[Dim]]:
    return [c.values(0)]


@shape_rule("dyn.full")
def _dyn_full(c: ShapeCase) -> list[list[Dim]]:
    return [c.values(1)]


@shape_rule("arange")
def _arange(c: ShapeCase) -> list[list[Dim]] | None:
    if any("int" not in a.dtype for a in c.args):
        return None
    start, stop, step = (c.value(i) for i in range(3))
    t = c.table
    if isinstance(step, int) and step > 0:
        return [[_positive(c, stop - start if step == 1 else (stop - start + (step - 1)) // step)]]
    count = t.select(t.less(step, 0), (start - stop - step - 1) // (0 - step), (stop - start + step - 1) // step)
    return [[_positive(c, count)]]


@shape_rule("broadcast_to")
def _broadcast_to(c: ShapeCase) -> list[list[Dim]]:
    return [[int(d) for d in c.attrs.shape]] if c.attrs.shape is not None else [c.values(1)]


@shape_rule("dyn.broadcast_to")
def _dyn_broadcast_to(c: ShapeCase) -> list[list[Dim]]:
    return [c.values(1)]


@shape_rule("broadcast_to_like", "collapse_sum_like")
def _like(c: ShapeCase) -> list[list[Dim]]:
    return [c.dims(1)]


@shape_rule("tile")
def _tile(c: ShapeCase) -> list[list[Dim]]:
    return [_tiled(c.dims(0), [int(r) for r in c.attrs.reps])]


@shape_rule("dyn.tile")
def _dyn_tile(c: ShapeCase) -> list[list[Dim]]:
    return [_tiled(c.dims(0), c.values(1))]


def _tiled(dims: list[Dim], reps: list[Dim]) -> list[Dim]:
    width = max(len(dims), len(reps))
    dims, reps = [1] * (width - len(dims)) + dims, [1] * (width - len(reps)) + reps
    return [product((d, r)) for d, r in zip(dims, reps)]


@shape_rule("repeat")
def _repeat(c: ShapeCase) -> list[list[Dim]]:
    dims = c.dims(0)
    axis = c.attrs.axis % len(dims)
    return [[product((d, int(c.attrs.repeats))) if i == axis else d for i, d in enumerate(dims)]]


@shape_rule("meshgrid")
def _meshgrid(c: ShapeCase) -> list[list[Dim]]:
    dims = [a.dims[0] if a.dims else 1 for a in c.args]
    if c.attrs.indexing == "xy" and len(dims) > 1:
        dims[0], dims[1] = dims[1], dims[0]
    return [dims] * len(dims)


# ---- networks --------------------------------------------------------------------------------------------------------

@shape_rule("nn.dense", "nn.matmul", "qnn.dense")
def _dense(c: ShapeCase) -> list[list[Dim]]:
    a, b = c.dims(0), c.dims(1)
    if c.attrs.get("transpose_a", False):
        a[-2:] = a[:-3:-1]
    inner, units = (b[1], b[0]) if c.attrs.get("transpose_b", True) else (b[0], b[1])
    c.check(c.table.equal(a[-1], inner), "the inner sizes of a matrix product differ")
    return [[*a[:-1], units]]


@shape_rule("nn.contrib_dense_pack")
def _dense_pack(c: ShapeCase) -> list[list[Dim]] | None:
    dims = c.out_type.dims
    return [[*c.dims(0)[:-1], dims[-1]]] if isinstance(dims[-1], int) else None


@shape_rule("nn.contrib_lstm", "nn.contrib_gru", "nn.contrib_rnn")
def _recurrent(c: ShapeCase) -> list[list[Dim]]:
    states = 2 if len(c.out_type.fields) == 3 else 1
    steps, batch, _ = c.dims(0)
    units = c.dims(1)[c.attrs.weight_layout.index("I")]
    for k in range(1, states + 1):
        rows, width = c.dims(len(c.args) - k)
        c.agree(width, units, "a state of a recurrent layer has not as many entries as there are hidden units")
        if rows != 1:
            c.agree(rows, batch, "a state of a recurrent layer has not as many rows as the batch")
    return [[steps, batch, units], *([[batch, units]] * states)]


@shape_rule("nn.batch_matmul", "qnn.batch_matmul")
def _batch_matmul(c: ShapeCase) -> list[list[Dim]]:
    a, b, t = c.dims(0), c.dims(1), c.table
    m, k = (a[2], a[1]) if c.attrs.get("transpose_a", False) else (a[1], a[2])
    n, k2 = (b[1], b[2]) if c.attrs.get("transpose_b", True) else (b[2], b[1])
    c.check(t.equal(k, k2), "the inner sizes of a batched matrix product differ")
    return [[_broadcast_dim(c, a[0], b[0]), m, n]]


def _window(size: Dim, window: int, stride: int, before: int, after: int, ceil: bool = False) -> Dim:
    span = size + (before + after - window + (stride - 1 if ceil else 0))
    return (span // stride if stride != 1 else span) + 1


def pads_of(padding: Sequence[Any], rank: int) -> list[tuple[int, int]]:
    """The padding before and after each of ``rank`` axes."""
    pads = [int(p) for p in padding]
    if len(pads) == 1:
        pads = pads * (2 * rank)
    elif len(pads) == rank:
        pads = pads * 2
    return list(zip(pads[:rank], pads[rank:]))




@shape_rule("nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.contrib_conv2d_NCHWc", "nn.contrib_depthwise_conv2d_NCHWc", "qnn.conv2d",
            "nn.contrib_conv2d_winograd_without_weight_transform")
def _conv(c: ShapeCase) -> list[list[Dim]] | None:
    at, found = c.attrs, _plain_dims(c)
    if found is None:
        return None
    plain, dims, out = found
    for d, k, s, dil, (p0, p1) in zip(dims, at.kernel_size, at.strides, at.dilation, pads_of(at.padding, len(dims))):
        out.append(_window(d, (int(k) - 1) * int(dil) + 1, int(s), p0, p1))
    return [convert_dims(out, plain, at.out_layout or at.data_layout)]


def _plain_dims(c: ShapeCase) -> tuple[str, list[Dim], list[Dim]] | None:
    """For a convolution: the layout without blocks (NC, then space), the data's sizes in space, and the result's batch and channels."""
    at = c.attrs
    plain = "NC" + "".join(ch for ch in "DHW" if ch in at.data_layout)
    channels = at.get("channels") or _out_channels(c)
    if channels is None or at.kernel_size is None:
        return None
    batch, _, *space = convert_dims(c.dims(0), at.data_layout, plain)
    return plain, space, [batch, int(channels)]


def _out_channels(c: ShapeCase) -> int | None:
    at = c.attrs.out_layout or c.attrs.data_layout
    for name, d in zip(_axes(at)[0], c.out_type.dims):
        if name == "C" and isinstance(d, int) and not any(n == "c" for n in _axes(at)[0]):
            return d
    return None


@shape_rule("nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose")
def _conv_transpose(c: ShapeCase) -> list[list[Dim]] | None:
    at, found = c.attrs, _plain_dims(c)
    if found is None:
        return None
    plain, dims, out = found
    extra = [int(v) for v in at.output_padding] or [0] * len(dims)
    for d, k, s, dil, (p0, p1), e in zip(dims, at.kernel_size, at.strides, at.dilation, pads_of(at.padding, len(dims)), extra):
        out.append((d - 1) * int(s) + ((int(k) - 1) * int(dil) + 1 - p0 - p1 + e))
    return [convert_dims(out, plain, at.out_layout or at.data_layout)]


@shape_rule("nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d", "nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d", "qnn.avg_pool2d")
def _pool(c: ShapeCase) -> list[list[Dim]]:
    at, dims = c.attrs, c.dims(0)
    names = _axes(at.layout)[0]
    spatial = [i for i, n in enumerate(names) if n in "DHW"]
    pads = pads_of(at.padding, len(spatial))
    for i, k, s, dil, (p0, p1) in zip(spatial, at.pool_size, at.strides, at.dilation, pads):
        dims[i] = _window(dims[i], (int(k) - 1) * int(dil) + 1, int(s), p0, p1, bool(at.ceil_mode))
    return [dims]


@shape_rule("nn.global_avg_pool1d", "nn.global_avg_pool2d", "nn.global_avg_pool3d", "nn.global_max_pool1d", "nn.global_max_pool2d",
            "nn.global_max_pool3d")
def _global_pool(c: ShapeCase) -> list[list[Dim]]:
    return [[1 if n in "DHW" else d for n, d in zip(_axes(c.attrs.layout)[0], c.dims(0))]]


@shape_rule(*(f"nn.adaptive_{kind}_pool{n}d" for kind in ("avg", "max") for n in (1, 2, 3)))
def _adaptive_pool(c: ShapeCase) -> list[list[Dim]]:
    sizes = [int(s) for s in c.attrs.output_size]
    names, dims = _axes(c.attrs.layout)[0], c.dims(0)
    spatial = [i for i, n in enumerate(names) if n in "DHW"]
    if not sizes:
        return [dims]
    sizes = sizes * len(spatial) if len(sizes) == 1 else sizes
    for i, s in zip(spatial, sizes):
        dims[i] = s
    return [dims]


@shape_rule("nn.pad")
def _pad(c: ShapeCase) -> list[list[Dim]]:
    return [[d + (int(p[0]) + int(p[1])) for d, p in zip(c.dims(0), c.attrs.pad_width)]]


@shape_rule("nn.mirror_pad")
def _mirror_pad(c: ShapeCase) -> list[list[Dim]]:
    return _pad(c)


@shape_rule("dyn.nn.pad")
def _dyn_pad(c: ShapeCase) -> list[list[Dim]]:
    dims = c.dims(0)
    return [[d + c.value(1, 2 * i) + c.value(1, 2 * i + 1) for i, d in enumerate(dims)]]


@shape_rule("nn.depth_to_space")
def _depth_to_space(c: ShapeCase) -> list[list[Dim]]:
    b = int(c.attrs.block_size)
    return [[d // (b * b) if n == "C" else product((d, b)) if n in "HW" else d for n, d in zip(c.attrs.layout, c.dims(0))]]


@shape_rule("nn.space_to_depth")
def _space_to_depth(c: ShapeCase) -> list[list[Dim]]:
    b = int(c.attrs.block_size)
    return [[product((d, b * b)) if n == "C" else d // b if n in "HW" else d for n, d in zip(c.attrs.layout, c.dims(0))]]


@shape_rule("nn.batch_norm")
def _batch_norm(c: ShapeCase) -> list[list[Dim]]:
    return [c.dims(0), c.dims(3), c.dims(4)]


@shape_rule("nn.dropout")
def _dropout(c: ShapeCase) -> list[list[Dim]]:
    return [c.dims(0), c.dims(0)]


@shape_rule("nn.upsampling")
def _upsampling(c: ShapeCase) -> list[list[Dim]] | None:
    at = c.attrs
    if at.scale_h != int(at.scale_h) or at.scale_w != int(at.scale_w):
        return None
    scale = {"H": int(at.scale_h), "W": int(at.scale_w)}
    return [[product((d, scale.get(n, 1))) for n, d in zip(_axes(at.layout)[0], c.dims(0))]]


@shape_rule("image.resize1d", "image.resize2d", "image.resize3d")
def _resize(c: ShapeCase) -> list[list[Dim]]:
    sizes = [int(s) for s in c.attrs.size] if c.attrs.size is not None else c.values(1)
    rest = iter(sizes)
    return [[next(rest) if n in "DHW" else d for n, d in zip(_axes(c.attrs.layout)[0], c.dims(0))]]


@shape_rule("dyn.image.resize2d")
def _dyn_resize(c: ShapeCase) -> list[list[Dim]]:
    rest = iter(c.values(1))
    return [[next(rest) if n in "DHW" else d for n, d in zip(_axes(c.attrs.layout)[0], c.dims(0))]]


@shape_rule("nn.dilate")
def _dilate(c: ShapeCase) -> list[list[Dim]]:
    return [[(d - 1) * int(s) + 1 for d, s in zip(c.dims(0), c.attrs.strides)]]


@shape_rule("vision.get_valid_counts")
def _valid_counts(c: ShapeCase) -> list[list[Dim]]:
    dims = c.dims(0)
    return [[dims[0]], dims, dims[:2]]


@shape_rule("dyn.sparse_to_dense")
def _dyn_sparse_to_dense(c: ShapeCase) -> list[list[Dim]]:
    return [c.values(3)]


__all__ = ["axis_names", "broadcast", "convert_dims", "new_shape", "pads_of", "sliced"]
