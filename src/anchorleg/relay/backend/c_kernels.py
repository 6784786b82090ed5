"""Kernels for the target ``c``: see ``target/build/c.py``."""
from ...target.build.c import is_c, require_compiler

__all__ = ["is_c", "require_compiler"]
