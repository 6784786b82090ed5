"""Random ONNX models that choose and move elements (indices, masks, padding, resizing), and ones of eight-bit integers."""
from __future__ import annotations

from typing import Any, Callable

import numpy as np
import onnx
from onnx import TensorProto

from .random_networks import Builder, pool

Model = tuple[onnx.ModelProto, dict[str, np.ndarray]]


def _axis(b: Builder, x: str) -> int:
    return int(b.rng.integers(len(b.shapes[x])))


def _with(shape: tuple[int, ...], axis: int, size: int) -> list[int]:
    return [size if i == axis else d for i, d in enumerate(shape)]


def gather(b: Builder, x: str) -> str:
    axis, many = _axis(b, x), [b.pick([1, 2, 3]) for _ in range(b.pick([1, 2]))]
    size = b.shapes[x][axis]
    index = b.const(b.rng.integers(-size, size, many), "int64") if b.chance(0.5) else b.input(many, "int64", high=size)
    shape = [*b.shapes[x][:axis], *many, *b.shapes[x][axis + 1:]]
    return _few_axes(b, b.node("Gather", [x, index], shape, axis=axis))


def _few_axes(b: Builder, x: str) -> str:
    """At most four axes, and not many elements."""
    shape = b.shapes[x]
    while len(shape) > 4:
        shape = (shape[0] * shape[1], *shape[2:])
    x = x if shape == b.shapes[x] else b.node("Reshape", [x, b.ints(*shape)], shape)
    if np.prod(shape) > 4000:
        axis = int(np.argmax(shape))
        x = b.node("Slice", [x, b.ints(0), b.ints(2), b.ints(axis)], _with(shape, axis, 2))
    return x


def gather_elements(b: Builder, x: str) -> str:
    axis = _axis(b, x)
    shape = _with(b.shapes[x], axis, b.pick([1, 2, 5]))
    return b.node("GatherElements", [x, b.const(b.rng.integers(0, b.shapes[x][axis], shape), "int64")], shape, axis=axis)


def scatter(b: Builder, x: str) -> str:
    axis, shape = _axis(b, x), b.shapes[x]
    rows = sorted(int(v) for v in b.rng.choice(shape[axis], size=min(2, shape[axis]), replace=False))
    index = np.broadcast_to(np.array(rows).reshape([-1 if i == axis else 1 for i in range(len(shape))]), _with(shape, axis, len(rows)))
    return b.node("ScatterElements", [x, b.const(index, "int64"), b.weight(*index.shape)], shape, axis=axis)


