"""Random ONNX models of the kinds people run: convolutional, recurrent, attention, element-wise; one seed is one model.

Sizes are odd on purpose (channels of 3, 5, 17, 100, extents of 1, 7, 13, 1001): a kernel that is right only for
multiples of its vector width, or a layout that assumes divisible channels, does not survive them.

Run as a program to try many seeds: ``python -m tests.cases.random_networks conv 0 200``.
"""
from __future__ import annotations

import sys
from typing import Any, Callable, Iterable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CHANNELS = (1, 2, 3, 5, 7, 8, 16, 17, 24, 32, 40, 100)
EXTENTS = (1, 2, 3, 5, 7, 8, 13, 14, 16, 19, 28, 33)
WIDTHS = (1, 7, 8, 13, 16, 64, 100, 129, 1000, 1001)
UNARY = ("Relu", "Sigmoid", "Tanh", "HardSwish", "HardSigmoid", "Elu", "LeakyRelu", "Softplus", "Softsign", "Neg", "Abs", "Erf", "Sin", "Cos", "Atan",
         "Floor", "Ceil", "Selu", "Celu", "ThresholdedRelu", "Identity", "Mish", "Sign", "Round", "Reciprocal")
ONLY_FLOAT32 = ("Celu", "HardSigmoid", "Elu", "Selu", "Softplus", "Softsign", "LeakyRelu", "Erf", "Mish", "ThresholdedRelu", "Atan")  # in ONNX Runtime


class Builder:
    """A growing ONNX graph with the shape of every value at hand."""

    def __init__(self, seed: int, dtype: str = "float32", opset: int = 18) -> None:
        self.rng = np.random.default_rng(seed)
        self.dtype, self.opset = dtype, opset
        self.nodes: list[Any] = []
        self.inits: list[Any] = []
        self.inputs: list[Any] = []
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.values: dict[str, np.ndarray] = {}
        self._count = 0

    def pick(self, options: Iterable[Any]) -> Any:
        choices = list(options)
        return choices[int(self.rng.integers(len(choices)))]

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def fresh(self, stem: str) -> str:
        self._count += 1
        return f"{stem}_{self._count}"

    def input(self, shape: Iterable[int], dtype: str | None = None, high: int = 50) -> str:
        name, kind, dims = self.fresh("x"), np.dtype(dtype or self.dtype), tuple(shape)
        self.inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(kind), dims))
        self.shapes[name] = dims
        self.values[name] = (self.rng.standard_normal(dims) if kind.kind == "f" else self.rng.integers(0, high, dims)).astype(kind)
        return name

    def const(self, value: Any, dtype: str | None = None) -> str:
        name, array = self.fresh("c"), np.asarray(value, dtype or self.dtype)
        self.inits.append(numpy_helper.from_array(array, name))
        self.shapes[name] = array.shape
        return name

    def weight(self, *shape: int) -> str:
        scale = 1 / np.sqrt(max(1, np.prod(shape[1:]) if len(shape) > 1 else 1))
        return self.const(self.rng.standard_normal(shape) * scale)

    def ints(self, *values: int) -> str:
        return self.const(np.array(values), "int64")

    def node(self, op: str, args: Iterable[str], shape: Iterable[int] | list[Any], n: int = 1, **attrs: Any) -> Any:
        names = [self.fresh(op.lower()) for _ in range(n)]
        self.nodes.append(helper.make_node(op, list(args), names, name=names[0] + "_node", **attrs))
        for name, each in zip(names, [shape] if n == 1 else list(shape)):
            self.shapes[name] = tuple(int(d) for d in each)  # type: ignore[union-attr]
        return names[0] if n == 1 else names

    def unary(self, x: str) -> str:
        op = self.pick(UNARY)
        if self.dtype == "float16" and op in ("Celu", "Round", "Floor", "Ceil", "Sign", "Reciprocal"):
            op = "Relu"  # ONNX Runtime lacks the first, the others are steps: half a unit of rounding becomes a whole one
        if self.dtype == "float64" and op in ONLY_FLOAT32 or self.dtype != "float32" and op == "HardSwish":
            op = "Tanh"
        if op == "Reciprocal":
            x = self.node("Add", [self.node("Abs", [x], self.shapes[x]), self.const(1)], self.shapes[x])
        return self.node(op, [x], self.shapes[x])

    def model(self, outputs: Iterable[str]) -> onnx.ModelProto:
        out = [helper.make_empty_tensor_value_info(o) for o in outputs]
        graph = helper.make_graph(self.nodes, "random", self.inputs, out, self.inits)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        model.ir_version = 8
        return model


