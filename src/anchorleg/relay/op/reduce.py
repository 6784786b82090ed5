"""Reductions: sum, mean, product, extremes, logic, arg-extremes, variance, log-sum-exp.

``axis`` None reduces over all axes, an empty list over none; ``exclude`` reduces over all axes but the given ones.
Reductions of nothing give the neutral element (sum 0, prod 1, max the least value, min the greatest, mean NaN).
Sums of bool are "or", products "and".  16-bit floats are summed in float32.
"""
from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from ...ir.attrs import BOOL, OPT_INTS, Attrs, Field
from ...ir.expr import RelayExpr
from ...ir.op import Op, OpPattern
from ...ir.type import TensorType, Type
from ...runtime.dtype import numpy_dtype
from ...support.errors import TypeMismatchError
from ..expr import Call, Tuple, TupleWrapper
from .registry import declare
from .tensor.common import FLOATS, NUMBERS, accepting, wide
from .type_relations import dims_agree, normalize_axis, product, show, show_dims, tensor, tensors

_AXIS = "The axis or axes to reduce over (None: all; empty: none)."
_KEEP = "Whether reduced axes stay, with length 1."
_EXCLUDE = "Whether to reduce over the axes that are not in ``axis`` instead."


class ReduceAttrs(Attrs, name="relay.attrs.ReduceAttrs"):
    """Attributes of reductions."""

    axis = Field(OPT_INTS, None, _AXIS)
    keepdims = Field(BOOL, False, _KEEP)
    exclude = Field(BOOL, False, _EXCLUDE)


class ArgReduceAttrs(Attrs, name="relay.attrs.ArgReduceAttrs"):
    """Attributes of ``argmax`` and ``argmin``."""

    axis = Field(OPT_INTS, None, _AXIS)
    keepdims = Field(BOOL, False, _KEEP)
    select_last_index = Field(BOOL, False, "Whether the last of equal elements is taken rather than the first.")
    exclude = Field(BOOL, False, _EXCLUDE)


class VarianceAttrs(Attrs, name="relay.attrs.VarianceAttrs"):
    """Attributes of ``variance``."""

    axis = Field(OPT_INTS, None, _AXIS)
    keepdims = Field(BOOL, False, _KEEP)
    exclude = Field(BOOL, False, _EXCLUDE)
    unbiased = Field(BOOL, False, "Whether to divide by n - 1 rather than n.")


# -- types ----------------------------------------------------------------------------------------

def reduced_axes(ndim: int, attrs: Any) -> tuple[int, ...]:
    """The axes that a reduction with these attributes reduces over, sorted; TypeMismatchError when out of range."""
    if attrs.axis is None:
        if attrs.exclude:
            raise TypeMismatchError("exclude=True needs the axes to exclude; axis is None")
        return tuple(range(ndim))
    axes = {normalize_axis(a, ndim) for a in attrs.axis}
    return tuple(a for a in range(ndim) if (a in axes) != attrs.exclude)


def reduced_dims(dims: Sequence[Any], axes: Sequence[int], keepdims: bool) -> tuple[Any, ...]:
    """The shape that remains."""
    if keepdims:
        return tuple(1 if i in axes else d for i, d in enumerate(dims))
    return tuple(d for i, d in enumerate(dims) if i not in axes)


def reduce_rel(args: tuple[Type, ...], attrs: ReduceAttrs, ctx: Any) -> Type | None:
    """The input's type without the reduced axes."""
    data = tensor(args[0])
    if data is None:
        return None
    return TensorType(reduced_dims(data.dims, reduced_axes(len(data.dims), attrs), attrs.keepdims), data.dtype)


def arg_reduce_rel(args: tuple[Type, ...], attrs: ArgReduceAttrs, ctx: Any) -> Type | None:
    """Indices: int32, or int64 where more elements are reduced than int32 counts."""
    data = tensor(args[0])
    if data is None:
        return None
    axes = reduced_axes(len(data.dims), attrs)
    count, dims = product([data.dims[a] for a in axes]), reduced_dims(data.dims, axes, attrs.keepdims)
    if isinstance(count, int) and count == 0 and 0 not in dims:
        raise TypeMismatchError(f"there is no extreme element among none: the input is {show(data)}, reduced over axes {axes}")
    return TensorType(dims, "int64" if isinstance(count, int) and count > 2**31 else "int32")


