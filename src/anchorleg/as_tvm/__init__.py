"""``import tvm`` answered by this package.

``install()`` makes ``tvm`` and its submodules names of our rooms: ``import tvm.relay`` gives ``anchorleg.relay`` itself, loaded when
first asked for.  Addresses that only upstream has are listed in ``as_tvm/addresses.py``.
"""
from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any, Sequence

from ..runtime.registry import register_library
from ..support.errors import ArgumentError
from .addresses import ADDRESSES

_OURS = "anchorleg"


def _exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _target(fullname: str) -> str | None:
    """Our module for a name under ``tvm``: an address kept for upstream's users first, else the room of that name."""
    rest = fullname.partition(".")[2]
    if not rest:
        return _OURS
    if rest in ADDRESSES:
        return ADDRESSES[rest]
    return f"{_OURS}.{rest}" if _exists(f"{_OURS}.{rest}") else None


class _Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds ``tvm`` and everything under it; lets our packages answer for addresses that only upstream has."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        if fullname in _PARENTS:
            return _find_with_extras(fullname, path)
        if fullname != "tvm" and not fullname.startswith("tvm."):
            return None
        ours = _target(fullname)
        if ours is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, origin=ours, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(spec.origin or _OURS)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        alias = module.__spec__
        if alias is not None and alias.loader is self:
            module.__spec__ = alias.loader_state  # the module stays what it was under its own name


def _parents() -> dict[str, dict[str, str]]:
    """Our package → names that it has to answer for besides its own → the modules behind them."""
    found: dict[str, dict[str, str]] = {}
    for address, module in ADDRESSES.items():
        parent, _, leaf = address.rpartition(".")
        found.setdefault(f"{_OURS}.{parent}" if parent else _OURS, {})[leaf] = module
    return found


_PARENTS = _parents()
_ORIGINAL: dict[str, Any] = {}


def _find_with_extras(fullname: str, path: Sequence[str] | None) -> Any:
    """The package's own spec, with the extra names added once it is loaded."""
    spec = importlib.machinery.PathFinder.find_spec(fullname, path)
    if spec is None or spec.loader is None:
        return spec
    load = spec.loader.exec_module

    def exec_module(module: ModuleType) -> None:
        load(module)
        _add_extras(module)

    spec.loader.exec_module = exec_module  # type: ignore[method-assign]
    return spec


def _add_extras(module: ModuleType) -> None:
    """Makes attribute access find the extra names, lazily."""
    extras, own = _PARENTS[module.__name__], module.__dict__.get("__getattr__")
    if module.__name__ in _ORIGINAL:
        return
    _ORIGINAL[module.__name__] = own

    def lookup(name: str) -> Any:
        if name in extras:
            return importlib.import_module(extras[name])
        if own is None:
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        return own(name)

    module.__dict__["__getattr__"] = lookup


def _remove_extras() -> None:
    for name, own in _ORIGINAL.items():
        names = sys.modules[name].__dict__
        names.pop("__getattr__", None)
        if own is not None:
            names["__getattr__"] = own
    _ORIGINAL.clear()


_FINDER = _Alias()


def install() -> None:
    """Makes ``import tvm`` give this package from now on.

    ArgumentError when another ``tvm`` has been imported already.
    """
    present = sys.modules.get("tvm")
    if present is not None and present is not sys.modules[_OURS]:
        raise ArgumentError(f"another tvm is already imported, from {getattr(present, '__file__', 'an unknown place')}: call "
                            "anchorleg.as_tvm.install() before anything imports tvm")
    if _FINDER not in sys.meta_path:
        register_library(lambda: importlib.import_module(f"{__name__}.rooms.global_functions"))
        sys.meta_path.insert(0, _FINDER)
        for name in _PARENTS.keys() & sys.modules.keys():
            _add_extras(sys.modules[name])
    importlib.import_module("tvm")


def uninstall() -> None:
    """Undoes ``install``: ``tvm`` is again whatever the machine has."""
    if _FINDER in sys.meta_path:
        sys.meta_path.remove(_FINDER)
        _remove_extras()
    for name in [n for n in sys.modules if n == "tvm" or n.startswith("tvm.")]:
        del sys.modules[name]
