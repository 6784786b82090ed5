"""Expressions shared by the graph language and the loop language: bases, numbers, ranges, global names."""
from __future__ import annotations

from typing import Any as _Any

from .node import CHILD, DATA, Kind, Node

INDEX_DTYPE = "int64"  # the one integer type of shapes and indices inside the compiler


class BaseExpr(Node):
    """Anything that denotes a value."""

    __slots__ = ()


class PrimExpr(BaseExpr):
    """A scalar (or short vector) expression of the loop language; ``dtype`` is its type, e.g. ``"float32x8"``.

    Arithmetic operators are installed by ``anchorleg.tir`` (they build and fold tir nodes).
    ``a == b`` builds a comparison; use ``is`` or ``same_as`` to ask about identity.
    """

    __slots__ = ("dtype",)
    __hash__ = Node.__hash__


class IntImm(PrimExpr):
    """An integer (or bool) constant."""

    __slots__ = ("value",)
    FIELDS: dict[str, Kind] = {"dtype": DATA, "value": DATA}
    __hash__ = PrimExpr.__hash__

    def __init__(self, dtype: str, value: int, span: _Any = None) -> None:
        self.dtype, self.value, self.span = str(dtype), int(value), span

    def __int__(self) -> int:
        return self.value

    def __index__(self) -> int:
        return self.value

    def __bool__(self) -> bool:
        return self.value != 0


class FloatImm(PrimExpr):
    """A floating-point constant (``value`` is a Python float; ``dtype`` says its width)."""

    __slots__ = ("value",)
    FIELDS: dict[str, Kind] = {"dtype": DATA, "value": DATA}
    __hash__ = PrimExpr.__hash__

    def __init__(self, dtype: str, value: float, span: _Any = None) -> None:
        self.dtype, self.value, self.span = str(dtype), float(value), span

    def __float__(self) -> float:
        return self.value


class Any(PrimExpr):
    """A dimension not known before run time (printed ``?``)."""

    __slots__ = ()
    FIELDS: dict[str, Kind] = {"dtype": DATA}
    LABELS = ("dtype",)
    __hash__ = PrimExpr.__hash__

    def __init__(self, dtype: str = INDEX_DTYPE, span: _Any = None) -> None:
        self.dtype, self.span = dtype, span


class Range(Node):
    """The half-open interval ``[min, min + extent)``."""

    __slots__ = ("min", "extent")
    FIELDS = {"min": CHILD, "extent": CHILD}

    def __init__(self, begin: PrimExpr | int, end: PrimExpr | int | None = None, span: _Any = None) -> None:
        lo, hi = (0, begin) if end is None else (as_dim(begin), as_dim(end))
        self.min, self.span = as_dim_expr(lo), span
        self.extent = as_dim_expr(hi if isinstance(lo, int) and lo == 0 else hi - lo)

    @staticmethod
    def from_min_extent(begin: PrimExpr | int, extent: PrimExpr | int) -> Range:
        """``[begin, begin + extent)``."""
        self = object.__new__(Range)
        self.min, self.extent, self.span = as_dim_expr(begin), as_dim_expr(extent), None
        return self


def as_dim_expr(value: PrimExpr | int) -> PrimExpr:
    """A Python int as an index constant; an expression as it is."""
    return value if isinstance(value, PrimExpr) else IntImm(INDEX_DTYPE, int(value))


def as_dim(value: _Any) -> int | PrimExpr:
    """The inner form of a dimension: a Python int when constant, else the expression."""
    if isinstance(value, IntImm):
        return value.value
    return value if isinstance(value, PrimExpr) else int(value)


class RelayExpr(BaseExpr):
    """An expression of the graph language.  ``checked_type`` is set by type inference."""

    __slots__ = ("_checked_type",)
    __hash__ = Node.__hash__

    @property
    def checked_type(self) -> _Any:
        """The inferred type; an error when inference has not run."""
        if self._checked_type is None:
            from ..support.errors import ArgumentError

            raise ArgumentError("this expression has no type yet: run relay.transform.InferType() on its module first")
        return self._checked_type

    @property
    def checked_type_(self) -> _Any:
        """The inferred type, or None when inference has not run."""
        return self._checked_type

    def _reset_caches(self, copy: Node) -> None:
        copy._checked_type = None  # type: ignore[attr-defined]


class GlobalVar(RelayExpr):
    """The name of a function of a module."""

    __slots__ = ("name_hint",)
    FIELDS = {"name_hint": DATA}
    __hash__ = RelayExpr.__hash__

    def __init__(self, name_hint: str, type_annot: _Any = None) -> None:
        self.name_hint, self._checked_type, self.span = name_hint, type_annot, None


class BaseFunc(RelayExpr):
    """A function of a module, in whichever language."""

    __slots__ = ("attrs",)
    __hash__ = RelayExpr.__hash__

    def with_attr(self: _Any, key: str | dict[str, _Any], value: _Any = None) -> _Any:
        """The function with one attribute (or a dict of them) set."""
        from .attrs import DictAttrs

        new = key if isinstance(key, dict) else {key: value}
        return self.replace(attrs=DictAttrs({**dict(self.attrs or {}), **new}))

    def without_attr(self: _Any, key: str) -> _Any:
        """The function without that attribute."""
        from .attrs import DictAttrs

        return self.replace(attrs=DictAttrs({k: v for k, v in dict(self.attrs or {}).items() if k != key}))

    def get_attr(self, key: str, default: _Any = None) -> _Any:
        """The attribute's value, or ``default``."""
        return dict(self.attrs or {}).get(key, default)
