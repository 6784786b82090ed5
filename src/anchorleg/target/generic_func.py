"""Functions with one body per target key: the body is chosen by the keys of the current target."""
from __future__ import annotations

import functools
from typing import Any, Callable, Sequence

from ..support.errors import ArgumentError
from .target import Target

Fn = Callable[..., Any]


class GenericFunc:
    """A function that dispatches on the current target's keys, first match first; else its default.

    Keyword arguments are accepted too.
    """

    def __init__(self, name: str, default: Fn | None = None) -> None:
        self.name, self.fdefault = name, default
        self.dispatch_dict: dict[str, Fn] = {}

    def get_packed_func(self) -> Fn:
        """The function for the current target."""
        target = Target.current()
        for key in target.keys if target is not None else ():
            if key in self.dispatch_dict:
                return self.dispatch_dict[key]
        if self.fdefault is None:
            raise ArgumentError(f"generic function {self.name!r} has no default and none for target {target}; "
                                f"registered keys: {', '.join(self.dispatch_dict) or 'none'}")
        return self.fdefault

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.get_packed_func()(*args, **kwargs)

    def set_default(self, func: Fn, allow_override: bool = False) -> None:
        """Sets the function used when no key matches."""
        if self.fdefault is not None and not allow_override:
            raise ArgumentError(f"generic function {self.name!r} already has a default; pass allow_override=True to replace it")
        self.fdefault = func

    def register(self, func: Fn, key_list: str | Sequence[str], allow_override: bool = False) -> None:
        """Sets the function for those target keys."""
        for key in [key_list] if isinstance(key_list, str) else key_list:
            if key in self.dispatch_dict and not allow_override:
                raise ArgumentError(f"Key is already registered for {self.name}: {key!r}; pass override=True to replace it")
            self.dispatch_dict[key] = func


_GLOBAL: dict[str, GenericFunc] = {}


def get_native_generic_func(name: str) -> GenericFunc:
    """The generic function registered under ``name``, created when new."""
    if name not in _GLOBAL:
        _GLOBAL[name] = GenericFunc(name)
    return _GLOBAL[name]


def override_native_generic_func(func_name: str) -> Callable[[Fn], Any]:
    """A decorator that makes the function the default of the generic function ``func_name``.

    The result has ``register(key, func=None, override=True)``.
    """
    node = get_native_generic_func(func_name)

    def decorate(fdefault: Fn) -> Any:
        node.set_default(fdefault, allow_override=True)
        return _wrap(fdefault, node, override_default=True)

    return decorate


def generic_func(fdefault: Fn) -> Any:
    """A decorator that makes a function generic; ``fn.register("cuda")`` then adds the one for that target key."""
    return _wrap(fdefault, GenericFunc(fdefault.__name__, fdefault), override_default=False)


def _wrap(fdefault: Fn, node: GenericFunc, override_default: bool) -> Any:
    @functools.wraps(fdefault)
    def dispatch(*args: Any, **kwargs: Any) -> Any:
        return node.get_packed_func()(*args, **kwargs)

    def register(key: str | Sequence[str], func: Fn | None = None, override: bool = override_default) -> Any:
        def attach(body: Fn) -> Fn:
            node.register(body, key, override)
            return body

        return attach if func is None else attach(func)

    dispatch.register = register  # type: ignore[attr-defined]
    dispatch.fdefault = fdefault  # type: ignore[attr-defined]
    dispatch.dispatch_dict = node.dispatch_dict  # type: ignore[attr-defined]
    dispatch.get_packed_func = node.get_packed_func  # type: ignore[attr-defined]
    dispatch.generic_func_node = node  # type: ignore[attr-defined]
    return dispatch


def is_registered(name: str) -> bool:
    """Whether a generic function of that name exists."""
    return name in _GLOBAL


def native_generic(name: str) -> Any:
    """The generic function of that name as a callable with ``register(key, func=None, override=False)``."""
    node = get_native_generic_func(name)
    return _wrap(node.fdefault or (lambda *args: None), node, override_default=False)
