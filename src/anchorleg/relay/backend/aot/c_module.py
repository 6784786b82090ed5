"""A model's C sources as a module: text to read, files to save, code to run when the machine has a C compiler."""
from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, Mapping, Sequence

from ....runtime.artifact import write_artifact
from ....runtime.compiled import CompiledModule
from ....runtime.module import Module
from ....runtime.native import NativeLibrary
from ....support.errors import ArgumentError
from ....support.files import atomic_write
from .c_source import Sources


class CSourceModule(Module):
    """One C file."""

    type_key = "c"

    def __init__(self, text: str, function_names: Sequence[str] = ()) -> None:
        super().__init__()
        self.text, self.function_names = text, list(function_names)

    @property
    def format(self) -> str:
        return "c"

    def get_source(self, fmt: str = "") -> str:
        """The text."""
        if fmt not in ("", "c", "cc"):
            raise ArgumentError(f"C code has no source of format {fmt!r}; it has: c")
        return self.text

    def save(self, file_name: "str | os.PathLike[str]", fmt: str = "") -> None:
        """Write the text to a file."""
        atomic_write(file_name, self.text.encode())

    @property
    def is_dso_exportable(self) -> bool:
        return True


class CLibraryModule(CSourceModule):
    """All C files of a model: the entry's (its own text), and the kernels' and main's as an imported module."""

    def __init__(self, sources: Sources, header_name: str, function_names: Sequence[str]) -> None:
        super().__init__(sources.files["lib0.c"], function_names)
        self.sources, self.header_name = sources, header_name
        self.import_module(CSourceModule(sources.files["lib1.c"], function_names))
        self._host: CompiledModule | None = None

    def all_files(self) -> dict[str, "str | bytes"]:
        """Every file to compile, by name."""
        return {self.header_name: self.sources.header, **self.sources.files, **self.sources.binaries}

    def host_code(self) -> CompiledModule:
        """The code compiled for this machine and opened; done once."""
        if self._host is None:
            from ....target.build.c import compile_shared

            data = compile_shared(self.all_files())
            with tempfile.TemporaryDirectory(prefix="anchorleg-") as folder:
                path = Path(folder, "library.so")
                path.write_bytes(data)
                library = NativeLibrary.from_shared(path)
            self._host = CompiledModule([], {}, library=library)
        return self._host

    def export_shared(self, file_name: "str | os.PathLike[str]", facts: Mapping, members: Mapping, cc: str | None = None,
                      options: Sequence[str] = ("-O2",), fcompile: object = None, **_: Any) -> str:
        """Compile everything into a shared library with the model's description behind it."""
        from ....target.build.c import compile_shared

        code = CompiledModule([], {})
        write_artifact(Path(file_name), members, {**code.manifest(), **facts, "shared": True}, compile_shared(self.all_files(), cc, tuple(options)))
        return str(file_name)
