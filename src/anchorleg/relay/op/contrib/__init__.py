"""What external compilers say about the operators they take: their pattern tables."""
from .register import get_pattern_table, register_pattern_table

__all__ = ["get_pattern_table", "register_pattern_table"]
