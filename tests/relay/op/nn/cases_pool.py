"""Cases of pooling."""
from __future__ import annotations

import math

import numpy as np
from nn_harness import Case, ort, rand

from anchorleg.relay import nn
from anchorleg.relay.op.transform.transpose import convert_layout

_OPS = {("max", 1): nn.max_pool1d, ("max", 2): nn.max_pool2d, ("max", 3): nn.max_pool3d,
        ("avg", 1): nn.avg_pool1d, ("avg", 2): nn.avg_pool2d, ("avg", 3): nn.avg_pool3d}


def brute_pool(kind, x, size, strides, dilation, pads, ceil_mode, include_pad):
    """Straight from the definition, one window at a time, over the last axes of x (N, C, …)."""
    rank = x.ndim - 2
    outs = []
    for d in range(rank):
        room = x.shape[2 + d] + pads[d] + pads[rank + d] - (size[d] - 1) * dilation[d] - 1
        n = (math.ceil if ceil_mode else math.floor)(room / strides[d]) + 1
        if ceil_mode and (n - 1) * strides[d] >= x.shape[2 + d] + pads[d]:
            n -= 1
        outs.append(n)
    out = np.zeros((*x.shape[:2], *outs), x.dtype)
    for pos in np.ndindex(*outs):
        inside, counted = [], 0
        for tap in np.ndindex(*size):
            at = [p * s - pads[d] + t * dl for d, (p, s, t, dl) in enumerate(zip(pos, strides, tap, dilation))]
            if all(0 <= a < x.shape[2 + d] for d, a in enumerate(at)):
                inside.append(x[(slice(None), slice(None), *at)])
                counted += 1
            elif include_pad and all(-pads[d] <= a < x.shape[2 + d] + pads[rank + d] for d, a in enumerate(at)):
                counted += 1
        stack = np.array(inside)
        out[(slice(None), slice(None), *pos)] = stack.max(0) if kind == "max" else stack.sum(0) / max(counted, 1)
    return out


def pool_case(name, kind, x, size, strides=1, dilation=1, padding=0, ceil_mode=False, include_pad=False, layout=None):
    rank = x.ndim - 2
    full = lambda v: [v] * rank if isinstance(v, int) else list(v)
    pads = full(padding) * 2 if isinstance(padding, int) or len(padding) == rank else list(padding)
    plain = {1: "NCW", 2: "NCHW", 3: "NCDHW"}[rank]
    layout = layout or plain
    more = {"count_include_pad": include_pad} if kind == "avg" else {}
    ref = lambda _: convert_layout(brute_pool(kind, x, full(size), full(strides), full(dilation), pads, ceil_mode, include_pad), plain, layout)
    return Case(name, lambda a: _OPS[kind, rank](a, pool_size=full(size), strides=full(strides), dilation=full(dilation), padding=padding,
                                                 layout=layout, ceil_mode=ceil_mode, **more), [convert_layout(x, plain, layout)], ref)