def _disagree(got: Sequence[Any], want: Sequence[Any]) -> bool:
    return next((True for a, b in zip(got, want) if not dims_agree(a, b)), False)


def variance_rel(args: tuple[Type, ...], attrs: VarianceAttrs, ctx: Any) -> Type | None:
    """As a reduction; the mean has the input's rank, with length 1 along the reduced axes."""
    both = tensors(args, ("the input", "the mean"))
    if both is None:
        return None
    data, mean = both
    axes = reduced_axes(len(data.dims), attrs)
    want = reduced_dims(data.dims, axes, True)
    if len(mean.dims) != len(want) or mean.dtype != data.dtype or _disagree(mean.dims, want):
        raise TypeMismatchError(f"the mean is expected to be a {data.dtype} tensor of shape {show_dims(want)}, got {show(mean)}")
    return TensorType(reduced_dims(data.dims, axes, attrs.keepdims), data.dtype)


# -- meaning --------------------------------------------------------------------------------------

def _lowest(dtype: np.dtype) -> Any:
    return -np.inf if dtype.kind == "f" else False if dtype.kind == "b" else np.iinfo(dtype).min


def _highest(dtype: np.dtype) -> Any:
    return np.inf if dtype.kind == "f" else True if dtype.kind == "b" else np.iinfo(dtype).max


