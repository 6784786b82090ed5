"""``tvm.container``: lists and dictionaries are Python's own."""
from __future__ import annotations

from ...runtime.container import ADT, ShapeTuple, String, tuple_object
from .ir_container import Array, Map

__all__ = ["ADT", "Array", "Map", "ShapeTuple", "String", "tuple_object"]
