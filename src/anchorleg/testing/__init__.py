"""Tools for tests: assertions, marks that say what a test needs, parametrised fixtures, a pytest plugin.

Only the names that need pytest import it, when they are first used.
"""
from __future__ import annotations

import importlib
from typing import Any

_NAMES = {
    **dict.fromkeys(("assert_allclose", "assert_prim_expr_equal", "check_bool_expr_is_true", "check_int_constraints_trans_consistency",
                     "check_numerical_grads"), "compare"),
    **dict.fromkeys(("DEFAULT_TEST_TARGETS", "device_enabled", "enabled_targets"), "targets"),
    **dict.fromkeys(("IS_IN_CI", "SKIP_SLOW_TESTS", "exclude_targets", "fixture", "known_failing_targets", "main", "parameter", "parameters",
                     "parametrize_targets", "requires_package", "skip_if_32bit", "skip_if_wheel_test", "skip_parameterizations", "slow",
                     "xfail_parameterizations"), "fixtures"),
    **dict.fromkeys(("Feature", "uses_gpu", "uses_multi_gpu", "requires_nvcc_version", "requires_cuda_compute_version",
                     "is_ampere_or_newer"), "features"),
    **dict.fromkeys(("CompareBeforeAfter",), "compare_passes"),
    **dict.fromkeys(("disable_span_filling", "enable_span_filling"), "spans"),
    **dict.fromkeys(("ErrorTest", "FrontendTestModule", "device_test", "echo", "identity_cpp", "nop", "object_use_count", "run_check_signal",
                     "test_check_eq_callback", "test_raise_error_callback", "test_wrap_callback"), "callbacks"),
    **dict.fromkeys(("after_initializer", "call_cpp_ffi", "call_cpp_py_ffi", "call_py_ffi", "fast_summation", "identity_after", "initializer",
                     "register_ffi", "slow_summation", "terminate_self", "timeout_job"), "jobs"),
}
_MODULES = ("plugin", "utils", "autotvm", "aot", "tir", "usmp", "popen_pool")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    module = "features" if name.startswith("requires_") and name not in _NAMES else _NAMES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_NAMES, *_MODULES])
