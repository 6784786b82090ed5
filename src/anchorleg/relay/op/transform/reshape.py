"""Operators that keep the elements in order and change the shape: reshape and its kin, squeeze, expand_dims."""
from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.attrs import BOOL, INT, OPT_INT, OPT_INTS, Attrs, Field
from ....ir.expr import Any as AnyDim, RelayExpr
from ....ir.op import Op, OpPattern
from ....ir.type import TensorType, Type
from ....support.errors import ArgumentError, TypeMismatchError
from ...expr import Call
from ..registry import declare
from .common import (Dim, Dims, as_int_list, constant_ints, is_dynamic, known, normalize_axis, product, same_dim, show, tensor,
                     tensors)


class ReshapeAttrs(Attrs, name="relay.attrs.ReshapeAttrs"):
    """Attributes of reshape; ``newshape`` may hold the special values 0, -1, -2, -3 and -4 (see :func:`reshape`)."""

    newshape = Field(OPT_INTS, None, "The new shape, with special values 0, -1, -2, -3 and -4.")
    allowzero = Field(BOOL, False, "Whether a 0 in the new shape means a dimension of size 0.")


class ReshapeLikeAttrs(Attrs, name="relay.attrs.ReshapeLikeAttrs"):
    """Attributes of reshape_like: which dimensions of the first shape are replaced by which of the second."""

    lhs_begin = Field(INT, 0, "First dimension of the input that is replaced.")
    lhs_end = Field(OPT_INT, None, "End of those, exclusive; None: all the rest.")
    rhs_begin = Field(INT, 0, "First dimension taken from the second input.")
    rhs_end = Field(OPT_INT, None, "End of those, exclusive; None: all the rest.")


class SqueezeAttrs(Attrs, name="relay.attrs.SqueezeAttrs"):
    """Attributes of squeeze."""

    axis = Field(OPT_INTS, None, "The axes to remove; None: all of size 1; empty: none.")


class ExpandDimsAttrs(Attrs, name="relay.attrs.ExpandDimsAttrs"):
    """Attributes of expand_dims."""

    axis = Field(INT, doc="Where the new axes are inserted, from -ndim - 1 to ndim.")
    num_newaxis = Field(INT, 1, "How many are inserted.")


# ---- reshape ---------------------------------------------------------------------------------------------------------

class _Plan:
    """The walk over a new shape: what each special value takes from the input and gives to the output."""

    def __init__(self, dims: Dims) -> None:
        self.dims, self.at = list(dims), 0
        self.out: list[Dim] = []
        self.taken: set[int] = set()  # input dimensions that were copied, merged or split
        self.given: set[int] = set()  # output dimensions that come from those
        self.inferred: int | None = None

    def take(self, what: str) -> Dim:
        """The next input dimension, now accounted for."""
        if self.at >= len(self.dims):
            raise TypeMismatchError(f"{what} needs one more input dimension than the input's {len(self.dims)}: {show(self.dims)}")
        self.taken.add(self.at)
        self.at += 1
        return self.dims[self.at - 1]

    def give(self, dim: Dim) -> None:
        """The next output dimension, accounted for by what was taken."""
        self.given.add(len(self.out))
        self.out.append(dim)

    def plain(self, dim: Dim) -> None:
        """The next output dimension, as written in the new shape."""
        self.out.append(dim)
        self.at += 1

    def infer(self) -> None:
        """Marks the next output dimension as the one to work out."""
        if self.inferred is not None:
            raise TypeMismatchError("only one dimension of the new shape can be -1")
        self.inferred = len(self.out)
        self.plain(1)


def _divide(dim: Dim, by: int) -> Dim:
    return dim // by if isinstance(dim, int) and by else AnyDim()


def _split(plan: _Plan, first: int, second: int) -> None:
    whole = plan.take("-4")
    if first == -1 and second == -1:
        raise TypeMismatchError("of the two sizes after -4 only one can be -1")
    plan.give(_divide(whole, second) if first == -1 else first)
    plan.give(_divide(whole, first) if second == -1 else second)


