"""Type relations that many operators share, and the small checks that relations are written with.

A relation takes resolved argument types (``IncompleteType`` where nothing is known yet) and gives the result's type,
or None when it has to be asked again later.  It raises TypeMismatchError with what was expected and what came;
inference adds the expression and the place.
"""
from __future__ import annotations

from typing import Any as _Any
from typing import Callable, Sequence

from ...ir.expr import Any, IntImm
from ...ir.op import Relation, register_relation
from ...ir.type import IncompleteType, TensorType, TupleType, Type
from ...support.errors import TypeMismatchError

Dim = _Any  # int | Any | PrimExpr


def tensor(arg: Type, what: str = "the input") -> TensorType | None:
    """The argument as a tensor type, None when it is not known yet; TypeMismatchError when it is something else."""
    if isinstance(arg, TensorType):
        return arg
    if isinstance(arg, IncompleteType):
        return None
    raise TypeMismatchError(f"{what} is expected to be a tensor, got {show(arg)}")


def tensors(args: Sequence[Type], names: Sequence[str] = ()) -> tuple[TensorType, ...] | None:
    """All arguments as tensor types; None when any is not known yet."""
    found = tuple(tensor(a, names[i] if i < len(names) else f"input {i}") for i, a in enumerate(args))
    return None if any(t is None for t in found) else found  # type: ignore[return-value]


def tuple_of_tensors(arg: Type, what: str = "the input") -> tuple[TensorType, ...] | None:
    """The fields of a tuple of tensors; None when not known yet."""
    if isinstance(arg, IncompleteType):
        return None
    if not isinstance(arg, TupleType):
        raise TypeMismatchError(f"{what} is expected to be a tuple of tensors, got {show(arg)}")
    return tensors(arg.fields, [f"field {i} of {what}" for i in range(len(arg.fields))])


def is_any(dim: Dim) -> bool:
    """Whether a dimension is not known before run time."""
    return isinstance(dim, Any)


def dim_is(dim: Dim, value: int) -> bool:
    """Whether a dimension is known and equal to ``value``."""
    return isinstance(dim, int) and dim == value


def same_dim(a: Dim, b: Dim) -> bool:
    """Whether two dimensions are known to be equal (two ``?`` are not)."""
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int) and a == b
    if is_any(a) or is_any(b):
        return False
    if a is b:
        return True
    from ...ir.structural import structural_equal

    return structural_equal(a, b)


def dims_agree(a: Dim, b: Dim) -> bool:
    """Whether two dimensions may be equal: the same, or one of them ``?``."""
    return is_any(a) or is_any(b) or same_dim(a, b)


def merge_dim(a: Dim, b: Dim) -> Dim:
    """The better known of two dimensions that agree."""
    return b if is_any(a) else a


def same_dims(a: Sequence[Dim], b: Sequence[Dim]) -> bool:
    """Whether two shapes are entry by entry the same (``?`` is the same as ``?``)."""
    return a is b or len(a) == len(b) and all(x is y or is_any(x) and is_any(y) or same_dim(x, y) for x, y in zip(a, b))


def product(dims: Sequence[Dim]) -> Dim:
    """The number of elements: an int when all dimensions are, ``?`` when any is not known, else an expression."""
    total: Dim = 1
    for d in dims:
        if is_any(d):
            return Any()
        total = d if isinstance(total, int) and total == 1 else total * d
    return total.value if isinstance(total, IntImm) else total


def dim_op(fn: Callable[[_Any], _Any], dim: Dim) -> Dim:
    """``fn`` applied to a dimension; ``?`` stays ``?``; constants come back as ints."""
    if is_any(dim):
        return Any()
    result = fn(dim)
    return result.value if isinstance(result, IntImm) else result


def normalize_axis(axis: int, ndim: int, what: str = "axis") -> int:
    """The axis counted from the front; TypeMismatchError when out of range."""
    if not -ndim <= axis < ndim:
        raise TypeMismatchError(f"{what} is expected to lie in [{-ndim}, {ndim - 1}] for {ndim} dimensions, got {axis}"
                                if ndim else f"{what} {axis} does not exist: the tensor has no dimensions")
    return axis % ndim


def same_dtype(a: TensorType, b: TensorType, what: str = "the operands") -> str:
    """The data type that both have; TypeMismatchError otherwise."""
    if a.dtype != b.dtype:
        raise TypeMismatchError(f"{what} are expected to have one data type, got {a.dtype} and {b.dtype}; cast one of them")
    return a.dtype


def broadcast_dim(a: Dim, b: Dim) -> Dim | None:
    """One dimension under numpy's rule; None when they do not fit.  ``?`` with n is n, except that with 1 it stays ``?``."""
    if dim_is(a, 1):
        return b
    if dim_is(b, 1):
        return a
    if is_any(a):
        return b
    if is_any(b) or same_dim(a, b):
        return a
    return None