def slice_steps(b: Builder, x: str) -> str:
    axis = _axis(b, x)
    size, step = b.shapes[x][axis], b.pick([1, 2, 3, -1, -2])
    lo, hi = sorted(int(v) for v in b.rng.integers(0, size + 1, 2))
    hi = max(hi, lo + 1) if lo < size else size
    lo = min(lo, hi - 1)
    start, end = (lo, hi) if step > 0 else (hi - 1, lo - 1 if lo > 0 else -size - 1)
    return b.node("Slice", [x, b.ints(start), b.ints(end), b.ints(axis), b.ints(step)], _with(b.shapes[x], axis, -(-(hi - lo) // abs(step))))


def arg(b: Builder, x: str) -> str:
    axis = _axis(b, x)
    return b.node(b.pick(["ArgMax", "ArgMin"]), [x], _with(b.shapes[x], axis, 1), axis=axis, keepdims=1, select_last_index=int(b.chance(0.3)))


def top(b: Builder, x: str) -> str:
    axis = _axis(b, x)
    k = int(b.rng.integers(1, b.shapes[x][axis] + 1))
    outs = b.node("TopK", [x, b.ints(k)], [_with(b.shapes[x], axis, k)] * 2, n=2, axis=axis, largest=int(b.chance(0.7)))
    b.taps.append(outs[1])  # type: ignore[attr-defined]
    return outs[0]


def mask(b: Builder, x: str) -> str:
    shape = b.shapes[x]
    a = b.node(b.pick(["Greater", "Less", "GreaterOrEqual", "LessOrEqual"]), [x, b.const(0.1)], shape)
    c = b.node("Not", [b.node("Less", [b.node("Abs", [x], shape), b.const(0.5)], shape)], shape)
    both = b.node(b.pick(["And", "Or", "Xor"]), [a, c], shape)
    b.taps += [both] if b.chance(0.5) else []  # type: ignore[attr-defined]
    return b.node("Where", [both, x, b.node("Cast", [both], shape, to=TensorProto.FLOAT)], shape)


def padded(b: Builder, x: str) -> str:
    shape, mode = b.shapes[x], b.pick(["constant", "edge", "reflect"])
    most = [min(3, d - 1) if mode == "reflect" else 3 for d in shape]
    lo, hi = ([int(b.rng.integers(0, m + 1)) if b.chance(0.6) else 0 for m in most] for _ in range(2))
    args = [x, b.ints(*lo, *hi)] + ([b.const(1.5)] if mode == "constant" else [])
    return b.node("Pad", args, [d + p + q for d, p, q in zip(shape, lo, hi)], mode=mode)


def resized(b: Builder, x: str) -> str:
    if len(b.shapes[x]) != 4:
        return x
    n, c, h, w = b.shapes[x]
    new = [n, c, b.pick([1, h, 2 * h, h + 3]), b.pick([2, w, 2 * w, w + 1])]
    mode = b.pick(["nearest", "linear", "cubic"])
    kinds = ["asymmetric", "half_pixel", "align_corners"] if mode != "nearest" else ["asymmetric", "half_pixel"]
    attrs = {"nearest_mode": b.pick(["floor", "round_prefer_floor"])} if mode == "nearest" else {}
    return b.node("Resize", [x, "", "", b.ints(*new)], new, mode=mode, coordinate_transformation_mode=b.pick(kinds), **attrs)


def tiled(b: Builder, x: str) -> str:
    times = [b.pick([1, 1, 2]) for _ in b.shapes[x]]
    return _few_axes(b, b.node("Tile", [x, b.ints(*times)], [d * t for d, t in zip(b.shapes[x], times)]))


def summed(b: Builder, x: str) -> str:
    return b.node("CumSum", [x, b.const(_axis(b, x), "int64")], b.shapes[x], exclusive=int(b.chance(0.3)), reverse=int(b.chance(0.3)))


def split(b: Builder, x: str) -> str:
    axis = _axis(b, x)
    size = b.shapes[x][axis]
    if size < 2:
        return b.node("Concat", [x, x], _with(b.shapes[x], axis, 2), axis=axis)
    cut = int(b.rng.integers(1, size))
    one, two = b.node("Split", [x, b.ints(cut, size - cut)], [_with(b.shapes[x], axis, n) for n in (cut, size - cut)], n=2, axis=axis)
    return b.node("Concat", [two, b.unary(one), two], _with(b.shapes[x], axis, 2 * size - cut), axis=axis)


def turned(b: Builder, x: str) -> str:
    order = [int(i) for i in b.rng.permutation(len(b.shapes[x]))]
    return b.node("Transpose", [x], [b.shapes[x][i] for i in order], perm=order)


def integers(b: Builder, x: str) -> str:
    """Down to integers, some of their arithmetic, and back."""
    shape, kind = b.shapes[x], b.pick([TensorProto.INT32, TensorProto.INT64, TensorProto.INT8, TensorProto.UINT8])
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
    y = b.node("Cast", [b.node("Clip", [b.node("Mul", [x, b.const(8)], shape), b.const(0), b.const(60)], shape)], shape, to=kind)
    y = b.node("Mod", [b.node("Add", [y, b.const(5, dtype)], shape), b.const(7, dtype)], shape)
    y = b.node("Mul", [y, b.const(2, dtype)], shape) if kind in (TensorProto.INT32, TensorProto.INT64) else y
    return b.node("Cast", [y], shape, to=TensorProto.FLOAT)


def one_hot(b: Builder, x: str) -> str:
    index = arg(b, x)
    b.taps.append(index)  # type: ignore[attr-defined]
    n = b.pick([2, 5])
    hot = b.node("OneHot", [index, b.const(n, "int64"), b.const([0.25, 1.0])], [*b.shapes[index], n], axis=-1)
    return _few_axes(b, hot)


STEPS: tuple[Callable[[Builder, str], str], ...] = (gather, gather_elements, scatter, slice_steps, top, mask, padded, resized, tiled, summed, split, turned,
                                                    integers, one_hot)


def selection(seed: int) -> Model:
    """Elements chosen and moved."""
    b = Builder(seed)
    b.taps = []  # type: ignore[attr-defined]
    x = b.input([b.pick([1, 2, 3, 5, 8]) for _ in range(b.pick([2, 3, 4, 4]))])
    for _ in range(int(b.rng.integers(3, 8))):
        x = _few_axes(b, b.pick(STEPS)(b, x))
    last = arg(b, x)
    return b.model(list(dict.fromkeys([x, last, *b.taps]))), b.values  # type: ignore[attr-defined]


# -- eight-bit integers


class Scaled:
    """Tensors of eight bits with their scale and zero point."""

    def __init__(self, b: Builder, kind: str) -> None:
        self.b, self.kind = b, kind

    def numbers(self, scale: float, zero: int) -> list[str]:
        return [self.b.const(scale), self.b.const(zero, self.kind)]

    def quantize(self, x: str) -> tuple[str, list[str]]:
        zero = int(self.b.rng.integers(-20, 20)) + (128 if self.kind == "uint8" else 0)
        scale = self.numbers(float(self.b.rng.uniform(0.02, 0.06)), zero)
        return self.b.node("QuantizeLinear", [x, *scale], self.b.shapes[x]), scale

    def real(self, q: tuple[str, list[str]]) -> str:
        return self.b.node("DequantizeLinear", [q[0], *q[1]], self.b.shapes[q[0]])

    def weight(self, *shape: int, axis: int | None = None) -> str:
        """A constant of int8, dequantised; with a scale for each entry of ``axis``."""
        b = self.b
        size = () if axis is None else (shape[axis],)
        scale = b.const(b.rng.uniform(0.5, 1.5, size) / (60 * np.sqrt(np.prod(shape[1:]))))
        w = b.const(np.clip(np.round(b.rng.standard_normal(shape) * 50), -127, 127), "int8")
        return b.node("DequantizeLinear", [w, scale, b.const(np.zeros(size), "int8")], shape, **({} if axis is None else {"axis": axis}))


def _quantized_conv(s: Scaled, q: tuple[str, list[str]]) -> tuple[str, list[str]]:
    b = s.b
    n, c, h, w = b.shapes[q[0]]
    group = c if b.chance(0.3) else 1
    out, k = (c if group > 1 else b.pick([1, 3, 4, 8])), b.pick([1, 3, 3])
    step = b.pick([1, 1, 2])
    y = b.node("Conv", [s.real(q), s.weight(out, c // group, k, k, axis=b.pick([None, 0])), b.weight(out)],
               [n, out, *((d + 2 * (k // 2) - k) // step + 1 for d in (h, w))], kernel_shape=[k, k], pads=[k // 2] * 4, group=group, strides=[step] * 2)
    return s.quantize(b.node("Relu", [y], b.shapes[y]) if b.chance(0.5) else y)


def _quantized_sum(s: Scaled, q: tuple[str, list[str]]) -> tuple[str, list[str]]:
    x = s.real(q)
    op = s.b.pick(["Add", "Mul"])
    return s.quantize(s.b.node(op, [x, s.b.node("Sigmoid", [x], s.b.shapes[x])], s.b.shapes[x]))


def _quantized_pool(s: Scaled, q: tuple[str, list[str]]) -> tuple[str, list[str]]:
    return s.quantize(pool(s.b, s.real(q)))


def quantized(seed: int) -> Model:
    """Convolutions, pools, sums and a dense layer between quantisations."""
    b = Builder(seed)
    s = Scaled(b, b.pick(["int8", "uint8"]))
    q = s.quantize(b.input([b.pick([1, 2]), b.pick([1, 3, 4]), b.pick([5, 8, 9]), b.pick([4, 8])]))
    for _ in range(int(b.rng.integers(1, 4))):
        q = b.pick([_quantized_conv, _quantized_conv, _quantized_sum, _quantized_pool])(s, q)
    n, *rest = b.shapes[q[0]]
    flat = b.node("Flatten", [s.real(q)], [n, int(np.prod(rest))])
    y = s.quantize(b.node("MatMul", [flat, s.weight(int(np.prod(rest)), 5)], [n, 5]))
    return b.model([y[0], s.real(y)]), b.values


FAMILIES: dict[str, Callable[[int], Any]] = {"selection": selection, "quantized": quantized}
