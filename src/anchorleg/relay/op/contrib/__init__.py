"""What external compilers say about the operators they take: their pattern tables."""
from . import dnnl  # noqa: F401  (registers what it takes)
from .register import get_pattern_table, register_pattern_table

__all__ = ["get_pattern_table", "register_pattern_table"]
