"""Expressions of the graph language."""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from ..ir.expr import GlobalVar, RelayExpr
from ..ir.module import register_expr_wrapper
from ..ir.node import ARRAY, ATTRS, BIND, CHILD, CHILDREN, DATA, Node
from ..ir.op import Op
from ..ir.type import TensorType, Type
from ..support.errors import ArgumentError


class ExprWithOp(RelayExpr):
    """Expressions that Python's operators apply to."""

    __slots__ = ()
    SHARED = True
    __hash__ = RelayExpr.__hash__

    def astype(self, dtype: str) -> Call:
        """A cast to ``dtype``."""
        from .op.attrs_common import CastAttrs

        return Call(Op.get("cast"), [self], CastAttrs(dtype=dtype))

    def __neg__(self) -> Call:
        return Call(Op.get("negative"), [self])

    def __add__(self, other: Any) -> Call:
        return _binary("add", self, other)

    def __radd__(self, other: Any) -> Call:
        return _binary("add", other, self)

    def __sub__(self, other: Any) -> Call:
        return _binary("subtract", self, other)

    def __rsub__(self, other: Any) -> Call:
        return _binary("subtract", other, self)

    def __mul__(self, other: Any) -> Call:
        return _binary("multiply", self, other)

    def __rmul__(self, other: Any) -> Call:
        return _binary("multiply", other, self)

    def __truediv__(self, other: Any) -> Call:
        return _binary("divide", self, other)

    def __rtruediv__(self, other: Any) -> Call:
        return _binary("divide", other, self)

    def __lt__(self, other: Any) -> Call:
        return _binary("less", self, other)

    def __gt__(self, other: Any) -> Call:
        return _binary("greater", self, other)

    def __le__(self, other: Any) -> Call:
        return _binary("less_equal", self, other)

    def __ge__(self, other: Any) -> Call:
        return _binary("greater_equal", self, other)

    def __call__(self, *args: RelayExpr) -> Call:
        return Call(self, args)


def _binary(name: str, lhs: Any, rhs: Any) -> Call:
    if isinstance(lhs, (int, float)) or isinstance(rhs, (int, float)):
        raise ArgumentError(f"operator {name!r} between an expression and a Python number: convert it first, "
                            f"e.g. relay.const({lhs if isinstance(lhs, (int, float)) else rhs}, 'float32')")
    if not isinstance(lhs, RelayExpr) or not isinstance(rhs, RelayExpr):
        raise ArgumentError(f"operator {name!r} expects two Relay expressions, got {type(lhs).__name__} and {type(rhs).__name__}")
    return Call(Op.get(name), [lhs, rhs])


class Constant(ExprWithOp):
    """A tensor constant; ``data`` is a runtime NDArray."""

    __slots__ = ("data", "virtual_device_")
    FIELDS = {"data": ARRAY, "virtual_device_": DATA}
    SHARED, LABELS = False, ("virtual_device_",)
    __hash__ = RelayExpr.__hash__

    def __init__(self, data: Any, span: Any = None) -> None:
        self.data, self.span, self.virtual_device_ = data, span, None
        self._checked_type = TensorType(data.shape, str(data.dtype))

    def _reset_caches(self, copy: Node) -> None:
        copy._checked_type = self._checked_type  # type: ignore[attr-defined]


class Tuple(ExprWithOp):
    """A tuple of expressions."""

    __slots__ = ("fields",)
    FIELDS = {"fields": CHILDREN}
    __hash__ = RelayExpr.__hash__

    def __init__(self, fields: Sequence[RelayExpr], span: Any = None) -> None:
        self.fields, self.span, self._checked_type = tuple(fields), span, None

    def children(self) -> list[Node]:
        return list(self.fields)

    def __getitem__(self, index: int) -> RelayExpr:
        if index >= len(self):
            raise IndexError("Tuple index out of range")
        return self.fields[index]

    def __len__(self) -> int:
        return len(self.fields)


