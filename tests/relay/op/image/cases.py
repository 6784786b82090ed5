"""Cases of the operators on images; the answers are plain loops over the definitions."""
from __future__ import annotations

import math
from typing import Callable

import numpy as np

from anchorleg.relay.op import image

from ..op_cases import Case, case

R = np.random.default_rng(5)
X = R.standard_normal((2, 3, 5, 4)).astype(np.float32)
SIGNAL = R.standard_normal((1, 2, 6)).astype(np.float32)
VOLUME = R.standard_normal((1, 1, 3, 2, 4)).astype(np.float32)
WIDE = R.standard_normal((1, 2, 4, 32)).astype(np.float32)
NINE = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)


def position(x: int, n: int, size: int, mode: str) -> float:
    """Where the result's element ``x`` lies in the input."""
    if mode == "align_corners":
        return x * (n - 1) / (size - 1) if size > 1 else 0.0
    if mode == "asymmetric":
        return x * n / size
    if mode == "tf_half_pixel_for_nn":
        return (x + 0.5) * n / size
    if mode == "pytorch_half_pixel" and size == 1:
        return 0.0
    return (x + 0.5) * n / size - 0.5


ROUND: dict[str, Callable[[float], int]] = {
    "floor": lambda v: math.floor(v + 1e-9), "ceil": lambda v: math.ceil(v - 1e-9), "round": lambda v: math.floor(v + 0.5 + 1e-9),
    "round_prefer_floor": lambda v: math.ceil(v - 0.5 - 1e-9), "round_prefer_ceil": lambda v: math.floor(v + 0.5 + 1e-9),
}


def cubic(t: float, a: float) -> list[float]:
    """Weights of the four neighbours."""
    return [a * (t**3 - 2 * t**2 + t), (a + 2) * t**3 - (a + 3) * t**2 + 1, -(a + 2) * t**3 + (2 * a + 3) * t**2 - a * t, -a * t**3 + a * t**2]


def axis_matrix(n: int, size: int, method: str, mode: str, rounding: str, alpha: float, exclude: bool) -> np.ndarray:
    """The linear map of one axis."""
    m = np.zeros((size, n))
    for x in range(size):
        at = position(x, n, size, mode)
        low, t = math.floor(at + 1e-12), at - math.floor(at + 1e-12)
        if method == "nearest_neighbor":
            taps = [(ROUND[rounding or ("round" if mode == "align_corners" else "floor")](at), 1.0)]
        elif method == "linear":
            taps = [(low, 1 - t), (low + 1, t)]
        else:
            taps = [(low - 1 + k, w) for k, w in enumerate(cubic(t, alpha))]
            if exclude:
                taps = [(i, w if 0 <= i < n else 0.0) for i, w in taps]
                total = sum(w for _, w in taps)
                taps = [(i, w / total) for i, w in taps]
        for i, w in taps:
            m[x, min(max(i, 0), n - 1)] += w
    return m


def _resize(x: np.ndarray, size: tuple[int, ...], method: str, mode: str, rounding: str = "", alpha: float = -0.5, exclude: int = 0,
            layout: str | None = None) -> Case:
    n = len(size)
    plain = {1: "NCW", 2: "NCHW", 3: "NCDHW"}[n]
    layout = layout or plain
    want = x.astype(np.float64)
    for k, s in enumerate(size):
        axis = layout.index("DHW"[3 - n + k])
        want = np.moveaxis(np.tensordot(axis_matrix(want.shape[axis], s, method, mode, rounding, alpha, bool(exclude)), want, (1, axis)), 0, axis)
    fn = {1: image.resize1d, 2: image.resize2d, 3: image.resize3d}[n]
    return case(f"resize{n}d-{x.shape}-{size}-{method}-{mode}-{rounding}-{exclude}-{layout}",
                lambda p: fn(p, size, None, layout, method, mode, rounding, alpha, exclude), [x], want)


