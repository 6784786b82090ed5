"""Matrix products: dense (fully connected), matmul, batch_matmul, and dense over packed weights."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.attrs import BOOL, OPT_INT, STR, Attrs, Field
from ....ir.expr import Any as AnyDim, RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ....support.errors import TypeMismatchError
from ....tir.data_layout import BijectiveLayout, layout
from ...expr import Call
from ..attrs_common import OPT_DTYPE
from ..registry import declare
from ..transform.transpose import convert_layout
from .common import check_rank, expect, known, mul, shown, tensor
from .numeric import product

_UNITS = Field(OPT_INT, None, "Number of columns of the result; None: from the weight.")
_OUT_DTYPE = Field(OPT_DTYPE, "", "Element type of the result; empty: that of the data.")


class DenseAttrs(Attrs, name="relay.attrs.DenseAttrs"):
    """Attributes of nn.dense."""

    __slots__ = ()
    units = _UNITS
    out_dtype = _OUT_DTYPE


class DensePackAttrs(Attrs, name="relay.attrs.DensePackAttrs"):
    """Attributes of nn.contrib_dense_pack."""

    __slots__ = ()
    units = _UNITS
    out_dtype = _OUT_DTYPE
    weight_layout = Field(STR, "NC", "Layout of the weight, e.g. NC16n.")


class MatmulAttrs(Attrs, name="relay.attrs.MatmulAttrs"):
    """Attributes of nn.matmul."""

    __slots__ = ()
    units = _UNITS
    out_dtype = _OUT_DTYPE
    transpose_a = Field(BOOL, False, "Whether the first operand's last two axes are swapped.")
    transpose_b = Field(BOOL, False, "Whether the second operand's axes are swapped.")


class BatchMatmulAttrs(Attrs, name="relay.attrs.BatchMatmulAttrs"):
    """Attributes of nn.batch_matmul."""

    __slots__ = ()
    out_dtype = _OUT_DTYPE
    transpose_a = Field(BOOL, False, "Whether each first matrix is transposed.")
    transpose_b = Field(BOOL, False, "Whether each second matrix is transposed.")


def _matmul_relation(op: str, names: tuple[str, str]) -> Any:
    def relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
        a, b = (tensor(t, f"{op}, {n}") for t, n in zip(args, names))
        if a is None or (b is None and attrs.units is None):
            return None
        swap_a, swap_b = attrs.get("transpose_a", False), attrs.get("transpose_b", True)
        if len(a.dims) < (2 if swap_a else 1):
            raise TypeMismatchError(f"{op}: {names[0]} of shape {shown(a.dims)} has too few axes")
        if b is not None:
            check_rank(op, b, 2, names[1])
        dims = list(a.dims)
        if swap_a:
            dims[-2:] = dims[:-3:-1]
        inner = dims[-1]
        have = b.dims[::-1] if b is not None and swap_b else b.dims if b is not None else (inner, attrs.units)
        _unify_inner(op, names, args, ctx, a, b, inner, attrs, swap_a, swap_b)
        dims[-1] = attrs.units if attrs.units is not None else have[1]
        return TensorType(dims, attrs.out_dtype or a.dtype)

    return relation


def _unify_inner(op: str, names: tuple[str, str], args: tuple[Type, ...], ctx: Any, a: TensorType, b: TensorType | None, inner: Any,
                 attrs: Any, swap_a: bool, swap_b: bool) -> None:
    units = attrs.units if attrs.units is not None else b.dims[0 if swap_b else 1]
    want = (units, inner) if swap_b else (inner, units)
    expect(ctx, op, names[1], args[1], want, b.dtype if b is not None else a.dtype)
    if isinstance(inner, AnyDim) and b is not None:
        dims = list(a.dims)
        dims[-2 if swap_a else -1] = b.dims[1 if swap_b else 0]
        ctx.unify(args[0], TensorType(dims, a.dtype))


def _dense_numpy(attrs: Any, args: list[np.ndarray], out_type: TensorType) -> np.ndarray:
    return product(args[0], args[1].T, out_type.dtype)


def _matmul_numpy(attrs: Any, args: list[np.ndarray], out_type: TensorType) -> np.ndarray:
    a = np.swapaxes(args[0], -1, -2) if attrs.transpose_a else args[0]
    return product(a, args[1].T if attrs.transpose_b else args[1], out_type.dtype)


declare("nn.dense", inputs=("data", "weight"), attrs=DenseAttrs, relation=_matmul_relation("nn.dense", ("data", "weight")),
        pattern=OpPattern.OUT_ELEMWISE_FUSABLE, numpy=_dense_numpy, level=1,
        doc="data (…, in) times the transpose of weight (units, in): (…, units).")
declare("nn.matmul", inputs=("tensor_a", "tensor_b"), attrs=MatmulAttrs, relation=_matmul_relation("nn.matmul", ("tensor_a", "tensor_b")),
        pattern=OpPattern.OUT_ELEMWISE_FUSABLE, numpy=_matmul_numpy, level=1,
        doc="The product of tensor_a (…, m, k) and the matrix tensor_b (k, n), each transposed on request.")


def _pack_relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    op = "nn.contrib_dense_pack"
    data, weight = tensor(args[0], f"{op}, data"), tensor(args[1], f"{op}, weight")
    if data is None or weight is None:
        return None
    if not data.dims or len(weight.dims) not in (3, 4):
        raise TypeMismatchError(f"{op}: expected data of rank 1 or more and weight of rank 3 or 4, got shapes {shown(data.dims)} and {shown(weight.dims)}")
    packed, inner = _packed_extents(attrs, weight.dims)
    if known(inner, data.dims[-1]) and inner != data.dims[-1]:
        raise TypeMismatchError(f"{op}: data of shape {shown(data.dims)} and a weight of {inner} inputs do not fit")
    units = packed if attrs.units is None else attrs.units
    block = weight.dims[2]
    if known(units, packed, block) and not packed - block < units <= packed:
        raise TypeMismatchError(f"{op}: a weight of {packed} columns in blocks of {block} cannot hold {units} units")
    return TensorType((*data.dims[:-1], units), attrs.out_dtype or data.dtype)


def _packed_extents(attrs: Any, dims: Any) -> tuple[Any, Any]:
    """(columns, rows) of a packed weight, the filling of the last block included."""
    packed = layout(attrs.weight_layout)
    if packed.convertible(layout("NC")) and len(dims) == len(packed):
        return tuple(BijectiveLayout(packed, "NC").forward_shape(dims))  # type: ignore[return-value]
    return mul(dims[0], dims[2]), dims[1] if len(dims) == 3 else mul(dims[1], dims[3])


def _pack_numpy(attrs: Any, args: list[np.ndarray], out_type: TensorType) -> np.ndarray:
    name = attrs.weight_layout
    if len(layout(name)) != args[1].ndim:
        name = f"NC{args[1].shape[2]}n" + (f"{args[1].shape[3]}c" if args[1].ndim == 4 else "")
    weight = convert_layout(args[1], name, "NC")
    return product(args[0], weight[:out_type.concrete_shape[-1]].T, out_type.dtype)


declare("nn.contrib_dense_pack", inputs=("data", "weight"), attrs=DensePackAttrs, relation=_pack_relation,
        pattern=OpPattern.OUT_ELEMWISE_FUSABLE, numpy=_pack_numpy, level=10,
        doc="nn.dense with a weight packed as weight_layout, (units / n, in, n) for NC<n>n.")


def _batch_relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    op = "nn.batch_matmul"
    x, y = tensor(args[0], f"{op}, tensor_a"), tensor(args[1], f"{op}, tensor_b")
    if x is None or y is None:
        return None
    check_rank(op, x, 3, "tensor_a")
    check_rank(op, y, 3, "tensor_b")
    (xb, xi, xk), (yb, yk, yj) = _operand(x, attrs.transpose_a), _operand(y, attrs.transpose_b)
    text = f"tensor_a {shown(x.dims)}{' transposed' * attrs.transpose_a}, tensor_b {shown(y.dims)}{' transposed' * attrs.transpose_b}"
    if known(xk, yk) and xk != yk:
        raise TypeMismatchError(f"{op}: the inner extents {xk} and {yk} differ: {text}")
    return TensorType((_batch(op, xb, yb, text), xi, yj), attrs.out_dtype or x.dtype)


def _operand(t: TensorType, transposed: bool) -> tuple[Any, Any, Any]:
    b, r, c = t.dims
    return (b, c, r) if transposed else (b, r, c)


def _batch(op: str, a: Any, b: Any, text: str) -> Any:
    if known(a, b) and a != b and 1 not in (a, b):
        raise TypeMismatchError(f"{op}: the batch extents {a} and {b} differ and neither is 1: {text}")
    if known(a) and a != 1:
        return a
    if known(b) and b != 1:
        return b
    return b if known(a) else a


def _batch_numpy(attrs: Any, args: list[np.ndarray], out_type: TensorType) -> np.ndarray:
    a = args[0].transpose(0, 2, 1) if attrs.transpose_a else args[0]
    b = args[1].transpose(0, 2, 1) if attrs.transpose_b else args[1]
    return product(a, b, out_type.dtype)


declare("nn.batch_matmul", inputs=("tensor_a", "tensor_b"), attrs=BatchMatmulAttrs, relation=_batch_relation,
        pattern=OpPattern.OUT_ELEMWISE_FUSABLE, numpy=_batch_numpy, level=10,
        doc="The product of each pair of matrices of tensor_a (b, m, k) and tensor_b (b, k, n); a batch of 1 is repeated.")


def dense(data: RelayExpr, weight: RelayExpr, units: int | None = None, out_dtype: str = "") -> Call:
    """``data`` (…, in) times the transpose of ``weight`` (units, in)."""
    return Call(Op.get("nn.dense"), [data, weight], DenseAttrs(units=units, out_dtype=out_dtype))


def contrib_dense_pack(data: RelayExpr, weight: RelayExpr, weight_layout: str = "NC", units: int | None = None,
                       out_dtype: str = "") -> Call:
    """:func:`dense` with a packed weight, e.g. (units / 16, in, 16) for ``NC16n``."""
    return Call(Op.get("nn.contrib_dense_pack"), [data, weight],
                DensePackAttrs(units=units, out_dtype=out_dtype, weight_layout=weight_layout))


def matmul(tensor_a: RelayExpr, tensor_b: RelayExpr, units: int | None = None, out_dtype: str = "", transpose_a: bool = False,
           transpose_b: bool = False) -> Call:
    """``tensor_a`` (…, m, k) times the matrix ``tensor_b`` (k, n); with only ``transpose_b`` this is :func:`dense`."""
    if not transpose_a and transpose_b:
        return dense(tensor_a, tensor_b, units, out_dtype)
    return Call(Op.get("nn.matmul"), [tensor_a, tensor_b],
                MatmulAttrs(units=units, out_dtype=out_dtype, transpose_a=transpose_a, transpose_b=transpose_b))


def batch_matmul(tensor_a: RelayExpr, tensor_b: RelayExpr, out_dtype: str = "", transpose_a: bool = False,
                 transpose_b: bool = True) -> Call:
    """The product of each pair of matrices; by default ``tensor_b`` is (batch, n, k)."""
    return Call(Op.get("nn.batch_matmul"), [tensor_a, tensor_b],
                BatchMatmulAttrs(out_dtype=out_dtype, transpose_a=transpose_a, transpose_b=transpose_b))