class Var(ExprWithOp):
    """A local variable; each object is a variable of its own, whatever its name.

    ``virtual_device_`` is where its value is stored (a VirtualDevice), None where that is open.
    """

    __slots__ = ("name_hint", "type_annotation", "virtual_device_")
    FIELDS = {"name_hint": DATA, "type_annotation": CHILD, "virtual_device_": DATA}
    BINDABLE, LABELS = True, ("name_hint", "virtual_device_")
    __hash__ = RelayExpr.__hash__

    def __init__(self, name_hint: str, type_annotation: Type | None = None, span: Any = None) -> None:
        self.name_hint, self.type_annotation, self.span, self._checked_type = str(name_hint), type_annotation, span, None
        self.virtual_device_ = None

    def structural_parts(self) -> list[tuple[str, Any, Any]]:
        parts: list[tuple[str, Any, Any]] = [("type_annotation", CHILD, self.type_annotation)]
        if self.virtual_device_ is not None:
            parts.append(("virtual_device_", DATA, str(self.virtual_device_)))
        return parts

    @property
    def name(self) -> str:
        """The variable's name."""
        return self.name_hint

    @property
    def vid(self) -> Var:
        """What identifies the variable: itself."""
        return self


class Call(ExprWithOp):
    """An application: of an operator (with its attributes), a function, a constructor or a closure.

    ``type_args`` are what the callee's type parameters stand for; an operator's are the types of its arguments, once these
    are known, and are not stored.
    """

    __slots__ = ("op", "args", "attrs", "_type_args")
    FIELDS = {"op": CHILD, "args": CHILDREN, "attrs": ATTRS, "type_args": CHILDREN}
    __hash__ = RelayExpr.__hash__

    def __init__(self, op: RelayExpr, args: Sequence[RelayExpr], attrs: Any = None, type_args: Sequence[Type] | None = None,
                 span: Any = None) -> None:
        self.op, self.args, self.attrs = op, tuple(args), attrs
        self.type_args = tuple(type_args or ())
        self.span, self._checked_type = span, None

    @property
    def type_args(self) -> tuple[Type, ...]:
        """What the callee's type parameters stand for."""
        if not isinstance(self.op, Op):
            return self._type_args
        types = tuple(a._checked_type for a in self.args)
        return () if None in types else types  # type: ignore[return-value]

    @type_args.setter
    def type_args(self, value: tuple[Type, ...]) -> None:
        self._type_args = () if isinstance(self.op, Op) else value

    def replace(self, **changes: Any) -> Call:
        """A copy with some fields changed; the same object when nothing differs."""
        if "type_args" in changes:
            changes["_type_args"] = changes.pop("type_args")
        return super().replace(**changes)

    def children(self) -> list[Node]:
        return [self.op, *self.args, *self._type_args]

    def structural_parts(self) -> list[tuple[str, Any, Any]]:
        parts = [("op", CHILD, self.op), ("args", CHILDREN, self.args), ("attrs", ATTRS, self.attrs)]
        if not isinstance(self.op, Op):  # an operator's type arguments only repeat what inference found
            parts.append(("type_args", CHILDREN, self._type_args))
        return parts


Call._child_fields = (("op", False), ("args", True), ("_type_args", True))
Call._copied = ("op", "args", "attrs", "_type_args", "span")


class Let(ExprWithOp):
    """``let var = value; body``."""

    __slots__ = ("var", "value", "body")
    FIELDS = {"var": BIND, "value": CHILD, "body": CHILD}
    __hash__ = RelayExpr.__hash__

    def __init__(self, variable: Var, value: RelayExpr, body: RelayExpr, span: Any = None) -> None:
        self.var, self.value, self.body, self.span, self._checked_type = variable, value, body, span, None


class If(ExprWithOp):
    """``if cond then true_branch else false_branch``; ``cond`` is a bool scalar."""

    __slots__ = ("cond", "true_branch", "false_branch")
    FIELDS = {"cond": CHILD, "true_branch": CHILD, "false_branch": CHILD}
    __hash__ = RelayExpr.__hash__

    def __init__(self, cond: RelayExpr, true_branch: RelayExpr, false_branch: RelayExpr, span: Any = None) -> None:
        self.cond, self.true_branch, self.false_branch = cond, true_branch, false_branch
        self.span, self._checked_type = span, None


class TupleGetItem(ExprWithOp):
    """Field ``index`` of a tuple."""

    __slots__ = ("tuple_value", "index")
    FIELDS = {"tuple_value": CHILD, "index": DATA}
    __hash__ = RelayExpr.__hash__

    def __init__(self, tuple_value: RelayExpr, index: int, span: Any = None) -> None:
        self.tuple_value, self.index, self.span, self._checked_type = tuple_value, int(index), span, None


