"""Reductions over axes: sums, products, extremes, logic, arg-extremes.

``axis`` None reduces over all axes, an empty tuple over none.  16-bit floats are summed in float32.
"""
from __future__ import annotations

from typing import Any, Callable, Sequence

from .. import te
from ..support.errors import ArgumentError
from ..te.tensor import Tensor
from ..tir import op as T
from ..tir.dtypes import is_bool, is_float
from .dtypes import compute_dtype
from .elemwise import cast
from .math import identity
from .tag import COMM_REDUCE, COMM_REDUCE_IDX, ELEMWISE
from .utils import prod as product
from .utils import ravel_index, static_int

Axis = Any  # None | int | Sequence[int]

sum_reducer = te.sum
prod_reducer = te.prod
max_reducer = te.max
min_reducer = te.min
all_reducer = te.comm_reducer(lambda x, y: T.logical_and(x, y), lambda t: T.const(True, t), "all")
any_reducer = te.comm_reducer(lambda x, y: T.logical_or(x, y), lambda t: T.const(False, t), "any")


def get_real_axis(ndim: int, axis: Axis) -> list[int]:
    """The axes as sorted non-negative ints; ArgumentError when out of range."""
    if axis is None:
        return list(range(ndim))
    axes = [axis] if isinstance(axis, int) or static_int(axis) is not None else list(axis)
    found = set()
    for a in axes:
        a = static_int(a)
        if a is None or not -ndim <= a < ndim:
            raise ArgumentError(f"a reduction axis is expected to lie in [{-ndim}, {ndim - 1}], got {a}")
        found.add(a % ndim)
    return sorted(found)


class _Axes:
    """The shape of a reduction: reduced axes, kept shape, and where an output element's inputs lie."""

    def __init__(self, data: Tensor, axis: Axis, keepdims: bool, atleast1d: bool) -> None:
        self.data, self.keepdims = data, keepdims
        self.axes = get_real_axis(len(data.shape), axis)
        self.reduce = [te.reduce_axis((0, data.shape[a]), name=f"k{a}") for a in self.axes]
        self.kept = [i for i in range(len(data.shape)) if i not in self.axes]
        shape = [1 if i in self.axes else d for i, d in enumerate(data.shape)] if keepdims else [data.shape[i] for i in self.kept]
        self.extra = 1 if atleast1d and not shape else 0
        self.shape = [1] * self.extra + shape

    def indices(self, out: Sequence[Any]) -> list[Any]:
        """The indices into the data for an output element."""
        out = list(out)[self.extra:]
        kept = dict(zip(self.kept, [out[i] for i in self.kept] if self.keepdims else out))
        rvars = dict(zip(self.axes, (k.var for k in self.reduce)))
        return [rvars[i] if i in rvars else kept[i] for i in range(len(self.data.shape))]

    def flat_index(self) -> Any:
        """The number of the element among those reduced, row-major."""
        return ravel_index([k.var for k in self.reduce], [self.data.shape[a] for a in self.axes])


def comm_reduce(data: Tensor, axis: Axis, keepdims: bool, func: Callable[..., Any], atleast1d: bool = False) -> Tensor:
    """``data`` reduced with the reducer ``func`` (made by ``te.comm_reducer``)."""
    at = _Axes(data, axis, keepdims, atleast1d)
    if not at.axes:
        return identity(data)
    return te.compute(at.shape, lambda *i: func(data(*at.indices(i)), axis=at.reduce), name=f"{data.op.name}_red", tag=COMM_REDUCE)


def _in_wide(data: Tensor, axis: Axis, keepdims: bool, func: Callable[..., Any]) -> Tensor:
    wide = compute_dtype(data.dtype)
    if wide == data.dtype:
        return comm_reduce(data, axis, keepdims, func)
    return cast(comm_reduce(cast(data, wide), axis, keepdims, func), data.dtype)