def _scaled(scales: tuple[float, float], method: str) -> Case:
    """Scales that do not give whole sizes: positions go by the scale, not by the ratio of the sizes."""
    size = tuple(math.floor(n * s) for n, s in zip(X.shape[2:], scales))
    want = X.astype(np.float64)
    for axis, (s, out) in enumerate(zip(scales, size), 2):
        n, m = X.shape[axis], np.zeros((out, X.shape[axis]))
        for x in range(out):
            at = (x + 0.5) / s - 0.5
            low, t = math.floor(at + 1e-9), at - math.floor(at + 1e-9)
            taps = {"linear": [(low, 1 - t), (low + 1, t)], "nearest_neighbor": [(math.floor(at + 0.5), 1.0)]}.get(
                method, [(low - 1 + k, w) for k, w in enumerate(cubic(t, -0.75))])
            for i, w in taps:
                m[x, min(max(i, 0), n - 1)] += w
        want = np.moveaxis(np.tensordot(m, want, (1, axis)), 0, axis)
    return case(f"resize_scaled-{scales}-{method}", lambda p: image.resize_scaled(p, scales, size, method=method, rounding_method="round", cubic_alpha=-0.75), [X], want)


def _crop_roi(method: str) -> Case:
    roi, size, (rows, columns) = (0.25, -0.2, 0.75, 1.2), (3, 7), X.shape[2:]
    want = np.full((2, 3, *size), -9.0)
    for i in range(size[0]):
        for j in range(size[1]):
            y = roi[0] * (rows - 1) + i * (roi[2] - roi[0]) * (rows - 1) / (size[0] - 1)
            x = roi[1] * (columns - 1) + j * (roi[3] - roi[1]) * (columns - 1) / (size[1] - 1)
            if 0 <= y <= rows - 1 and 0 <= x <= columns - 1:
                want[:, :, i, j] = _bilinear(X, y, x) if method == "linear" else X[:, :, math.floor(y), math.floor(x)]
    return case(f"resize2d-roi-{method}", lambda p: image.resize2d(p, size, roi, "NCHW", method, "tf_crop_and_resize", extrapolation_value=-9.0), [X], want)


def _bilinear(x: np.ndarray, row: float, column: float) -> np.ndarray:
    i, j = math.floor(row), math.floor(column)
    a, b = min(i + 1, x.shape[2] - 1), min(j + 1, x.shape[3] - 1)
    t, u = row - i, column - j
    return (x[:, :, i, j] * (1 - u) + x[:, :, i, b] * u) * (1 - t) + (x[:, :, a, j] * (1 - u) + x[:, :, a, b] * u) * t


