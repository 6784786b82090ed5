"""Cases of the operators that move, pick and rearrange elements."""
from __future__ import annotations

import numpy as np

from anchorleg import relay
from anchorleg.relay import op

from ..op_cases import Case, case

R = np.random.default_rng(7)


def f32(*shape: int) -> np.ndarray:
    return R.standard_normal(shape).astype(np.float32)


def ints(low: int, high: int, *shape: int, dtype: str = "int32") -> np.ndarray:
    return R.integers(low, high, shape).astype(dtype)


X = f32(2, 3, 4)
V = np.arange(12, dtype=np.float32)
E0 = np.zeros((2, 0, 3), np.float32)
S = np.float32(3.5)


def _reshape(newshape: list[int], want: tuple[int, ...], x: np.ndarray = X, **kw: bool) -> Case:
    return case(f"reshape-{x.shape}-{newshape}", lambda p: op.reshape(p, newshape, **kw), [x], x.reshape(want))


RESHAPE = [
    _reshape([6, 4], (6, 4)), _reshape([-1], (24,)), _reshape([0, -1], (2, 12)), _reshape([4, 0, 2], (4, 3, 2)),
    _reshape([-2], (2, 3, 4)), _reshape([2, -2], (2, 3, 4)), _reshape([-2, 1, 1], (2, 3, 4, 1, 1)), _reshape([-3, 4], (6, 4)),
    _reshape([-3, -3], (6, 20), f32(2, 3, 4, 5)), _reshape([0, -3], (2, 12)), _reshape([-3, -2], (6, 4)),
    _reshape([-4, 1, 2, -2], (1, 2, 3, 4)), _reshape([2, -4, -1, 3, -2], (2, 1, 3, 4)), _reshape([-1], (1,), S), _reshape([], (), f32(1, 1)),
    _reshape([0, -1], (2, 0), E0), _reshape([0, 3, 2], (0, 3, 2), E0, allowzero=True), _reshape([-4, -1, 1, 3, 4], (2, 1, 3, 4)),
    (lambda x: case("reverse_reshape", lambda p: op.reverse_reshape(p, [-1, 0]), [x], x.reshape(50, 4)))(f32(10, 5, 4)),
    (lambda x: case("reshape_like", lambda p, q: op.reshape_like(p, q, lhs_begin=1, rhs_end=3), [x, f32(6, 2, 2, 3)],
                    x.reshape(1, 6, 2, 2)))(f32(1, 2, 3, 4)),
    case("reshape_like-all", lambda p, q: op.reshape_like(p, q), [X, f32(4, 6)], X.reshape(4, 6)),
    (lambda x: case("reshape_like-negative", lambda p, q: op.reshape_like(p, q, lhs_begin=-2, rhs_begin=-2), [x, f32(7, 4, 3)],
                    x.reshape(2, 4, 3)))(f32(2, 3, 4)),
    case("squeeze-none", lambda p: op.squeeze(p), [f32(1, 3, 1)], None),
    case("squeeze-empty", lambda p: op.squeeze(p, axis=[]), [f32(1, 3, 1)], None),
    case("squeeze-int", lambda p: op.squeeze(p, axis=2), [f32(1, 3, 1)], None),
    case("squeeze-negative", lambda p: op.squeeze(p, axis=[-1, 0]), [f32(1, 3, 1)], None),
    case("expand_dims-0", lambda p: op.expand_dims(p, 0), [X], X[None]),
    case("expand_dims-last", lambda p: op.expand_dims(p, -1, 2), [X], X[..., None, None]),
    case("expand_dims-mid", lambda p: op.expand_dims(p, 2, 3), [X], X.reshape(2, 3, 1, 1, 1, 4)),
    case("expand_dims-zero", lambda p: op.expand_dims(p, 1, 0), [X], X),
    case("expand_dims-scalar", lambda p: op.expand_dims(p, 0), [S], S.reshape(1)),
]
_squeezed = {"squeeze-none": (3,), "squeeze-empty": (1, 3, 1), "squeeze-int": (1, 3), "squeeze-negative": (3,)}
RESHAPE = [Case(c.name, c.build, c.inputs, c.inputs[0].reshape(_squeezed[c.name])) if c.name in _squeezed else c for c in RESHAPE]

X4 = f32(2, 16, 3, 5)
X4ODD = f32(1, 5, 2, 3)


