"""Functions known by a global name, to be found from anywhere in the process."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ..support.errors import ArgumentError
from .packed_func import PackedFunc

_functions: dict[str, PackedFunc] = {}
_lock = threading.Lock()


def register_func(func_name: "str | Callable", f: Callable | None = None, override: bool = False) -> Callable:
    """Register ``f`` under ``func_name``; also a decorator, with or without a name.

    Raises `ArgumentError` when the name is taken and ``override`` is false.
    """
    if callable(func_name):
        name, f = func_name.__name__, func_name
    else:
        name = func_name

    def register(function: Callable) -> Callable:
        packed = function if isinstance(function, PackedFunc) else PackedFunc(function, name)
        with _lock:
            if name in _functions and not override:
                raise ArgumentError(f"global function {name!r} is registered already; pass override=True to replace it")
            _functions[name] = packed
        packed.is_global = True
        return function

    return register(f) if f is not None else register


_libraries: list[Callable[[], object]] = []


def register_library(load: Callable[[], object]) -> None:
    """Makes ``load``, which registers functions, run when a name is not found."""
    _libraries.append(load)


def _load_libraries() -> bool:
    waiting = _libraries[:]
    _libraries.clear()
    for load in waiting:
        load()
    return bool(waiting)


def get_global_func(name: str, allow_missing: bool = False) -> PackedFunc | None:
    """The function registered under ``name``; without one, None or an `ArgumentError`, as ``allow_missing`` says."""
    function = _functions.get(name)
    if function is None and _load_libraries():
        function = _functions.get(name)
    if function is None and not allow_missing:
        raise ArgumentError(f"cannot find global function {name!r}; list_global_func_names() lists those there are")
    return function


def list_global_func_names() -> list[str]:
    """The names registered, sorted."""
    return sorted(_functions)


def remove_global_func(name: str) -> None:
    """Forget the function registered under ``name``; `ArgumentError` when there is none."""
    with _lock:
        if _functions.pop(name, None) is None:
            raise ArgumentError(f"cannot remove global function {name!r}: it is not registered")
