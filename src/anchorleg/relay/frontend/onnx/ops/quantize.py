"""Quantised arithmetic, spelled out in integers and floats."""
from __future__ import annotations

from typing import Any

from .....ir.expr import RelayExpr
from .....support.errors import UnsupportedOpError
from ..context import NodeContext
from ..make import call, cast, concat, const, expand_dims, reduce, reshape, transpose
from ..registry import MICROSOFT, op
from ..tensors import relay_dtype
from .conv import conv_of, with_bias
from .elementwise import dtype_limits, is_float, round_half_even
from .linear import matmul
from .pool import averages


def along(n: NodeContext, x: RelayExpr, p: RelayExpr, axis: int, block: int = 0) -> RelayExpr:
    """A scale or zero point such that it broadcasts to ``x``: one number, one per entry of ``axis``, or one per block."""
    rank, have = n.rank(x), n.rank(p)
    if have <= 1 and all(isinstance(d, int) and d == 1 for d in n.dims(p)):
        return reshape(p, [])
    axis = n.axis(axis, rank)
    if have == 1:
        return expand_dims(p, 1, rank - axis - 1)
    if not block:
        raise UnsupportedOpError(f"a scale of {have} dimensions needs block_size")
    whole, size = call("repeat", p, repeats=block, axis=axis), n.dims(x)[axis]
    return call("strided_slice", whole, begin=(0,), end=(size,), strides=(1,), axes=(axis,), slice_mode="end")


def quantized(n: NodeContext, x: RelayExpr, scale: RelayExpr, zero: RelayExpr | None, dtype: str) -> RelayExpr:
    """x / scale + zero, rounded (halves to even) and cut to the type; scale and zero broadcast already."""
    return rounded(n, call("divide", x, n.to(scale, n.dtype(x))), zero, dtype)


def rounded(n: NodeContext, x: RelayExpr, zero: RelayExpr | None, dtype: str) -> RelayExpr:
    """x + zero, rounded (halves to even) and cut to the type; zero broadcasts already."""
    scaled = round_half_even(n, x)
    if zero is not None:
        scaled = call("add", scaled, cast(zero, n.dtype(scaled)))
    low, high = dtype_limits(dtype)
    return cast(call("clip", scaled, a_min=float(low), a_max=float(high)), dtype)


def dequantized(n: NodeContext, x: RelayExpr, scale: RelayExpr, zero: RelayExpr | None) -> RelayExpr:
    """(x - zero) scale, in the type of the scale; both broadcast already."""
    kind = n.dtype(scale)
    if is_float(n.dtype(x)):
        return call("multiply", n.to(x, kind), scale)
    whole = n.to(x, "int32")
    if zero is not None:
        whole = call("subtract", whole, n.to(zero, "int32"))
    return call("multiply", cast(whole, kind), scale)


@op("QuantizeLinear")
@op("QuantizeLinear", domain=MICROSOFT)
def quantize_linear(n: NodeContext) -> RelayExpr:
    """x / y_scale + y_zero_point, rounded and cut to an integer type."""
    x, scale, zero = n.need(0), n.need(1), n.input(2)
    dtype = n.dtype(zero) if zero is not None else relay_dtype(n.attr("output_dtype", 0) or 2, "the result")
    if "float" in dtype:
        raise UnsupportedOpError(f"quantising to {dtype} is not supported; integers are")
    axis, block = n.attr("axis", 1), n.attr("block_size", 0)
    x = x if is_float(n.dtype(x)) else cast(x, "float32")
    return quantized(n, x, along(n, x, scale, axis, block), None if zero is None else along(n, x, zero, axis, block), dtype)


@op("DequantizeLinear")
@op("DequantizeLinear", domain=MICROSOFT)
def dequantize_linear(n: NodeContext) -> RelayExpr:
    """(x - x_zero_point) x_scale."""
    x, scale, zero = n.need(0), n.need(1), n.input(2)
    axis, block = n.attr("axis", 1), n.attr("block_size", 0)
    return dequantized(n, x, along(n, x, scale, axis, block), None if zero is None else along(n, x, zero, axis, block))


@op("DynamicQuantizeLinear")
def dynamic_quantize_linear(n: NodeContext) -> list[RelayExpr]:
    """uint8 values, with a scale and a zero point taken from the data's range (made to hold 0)."""
    x = n.need(0)
    low = call("minimum", reduce("min", x, None, False), n.like(0, x))
    high = call("maximum", reduce("max", x, None, False), n.like(0, x))
    scale = call("divide", call("subtract", high, low), n.like(255, x))
    at_zero = call("equal", scale, n.like(0, x))
    divisor = call("where", at_zero, n.like(1, x), scale)
    zero = round_half_even(n, call("clip", call("divide", call("negative", low), divisor), a_min=0.0, a_max=255.0))
    zero = cast(zero, "uint8")
    return [quantized(n, x, divisor, zero, "uint8"), scale, zero]


