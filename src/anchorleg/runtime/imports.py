"""Imported modules in an exported file: code of external compilers, and the constants they need.

The manifest lists the modules, each with its kind and the numbers of those it imports itself::

    "imports": [{"kind": "const_loader", "imports": [1], …}, {"kind": "c", "imports": [], "functions": ["f"], "member": "imports/1.so"}]

A module of another kind is written when it gives its bytes (``save_to_bytes()``) and the loading process has a registered function
``runtime.module.loadbinary_<type key>`` that makes a module of bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..support.errors import ArtifactError
from .artifact import pack_tensors, unpack_tensors
from .const_loader import ConstLoaderModule
from .module import LibraryModule, Module
from .native import NativeLibrary
from .registry import get_global_func
from .source_module import CSourceModule, SharedLibraryModule, open_library

Members = dict[str, "bytes | memoryview"]
LOADER = "runtime.module.loadbinary_"
Pack = Callable[..., "tuple[dict[str, Any], Members]"]  # (module, folder, how) → facts and members
Unpack = Callable[..., Module]  # (facts, members, path, the file's own library) → module


class Packing(NamedTuple):
    """How a file is written: whether C code is linked into its own shared library, the compiler and its options."""

    linked: bool
    cc: str | None = None
    options: Sequence[str] | None = None


def pack_imports(root: Module, how: Packing) -> tuple[list[dict[str, Any]], Members]:
    """The manifest's list of the modules that ``root`` imports, and their members."""
    modules = root._all_imports()
    numbers = {id(m): i for i, m in enumerate(modules)}
    facts, members = [], {}
    for number, module in enumerate(modules):
        fact, own = _pack(module, f"imports/{number}", how)
        top = any(m is module for m in root._imports)
        facts.append({**fact, "top": top, "imports": [numbers[id(m)] for m in module._imports]})
        members.update(own)
    return facts, members


def linked_sources(root: Module) -> list[CSourceModule]:
    """The C code among the modules that ``root`` imports."""
    return [m for m in root._all_imports() if isinstance(m, CSourceModule)]


def unpack_imports(root: Module, facts: object, members: Mapping[str, memoryview], path: Path, library: NativeLibrary | None) -> None:
    """Gives ``root`` the modules that the manifest lists; ``library`` is the file's own shared library, when it is one."""
    try:
        modules = [_unpack(fact, members, path, library) for fact in facts]  # type: ignore[attr-defined]
        for module, fact in zip(modules, facts):  # type: ignore[call-overload]
            for number in fact["imports"]:
                module.import_module(modules[number])
            if fact["top"]:
                root.import_module(module)
    except (KeyError, TypeError, IndexError, AttributeError) as err:
        raise ArtifactError(f"{path}: the list of imported modules is malformed ({type(err).__name__}: {err})") from err


# -- one module


def _pack(module: Module, folder: str, how: Packing) -> tuple[dict[str, Any], Members]:
    found = next((pack for kind, pack in _PACKERS if isinstance(module, kind)), None)
    if found is not None:
        return found(module, folder, how)
    save = getattr(module, "save_to_bytes", None)
    if save is None:
        what = ", ".join(sorted(getattr(module, "_functions", {}))) or "functions"
        raise ArtifactError(f"the module of kind {module.type_key!r} with {what} cannot be written to a file: it lives in this process only. Let the external "
                            f"compiler return C code (runtime.CSourceModuleCreate) or a compiled library, or give the module save_to_bytes() and "
                            f"register {LOADER}{module.type_key}")
    return {"kind": "binary", "type_key": module.type_key, "member": f"{folder}.bin"}, {f"{folder}.bin": bytes(save())}


def _pack_c(module: Any, folder: str, how: Packing) -> tuple[dict[str, Any], Members]:
    symbols = [*module.function_names, *(f"__init_{n}" for n in module.function_names[:1] if module.const_vars)]
    fact: dict[str, Any] = {"kind": "shared", "functions": symbols}
    if how.linked:
        return fact, {}
    return {**fact, "member": f"{folder}.so"}, {f"{folder}.so": module.shared_library(how.cc, how.options)}


def _pack_shared(module: Any, folder: str, how: Packing) -> tuple[dict[str, Any], Members]:
    data = module.data if isinstance(module, SharedLibraryModule) else _file_of(module)
    names = None if module._names is None else sorted(module._names)
    return {"kind": "shared", "functions": names, "member": f"{folder}.so"}, {f"{folder}.so": data}


def _file_of(module: LibraryModule) -> bytes:
    try:
        return Path(module.library.name).read_bytes()
    except OSError as err:
        raise ArtifactError(f"the shared library {module.library.name!r} of an imported module cannot be read: {err.strerror or err}") from err


def _pack_constants(module: Any, folder: str, how: Packing) -> tuple[dict[str, Any], Members]:
    index, members = pack_tensors(module.constants, folder)
    return {"kind": "const_loader", "constants": index, "by_symbol": module.by_symbol}, dict(members)


_PACKERS: list[tuple[type, Pack]] = [(CSourceModule, _pack_c), (LibraryModule, _pack_shared), (ConstLoaderModule, _pack_constants)]


def _unpack(fact: Mapping[str, Any], members: Mapping[str, memoryview], path: Path, library: NativeLibrary | None) -> Module:
    kind = fact["kind"]
    if kind not in _UNPACKERS:
        raise ArtifactError(f"{path} holds an imported module of kind {kind!r}; this version reads: {', '.join(sorted(_UNPACKERS))}")
    return _UNPACKERS[kind](fact, members, path, library)


def _unpack_shared(fact: Mapping[str, Any], members: Mapping[str, memoryview], path: Path, library: NativeLibrary | None) -> Module:
    names = None if fact["functions"] is None else [str(n) for n in fact["functions"]]
    if "member" in fact:
        return open_library(members[fact["member"]], names)
    if library is None:
        raise ArtifactError(f"{path}: its external functions are said to be linked into it, but it is no shared library")
    return LibraryModule(library, {n: n for n in names or ()})


def _unpack_constants(fact: Mapping[str, Any], members: Mapping[str, memoryview], path: Path, library: NativeLibrary | None) -> Module:
    return ConstLoaderModule(unpack_tensors(fact["constants"], members), fact["by_symbol"])


def _unpack_binary(fact: Mapping[str, Any], members: Mapping[str, memoryview], path: Path, library: NativeLibrary | None) -> Module:
    load = get_global_func(LOADER + str(fact["type_key"]), allow_missing=True)
    if load is None:
        raise ArtifactError(f"{path} holds a module of kind {fact['type_key']!r}; register {LOADER}{fact['type_key']}, which makes a module of bytes, "
                            "before loading it")
    module = load(bytes(members[fact["member"]]))
    if not isinstance(module, Module):
        raise ArtifactError(f"{LOADER}{fact['type_key']} is expected to return a runtime Module, got {type(module).__name__}")
    return module


_UNPACKERS: dict[str, Unpack] = {"shared": _unpack_shared, "const_loader": _unpack_constants, "binary": _unpack_binary}


def register_import_kind(kind: str, cls: type, pack: Pack, unpack: Unpack) -> None:
    """Makes modules of a class be written and read as ``kind``; see `pack_imports`."""
    _PACKERS.append((cls, pack))
    _UNPACKERS[kind] = unpack


__all__ = ["LOADER", "Packing", "linked_sources", "pack_imports", "register_import_kind", "unpack_imports"]
