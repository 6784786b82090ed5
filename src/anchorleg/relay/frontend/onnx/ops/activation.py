"""Activation functions and softmax."""
from __future__ import annotations

import math
from typing import Callable

import numpy as np

from .....ir.expr import RelayExpr
from .....support.errors import ArgumentError, UnsupportedOpError
from ..context import NodeContext
from ..make import call, cast, expand_dims, reduce, reshape, where
from ..registry import MICROSOFT, op


@op("Relu")
def relu(n: NodeContext) -> RelayExpr:
    """max(x, 0)."""
    return call("nn.relu", n.need(0))


@op("LeakyRelu")
def leaky_relu(n: NodeContext) -> RelayExpr:
    """x, or alpha x where negative."""
    return call("nn.leaky_relu", n.need(0), alpha=n.attr("alpha", 0.01))


@op("PRelu")
def prelu(n: NodeContext) -> RelayExpr:
    """x, or slope x where negative; the slope broadcasts to x."""
    x, slope = n.needs(2)
    dims, slopes = n.dims(x), n.dims(slope)
    if n.version < 7 and len(slopes) == 1 and len(dims) > 1 and slopes[0] != 1:
        slope = expand_dims(slope, 1, len(dims) - 2)
        slopes = n.dims(slope)
    if _per_channel(dims, slopes):
        return call("nn.prelu", x, reshape(slope, [dims[1]]), axis=1)
    return where(call("less", x, n.like(0, x)), call("multiply", x, slope), x)


def _per_channel(dims: tuple, slopes: tuple) -> bool:
    """Whether a slope that broadcasts to ``dims`` has one value per entry of axis 1."""
    if len(dims) < 2 or not isinstance(dims[1], int) or len(slopes) < len(dims) - 1:
        return False
    full = (1,) * (len(dims) - len(slopes)) + tuple(slopes)
    return all(isinstance(s, int) and s == (dims[1] if i == 1 else 1) for i, s in enumerate(full))


@op("Elu")
def elu(n: NodeContext) -> RelayExpr:
    """x, or alpha (exp(x) - 1) where negative."""
    return elu_of(n, n.need(0), n.attr("alpha", 1.0))


def elu_of(n: NodeContext, x: RelayExpr, alpha: float, gamma: float = 1.0) -> RelayExpr:
    """gamma x, or gamma alpha (exp(x) - 1) where negative."""
    low = call("multiply", call("subtract", call("exp", call("minimum", x, n.like(0, x))), n.like(1, x)), n.like(alpha * gamma, x))
    high = x if gamma == 1.0 else call("multiply", x, n.like(gamma, x))
    return where(call("less", x, n.like(0, x)), low, high)


@op("Selu")
def selu_v1(n: NodeContext) -> RelayExpr:
    """A scaled Elu, with the first version's constants."""
    return elu_of(n, n.need(0), n.attr("alpha", 1.6732), n.attr("gamma", 1.0507))


@op("Selu", since=6)
def selu(n: NodeContext) -> RelayExpr:
    """A scaled Elu."""
    return elu_of(n, n.need(0), n.attr("alpha", 1.67326319217681884765625), n.attr("gamma", 1.05070102214813232421875))


@op("Celu")
def celu(n: NodeContext) -> RelayExpr:
    """max(0, x) + min(0, alpha (exp(x / alpha) - 1))."""
    x, alpha = n.need(0), n.attr("alpha", 1.0)
    low = call("subtract", call("exp", call("divide", call("minimum", x, n.like(0, x)), n.like(alpha, x))), n.like(1, x))
    return where(call("less", x, n.like(0, x)), call("multiply", low, n.like(alpha, x)), x)


def hard_sigmoid_of(n: NodeContext, x: RelayExpr, alpha: float, beta: float) -> RelayExpr:
    """alpha x + beta, between 0 and 1."""
    return call("clip", call("add", call("multiply", x, n.like(alpha, x)), n.like(beta, x)), a_min=0.0, a_max=1.0)


@op("HardSigmoid")
def hard_sigmoid(n: NodeContext) -> RelayExpr:
    """alpha x + beta, between 0 and 1."""
    return hard_sigmoid_of(n, n.need(0), n.attr("alpha", 0.2), n.attr("beta", 0.5))


@op("HardSwish")
def hard_swish(n: NodeContext) -> RelayExpr:
    """x times a hard sigmoid of slope 1/6."""
    return call("multiply", n.need(0), hard_sigmoid_of(n, n.need(0), 1 / 6, 0.5))


def softplus_of(n: NodeContext, x: RelayExpr) -> RelayExpr:
    """log(1 + exp(x)), without overflow."""
    small = call("log", call("add", call("exp", call("negative", call("abs", x))), n.like(1, x)))
    return call("add", call("maximum", x, n.like(0, x)), small)


@op("Softplus")
def softplus(n: NodeContext) -> RelayExpr:
    """log(1 + exp(x))."""
    return softplus_of(n, n.need(0))


@op("Softsign")
def softsign(n: NodeContext) -> RelayExpr:
    """x / (1 + |x|)."""
    x = n.need(0)
    return call("divide", x, call("add", call("abs", x), n.like(1, x)))


@op("Mish")
def mish(n: NodeContext) -> RelayExpr:
    """x tanh(softplus(x))."""
    return call("multiply", n.need(0), call("tanh", softplus_of(n, n.need(0))))


@op("ThresholdedRelu")
def thresholded_relu(n: NodeContext) -> RelayExpr:
    """x where it is over alpha, else 0."""
    x = n.need(0)
    return where(call("greater", x, n.like(n.attr("alpha", 1.0), x)), x, n.like(0, x))


