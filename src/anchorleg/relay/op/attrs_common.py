"""Attribute field kinds and attribute classes that several operator families share."""
from __future__ import annotations

from typing import Any

from ...ir.attrs import INTS, OPT_INTS, Attrs, Field
from ...runtime.dtype import dtype_name


def DTYPE(value: Any) -> str:
    """An element type by its canonical text (numpy types and other spellings are taken)."""
    return dtype_name(value)


def OPT_DTYPE(value: Any) -> str:
    """An element type, or ``""`` when none is given (the operator then takes it from an input)."""
    return "" if value is None or value in ("", "void") else dtype_name(value)


class CastAttrs(Attrs, name="relay.attrs.CastAttrs"):
    """Attributes of ``cast``."""

    dtype = Field(DTYPE, doc="Target data type.")


class InitOpAttrs(Attrs, name="relay.attrs.InitOpAttrs"):
    """Attributes of ``zeros``, ``ones``, ``full`` and their dynamic forms."""

    shape = Field(OPT_INTS, None, "Target shape (None: given by an input).")
    dtype = Field(OPT_DTYPE, "", "Target data type.")


class ShapeOfAttrs(Attrs, name="relay.attrs.ShapeOfAttrs"):
    """Attributes of ``shape_of``."""

    dtype = Field(OPT_DTYPE, "", "Data type of the shape tensor.")


__all__ = ["DTYPE", "OPT_DTYPE", "CastAttrs", "InitOpAttrs", "ShapeOfAttrs", "INTS"]
