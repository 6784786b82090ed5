"""C sources to code that runs here: a shared library made by the machine's C compiler."""
from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Mapping, Sequence

from ...runtime.export import find_compiler
from ...support.errors import BuildError

DEFAULT_FLAGS = ("-std=c99", "-O2")


def compile_shared(files: Mapping[str, "str | bytes"], cc: str | None = None, options: Sequence[str] = DEFAULT_FLAGS) -> bytes:
    """The bytes of a shared library made of the C (``.c``) and assembler (``.S``) files among ``files``.

    Every file is written to one folder, so that sources include headers and binaries by their names.  BuildError, with what the
    compiler said, when it fails or there is none.
    """
    command = [cc.replace("clang++", "clang").replace("g++", "gcc").replace("c++", "cc")] if cc else find_compiler()  # C is not C++
    if command is None:
        raise BuildError("C code needs a C compiler to run on this machine, and none was found: set CC, run pip install ziglang, "
                         "or build for the target llvm, which needs none")
    with tempfile.TemporaryDirectory(prefix="anchorleg-c-") as folder:
        for name, content in files.items():
            Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
            Path(folder, name).write_bytes(content.encode() if isinstance(content, str) else bytes(content))
        sources = [n for n in files if n.endswith(".c")]
        assembled = [n for n in files if n.endswith(".S")]
        flags = [o for o in options if not (o.startswith("-std=") and "++" in o)]
        languages = ["-x", "c", *sources, *(["-x", "assembler-with-cpp", *assembled] if assembled else [])]
        line = [*command, "-shared", "-fPIC", "-I.", *flags, "-o", "library.so", *languages, "-x", "none", "-lm"]
        done = subprocess.run(line, cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            raise BuildError(f"the C compiler failed: {' '.join(line)}\n{done.stderr.strip()[-3000:]}")
        return Path(folder, "library.so").read_bytes()
