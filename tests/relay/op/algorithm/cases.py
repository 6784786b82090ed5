"""Cases of the operators that order elements."""
from __future__ import annotations

import numpy as np

from anchorleg import relay
from anchorleg.relay import op

from ..op_cases import Case, case

R = np.random.default_rng(11)
X = R.standard_normal((3, 7, 5)).astype(np.float32)
TIES = R.integers(0, 4, (4, 23)).astype(np.int32)
ODD = np.array([3.0, np.nan, -np.inf, 0.0, -0.0, np.inf, np.nan, -1.5], np.float32)
LONG = R.standard_normal((2, 201)).astype(np.float32)
LONG[0, ::17], LONG[1, ::40], LONG[1, 3::50], LONG[0, 5::50] = np.nan, np.inf, -0.0, 0.0
LONG_INTS = R.integers(-50, 50, 300).astype(np.int32)
ROWS = np.sort(R.standard_normal((2, 9)).astype(np.float32), axis=-1)
ASK = R.standard_normal((2, 4)).astype(np.float32)


def descending(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """Indices of a stable descending order, with NaN first."""
    n = x.shape[axis]
    return np.flip(n - 1 - np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)


def _argsort(x: np.ndarray, axis: int, ascend: bool, dtype: str) -> Case:
    want = np.argsort(x, axis=axis, kind="stable") if ascend else descending(x, axis)
    return case(f"argsort-{x.dtype}-{x.shape}-{axis}-{ascend}-{dtype}", lambda p: op.argsort(p, axis, ascend, dtype), [x], want)


def _topk(x: np.ndarray, k: int, axis: int, ascend: bool, ret: str, dtype: str = "int32") -> Case:
    order = np.argsort(x, axis=axis, kind="stable") if ascend else descending(x, axis)
    index = np.take(order, np.arange(k if k > 0 else x.shape[axis]), axis=axis)
    values = np.take_along_axis(x, index, axis)
    want = {"both": (values, index), "values": values, "indices": index}[ret]
    return case(f"topk-{x.dtype}-{x.shape}-{k}-{axis}-{ascend}-{ret}", lambda p: op.topk(p, k, axis, ret, ascend, dtype), [x], want)


def _search(rows: np.ndarray, values: np.ndarray, right: bool) -> Case:
    side = "right" if right else "left"
    want = np.searchsorted(rows, values, side) if rows.ndim == 1 else np.stack([np.searchsorted(r, v, side) for r, v in zip(rows, values)])
    return case(f"searchsorted-{rows.shape}-{values.shape}-{right}", lambda a, b: op.searchsorted(a, b, right, "int64"), [rows, values], want)


ALL = [
    *(case(f"sort-{axis}-{up}", lambda p, axis=axis, up=up: op.sort(p, axis, up), [X], np.sort(X, axis) if up else -np.sort(-X, axis))
      for axis in (0, 1, -1) for up in (True, False)),
    case("sort-nan", lambda p: op.sort(p), [ODD], np.sort(ODD)),
    case("sort-one", lambda p: op.sort(p), [X[:, :, :1]], X[:, :, :1]),
    case("sort-empty", lambda p: op.sort(p), [np.zeros((2, 0), np.float32)], np.zeros((2, 0))),
    _argsort(X, 1, True, "int32"), _argsort(X, -1, False, "int64"), _argsort(TIES, -1, True, "int32"), _argsort(TIES, -1, False, "float32"),
    _argsort(ODD, 0, True, "int32"), _argsort(ODD, 0, False, "int32"), _argsort(TIES.astype("uint8"), 0, False, "int32"),
    _argsort(TIES > 1, 1, True, "int32"), _argsort(X.astype("float64"), 0, True, "int32"), _argsort(X.astype("float16"), 2, False, "int32"),
    _argsort((TIES.astype("int64") - 2) * 2**40, 1, True, "int32"),
    _topk(X, 3, 1, False, "both"), _topk(X, 2, -1, True, "both", "int64"), _topk(TIES, 5, 1, False, "both"), _topk(TIES, 5, 1, True, "indices"),
    _topk(X, 1, 0, False, "values"), _topk(ODD, 4, 0, False, "both"), _topk(ODD, 6, 0, True, "both"), _topk(TIES, 0, 1, False, "both"),
    _argsort(LONG, -1, True, "int32"), _argsort(LONG, -1, False, "int32"), _argsort(LONG.astype("float64"), 0, False, "int64"),
    _argsort(LONG_INTS, 0, True, "int32"), _argsort(LONG_INTS.astype("int64") * 2**35, 0, False, "int32"), _argsort(LONG_INTS.astype("uint8"), 0, False, "int32"),
    _argsort(LONG_INTS.astype("int16"), 0, True, "int32"), _argsort(LONG_INTS > 0, 0, False, "int32"), _argsort(LONG.astype("float16"), 1, True, "int32"),
    _topk(LONG, 150, 1, True, "both"), _topk(LONG_INTS, 20, 0, False, "both"), _topk(R.standard_normal((2, 150)).astype(np.float32), 100, 1, False, "both"), _topk(TIES, 23, -1, False, "values"),
    case("topk-constant", lambda p: op.topk(p, relay.const(np.array([2])), ret_type="values"), [TIES], -np.sort(-TIES)[:, :2]),
    _search(ROWS[0], ASK, False), _search(ROWS, ASK, True), _search(np.array([1, 2, 2, 2, 5], np.int32), np.array([0, 2, 9, 5], np.int32), False),
    _search(np.array([1, 2, 2, 2, 5], np.int32), np.array([0, 2, 9, 5], np.int32), True),
]
