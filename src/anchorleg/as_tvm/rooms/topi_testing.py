"""``tvm.topi.testing``: operators on numpy arrays, by the operators' numpy rules."""
from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from ... import relay


def _value(expr: Any) -> Any:
    """The value of a closed expression."""
    from ...relay.backend.interpreter import Interpreter
    from ...runtime.device import cpu

    return Interpreter(None, cpu(0), "numpy").evaluate(expr).numpy()


def _c(array: Any) -> Any:
    return relay.const(np.ascontiguousarray(array)) if not np.isscalar(array) else relay.const(array)


def _pair(value: Any, n: int) -> tuple[int, ...]:
    return (int(value),) * n if np.isscalar(value) else tuple(int(v) for v in value)


def _pads(padding: Any, kernel: Sequence[int], strides: Sequence[int], dims: Sequence[int] = ()) -> Any:
    """Padding as numbers; ``SAME`` and ``VALID`` by the kernel's size."""
    n = len(kernel)
    if padding == "VALID":
        return (0,) * (2 * n)
    if padding == "SAME":
        total = [k - 1 for k in kernel]
        return (*[(t + 1) // 2 for t in total], *[t // 2 for t in total])
    return _pair(padding, n)


def _conv(name: str, n: int, layout: str, kernel: str) -> Callable[..., np.ndarray]:
    def run(a_np: np.ndarray, w_np: np.ndarray, stride: Any, padding: Any, groups: int = 1) -> np.ndarray:
        spatial = [w_np.shape[kernel.index(c)] for c in "DHW"[3 - n:]]
        channels = w_np.shape[kernel.index("O")]
        strides = _pair(stride, n)
        call = getattr(relay.nn, name)(_c(a_np), _c(w_np), strides=strides, padding=_pads(padding, spatial, strides), groups=groups,
                                       channels=channels, kernel_size=tuple(spatial), data_layout=layout, kernel_layout=kernel)
        return _value(call)

    return run


conv2d_nchw_python = _conv("conv2d", 2, "NCHW", "OIHW")
conv2d_nhwc_python = _conv("conv2d", 2, "NHWC", "HWIO")
conv2d_hwcn_python = _conv("conv2d", 2, "HWCN", "HWIO")
conv3d_ncdhw_python = _conv("conv3d", 3, "NCDHW", "OIDHW")
conv3d_ndhwc_python = _conv("conv3d", 3, "NDHWC", "DHWIO")


def conv1d_ncw_python(a_np: np.ndarray, w_np: np.ndarray, stride: Any, padding: Any, dilation: Any) -> np.ndarray:
    """A one-dimensional convolution."""
    dilation = _pair(dilation, 1)
    extent = [(w_np.shape[2] - 1) * dilation[0] + 1]
    return _value(relay.nn.conv1d(_c(a_np), _c(w_np), strides=_pair(stride, 1), padding=_pads(padding, extent, (1,)), dilation=dilation,
                                  channels=w_np.shape[0], kernel_size=(w_np.shape[2],)))


def _transposed(name: str, n: int) -> Callable[..., np.ndarray]:
    def run(a_np: np.ndarray, w_np: np.ndarray, stride: Any, padding: Any, output_padding: Any = 0, groups: int = 1) -> np.ndarray:
        kernel, strides = w_np.shape[2:], _pair(stride, n)
        return _value(getattr(relay.nn, name)(_c(a_np), _c(w_np), strides=strides, padding=_pads(padding, kernel, strides), groups=groups,
                                              output_padding=_pair(output_padding, n), channels=w_np.shape[1] * groups, kernel_size=kernel))

    return run


conv1d_transpose_ncw_python = _transposed("conv1d_transpose", 1)
conv2d_transpose_nchw_python = _transposed("conv2d_transpose", 2)
conv3d_transpose_ncdhw_python = _transposed("conv3d_transpose", 3)


def conv2d_transpose_nhwc_python(a_nhwc: np.ndarray, weight: np.ndarray, weight_format: str, stride: Any, padding: Any,
                                 output_padding: Any = (0, 0)) -> np.ndarray:
    """A transposed convolution, channels last; ``weight_format`` names the weight's axes."""
    to_iohw = [weight_format.index(c) for c in "IOHW"]
    out = conv2d_transpose_nchw_python(a_nhwc.transpose(0, 3, 1, 2), weight.transpose(to_iohw), stride, padding, output_padding)
    return out.transpose(0, 2, 3, 1)


def _deformable(layout: str, kernel: str) -> Callable[..., np.ndarray]:
    def run(a_np: np.ndarray, offset_np: np.ndarray, w_np: np.ndarray, stride: Any, padding: Any, dilation: Any, deformable_groups: int,
            groups: int) -> np.ndarray:
        size = tuple(w_np.shape[kernel.index(c)] for c in "HW")
        return _value(relay.nn.deformable_conv2d(_c(a_np), _c(offset_np), _c(w_np), strides=_pair(stride, 2), padding=_pads(padding, size, (1, 1)),
                                                 dilation=_pair(dilation, 2), deformable_groups=deformable_groups, groups=groups,
                                                 channels=w_np.shape[kernel.index("O")], kernel_size=size, data_layout=layout, kernel_layout=kernel))

    return run


deformable_conv2d_nchw_python = _deformable("NCHW", "OIHW")
deformable_conv2d_nhwc_python = _deformable("NHWC", "HWIO")


def _resize(n: int, layout: str) -> Callable[..., np.ndarray]:
    def run(data: np.ndarray, scale: Sequence[float], layout: str = layout, method: str = "nearest_neighbor",
            coordinate_transformation_mode: str = "align_corners") -> np.ndarray:
        axes = [layout.index(c) for c in "DHW"[3 - n:]]
        size = tuple(int(data.shape[a] * s) for a, s in zip(axes, scale))
        method = {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic", "nearest": "nearest_neighbor"}.get(method, method)
        rounding = "round" if method == "nearest_neighbor" and coordinate_transformation_mode == "align_corners" else (
            "floor" if method == "nearest_neighbor" else "")
        return _value(getattr(relay.image, f"resize{n}d")(_c(data), size, None, layout, method, coordinate_transformation_mode, rounding))

    return run


resize1d_python, resize2d_python, resize3d_python = _resize(1, "NCW"), _resize(2, "NCHW"), _resize(3, "NCDHW")


def crop_and_resize_python(image: np.ndarray, boxes: np.ndarray, box_indices: np.ndarray, crop_size: Sequence[int], layout: str,
                           method: str = "bilinear", extrapolation_value: float = 0) -> np.ndarray:
    """Boxes of images, resized."""
    return _value(relay.image.crop_and_resize(_c(image), _c(boxes), _c(box_indices), crop_size, layout, method, extrapolation_value))


def one_hot(indices: np.ndarray, on_value: Any, off_value: Any, depth: int, axis: int, dtype: str) -> np.ndarray:
    """A one at the index, else the other value."""
    return _value(relay.one_hot(_c(indices), relay.const(on_value, dtype), relay.const(off_value, dtype), depth, axis, dtype))


def strided_slice_python(data: np.ndarray, begin: Any, end: Any, strides: Any, slice_mode: str = "end", axes: Any = None) -> np.ndarray:
    """A slice with steps."""
    listed = [None if v is None else [int(x) for x in np.atleast_1d(v)] for v in (begin, end, strides)]
    return _value(relay.strided_slice(_c(data), listed[0], listed[1], listed[2], axes, slice_mode))


def strided_set_python(data: np.ndarray, v: np.ndarray, begin: Any, end: Any, strides: Any) -> np.ndarray:
    """The array with a slice replaced."""
    given = [np.asarray(a if a is not None else [1] * len(begin), "int64") for a in (begin, end, strides)]
    return _value(relay.strided_set(_c(data), _c(v), *map(_c, given)))


def batch_matmul(x: np.ndarray, y: np.ndarray, out_dtype: str | None = None, trans_x: bool = False, trans_y: bool = True) -> np.ndarray:
    """Products of matrices, one per batch."""
    left, right = (a.swapaxes(1, 2) if t else a for a, t in ((x, trans_x), (y, trans_y)))
    dtype = np.dtype(out_dtype or x.dtype)
    return np.matmul(left.astype(dtype), right.astype(dtype))


def searchsorted_ref(sorted_sequence: np.ndarray, values: np.ndarray, right: bool, out_dtype: str) -> np.ndarray:
    """Where values would be inserted."""
    return _value(relay.searchsorted(_c(sorted_sequence), _c(values), right, out_dtype))


def softmax_python(a_np: np.ndarray, axis: int = 1) -> np.ndarray:
    """Softmax."""
    return _value(relay.nn.softmax(_c(a_np), axis))


def log_softmax_python(a_np: np.ndarray, axis: int = 1) -> np.ndarray:
    """The logarithm of softmax."""
    return _value(relay.nn.log_softmax(_c(a_np), axis))


def gather_python(data: np.ndarray, axis: int, indices: np.ndarray) -> np.ndarray:
    """Elements along an axis by index."""
    return np.take_along_axis(data, indices, axis)


def adaptive_pool(np_data: np.ndarray, out_size: Any, pool_type: str, layout: str) -> np.ndarray:
    """Pooling to a given size."""
    n = sum(c in "DHW" for c in layout)
    return _value(getattr(relay.nn, f"adaptive_{pool_type}_pool{n}d")(_c(np_data), out_size, layout))


def sequence_mask(data: np.ndarray, valid_length: np.ndarray, mask_value: float, axis: int) -> np.ndarray:
    """What lies beyond each sequence's length, masked."""
    return _value(relay.sequence_mask(_c(data), _c(valid_length), mask_value, axis))


def matrix_set_diag(input_np: np.ndarray, diagonal: np.ndarray, k: Any = 0, align: str = "RIGHT_LEFT") -> np.ndarray:
    """The matrices with diagonals replaced."""
    return _value(relay.matrix_set_diag(_c(input_np), _c(diagonal), k, align))


def nll_loss(predictions: np.ndarray, targets: np.ndarray, weights: np.ndarray, reduction: str = "mean", ignore_index: int = -100) -> np.ndarray:
    """The negative logarithm of the likelihood."""
    return _value(relay.nn.nll_loss(_c(predictions), _c(targets), _c(weights), reduction, ignore_index))


def dilate_python(input_np: np.ndarray, strides: Sequence[int], dilation_value: float = 0.0, out_dtype: str | None = None) -> np.ndarray:
    """The array with gaps between its elements."""
    out = _value(relay.nn.dilate(_c(input_np), list(strides), dilation_value))
    return out.astype(out_dtype) if out_dtype else out


def poolnd_python(np_data: np.ndarray, kernel: Sequence[int], strides: Sequence[int], dilation: Sequence[int], padding_before: Sequence[int],
                  padding_after: Sequence[int], pool_type: str, count_include_pad: bool = True, ceil_mode: bool = False,
                  dtype: str = "float32", layout: str | None = None) -> np.ndarray:
    """Pooling over one to three axes."""
    n = len(kernel)
    options: dict[str, Any] = {"count_include_pad": count_include_pad} if pool_type == "avg" else {}
    call = getattr(relay.nn, f"{pool_type}_pool{n}d")(
        _c(np_data), pool_size=tuple(kernel), strides=tuple(strides), dilation=tuple(dilation), padding=(*padding_before, *padding_after),
        layout=layout or {1: "NCW", 2: "NCHW", 3: "NCDHW"}[n], ceil_mode=ceil_mode, **options)
    return _value(call)


def lrn_python(a_np: np.ndarray, size: int, axis: int, bias: float, alpha: float, beta: float) -> np.ndarray:
    """Normalisation by neighbouring channels."""
    return _value(relay.nn.lrn(_c(a_np), size, axis, bias, alpha, beta))


def l2_normalize_python(a_np: np.ndarray, eps: float, axis: Any = None) -> np.ndarray:
    """Division by the Euclidean norm."""
    return _value(relay.nn.l2_normalize(_c(a_np), eps, axis))


def correlation_nchw_python(data1: np.ndarray, data2: np.ndarray, kernel_size: int, max_displacement: int, stride1: int, stride2: int,
                            padding: int, is_multiply: bool) -> np.ndarray:
    """Correlation of patches."""
    return _value(relay.nn.correlation(_c(data1), _c(data2), kernel_size, max_displacement, stride1, stride2, padding, is_multiply, "NCHW"))


def _roi_align(layout: str) -> Callable[..., np.ndarray]:
    def run(a_np: np.ndarray, rois_np: np.ndarray, pooled_size: Any, spatial_scale: float, sample_ratio: int, mode: Any = b"avg") -> np.ndarray:
        mode = mode.decode() if isinstance(mode, bytes) else mode
        return _value(relay.vision.roi_align(_c(a_np), _c(rois_np), _pair(pooled_size, 2), spatial_scale, sample_ratio, layout, mode))

    return run


roi_align_nchw_python, roi_align_nhwc_python = _roi_align("NCHW"), _roi_align("NHWC")


def roi_pool_nchw_python(a_np: np.ndarray, rois_np: np.ndarray, pooled_size: Any, spatial_scale: float) -> np.ndarray:
    """The largest values of regions."""
    return _value(relay.vision.roi_pool(_c(a_np), _c(rois_np), _pair(pooled_size, 2), spatial_scale, "NCHW"))


def reorg_python(a_np: np.ndarray, stride: int) -> np.ndarray:
    """Blocks of pixels moved into channels."""
    return _value(relay.vision.yolo_reorg(_c(a_np), stride))


def depth_to_space_python(data: np.ndarray, block_size: int, mode: str = "DCR") -> np.ndarray:
    """Channels moved into blocks of pixels."""
    return _value(relay.nn.depth_to_space(_c(data), block_size, "NCHW", mode))


def space_to_depth_python(data: np.ndarray, block_size: int) -> np.ndarray:
    """Blocks of pixels moved into channels."""
    return _value(relay.nn.space_to_depth(_c(data), block_size, "NCHW"))


def affine_grid_python(data: np.ndarray, target_shape: Sequence[int]) -> np.ndarray:
    """A grid moved by matrices."""
    return _value(relay.image.affine_grid(_c(data), target_shape))


def grid_sample_python(data: np.ndarray, grid: np.ndarray, method: str = "bilinear", layout: str = "NCHW", padding_mode: str = "zeros",
                       align_corners: bool = True) -> np.ndarray:
    """Pixels read at the places of a grid."""
    return _value(relay.image.grid_sample(_c(data), _c(grid), method, layout, padding_mode, align_corners))


def space_to_batch_nd_python(data: np.ndarray, block_shape: Sequence[int], pad_before: Sequence[int], pad_after: Sequence[int],
                             pad_value: float = 0) -> np.ndarray:
    """Blocks moved into the batch."""
    paddings = [list(p) for p in zip(pad_before, pad_after)]
    return _value(relay.nn.space_to_batch_nd(_c(data), block_shape, paddings, pad_value))


def batch_to_space_nd_python(data: np.ndarray, block_shape: Sequence[int], crop_begin_list: Sequence[int], crop_end_list: Sequence[int]) -> np.ndarray:
    """The batch moved into blocks."""
    crops = [list(p) for p in zip(crop_begin_list, crop_end_list)]
    return _value(relay.nn.batch_to_space_nd(_c(data), block_shape, crops))


def _schedule(name: str) -> Callable[[Any], Callable[..., Any]]:
    def of(target: Any) -> Callable[..., Any]:
        from ... import topi

        return getattr(topi.generic, name)  # type: ignore[no-any-return]

    return of


get_injective_schedule = get_broadcast_schedule = get_elemwise_schedule = _schedule("schedule_injective")
get_reduce_schedule = _schedule("schedule_reduce")


def get_conv2d_nchw_implement(target: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """(compute, schedule) of the plain convolution."""
    from ... import topi

    return topi.nn.conv2d_nchw, topi.generic.schedule_conv2d_nchw
