"""One table of cases for element-wise, converting, creating and reducing operators, run by every way to evaluate them.

What is expected is numpy's own answer, computed in float32 for narrow floats and rounded once.
"""
from __future__ import annotations

import math

import ml_dtypes  # noqa: F401  (gives numpy its bfloat16)
import numpy as np

from anchorleg import relay

from ..op_cases import Case

FLOATS = ("float16", "float32", "float64")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
NUMBERS = FLOATS + SIGNED + UNSIGNED
SHAPES = [(), (1,), (7,), (3, 5), (0,), (2, 0, 3), (33,), (1, 4, 17)]
PAIRS = [((), ()), ((5,), ()), ((), (2, 3)), ((3, 1), (1, 4)), ((2, 1, 3), (5, 1)), ((4, 19), (19,)), ((0,), (1,)), ((1,), (2, 0)),
         ((2, 3, 4), (2, 3, 4)), ((16, 5, 5), (16, 1, 1))]
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 1.5, 2.5, 1e-3, 88.0, -88.0], "float32")


def numbers(shape, dtype, seed=0, low=-4.0, high=4.0):
    """Numbers of a dtype, reproducible; integers cover the type's ends too."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if np.dtype(dtype).kind == "f":
        return rng.uniform(low, high, shape).astype(dtype)
    values = rng.integers(-9 if np.dtype(dtype).kind == "i" else 0, 9, shape).astype(dtype)
    if values.size > 2:
        values.reshape(-1)[:2] = np.iinfo(dtype).min, np.iinfo(dtype).max
    return values


def wide(x):
    return x.astype("float32") if x.dtype.itemsize < 4 and x.dtype.kind in "fV" else x


def expected(fn, *arrays, dtype=None):
    with np.errstate(all="ignore"):
        return np.asarray(fn(*[wide(a) for a in arrays])).astype(dtype or arrays[0].dtype)


def _erf(x):
    return np.vectorize(math.erf, otypes=[x.dtype])(x) if x.size else x


def _half_away(x):
    return np.trunc(x + np.copysign(np.where(np.abs(x) % 1 >= 0.5, 0.5, 0), x)) if x.dtype.kind == "f" else x


# name → (numpy, dtypes, range of the random input)
UNARY = {
    "log": (np.log, FLOATS, (0.1, 9)), "log2": (np.log2, FLOATS, (0.1, 9)), "log10": (np.log10, FLOATS, (0.1, 9)),
    "exp": (np.exp, FLOATS, (-4, 4)), "erf": (_erf, FLOATS, (-3, 3)), "sqrt": (np.sqrt, FLOATS, (0, 9)),
    "rsqrt": (lambda x: 1 / np.sqrt(x), FLOATS, (0.1, 9)), "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), FLOATS, (-9, 9)),
    "tanh": (np.tanh, FLOATS, (-4, 4)), "sin": (np.sin, FLOATS, (-4, 4)), "cos": (np.cos, FLOATS, (-4, 4)),
    "tan": (np.tan, FLOATS, (-1, 1)), "sinh": (np.sinh, FLOATS, (-3, 3)), "cosh": (np.cosh, FLOATS, (-3, 3)),
    "asin": (np.arcsin, FLOATS, (-1, 1)), "acos": (np.arccos, FLOATS, (-1, 1)), "atan": (np.arctan, FLOATS, (-4, 4)),
    "asinh": (np.arcsinh, FLOATS, (-4, 4)), "acosh": (np.arccosh, FLOATS, (1.1, 9)), "atanh": (np.arctanh, FLOATS, (-0.9, 0.9)),
    "floor": (np.floor, NUMBERS, (-4, 4)), "ceil": (np.ceil, NUMBERS, (-4, 4)), "trunc": (np.trunc, NUMBERS, (-4, 4)),
    "round": (_half_away, NUMBERS, (-4, 4)), "rint": (lambda x: np.rint(x) if x.dtype.kind == "f" else x, NUMBERS, (-4, 4)), "sign": (np.sign, NUMBERS, (-4, 4)), "abs": (np.abs, NUMBERS, (-4, 4)),
    "negative": (np.negative, NUMBERS, (-4, 4)), "copy": (lambda x: x, (*NUMBERS, "bool"), (-4, 4)),
    "logical_not": (np.logical_not, ("bool", "int32", "float32"), (-1, 1)),
    "bitwise_not": (np.invert, (*SIGNED, *UNSIGNED, "bool"), (0, 0)),
}
ON_SPECIAL = ("exp", "log", "sqrt", "rsqrt", "sigmoid", "tanh", "floor", "ceil", "trunc", "round", "rint", "sign", "abs", "negative", "sin", "atan", "erf")


def _trunc_div(a, b):
    if a.dtype.kind == "f":
        return np.trunc(a / b)
    a, b = np.broadcast_arrays(a, b)
    exact = [0 if not q else abs(int(p)) // abs(int(q)) * (1 if (p < 0) == (q < 0) else -1) for p, q in zip(a.ravel(), b.ravel())]
    wrapped = [((v + (1 << 63)) % (1 << 64)) - (1 << 63) if a.dtype.kind == "i" else v for v in exact]
    return np.array(wrapped, dtype="int64" if a.dtype.kind == "i" else "uint64").reshape(a.shape)


def _shift(python):
    def fn(a, b):
        a, b = np.broadcast_arrays(a, b)
        bits = a.dtype.itemsize * 8
        values = [python(int(x), int(n) if 0 <= n < bits else 2 * bits) % (1 << bits) for x, n in zip(a.ravel(), b.ravel())]
        return np.array(values, dtype=f"uint{bits}").astype(a.dtype).reshape(a.shape)

    return fn


BINARY = {
    "add": (np.add, (*NUMBERS, "bool")), "subtract": (np.subtract, NUMBERS), "multiply": (np.multiply, (*NUMBERS, "bool")),
    "divide": (lambda a, b: a / b if a.dtype.kind == "f" else _trunc_div(a, b), NUMBERS), "trunc_divide": (_trunc_div, NUMBERS),
    "floor_divide": (lambda a, b: np.floor(a / b) if a.dtype.kind == "f" else np.floor_divide(a, b), NUMBERS),
    "mod": (np.fmod, NUMBERS), "trunc_mod": (np.fmod, NUMBERS), "floor_mod": (np.mod, NUMBERS),
    "maximum": (np.maximum, (*NUMBERS, "bool")), "minimum": (np.minimum, (*NUMBERS, "bool")),
    "left_shift": (_shift(lambda x, n: x << n), SIGNED + UNSIGNED), "right_shift": (_shift(lambda x, n: x >> n), SIGNED + UNSIGNED),
    "logical_and": (np.logical_and, ("bool", "int32")), "logical_or": (np.logical_or, ("bool", "float32")),
    "logical_xor": (np.logical_xor, ("bool", "uint8")), "bitwise_and": (np.bitwise_and, (*SIGNED, *UNSIGNED, "bool")),
    "bitwise_or": (np.bitwise_or, (*SIGNED, *UNSIGNED, "bool")), "bitwise_xor": (np.bitwise_xor, (*SIGNED, *UNSIGNED, "bool")),
}
COMPARE = {"equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal, "greater": np.greater,
           "greater_equal": np.greater_equal}


def unary_cases():
    for name, (fn, dtypes, (low, high)) in UNARY.items():
        for k, dtype in enumerate(dtypes):
            for shape in SHAPES if k == 0 else SHAPES[2:4]:
                x = numbers(shape, dtype, k, low, high)
                yield Case(f"{name}-{dtype}-{shape}", getattr(relay, name), [x], expected(fn, x))
        if name in ON_SPECIAL:
            yield Case(f"{name}-special", getattr(relay, name), [SPECIAL], expected(fn, SPECIAL))
    for name, fn in (("isnan", np.isnan), ("isinf", np.isinf), ("isfinite", np.isfinite)):
        yield Case(f"{name}-special", getattr(relay, name), [SPECIAL], fn(SPECIAL))
        yield Case(f"{name}-int", getattr(relay, name), [numbers((4,), "int32")], np.full(4, name == "isfinite"))


def binary_cases():
    for name, (fn, dtypes) in BINARY.items():
        for k, dtype in enumerate(dtypes):
            for a, b in PAIRS if k == 0 else PAIRS[3:5]:
                x, y = numbers(a, dtype, 1), numbers(b, dtype, 2)
                yield Case(f"{name}-{dtype}-{a}-{b}", getattr(relay, name), [x, y], expected(fn, x, y))
        if np.dtype(dtypes[0]).kind == "f":
            x, y = np.repeat(SPECIAL, SPECIAL.size), np.tile(SPECIAL, SPECIAL.size)
            yield Case(f"{name}-special", getattr(relay, name), [x, y], expected(fn, x, y))
    for name, compare in COMPARE.items():
        for a, b in PAIRS:
            x, y = numbers(a, "int32", 1), numbers(b, "int32", 2)
            yield Case(f"{name}-{a}-{b}", getattr(relay, name), [x, y], compare(x, y))
        x, y = np.repeat(SPECIAL, SPECIAL.size), np.tile(SPECIAL, SPECIAL.size)
        yield Case(f"{name}-special", getattr(relay, name), [x, y], compare(x, y))
    least = np.array([-(2**31), -(2**31), 5], "int32")
    for name, want in (("trunc_divide", [-(2**31), 0, 0]), ("trunc_mod", [0, 0, 0]), ("floor_mod", [0, 0, 0])):
        yield Case(f"{name}-never-traps", getattr(relay, name), [least, np.array([-1, 0, 0], "int32")], np.array(want, "int32"))
    counts = np.array([0, 1, 63, 64, 981, -1], "int64")
    ones = np.ones(6, "int64")
    yield Case("left_shift-any-count", relay.left_shift, [ones, counts], np.array([1, 2, -(2**63), 0, 0, 0], "int64"))
    yield Case("right_shift-any-count", relay.right_shift, [-ones, counts], -ones)
    base = np.array([2, -1, -1, 3, 0, 1, 7, -2], "int32")
    yield Case("power-int", relay.power, [base, np.array([-1, -3, -2, 3, 0, -5, 40, 3], "int32")],
               np.array([0, -1, 1, 27, 1, 1, pow(7, 40, 2**32) - 2**32, -8], "int32"))
    x, y = numbers((3, 4), "float32", 3, 0.1, 3), numbers((4,), "float32", 4)
    yield Case("power-float", relay.power, [x, y], np.power(x, y))


def convert_cases():
    reals = np.array([0.0, 0.5, -0.5, 1.9, -1.9, 300.7, -300.7, 40000.0], "float32")
    for dtype in ("int8", "int16", "int32", "int64", "float16", "float64", "bool"):
        want = reals != 0 if dtype == "bool" else reals.astype("int32").astype(dtype) if dtype.startswith("int") else reals.astype(dtype)
        yield Case(f"cast-float32-{dtype}", lambda x, d=dtype: relay.cast(x, d), [reals], want)
    for dtype in ("uint8", "uint32", "uint64"):
        yield Case(f"cast-float32-{dtype}", lambda x, d=dtype: relay.cast(x, d), [reals], reals.astype("int64").astype(dtype))
    large = np.array([2.0**63, 2.0**64 - 2.0**40, 5.0], "float32")
    yield Case("cast-large-uint64", lambda x: relay.cast(x, "uint64"), [large], np.array([2**63, 2**64 - 2**40, 5], "uint64"))
    ints = np.array([-1, 0, 1, 2, 255, 256, -129, 60000], "int64")
    for dtype in (*SIGNED, *UNSIGNED, *FLOATS, "bool"):
        yield Case(f"cast-int64-{dtype}", lambda x, d=dtype: relay.cast(x, d), [ints], ints.astype(dtype) if dtype != "bool" else ints != 0)
    yield Case("cast-bool", lambda x: relay.cast(x, "float32"), [np.array([True, False])], np.array([1, 0], "float32"))
    yield Case("cast-nan-bool", lambda x: relay.cast(x, "bool"), [SPECIAL], SPECIAL != 0)
    yield Case("cast-chain", lambda x: relay.cast(relay.cast(x, "bool"), "int32"), [np.array([-1], "int64")], np.array([1], "int32"))
    yield Case("cast_like", relay.cast_like, [ints, np.zeros((), "int8")], ints.astype("int8"))
    yield Case("reinterpret", lambda x: relay.reinterpret(x, "int32"), [SPECIAL], SPECIAL.view("int32"))
    yield Case("clip-special", lambda x: relay.clip(x, -1.0, 1.0), [SPECIAL], np.clip(SPECIAL, np.float32(-1), np.float32(1)))
    for dtype in ("float16", "float32", "int8", "uint8", "int32", "int64"):
        x = numbers((5, 7), dtype)
        low = 0 if dtype == "uint8" else -3
        yield Case(f"clip-{dtype}", lambda v, a=low: relay.clip(v, a, 2.0), [x], np.clip(x, np.array(low, dtype), np.array(2, dtype)))
    yield Case("clip-beyond-type", lambda x: relay.clip(x, -1e30, 1e30), [numbers((5,), "int8")], numbers((5,), "int8"))
    yield Case("clip-fractions", lambda x: relay.clip(x, -2.5, 3.7), [np.arange(-6, 6, dtype="int32")], np.clip(np.arange(-6, 6), -2, 3).astype("int32"))
    yield Case("clip-crossed", lambda x: relay.clip(x, 3.0, 1.0), [np.array([0, 2, 5], "float32")], np.array([1, 1, 1], "float32"))
    x = np.array([100, -7, 2**31 - 1, -(2**31), 3, 1], "int32")
    want = np.array([math.floor(int(v) * 0.25 + 0.5) for v in x], "int32")
    yield Case("fixed_point_multiply", lambda v: relay.fixed_point_multiply(v, 1 << 30, -1), [x], want)
    small = x[[0, 1, 4, 5]]
    yield Case("fixed_point_multiply-left", lambda v: relay.fixed_point_multiply(v, 1 << 30, 2), [small], small * 2)


def create_cases():
    for dtype in ("float32", "int8", "bool", "uint64"):
        yield Case(f"zeros-{dtype}", lambda d=dtype: relay.zeros((2, 3), d), [], np.zeros((2, 3), dtype))
        yield Case(f"ones-{dtype}", lambda d=dtype: relay.ones((), d), [], np.ones((), dtype))
        x = numbers((2, 0, 4) if dtype == "int8" else (3, 4), dtype)
        yield Case(f"zeros_like-{dtype}", relay.zeros_like, [x], np.zeros_like(x))
        yield Case(f"ones_like-{dtype}", relay.ones_like, [x], np.ones_like(x))
    yield Case("full", lambda v: relay.full(v, (2, 5)), [np.array(2.5, "float32")], np.full((2, 5), 2.5, "float32"))
    yield Case("full-dtype", lambda v: relay.full(v, (3,), "int32"), [np.array(2.5, "float32")], np.full((3,), 2, "int32"))
    yield Case("full_like", relay.full_like, [numbers((2, 3), "int16"), np.array(7, "int16")], np.full((2, 3), 7, "int16"))


AXES = [dict(), dict(axis=0), dict(axis=-1), dict(axis=[0, 2]), dict(axis=[]), dict(axis=(1,), keepdims=True), dict(axis=[1, -1], exclude=True),
        dict(axis=[0, 1, 2], exclude=True), dict(axis=[0, 1, 2], keepdims=True)]


def _numpy_axes(ndim, axis=None, keepdims=False, exclude=False):
    axes = tuple(range(ndim)) if axis is None else tuple(a % ndim for a in ([axis] if isinstance(axis, int) else axis))
    return dict(axis=tuple(a for a in range(ndim) if (a in axes) != exclude), keepdims=keepdims)


def _mean(x, axis, keepdims):
    if x.dtype.kind == "f":
        return x.mean(axis=axis, keepdims=keepdims)
    count = int(np.prod([x.shape[a] for a in axis]))
    return np.trunc(x.sum(axis=axis, keepdims=keepdims, dtype=x.dtype).astype("float64") / count)


def _logsumexp(x, axis, keepdims):
    return np.log(np.exp(x.astype("float64")).sum(axis=axis, keepdims=keepdims))


REDUCE = {
    "sum": (lambda x, **kw: x.any(**kw) if x.dtype == bool else x.sum(dtype=x.dtype, **kw), ("float32", "float16", "float64", "int32", "uint8", "bool")),
    "prod": (lambda x, **kw: x.all(**kw) if x.dtype == bool else x.prod(dtype=x.dtype, **kw), ("float32", "int32", "bool")),
    "max": (np.max, ("float32", "float16", "int8", "uint64", "bool")), "min": (np.min, ("float32", "int64", "uint8", "bool")),
    "mean": (_mean, ("float32", "float16", "float64", "int32")), "all": (np.all, ("bool", "int32")), "any": (np.any, ("bool", "float32")),
    "logsumexp": (_logsumexp, ("float32", "float16", "float64")),
}
REDUCED_SHAPES = [(2, 3, 5), (3, 4, 33), (1, 7, 16)]


def _arg(find, last):
    def fn(x, axis, keepdims):
        kept = [i for i in range(x.ndim) if i not in axis]
        flat = np.transpose(x, [*kept, *axis]).reshape([*(x.shape[i] for i in kept), -1])
        at = flat.shape[-1] - 1 - find(flat[..., ::-1], axis=-1) if last else find(flat, axis=-1)
        shape = [1 if i in axis else n for i, n in enumerate(x.shape)] if keepdims else [x.shape[i] for i in kept]
        return at.reshape(shape).astype("int32")

    return fn


def reduce_cases():
    for name, (fn, dtypes) in REDUCE.items():
        for k, dtype in enumerate(dtypes):
            for shape in REDUCED_SHAPES if k == 0 else REDUCED_SHAPES[:1]:
                for attrs in AXES:
                    if name == "logsumexp" and "exclude" in attrs:
                        continue
                    x = numbers(shape, dtype, 5, -1, 1)
                    want = expected(lambda v: fn(v, **_numpy_axes(3, **attrs)), x)
                    yield Case(f"{name}-{dtype}-{shape}-{attrs}", lambda v, n=name, kw=attrs: getattr(relay, n)(v, **kw), [x], want)
    for name, find in (("argmax", np.argmax), ("argmin", np.argmin)):
        for dtype in ("float32", "int32", "uint8", "float16", "bool"):
            for last in (False, True):
                for attrs in AXES:
                    x = np.round(numbers((3, 4, 33), dtype, 6)) if dtype.startswith("float") else numbers((3, 4, 33), dtype, 6)
                    yield Case(f"{name}-{dtype}-{last}-{attrs}", lambda v, n=name, kw=attrs, s=last: getattr(relay, n)(v, select_last_index=s, **kw),
                               [x], _arg(find, last)(x, **_numpy_axes(3, **attrs)))
    yield from _odd_reductions()


def _odd_reductions():
    hole = np.array([[1, np.nan, 3, np.nan], [4, 5, 6, -np.inf], [-np.inf] * 4], "float32")
    for name, fn in (("max", np.max), ("min", np.min), ("sum", np.sum), ("argmax", np.argmax), ("argmin", np.argmin)):
        want = fn(hole, axis=1)
        yield Case(f"{name}-nan", lambda v, n=name: getattr(relay, n)(v, axis=1), [hole], want.astype("int32") if "arg" in name else want)
    yield Case("logsumexp-infinities", lambda v: relay.logsumexp(v, axis=1), [np.array([[-np.inf, -np.inf], [np.inf, 0], [1000, 1000]], "float32")],
               np.array([-np.inf, np.inf, 1000 + math.log(2)], "float32"))
    nothing = np.zeros((2, 0, 3), "float32")
    for name, neutral in (("sum", 0), ("prod", 1), ("max", -np.inf), ("min", np.inf), ("mean", np.nan), ("logsumexp", -np.inf)):
        yield Case(f"{name}-of-nothing", lambda v, n=name: getattr(relay, n)(v, axis=1), [nothing], np.full((2, 3), neutral, "float32"))
    yield Case("sum-to-nothing", lambda v: relay.sum(v, axis=2), [nothing], np.zeros((2, 0), "float32"))
    yield Case("argmax-to-nothing", lambda v: relay.argmax(v, axis=2), [nothing], np.zeros((2, 0), "int32"))
    yield Case("max-int-of-nothing", lambda v: relay.max(v, axis=0), [np.zeros((0, 2), "int8")], np.full(2, -128, "int8"))
    yield Case("sum-scalar", relay.sum, [np.array(3, "float32")], np.array(3, "float32"))
    x = numbers((2, 3, 8, 8), "float32", 7)
    for axis, unbiased in (((1,), False), ((2, 3), True), (-1, False)):
        kw = dict(axis=axis, keepdims=True)
        yield Case(f"variance-{axis}", lambda v, k=kw, u=unbiased: relay.variance(v, unbiased=u, **k), [x], np.var(x, ddof=int(unbiased), **kw))
        yield Case(f"std-{axis}", lambda v, a=axis, u=unbiased: relay.std(v, axis=a, unbiased=u), [x], np.std(x, ddof=int(unbiased), axis=axis))
    yield Case("mean_variance", lambda v: relay.mean_variance(v, axis=(2, 3)), [x], (x.mean(axis=(2, 3)), x.var(axis=(2, 3))))
    yield Case("mean_std", lambda v: relay.mean_std(v, axis=1, keepdims=True), [x], (x.mean(axis=1, keepdims=True), x.std(axis=1, keepdims=True)))
    long = numbers((4, 1000), "float32", 8)
    yield Case("sum-long", lambda v: relay.sum(v, axis=1), [long], long.astype("float64").sum(axis=1).astype("float32"))


FAMILIES = {"unary": unary_cases, "binary": binary_cases, "convert": convert_cases, "create": create_cases, "reduce": reduce_cases}