def _sum(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    if x.dtype == bool:
        return x.any(axis=axes, keepdims=True)
    exact = np.float64 if x.dtype.kind == "f" else x.dtype  # numpy adds one by one where the axes are not contiguous
    return x.sum(axis=axes, keepdims=True, dtype=exact).astype(x.dtype)


def _prod(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    return x.all(axis=axes, keepdims=True) if x.dtype == bool else x.prod(axis=axes, keepdims=True, dtype=x.dtype)


def _max(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    return x.max(axis=axes, keepdims=True, initial=_lowest(x.dtype))


def _min(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    return x.min(axis=axes, keepdims=True, initial=_highest(x.dtype))


def _all(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    return (x != 0).all(axis=axes, keepdims=True)


def _any(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    return (x != 0).any(axis=axes, keepdims=True)


def _count(x: np.ndarray, axes: tuple[int, ...]) -> int:
    return int(np.prod([x.shape[a] for a in axes], dtype=np.int64))


def _divide(total: np.ndarray, count: int) -> np.ndarray:
    if total.dtype.kind == "f":
        return total / total.dtype.type(count)
    return _int_divide(total, count) if count else np.zeros_like(total)


def _int_divide(total: np.ndarray, count: int) -> np.ndarray:
    quotient = np.abs(total) // total.dtype.type(count)
    return np.where(total < 0, -quotient, quotient).astype(total.dtype)


def _mean(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    return _divide(_sum(x, axes), _count(x, axes))


def _logsumexp(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    top = _max(x, axes)
    finite = np.where(np.isfinite(top), top, np.zeros_like(top))
    return np.log(np.exp(x - finite).sum(axis=axes, keepdims=True, dtype=x.dtype)) + finite


def _rule(fn: Callable[[np.ndarray, tuple[int, ...]], np.ndarray]) -> Any:
    def rule(attrs: Any, args: list[np.ndarray], out_type: Any) -> np.ndarray:
        axes = reduced_axes(args[0].ndim, attrs)
        if not axes and fn in (_sum, _prod, _max, _min, _mean):
            return args[0]
        kept = np.asarray(fn(wide(args[0]), axes)).astype(numpy_dtype(out_type.dtype))
        return kept if attrs.keepdims else kept.reshape([d for i, d in enumerate(kept.shape) if i not in axes])

    return rule


def _flat(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The reduced axes moved to the end and joined."""
    kept = [i for i in range(x.ndim) if i not in axes]
    return x.transpose([*kept, *axes]).reshape([*(x.shape[i] for i in kept), _count(x, axes)])


def _arg_rule(find: Callable[..., np.ndarray]) -> Any:
    def rule(attrs: ArgReduceAttrs, args: list[np.ndarray], out_type: Any) -> np.ndarray:
        axes = reduced_axes(args[0].ndim, attrs)
        flat = _flat(wide(args[0]), axes)
        shape = reduced_dims(args[0].shape, axes, attrs.keepdims)
        if 0 in shape:
            return np.zeros(shape, numpy_dtype(out_type.dtype))
        found = flat.shape[-1] - 1 - find(flat[..., ::-1], axis=-1) if attrs.select_last_index else find(flat, axis=-1)
        return found.astype(numpy_dtype(out_type.dtype)).reshape(shape)

    return rule


def _variance_rule(attrs: VarianceAttrs, args: list[np.ndarray], out_type: Any) -> np.ndarray:
    x, mean = wide(args[0]), wide(args[1])
    axes = reduced_axes(x.ndim, attrs)
    square = ((x - mean) ** 2).sum(axis=axes, keepdims=attrs.keepdims, dtype=x.dtype)
    return (square / x.dtype.type(_count(x, axes) - attrs.unbiased)).astype(numpy_dtype(out_type.dtype))


# name, numpy function, accepted types, meaning
_TABLE: list[tuple[str, Any, Any, str]] = [
    ("sum", _sum, None, "The sum; of bool, whether one is true."),
    ("prod", _prod, None, "The product; of bool, whether all are true."),
    ("max", _max, None, "The largest element; NaN if one is NaN."),
    ("min", _min, None, "The smallest element; NaN if one is NaN."),
    ("mean", _mean, NUMBERS, "The mean; of integers, cut towards zero."),
    ("all", _all, None, "Whether all elements are non-zero, in the input's data type."),
    ("any", _any, None, "Whether one element is non-zero, in the input's data type."),
    ("logsumexp", _logsumexp, FLOATS, "log(sum(exp(input))) without overflow on the way."),
]

for _name, _fn, _accept, _doc in _TABLE:
    declare(_name, attrs=ReduceAttrs, relation=accepting(reduce_rel, _accept), pattern=OpPattern.COMM_REDUCE, numpy=_rule(_fn),
            doc=_doc, level=4)
for _name, _find in (("argmax", np.argmax), ("argmin", np.argmin)):
    declare(_name, attrs=ArgReduceAttrs, relation=arg_reduce_rel, pattern=OpPattern.COMM_REDUCE, numpy=_arg_rule(_find), level=4,
            doc=f"The flat index, within the reduced axes, of the {'largest' if _name == 'argmax' else 'smallest'} element; "
                "a NaN counts as that.")
declare("variance", inputs=("data", "mean"), attrs=VarianceAttrs, relation=accepting(variance_rel, FLOATS),
        pattern=OpPattern.COMM_REDUCE, numpy=_variance_rule, level=4, doc="The mean square of the distance from the mean.")


# -- constructors ---------------------------------------------------------------------------------

Axis = Any  # None | int | Sequence[int]


def _reduce(name: str, data: RelayExpr, axis: Axis, keepdims: bool, exclude: bool) -> Call:
    return Call(Op.get(name), [data], ReduceAttrs(axis=axis, keepdims=keepdims, exclude=exclude))


def sum(data: RelayExpr, axis: Axis = None, keepdims: bool = False, exclude: bool = False) -> Call:
    """The sum over ``axis`` (None: all axes); of bool, whether one element is true."""
    return _reduce("sum", data, axis, keepdims, exclude)


def prod(data: RelayExpr, axis: Axis = None, keepdims: bool = False, exclude: bool = False) -> Call:
    """The product over ``axis`` (None: all axes)."""
    return _reduce("prod", data, axis, keepdims, exclude)


def max(data: RelayExpr, axis: Axis = None, keepdims: bool = False, exclude: bool = False) -> Call:
    """The largest element over ``axis`` (None: all axes); NaN if one is NaN."""
    return _reduce("max", data, axis, keepdims, exclude)


def min(data: RelayExpr, axis: Axis = None, keepdims: bool = False, exclude: bool = False) -> Call:
    """The smallest element over ``axis`` (None: all axes); NaN if one is NaN."""
    return _reduce("min", data, axis, keepdims, exclude)


def mean(data: RelayExpr, axis: Axis = None, keepdims: bool = False, exclude: bool = False) -> Call:
    """The mean over ``axis`` (None: all axes)."""
    return _reduce("mean", data, axis, keepdims, exclude)


def all(data: RelayExpr, axis: Axis = None, keepdims: bool = False, exclude: bool = False) -> Call:
    """Whether all elements over ``axis`` (None: all axes) are true."""
    return _reduce("all", data, axis, keepdims, exclude)


def any(data: RelayExpr, axis: Axis = None, keepdims: bool = False, exclude: bool = False) -> Call:
    """Whether one element over ``axis`` (None: all axes) is true."""
    return _reduce("any", data, axis, keepdims, exclude)


def logsumexp(data: RelayExpr, axis: Axis = None, keepdims: bool = False) -> Call:
    """log(sum(exp(data))) over ``axis`` (None: all axes), without overflow on the way."""
    return _reduce("logsumexp", data, axis, keepdims, False)


def argmax(data: RelayExpr, axis: Axis = None, keepdims: bool = False, exclude: bool = False, select_last_index: bool = False) -> Call:
    """The index of the largest element over ``axis`` (None: the flat index over all axes)."""
    attrs = ArgReduceAttrs(axis=axis, keepdims=keepdims, exclude=exclude, select_last_index=select_last_index)
    return Call(Op.get("argmax"), [data], attrs)


def argmin(data: RelayExpr, axis: Axis = None, keepdims: bool = False, exclude: bool = False, select_last_index: bool = False) -> Call:
    """The index of the smallest element over ``axis`` (None: the flat index over all axes)."""
    attrs = ArgReduceAttrs(axis=axis, keepdims=keepdims, exclude=exclude, select_last_index=select_last_index)
    return Call(Op.get("argmin"), [data], attrs)


def variance(data: RelayExpr, axis: Axis = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False,
             with_mean: RelayExpr | None = None) -> Call:
    """The variance over ``axis``; ``with_mean`` is the mean with reduced axes kept, when known already."""
    center = mean(data, axis, True, exclude) if with_mean is None else with_mean
    attrs = VarianceAttrs(axis=axis, keepdims=keepdims, exclude=exclude, unbiased=unbiased)
    return Call(Op.get("variance"), [data, center], attrs)


def std(data: RelayExpr, axis: Axis = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False) -> Call:
    """The standard deviation over ``axis``."""
    return Call(Op.get("sqrt"), [variance(data, axis, keepdims, exclude, unbiased)])


def mean_variance(data: RelayExpr, axis: Axis = None, keepdims: bool = False, exclude: bool = False,
                  unbiased: bool = False) -> TupleWrapper:
    """Mean and variance over ``axis``."""
    kept = mean(data, axis, True, exclude)
    spread = variance(data, axis, keepdims, exclude, unbiased, with_mean=kept)
    return TupleWrapper(Tuple((kept if keepdims else mean(data, axis, False, exclude), spread)), 2)


def mean_std(data: RelayExpr, axis: Axis = None, keepdims: bool = False, exclude: bool = False) -> TupleWrapper:
    """Mean and standard deviation over ``axis``."""
    kept = mean(data, axis, True, exclude)
    spread = Call(Op.get("sqrt"), [variance(data, axis, keepdims, exclude, False, with_mean=kept)])
    return TupleWrapper(Tuple((kept if keepdims else mean(data, axis, False, exclude), spread)), 2)


__all__ = ["sum", "prod", "max", "min", "mean", "all", "any", "logsumexp", "argmax", "argmin", "variance", "std",
           "mean_variance", "mean_std"]
