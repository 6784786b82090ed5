"""Normalisations."""
from __future__ import annotations

from typing import Sequence

from .....ir.expr import RelayExpr
from .....support.errors import ArgumentError, UnsupportedOpError
from ..context import NodeContext
from ..make import call, items, reduce, where
from ..registry import MICROSOFT, op


def _add_eps_rsqrt(n: NodeContext, x: RelayExpr, eps: float) -> RelayExpr:
    return call("divide", n.like(1, x), call("sqrt", call("add", x, n.like(eps, x))))


# ---- batch ---------------------------------------------------------------------------------------------------------------

@op("BatchNormalization")
def batch_norm(n: NodeContext) -> list[RelayExpr] | RelayExpr:
    """Each channel shifted and scaled by running statistics (or, in training mode, by those of the batch)."""
    x, gamma, beta, mean, var = n.needs(5)
    eps = n.attr("epsilon", 1e-5)
    if n.version < 9 and not n.attr("spatial", 1):
        return _per_element(n, x, gamma, beta, mean, var, eps)
    if n.version >= 14 and n.attr("training_mode", 0):
        return _training(n, x, gamma, beta, mean, var, eps)
    if n.version >= 14 or not any(n.wants(i) for i in range(1, 5)):
        return _batch_norm(n, x, gamma, beta, mean, var, eps)
    raise UnsupportedOpError("batch normalisation in training mode (with more than one output) is not supported at this version")


def _batch_norm(n: NodeContext, x: RelayExpr, gamma: RelayExpr, beta: RelayExpr, mean: RelayExpr, var: RelayExpr, eps: float) -> RelayExpr:
    dtype = n.dtype(x)
    params = [n.to(p, dtype) for p in (gamma, beta, mean, var)]
    whole = call("nn.batch_norm", x, *params, axis=min(1, n.rank(x) - 1), epsilon=eps, center=True, scale=True)
    return items(whole, 3)[0]


def _per_element(n: NodeContext, x: RelayExpr, gamma: RelayExpr, beta: RelayExpr, mean: RelayExpr, var: RelayExpr, eps: float) -> RelayExpr:
    scaled = call("multiply", call("subtract", x, mean), _add_eps_rsqrt(n, var, eps))
    return call("add", call("multiply", scaled, gamma), beta)


def _training(n: NodeContext, x: RelayExpr, gamma: RelayExpr, beta: RelayExpr, mean: RelayExpr, var: RelayExpr,
              eps: float) -> list[RelayExpr]:
    axes = [i for i in range(n.rank(x)) if i != 1]
    average = reduce("mean", x, axes, True)
    centred = call("subtract", x, average)
    spread = reduce("mean", call("multiply", centred, centred), axes, False)
    average, momentum = reduce("mean", x, axes, False), n.attr("momentum", 0.9)
    y = _batch_norm(n, x, gamma, beta, average, spread, eps)
    moved = [call("add", call("multiply", old, n.like(momentum, old)), call("multiply", n.to(new, n.dtype(old)), n.like(1 - momentum, old)))
             for old, new in ((mean, average), (var, spread))]
    return [y, *moved]


# ---- instance, layer, group ----------------------------------------------------------------------------------------------

@op("InstanceNormalization")
def instance_norm(n: NodeContext) -> RelayExpr:
    """Each plane normalised by itself."""
    return call("nn.instance_norm", *n.needs(3), axis=1, epsilon=n.attr("epsilon", 1e-5), center=True, scale=True)


@op("LayerNormalization")
@op("LayerNormalization", domain=MICROSOFT)
def layer_norm(n: NodeContext) -> list[RelayExpr] | RelayExpr:
    """The axes from ``axis`` on normalised together; also their mean and inverse deviation."""
    x, scale = n.needs(2)
    rank = n.rank(x)
    axis, eps = n.axis(n.attr("axis", -1), rank), n.attr("epsilon", 1e-5)
    if n.wants(1) or n.wants(2) or axis != rank - 1 or n.rank(scale) != 1:
        return layer_norm_parts(n, x, scale, n.input(2), axis, eps)
    return last_axis_norm(n, x, scale, n.input(2), eps)


def last_axis_norm(n: NodeContext, x: RelayExpr, scale: RelayExpr, bias: RelayExpr | None, eps: float) -> RelayExpr:
    """Layer normalisation of the last axis."""
    center = bias is not None
    beta = bias if bias is not None else call("zeros_like", scale)
    return call("nn.layer_norm", x, scale, beta, axis=-1, epsilon=eps, center=center, scale=True)


