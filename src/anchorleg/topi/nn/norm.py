"""Normalisations."""
from __future__ import annotations

from typing import Any, Sequence

from ... import te
from ...te import tag
from ...te.tensor import Tensor
from ...tir import op as tir_op
from .common import dims
from .softmax import _widen


def _mean_and_variance(x: Tensor, axes: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Mean and variance over ``axes``, shaped like the other axes; the variance is that of the centred data."""
    shape, wide = dims(x), _widen(x.dtype)
    kept = [i for i in range(x.ndim) if i not in axes]
    count: Any = 1
    for a in axes:
        count = count * shape[a]
    inverse = tir_op.const(1.0 / count, wide) if isinstance(count, int) else tir_op.const(1.0, wide) / tir_op.cast(count, wide)

    def at(index: Sequence[Any], reduced: Sequence[Any]) -> list[Any]:
        whole: list[Any] = [None] * x.ndim
        for position, i in [*zip(kept, index), *zip(axes, reduced)]:
            whole[position] = i
        return whole

    def reduced_axes() -> list[Any]:
        return [te.reduce_axis((0, shape[a]), name=f"k{a}") for a in axes]

    rest, ks = [shape[i] for i in kept], reduced_axes()
    total = te.compute(rest, lambda *i: te.sum(x(*at(i, ks)).astype(wide), axis=ks), name="T_sum", tag=tag.COMM_REDUCE)
    mean = te.compute(rest, lambda *i: total(*i) * inverse, name="T_mean", tag=tag.ELEMWISE)
    ls = reduced_axes()

    def squares(*i: Any) -> Any:
        centred = x(*at(i, ls)).astype(wide) - mean(*i)
        return te.sum(centred * centred, axis=ls)

    spread = te.compute(rest, squares, name="T_squares", tag=tag.COMM_REDUCE)
    return mean, te.compute(rest, lambda *i: spread(*i) * inverse, name="T_variance", tag=tag.ELEMWISE)


def _normalised(x: Tensor, axes: Sequence[int], epsilon: float, gamma: Any, beta: Any, name: str) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) * gamma(index) + beta(index); gamma and beta may be None."""
    wide = _widen(x.dtype)
    mean, variance = _mean_and_variance(x, axes)
    kept = [i for i in range(x.ndim) if i not in axes]

    def element(*i: Any) -> Any:
        at = [i[k] for k in kept]
        value = (x(*i).astype(wide) - mean(*at)) * tir_op.rsqrt(variance(*at) + tir_op.const(epsilon, wide))
        value = value if gamma is None else value * gamma(*i).astype(wide)
        value = value if beta is None else value + beta(*i).astype(wide)
        return value.astype(x.dtype)

    return te.compute(x.shape, element, name=name, tag="norm_output", attrs={"axes": tuple(axes)})


def _per(vector: Tensor | None, axis: int) -> Any:
    return None if vector is None else lambda *i: vector(i[axis])


def layer_norm(data: Tensor, gamma: Tensor | None, beta: Tensor | None, axis: Any, epsilon: float = 1e-5) -> Tensor:
    """Mean 0 and variance 1 over ``axis`` (one or several; gamma and beta have these axes), then gamma and beta."""
    axes = [a % data.ndim for a in ([axis] if isinstance(axis, int) else axis)]

    def per(t: Tensor | None) -> Any:
        return None if t is None else lambda *i: t(*[i[a] for a in axes])

    return _normalised(data, axes, epsilon, per(gamma), per(beta), "T_layer_norm")


def instance_norm(data: Tensor, gamma: Tensor | None, beta: Tensor | None, channel_axis: int = 1, axis: Any = None,
                  epsilon: float = 1e-5) -> Tensor:
    """Each channel of each batch entry to mean 0 and variance 1, then gamma and beta per channel."""
    channel = channel_axis % data.ndim
    axes = [i for i in range(1, data.ndim) if i != channel] if axis is None else [a % data.ndim for a in axis]
    return _normalised(data, axes, epsilon, _per(gamma, channel), _per(beta, channel), "T_instance_norm")


def group_norm(data: Tensor, gamma: Tensor | None, beta: Tensor | None, num_groups: int, channel_axis: int = 1, axes: Any = None,
               epsilon: float = 1e-5) -> Tensor:
    """Each group of channels of each batch entry to mean 0 and variance 1, then gamma and beta per channel."""
    shape, channel = dims(data), channel_axis % data.ndim
    per_group = shape[channel] // num_groups
    split = [*shape[:channel], num_groups, per_group, *shape[channel + 1:]]
    view = te.compute(split, lambda *i: data(*i[:channel], i[channel] * per_group + i[channel + 1], *i[channel + 2:]), name="T_groups",
                      tag=tag.INJECTIVE)
    reduced = [i for i in range(1, len(split)) if i != channel]

    def per(t: Tensor | None) -> Any:
        return None if t is None else lambda *i: t(i[channel] * per_group + i[channel + 1])

    y = _normalised(view, reduced, epsilon, per(gamma), per(beta), "T_group_norm")
    return te.compute(shape, lambda *i: y(*i[:channel], i[channel] // per_group, i[channel] % per_group, *i[channel + 1:]),
                      name="T_ungroup", tag=tag.INJECTIVE)


def batch_norm(data: Tensor, gamma: Tensor, beta: Tensor, moving_mean: Tensor, moving_var: Tensor, axis: int = 1, epsilon: float = 1e-5,
               center: bool = True, scale: bool = True) -> list[Tensor]:
    """[normalised data, moving mean, moving variance]."""
    axis = axis % data.ndim

    def element(*i: Any) -> Any:
        c = i[axis]
        factor = tir_op.rsqrt(moving_var(c) + tir_op.const(epsilon, data.dtype))
        value = (data(*i) - moving_mean(c)) * (factor * gamma(c) if scale else factor)
        return value + beta(c) if center else value

    out = te.compute(data.shape, element, name="T_batch_norm", tag=tag.BROADCAST)
    copies = [te.compute(v.shape, lambda i, v=v: v(i), name="T_copy", tag=tag.ELEMWISE) for v in (moving_mean, moving_var)]
    return [out, *copies]


def l2_normalize(data: Tensor, eps: float, axis: Any = None) -> Tensor:
    """data / sqrt(max(sum(data²), eps)) over ``axis`` (None: all)."""
    axes = list(range(data.ndim)) if not axis else [int(a) % data.ndim for a in axis]
    kept, shape, wide = [i for i in range(data.ndim) if i not in axes], dims(data), _widen(data.dtype)
    ks = [te.reduce_axis((0, shape[a]), name=f"k{a}") for a in axes]

    def at(index: Sequence[Any]) -> list[Any]:
        table = dict([*zip(kept, index), *zip(axes, ks)])
        return [table[i] for i in range(data.ndim)]

    def square(*i: Any) -> Any:
        value = data(*at(i)).astype(wide)
        return te.sum(value * value, axis=ks)

    total = te.compute([shape[i] for i in kept], square, name="T_square_sum", tag=tag.COMM_REDUCE)
    return te.compute(shape, lambda *i: (data(*i).astype(wide) / tir_op.sqrt(tir_op.maximum(
        total(*[i[k] for k in kept]), tir_op.const(eps, wide)))).astype(data.dtype), name="T_l2_normalize", tag=tag.BROADCAST)


def lrn(data: Tensor, size: int, axis: int = 1, alpha: float = 0.0001, beta: float = 0.75, bias: float = 2) -> Tensor:
    """data / (bias + alpha / size * sum of squares of the ``size`` nearest along ``axis``) ** beta."""
    axis, shape, wide = axis % data.ndim, dims(data), _widen(data.dtype)
    k = te.reduce_axis((0, size), name="k")
    radius = size // 2

    def square(*i: Any) -> Any:
        at = i[axis] + k - radius
        x = data(*i[:axis], at, *i[axis + 1:]).astype(wide)
        return te.sum(tir_op.if_then_else(tir_op.all(at >= 0, at < shape[axis]), x * x, tir_op.const(0, wide)), axis=k)

    total = te.compute(shape, square, name="T_square_sum")
    factor = tir_op.const(alpha / size, wide)
    return te.compute(shape, lambda *i: (data(*i).astype(wide) / tir_op.power(
        total(*i) * factor + tir_op.const(bias, wide), tir_op.const(beta, wide))).astype(data.dtype), name="T_lrn", tag=tag.ELEMWISE)