class RefCreate(ExprWithOp):
    """A new reference holding ``value``."""

    __slots__ = ("value",)
    FIELDS = {"value": CHILD}
    __hash__ = RelayExpr.__hash__

    def __init__(self, value: RelayExpr, span: Any = None) -> None:
        self.value, self.span, self._checked_type = value, span, None


class RefRead(ExprWithOp):
    """The value held by a reference."""

    __slots__ = ("ref",)
    FIELDS = {"ref": CHILD}
    __hash__ = RelayExpr.__hash__

    def __init__(self, ref: RelayExpr, span: Any = None) -> None:
        self.ref, self.span, self._checked_type = ref, span, None


class RefWrite(ExprWithOp):
    """Stores ``value`` into a reference; its own value is the empty tuple."""

    __slots__ = ("ref", "value")
    FIELDS = {"ref": CHILD, "value": CHILD}
    __hash__ = RelayExpr.__hash__

    def __init__(self, ref: RelayExpr, value: RelayExpr, span: Any = None) -> None:
        self.ref, self.value, self.span, self._checked_type = ref, value, span, None


class TempExpr(ExprWithOp):
    """An expression that lives only inside a pass; ``realize()`` gives the real one."""

    __slots__ = ()
    __hash__ = RelayExpr.__hash__

    def realize(self) -> RelayExpr:
        """The expression this one stands for."""
        raise NotImplementedError


class TupleWrapper:
    """A tuple-typed expression that Python can index and unpack."""

    def __init__(self, tuple_value: RelayExpr, size: int) -> None:
        self.tuple_value, self.size = tuple_value, size

    def astuple(self) -> RelayExpr:
        """The tuple expression itself."""
        return self.tuple_value

    astext = property(lambda self: self.tuple_value.astext)

    def __getitem__(self, index: int) -> TupleGetItem:
        if not -self.size <= index < self.size:
            raise IndexError("Tuple index out of range")
        return TupleGetItem(self.tuple_value, index % self.size)

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Any:
        return (self[i] for i in range(self.size))


def var(name_hint: str, type_annotation: Type | None = None, shape: Sequence[Any] | None = None, dtype: str = "float32",
        span: Any = None) -> Var:
    """A variable, annotated by a type or by shape and dtype."""
    if type_annotation is not None and shape is not None:
        raise ArgumentError("relay.var: give type_annotation or shape, not both")
    if shape is not None:
        type_annotation = TensorType(shape, dtype)
    elif isinstance(type_annotation, str):
        type_annotation = TensorType((), type_annotation)
    return Var(name_hint, type_annotation, span)


def const(value: Any, dtype: str | None = None, span: Any = None) -> Constant:
    """A constant from a Python scalar, list, numpy array or NDArray.

    Without ``dtype``, 64-bit floats and ints of Python become float32 and int32 (ints that do not fit stay int64).
    """
    from ..runtime import ndarray

    if isinstance(value, ndarray.NDArray):
        return Constant(value, span)
    if isinstance(dtype, TensorType):
        dtype = dtype.dtype
    array = np.asarray(value, dtype=_numpy_dtype(dtype) if dtype else None)
    if not dtype and not isinstance(value, (np.ndarray, np.generic)):
        array = _narrow(array)
    return Constant(ndarray.array(array), span)


def _numpy_dtype(dtype: str) -> np.dtype:
    from ..runtime.dtype import DataType

    return np.dtype("bool") if dtype == "bool" else DataType(dtype).numpy_dtype


def _narrow(array: np.ndarray) -> np.ndarray:
    if array.dtype == np.float64:
        return array.astype("float32")
    if array.dtype == np.int64 and (array.size == 0 or (array.max() < 2**31 and array.min() >= -(2**31))):
        return array.astype("int32")
    return array


def bind(expr: RelayExpr, binds: dict[Var, RelayExpr]) -> RelayExpr:
    """``expr`` with free variables replaced; parameters of a function that are bound go."""
    from .transform.bind import bind as _bind

    return _bind(expr, binds)


def _call_global(self: GlobalVar, *args: RelayExpr) -> Call:
    """An application of the global function."""
    return Call(self, args)


GlobalVar.__call__ = _call_global  # type: ignore[method-assign]
Op.__call__ = _call_global  # type: ignore[assignment]
Expr = RelayExpr


def _wrap(expr: RelayExpr) -> Any:
    from .analysis import free_type_vars, free_vars
    from .function import Function

    return Function(free_vars(expr), expr, None, free_type_vars(expr))


register_expr_wrapper(_wrap)