def centred(n: NodeContext, x: RelayExpr, zero: RelayExpr | None, axis: int = 1) -> RelayExpr:
    """x - zero as int32."""
    whole = n.to(x, "int32")
    if zero is None or n.value(zero) is not None and not n.value(zero).any():  # type: ignore[union-attr]
        return whole
    return call("subtract", whole, n.to(along(n, x, zero, axis), "int32"))


@op("MatMulInteger")
def matmul_integer(n: NodeContext) -> RelayExpr:
    """A product of centred integers, as int32."""
    return _integer_product(n, n.need(0), n.need(1), n.input(2), n.input(3))


def _integer_product(n: NodeContext, a: RelayExpr, b: RelayExpr, a_zero: RelayExpr | None, b_zero: RelayExpr | None) -> RelayExpr:
    left = centred(n, a, a_zero, max(n.rank(a) - 2, 0))
    return matmul(n, left, centred(n, b, b_zero, n.rank(b) - 1), "int32")


@op("MatMulIntegerToFloat", domain=MICROSOFT)
def matmul_integer_to_float(n: NodeContext) -> RelayExpr:
    """A product of centred integers, times both scales, plus a bias."""
    a, b, a_scale, b_scale = n.needs(4)
    product = cast(_integer_product(n, a, b, n.input(4), n.input(5)), n.dtype(a_scale))
    y = call("multiply", product, call("multiply", a_scale, b_scale))
    return y if n.input(6) is None else call("add", y, n.input(6))


@op("DynamicQuantizeMatMul", domain=MICROSOFT)
def dynamic_quantize_matmul(n: NodeContext) -> RelayExpr:
    """A float matrix, quantised on the fly, times an integer one."""
    x, b, b_scale = n.needs(3)
    a, a_scale, a_zero = dynamic_quantize_linear(n)
    product = cast(_integer_product(n, a, b, a_zero, n.input(3)), n.dtype(x))
    y = call("multiply", product, call("multiply", a_scale, b_scale))
    return y if n.input(4) is None else call("add", y, n.input(4))


@op("ConvInteger")
def conv_integer(n: NodeContext) -> RelayExpr:
    """A convolution of centred integers, as int32."""
    x, w = n.needs(2)
    return conv_of(n, centred(n, x, n.input(2)), centred(n, w, n.input(3), 0), "int32")


def requantized(n: NodeContext, acc: RelayExpr, factor: RelayExpr, y_scale: RelayExpr, y_zero: RelayExpr, axis: int) -> RelayExpr:
    """int32 sums times a factor (one, or one per entry of ``axis``) over the result's scale, as the result's integers."""
    ratio = call("divide", factor, reshape(y_scale, []))
    real = call("multiply", cast(acc, n.dtype(factor)), along(n, acc, ratio, axis))
    return rounded(n, real, along(n, acc, y_zero, axis), n.dtype(y_zero))


@op("QLinearMatMul")
def qlinear_matmul(n: NodeContext) -> RelayExpr:
    """A product of quantised matrices."""
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = n.needs(8)
    acc = _integer_product(n, a, b, a_zero, b_zero)
    axis = n.rank(acc) - 1
    if all(n.rank(s) == 0 or n.dims(s) == (1,) for s in (a_scale, y_scale)):
        return requantized(n, acc, call("multiply", reshape(a_scale, []), b_scale), y_scale, y_zero, axis)
    real = call("multiply", call("multiply", cast(acc, n.dtype(a_scale)), along(n, acc, a_scale, axis - 1)), along(n, acc, b_scale, axis))
    return quantized(n, real, along(n, acc, y_scale, axis), along(n, acc, y_zero, axis), n.dtype(y_zero))


@op("QLinearConv")
def qlinear_conv(n: NodeContext) -> RelayExpr:
    """A convolution of quantised data and weights, with an int32 bias."""
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = n.needs(8)
    acc = conv_of(n, centred(n, x, x_zero), centred(n, w, w_zero, 0), "int32")
    factor = call("multiply", reshape(x_scale, []), w_scale)
    return requantized(n, with_bias(acc, n.input(8)), factor, y_scale, y_zero, 1)