def _out(size: int, k: int, s: int, d: int, lo: int, hi: int) -> int:
    return (size + lo + hi - d * (k - 1) - 1) // s + 1


def conv(b: Builder, x: str, rank: int, out: int | None = None, kernel: int | None = None, stride: int | None = None) -> str:
    """Any convolution: groups, depthwise multipliers, dilation, uneven padding, with or without a bias."""
    n, c, *size = b.shapes[x]
    out = out or b.pick(CHANNELS)
    group = 1
    kind = b.pick(["plain", "plain", "depthwise", "grouped"])
    if kind == "depthwise":
        group, out = c, c * b.pick([1, 1, 2, 3])
    elif kind == "grouped":
        group = b.pick([g for g in (2, 3, 4, 5, 8) if c % g == 0] or [1])
        out = max(1, out // group) * group
    ks, ss, ds, lo, hi = [], [], [], [], []
    for extent in size:
        k, d = kernel or b.pick([1, 1, 2, 3, 3, 5, 7]), b.pick([1, 1, 1, 2, 3])
        before, after = (int(v) for v in b.rng.integers(0, k + 1, 2))
        if before + after + extent < d * (k - 1) + 1:
            d, before, after = 1, k // 2, k - k // 2
        ks.append(k), ds.append(d), lo.append(before), hi.append(after), ss.append(stride or b.pick([1, 1, 1, 2, 3]))
    shape = [n, out, *(_out(*row) for row in zip(size, ks, ss, ds, lo, hi))]
    args = [x, b.weight(out, c // group, *ks)] + ([b.weight(out)] if b.chance(0.6) else [])
    return b.node("Conv", args, shape, kernel_shape=ks, strides=ss, dilations=ds, group=group, pads=lo + hi)


def conv_transpose(b: Builder, x: str, rank: int) -> str:
    n, c, *size = b.shapes[x]
    group = b.pick([g for g in (1, 1, 2, 3) if c % g == 0])
    out = b.pick(CHANNELS[:8])
    ks, ss, lo, hi, op = [], [], [], [], []
    for extent in size:
        k, s = b.pick([1, 2, 3, 4, 5]), b.pick([1, 2, 3])
        pads = b.rng.integers(0, k // 2 + 1, 2)
        ks.append(k), ss.append(s), lo.append(int(pads[0])), hi.append(int(pads[1])), op.append(int(b.rng.integers(0, s)))
    shape = [n, out * group, *(s * (e - 1) + o + k - l - h for e, k, s, l, h, o in zip(size, ks, ss, lo, hi, op))]
    if min(shape) < 1:
        return x
    args = [x, b.weight(c, out, *ks)] + ([b.weight(out * group)] if b.chance(0.5) else [])
    return b.node("ConvTranspose", args, shape, kernel_shape=ks, strides=ss, group=group, pads=lo + hi, output_padding=op)


def pool(b: Builder, x: str) -> str:
    n, c, *size = b.shapes[x]
    op = b.pick(["MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"])
    if op.startswith("Global"):
        pooled = b.node(op, [x], [n, c] + [1] * len(size))
        return b.node("Mul", [x, pooled], b.shapes[x])
    ks, ss, lo, hi = [], [], [], []
    for extent in size:
        k = b.pick([k for k in (1, 2, 3, 5) if k <= extent])
        ks.append(k), ss.append(b.pick([1, 2, 3])), lo.append(int(b.rng.integers(0, k))), hi.append(int(b.rng.integers(0, k)))
    attrs = {"count_include_pad": int(b.chance(0.5))} if op == "AveragePool" else {}
    return b.node(op, [x], [n, c, *(_out(e, k, s, 1, l, h) for e, k, s, l, h in zip(size, ks, ss, lo, hi))],
                  kernel_shape=ks, strides=ss, pads=lo + hi, **attrs)


def norm(b: Builder, x: str) -> str:
    c = b.shapes[x][1]
    op = b.pick(["BatchNormalization", "BatchNormalization", "InstanceNormalization", "LRN"])
    if op == "LRN" and len(b.shapes[x]) == 4:
        return b.node(op, [x], b.shapes[x], size=b.pick([1, 3, 5]))
    if op == "InstanceNormalization":
        return b.node(op, [x, b.weight(c), b.weight(c)], b.shapes[x])
    stats = [b.weight(c), b.weight(c), b.weight(c), b.const(np.abs(b.rng.standard_normal(c)) + 0.5)]
    return b.node("BatchNormalization", [x, *stats], b.shapes[x])


def squeeze_excite(b: Builder, x: str) -> str:
    n, c, *size = b.shapes[x]
    ones = [1] * len(size)
    mid = max(1, c // 4)
    y = b.node("GlobalAveragePool", [x], [n, c, *ones])
    y = b.node("Relu", [b.node("Conv", [y, b.weight(mid, c, *ones), b.weight(mid)], [n, mid, *ones])], [n, mid, *ones])
    y = b.node("Conv", [y, b.weight(c, mid, *ones), b.weight(c)], [n, c, *ones])
    gate = b.node(b.pick(["HardSigmoid", "Sigmoid"]), [y], [n, c, *ones])
    return b.node("Mul", [x, gate], b.shapes[x])


def shuffle(b: Builder, x: str) -> str:
    n, c, *size = b.shapes[x]
    group = b.pick([g for g in (2, 3, 4, 5) if c % g == 0] or [1])
    y = b.node("Reshape", [x, b.ints(n, group, c // group, *size)], [n, group, c // group, *size])
    order = [0, 2, 1, *range(3, 3 + len(size))]
    y = b.node("Transpose", [y], [n, c // group, group, *size], perm=order)
    return b.node("Reshape", [y, b.ints(n, c, *size)], [n, c, *size])


def split_concat(b: Builder, x: str) -> str:
    n, c, *size = b.shapes[x]
    if c < 2:
        return b.node("Concat", [x, x, x], [n, 3, *size], axis=1)
    cut = int(b.rng.integers(1, c))
    parts = b.node("Split", [x, b.ints(cut, c - cut)], [[n, cut, *size], [n, c - cut, *size]], n=2, axis=1)
    left = b.unary(parts[0])
    right = conv(b, parts[1], len(size), kernel=1, stride=1) if b.chance(0.5) else b.unary(parts[1])
    if b.shapes[right][2:] != b.shapes[left][2:]:
        right = parts[1]
    total = b.shapes[left][1] + b.shapes[right][1]
    return b.node("Concat", [right, left], [n, total, *size], axis=1)


def inception(b: Builder, x: str) -> str:
    n, c, *size = b.shapes[x]
    branches = []
    for _ in range(b.pick([2, 3, 4])):
        k = b.pick([1, 3, 5])
        out = b.pick(CHANNELS[:9])
        pad = [k // 2] * len(size)
        y = b.node("Conv", [x, b.weight(out, c, *[k] * len(size))] + ([b.weight(out)] if b.chance(0.5) else []), [n, out, *size],
                   kernel_shape=[k] * len(size), pads=pad + pad)
        branches.append(b.unary(y) if b.chance(0.5) else y)
    return b.node("Concat", branches, [n, sum(b.shapes[y][1] for y in branches), *size], axis=1)


def residual(b: Builder, x: str) -> str:
    n, c, *size = b.shapes[x]
    ones = [1] * len(size)
    y = b.node("Conv", [x, b.weight(c, c, *[3] * len(size))], b.shapes[x], kernel_shape=[3] * len(size), pads=ones + ones)
    y = b.unary(norm(b, y))
    y = b.node("Conv", [y, b.weight(c, c, *ones), b.weight(c)], b.shapes[x], kernel_shape=ones)
    return b.node("Relu", [b.node("Add", [y, x], b.shapes[x])], b.shapes[x])


def resize(b: Builder, x: str) -> str:
    n, c, *size = b.shapes[x]
    if len(size) != 2 or n * c * size[0] * size[1] > 20000:
        return x
    mode, coord = b.pick([("nearest", "asymmetric"), ("nearest", "half_pixel"), ("linear", "half_pixel"), ("linear", "align_corners"), ("linear", "asymmetric"),
                          ("cubic", "half_pixel")])
    factor = b.pick([1, 2, 3])
    out = [n, c, *(e * factor for e in size)] if b.chance(0.6) else [n, c, size[0] + 3, size[1] * 2 + 1]
    attrs = {"nearest_mode": b.pick(["floor", "round_prefer_floor", "ceil", "round_prefer_ceil"])} if mode == "nearest" else {}
    return b.node("Resize", [x, "", "", b.ints(*out)], out, mode=mode, coordinate_transformation_mode=coord, **attrs)


def pad(b: Builder, x: str) -> str:
    n, c, *size = b.shapes[x]
    mode = b.pick(["constant", "reflect", "edge"])
    lo, hi = [0, 0], [0, 0]
    for extent in size:
        top = extent - 1 if mode == "reflect" else 3
        lo.append(int(b.rng.integers(0, min(3, top) + 1))), hi.append(int(b.rng.integers(0, min(3, top) + 1)))
    shape = [d + l + h for d, l, h in zip(b.shapes[x], lo, hi)]
    return b.node("Pad", [x, b.ints(*lo, *hi)], shape, mode=mode)


def slice_(b: Builder, x: str) -> str:
    n, c, *size = b.shapes[x]
    starts, ends, steps = [], [], []
    for extent in (c, *size):
        lo = int(b.rng.integers(0, extent))
        starts.append(lo), ends.append(int(b.rng.integers(lo + 1, extent + 1))), steps.append(b.pick([1, 1, 2]))
    shape = [n, *(-(-(e - s) // t) for s, e, t in zip(starts, ends, steps))]
    return b.node("Slice", [x, b.ints(*starts), b.ints(*ends), b.ints(*range(1, 2 + len(size))), b.ints(*steps)], shape)


def scale_shift(b: Builder, x: str) -> str:
    c, rank = b.shapes[x][1], len(b.shapes[x])
    y = b.node("Mul", [x, b.const(b.rng.standard_normal((c,) + (1,) * (rank - 2)))], b.shapes[x])
    return b.node(b.pick(["Add", "Sub"]), [y, b.const(b.rng.standard_normal((1, c) + (1,) * (rank - 2)))], b.shapes[x])


_CONV_BLOCKS: tuple[Callable[..., str], ...] = (residual, squeeze_excite, shuffle, split_concat, inception, pool, norm, resize, pad, slice_, scale_shift)


def _block(b: Builder, x: str, rank: int) -> str:
    kind = b.rng.random()
    if np.prod(b.shapes[x]) > 60000:
        return slice_(b, x) if kind < 0.5 else conv(b, x, rank, out=3, stride=3)
    if kind < 0.3:
        return conv(b, x, rank)
    if kind < 0.4:
        return conv_transpose(b, x, rank)
    if kind < 0.5:
        return b.unary(x)
    return b.pick(_CONV_BLOCKS)(b, x)


def convolutional(seed: int, rank: int = 2, dtype: str = "float32", blocks: int = 6) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A network over images (``rank`` spatial axes) that ends in a dense layer or in its last feature map."""
    b = Builder(seed, dtype)
    limit = {1: 12, 2: 9, 3: 6}[rank]
    x = b.input([b.pick([1, 1, 2, 3]), b.pick(CHANNELS[:9]), *(b.pick(EXTENTS[:limit]) for _ in range(rank))])
    taps = []
    for _ in range(int(b.rng.integers(2, blocks + 1))):
        x = _block(b, x, rank)
        taps += [x] if b.chance(0.15) else []
    if b.chance(0.5):
        n, c, *size = b.shapes[x]
        x = dense(b, b.node("Flatten", [x], [n, c * int(np.prod(size))]))
        x = b.node(b.pick(["Softmax", "LogSoftmax"]), [x], b.shapes[x], axis=-1)
    return b.model(list(dict.fromkeys([*taps, x]))), b.values


def dense(b: Builder, x: str) -> str:
    n, k = b.shapes[x]
    m = b.pick(WIDTHS)
    form = b.pick(["Gemm", "GemmT", "MatMul"])
    if form == "MatMul":
        y = b.node("MatMul", [x, b.weight(k, m)], [n, m])
        return b.node("Add", [y, b.weight(m)], [n, m]) if b.chance(0.6) else y
    flip = form == "GemmT"
    args = [x, b.weight(m, k) if flip else b.weight(k, m)] + ([b.weight(m)] if b.chance(0.7) else [])
    attrs = {"alpha": 0.5, "beta": 2.0} if b.chance(0.2) else {}
    return b.node("Gemm", args, [n, m], transB=int(flip), **attrs)


def multilayer(seed: int, dtype: str = "float32") -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Dense layers of odd widths."""
    b = Builder(seed, dtype)
    x = b.input([b.pick([1, 1, 2, 5, 17]), b.pick(WIDTHS)])
    for _ in range(int(b.rng.integers(1, 5))):
        x = dense(b, x)
        x = b.unary(x) if b.chance(0.7) else x
        if b.chance(0.3) and dtype != "float16":
            w = b.shapes[x][1]
            x = b.node("LayerNormalization", [x, b.weight(w), b.weight(w)], b.shapes[x], epsilon=1e-3)
    return b.model([x]), b.values


def _gelu(b: Builder, x: str) -> str:
    shape = b.shapes[x]
    if b.chance(0.5):
        inner = b.node("Erf", [b.node("Div", [x, b.const(np.sqrt(2.0))], shape)], shape)
        return b.node("Mul", [b.node("Mul", [x, b.node("Add", [inner, b.const(1)], shape)], shape), b.const(0.5)], shape)
    cube = b.node("Pow", [x, b.const(3)], shape)
    inner = b.node("Add", [x, b.node("Mul", [cube, b.const(0.044715)], shape)], shape)
    inner = b.node("Tanh", [b.node("Mul", [inner, b.const(0.7978845608)], shape)], shape)
    return b.node("Mul", [b.node("Mul", [x, b.const(0.5)], shape), b.node("Add", [inner, b.const(1)], shape)], shape)


def _layer_norm(b: Builder, x: str) -> str:
    shape, w = b.shapes[x], b.shapes[x][-1]
    if b.chance(0.5):
        return b.node("LayerNormalization", [x, b.weight(w), b.weight(w)], shape, epsilon=1e-5)
    col = [*shape[:-1], 1]
    mean = b.node("ReduceMean", [x, b.ints(-1)], col)
    diff = b.node("Sub", [x, mean], shape)
    var = b.node("ReduceMean", [b.node("Pow", [diff, b.const(2)], shape), b.ints(-1)], col)
    std = b.node("Sqrt", [b.node("Add", [var, b.const(1e-5)], col)], col)
    return b.node("Add", [b.node("Mul", [b.node("Div", [diff, std], shape), b.weight(w)], shape), b.weight(w)], shape)


def _project(b: Builder, x: str, m: int) -> str:
    n, t, k = b.shapes[x]
    y = b.node("MatMul", [x, b.weight(k, m)], [n, t, m])
    return b.node("Add", [b.weight(m), y], [n, t, m]) if b.chance(0.7) else y


def _attention(b: Builder, x: str, heads: int, mask: str | None) -> str:
    n, t, w = b.shapes[x]
    d = w // heads

    def split(y: str, last: bool) -> str:
        y = b.node("Reshape", [y, b.ints(0, 0, heads, d)], [n, t, heads, d])
        return b.node("Transpose", [y], [n, heads, d, t] if last else [n, heads, t, d], perm=[0, 2, 3, 1] if last else [0, 2, 1, 3])

    q, k, v = split(_project(b, x, w), False), split(_project(b, x, w), True), split(_project(b, x, w), False)
    score = b.node("MatMul", [q, k], [n, heads, t, t])
    score = b.node("Div", [score, b.const(np.sqrt(d))], [n, heads, t, t])
    if mask is not None:
        score = b.node("Add", [score, mask], [n, heads, t, t])
    score = b.node("Softmax", [score], [n, heads, t, t], axis=-1)
    y = b.node("Transpose", [b.node("MatMul", [score, v], [n, heads, t, d])], [n, t, heads, d], perm=[0, 2, 1, 3])
    return _project(b, b.node("Reshape", [y, b.ints(0, 0, w)], [n, t, w]), w)


def transformer(seed: int, dtype: str = "float32") -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Token embedding, attention blocks with odd sequence lengths and heads, and a head."""
    b = Builder(seed, dtype)
    n, t = b.pick([1, 1, 2, 3]), b.pick([1, 2, 5, 7, 13, 17, 33])
    heads, d = b.pick([1, 2, 3, 5]), b.pick([1, 4, 7, 8, 20])
    w = heads * d
    x = b.node("Gather", [b.weight(50, w), b.input([n, t], "int64")], [n, t, w])
    x = b.node("Add", [x, b.weight(1, t, w)], [n, t, w])
    mask = None
    if b.chance(0.6):
        keep = b.node("Cast", [b.input([n, t], "int64", high=2)], [n, t], to=TensorProto.FLOAT if dtype == "float32" else TensorProto.DOUBLE)
        keep = b.node("Unsqueeze", [keep, b.ints(1, 2)], [n, 1, 1, t])
        mask = b.node("Mul", [b.node("Sub", [b.const(1), keep], [n, 1, 1, t]), b.const(-10000)], [n, 1, 1, t])
    for _ in range(int(b.rng.integers(1, 3))):
        x = _layer_norm(b, b.node("Add", [x, _attention(b, x, heads, mask)], b.shapes[x]))
        hidden = b.pick([w, 2 * w + 1, 4 * w])
        x = _layer_norm(b, b.node("Add", [_project(b, _gelu(b, _project(b, x, hidden)), w), x], b.shapes[x]))
    if b.chance(0.5):
        first = b.node("Gather", [x, b.const(0, "int64")], [n, w], axis=1)
        return b.model([x, b.node("Tanh", [dense(b, first)], [n, 1])]), b.values
    return b.model([x]), b.values


def recurrent(seed: int, dtype: str = "float32") -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """One RNN, GRU or LSTM layer of known length, each direction, with or without bias and initial state."""
    b = Builder(seed, dtype)
    op = b.pick(["RNN", "GRU", "LSTM"])
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    t, n, k, h = b.pick([1, 2, 5, 9]), b.pick([1, 2, 3]), b.pick([1, 3, 8, 13]), b.pick([1, 5, 8, 17])
    direction = b.pick(["forward", "reverse", "bidirectional"])
    dirs = 2 if direction == "bidirectional" else 1
    args = [b.input([t, n, k]), b.weight(dirs, gates * h, k), b.weight(dirs, gates * h, h), b.weight(dirs, 2 * gates * h) if b.chance(0.7) else ""]
    if b.chance(0.4):
        args += ["", b.weight(dirs, n, h)] + ([b.weight(dirs, n, h)] if op == "LSTM" else [])
    attrs: dict[str, Any] = {"linear_before_reset": int(b.chance(0.5))} if op == "GRU" else {}
    count = 3 if op == "LSTM" else 2
    shapes = [[t, dirs, n, h], [dirs, n, h], [dirs, n, h]][:count]
    outs = b.node(op, args, shapes, n=count, hidden_size=h, direction=direction, **attrs)
    y = b.node("Reshape", [b.node("Transpose", [outs[0]], [t, n, dirs, h], perm=[0, 2, 1, 3]), b.ints(t, n, dirs * h)], [t, n, dirs * h])
    return b.model([y, *outs[1:]]), b.values


def elementwise(seed: int, dtype: str = "float32") -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Broadcasting arithmetic, comparisons, reductions and shape changes over odd shapes."""
    b = Builder(seed, dtype)
    floating = np.dtype(dtype).kind == "f"
    shape = [b.pick([1, 2, 3, 5, 7, 13]) for _ in range(int(b.rng.integers(1, 5)))]
    pool_ = [b.input(shape, high=20), b.input([d if b.chance(0.6) else 1 for d in shape], high=20)]
    for _ in range(int(b.rng.integers(3, 12))):
        pool_.append(_elementwise_step(b, pool_, floating))
    return b.model([pool_[-1], pool_[-2]]), b.values


def _elementwise_step(b: Builder, values: list[str], floating: bool) -> str:
    x = b.pick(values)
    kind, shape = b.rng.random(), b.shapes[x]
    if kind < 0.45:
        fits = [v for v in values if len(b.shapes[v]) == len(shape) and all(p == q or 1 in (p, q) for p, q in zip(b.shapes[v], shape))]
        y = b.pick(fits)
        out = np.broadcast_shapes(shape, b.shapes[y])
        return _binary(b, b.pick(["Add", "Sub", "Mul", "Max", "Min", "Where"]), x, y, out)
    if kind < 0.6 and floating:
        return b.unary(x)
    if kind < 0.75 and shape:
        axis = int(b.rng.integers(len(shape)))
        op = b.pick(["ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean"]) if floating else b.pick(["ReduceSum", "ReduceMax"])
        return b.node(op, [x, b.ints(axis)], [1 if i == axis else d for i, d in enumerate(shape)], keepdims=1)
    if kind < 0.85 and shape:
        axis = int(b.rng.integers(len(shape)))
        return b.node("Concat", [x, x], [2 * d if i == axis else d for i, d in enumerate(shape)], axis=axis)
    order = list(b.rng.permutation(len(shape)))
    return b.node("Transpose", [x], [shape[i] for i in order], perm=[int(i) for i in order])


def _binary(b: Builder, op: str, x: str, y: str, out: Iterable[int]) -> str:
    if op == "Where":
        return b.node("Where", [b.node("Greater", [x, y], out), x, y], out)
    return b.node(op, [x, y], out)


FAMILIES: dict[str, Callable[[int], tuple[onnx.ModelProto, dict[str, np.ndarray]]]] = {
    "conv": lambda s: convolutional(s),
    "conv1d": lambda s: convolutional(s, rank=1),
    "conv3d": lambda s: convolutional(s, rank=3, blocks=3),
    "dense": multilayer,
    "transformer": transformer,
    "recurrent": recurrent,
    "elementwise": elementwise,
    "elementwise_f64": lambda s: elementwise(s, "float64"),
    "elementwise_i32": lambda s: elementwise(s, "int32"),
    "elementwise_i64": lambda s: elementwise(s, "int64"),
    "dense_f64": lambda s: multilayer(s, "float64"),
    "dense_f16": lambda s: multilayer(s, "float16"),
}


def reference(model: onnx.ModelProto, values: dict[str, np.ndarray], rewrite: bool = True) -> list[np.ndarray]:
    """ONNX Runtime's results, on one thread; without ``rewrite``, each operator by itself."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    if not rewrite:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, values)


def compiled(model: onnx.ModelProto, values: dict[str, np.ndarray], level: int) -> list[np.ndarray]:
    """The graph executor's results at an optimisation level."""
    from anchorleg import relay
    from anchorleg.contrib.graph_executor import GraphModule
    from anchorleg.ir.transform import PassContext

    mod, params = relay.frontend.from_onnx(model, freeze_params=True)
    with PassContext(opt_level=level):
        factory = relay.build(mod, target="llvm", params=params)
    runner = GraphModule(factory["default"]())
    runner.run(**values)
    return [runner.get_output(i).numpy() for i in range(runner.get_num_outputs())]


def difference(got: np.ndarray, want: np.ndarray) -> float:
    """Largest difference relative to the largest magnitude; inf where shape, dtype, NaNs or infinities disagree."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return float("inf")
    if not want.size:
        return 0.0
    a, b = got.astype("float64"), want.astype("float64")
    finite = np.isfinite(b)
    if not np.array_equal(finite, np.isfinite(a)) or not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return float("inf")
    scale = np.abs(b[finite]).max(initial=0.0)
    return float(np.abs(a[finite] - b[finite]).max(initial=0.0) / (scale + 1e-30))


def tolerance(family: str) -> float:
    """What two correct float programs may differ by."""
    return 2e-2 if family.endswith("f16") else 1e-4


def main(argv: list[str]) -> int:
    """``FAMILY FIRST LAST [LEVELS]``: tries the seeds and prints those that fail."""
    import traceback

    family, first, last = argv[0], int(argv[1]), int(argv[2])
    levels = [int(c) for c in (argv[3] if len(argv) > 3 else "03")]
    bad = tried = 0
    for seed in range(first, last):
        model, values = FAMILIES[family](seed)
        try:
            wanted = reference(model, values)
        except Exception as exc:
            print(f"{family} {seed}: reference refuses: {str(exc)[:200]}", flush=True)
            continue
        for level in levels:
            tried += 1
            try:
                worst = max(difference(g, w) for g, w in zip(compiled(model, values, level), wanted, strict=True))
                text = "" if worst <= tolerance(family) else f"differs by {worst:.2e}"
            except Exception as exc:
                text = f"{type(exc).__name__}: {str(exc)[:300]}\n    {traceback.format_exc().splitlines()[-3].strip()}"
            if text:
                bad += 1
                print(f"{family} {seed} level {level}: {text}\n    {[n.op_type for n in model.graph.node]}", flush=True)
    print(f"{family}: {bad} of {tried} fail", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