def layer_norm_parts(n: NodeContext, x: RelayExpr, scale: RelayExpr, bias: RelayExpr | None, axis: int, eps: float) -> list[RelayExpr]:
    """[result, mean, inverse deviation] of a normalisation over the axes from ``axis`` on."""
    axes = list(range(axis, n.rank(x)))
    mean = reduce("mean", x, axes, True)
    centred = call("subtract", x, mean)
    inverse = _add_eps_rsqrt(n, reduce("mean", call("multiply", centred, centred), axes, True), eps)
    y = call("multiply", call("multiply", centred, inverse), scale)
    return [y if bias is None else call("add", y, bias), mean, inverse]


@op("GroupNormalization")
def group_norm_v18(n: NodeContext) -> RelayExpr:
    """Scale and bias are per group (from version 21 on: per channel)."""
    x, scale, bias = n.needs(3)
    groups = n.attr("num_groups")
    channels = n.dims(x)[1]
    if not isinstance(channels, int) or channels % groups:
        raise ArgumentError(f"{channels} channels do not fall into {groups} groups")
    if n.version < 21 and groups != channels:
        scale, bias = (call("repeat", p, repeats=channels // groups, axis=0) for p in (scale, bias))
    return call("nn.group_norm", x, scale, bias, num_groups=groups, axis=1, epsilon=n.attr("epsilon", 1e-5), center=True, scale=True)


def rms_norm_of(n: NodeContext, x: RelayExpr, scale: RelayExpr | None, axes: Sequence[int], eps: float) -> RelayExpr:
    """``x`` over the root of its mean square."""
    y = call("multiply", x, _add_eps_rsqrt(n, reduce("mean", call("multiply", x, x), axes, True), eps))
    return y if scale is None else call("multiply", y, scale)


@op("RMSNormalization")
@op("SimplifiedLayerNormalization")
@op("SimplifiedLayerNormalization", domain=MICROSOFT)
def rms_norm(n: NodeContext) -> RelayExpr:
    """The axes from ``axis`` on divided by the root of their mean square."""
    x, scale = n.needs(2)
    axis = n.axis(n.attr("axis", -1), n.rank(x))
    return rms_norm_of(n, x, scale, list(range(axis, n.rank(x))), n.attr("epsilon", 1e-5))


@op("MeanVarianceNormalization")
def mean_variance_norm(n: NodeContext) -> RelayExpr:
    """Zero mean and unit variance over given axes."""
    x = n.need(0)
    axes = n.axes(n.attr("axes", [0, 2, 3]), n.rank(x))
    centred = call("subtract", x, reduce("mean", x, axes, True))
    deviation = call("sqrt", reduce("mean", call("multiply", centred, centred), axes, True))
    return call("divide", centred, call("add", deviation, n.like(1e-9, x)))


# ---- norms -----------------------------------------------------------------------------------------------------------------

@op("LpNormalization")
def lp_norm(n: NodeContext) -> RelayExpr:
    """Elements along an axis over their 1-norm or 2-norm; zeros stay zeros."""
    x, p = n.need(0), n.attr("p", 2)
    if p not in (1, 2):
        raise ArgumentError(f"p must be 1 or 2, got {p}")
    axes = [n.axis(n.attr("axis", -1), n.rank(x))]
    size = reduce("sum", call("abs", x) if p == 1 else call("multiply", x, x), axes, True)
    size = size if p == 1 else call("sqrt", size)
    return call("divide", x, where(call("equal", size, n.like(0, x)), n.like(1, x), size))


@op("LRN")
def lrn(n: NodeContext) -> RelayExpr:
    """Each element over a power of the mean square of its neighbours in other channels."""
    return call("nn.lrn", n.need(0), size=n.attr("size"), axis=1, bias=n.attr("bias", 1.0), alpha=n.attr("alpha", 1e-4),
                beta=n.attr("beta", 0.75))


@op("Dropout")
def dropout(n: NodeContext) -> list[RelayExpr]:
    """The input: nothing is dropped at inference.  The mask says so."""
    x = n.need(0)
    if n.version >= 12 and n.input(2) is not None:
        training = n.value(n.input(2))
        if (training is None or bool(training.reshape(-1)[0])) and n.scalar(1, 0.5, "ratio") != 0:
            raise UnsupportedOpError("dropout in training mode is random and cannot be compiled")
    if not n.wants(1):
        return [x]
    mask = call("ones_like", x)
    return [x, call("cast", mask, dtype="bool") if n.version >= 10 else mask]


__all__ = ["last_axis_norm", "layer_norm_parts", "rms_norm_of"]
