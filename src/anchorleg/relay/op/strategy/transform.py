"""Strategies of the operators that move, pick and rearrange elements."""
from __future__ import annotations

from typing import Any, Callable

from .... import te, tir
from ....target.generic_func import generic_func
from ....topi import transform, transpose_schedule
from ....topi.argwhere import argwhere, unique
from ....topi.broadcast import broadcast_to
from ....topi.einsum import einsum
from ....topi.tag import INJECTIVE as INJECTIVE_TAG
from ....topi.scan import cumprod, cumsum
from ....topi.scatter import scatter_elements, scatter_nd
from ....topi.signal import dft, stft
from ..op import register_strategy
from ..transform.slice import slice_axes
from .generic import naive_schedule, register_injective, register_reduction, simple_strategy


@generic_func
def schedule_transpose(attrs: Any, outs: Any, target: Any) -> Any:
    """The schedule of operators that change the order of axes."""
    return transpose_schedule.schedule_transpose(outs)


def _like_output(attrs: Any, inputs: list[Any], out_type: Any) -> Any:
    return [transform.reshape(inputs[0], out_type.dims)]


def _strided_slice(attrs: Any, inputs: list[Any], out_type: Any) -> Any:
    plan = slice_axes(inputs[0].ndim, attrs)
    if any(not isinstance(d, int) and not hasattr(d, "value") for d in (inputs[0].shape[p[0]] for p in plan)):
        return [_slice_of_unknown(attrs, inputs[0], plan, out_type)]
    axes, begin, end, strides = ([p[i] for p in plan] for i in range(4))
    return [transform.strided_slice(inputs[0], begin, end, strides, axes, attrs.slice_mode)]


def _slice_of_unknown(attrs: Any, data: Any, plan: Any, out_type: Any) -> Any:
    """A slice along axes whose extents are not known: where each begins is worked out at run time, as Python does."""
    starts: dict[int, tuple[Any, int]] = {}
    for axis, begin, _, stride in plan:
        size, step = data.shape[axis], 1 if attrs.slice_mode == "size" else int(stride)
        high, low = (size, 0) if step > 0 else (size - 1, -1)
        if begin is None:
            at: Any = 0 if step > 0 else high
        elif int(begin) < 0:
            at = tir.max(low, size + int(begin))
        else:
            at = 0 if int(begin) == 0 and step > 0 else tir.min(int(begin), high)
        starts[axis] = (at, step)

    def element(*i: Any) -> Any:
        return data(*(starts[k][0] + v * starts[k][1] if k in starts else v for k, v in enumerate(i)))

    return te.compute(tuple(out_type.dims), element, name="T_strided_slice", tag=INJECTIVE_TAG)


def _take(attrs: Any, inputs: list[Any], out_type: Any) -> Any:
    return [transform.take(inputs[0], inputs[1], attrs.axis, attrs.batch_dims, attrs.mode)]


def _one_hot(attrs: Any, inputs: list[Any], out_type: Any) -> Any:
    return [transform.one_hot(*inputs, attrs.depth, attrs.axis, out_type.dtype)]


def _arange(attrs: Any, inputs: list[Any], out_type: Any) -> Any:
    size = out_type.dims[0]
    return [transform.arange(*inputs, out_type.dtype, size if isinstance(size, int) else None)]


def _argwhere(attrs: Any, inputs: list[Any], out_type: Any) -> Any:
    rows = out_type.dims[0]
    return [argwhere((rows if isinstance(rows, int) else te.size_var("rows"), inputs[0].ndim), inputs[0])]


