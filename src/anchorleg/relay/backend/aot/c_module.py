"""A model's C sources as a module: text to read, files to save, code to run when the machine has a C compiler."""
from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, Mapping, Sequence

from ....runtime.artifact import write_artifact
from ....runtime.c_compiler import compile_shared
from ....runtime.compiled import CompiledModule
from ....runtime.native import NativeLibrary
from ....runtime.source_module import CTextModule
from .c_source import Sources


class CLibraryModule(CTextModule):
    """All C files of a model: the entry's (its own text), and the kernels' and main's as an imported module."""

    def __init__(self, sources: Sources, header_name: str, function_names: Sequence[str]) -> None:
        super().__init__(sources.files["lib0.c"], "c", function_names)
        self.sources, self.header_name = sources, header_name
        self.import_module(CTextModule(sources.files["lib1.c"], "c", function_names))
        self._host: CompiledModule | None = None

    def all_files(self) -> dict[str, "str | bytes"]:
        """Every file to compile, by name."""
        return {self.header_name: self.sources.header, **self.sources.files, **self.sources.binaries}

    def host_code(self) -> CompiledModule:
        """The code compiled for this machine and opened; done once."""
        if self._host is None:
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
        code = CompiledModule([], {})
        write_artifact(Path(file_name), members, {**code.manifest(), **facts, "shared": True}, compile_shared(self.all_files(), cc, tuple(options)))
        return str(file_name)