RESIZE = [
    *(_resize(X, (7, 9), "linear", mode) for mode in ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel")),
    *(_resize(X, (8, 3), "nearest_neighbor", mode) for mode in ("half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn")),
    *(_resize(X, (8, 6), "nearest_neighbor", "half_pixel", rounding) for rounding in ("floor", "ceil", "round", "round_prefer_floor", "round_prefer_ceil")),
    _resize(X, (10, 8), "nearest_neighbor", "asymmetric", "floor"), _resize(WIDE, (8, 64), "nearest_neighbor", "asymmetric"),
    _resize(WIDE, (8, 128), "nearest_neighbor", "half_pixel", "round"), _resize(WIDE, (3, 70), "linear", "half_pixel"), _resize(X, (3, 2), "linear", "half_pixel"), _resize(X, (1, 1), "linear", "align_corners"),
    _resize(X, (1, 1), "linear", "pytorch_half_pixel"), _resize(X, (7, 9), "cubic", "half_pixel"), _resize(X, (7, 9), "cubic", "half_pixel", alpha=-0.75, exclude=1),
    _resize(X, (3, 3), "cubic", "align_corners", alpha=-0.75), _resize(X, (5, 4), "linear", "half_pixel"),
    _resize(X.transpose(0, 2, 3, 1).copy(), (7, 9), "linear", "half_pixel", layout="NHWC"),
    _resize(SIGNAL, (11,), "linear", "half_pixel"), _resize(SIGNAL, (4,), "cubic", "asymmetric"), _resize(SIGNAL, (12,), "nearest_neighbor", "asymmetric"),
    _resize(VOLUME, (5, 3, 6), "linear", "half_pixel"), _resize(VOLUME, (2, 4, 8), "nearest_neighbor", "align_corners"), _resize(VOLUME, (4, 3, 3), "cubic", "half_pixel"),
    _resize(X.astype(np.float64), (7, 9), "linear", "half_pixel"),
    case("resize_scaled-prefer-floor", lambda p: image.resize_scaled(p, (1.5, 1.5), (4, 4), method="nearest_neighbor",
                                                                     rounding_method="round_prefer_floor"), [NINE],
         NINE[:, :, [0, 0, 1, 2]][:, :, :, [0, 0, 1, 2]]),
    _scaled((0.6, 1.3), "linear"), _scaled((2.5, 1.3), "cubic"), _scaled((2.0, 3.0), "linear"), _scaled((0.6, 1.3), "nearest_neighbor"),
    case("resize2d-uint8", lambda p: image.resize2d(p, (2, 4), method="linear"), [np.array([[[[0, 100], [200, 255]]]], np.uint8)],
         [[[[0, 25, 75, 100], [200, 213, 241, 255]]]]),
    case("resize2d-int-nearest", lambda p: image.resize2d(p, (4, 4), None, "NCHW", "nearest_neighbor", "asymmetric", out_dtype="float32"), [np.array([[[[2**24 + 1, 2], [3, 4]]]], np.int32)],
         np.repeat(np.repeat([[[[2**24, 2], [3, 4]]]], 2, 2), 2, 3)),
    _crop_roi("linear"), _crop_roi("nearest_neighbor"),
]

BOXES = np.array([[0, 0, 1, 1], [0.2, 0.1, 0.9, 0.5], [-0.5, 0.5, 0.5, 1.5]], np.float32)
WHICH = np.array([0, 1, 0], np.int32)


def _crop_and_resize(method: str, size: tuple[int, int], layout: str) -> Case:
    rows, columns = X.shape[2:]
    want = np.full((3, 3, *size), 7.0)
    for b, (y1, x1, y2, x2) in enumerate(BOXES.astype(np.float64)):
        for i, j in np.ndindex(*size):
            y = y1 * (rows - 1) + i * (y2 - y1) * (rows - 1) / (size[0] - 1) if size[0] > 1 else 0.5 * (y1 + y2) * (rows - 1)
            x = x1 * (columns - 1) + j * (x2 - x1) * (columns - 1) / (size[1] - 1) if size[1] > 1 else 0.5 * (x1 + x2) * (columns - 1)
            if 0 <= y <= rows - 1 and 0 <= x <= columns - 1:
                picked = X[WHICH[b]][None]
                want[b, :, i, j] = _bilinear(picked, y, x)[0] if method == "bilinear" else picked[0, :, math.floor(y + 0.5), math.floor(x + 0.5)]
    data = X if layout == "NCHW" else X.transpose(0, 2, 3, 1).copy()
    return case(f"crop_and_resize-{method}-{size}-{layout}", lambda d, b, w: image.crop_and_resize(d, b, w, size, layout, method, 7.0),
                [data, BOXES, WHICH], want if layout == "NCHW" else want.transpose(0, 2, 3, 1))


CROP = [_crop_and_resize("bilinear", (3, 4), "NCHW"), _crop_and_resize("bilinear", (1, 5), "NHWC"), _crop_and_resize("nearest_neighbor", (4, 4), "NCHW")]


def _dilation(stride: tuple[int, int], pad: tuple[int, ...], dilation: tuple[int, int], channels_last: bool) -> Case:
    weight = R.standard_normal((3, 2, 3)).astype(np.float32)
    top, left, bottom, right = pad
    padded = np.pad(X, [(0, 0), (0, 0), (top, bottom), (left, right)])
    rows = (padded.shape[2] - dilation[0] - 1) // stride[0] + 1
    columns = (padded.shape[3] - 2 * dilation[1] - 1) // stride[1] + 1
    want = np.full((2, 3, rows, columns), -np.inf)
    for y, x, i, j in np.ndindex(rows, columns, 2, 3):
        want[:, :, y, x] = np.maximum(want[:, :, y, x], padded[:, :, y * stride[0] + i * dilation[0], x * stride[1] + j * dilation[1]] + weight[:, i, j])
    if channels_last:
        return case("dilation2d-NHWC", lambda d, w: image.dilation2d(d, w, stride, pad, dilation, "NHWC", "HWI"),
                    [X.transpose(0, 2, 3, 1).copy(), weight.transpose(1, 2, 0).copy()], want.transpose(0, 2, 3, 1))
    return case(f"dilation2d-{stride}-{pad}-{dilation}", lambda d, w: image.dilation2d(d, w, stride, pad, dilation), [X, weight], want)


DILATION = [_dilation((1, 1), (0, 0, 0, 0), (1, 1), False), _dilation((2, 1), (1, 2, 0, 1), (2, 1), False), _dilation((1, 1), (1, 1, 1, 1), (1, 1), True)]

THETA = R.standard_normal((2, 2, 3)).astype(np.float32)


def _affine_grid(size: tuple[int, int]) -> Case:
    want = np.zeros((2, 2, *size))
    for n, d, i, j in np.ndindex(*want.shape):
        y = -1 + 2 * i / (size[0] - 1) if size[0] > 1 else -1
        x = -1 + 2 * j / (size[1] - 1) if size[1] > 1 else -1
        want[n, d, i, j] = THETA[n, d] @ np.array([x, y, 1])
    return case(f"affine_grid-{size}", lambda p: image.affine_grid(p, size), [THETA], want)


def _reflect(v: float, low: float, high: float) -> float:
    while high > low and not low <= v <= high:
        v = 2 * low - v if v < low else 2 * high - v
    return v if high > low else 0.0


def _grid_sample(method: str, padding: str, align: bool) -> Case:
    grid = (R.uniform(-1.6, 1.6, (2, 2, 3, 4))).astype(np.float32)
    rows, columns = X.shape[2:]
    want = np.zeros((2, 3, 3, 4))

    def place(g: float, n: int) -> float:
        at = (g + 1) * (n - 1) / 2 if align else ((g + 1) * n - 1) / 2
        if method == "bicubic" or padding == "zeros":
            return at
        if padding == "reflection":
            at = _reflect(at, 0, n - 1) if align else _reflect(at, -0.5, n - 0.5)
        return min(max(at, 0), n - 1)

    def pixel(n: int, c: int, i: int, j: int) -> float:
        if padding == "reflection":
            i, j = (int(_reflect(v, 0, s - 1)) if align else int(min(max(_reflect(v, -0.5, s - 0.5), 0), s - 1)) for v, s in ((i, rows), (j, columns)))
        if padding == "zeros" and not (0 <= i < rows and 0 <= j < columns):
            return 0.0
        return float(X[n, c, min(max(i, 0), rows - 1), min(max(j, 0), columns - 1)])

    for n, c, a, b in np.ndindex(*want.shape):
        y, x = place(float(grid[n, 1, a, b]), rows), place(float(grid[n, 0, a, b]), columns)
        i, j = math.floor(y), math.floor(x)
        if method == "nearest":
            want[n, c, a, b] = pixel(n, c, round(y), round(x))
            continue
        wy = [1 - (y - i), y - i] if method == "bilinear" else cubic(y - i, -0.75)
        wx = [1 - (x - j), x - j] if method == "bilinear" else cubic(x - j, -0.75)
        first = 0 if method == "bilinear" else -1
        want[n, c, a, b] = sum(u * v * pixel(n, c, i + p + first, j + q + first) for p, u in enumerate(wy) for q, v in enumerate(wx))
    return case(f"grid_sample-{method}-{padding}-{align}", lambda d, g: image.grid_sample(d, g, method, "NCHW", padding, align), [X, grid], want)


def _grid_sample_volume() -> Case:
    grid = R.uniform(-0.9, 0.9, (1, 3, 2, 2, 2)).astype(np.float32)
    want = np.zeros((1, 1, 2, 2, 2))
    sizes = VOLUME.shape[2:]
    for a in np.ndindex(2, 2, 2):
        at = [(float(grid[(0, 2 - k, *a)]) + 1) * (sizes[k] - 1) / 2 for k in range(3)]
        for taps in np.ndindex(2, 2, 2):
            w = np.prod([(p - math.floor(p)) if t else 1 - (p - math.floor(p)) for p, t in zip(at, taps)])
            where = tuple(min(math.floor(p) + t, s - 1) for p, t, s in zip(at, taps, sizes))
            want[(0, 0, *a)] += w * VOLUME[(0, 0, *where)]
    return case("grid_sample-volume", lambda d, g: image.grid_sample(d, g, "bilinear", "NCDHW"), [VOLUME, grid], want)


GRID = [_affine_grid((3, 4)), _affine_grid((1, 2)), _grid_sample_volume(),
        *(_grid_sample(m, p, a) for m in ("nearest", "bilinear", "bicubic") for p in ("zeros", "border", "reflection") for a in (True, False))]

ALL = RESIZE + CROP + DILATION + GRID
