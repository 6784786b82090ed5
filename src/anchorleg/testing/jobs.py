"""Jobs for tests of worker processes."""
from __future__ import annotations

import os
import signal
import time
from typing import Any

from ..runtime.registry import get_global_func, register_func
from .callbacks import echo, identity_cpp

_STATE: list[Any] = [0, 0, 0]


def initializer(first: Any, second: Any, third: Any) -> None:
    """Sets the worker's three values."""
    _STATE[:] = [first, second, third]


def after_initializer() -> tuple[Any, ...]:
    """The values the initializer set."""
    return tuple(_STATE)


@register_func("testing.identity_py", override=True)
def identity_py(arg: Any) -> Any:
    """The argument itself, from Python."""
    return arg


def register_ffi() -> None:
    """Registers a function in the worker."""
    register_func("testing.nested_identity_py", echo, override=True)


def call_py_ffi(arg: Any) -> Any:
    """The argument, through the function that ``register_ffi`` registered."""
    return get_global_func("testing.nested_identity_py")(arg)


def call_cpp_ffi(arg: Any) -> Any:
    """The argument, through ``echo``."""
    return echo(arg)


def call_cpp_py_ffi(arg: Any) -> Any:
    """The argument, through two functions."""
    return identity_cpp(get_global_func("testing.identity_py")(arg))


def fast_summation(n: int) -> int:
    """0 + 1 + … + n by the formula."""
    return n * (n + 1) // 2


def slow_summation(n: int) -> int:
    """0 + 1 + … + n one by one."""
    return sum(range(n + 1))


def timeout_job(n: float) -> None:
    """Takes half as long again as it may."""
    time.sleep(n * 1.5)


def identity_after(x: Any, sleep: float) -> Any:
    """The argument, after a while."""
    time.sleep(sleep)
    return x


def terminate_self() -> None:
    """Ends the worker at once."""
    os.kill(os.getpid(), signal.SIGKILL) if hasattr(signal, "SIGKILL") else os._exit(255)
