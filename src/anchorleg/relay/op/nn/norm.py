"""Normalisations: batch, layer, instance and group norm, l2_normalize, local response normalisation."""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from ....ir.attrs import BOOL, FLOAT, INT, OPT_INTS, Attrs, Field
from ....ir.expr import RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, TupleType, Type
from ....support.errors import TypeMismatchError
from ...expr import Call, TupleWrapper
from ..registry import declare
from .bias_add import along
from .common import check_axis, expect, known, tensor, wide

_EPSILON = Field(FLOAT, 1e-5, "Added to the variance, against division by 0.")
_CENTER = Field(BOOL, True, "Whether beta is added.")
_SCALE = Field(BOOL, True, "Whether gamma is multiplied.")


class BatchNormAttrs(Attrs, name="relay.attrs.BatchNormAttrs"):
    """Attributes of nn.batch_norm."""

    axis = Field(INT, 1, "The channel axis.")
    epsilon = _EPSILON
    center = _CENTER
    scale = _SCALE


class InstanceNormAttrs(Attrs, name="relay.attrs.InstanceNormAttrs"):
    """Attributes of nn.instance_norm."""

    axis = Field(INT, 1, "The channel axis.")
    epsilon = _EPSILON
    center = _CENTER
    scale = _SCALE


class LayerNormAttrs(Attrs, name="relay.attrs.LayerNormAttrs"):
    """Attributes of nn.layer_norm."""

    axis = Field(INT, -1, "The axis that is normalised.")
    epsilon = _EPSILON
    center = _CENTER
    scale = _SCALE


class GroupNormAttrs(Attrs, name="relay.attrs.GroupNormAttrs"):
    """Attributes of nn.group_norm."""

    num_groups = Field(INT, 0, "Into how many groups the channels fall.")
    axis = Field(INT, 1, "The channel axis.")
    epsilon = _EPSILON
    center = _CENTER
    scale = _SCALE


class L2NormalizeAttrs(Attrs, name="relay.attrs.L2NormalizeAttrs"):
    """Attributes of nn.l2_normalize."""

    eps = Field(FLOAT, doc="Lower bound of the sum of squares.")
    axis = Field(OPT_INTS, None, "The axes of the norm; None: all.")


class LRNAttrs(Attrs, name="relay.attrs.LRNAttrs"):
    """Attributes of nn.lrn."""

    size = Field(INT, 5, "Number of neighbours that count.")
    axis = Field(INT, 1, "The channel axis.")
    bias = Field(FLOAT, 2.0, "The offset.")
    alpha = Field(FLOAT, 0.0001, "The factor of the mean of squares.")
    beta = Field(FLOAT, 0.75, "The exponent.")


def _vectors(op: str, names: Sequence[str]) -> Any:
    """A relation: the arguments after the first are vectors along ``axis``; the result has the first one's type."""
    def relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
        data = tensor(args[0], f"{op}, data")
        if data is None:
            return None
        axis = check_axis(op, attrs.axis, len(data.dims))
        for name, arg in zip(names, args[1:]):
            expect(ctx, op, name, arg, (data.dims[axis],), data.dtype)
        return data

    return relation


_batch_norm_vectors = _vectors("nn.batch_norm", ("gamma", "beta", "moving_mean", "moving_var"))
_instance_norm_vectors = _vectors("nn.instance_norm", ("gamma", "beta"))
_group_norm_vectors = _vectors("nn.group_norm", ("gamma", "beta"))


def _batch_norm_relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    data = _batch_norm_vectors(args, attrs, ctx)
    if data is None:
        return None
    vector = TensorType((data.dims[attrs.axis],), data.dtype)
    return TupleType((data, vector, vector))


def _instance_norm_relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    data = tensor(args[0], "nn.instance_norm, data")
    if data is not None and len(data.dims) < 3:
        raise TypeMismatchError(f"nn.instance_norm: expected data of rank 3 or more, got rank {len(data.dims)}")
    return _instance_norm_vectors(args, attrs, ctx)