def broadcast_shapes(a: Sequence[Dim], b: Sequence[Dim]) -> tuple[Dim, ...]:
    """The shape of a broadcast of two shapes; TypeMismatchError when they do not fit."""
    if len(a) < len(b):
        long, short = b, a
    else:
        long, short = a, b
    lead = len(long) - len(short)
    merged = [broadcast_dim(x, y) for x, y in zip(long[lead:], short)]
    if any(m is None for m in merged):
        at = next(i for i, m in enumerate(merged) if m is None)
        raise TypeMismatchError(f"Invalid broadcast shapes {show_dims(a)} and {show_dims(b)}: from the right, "
                                f"dimension {len(merged) - at} is {show_dim(long[lead + at])} and {show_dim(short[at])}; "
                                "they must be equal, or one of them 1")
    return (*long[:lead], *merged)


def broadcast_many(shapes: Sequence[Sequence[Dim]]) -> tuple[Dim, ...]:
    """The shape of a broadcast of several shapes."""
    out: tuple[Dim, ...] = ()
    for each in shapes:
        out = broadcast_shapes(out, each)
    return out


def identity_rel(args: tuple[Type, ...], attrs: _Any, ctx: _Any) -> Type | None:
    """The result has the type of the one tensor input; also where only the result's type is known."""
    return tensor(args[0]) or args[0]


def same_as_input_rel(args: tuple[Type, ...], attrs: _Any, ctx: _Any) -> Type | None:
    """The result has the input's type, whatever that is (markers that may wrap tuples and functions too)."""
    return args[0]


def identity_bool_rel(args: tuple[Type, ...], attrs: _Any, ctx: _Any) -> Type | None:
    """The result has the input's shape and is bool."""
    data = tensor(args[0])
    return None if data is None else TensorType(data.dims, "bool")


def _reuse(dims: tuple[Dim, ...], dtype: str, candidates: Sequence[TensorType]) -> TensorType:
    for each in candidates:
        if each.dtype == dtype and len(each.dims) == len(dims) and all(x is y for x, y in zip(each.dims, dims)):
            return each
    return TensorType(dims, dtype)


def broadcast_rel(args: tuple[Type, ...], attrs: _Any, ctx: _Any) -> Type | None:
    """Two tensors of one data type, broadcast together."""
    both = tensors(args, ("the left operand", "the right operand"))
    if both is None:
        return None
    return _reuse(broadcast_shapes(both[0].dims, both[1].dims), same_dtype(*both), both)


def broadcast_bool_rel(args: tuple[Type, ...], attrs: _Any, ctx: _Any) -> Type | None:
    """Two tensors of one data type, broadcast together; the result is bool."""
    both = tensors(args, ("the left operand", "the right operand"))
    if both is None:
        return None
    same_dtype(*both)
    return TensorType(broadcast_shapes(both[0].dims, both[1].dims), "bool")


broadcast_comp_rel = broadcast_bool_rel
identity_comp_rel = identity_bool_rel


def is_float(dtype: str) -> bool:
    """Whether a data type is a floating-point one."""
    return dtype.startswith(("float", "bfloat", "e4m3", "e5m2"))


def require(relation: Relation, accept: Callable[[str], bool], expected: str) -> Relation:
    """``relation`` with a check of the first tensor input's data type."""
    def checked(args: tuple[Type, ...], attrs: _Any, ctx: _Any) -> Type | None:
        data = tensor(args[0])
        if data is not None and not accept(data.dtype):
            raise TypeMismatchError(f"a tensor of {expected} is expected, got {data.dtype}")
        return relation(args, attrs, ctx)

    checked.__name__ = getattr(relation, "__name__", "relation")
    return checked


def show_dim(dim: Dim) -> str:
    """A dimension as text."""
    return "?" if is_any(dim) else repr(dim)


def show_dims(dims: Sequence[Dim]) -> str:
    """A shape as text."""
    inner = ", ".join(show_dim(d) for d in dims)
    return f"({inner},)" if len(dims) == 1 else f"({inner})"


def show(t: _Any) -> str:
    """A type as text for an error message."""
    if isinstance(t, TensorType):
        return f"Tensor[{show_dims(t.dims)}, {t.dtype}]"
    if isinstance(t, IncompleteType):
        return "a type that is not known yet"
    return repr(t)


for _name, _rel in (("Identity", same_as_input_rel), ("Broadcast", broadcast_rel), ("BroadcastComp", broadcast_bool_rel),
                    ("IdentityCompRel", identity_bool_rel)):
    register_relation(_name, _rel)

__all__ = [n for n in globals() if not n.startswith("_")]