def _nchw4c_to_nchw2c(x: np.ndarray) -> np.ndarray:
    n, c, h, w, _ = x.shape
    out = np.zeros((n, c * 2, h, w, 2), x.dtype)
    for i in range(c * 2):
        for j in range(2):
            out[:, i, :, :, j] = x[:, (2 * i + j) // 4, :, :, (2 * i + j) % 4]
    return out


_B041 = f32(2, 5, 2, 2, 4)
TRANSPOSE = [
    case("transpose", lambda p: op.transpose(p), [X], X.transpose()),
    case("transpose-axes", lambda p: op.transpose(p, [1, -1, 0]), [X], X.transpose(1, 2, 0)),
    case("transpose-2d", lambda p: op.transpose(p, [1, 0]), [X[0]], X[0].T),
    case("transpose-big", lambda p: op.transpose(p, [0, 2, 3, 1]), [X4], X4.transpose(0, 2, 3, 1)),
    case("transpose-same", lambda p: op.transpose(p, [0, 1, 2]), [X], X),
    case("transpose-int8", lambda p: op.transpose(p, [2, 0, 1]), [ints(-9, 9, 3, 17, 33, dtype="int8")], None),
    case("transpose-scalar", lambda p: op.transpose(p), [S], S),
    case("transpose-empty", lambda p: op.transpose(p), [E0], E0.transpose()),
    case("layout-NCHW-NHWC", lambda p: op.layout_transform(p, "NCHW", "NHWC"), [X4], X4.transpose(0, 2, 3, 1)),
    case("layout-NCHW-NCHW8c", lambda p: op.layout_transform(p, "NCHW", "NCHW8c"), [X4],
         X4.reshape(2, 2, 8, 3, 5).transpose(0, 1, 3, 4, 2)),
    case("layout-NCHW8c-NCHW", lambda p: op.layout_transform(p, "NCHW8c", "NCHW"), [f32(2, 2, 3, 5, 8)], None),
    case("layout-4c-2c", lambda p: op.layout_transform(p, "NCHW4c", "NCHW2c"), [_B041], _nchw4c_to_nchw2c(_B041)),
    case("layout-pad", lambda p: op.layout_transform(p, "NCHW", "NCHW4c"), [X4ODD],
         np.pad(X4ODD, [(0, 0), (0, 3), (0, 0), (0, 0)]).reshape(1, 2, 4, 2, 3).transpose(0, 1, 3, 4, 2)),
    case("layout-OIHW8i8o", lambda p: op.layout_transform(p, "OIHW", "OIHW8i4o"), [f32(8, 16, 1, 3)], None),
]
_later = {"transpose-int8": lambda x: x.transpose(2, 0, 1), "layout-NCHW8c-NCHW": lambda x: x.transpose(0, 1, 4, 2, 3).reshape(2, 16, 3, 5),
          "layout-OIHW8i8o": lambda x: x.reshape(2, 4, 2, 8, 1, 3).transpose(0, 2, 4, 5, 3, 1)}
TRANSPOSE = [Case(c.name, c.build, c.inputs, _later[c.name](c.inputs[0])) if c.name in _later else c for c in TRANSPOSE]

A, B, C = f32(2, 3), f32(2, 5), f32(2, 1)
JOIN = [
    case("concatenate", lambda a, b, c: op.concatenate([a, b, c], 1), [A, B, C], np.concatenate([A, B, C], 1)),
    case("concatenate-neg", lambda a, b, c: op.concatenate([a, b, c], -1), [A, B, C], np.concatenate([A, B, C], 1)),
    case("concatenate-0", lambda a, b: op.concatenate(relay.Tuple([a, b]), 0), [A, A], np.concatenate([A, A], 0)),
    case("concatenate-one", lambda a: op.concatenate([a], 1), [np.array([[33], [13]])], np.array([[33], [13]])),
    case("concatenate-empty", lambda a, b: op.concatenate([a, b], 1), [A, np.zeros((2, 0), np.float32)], A),
    case("concatenate-many", lambda *a: op.concatenate(a, 0), [f32(3, 2)] * 40, None),
    case("concatenate-same", lambda a: op.concatenate([a, a, a], 0), [A], np.concatenate([A, A, A])),
    case("stack-0", lambda a, b: op.stack([a, b], 0), [A, A + 1], np.stack([A, A + 1])),
    case("stack-last", lambda a, b: op.stack([a, b], -1), [A, A + 1], np.stack([A, A + 1], -1)),
    case("stack-scalar", lambda a, b: op.stack([a, b], 0), [S, S], np.stack([S, S])),
    *(case(f"einsum-{e}", lambda *p, e=e: op.einsum(p, e), x, np.einsum(e, *x)) for e, x in [
        ("ij,jk->ik", [A, B[:, :1].repeat(3, 1).T.copy()]), ("ij,ij->i", [A[:1], A]), ("...j->...", [X]), ("ijk->kji", [X]), ("...ij,...kj", [X, X[:1]]),
        ("i,i,i->", [V, V, V]), ("ii->i", [np.arange(9).reshape(3, 3)]), ("ij,kj,lj->kil", [A, A + 1, A]), ("a...b,b->...a", [X, f32(4)]), ("i,j", [A[0], A[1]]),
        ("ij->", [A.astype(np.float16)])]),
    case("split-3", lambda p: op.split(p, 3, 1), [X], tuple(np.split(X, 3, 1))),
    case("split-at", lambda p: op.split(p, (1, 3), -1), [X], tuple(np.split(X, (1, 3), 2))),
    case("split-8-of-12", lambda p: op.split(p, (8,), 1), [f32(7, 12)], None),
    case("split-empty-part", lambda p: op.split(p, (0, 2, 2), 0), [X], tuple(np.split(X, (0, 2, 2), 0))),
]
_more = {"concatenate-many": lambda xs: np.concatenate(xs), "split-8-of-12": lambda xs: tuple(np.split(xs[0], (8,), 1))}
JOIN = [Case(c.name, c.build, c.inputs, _more[c.name](c.inputs)) if c.name in _more else c for c in JOIN]


def _slice(want: np.ndarray, begin: list, end: list, strides: list | None = None, axes: list | None = None, mode: str = "end",
           x: np.ndarray = X) -> Case:
    return case(f"slice-{begin}-{end}-{strides}-{axes}-{mode}", lambda p: op.strided_slice(p, begin, end, strides, axes, mode), [x], want)


SLICE = [
    _slice(X[0:2, 1:3], [0, 1], [2, 3]), _slice(X[1:2], [1], [2]), _slice(X[:, ::2], [0, 0], [2, 3], [1, 2]),
    _slice(X[..., ::-1], [-1], [-100], [-1], [2]), _slice(X[..., 3:0:-2], [3], [0], [-2], [-1]), _slice(X[:, 1:, 2:], [1, 2], [100, 2**63 - 1], [1, 1], [1, 2]),
    _slice(X[1:, 1:3], [1, 1, 0], [-1, 2, -1], mode="size"), _slice(X[:, :, 1:3], [0, 0, 1], [2, 3, 2], [5, 5, 5], mode="size"),
    _slice(X[-1:], [-1], [2]), _slice(X[1:1], [1], [1]), _slice(X[:, 2:1], [2], [1], axes=[1]), _slice(X[::-1, ::-1], [None, None], [None, None], [-1, -1]),
    _slice(V[:4], [], [], [], [], x=V[:4]), _slice(V[10:2:-3], [10], [2], [-3], x=V), _slice(V[3:6:3], [3], [6], [3], x=V),
    case("slice_like", lambda p, q: op.slice_like(p, q), [X, f32(1, 2, 3)], X[:1, :2, :3]),
    case("slice_like-axes", lambda p, q: op.slice_like(p, q, axes=[-1, 0]), [X, f32(1, 9, 3)], X[:1, :, :3]),
    case("slice_like-lower-rank", lambda p, q: op.slice_like(p, q), [X, f32(1)], X[:1]),
]


def _set(begin: list, end: list, strides: list | None, v: np.ndarray) -> Case:
    want = X.copy()
    full = strides or [1] * len(begin)
    want[tuple(slice(b, e, s) for b, e, s in zip(begin, end, full))] = v
    return case(f"strided_set-{begin}-{end}-{strides}", lambda p, q: op.strided_set(p, q, begin, end, strides), [X, v], want)


SLICE += [_set([0, 1], [2, 3], [1, 1], f32(2, 2, 4)), _set([0, 3, 3], [2, 0, 0], [1, -1, -2], f32(2, 2, 2)), _set([1], [2], None, f32(1, 3, 4))]

I64 = np.array([[2, 0], [-1, 5]], np.int64)
I32 = I64.astype(np.int32)
GI = ints(0, 3, 2, 3, 4)
ND = np.array([[0, 1], [2, 0]], np.int64)


def _take(axis: int | None, mode: str, idx: np.ndarray) -> Case:
    n = X.size if axis is None else X.shape[axis]
    bound = idx % n if mode == "wrap" else np.clip(idx, 0, n - 1)
    want = np.take(X, bound, axis=axis)
    return case(f"take-{axis}-{mode}-{idx.dtype}", lambda p, i: op.take(p, i, axis=axis, mode=mode), [X, idx], want)


def _batch_take(batch: int, axis: int) -> Case:
    x, i = f32(2, 3, 4), ints(0, 3, 2, 5)
    want = np.stack([np.take(a, b, axis=axis - 1) for a, b in zip(x, i)])
    return case(f"take-batch-{batch}-{axis}", lambda p, q: op.take(p, q, axis=axis, batch_dims=batch), [x, i], want)


INDEX = [
    *(_take(axis, mode, idx) for axis in (None, 0, 1, -1) for mode in ("clip", "wrap") for idx in (I64, I32)),
    _take(1, "fast", np.array([0, 2], np.int32)), _take(0, "clip", np.array(1, np.int64)), _take(1, "clip", np.zeros((0,), np.int32)),
    _take(1, "clip", np.array([0, 2], np.uint8)), _batch_take(1, 1), _batch_take(1, 2),
    case("take-embedding", lambda p, i: op.take(p, i, axis=0), [f32(30, 16), ints(0, 30, 4, 7, dtype="int64")], None),
    case("gather-1", lambda p, i: op.gather(p, 1, i), [X, GI], np.take_along_axis(X, GI, 1)),
    case("gather-neg", lambda p, i: op.gather(p, -1, i), [X, GI[..., :2] - 3], np.take_along_axis(X, GI[..., :2] - 3, 2)),
    case("gather-smaller", lambda p, i: op.gather(p, 0, i), [X, np.ones((5, 2, 2), np.int64)], X[np.ones((5, 1, 1), int), np.arange(2)[:, None], np.arange(2)]),
    case("gather_nd-2", lambda p, i: op.gather_nd(p, i), [X[:, :, 0], np.array([[0, 1, -1], [2, 0, 1]])], X[[0, 1, -1], [2, 0, 1], 0]),
    case("gather_nd-1", lambda p, i: op.gather_nd(p, i), [X, np.array([[1, 0, 1]], np.int32)], X[[1, 0, 1]]),
    case("gather_nd-batch", lambda p, i: op.gather_nd(p, i, batch_dims=1), [X, np.array([[2, 0], [1, 3]])], X[[0, 1], [2, 0], [1, 3]]),
    case("adv_index", lambda p, i, j: op.adv_index([p, i, j]), [X, np.array([[0], [1]]), np.array([2, 0, -1])], X[[[0], [1]], [2, 0, -1]]),
    case("adv_index-one", lambda p, i: op.adv_index([p, i]), [X, np.array([1, 0, 1])], X[[1, 0, 1]]),
    case("one_hot", lambda i, a, b: op.one_hot(i, a, b, 4, -1, "float32"), [np.array([[0, 3], [1, 9]]), np.float32(2), np.float32(-1)],
         np.where(np.array([[0, 3], [1, 9]])[..., None] == np.arange(4), 2, -1)),
    case("one_hot-axis0", lambda i, a, b: op.one_hot(i, a, b, 3, 0, "int64"), [np.array([0, 2, 1], np.int32), np.int32(1), np.int32(0)], np.eye(3)[:, [0, 2, 1]]),
    case("unravel_index", lambda i, s: op.unravel_index(i, s), [np.array([22, 7, 0]), np.array([4, 2, 3])], np.stack(np.unravel_index([22, 7, 0], (4, 2, 3)))),
    case("unravel_index-scalar", lambda i, s: op.unravel_index(i, s), [np.int64(22), np.array([4, 6])], np.array([3, 4])),
]
INDEX = [Case(c.name, c.build, c.inputs, c.inputs[0][c.inputs[1]]) if c.name == "take-embedding" else c for c in INDEX]

_AT = {"add": np.add.at, "mul": np.multiply.at, "min": np.minimum.at, "max": np.maximum.at}


def _scatter_elements(axis: int, how: str, dtype: str = "float32") -> Case:
    data, idx = (f32(3, 4, 5) * 9).astype(dtype), ints(-3, 3, 2, 3, 4, dtype="int64")
    updates = (f32(2, 3, 4) * 9).astype(dtype)
    want, count = data.astype("float64"), np.ones(data.shape)
    for at in np.ndindex(*idx.shape):
        to = list(at)
        to[axis] = idx[at]
        to = tuple(to)
        u, old = float(updates[at]), want[to]
        want[to] = {"update": u, "add": old + u, "mul": old * u, "mean": old + u, "min": min(old, u), "max": max(old, u)}[how]
        count[to] += 1
    want = want / count if how == "mean" else want
    return case(f"scatter_elements-{axis}-{how}-{dtype}", lambda d, i, u: op.scatter_elements(d, i, u, axis, how), [data, idx, updates], want)


def _scatter_nd(how: str) -> Case:
    data, idx, updates = f32(3, 4, 5), np.array([[0, 2, 0], [1, 3, -3]]), f32(3, 5)
    want = data.copy()
    if how == "update":
        want[idx[0], idx[1]] = updates
    else:
        _AT[how](want, (idx[0], idx[1]), updates)
    return case(f"scatter_nd-{how}", lambda d, i, u: op.scatter_nd(d, i, u, how), [data, idx, updates], want)


_b025 = np.zeros((1, 1, 10), np.float32)
SCATTER = [
    *(_scatter_elements(0, how) for how in ("update", "add", "mul", "mean", "min", "max")), _scatter_elements(1, "update"),
    _scatter_elements(-1, "add"), _scatter_elements(0, "add", "int64"), *(_scatter_nd(how) for how in ("update", "add", "mul", "min", "max")),
    case("scatter-old-name", lambda d, i, u: op.scatter(d, i, u, 0), [V[:3], np.array([1]), np.array([9], np.float32)], [0, 9, 2]),
    case("scatter_nd-M-above-K", lambda d, i, u: op.scatter_nd(d, i, u), [_b025, np.zeros((2, 1, 1, 1), np.int64), np.ones((1, 1, 1, 10), np.float32)],
         np.ones((1, 1, 10))),
    case("scatter_nd-slice", lambda d, i, u: op.scatter_nd(d, i, u, "add"), [X, np.array([[1, 1]]), np.stack([X[0], X[1]])],
         np.stack([X[0], X[1] + X[0] + X[1]])),
    case("scatter_elements-none", lambda d, i, u: op.scatter_elements(d, i, u, 0), [X, np.zeros((0, 3, 4), np.int64), f32(0, 3, 4)], X),
]

BIG = f32(4, 2, 3)
LINES = f32(3, 40)
BROADCAST = [
    case("broadcast_to", lambda p: op.broadcast_to(p, (2, 4, 3)), [f32(4, 1)], None),
    case("broadcast_to-scalar", lambda p: op.broadcast_to(p, [2, 2]), [S], np.full((2, 2), S)),
    case("broadcast_to-const", lambda p: op.broadcast_to(p, relay.const(np.array([2, 3, 4]))), [X], X),
    case("broadcast_to_like", lambda p, q: op.broadcast_to_like(p, q), [f32(3, 1), f32(2, 3, 4)], None),
    case("collapse_sum_like", lambda p, q: op.collapse_sum_like(p, q), [BIG, f32(1, 3)], BIG.sum((0, 1)).reshape(1, 3)),
    case("collapse_sum_like-same", lambda p, q: op.collapse_sum_like(p, q), [BIG, BIG], BIG),
    case("collapse_sum_to", lambda p: op.collapse_sum_to(p, (2, 1)), [BIG], BIG.sum((0, 2)).reshape(2, 1)),
    case("collapse_sum_to-scalar", lambda p: op.collapse_sum_to(p, ()), [BIG], BIG.sum()),
    case("tile", lambda p: op.tile(p, (2, 1, 3)), [X], np.tile(X, (2, 1, 3))),
    case("tile-longer", lambda p: op.tile(p, (2, 2)), [V], np.tile(V, (2, 2))),
    case("tile-shorter", lambda p: op.tile(p, (2,)), [X], np.tile(X, 2)),
    case("tile-zero", lambda p: op.tile(p, (0, 1)), [A], np.tile(A, (0, 1))),
    case("repeat", lambda p: op.repeat(p, 2, 1), [X], np.repeat(X, 2, 1)),
    case("repeat-neg", lambda p: op.repeat(p, 3, -1), [X], np.repeat(X, 3, -1)),
    *(case(f"repeat-wide-{k}", lambda p, k=k: op.repeat(p, k, 1), [LINES], np.repeat(LINES, k, 1)) for k in (2, 3, 4, 8, 16)),
    case("repeat-int8", lambda p: op.repeat(p, 2, 1), [LINES.astype("int8")], np.repeat(LINES.astype("int8"), 2, 1)),
    case("repeat-bool", lambda p: op.repeat(p, 4, 1), [LINES > 0], np.repeat(LINES > 0, 4, 1)),
    case("repeat-slice", lambda p: op.repeat(op.strided_slice(p, [0, 1], [3, 39]), 2, 1), [LINES], np.repeat(LINES[:, 1:39], 2, 1)),
    case("tile-wide", lambda p: op.tile(p, (1, 3)), [LINES], np.tile(LINES, (1, 3))),
    case("where", lambda c, a, b: op.where(c, a, b), [X > 0, X, -X], np.abs(X)),
    case("where-broadcast", lambda c, a, b: op.where(c, a, b), [np.array([[1], [0], [2]]), f32(4), f32(2, 1, 1)], None),
    case("where-nan", lambda c, a, b: op.where(c, a, b), [np.array([1.0, np.nan, 0.0, -0.0], np.float32), V[:4], -V[:4]], [0, 1, -2, -3]),
]
_fill = {"broadcast_to": lambda x: np.broadcast_to(x[0], (2, 4, 3)), "broadcast_to_like": lambda x: np.broadcast_to(x[0], (2, 3, 4)),
         "where-broadcast": lambda x: np.where(x[0], x[1], x[2])}
BROADCAST = [Case(c.name, c.build, c.inputs, _fill[c.name](c.inputs)) if c.name in _fill else c for c in BROADCAST]


def _reverse_sequence() -> np.ndarray:
    want = X.copy()
    for i, n in enumerate([3, 1]):
        want[i, :n] = want[i, :n][::-1]
    return want


FLIP = [
    case("reverse", lambda p: op.reverse(p, 1), [X], X[:, ::-1]),
    case("reverse-neg", lambda p: op.reverse(p, -1), [X], X[..., ::-1]),
    case("reverse_sequence", lambda p, n: op.reverse_sequence(p, n, 1, 0), [X, np.array([3, 1])], _reverse_sequence()),
    case("reverse_sequence-zero", lambda p, n: op.reverse_sequence(p, n, -1, 0), [X, np.array([0, 1], np.int32)], X),
    case("sequence_mask", lambda p, n: op.sequence_mask(p, n, -1.0, 1), [X, np.array([1, 2])],
         np.where(np.arange(3)[None, :, None] >= np.array([1, 2])[:, None, None], -1, X)),
    case("sequence_mask-float", lambda p, n: op.sequence_mask(p, n, -1.0, 1), [X, np.array([0.5, 2.0], np.float32)],
         np.where(np.arange(3)[None, :, None] >= np.array([0.5, 2.0])[:, None, None], -1, X)),
    case("sequence_mask-0", lambda p, n: op.sequence_mask(p, n, 0, 0), [X, np.array([1, 2, 0], np.int32)],
         np.where(np.arange(2)[:, None, None] >= np.array([1, 2, 0])[None, :, None], 0, X)),
]

CREATE = [
    case("arange", lambda: op.arange(relay.const(7.0)), [], np.arange(7)),
    case("arange-step", lambda: op.arange(relay.const(1.0), relay.const(5.0), relay.const(1.5)), [], [1, 2.5, 4]),
    case("arange-down", lambda: op.arange(relay.const(10, "int64"), relay.const(-3, "int64"), relay.const(-4, "int64"), "int64"), [], [10, 6, 2, -2]),
    case("arange-none", lambda: op.arange(relay.const(5, "int32"), relay.const(5, "int32"), None, "int32"), [], np.zeros(0)),
    case("arange-dynamic", lambda a, b, c: op.arange(a, b, c, "int32"), [np.int32(2), np.int32(9), np.int32(3)], [2, 5, 8]),
    case("meshgrid-ij", lambda a, b: op.meshgrid([a, b]), [V[:2], V[:3]], tuple(np.meshgrid(V[:2], V[:3], indexing="ij"))),
    case("meshgrid-xy", lambda a, b, c: op.meshgrid([a, b, c], "xy"), [V[:2], V[:3], V[:4]], tuple(np.meshgrid(V[:2], V[:3], V[:4], indexing="xy"))),
    case("meshgrid-scalar", lambda a, b: op.meshgrid([a, b]), [V[:2], S], tuple(np.meshgrid(V[:2], S, indexing="ij"))),
]

QUERY = [
    case("shape_of", lambda p: op.shape_of(p), [X], [2, 3, 4]),
    case("shape_of-int64", lambda p: op.shape_of(p, "int64"), [S], np.zeros(0)),
    case("ndarray_size", lambda p: op.ndarray_size(p, "int64"), [X], 24),
    case("argwhere", lambda p: op.argwhere(p), [np.array([[1, 0, np.nan], [0, 2, 0]], np.float32)], [[0, 0], [0, 2], [1, 1]]),
    case("argwhere-none", lambda p: op.argwhere(p), [np.zeros((2, 2), bool)], np.zeros((0, 2))),
]

K = ints(-5, 5, 3, 4)
SCAN = [
    case("cumsum", lambda p: op.cumsum(p, 1), [X], np.cumsum(X, 1)),
    case("cumsum-flat", lambda p: op.cumsum(p), [X], np.cumsum(X)),
    case("cumsum-neg", lambda p: op.cumsum(p, -2), [X], np.cumsum(X, -2)),
    case("cumsum-exclusive", lambda p: op.cumsum(p, 0, exclusive=True), [K], np.vstack([np.zeros((1, 4)), np.cumsum(K, 0)[:-1]])),
    case("cumsum-dtype", lambda p: op.cumsum(p, 1, "int64"), [K.astype("int8")], np.cumsum(K, 1)),
    case("cumsum-bool", lambda p: op.cumsum(p, 0, "int32"), [np.array([True, True, False])], [1, 2, 2]),
    case("cumsum-empty", lambda p: op.cumsum(p, 0), [np.zeros((0, 3), np.float32)], np.zeros((0, 3))),
    case("cumsum-middle", lambda p: op.cumsum(p, 1), [X], np.cumsum(X, 1)),
    case("cumsum-wide", lambda p: op.cumsum(p, 0, exclusive=True), [f32(3, 40)[None].repeat(2, 0)], None),
    case("cumprod", lambda p: op.cumprod(p, 1), [K.astype("float32")], np.cumprod(K, 1)),
    case("cumprod-exclusive", lambda p: op.cumprod(p, 1, "int64", True), [K], np.hstack([np.ones((3, 1)), np.cumprod(K, 1)[:, :-1]])),
]

SCAN = [Case(c.name, c.build, c.inputs, np.stack([0 * c.inputs[0][0], c.inputs[0][0]])) if c.name == "cumsum-wide" else c for c in SCAN]

U = np.array([5, 1, 5, 3, 1, 1], np.int32)
UNIQUE = [
    case("unique", lambda p: op.unique(p), [U], (np.array([1, 3, 5, 0, 0, 0]), np.array([1, 3, 0, 0, 0, 0]), np.array([2, 0, 2, 1, 0, 0]), np.array([3]))),
    case("unique-counts", lambda p: op.unique(p, True, True), [U], (np.array([1, 3, 5, 0, 0, 0]), np.array([1, 3, 0, 0, 0, 0]),
         np.array([2, 0, 2, 1, 0, 0]), np.array([3]), np.array([3, 1, 2, 0, 0, 0]))),
    case("unique-unsorted", lambda p: op.unique(p, False, True), [U.astype("float32")], (np.array([5, 1, 3, 0, 0, 0]), np.array([0, 1, 3, 0, 0, 0]),
         np.array([0, 1, 0, 2, 1, 1]), np.array([3]), np.array([2, 3, 1, 0, 0, 0]))),
    case("unique-one", lambda p: op.unique(p), [np.array([4.0])], (np.array([4.0]), np.array([0]), np.array([0]), np.array([1]))),
]

M = f32(2, 3, 4)


def _set_diag(x: np.ndarray, d: np.ndarray) -> np.ndarray:
    out = x.copy()
    for i in range(3):
        out[:, i, i] = d[:, i]
    return out


D = f32(2, 3)
MATRIX = [
    case("triu", lambda p: op.trilu(p, 0), [M], np.triu(M)),
    case("tril", lambda p: op.trilu(p, -1, upper=False), [M], np.tril(M, -1)),
    case("triu-k", lambda p, k: op.trilu(p, k), [M, np.int64(2)], np.triu(M, 2)),
    case("tril-k", lambda p, k: op.trilu(p, k, False), [M, np.int32(9)], M),
    case("matrix_set_diag", lambda p, d: op.matrix_set_diag(p, d), [M, D], _set_diag(M, D)),
    case("matrix_set_diag-band", lambda p, d: op.matrix_set_diag(p, d, k=(-1, 1), align="RIGHT_LEFT"),
         [np.zeros((3, 3), np.int32), np.array([[0, 1, 2], [3, 4, 5], [6, 7, 0]], np.int32)], [[3, 1, 0], [6, 4, 2], [0, 7, 5]]),
    case("matrix_set_diag-left", lambda p, d: op.matrix_set_diag(p, d, k=(0, 1), align="LEFT_LEFT"),
         [np.zeros((2, 3), np.int32), np.array([[1, 2], [3, 4]], np.int32)], [[3, 1, 0], [0, 4, 2]]),
    case("invert_permutation", lambda p: op.invert_permutation(p), [np.array([3, 4, 0, 2, 1], np.int32)], [2, 4, 3, 0, 1]),
]

SPARSE = [
    case("sparse_to_dense", lambda i, v: op.sparse_to_dense(i, [3, 4], v, relay.const(0)), [np.array([[0, 0], [1, 2]]), np.array([1, 2], np.int32)],
         [[1, 0, 0, 0], [0, 0, 2, 0], [0, 0, 0, 0]]),
    case("sparse_to_dense-1d", lambda i, v: op.sparse_to_dense(i, [5], v, relay.const(3.5)), [np.array([0, 1, 4], np.int32), np.float32(3.1)],
         np.array([3.1, 3.1, 3.5, 3.5, 3.1])),
    case("sparse_to_dense-0d", lambda i, v: op.sparse_to_dense(i, [3], v, relay.const(0)), [np.int32(1), np.int32(9)], [0, 9, 0]),
    case("sparse_reshape", lambda i, a, b: op.sparse_reshape(i, a, b), [np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 2, 3]]),
         np.array([2, 3, 6]), np.array([9, -1])], (np.array([[0, 0], [0, 1], [1, 2], [4, 2], [8, 1]]), np.array([9, 4]))),
]

