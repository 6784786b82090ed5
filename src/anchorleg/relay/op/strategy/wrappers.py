"""Wrappers for users' strategies: give a compute of tensors and plain arguments the signature ``(attrs, inputs, out_type)``.

Each passes the inputs, then attributes in a fixed order; a table says which.
"""
from __future__ import annotations

from typing import Any, Callable, Sequence

from .generic import as_outputs

Compute = Callable[[Any, list[Any], Any], list[Any]]


def out_dtype(attrs: Any, inputs: Sequence[Any]) -> str:
    """The result's data type: the attribute, or the first input's where that is empty or ``same``."""
    return inputs[0].dtype if attrs.out_dtype in ("", "same", None) else attrs.out_dtype


def wrap_compute_conv2d(topi_compute: Callable[..., Any], *, need_data_layout: bool = False, need_kernel_layout: bool = False,
                        need_out_layout: bool = False, has_groups: bool = False, need_auto_scheduler_layout: bool = False,
                        need_meta_schedule_layout: bool = False) -> Compute:
    """``topi_compute(data, weight, strides, padding, dilation, [groups], [layouts…], out_dtype)`` for a strategy."""
    wanted = [name for name, use in (("groups", has_groups), ("data_layout", need_data_layout), ("kernel_layout", need_kernel_layout),
                                     ("out_layout", need_out_layout)) if use]

    def compute(attrs: Any, inputs: list[Any], out_type: Any) -> list[Any]:
        extra = [attrs[name] for name in wanted]
        return as_outputs(topi_compute(inputs[0], inputs[1], attrs.strides, attrs.padding, attrs.dilation, *extra, out_dtype(attrs, inputs)))

    return compute


def wrap_compute_conv3d(topi_compute: Callable[..., Any], need_layout: bool = False, **_unused: Any) -> Compute:
    """``topi_compute(data, weight, strides, padding, dilation, groups, [data_layout], out_dtype)`` for a strategy."""
    def compute(attrs: Any, inputs: list[Any], out_type: Any) -> list[Any]:
        extra = [attrs.data_layout] if need_layout else []
        return as_outputs(topi_compute(inputs[0], inputs[1], attrs.strides, attrs.padding, attrs.dilation, attrs.groups, *extra,
                                       out_dtype(attrs, inputs)))

    return compute


def wrap_compute_conv1d(topi_compute: Callable[..., Any]) -> Compute:
    """``topi_compute(data, weight, strides, padding, dilation, out_dtype)`` for a strategy."""
    return wrap_compute_conv2d(topi_compute)


def _transposed(topi_compute: Callable[..., Any], has_groups: bool = False, add_layout: bool = False) -> Compute:
    """``topi_compute(data, weight, strides, padding, out_dtype, output_padding, [layout], [groups])`` for a strategy."""
    def compute(attrs: Any, inputs: list[Any], out_type: Any) -> list[Any]:
        extra = [attrs[name] for name, use in (("data_layout", add_layout), ("groups", has_groups)) if use]
        return as_outputs(topi_compute(inputs[0], inputs[1], attrs.strides, attrs.padding, out_dtype(attrs, inputs), attrs.output_padding, *extra))

    return compute


wrap_compute_conv1d_transpose = wrap_compute_conv2d_transpose = wrap_compute_conv3d_transpose = _transposed


def wrap_compute_dense(topi_compute: Callable[..., Any], **_unused: Any) -> Compute:
    """``topi_compute(data, weight, bias, out_dtype)`` for a strategy."""
    return lambda attrs, inputs, out_type: as_outputs(topi_compute(inputs[0], inputs[1], None, out_dtype(attrs, inputs)))


def wrap_compute_matmul(topi_compute: Callable[..., Any], **_unused: Any) -> Compute:
    """``topi_compute(a, b, bias, out_dtype, transpose_a, transpose_b)`` for a strategy."""
    return lambda attrs, inputs, out_type: as_outputs(
        topi_compute(inputs[0], inputs[1], None, out_dtype(attrs, inputs), attrs.transpose_a, attrs.transpose_b))