INJECTIVE: dict[str, Callable[..., Any]] = {
    "reshape": _like_output,
    "contrib_reverse_reshape": _like_output,
    "reshape_like": _like_output,
    "squeeze": lambda attrs, inputs, out_type: [transform.squeeze(inputs[0], attrs.axis)],
    "expand_dims": lambda attrs, inputs, out_type: [transform.expand_dims(inputs[0], attrs.axis, attrs.num_newaxis)],
    "concatenate": lambda attrs, inputs, out_type: [transform.concatenate(inputs, attrs.axis)],
    "stack": lambda attrs, inputs, out_type: [transform.stack(inputs, attrs.axis)],
    "split": lambda attrs, inputs, out_type: transform.split(inputs[0], attrs.indices_or_sections, attrs.axis),
    "strided_slice": _strided_slice,
    "strided_set": lambda attrs, inputs, out_type: [transform.strided_set(*inputs)],
    "slice_like": lambda attrs, inputs, out_type: [transform.slice_like(inputs[0], inputs[1], attrs.axes)],
    "take": _take,
    "gather": lambda attrs, inputs, out_type: [transform.gather(inputs[0], attrs.axis, inputs[1])],
    "gather_nd": lambda attrs, inputs, out_type: [transform.gather_nd(inputs[0], inputs[1], attrs.batch_dims)],
    "adv_index": lambda attrs, inputs, out_type: [transform.adv_index(inputs[0], inputs[1:])],
    "one_hot": _one_hot,
    "unravel_index": lambda attrs, inputs, out_type: [transform.unravel_index(*inputs)],
    "broadcast_to": lambda attrs, inputs, out_type: [broadcast_to(inputs[0], out_type.dims)],
    "broadcast_to_like": lambda attrs, inputs, out_type: [broadcast_to(inputs[0], out_type.dims)],
    "tile": lambda attrs, inputs, out_type: [transform.tile(inputs[0], attrs.reps)],
    "repeat": lambda attrs, inputs, out_type: [transform.repeat(inputs[0], attrs.repeats, attrs.axis)],
    "where": lambda attrs, inputs, out_type: [transform.where(*inputs)],
    "reverse": lambda attrs, inputs, out_type: [transform.flip(inputs[0], attrs.axis)],
    "reverse_sequence": lambda attrs, inputs, out_type: [transform.reverse_sequence(*inputs, attrs.seq_axis, attrs.batch_axis)],
    "sequence_mask": lambda attrs, inputs, out_type: [transform.sequence_mask(*inputs, attrs.mask_value, attrs.axis)],
    "arange": _arange,
    "meshgrid": lambda attrs, inputs, out_type: transform.meshgrid(inputs, attrs.indexing),
    "shape_of": lambda attrs, inputs, out_type: [transform.shape(inputs[0], out_type.dtype)],
    "ndarray_size": lambda attrs, inputs, out_type: [transform.ndarray_size(inputs[0], out_type.dtype)],
    "trilu": lambda attrs, inputs, out_type: [transform.trilu(*inputs, attrs.upper)],
    "matrix_set_diag": lambda attrs, inputs, out_type: [transform.matrix_set_diag(
        *inputs, attrs.k1, attrs.k2, attrs.super_diag_right_align, attrs.sub_diag_right_align)],
    "sliding_window": lambda attrs, inputs, out_type: [transform.sliding_window(inputs[0], attrs.axis, attrs.window_shape, attrs.strides)],
}

TRANSPOSE: dict[str, Callable[..., Any]] = {
    "transpose": lambda attrs, inputs, out_type: [transform.transpose(inputs[0], attrs.axes)],
    "layout_transform": lambda attrs, inputs, out_type: [transform.layout_transform(inputs[0], attrs.src_layout, attrs.dst_layout)],
}

REDUCING: dict[str, Callable[..., Any]] = {
    "collapse_sum_like": lambda attrs, inputs, out_type: [transform.collapse_sum(inputs[0], out_type.dims)],
    "collapse_sum_to": lambda attrs, inputs, out_type: [transform.collapse_sum(inputs[0], out_type.dims)],
}

# loop nests of their own
KERNELS: dict[str, Callable[..., Any]] = {
    "scatter_elements": lambda attrs, inputs, out_type: [scatter_elements(*inputs, attrs.axis, attrs.reduction)],
    "scatter_nd": lambda attrs, inputs, out_type: [scatter_nd(*inputs, attrs.mode)],
    "cumsum": lambda attrs, inputs, out_type: [cumsum(inputs[0], attrs.axis, out_type.dtype, attrs.exclusive)],
    "cumprod": lambda attrs, inputs, out_type: [cumprod(inputs[0], attrs.axis, out_type.dtype, attrs.exclusive)],
    "unique": lambda attrs, inputs, out_type: unique(inputs[0], attrs.sorted, attrs.return_counts),
    "argwhere": _argwhere,
    "invert_permutation": lambda attrs, inputs, out_type: [transform.invert_permutation(inputs[0])],
    "sparse_to_dense": lambda attrs, inputs, out_type: [transform.sparse_to_dense(inputs[0], out_type.dims, inputs[1], inputs[2])],
    "sparse_reshape": lambda attrs, inputs, out_type: transform.sparse_reshape(*inputs),
    "stft": lambda attrs, inputs, out_type: [stft(inputs[0], attrs.n_fft, attrs.hop_length, attrs.win_length, inputs[1],
                                                         attrs.normalized, attrs.onesided, out_type.dims)],
    "dft": lambda attrs, inputs, out_type: dft(inputs[0], inputs[1], attrs.inverse),
    "einsum": lambda attrs, inputs, out_type: [einsum(attrs.equation, *inputs)],
}

for _name, _compute in INJECTIVE.items():
    register_injective(_name, _compute)
for _name, _compute in REDUCING.items():
    register_reduction(_name, _compute)
for _name, _compute in TRANSPOSE.items():
    register_strategy(_name, simple_strategy(_compute, schedule_transpose, f"{_name}.generic"))
for _name, _compute in KERNELS.items():
    register_strategy(_name, simple_strategy(_compute, naive_schedule, f"{_name}.generic"))
