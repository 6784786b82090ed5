"""Shape functions: sizes of results that are known only at run time, as formulas over the arguments' sizes and values."""
from __future__ import annotations

from .dims import DimTable, product
from .registry import Known, ShapeCase, shape_rule, value_rule

__all__ = ["DimTable", "Known", "ShapeCase", "product", "shape_rule", "value_rule"]