W = np.arange(240, dtype=np.float32).reshape(3, 10, 8)
T = f32(2, 16)


def _stft(x: np.ndarray, n: int, hop: int, w: np.ndarray, onesided: bool, norm: bool) -> np.ndarray:
    frames = np.stack([x[..., i:i + n] * w for i in range(0, x.shape[-1] - n + 1, hop)], -2)
    s = (np.fft.rfft if onesided else np.fft.fft)(frames, axis=-1) / (np.sqrt(n) if norm else 1)
    s = np.swapaxes(s, -1, -2)
    return np.stack([s.real, s.imag], -1)


H8 = np.hanning(8).astype(np.float32)
FRAMES = [
    case("sliding_window", lambda p: op.sliding_window(p, 1, [3, 4], [2, 3]), [W],
         np.lib.stride_tricks.sliding_window_view(W, (3, 4), axis=(1, 2))[:, ::2, ::3]),
    case("stft", lambda p, w: op.stft(p, 8, 4, 8, w), [T, H8], _stft(T, 8, 4, H8, True, False)),
    case("stft-full", lambda p: op.stft(p, 6, 5, normalized=True, onesided=False), [T[0]], _stft(T[0], 6, 5, np.ones(6), False, True)),
    case("dft", lambda a, b: op.dft(a, b), [T, T[::-1].copy()], (np.fft.fft(T + 1j * T[::-1]).real, np.fft.fft(T + 1j * T[::-1]).imag)),
    case("idft", lambda a, b: op.dft(a, b, True), [T, T[::-1].copy()], (np.fft.ifft(T + 1j * T[::-1]).real, np.fft.ifft(T + 1j * T[::-1]).imag)),
]

ALL = RESHAPE + TRANSPOSE + JOIN + SLICE + INDEX + SCATTER + BROADCAST + FLIP + CREATE + QUERY + SCAN + UNIQUE + MATRIX + SPARSE + FRAMES
