"""Small functions that tests of the function registry call through."""
from __future__ import annotations

import sys
from typing import Any, Callable

from ..ir.attrs import INT, INTS, RAW, STR, Attrs, Field
from ..runtime.module import PythonModule
from ..support.errors import ArgumentError


def nop(*args: Any) -> None:
    """Does nothing."""


def echo(value: Any) -> Any:
    """The value itself."""
    return value


identity_cpp = echo


def device_test(device: Any, device_type: int, device_id: int) -> Any:
    """The device, after checking that it is the one described."""
    if int(device.device_type) != device_type or int(device.device_id) != device_id:
        raise ArgumentError(f"expected device ({device_type}, {device_id}), got {device}")
    return device


def test_wrap_callback(callback: Callable[[], Any]) -> Callable[[], Any]:
    """A function that calls the callback."""
    return lambda: callback()


def test_raise_error_callback(message: str) -> Callable[[], Any]:
    """A function that raises an error with that message."""
    def fail() -> None:
        raise ArgumentError(message)

    return fail


def test_check_eq_callback(message: str) -> Callable[[Any, Any], Any]:
    """A function that raises an error with that message unless its arguments are equal."""
    def check(left: Any, right: Any) -> None:
        if left != right:
            raise ArgumentError(f"check failed ({left} vs. {right}): {message}")

    return check


for _function in (test_wrap_callback, test_raise_error_callback, test_check_eq_callback):
    _function.__test__ = False  # type: ignore[attr-defined]


def ErrorTest(left: int, right: int) -> None:
    """Raises unless the two are equal."""
    if left != right:
        raise ArgumentError(f"check failed: left == right ({left} vs. {right})")


def object_use_count(obj: Any) -> int:
    """References to an object besides this call's own."""
    return sys.getrefcount(obj) - 3


def run_check_signal(seconds: int) -> None:
    """Sleeps, ready to be interrupted."""
    import time

    time.sleep(seconds)


def FrontendTestModule() -> PythonModule:
    """A module to which functions can be added."""
    return PythonModule({})


class TestAttrs(Attrs, name="attrs.TestAttrs"):
    """Attributes to try things on."""

    __test__ = False
    axis = Field(INT, 10, "An axis from 1 to 10.")
    name = Field(STR, doc="A name.")
    padding = Field(INTS, (0, 0), "Two numbers.")
    func = Field(RAW, None, "A function known by name.")