def sum(data: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The sum; of bool, whether one element is true."""
    return any(data, axis, keepdims) if is_bool(data.dtype) else _in_wide(data, axis, keepdims, sum_reducer)


def prod(data: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The product; of bool, whether all elements are true."""
    return all(data, axis, keepdims) if is_bool(data.dtype) else _in_wide(data, axis, keepdims, prod_reducer)


def max(data: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The largest element; NaN if one is NaN; the least value of the dtype for no elements."""
    return any(data, axis, keepdims) if is_bool(data.dtype) else _in_wide(data, axis, keepdims, max_reducer)


def min(data: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The smallest element; NaN if one is NaN; the greatest value of the dtype for no elements."""
    return all(data, axis, keepdims) if is_bool(data.dtype) else _in_wide(data, axis, keepdims, min_reducer)


def _logic(data: Tensor, axis: Axis, keepdims: bool, reducer: Callable[..., Any]) -> Tensor:
    if is_bool(data.dtype):
        return comm_reduce(data, axis, keepdims, reducer)
    return cast(comm_reduce(cast(data, "bool"), axis, keepdims, reducer), data.dtype)


def all(data: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether all elements are non-zero, in the input's dtype."""
    return _logic(data, axis, keepdims, all_reducer)


def any(data: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether one element is non-zero, in the input's dtype."""
    return _logic(data, axis, keepdims, any_reducer)


def divide_by_count(total: Tensor, count: Any, dtype: str, unbiased: bool = False) -> Tensor:
    """``total`` divided by the number of elements (less one when ``unbiased``), as ``dtype``; integers are cut towards zero."""
    def element(*i: Any) -> Any:
        value, known = total(*i), static_int(count)
        if is_float(value.dtype):
            below = T.const(float(known - unbiased), value.dtype) if known is not None else T.cast(count - int(unbiased), value.dtype)
            return T.cast(T.divide(value, below), dtype)
        if known == 0:
            return T.const(0, dtype)
        return T.cast(T.truncdiv(value, T.cast(count, value.dtype) if known is None else T.const(known, value.dtype)), dtype)

    return te.compute(total.shape, element, name="T_divide_by_count", tag=ELEMWISE)


def element_count(data: Tensor, axis: Axis) -> Any:
    """How many elements of ``data`` are reduced into one."""
    return product([data.shape[a] for a in get_real_axis(len(data.shape), axis)])


def mean(data: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The mean; of integers, cut towards zero."""
    wide = compute_dtype(data.dtype)
    total = comm_reduce(data if wide == data.dtype else cast(data, wide), axis, keepdims, sum_reducer)
    return divide_by_count(total, element_count(data, axis), data.dtype)


def variance(data: Tensor, mean: Tensor, axis: Axis = None, keepdims: bool = False, unbiased: bool = False) -> Tensor:
    """The mean square distance from ``mean``, which has length 1 along the reduced axes."""
    axes, wide = get_real_axis(len(data.shape), axis), compute_dtype(data.dtype)

    def square(*i: Any) -> Any:
        center = mean(*[0 if a in axes else v for a, v in enumerate(i)])
        apart = T.cast(data(*i), wide) - T.cast(center, wide)
        return apart * apart

    squares = te.compute(data.shape, square, name="T_square_distance", tag="broadcast")
    total = comm_reduce(squares, axis, keepdims, sum_reducer)
    return divide_by_count(total, element_count(data, axis), data.dtype, unbiased)


def logsumexp(data: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """log(sum(exp(data))) without overflow on the way."""
    wide, axes = compute_dtype(data.dtype), get_real_axis(len(data.shape), axis)
    x = data if wide == data.dtype else cast(data, wide)
    top = comm_reduce(x, axes, True, max_reducer)
    zero = T.const(0, wide)
    finite = te.compute(top.shape, lambda *i: T.select(T.isfinite(top(*i)), top(*i), zero), name="T_shift", tag=ELEMWISE)

    def shift(i: Sequence[Any]) -> Any:
        return finite(*[0 if a in axes else v for a, v in enumerate(i)])

    powers = te.compute(x.shape, lambda *i: T.exp(x(*i) - shift(i)), name="T_exp", tag="broadcast")
    total = comm_reduce(powers, axes, True, sum_reducer)
    kept = te.compute(total.shape, lambda *i: T.cast(T.log(total(*i)) + finite(*i), data.dtype), name="T_log_shift", tag=ELEMWISE)
    return kept if keepdims else _drop(kept, axes)


def _drop(x: Tensor, axes: Sequence[int]) -> Tensor:
    """``x`` without the axes, each of length 1."""
    kept = [i for i in range(len(x.shape)) if i not in axes]

    def element(*i: Any) -> Any:
        at = dict(zip(kept, i))
        return x(*[at.get(a, 0) for a in range(len(x.shape))])

    return te.compute([x.shape[i] for i in kept], element, name="T_squeeze", tag="injective")


# -- arg-extremes ---------------------------------------------------------------------------------

def _arg_reducer(better: Callable[[Any, Any], Any], worst: Callable[[str], Any], last: bool, name: str) -> Callable[..., Any]:
    def combine(lhs: Any, rhs: Any) -> Any:
        (li, lv), (ri, rv) = lhs, rhs
        first = li > ri if last else li < ri
        keep = T.logical_or(better(lv, rv), T.logical_and(_equal_or_nan(lv, rv), first))
        return T.select(keep, li, ri), T.select(keep, lv, rv)

    def neutral(index: str, value: str) -> Any:
        return (T.const(-1, index) if last else T.max_value(index)), worst(value)

    return te.comm_reducer(combine, neutral, name)


def _equal_or_nan(a: Any, b: Any) -> Any:
    same = T.equal(a, b)
    return T.logical_or(same, T.logical_and(T.isnan(a), T.isnan(b))) if is_float(a.dtype) else same


def _above(a: Any, b: Any) -> Any:
    return T.logical_or(a > b, T.logical_and(T.isnan(a), T.logical_not(T.isnan(b)))) if is_float(a.dtype) else a > b


def _below(a: Any, b: Any) -> Any:
    return T.logical_or(a < b, T.logical_and(T.isnan(a), T.logical_not(T.isnan(b)))) if is_float(a.dtype) else a < b


def _least(dtype: str) -> Any:
    return T.const(float("-inf"), dtype) if is_float(dtype) else T.min_value(dtype)


def _greatest(dtype: str) -> Any:
    return T.const(float("inf"), dtype) if is_float(dtype) else T.max_value(dtype)


def _arg_reduce(data: Tensor, axis: Axis, keepdims: bool, last: bool, largest: bool, dtype: str) -> Tensor:
    wide = "uint8" if is_bool(data.dtype) else compute_dtype(data.dtype)
    x = data if wide == data.dtype else cast(data, wide)
    at = _Axes(x, axis, keepdims, False)
    if not at.axes:
        return te.compute(x.shape, lambda *i: T.const(0, dtype), name="T_no_axis", tag=ELEMWISE)
    name = "argmax" if largest else "argmin"
    reducer = _arg_reducer(_above if largest else _below, _least if largest else _greatest, last, name)
    index, _ = te.compute(at.shape, lambda *i: reducer((T.cast(at.flat_index(), dtype), x(*at.indices(i))), axis=at.reduce),
                          name=f"{data.op.name}_red_temp", tag=COMM_REDUCE_IDX)
    return te.compute(at.shape, lambda *i: index(*i), name=f"{data.op.name}_red", tag=ELEMWISE)


def argmax(data: Tensor, axis: Axis = None, keepdims: bool = False, select_last_index: bool = False, dtype: str = "int32") -> Tensor:
    """The row-major number, within the reduced axes, of the largest element; a NaN counts as the largest."""
    return _arg_reduce(data, axis, keepdims, select_last_index, True, dtype)


def argmin(data: Tensor, axis: Axis = None, keepdims: bool = False, select_last_index: bool = False, dtype: str = "int32") -> Tensor:
    """The row-major number, within the reduced axes, of the smallest element; a NaN counts as the smallest."""
    return _arg_reduce(data, axis, keepdims, select_last_index, False, dtype)


__all__ = ["comm_reduce", "sum", "prod", "max", "min", "all", "any", "mean", "variance", "logsumexp", "argmax", "argmin", "get_real_axis",
           "divide_by_count", "element_count"]
