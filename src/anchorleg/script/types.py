"""The types of the script language: ``T.int32``, ``T.float32x4``, ``T.handle`` …

Each stands for the type in an annotation, makes a variable when called with nothing (``n = T.int32()``), and a constant or a
conversion when called with a value (``T.int32(3)``, ``T.float32("inf")``, ``T.int64(x)``).
"""
from __future__ import annotations

from typing import Any

from ..ir.expr import IntImm, PrimExpr
from ..ir.type import PointerType, PrimType
from ..support.errors import ArgumentError
from ..tir import build, op
from ..tir.dtypes import is_float, scalar_of, wrap
from ..tir.dtypes import info as dtype_info
from .forms import VarForm, dtype_text

_WIDTHS = {"int": (8, 16, 32, 64), "uint": (8, 16, 32, 64), "float": (16, 32, 64), "bfloat": (16,)}
_LANES = (4, 8, 16, 32, 64)


class ScalarType:
    """A scalar or vector type."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype

    def __call__(self, value: Any = None, is_size_var: bool = False) -> Any:
        """A variable without ``value``; else ``value`` as a constant of the type, or converted to it.

        ArgumentError for an integer the type cannot hold.
        """
        if value is None:
            return VarForm(self.dtype, None, is_size_var)
        if isinstance(value, PrimExpr):
            return build.cast(self.dtype, value)
        if isinstance(value, str):
            return self._of_text(value)
        return self._constant(value)

    def _of_text(self, text: str) -> Any:
        if not is_float(scalar_of(self.dtype)):
            raise ArgumentError(f"T.{self.dtype}: a number is expected, got the text {text!r}")
        return build.make_const(float.fromhex(text) if "0x" in text else float(text), self.dtype)

    def _constant(self, value: Any) -> Any:
        number = value.item() if hasattr(value, "item") else value
        if not isinstance(number, (int, float)):
            number = op.convert(value)
            return build.cast(self.dtype, number)
        kind = dtype_info(self.dtype).kind
        if kind in ("int", "uint") and (number != int(number) or wrap(int(number), scalar_of(self.dtype)) != int(number)):
            raise ArgumentError(f"T.{self.dtype}: {value!r} is no value of {self.dtype}")
        return build.make_const(number, self.dtype)

    def __repr__(self) -> str:
        return f"T.{self.dtype}"


class HandleType(ScalarType):
    """A pointer; ``T.handle("float32", "global")`` says into what."""

    def __init__(self) -> None:
        super().__init__("handle")

    def __call__(self, dtype: Any = None, storage_scope: str = "global", *, is_size_var: bool = False) -> Any:
        if isinstance(dtype, PrimExpr):
            return op.reinterpret("handle", dtype)
        if isinstance(dtype, int):
            return IntImm("handle", dtype)
        if dtype is None:
            return VarForm("handle")
        return VarForm("handle", PointerType(PrimType(dtype_text(dtype)), storage_scope))


class PtrMaker:
    """``T.Ptr[T.float32]`` and ``T.Ptr(T.float32, "global")``: a pointer's type in an annotation."""

    def __getitem__(self, keys: Any) -> VarForm:
        return self(*keys) if isinstance(keys, tuple) else self(keys)

    def __call__(self, dtype: Any, storage_scope: str = "global") -> VarForm:
        return VarForm("handle", PointerType(PrimType(dtype_text(dtype)), storage_scope))


def _names() -> list[str]:
    scalars = [f"{kind}{width}" for kind, widths in _WIDTHS.items() for width in widths]
    return [*scalars, *(f"{s}x{n}" for s in scalars for n in _LANES), *(f"bool{n}" for n in ("", *(f"x{k}" for k in _LANES))),
            "e4m3_float8", "e5m2_float8"]


TYPES: dict[str, ScalarType] = {name: ScalarType(name) for name in _names()}
TYPES["boolean"] = TYPES["bool"]
TYPES["void"] = ScalarType("void")
TYPES["handle"] = HandleType()


def declared(annotation: Any) -> VarForm | None:
    """The variable an annotation declares; None when it is no type."""
    if isinstance(annotation, HandleType):
        return VarForm("handle")
    if isinstance(annotation, ScalarType):
        return VarForm(annotation.dtype)
    if isinstance(annotation, VarForm):
        return annotation
    simple = {int: "int64", float: "float32", bool: "bool"}
    return VarForm(simple[annotation]) if annotation in simple else None


def is_true(value: Any) -> bool:
    """Whether a condition is the constant true."""
    return value is True or isinstance(value, IntImm) and value.value == 1