def wrap_compute_batch_matmul(topi_compute: Callable[..., Any], *, need_out_dtype: bool = False, **_unused: Any) -> Compute:
    """``topi_compute(a, b, out_shape, out_dtype, transpose_a, transpose_b)`` for a strategy."""
    return lambda attrs, inputs, out_type: as_outputs(
        topi_compute(inputs[0], inputs[1], out_type.shape, out_type.dtype if need_out_dtype else None, attrs.transpose_a, attrs.transpose_b))


def wrap_compute_topk(topi_compute: Callable[..., Any]) -> Compute:
    """``topi_compute(data, k, axis, ret_type, is_ascend, dtype)`` for a strategy."""
    return lambda attrs, inputs, out_type: as_outputs(
        topi_compute(inputs[0], attrs.k if attrs.k is not None else inputs[1], attrs.axis, attrs.ret_type, attrs.is_ascend, attrs.dtype))


def _by_keyword(*names: str) -> Callable[[Callable[..., Any]], Compute]:
    """A wrapper that passes the inputs, then these attributes by name."""
    def wrap(topi_compute: Callable[..., Any]) -> Compute:
        return lambda attrs, inputs, out_type: as_outputs(topi_compute(*inputs, **{n: attrs[n] for n in names}))

    wrap.__doc__ = f"``topi_compute(*inputs, {', '.join(f'{n}=' for n in names)})`` for a strategy."
    return wrap


def _by_position(*names: str) -> Callable[[Callable[..., Any]], Compute]:
    """A wrapper that passes the inputs, then these attributes in order."""
    def wrap(topi_compute: Callable[..., Any]) -> Compute:
        return lambda attrs, inputs, out_type: as_outputs(topi_compute(*inputs, *[attrs[n] for n in names]))

    wrap.__doc__ = f"``topi_compute(*inputs, {', '.join(names)})`` for a strategy."
    return wrap


wrap_compute_softmax = _by_position("axis")
wrap_compute_sort = _by_keyword("axis", "is_ascend")
wrap_compute_argsort = _by_keyword("axis", "is_ascend", "dtype")
wrap_compute_searchsorted = _by_position("right", "dtype")
wrap_compute_scanop = _by_keyword("axis", "dtype", "exclusive")
wrap_compute_batch_norm = _by_position("axis", "epsilon", "center", "scale")
wrap_compute_scatter_elements = _by_position("axis", "reduction")
wrap_compute_scatter_nd = _by_position("mode")
wrap_compute_invert_permutation = _by_position()
wrap_compute_trilu = _by_position("upper")
wrap_compute_unique = _by_position("sorted", "return_counts")
wrap_compute_layout_transform = _by_position("src_layout", "dst_layout")


def wrap_compute_concat(topi_compute: Callable[..., Any]) -> Compute:
    """``topi_compute(tensors, axis)`` for a strategy."""
    return lambda attrs, inputs, out_type: as_outputs(topi_compute(inputs, attrs.axis))


def wrap_compute_deformable_conv2d(topi_compute: Callable[..., Any]) -> Compute:
    """``topi_compute(data, offset, weight, strides, padding, dilation, deformable_groups, groups, out_dtype)`` for a strategy."""
    return lambda attrs, inputs, out_type: as_outputs(topi_compute(
        *inputs, attrs.strides, attrs.padding, attrs.dilation, attrs.deformable_groups, attrs.groups, out_dtype(attrs, inputs)))


def wrap_compute_roi_align(topi_compute: Callable[..., Any]) -> Compute:
    """``topi_compute(data, rois, pooled_size=, spatial_scale=, sample_ratio=, mode=)`` for a strategy."""
    return _by_keyword("pooled_size", "spatial_scale", "sample_ratio", "mode")(topi_compute)


__all__ = [name for name in dir() if name.startswith("wrap_compute_")]
