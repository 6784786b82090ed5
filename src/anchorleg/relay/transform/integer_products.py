"""IntegerProducts: products of shifted bytes become products of the bytes themselves, for which processors have instructions.

before (``%x`` is uint8, ``w`` an int32 constant within the range of int8)::

    nn.dense(subtract(cast(%x, "int32"), %z), w, out_dtype="int32")

after::

    subtract(nn.dense(%x, cast(w, "int8"), out_dtype="int32"), multiply(%z, sum(w, axis=1)))

Integer arithmetic wraps, so both are equal whatever the values.  Padding is with the zero point, which stands for 0.  Where the
processor's dot product wants the data of the other signedness, the data are shifted by 128, and the zero point with them.
Weights that are no bytes, but span no more than 256 values, are shifted as well; that costs the sum over the data.
"""
from __future__ import annotations

from typing import Any, NamedTuple, Sequence

import numpy as np

from ...ir.expr import RelayExpr
from ...ir.type import TensorType
from ...target.target import Target
from ..expr import Call, Constant
from ..function import Function
from ..op.registry import make_attrs
from .common import call, constant, declare_pass, is_op, mentions, rewrite_exprs

PRODUCTS = ("nn.dense", "nn.conv2d")
WORD = 4  # bytes that one dot product multiplies
_BYTES = ("int8", "uint8")
RESHAPES = ("reshape", "expand_dims", "squeeze", "transpose", "layout_transform")  # which may stand between the shift and the product


class _Shifted(NamedTuple):
    """Bytes and what is to be subtracted from each: a number, or a scalar expression of int32."""

    data: RelayExpr
    dtype: str
    zero: int | RelayExpr


class _Weight(NamedTuple):
    """A constant weight of bytes (int16 where no dot product is to come) and what is to be added to each output's: an int32 vector."""

    values: np.ndarray
    more: np.ndarray


# -- what is multiplied


def shifted_bytes(old: RelayExpr, new: RelayExpr) -> _Shifted | None:
    """``new`` as bytes less a number; None when it is nothing of the kind.  ``old`` is the same before rewriting, with its types."""
    around: list[Any] = []
    while is_op(old, *RESHAPES):
        around.append(new)
        old, new = _first(old, new)
    zero: int | RelayExpr = 0
    if is_op(old, "subtract") and _is_scalar(old.args[1]):  # type: ignore[attr-defined]
        zero = _number(old.args[1], new.args[1])  # type: ignore[attr-defined]
        old, new = _first(old, new)
    if is_op(old, "cast") and old.attrs.dtype == "int32":  # type: ignore[attr-defined]
        old, new = _first(old, new)
    dtype = getattr(old._checked_type, "dtype", "")
    if dtype not in _BYTES:
        return None
    for each in reversed(around):
        new = Call(each.op, [new, *each.args[1:]], each.attrs, (), each.span)
    return _Shifted(new, dtype, zero)


def _first(old: Any, new: Any) -> tuple[RelayExpr, RelayExpr]:
    return old.args[0], new.args[0]


def _is_scalar(expr: RelayExpr) -> bool:
    ty = expr._checked_type
    return isinstance(ty, TensorType) and all(d == 1 for d in ty.dims)


def _number(old: RelayExpr, new: RelayExpr) -> int | RelayExpr:
    if isinstance(old, Constant):
        return int(old.data.numpy().reshape(-1)[0])
    return new if not old._checked_type.dims else call("reshape", new, attrs=make_attrs("reshape", newshape=()))  # type: ignore[union-attr]


def byte_weight(values: np.ndarray, axis: int, depthwise: bool) -> _Weight | None:
    """An integer weight as bytes, shifted where it must be (by output, along ``axis``); None when its values span too much."""
    others = tuple(a for a in range(values.ndim) if a != axis)
    wide = values.astype(np.int64)
    low, high = (f(wide, axis=others) if wide.size else np.zeros(values.shape[axis], np.int64) for f in (np.min, np.max))
    none = np.zeros(values.shape[axis], np.int32)
    if low.min(initial=0) >= -128 and high.max(initial=0) <= 127:
        return _Weight(values.astype(np.int8), none)
    if depthwise:  # multiplied one by one, in any case
        return _Weight(values.astype(np.int16), none) if low.min() >= -(1 << 15) and high.max() < 1 << 15 else None
    more = np.where((low < -128) | (high > 127), high - 127, 0)
    if (low - more).min() < -128:
        return None
    return _Weight((wide - more.reshape([-1 if a == axis else 1 for a in range(values.ndim)])).astype(np.int8), more.astype(np.int32))