def _group_norm_relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    data = _group_norm_vectors(args, attrs, ctx)
    if data is not None:
        channels = data.dims[attrs.axis]
        if attrs.num_groups < 1 or (known(channels) and channels % attrs.num_groups):
            raise TypeMismatchError(f"nn.group_norm: {channels} channels do not fall into {attrs.num_groups} groups")
    return data


def _affine(attrs: Any, x: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
    if attrs.scale:
        x = x * along(gamma, x.ndim, attrs.axis)
    return x + along(beta, x.ndim, attrs.axis) if attrs.center else x


def _standard(x: np.ndarray, axes: Sequence[int], epsilon: float) -> np.ndarray:
    """``x`` with mean 0 and variance 1 over ``axes``."""
    axes = tuple(axes)
    centred = x - x.mean(axis=axes, keepdims=True)
    variance = np.square(centred).mean(axis=axes, keepdims=True)
    return centred / np.sqrt(variance + x.dtype.type(epsilon))


def _batch_norm_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> tuple[np.ndarray, ...]:
    x, gamma, beta, mean, var = args
    factor = 1 / np.sqrt(var + var.dtype.type(attrs.epsilon))
    factor = factor * gamma if attrs.scale else factor
    shift = (beta if attrs.center else 0) - mean * factor
    return x * along(factor, x.ndim, attrs.axis) + along(shift, x.ndim, attrs.axis), mean, var


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(wide(str(x.dtype)), copy=False)


def _layer_norm_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    return _affine(attrs, _standard(_wide(args[0]), (attrs.axis,), attrs.epsilon), args[1], args[2])


def _instance_norm_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    x = _wide(args[0])
    axes = [i for i in range(1, x.ndim) if i != attrs.axis % x.ndim]
    return _affine(attrs, _standard(x, axes, attrs.epsilon), args[1], args[2])


def _group_norm_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    x, axis = _wide(args[0]), attrs.axis % args[0].ndim
    split = x.reshape(*x.shape[:axis], attrs.num_groups, x.shape[axis] // attrs.num_groups, *x.shape[axis + 1:])
    axes = [i for i in range(1, split.ndim) if i != axis]
    return _affine(attrs, _standard(split, axes, attrs.epsilon).reshape(x.shape), args[1], args[2])


def _l2_relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    data = tensor(args[0], "nn.l2_normalize, data")
    for axis in attrs.axis or () if data is not None else ():
        check_axis("nn.l2_normalize", axis, len(data.dims))
    return data


def _l2_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    x = _wide(args[0])
    total = np.square(x).sum(axis=tuple(attrs.axis) if attrs.axis else None, keepdims=True)
    return x / np.sqrt(np.maximum(total, x.dtype.type(attrs.eps)))


def _lrn_relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    data = tensor(args[0], "nn.lrn, data")
    if data is not None:
        check_axis("nn.lrn", attrs.axis, len(data.dims))
        if attrs.size % 2 == 0:
            raise TypeMismatchError(f"nn.lrn: size must be odd, got {attrs.size}")
    return data


def _lrn_numpy(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    x = _wide(args[0])
    radius = attrs.size // 2
    squares = np.moveaxis(np.square(x), attrs.axis, 0)
    running = np.zeros((squares.shape[0] + 2 * radius, *squares.shape[1:]), x.dtype)
    running[radius:radius + squares.shape[0]] = squares
    total = sum(running[i:i + squares.shape[0]] for i in range(attrs.size))
    return x / np.moveaxis(np.power(attrs.bias + attrs.alpha / attrs.size * total, attrs.beta), 0, attrs.axis)


_AFFINE = ("data", "gamma", "beta")
declare("nn.batch_norm", inputs=(*_AFFINE, "moving_mean", "moving_var"), attrs=BatchNormAttrs, relation=_batch_norm_relation,
        pattern=OpPattern.OUT_ELEMWISE_FUSABLE, numpy=_batch_norm_numpy, level=1,
        doc="gamma * (data - moving_mean) / sqrt(moving_var + epsilon) + beta along an axis; and the two moving vectors.")
declare("nn.instance_norm", inputs=_AFFINE, attrs=InstanceNormAttrs, relation=_instance_norm_relation, numpy=_instance_norm_numpy,
        level=1, doc="Each channel of each batch entry to mean 0 and variance 1, then gamma and beta.")
declare("nn.layer_norm", inputs=_AFFINE, attrs=LayerNormAttrs, relation=_vectors("nn.layer_norm", ("gamma", "beta")),
        numpy=_layer_norm_numpy, level=1, doc="Mean 0 and variance 1 along an axis, then gamma and beta.")
declare("nn.group_norm", inputs=_AFFINE, attrs=GroupNormAttrs, relation=_group_norm_relation, numpy=_group_norm_numpy, level=1,
        doc="Each group of channels of each batch entry to mean 0 and variance 1, then gamma and beta.")
declare("nn.l2_normalize", attrs=L2NormalizeAttrs, relation=_l2_relation, numpy=_l2_numpy, level=2,
        pattern=OpPattern.OUT_ELEMWISE_FUSABLE, doc="data / sqrt(max(sum(data²), eps)) over axes.")
declare("nn.lrn", attrs=LRNAttrs, relation=_lrn_relation, numpy=_lrn_numpy, level=2, pattern=OpPattern.OPAQUE,
        doc="data / (bias + alpha / size * sum of squares of the size nearest channels) ** beta.")


def batch_norm(data: RelayExpr, gamma: RelayExpr, beta: RelayExpr, moving_mean: RelayExpr, moving_var: RelayExpr, axis: int = 1,
               epsilon: float = 1e-5, center: bool = True, scale: bool = True) -> TupleWrapper:
    """(normalised data, moving_mean, moving_var): gamma * (data - moving_mean) / sqrt(moving_var + epsilon) + beta along ``axis``."""
    attrs = BatchNormAttrs(axis=axis, epsilon=epsilon, center=center, scale=scale)
    return TupleWrapper(Call(Op.get("nn.batch_norm"), [data, gamma, beta, moving_mean, moving_var], attrs), 3)


def instance_norm(data: RelayExpr, gamma: RelayExpr, beta: RelayExpr, axis: int = 1, epsilon: float = 1e-5, center: bool = True,
                  scale: bool = True) -> Call:
    """Normalises each channel (``axis``) of each batch entry over its other axes, then applies gamma and beta."""
    attrs = InstanceNormAttrs(axis=axis, epsilon=epsilon, center=center, scale=scale)
    return Call(Op.get("nn.instance_norm"), [data, gamma, beta], attrs)


def layer_norm(data: RelayExpr, gamma: RelayExpr, beta: RelayExpr, axis: int = -1, epsilon: float = 1e-5, center: bool = True,
               scale: bool = True) -> Call:
    """Normalises along ``axis``, then applies gamma and beta."""
    attrs = LayerNormAttrs(axis=axis, epsilon=epsilon, center=center, scale=scale)
    return Call(Op.get("nn.layer_norm"), [data, gamma, beta], attrs)


def group_norm(data: RelayExpr, gamma: RelayExpr, beta: RelayExpr, num_groups: int, axis: int = 1, epsilon: float = 1e-5,
               center: bool = True, scale: bool = True) -> Call:
    """Normalises each group of channels of each batch entry, then applies gamma and beta per channel."""
    attrs = GroupNormAttrs(num_groups=num_groups, axis=axis, epsilon=epsilon, center=center, scale=scale)
    return Call(Op.get("nn.group_norm"), [data, gamma, beta], attrs)


def l2_normalize(data: RelayExpr, eps: float, axis: Any = None) -> Call:
    """``data / sqrt(max(sum(data²), eps))`` over ``axis`` (None: all axes)."""
    return Call(Op.get("nn.l2_normalize"), [data], L2NormalizeAttrs(eps=eps, axis=axis))


def lrn(data: RelayExpr, size: int = 5, axis: int = 1, bias: float = 2, alpha: float = 1e-05, beta: float = 0.75) -> Call:
    """Local response normalisation across ``size`` (odd) neighbouring channels."""
    return Call(Op.get("nn.lrn"), [data], LRNAttrs(size=size, axis=axis, bias=bias, alpha=alpha, beta=beta))