_B065 = np.arange(1, 10, dtype="float32").reshape(1, 1, 1, 9)
CASES = [
    pool_case("max_pool1d", "max", rand(2, 3, 10), 3, 2, padding=1),
    pool_case("max_pool2d", "max", rand(1, 4, 9, 9), 3, 2, padding=1),
    pool_case("max_pool2d_ceil", "max", rand(1, 4, 8, 9), (3, 2), 2, ceil_mode=True),
    pool_case("max_pool2d_dilated", "max", rand(1, 2, 9, 9), 2, 1, dilation=(2, 3), padding=(0, 1, 1, 0)),
    pool_case("max_pool2d_nhwc", "max", rand(1, 4, 7, 6), 3, 2, padding=1, layout="NHWC"),
    pool_case("max_pool2d_nchw4c", "max", rand(2, 8, 7, 6), 3, 2, padding=1, layout="NCHW4c"),
    pool_case("max_pool2d_int8", "max", rand(1, 4, 7, 6, dtype="int8"), 3, 2, padding=1),
    pool_case("max_pool3d", "max", rand(1, 2, 5, 6, 7), (2, 3, 2), 2, padding=(0, 1, 0, 1, 1, 1)),
    pool_case("avg_pool1d", "avg", rand(2, 3, 10), 3, 2, padding=1, include_pad=True),
    pool_case("avg_pool2d", "avg", rand(1, 4, 9, 9), 3, 2, padding=1),
    pool_case("avg_pool2d_include_pad", "avg", rand(1, 4, 9, 9), 3, 2, padding=(1, 0, 2, 1), include_pad=True),
    pool_case("avg_pool2d_ceil", "avg", rand(1, 4, 8, 8), 3, 2, ceil_mode=True),
    pool_case("avg_pool2d_ceil_include_pad", "avg", _B065, (1, 2), (1, 2), ceil_mode=True, include_pad=True),
    pool_case("avg_pool2d_dilated", "avg", rand(1, 2, 9, 9), 2, 1, dilation=2, padding=1),
    pool_case("avg_pool2d_nhwc", "avg", rand(1, 4, 7, 6), 2, 2, layout="NHWC"),
    pool_case("max_pool2d_nchw8c_stride_1", "max", rand(1, 16, 9, 11), 2, 1, padding=(0, 0, 1, 1), layout="NCHW8c"),
    pool_case("max_pool2d_nchw16c_edges", "max", rand(1, 64, 41, 43), 3, 1, padding=1, layout="NCHW16c"),
    pool_case("avg_pool2d_nchw16c_include_pad", "avg", rand(1, 16, 9, 10), 3, 2, padding=1, include_pad=True, layout="NCHW16c"),
    pool_case("avg_pool2d_nchw8c", "avg", rand(1, 8, 7, 6), 2, 2, padding=1, layout="NCHW8c"),
    pool_case("avg_pool1d_ceil_window_in_padding", "avg", rand(1, 6, 4), 1, 2, ceil_mode=True),
    pool_case("avg_pool3d", "avg", rand(1, 2, 5, 6, 7), (2, 3, 2), 2, padding=1),
    Case("avg_pool2d_int", lambda a: nn.avg_pool2d(a, (2, 2)), [np.array([[[[-3, -2], [0, 0]]]], "int8")], lambda a: np.array([[[[-1]]]], "int8")),
    Case("max_pool2d_nan", lambda a: nn.max_pool2d(a, (1, 2), (1, 2)), [np.array([[[[np.nan, 1, 2, 3]]]], "float32")],
         lambda a: np.array([[[[np.nan, 3]]]], "float32")),
    Case("global_max_pool2d", lambda a: nn.global_max_pool2d(a), [rand(2, 3, 4, 5)], ort("GlobalMaxPool")),
    Case("global_avg_pool2d", lambda a: nn.global_avg_pool2d(a), [rand(2, 3, 4, 5)], ort("GlobalAveragePool")),
    Case("global_avg_pool2d_nhwc", lambda a: nn.global_avg_pool2d(a, "NHWC"), [rand(2, 4, 5, 3)], lambda a: a.mean((1, 2), keepdims=True)),
    Case("global_avg_pool2d_nchw4c", lambda a: nn.global_avg_pool2d(a, "NCHW4c"), [rand(2, 3, 4, 5, 4)], lambda a: a.mean((2, 3), keepdims=True)),
    Case("global_avg_pool1d", lambda a: nn.global_avg_pool1d(a), [rand(2, 3, 4)], lambda a: a.mean(2, keepdims=True)),
    Case("global_max_pool3d", lambda a: nn.global_max_pool3d(a), [rand(1, 3, 4, 2, 3)], lambda a: a.max((2, 3, 4), keepdims=True)),
]


def adaptive(name, op, x, size, axes, mean, layout):
    def ref(a):
        for axis, n in zip(axes, size):
            rows = np.moveaxis(a, axis, 0)
            parts = [rows[math.floor(i * len(rows) / n):math.ceil((i + 1) * len(rows) / n)] for i in range(n)]
            a = np.moveaxis(np.stack([p.mean(0) if mean else p.max(0) for p in parts]), 0, axis)
        return a

    return Case(name, lambda a: op(a, size, layout), [x], ref)


CASES += [
    adaptive("adaptive_avg_pool2d", nn.adaptive_avg_pool2d, rand(1, 3, 7, 8), (3, 5), (2, 3), True, "NCHW"),
    adaptive("adaptive_max_pool2d", nn.adaptive_max_pool2d, rand(1, 3, 7, 8), (3, 5), (2, 3), False, "NCHW"),
    adaptive("adaptive_avg_pool2d_grow", nn.adaptive_avg_pool2d, rand(1, 3, 4, 4), (7, 6), (2, 3), True, "NCHW"),
    adaptive("adaptive_avg_pool2d_nhwc", nn.adaptive_avg_pool2d, rand(1, 7, 8, 3), (2, 2), (1, 2), True, "NHWC"),
    adaptive("adaptive_avg_pool2d_nchw4c", nn.adaptive_avg_pool2d, rand(1, 2, 7, 8, 4), (1, 1), (2, 3), True, "NCHW4c"),
    adaptive("adaptive_max_pool1d", nn.adaptive_max_pool1d, rand(1, 3, 7), (3,), (2,), False, "NCW"),
    adaptive("adaptive_avg_pool3d", nn.adaptive_avg_pool3d, rand(1, 2, 5, 4, 6), (2, 3, 4), (2, 3, 4), True, "NCDHW"),
]