def _step(plan: _Plan, newshape: list[int], i: int, allowzero: bool) -> int:
    """Handles entry ``i`` of the new shape; the number of entries used."""
    size = newshape[i]
    if size > 0 or size == 0 and allowzero:
        plan.plain(size)
    elif size == 0:
        plan.give(plan.take("0"))
    elif size == -1:
        plan.infer()
    elif size == -2:
        for _ in range(len(plan.dims) - plan.at):
            plan.give(plan.take("-2"))
    elif size == -3:
        plan.give(product([plan.take("-3"), plan.take("-3")]))
    elif size == -4:
        if i + 2 >= len(newshape):
            raise TypeMismatchError("-4 must be followed by two sizes")
        _split(plan, newshape[i + 1], newshape[i + 2])
        return 3
    else:
        raise TypeMismatchError(f"{size} is not a size; special values are 0, -1, -2, -3 and -4")
    return 1


def _fill_inferred(plan: _Plan) -> None:
    rest = product([d for i, d in enumerate(plan.dims) if i not in plan.taken])
    others = product([d for i, d in enumerate(plan.out) if i not in plan.given and i != plan.inferred])
    assert plan.inferred is not None
    if known(rest) and known(others):
        if others == 0 or rest % others:
            raise TypeMismatchError(f"-1 cannot be worked out: {rest} elements do not divide over {others}")
        plan.out[plan.inferred] = rest // others
    else:
        plan.out[plan.inferred] = rest if known(others) and others == 1 else AnyDim()


def infer_newshape(dims: Dims, newshape: Any, allowzero: bool = False, reverse: bool = False) -> list[Dim]:
    """The shape that ``newshape`` (with its special values) gives for an input of shape ``dims``.

    TypeMismatchError when the numbers of elements differ.
    """
    sizes = [int(v) for v in newshape]
    sizes, dims = (sizes[::-1], list(dims)[::-1]) if reverse else (sizes, list(dims))
    plan = _Plan(dims)
    i = 0
    while i < len(sizes):
        i += _step(plan, sizes, i, allowzero)
    if plan.inferred is not None:
        _fill_inferred(plan)
    check_elements(dims, plan.out)
    return plan.out[::-1] if reverse else plan.out


def check_elements(old: Dims, new: Dims) -> None:
    """TypeMismatchError when both shapes are known and hold different numbers of elements."""
    before, after = product(old), product(new)
    if all(map(known, old)) and all(map(known, new)) and before != after:
        raise TypeMismatchError(f"the input of shape {show(old)} has {before} elements, which cannot become {show(new)} with {after}")


def _reshape_rel(args: tuple[Type, ...], attrs: ReshapeAttrs, ctx: Any) -> Type | None:
    data = tensor(args[0], "data")
    return data and TensorType(infer_newshape(data.dims, attrs.newshape or (), attrs.allowzero), data.dtype)


def _reverse_reshape_rel(args: tuple[Type, ...], attrs: ReshapeAttrs, ctx: Any) -> Type | None:
    data = tensor(args[0], "data")
    return data and TensorType(infer_newshape(data.dims, attrs.newshape or (), attrs.allowzero, True), data.dtype)


