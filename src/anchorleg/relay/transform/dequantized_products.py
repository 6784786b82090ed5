"""DequantizedProducts: products of dequantised data by dequantised weights become integer products, and are scaled afterwards.

before (``%x`` is uint8; every row of ``W`` is a scale ``S[i]`` times whole numbers ``Q``, exactly)::

    nn.conv2d(multiply(cast(subtract(cast(%x, "int32"), 3), "float32"), 0.1f), W)

after::

    multiply(cast(nn.conv2d(subtract(cast(%x, "int32"), 3), Q, out_dtype="int32"), "float32"), S * 0.1f)

Reshapes and the largest of a window are taken of the bytes; bytes that are dequantised and then quantised by the same numbers stay as
they are.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...ir.expr import RelayExpr
from ...target.target import Target
from ..expr import Call, Constant
from ..function import Function
from ..op.registry import make_attrs
from .byte_weights import scaled_integers
from .common import call, constant, declare_pass, is_op, mentions, rewrite_exprs, scalar_value
from .fold_quantize_scale import is_quantised
from .infer_type import infer_type
from .integer_products import PRODUCTS, RESHAPES

_BYTES = ("int8", "uint8")
_LARGEST = 255  # what bytes, shifted, and weights are at most
_MOST_TERMS = (1 << 31) // (_LARGEST * _LARGEST)
_OF_BYTES = (*RESHAPES, "nn.max_pool2d")  # what may be done with bytes before they are dequantised


class Dequantized(NamedTuple):
    """Bytes, the number that is subtracted from them, and the factor that makes the difference what it stands for."""

    data: RelayExpr
    dtype: str
    zero: int
    scale: np.float32

    def numbers(self) -> RelayExpr:
        """The bytes less the number, in int32."""
        whole = _cast(self.data, "int32")
        return call("subtract", whole, constant(self.zero, "int32")) if self.zero else whole

    def real(self) -> RelayExpr:
        """What they stand for."""
        return call("multiply", _cast(self.numbers(), "float32"), constant(self.scale, "float32"))


def _cast(x: RelayExpr, dtype: str) -> RelayExpr:
    return call("cast", x, attrs=make_attrs("cast", dtype=dtype))


def dequantized(old: Any, new: Any) -> Dequantized | None:
    """``new`` as dequantised bytes; None when it is nothing of the kind.  ``old`` is the same before rewriting, with its types."""
    scale = scalar_value(old.args[1]) if is_op(old, "multiply") else None
    if scale is None or not scale > 0 or getattr(old._checked_type, "dtype", "") != "float32" or not is_op(old.args[0], "cast"):
        return None
    old, new, zero = old.args[0].args[0], new.args[0].args[0], 0
    if is_op(old, "subtract") and scalar_value(old.args[1]) is not None and old._checked_type.dtype == "int32":
        zero, old, new = int(scalar_value(old.args[1])), old.args[0], new.args[0]
    if is_op(old, "cast") and old.attrs.dtype == "int32":
        old, new = old.args[0], new.args[0]
    dtype = getattr(old._checked_type, "dtype", "")
    return Dequantized(new, dtype, zero, np.float32(scale)) if dtype in _BYTES else None


def _sunk(old: Any, new: Any) -> RelayExpr:
    """A reshape, or the largest of each window, of bytes before they are dequantised."""
    x = dequantized(old.args[0], new.args[0])
    if x is None:
        return new
    return x._replace(data=Call(new.op, [x.data, *new.args[1:]], new.attrs, (), new.span)).real()


def _unchanged(old: Any, new: Any) -> RelayExpr:
    """The bytes themselves where ``new`` quantises them by the numbers by which they were dequantised."""
    result = new
    if old.attrs.dtype not in _BYTES or not is_op(old.args[0], "clip"):
        return result
    limits, bounds = np.iinfo(old.attrs.dtype), old.args[0].attrs
    old, new, dtype, zero = old.args[0].args[0], new.args[0].args[0], old.attrs.dtype, 0
    if is_op(old, "add") and scalar_value(old.args[1]) is not None:
        zero, old, new = scalar_value(old.args[1]), old.args[0], new.args[0]
    if (bounds.a_min, bounds.a_max) != (limits.min, limits.max) or not is_quantised(old):
        return result
    x = dequantized(old.args[0].args[0], new.args[0].args[0])
    same = x is not None and (x.dtype, x.zero, x.scale) == (dtype, zero, np.float32(scalar_value(old.args[0].args[1])))
    return x.data if same else result  # type: ignore[union-attr]


# -- products


def _product(old: Any, new: Any) -> RelayExpr:
    """A product of dequantised data by whole numbers times scales as an integer product; else ``new``."""
    x = dequantized(old.args[0], new.args[0])
    if x is None or not isinstance(old.args[1], Constant) or getattr(old._checked_type, "dtype", "") != "float32":
        return new
    conv, weight = old.op.name == "nn.conv2d", old.args[1].data.numpy()
    if weight.dtype != np.float32 or conv and not _plain(old.attrs):
        return new
    axis = old.attrs.kernel_layout.index("O") if conv else 0
    moved = np.moveaxis(weight, axis, 0)
    rows = moved.reshape(len(moved), -1) if weight.size else None
    found = scaled_integers(rows, -_LARGEST, _LARGEST) if rows is not None and rows.shape[1] < _MOST_TERMS else None
    if found is None:
        return new
    numbers = constant(np.moveaxis(found.values.reshape(moved.shape), 0, axis), "int32")
    product = call(old.op.name, x.numbers(), numbers, attrs=old.attrs.replace(out_dtype="int32"), span=old.span)
    shape = [-1 if c == "C" else 1 for c in old.attrs.out_layout or old.attrs.data_layout] if conv else [-1]
    return call("multiply", _cast(product, "float32"), constant((found.scales * x.scale).reshape(shape), "float32"), span=old.span)


def _plain(attrs: Any) -> bool:
    return sorted(attrs.kernel_layout) == sorted("OIHW") and sorted(attrs.data_layout) == sorted("NCHW") and attrs.out_layout in ("", attrs.data_layout)


def _moved(old: Any, new: Any) -> RelayExpr:
    return _sunk(old, new) if is_op(old, *_OF_BYTES) else new


def _multiplied(old: Any, new: Any) -> RelayExpr:
    return _product(old, new) if is_op(old, *PRODUCTS) else _unchanged(old, new) if is_op(old, "cast") else new


def dequantized_products(func: Function, mod: Any, ctx: Any) -> Function:
    """Multiplies integers where dequantised integers are multiplied."""
    target = Target.current(allow_none=True)
    if target is None or target.kind.name != "llvm" or not mentions(mod, lambda e: is_op(e, "multiply") and dequantized(e, e) is not None):
        return func
    moved: Any = rewrite_exprs(func, _moved)
    while moved is not func:  # a chain moves one step at a time
        func = infer_type(moved)
        moved = rewrite_exprs(func, _moved)
    return rewrite_exprs(func, _multiplied)  # type: ignore[return-value]


DequantizedProducts = declare_pass("DequantizedProducts", 3, dequantized_products)
