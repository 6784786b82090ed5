"""Attribute values as text: numbers, strings, lists; what has no text of its own goes to the metadata section."""
from __future__ import annotations

from enum import Enum
from typing import Any, Callable

from ...ir.attrs import Attrs, DictAttrs
from ...ir.expr import Any as AnyDim
from ...ir.expr import FloatImm, GlobalVar, IntImm
from ...ir.op import Op
from ...ir.structural import structural_equal
from .doc import quoted
from .numbers import SCALAR_DTYPES, float_text, scalar_text


class AttributeText:
    """Renders attribute values; ``meta`` names a value in the metadata section.

    Without ``full`` (text for people only) attribute objects, maps and global names are spelled out in place.
    """

    def __init__(self, meta: Callable[[Any], str], full: bool) -> None:
        self.meta, self.full = meta, full

    def value(self, value: Any) -> str:
        """One value's text."""
        plain = _plain_text(value)
        if plain is not None:
            return plain
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(self.value(v) for v in value) + "]"
        return self.meta(value) if self.full else self._spelled(value)

    def _spelled(self, value: Any) -> str:
        if isinstance(value, Attrs):
            return "{" + ", ".join(self.entries(value)) + "}"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{self.value(k)}={self.value(v)}" for k, v in value.items()) + "}"
        if isinstance(value, GlobalVar):
            return f"'{value.name_hint}'"
        return repr(value) if type(value).__name__ == "VirtualDevice" else self.meta(value)

    def entries(self, attrs: Attrs) -> list[str]:
        """``key=value`` of every entry that is not at its default, in declaration order."""
        schema = attrs.SCHEMA
        return [f"{key}={self.value(value)}" for key, value in attrs.items()
                if key not in schema or schema[key].required or not _same(value, schema[key].default)]

    def of_call(self, attrs: Any, op: Any) -> list[str]:
        """The attribute part of a call's argument list."""
        if attrs is None:
            return []
        if isinstance(op, Op):
            if self.full and attrs.NAME != attrs_name(op):
                return [self.meta(attrs)]  # only the operator's own attribute class can be read back from plain entries
            return self.entries(attrs)
        if isinstance(attrs, DictAttrs):
            return [self.meta(attrs)] if self.full else self.entries(attrs)
        return [*self.entries(attrs), f'attrs_type_key="{attrs.NAME}"']


def attrs_name(op: Op) -> str:
    """The registered name of an operator's attribute class; empty when it has none."""
    kind: Any = op.attrs_type
    return kind if isinstance(kind, str) else "" if kind is None else kind.NAME


def _same(value: Any, default: Any) -> bool:
    if type(value) in (int, str, bool, type(None)):
        return type(value) is type(default) and value == default
    return structural_equal(value, default)


def _plain_text(value: Any) -> str | None:
    if value is None:
        return "None"
    if isinstance(value, bool):
        return "True" if value else "False"
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return float_text(value) + "f"
    if isinstance(value, (IntImm, FloatImm)):
        return scalar_text(value.value, value.dtype) if value.dtype in SCALAR_DTYPES else str(value.value)
    if isinstance(value, AnyDim):
        return "?"
    return quoted(str(value)) if type(value).__name__ == "DataType" else None
