"""``tvm.generic``: functions with one body per target."""
from __future__ import annotations

from ...target.generic_func import GenericFunc, generic_func, get_native_generic_func, override_native_generic_func

__all__ = ["GenericFunc", "generic_func", "get_native_generic_func", "override_native_generic_func"]
