"""`PackedFunc`: a function found by name, whether Python or native code answers it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..support.errors import TypeMismatchError


class PackedFunc:
    """A callable with a name and, for native code, its C address.

    Parameters
    ----------
    function : what answers the call.
    name : for messages.
    handle : address of a function in the packed calling convention, 0 when Python answers.
    keep : what must stay alive while this object does, for instance the library.
    """

    __slots__ = ("_function", "name", "handle", "_keep", "is_global")

    def __init__(
        self, function: Callable, name: str = "", handle: int = 0, keep: object = None, is_global: bool = False
    ) -> None:
        self._function = function
        self.name = name or getattr(function, "__name__", "function")
        self.handle = handle
        self._keep = keep
        self.is_global = is_global

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"PackedFunc({self.name})"


Function = PackedFunc


def convert_to_tvm_func(function: Callable) -> PackedFunc:
    """A `PackedFunc` answered by a Python function."""
    return function if isinstance(function, PackedFunc) else PackedFunc(function)


def convert(value: object) -> object:
    """A runtime value from a Python one: arrays become tensors, callables packed functions, lists tuples of such values.

    Text, numbers, None, runtime objects and nodes of the compiler stay as they are.
    """
    from .ndarray import NDArray, array
    from .object import Object

    if value is None or isinstance(value, (NDArray, Object, PackedFunc, str, bytes, int, float)):
        return value
    if hasattr(type(value), "structural_parts"):  # a node: this room does not know their classes
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        return array(value)
    if isinstance(value, (list, tuple)):
        return tuple(convert(item) for item in value) if type(value) in (list, tuple) else value
    if isinstance(value, dict):
        return {key: convert(item) for key, item in value.items()}
    if callable(value):
        return PackedFunc(value)
    raise TypeMismatchError(f"convert: no runtime value for a {type(value).__name__}")