# ---- com.microsoft -----------------------------------------------------------------------------------------------------

def _real(n: NodeContext, index: int) -> RelayExpr:
    """Input ``index`` as floats, by the scale and zero point after it."""
    x, scale = n.need(index), reshape(n.need(index + 1), [])
    zero = n.input(index + 2)
    return dequantized(n, x, scale, None if zero is None else reshape(zero, []))


def _out(n: NodeContext, y: RelayExpr, index: int, dtype: str) -> RelayExpr:
    """Floats as integers, by the scale at ``index`` and the zero point after it."""
    zero = n.input(index + 1)
    return quantized(n, y, reshape(n.need(index), []), None if zero is None else reshape(zero, []), dtype)


def _qlinear_binary(name: str) -> Any:
    def convert(n: NodeContext) -> RelayExpr:
        """An operation on two quantised tensors."""
        return _out(n, call(name, _real(n, 0), _real(n, 3)), 6, n.dtype(n.need(0)))

    return convert


op("QLinearAdd", domain=MICROSOFT)(_qlinear_binary("add"))
op("QLinearMul", domain=MICROSOFT)(_qlinear_binary("multiply"))


@op("QLinearSigmoid", domain=MICROSOFT)
def qlinear_sigmoid(n: NodeContext) -> RelayExpr:
    """The sigmoid of quantised data."""
    return _out(n, call("sigmoid", _real(n, 0)), 3, n.dtype(n.need(0)))


@op("QLinearLeakyRelu", domain=MICROSOFT)
def qlinear_leaky_relu(n: NodeContext) -> RelayExpr:
    """The leaky Relu of quantised data."""
    return _out(n, call("nn.leaky_relu", _real(n, 0), alpha=n.attr("alpha", 0.01)), 3, n.dtype(n.need(0)))


@op("QLinearSoftmax", domain=MICROSOFT)
def qlinear_softmax(n: NodeContext) -> RelayExpr:
    """The softmax of quantised data."""
    x = _real(n, 0)
    return _out(n, call("nn.softmax", x, axis=n.axis(n.attr("axis", -1), n.rank(x))), 3, n.dtype(n.need(0)))


@op("QLinearGlobalAveragePool", domain=MICROSOFT)
def qlinear_global_average_pool(n: NodeContext) -> RelayExpr:
    """The mean of each plane of quantised data."""
    x = _real(n, 0)
    rank = n.rank(x)
    axes = list(range(1, rank - 1)) if n.attr("channels_last", 0) else list(range(2, rank))
    return _out(n, reduce("mean", x, axes, True), 3, n.dtype(n.need(0)))


@op("QLinearAveragePool", domain=MICROSOFT)
def qlinear_average_pool(n: NodeContext) -> RelayExpr:
    """The mean of each window of quantised data."""
    x = _real(n, 0)
    rank = n.rank(x)
    last = bool(n.attr("channels_last", 0))
    y = averages(n, transpose(x, [0, rank - 1, *range(1, rank - 1)]) if last else x)
    return _out(n, transpose(y, [0, *range(2, rank), 1]) if last else y, 3, n.dtype(n.need(0)))


@op("QLinearConcat", domain=MICROSOFT)
def qlinear_concat(n: NodeContext) -> RelayExpr:
    """Quantised tensors joined along an axis."""
    parts = [_real(n, i) for i in range(2, len(n.inputs), 3)]
    return _out(n, concat(parts, n.axis(n.attr("axis"), n.rank(parts[0]))), 0, n.dtype(n.need(2)))


@op("QGemm", domain=MICROSOFT)
def qgemm(n: NodeContext) -> RelayExpr:
    """alpha A B + C of quantised matrices; without an output scale the result is float."""
    a, a_scale, a_zero, b, b_scale, b_zero = n.needs(6)
    left, right = centred(n, a, a_zero), centred(n, b, b_zero, 0 if n.attr("transB", 0) else 1)
    left = transpose(left, [1, 0]) if n.attr("transA", 0) else left
    right = transpose(right, [1, 0]) if n.attr("transB", 0) else right
    acc = matmul(n, left, right, "int32")
    acc = acc if n.input(6) is None else call("add", acc, n.input(6))
    factor = call("multiply", call("multiply", reshape(a_scale, []), b_scale), const(n.attr("alpha", 1.0), n.dtype(a_scale)))
    real = call("multiply", cast(acc, n.dtype(a_scale)), along(n, acc, factor, 1))
    return real if n.input(7) is None else _out(n, real, 7, n.dtype(a))