def _in_sign(x: _Shifted, wanted: str) -> _Shifted:
    """The same numbers as bytes of the wanted signedness."""
    if wanted in ("", x.dtype):
        return x
    by = 128 if wanted == "uint8" else -128
    moved = call("add", _cast(x.data, "int32"), constant(by, "int32"))
    return _Shifted(_cast(moved, wanted), wanted, _plus(x.zero, by))


def _cast(x: RelayExpr, dtype: str) -> RelayExpr:
    return call("cast", x, attrs=make_attrs("cast", dtype=dtype))


def _plus(x: int | RelayExpr, by: int) -> int | RelayExpr:
    return x + by if isinstance(x, int) else call("add", x, constant(by, "int32"))


# -- products


def _corrected(product: RelayExpr, zero: int | RelayExpr, sums: np.ndarray, shape: Sequence[int]) -> RelayExpr:
    """``product`` less ``zero`` times the sums of the weight, which broadcast as ``shape``."""
    if isinstance(zero, int):
        less = (sums * zero).astype(np.int64).astype(np.int32)
        return call("subtract", product, constant(less.reshape(shape), "int32")) if less.any() else product
    return call("subtract", product, call("multiply", zero, constant(sums.astype(np.int32).reshape(shape), "int32")))


def _dense(old: Call, x: _Shifted, weight: _Weight, attrs: Any) -> RelayExpr:
    w, inner = weight.values, weight.values.shape[1]
    sums = w.astype(np.int64).sum(axis=1)
    data, fill = x.data, -inner % WORD
    if fill:
        rank = len(old.args[0]._checked_type.dims)
        data, w = _pad(data, [(0, 0)] * (rank - 1) + [(0, fill)], constant(0, x.dtype)), np.pad(w, ((0, 0), (0, fill)))
    y = _corrected(call("nn.dense", data, constant(w, "int8"), attrs=attrs, span=old.span), x.zero, sums, (-1,))
    if not weight.more.any():
        return y
    total = call("sum", _cast(x.data, "int32"), attrs=make_attrs("sum", axis=[-1], keepdims=True))
    total = _corrected(total, x.zero, np.asarray([inner]), (1,))
    return call("add", y, call("multiply", total, constant(weight.more, "int32")))


def _pad(x: RelayExpr, widths: Sequence[tuple[int, int]], value: RelayExpr) -> RelayExpr:
    return call("nn.pad", x, value, attrs=make_attrs("nn.pad", pad_width=[list(w) for w in widths]))


def _conv2d(old: Call, x: _Shifted, weight: _Weight, attrs: Any) -> RelayExpr | None:
    layout, kernel_layout = attrs.data_layout, attrs.kernel_layout
    w, fill = weight.values, -weight.values.shape[kernel_layout.index("I")] % WORD if attrs.groups == 1 else 0
    value = _padding_value(x)
    if value is None or weight.more.any() and attrs.groups > 1:
        return None
    sums = w.astype(np.int64).sum(axis=tuple(i for i, c in enumerate(kernel_layout) if c != "O"))
    count = w.size // max(1, len(sums))
    data, attrs = _padded(x, attrs, fill, value)
    if fill:
        w = np.pad(w, [(0, fill) if c == "I" else (0, 0) for c in kernel_layout])
    shape = [-1 if c == "C" else 1 for c in attrs.out_layout or layout]
    y = _corrected(call("nn.conv2d", data, constant(w, str(w.dtype)), attrs=attrs, span=old.span), x.zero, sums, shape)
    if not weight.more.any():
        return y
    total = _corrected(_window_sums(data, weight.values.shape, fill, attrs, (attrs.out_layout or layout).index("C")), x.zero, np.asarray([count]), [1] * len(shape))
    return call("add", y, call("multiply", total, constant(weight.more.reshape(shape), "int32")))


def _padding_value(x: _Shifted) -> RelayExpr | None:
    """What stands for 0 among the bytes, as one of them; None when it may not be one."""
    if isinstance(x.zero, int):
        info = np.iinfo(x.dtype)
        return constant(x.zero, x.dtype) if info.min <= x.zero <= info.max else None
    return _cast(x.zero, x.dtype)