def _reshape_numpy(attrs: ReshapeAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    return args[0].reshape(infer_newshape(args[0].shape, attrs.newshape or (), attrs.allowzero))


def _reverse_reshape_numpy(attrs: ReshapeAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    return args[0].reshape(infer_newshape(args[0].shape, attrs.newshape or (), attrs.allowzero, True))


# ---- reshape_like ----------------------------------------------------------------------------------------------------

def reshape_like_dims(lhs: Dims, rhs: Dims, attrs: ReshapeLikeAttrs) -> list[Dim]:
    """The shape of ``reshape_like``: ``lhs`` with a range of its dimensions replaced by a range of ``rhs``."""
    def at(value: int | None, default: int, n: int) -> int:
        value = default if value is None else int(value)
        value = value + n if value < 0 else value
        if not 0 <= value <= n:
            raise TypeMismatchError(f"dimension {value} is out of range for rank {n}")
        return value

    first, last = at(attrs.lhs_begin, 0, len(lhs)), at(attrs.lhs_end, len(lhs), len(lhs))
    start, stop = at(attrs.rhs_begin, 0, len(rhs)), at(attrs.rhs_end, len(rhs), len(rhs))
    return [*lhs[:first], *rhs[start:stop], *lhs[last:]]


def _reshape_like_rel(args: tuple[Type, ...], attrs: ReshapeLikeAttrs, ctx: Any) -> Type | None:
    types = tensors(args, ("data", "shape_like"))
    if types is None:
        return None
    dims = reshape_like_dims(types[0].dims, types[1].dims, attrs)
    check_elements(types[0].dims, dims)
    return TensorType(dims, types[0].dtype)


def _reshape_like_numpy(attrs: ReshapeLikeAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    return args[0].reshape(reshape_like_dims(args[0].shape, args[1].shape, attrs))


# ---- squeeze, expand_dims ----------------------------------------------------------------------------------------------

def squeeze_dims(dims: Dims, axis: Any) -> list[Dim]:
    """The shape left when ``axis`` (None: all axes of size 1) is removed."""
    if axis is None:
        if not all(map(known, dims)):
            raise TypeMismatchError(f"which axes of {show(dims)} have size 1 is not known; give axis")
        return [d for d in dims if d != 1]
    gone = {normalize_axis(int(a), len(dims)) for a in axis}
    for a in gone:
        same_dim(f"only axes of size 1 can go, axis {a} of {show(dims)}", 1, dims[a])
    return [d for i, d in enumerate(dims) if i not in gone]


def _squeeze_rel(args: tuple[Type, ...], attrs: SqueezeAttrs, ctx: Any) -> Type | None:
    data = tensor(args[0], "data")
    return data and TensorType(squeeze_dims(data.dims, attrs.axis), data.dtype)


def _squeeze_numpy(attrs: SqueezeAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    return args[0].reshape(squeeze_dims(args[0].shape, attrs.axis))


def expand_dims_shape(dims: Dims, axis: int, num_newaxis: int) -> list[Dim]:
    """The shape with ``num_newaxis`` axes of size 1 inserted at ``axis``."""
    n = len(dims)
    if num_newaxis < 0:
        raise TypeMismatchError(f"num_newaxis must be at least 0, got {num_newaxis}")
    at = normalize_axis(axis, n + 1)
    return [*dims[:at], *([1] * num_newaxis), *dims[at:]]


def _expand_dims_rel(args: tuple[Type, ...], attrs: ExpandDimsAttrs, ctx: Any) -> Type | None:
    data = tensor(args[0], "data")
    return data and TensorType(expand_dims_shape(data.dims, attrs.axis, attrs.num_newaxis), data.dtype)


def _expand_dims_numpy(attrs: ExpandDimsAttrs, args: list[np.ndarray], out_type: Type) -> np.ndarray:
    return args[0].reshape(expand_dims_shape(args[0].shape, attrs.axis, attrs.num_newaxis))


declare("reshape", attrs=ReshapeAttrs, relation=_reshape_rel, pattern=OpPattern.INJECTIVE, numpy=_reshape_numpy, level=3,
        doc="The same elements in another shape.")
declare("contrib_reverse_reshape", attrs=ReshapeAttrs, relation=_reverse_reshape_rel, pattern=OpPattern.INJECTIVE,
        numpy=_reverse_reshape_numpy, level=10, doc="Reshape whose special values are read from the right.")
declare("reshape_like", inputs=("data", "shape_like"), attrs=ReshapeLikeAttrs, relation=_reshape_like_rel,
        pattern=OpPattern.INJECTIVE, numpy=_reshape_like_numpy, level=3, doc="Reshape to (part of) the shape of another tensor.")
declare("squeeze", attrs=SqueezeAttrs, relation=_squeeze_rel, pattern=OpPattern.INJECTIVE, numpy=_squeeze_numpy, level=3,
        doc="Removes axes of size 1.")
declare("expand_dims", attrs=ExpandDimsAttrs, relation=_expand_dims_rel, pattern=OpPattern.BROADCAST, numpy=_expand_dims_numpy,
        level=1, doc="Inserts axes of size 1.")
for _name in ("reshape", "contrib_reverse_reshape", "squeeze", "expand_dims"):
    Op.get(_name).set_attr("TReshapeOp", True)


def reshape(data: RelayExpr, newshape: Any, allowzero: bool = False) -> Call:
    """The elements of ``data``, in order, in another shape.

    In ``newshape`` a positive number is a size; 0 copies the input's dimension at that place (with ``allowzero`` it is a
    size of 0); -1, at most once, stands for whatever is left; -2 copies all remaining dimensions; -3 merges the next two;
    -4 splits the next one into the two sizes that follow (one of which may be -1).

    ``newshape`` may be an int, a list, a constant, or an expression (then the result's shape is known at run time only).
    """
    if is_dynamic(newshape):
        from ..dyn.transform import reshape as dyn_reshape

        return dyn_reshape(data, newshape, allowzero)
    return Call(Op.get("reshape"), [data], ReshapeAttrs(newshape=as_int_list("reshape", "newshape", newshape), allowzero=allowzero))


def reverse_reshape(data: RelayExpr, newshape: Any) -> Call:
    """Reshape with the special values 0 and -1 to -4 of ``newshape`` read from the right."""
    return Call(Op.get("contrib_reverse_reshape"), [data], ReshapeAttrs(newshape=as_int_list("reverse_reshape", "newshape", newshape)))


def reshape_like(data: RelayExpr, shape_like: RelayExpr, lhs_begin: int = 0, lhs_end: int | None = None, rhs_begin: int = 0,
                 rhs_end: int | None = None) -> Call:
    """``data`` with its dimensions ``lhs_begin:lhs_end`` replaced by ``rhs_begin:rhs_end`` of ``shape_like``'s."""
    attrs = ReshapeLikeAttrs(lhs_begin=lhs_begin, lhs_end=lhs_end, rhs_begin=rhs_begin, rhs_end=rhs_end)
    return Call(Op.get("reshape_like"), [data, shape_like], attrs)


def squeeze(data: RelayExpr, axis: Any = None) -> Call:
    """``data`` without the axes of size 1 named by ``axis``: an int or a list (empty: none); None removes all of them."""
    if is_dynamic(axis):
        from ..dyn.transform import squeeze as dyn_squeeze

        return dyn_squeeze(data, axis)
    return Call(Op.get("squeeze"), [data], SqueezeAttrs(axis=None if axis is None else as_int_list("squeeze", "axis", axis)))


def expand_dims(data: RelayExpr, axis: Any, num_newaxis: int = 1) -> Call:
    """``data`` with ``num_newaxis`` axes of size 1 inserted at ``axis`` (from -ndim - 1 to ndim)."""
    if is_dynamic(axis):
        from ..dyn.transform import expand_dims as dyn_expand_dims

        return dyn_expand_dims(data, axis, num_newaxis)
    axis = constant_ints(axis)
    if not isinstance(axis, (int, np.integer)):
        raise ArgumentError(f"expand_dims: axis must be an int, got {axis!r}")
    return Call(Op.get("expand_dims"), [data], ExpandDimsAttrs(axis=int(axis), num_newaxis=num_newaxis))


__all__ = ["ReshapeAttrs", "ReshapeLikeAttrs", "SqueezeAttrs", "ExpandDimsAttrs", "reshape", "reverse_reshape", "reshape_like",
           "squeeze", "expand_dims"]