@op("Shrink")
def shrink(n: NodeContext) -> RelayExpr:
    """x moved towards 0 by ``bias``, and 0 where it is within ``lambd``."""
    x, bias, edge = n.need(0), n.like(n.attr("bias", 0.0), n.need(0)), n.attr("lambd", 0.5)
    high = where(call("greater", x, n.like(edge, x)), call("subtract", x, bias), n.like(0, x))
    return where(call("less", x, n.like(-edge, x)), call("add", x, bias), high)


def gelu_of(n: NodeContext, x: RelayExpr, approximate: str = "none") -> RelayExpr:
    """x times the normal distribution function, exact or by tanh."""
    if approximate == "tanh":
        cubic = call("multiply", call("multiply", x, x), call("multiply", x, n.like(0.044715, x)))
        inner = call("tanh", call("multiply", call("add", x, cubic), n.like(math.sqrt(2 / math.pi), x)))
    elif approximate == "none":
        inner = call("erf", call("multiply", x, n.like(math.sqrt(0.5), x)))
    else:
        raise ArgumentError(f"approximate must be none or tanh, got {approximate!r}")
    return call("multiply", call("multiply", x, n.like(0.5, x)), call("add", inner, n.like(1, x)))


@op("Gelu")
def gelu(n: NodeContext) -> RelayExpr:
    """x times the normal distribution function."""
    return gelu_of(n, n.need(0), n.attr("approximate", "none"))


def swish_of(n: NodeContext, x: RelayExpr, alpha: float) -> RelayExpr:
    """x sigmoid(alpha x)."""
    return call("multiply", x, call("sigmoid", x if alpha == 1 else call("multiply", x, n.like(alpha, x))))


@op("Swish")
def swish(n: NodeContext) -> RelayExpr:
    """x sigmoid(alpha x)."""
    return swish_of(n, n.need(0), n.attr("alpha", 1.0))


@op("QuickGelu", domain=MICROSOFT)
def quick_gelu(n: NodeContext) -> RelayExpr:
    """x sigmoid(1.702 x)."""
    return swish_of(n, n.need(0), n.attr("alpha", 1.702))


# ---- softmax ---------------------------------------------------------------------------------------------------------

Rowwise = Callable[[NodeContext, RelayExpr, int], RelayExpr]


def hardmax_of(n: NodeContext, x: RelayExpr, axis: int) -> RelayExpr:
    """1 at the first largest element along the axis, 0 elsewhere."""
    dims = n.dims(x)
    if not isinstance(dims[axis], int):
        raise UnsupportedOpError("the size of the axis must be known")
    best = call("argmax", x, axis=(axis,), keepdims=True, exclude=False, select_last_index=False)
    places = np.arange(dims[axis]).reshape([-1 if i == axis else 1 for i in range(len(dims))])
    from ..make import const

    return cast(call("equal", const(places, n.dtype(best)), best), n.dtype(x))


_ROWWISE: dict[str, Rowwise] = {
    "Softmax": lambda n, x, axis: call("nn.softmax", x, axis=axis),
    "LogSoftmax": lambda n, x, axis: call("nn.log_softmax", x, axis=axis),
    "Hardmax": hardmax_of,
}


def flatten_at(n: NodeContext, x: RelayExpr, axis: int) -> RelayExpr:
    """``x`` as a matrix: the axes before ``axis`` are rows, the rest columns."""
    dims = n.dims(x)
    sizes = [_size(dims[:axis]), _size(dims[axis:])]
    if sizes[0] is None and sizes[1] is None:
        if axis == 1:
            return call("nn.batch_flatten", x)
        raise UnsupportedOpError("the sizes before or after the axis must be known: give the sizes of the model's inputs")
    return reshape(x, [-1 if s is None else s for s in sizes])


def _size(dims: tuple) -> int | None:
    return math.prod(dims) if all(isinstance(d, int) for d in dims) else None


def back_to(n: NodeContext, y: RelayExpr, x: RelayExpr) -> RelayExpr:
    """``y`` in the shape of ``x``."""
    dims = n.dims(x)
    unknown = [i for i, d in enumerate(dims) if not isinstance(d, int)]
    if len(unknown) > 1:
        return call("reshape_like", y, x)
    return reshape(y, [-1 if i in unknown else d for i, d in enumerate(dims)])


def _register_softmax() -> None:
    for name, fn in _ROWWISE.items():
        def flattened(n: NodeContext, fn: Rowwise = fn) -> RelayExpr:
            """Below version 13 all axes from ``axis`` on are normalised together."""
            x = n.need(0)
            rank = n.rank(x)
            axis = n.axis(n.attr("axis", 1 if rank > 1 else 0), rank)
            if axis == rank - 1 or all(isinstance(d, int) and d == 1 for d in n.dims(x)[axis + 1:]):
                return fn(n, x, axis)
            return back_to(n, fn(n, flatten_at(n, x, axis), 1), x)

        def along_axis(n: NodeContext, fn: Rowwise = fn) -> RelayExpr:
            """From version 13 on one axis is normalised."""
            return fn(n, n.need(0), n.axis(n.attr("axis", -1), n.rank(n.need(0))))

        op(name)(flattened)
        op(name, since=13)(along_axis)


_register_softmax()

__all__ = ["back_to", "elu_of", "flatten_at", "gelu_of", "hard_sigmoid_of", "reduce", "softplus_of", "swish_of"]