def _padded(x: _Shifted, attrs: Any, fill: int, value: RelayExpr) -> tuple[RelayExpr, Any]:
    """Data padded as the convolution asks (with ``value``) and by ``fill`` channels, and the attributes of what is left to do."""
    from ..op.nn.utils import pad_pairs

    around = [(int(a), int(b)) for a, b in pad_pairs(attrs.padding, 2)]
    by_zero = isinstance(x.zero, int) and x.zero == 0 or not any(map(any, around))
    if by_zero and not fill:
        return x.data, attrs
    widths = {"C": (0, fill), **({} if by_zero else dict(zip("HW", around)))}
    data = _pad(x.data, [widths.get(c, (0, 0)) for c in attrs.data_layout], value)
    return data, attrs if by_zero else attrs.replace(padding=(0, 0, 0, 0))


_ONES = 16  # outputs of a convolution with ones: as many as a vector holds, to have a fast kernel


def _window_sums(data: RelayExpr, shape: Sequence[int], fill: int, attrs: Any, channels: int) -> RelayExpr:
    """The sum of the data, but for ``fill`` channels, under each place of a kernel of that ``shape``."""
    ones = np.ones([_ONES if c == "O" else d for c, d in zip(attrs.kernel_layout, shape)], np.int8)
    ones = np.pad(ones, [(0, fill if c == "I" else 0) for c in attrs.kernel_layout])
    sums = call("nn.conv2d", data, constant(ones, "int8"), attrs=attrs.replace(channels=_ONES))
    return call("strided_slice", sums, attrs=make_attrs("strided_slice", begin=[0], end=[1], strides=[1], axes=[channels]))


# -- the pass


def _sign_wanted(target: Target) -> str:
    """The signedness of data that the processor's dot product takes; empty when it takes both, or has none."""
    from ...target.cpu import resolve_cpu

    cpu = resolve_cpu(target)
    if not cpu.dot_bytes:
        return ""
    return "" if cpu.arch == "aarch64" and cpu.has_mixed_dot else "int8" if cpu.arch == "aarch64" else "uint8"


def _spelled_out(attrs: Any, ty: TensorType) -> Any:
    """The attributes with the sizes that padding channels would change."""
    if not hasattr(attrs, "kernel_layout"):
        return attrs
    rows = dict(zip(attrs.kernel_layout, ty.dims))
    return attrs.replace(channels=rows["O"], kernel_size=(rows["H"], rows["W"]))


def _understood(old: Call) -> bool:
    """Whether this is a product into int32 with a constant integer weight, in plain layouts."""
    ty, weight = old._checked_type, old.args[1]
    if getattr(ty, "dtype", "") != "int32" or not isinstance(weight, Constant) or str(weight.data.numpy().dtype) not in (*_BYTES, "int16", "int32"):
        return False
    a, dims = old.attrs, weight.checked_type.dims
    if old.op.name == "nn.dense":
        return all(dims)
    plain = sorted(a.kernel_layout) == sorted("OIHW") and sorted(a.data_layout) == sorted("NCHW") and a.out_layout in ("", a.data_layout)
    return plain and (dims[a.kernel_layout.index("I")] == 1 or not _by_channel(old))


def _by_channel(old: Call) -> bool:
    """Whether each input channel is a group of its own."""
    a = old.attrs
    return a.groups > 1 and old.args[0].checked_type.dims[a.data_layout.index("C")] == a.groups == old.args[1].checked_type.dims[a.kernel_layout.index("O")]


def in_bytes(old: Call, new: Call, wanted: str) -> RelayExpr:
    """The product of bytes that gives the same as ``new``; ``new`` itself when there is none."""
    x = shifted_bytes(old.args[0], new.args[0])
    if x is None or not _understood(old):
        return new
    values = old.args[1].data.numpy()  # type: ignore[attr-defined]
    conv = old.op.name == "nn.conv2d"
    weight = byte_weight(values, old.attrs.kernel_layout.index("O") if conv else 0, conv and _by_channel(old))
    if weight is None:
        return new
    x, attrs = _in_sign(x, wanted), _spelled_out(old.attrs, old.args[1].checked_type)
    made = (_conv2d if conv else _dense)(old, x, weight, attrs)
    return new if made is None else made


def integer_products(func: Function, mod: Any, ctx: Any) -> Function:
    """Multiplies bytes where shifted bytes are multiplied by constants."""
    target = Target.current(allow_none=True)
    if target is None or target.kind.name != "llvm" or not mentions(mod, lambda e: is_op(e, *PRODUCTS)):
        return func
    wanted = _sign_wanted(target)

    def rule(old: Any, new: Any) -> RelayExpr:
        if not is_op(new, *PRODUCTS) or getattr(old._checked_type, "dtype", "") != "int32":
            return new
        return in_bytes(old, new, wanted)

    return rewrite_exprs(func, rule)  # type: ignore[return-value]


IntegerProducts = declare_pass("IntegerProducts", 3, integer_products)
