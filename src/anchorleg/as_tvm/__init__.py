"""``import tvm`` answered by this package.

``install()`` makes ``tvm`` and its submodules names of our rooms: ``import tvm.relay`` gives ``anchorleg.relay`` itself, loaded when
first asked for.  Addresses that only upstream has are kept in ``as_tvm/rooms``.
"""
from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any, Sequence

from ..support.errors import ArgumentError

_OURS = "anchorleg"
_ROOMS = f"{__name__}.rooms"


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
    for name in (f"{_ROOMS}.{rest}", f"{_OURS}.{rest}"):
        if _exists(name):
            return name
    return None


class _Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds ``tvm`` and everything under it."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
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
        sys.meta_path.insert(0, _FINDER)
    importlib.import_module("tvm")


def uninstall() -> None:
    """Undoes ``install``: ``tvm`` is again whatever the machine has."""
    if _FINDER in sys.meta_path:
        sys.meta_path.remove(_FINDER)
    for name in [n for n in sys.modules if n == "tvm" or n.startswith("tvm.")]:
        del sys.modules[name]
