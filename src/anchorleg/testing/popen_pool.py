"""The jobs of tests of worker processes under upstream's address."""
from __future__ import annotations

from .jobs import (after_initializer, call_cpp_ffi, call_cpp_py_ffi, call_py_ffi, fast_summation, initializer, register_ffi,
                   slow_summation, timeout_job)

__all__ = ["after_initializer", "call_cpp_ffi", "call_cpp_py_ffi", "call_py_ffi", "fast_summation", "initializer", "register_ffi",
           "slow_summation", "timeout_job"]
