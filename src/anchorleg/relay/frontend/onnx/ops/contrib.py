"""Operators of ``com.microsoft`` that exporters and optimisers emit."""
from __future__ import annotations

import math

import numpy as np

from .....ir.expr import RelayExpr
from .....support.errors import ArgumentError, UnsupportedOpError
from ..context import NodeContext
from ..make import call, concat, const, reshape, slice_axis, split, stack, transpose, where
from ..registry import MICROSOFT, op
from .activation import gelu_of, hard_sigmoid_of
from .conv import conv
from .linear import gemm_of, matmul
from .norm import layer_norm_parts, rms_norm_of


@op("Gelu", domain=MICROSOFT)
def gelu(n: NodeContext) -> RelayExpr:
    """The exact Gelu."""
    return gelu_of(n, n.need(0))


@op("BiasGelu", domain=MICROSOFT)
def bias_gelu(n: NodeContext) -> RelayExpr:
    """The Gelu of a sum."""
    return gelu_of(n, call("add", *n.needs(2)))


@op("FastGelu", domain=MICROSOFT)
def fast_gelu(n: NodeContext) -> RelayExpr:
    """The Gelu by tanh, of the input plus an optional bias."""
    x = n.need(0)
    return gelu_of(n, x if n.input(1) is None else call("add", x, n.input(1)), "tanh")


def fused_activation(n: NodeContext, y: RelayExpr, name: str, params: list[float]) -> RelayExpr:
    """``y`` through an activation given by name and numbers."""
    known = {"": lambda: y, "Relu": lambda: call("nn.relu", y), "Tanh": lambda: call("tanh", y), "Sigmoid": lambda: call("sigmoid", y),
             "LeakyRelu": lambda: call("nn.leaky_relu", y, alpha=(params or [0.01])[0]),
             "Clip": lambda: call("clip", y, a_min=params[0], a_max=params[1]),
             "HardSigmoid": lambda: hard_sigmoid_of(n, y, *(params or [0.2, 0.5]))}
    if name not in known:
        raise UnsupportedOpError(f"the fused activation {name!r} is not known; known: {', '.join(k for k in known if k)}")
    return known[name]()


@op("FusedConv", domain=MICROSOFT)
def fused_conv(n: NodeContext) -> RelayExpr:
    """A convolution, plus another tensor, through an activation."""
    y = conv(n)
    y = y if n.input(3) is None else call("add", y, n.input(3))
    return fused_activation(n, y, n.attr("activation", ""), list(n.attr("activation_params", [])))


@op("FusedGemm", domain=MICROSOFT)
def fused_gemm(n: NodeContext) -> RelayExpr:
    """A Gemm through an activation."""
    n.version = max(n.version, 11)
    params = [n.attr(f"activation_{k}") for k in ("alpha", "beta") if f"activation_{k}" in n.attributes]
    return fused_activation(n, gemm_of(n, n.need(0), n.need(1), n.input(2)), n.attr("activation", ""), params)


