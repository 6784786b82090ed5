"""`CSourceModule`: C code as a module: text to read, a file to save, functions to call where there is a C compiler.

Code of external compilers has one packed function for each of its functions (``int32_t name(TVMValue*, int*, int, TVMValue*,
int*)``, see `c_headers`) and, for a function ``name`` with constants, ``__init_name``, a packed function that is given the constants
once, as tensors.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from ..support.errors import ArgumentError
from ..support.files import atomic_write
from .c_compiler import DEFAULT_FLAGS, compile_objects, compile_shared, support_object
from .c_headers import HEADERS, SUPPORT_NAMES
from .module import LibraryModule, Module
from .native import NativeLibrary
from .packed_func import PackedFunc
from .registry import register_func

_SUFFIXES = {"c": ".c", "cc": ".cc", "cpp": ".cc", "cxx": ".cc", "": ".c"}


class CTextModule(Module):
    """C or C++ code to be read and saved.

    Parameters
    ----------
    code : the text.
    fmt : ``c``, or ``cc`` for C++.
    function_names : the functions in it.
    """

    type_key = "c"

    def __init__(self, code: str, fmt: str = "c", function_names: Sequence[str] = ()) -> None:
        super().__init__()
        if fmt not in _SUFFIXES:
            raise ArgumentError(f"the format of C code is expected to be c or cc, got {fmt!r}")
        self.code, self.fmt, self.function_names = str(code), fmt or "c", [str(n) for n in function_names]

    @property
    def format(self) -> str:
        return self.fmt

    @property
    def text(self) -> str:
        """The text."""
        return self.code

    @property
    def suffix(self) -> str:
        """The file name's ending."""
        return _SUFFIXES[self.fmt]

    @property
    def is_cplusplus(self) -> bool:
        """Whether the code is C++."""
        return self.suffix == ".cc"

    def get_source(self, fmt: str = "") -> str:
        """The text."""
        if fmt not in ("", "c", "cc"):
            raise ArgumentError(f"C code has no source of format {fmt!r}; it has: {self.fmt}")
        return self.code

    def save(self, file_name: "str | os.PathLike[str]", fmt: str = "") -> None:
        """Write the text to a file."""
        atomic_write(file_name, self.code.encode())

    @property
    def is_dso_exportable(self) -> bool:
        return True

    def _own_function(self, name: str) -> PackedFunc | None:
        return PackedFunc(lambda: list(self.function_names), name, keep=self) if name == "get_func_names" else None


class CSourceModule(CTextModule):
    """Code of an external compiler: one file whose functions are packed functions.

    Parameters
    ----------
    code, fmt, function_names : as for `CTextModule`.
    const_vars : the names of the constants that ``__init_<first function>`` takes, in order.
    """

    def __init__(self, code: str, fmt: str = "c", function_names: Sequence[str] = (), const_vars: Sequence[str] = ()) -> None:
        super().__init__(code, fmt, function_names)
        self.const_vars = [str(n) for n in const_vars]
        self._lock = threading.Lock()
        self._compiled: Module | None = None

    def _own_function(self, name: str) -> PackedFunc | None:
        facts = {"get_symbol": lambda: self.function_names[0] if self.function_names else "", "get_const_vars": lambda: list(self.const_vars)}
        if name in facts:
            return PackedFunc(facts[name], name, keep=self)
        if name in self.function_names or name.removeprefix("__init_") in self.function_names and self.const_vars:
            return self.compiled()._own_function(name)
        return super()._own_function(name)

    def implements_function(self, name: str, query_imports: bool = False) -> bool:
        """Whether `get_function` would find ``name``; compiles nothing."""
        return name in self.function_names or super().implements_function(name, query_imports)

    def shared_library(self, cc: str | None = None, options: Sequence[str] | None = None) -> bytes:
        """The bytes of a shared library of this code alone; `BuildError` when there is no compiler or it refuses the code."""
        objects = [support_object("")] if any(n in self.code for n in SUPPORT_NAMES) else []
        return compile_shared(self._files(), cc, DEFAULT_FLAGS if options is None else options, objects)

    def object_code(self, cc: "str | Sequence[str] | None" = None, options: Sequence[str] = ()) -> list[bytes]:
        """Object code of this code, to be linked into a shared library together with `support_object`."""
        return compile_objects(self._files(), cc, options or DEFAULT_FLAGS)

    def _files(self) -> dict[str, str]:
        return {**HEADERS, f"source{self.suffix}": self.code}

    def compiled(self) -> Module:
        """The code compiled for this machine and opened; done once."""
        with self._lock:
            if self._compiled is None:
                self._compiled = open_library(self.shared_library(), None)
        return self._compiled


def open_library(data: "bytes | memoryview", names: Sequence[str] | None) -> "SharedLibraryModule":
    """A shared library given as bytes, opened; ``names`` are the packed functions it is known for (None: all symbols)."""
    with tempfile.TemporaryDirectory(prefix="anchorleg-") as folder:
        path = Path(folder, "library.so")
        path.write_bytes(data)
        return SharedLibraryModule(NativeLibrary.from_shared(path), names, bytes(data))


class SharedLibraryModule(LibraryModule):
    """An opened shared library that keeps its bytes, so that it can be written to a file again."""

    def __init__(self, library: NativeLibrary, names: Sequence[str] | None, data: bytes) -> None:
        super().__init__(library, None if names is None else {n: n for n in names})
        self.data = data


@register_func("runtime.CSourceModuleCreate", override=True)
def create_c_source(code: str, fmt: str = "c", func_names: Sequence[str] = (), const_vars: Sequence[str] = ()) -> CSourceModule:
    """C code as a module."""
    return CSourceModule(code, fmt, list(func_names), list(const_vars))


__all__ = ["CSourceModule", "CTextModule", "SharedLibraryModule", "create_c_source", "open_library"]