@op("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_norm(n: NodeContext) -> list[RelayExpr]:
    """Layer normalisation of a sum, which is the fourth result."""
    x, skip, gamma = n.needs(3)
    total = call("add", x, skip)
    total = total if n.input(4) is None else call("add", total, n.input(4))
    y, mean, inverse = layer_norm_parts(n, total, gamma, n.input(3), n.rank(x) - 1, n.attr("epsilon", 1e-12))
    return [y, mean, inverse, total]


@op("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_rms_norm(n: NodeContext) -> list[RelayExpr]:
    """A sum over the root of its mean square; the sum is the fourth result."""
    x, skip, gamma = n.needs(3)
    total = call("add", x, skip)
    total = total if n.input(3) is None else call("add", total, n.input(3))
    y = rms_norm_of(n, total, gamma, [n.rank(x) - 1], n.attr("epsilon", 1e-12))
    return [y, total, total, total]


@op("EmbedLayerNormalization", domain=MICROSOFT)
def embed_layer_norm(n: NodeContext) -> list[RelayExpr]:
    """Word, position and segment embeddings added and normalised; also the number of words that the mask keeps."""
    ids, segments, words, positions = n.need(0), n.input(1), n.need(2), n.need(3)
    batch, length = n.static_dims(ids)

    def pick(table: RelayExpr, at: RelayExpr) -> RelayExpr:
        return call("take", table, at, axis=0, batch_dims=0, mode="clip")

    places = n.input(8) if n.input(8) is not None else const(np.arange(length)[None], "int64")
    total = call("add", pick(words, ids), pick(positions, places))
    if segments is not None and n.input(4) is not None:
        total = call("add", total, pick(n.need(4), segments))
    y = layer_norm_parts(n, total, n.need(5), n.need(6), 2, n.attr("epsilon", 1e-12))[0]
    mask = n.input(7)
    kept = const(np.full(batch, 0), "int32") if mask is None else call("sum", n.to(mask, "int32"), axis=(1,), keepdims=False, exclude=False)
    return [y, kept, total]


@op("Attention", domain=MICROSOFT)
def attention(n: NodeContext) -> list[RelayExpr]:
    """Self-attention with one weight for queries, keys and values; no past, no relative positions."""
    x, weight = n.needs(2)
    if any(n.input(i) is not None for i in (4, 5, 6)) or n.wants(1):
        raise UnsupportedOpError("attention with a past, an additive bias or a present result is not supported")
    heads, (batch, length, _) = n.attr("num_heads"), n.static_dims(x)
    sizes = n.attr("qkv_hidden_sizes", None) or [n.static_dims(weight)[1] // 3] * 3
    whole = matmul(n, x, weight)
    whole = whole if n.input(2) is None else call("add", whole, n.input(2))
    q, k, v = split(whole, list(np.cumsum(sizes)[:-1]), 2)
    q, k, v = (transpose(reshape(p, [batch, length, heads, s // heads]), [0, 2, 1, 3]) for p, s in zip((q, k, v), sizes))
    scale = n.attr("scale", 0.0) or 1 / math.sqrt(sizes[0] // heads)
    scores = call("multiply", matmul(n, q, transpose(k, [0, 1, 3, 2])), n.like(scale, x))
    scores = _masked(n, scores, length)
    y = transpose(matmul(n, call("nn.softmax", scores, axis=-1), v), [0, 2, 1, 3])
    return [reshape(y, [batch, length, sizes[2]])]


def _masked(n: NodeContext, scores: RelayExpr, length: int) -> RelayExpr:
    low, mask = n.like(n.attr("mask_filter_value", -10000.0), scores), n.input(3)
    if n.attr("unidirectional", 0):
        scores = where(const(np.tril(np.ones((length, length))), "bool"), scores, low)
    if mask is None:
        return scores
    dims = n.dims(mask)
    if len(dims) == 1:
        raise UnsupportedOpError("an attention mask given by lengths is not supported; one of two or three dimensions is")
    axes = [1, 2] if len(dims) == 2 else [1]
    for axis in axes:
        mask = call("expand_dims", mask, axis=axis, num_newaxis=1)
    off = call("multiply", call("subtract", n.like(1, scores), n.to(mask, n.dtype(scores))), low)
    return call("add", scores, off)


@op("RotaryEmbedding", domain=MICROSOFT)
def rotary_embedding(n: NodeContext) -> RelayExpr:
    """Pairs of channels rotated by angles that depend on the position."""
    x, positions, cos, sin = n.needs(4)
    dims = n.static_dims(x)
    half = n.static_dims(cos)[1]
    heads = n.attr("num_heads", 0)
    if len(dims) == 3:
        heads = heads or dims[2] // (2 * half)
        x = transpose(reshape(x, [dims[0], dims[1], heads, dims[2] // heads]), [0, 2, 1, 3])
    batch, _, length, size = n.static_dims(x)
    if n.static_dims(positions) == (1,):
        positions = call("add", reshape(positions, [1, 1]), const(np.arange(length)[None], "int64"))
    angles = [call("expand_dims", call("take", t, positions, axis=0, batch_dims=0, mode="clip"), axis=1, num_newaxis=1) for t in (cos, sin)]
    y = _rotate(n, x, *angles, half, size, bool(n.attr("interleaved", 0)))
    return reshape(transpose(y, [0, 2, 1, 3]), list(dims)) if len(dims) == 3 else y


def _rotate(n: NodeContext, x: RelayExpr, cos: RelayExpr, sin: RelayExpr, half: int, size: int, interleaved: bool) -> RelayExpr:
    if 2 * half > size:
        raise ArgumentError(f"the tables hold {half} angles, but there are {size} channels")
    turned, rest = slice_axis(x, 3, 0, 2 * half), slice_axis(x, 3, 2 * half, size)
    step = 2 if interleaved else 1
    a = slice_axis(turned, 3, 0, 2 * half if interleaved else half, step)
    b = slice_axis(turned, 3, 1 if interleaved else half, 2 * half, step)
    real = call("subtract", call("multiply", a, cos), call("multiply", b, sin))
    imaginary = call("add", call("multiply", a, sin), call("multiply", b, cos))
    if interleaved:
        lead = list(n.static_dims(x)[:3])
        joined = reshape(stack([real, imaginary], 4), [*lead, 2 * half])
    else:
        joined = concat([real, imaginary], 3)
    return joined if 2 * half == size else concat([joined, rest], 3)
