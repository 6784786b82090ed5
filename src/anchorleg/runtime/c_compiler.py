"""C and C++ sources to code that runs here, by the machine's compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from ..support.errors import BuildError

DEFAULT_FLAGS = ("-std=c99", "-O2")
_CPLUSPLUS = (".cc", ".cpp", ".cxx")


def find_compiler() -> list[str] | None:
    """The command of a C compiler, or None."""
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        if name and shutil.which(name.split()[0]):
            return name.split()
    return [sys.executable, "-m", "ziglang", "cc"] if find_spec("ziglang") else None


def c_command(cc: "str | Sequence[str] | None" = None) -> list[str]:
    """The command of the C compiler: ``cc``, else what the machine has; BuildError when there is none."""
    if cc and not isinstance(cc, str):
        return list(cc)
    found = [cc.replace("clang++", "clang").replace("g++", "gcc").replace("c++", "cc")] if cc else find_compiler()  # C is not C++
    if found is None:
        raise BuildError("C code needs a C compiler to run on this machine, and none was found: set CC, run pip install ziglang, "
                         "or build for the target llvm without an external compiler that writes C, which needs none")
    return found


def compile_shared(
    files: Mapping[str, "str | bytes"], cc: "str | Sequence[str] | None" = None, options: Sequence[str] = DEFAULT_FLAGS, objects: Sequence[bytes] = (),
) -> bytes:
    """The bytes of a shared library made of the C (``.c``), C++ (``.cc``) and assembler (``.S``) files among ``files``, and of object code.

    Every file is written to one folder, so that sources include headers and binaries by their names.  BuildError, with what the
    compiler said, when it fails or there is none.
    """
    command = c_command(cc)
    with tempfile.TemporaryDirectory(prefix="anchorleg-c-") as folder:
        _write(folder, {**files, **{f"object{i}.o": data for i, data in enumerate(objects)}})
        sources, foreign = _sources(files, options), [f"object{i}.o" for i in range(len(objects))]
        _run([*command, "-shared", "-fPIC", "-I.", *sources, "-x", "none", *foreign, "-o", "library.so", *_libraries(files)], folder)
        return Path(folder, "library.so").read_bytes()


def compile_objects(files: Mapping[str, "str | bytes"], cc: "str | Sequence[str] | None" = None, options: Sequence[str] = DEFAULT_FLAGS) -> list[bytes]:
    """Object code, to be part of a shared library, of each C and C++ file among ``files``."""
    command, made = c_command(cc), []
    with tempfile.TemporaryDirectory(prefix="anchorleg-c-") as folder:
        _write(folder, files)
        for name in files:
            if name.endswith((".c", *_CPLUSPLUS)):
                _run([*command, "-c", "-fPIC", "-I.", *_sources({name: ""}, options), "-o", "object.o"], folder)
                made.append(Path(folder, "object.o").read_bytes())
    return made


def _write(folder: str, files: Mapping[str, "str | bytes"]) -> None:
    for name, content in files.items():
        Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
        Path(folder, name).write_bytes(content.encode() if isinstance(content, str) else bytes(content))


def _sources(files: Mapping[str, object], options: Sequence[str]) -> list[str]:
    """The arguments that name the sources, each language with the standards that are its own."""
    plain = [o for o in options if not o.startswith("-std=")]
    standards = {"c": [o for o in options if o.startswith("-std=") and "++" not in o], "c++": [o for o in options if o.startswith("-std=") and "++" in o]}
    c, cplusplus = [n for n in files if n.endswith(".c")], [n for n in files if n.endswith(_CPLUSPLUS)]
    chosen = standards["c++" if cplusplus and not c else "c"] if not (c and cplusplus) else []
    assembled = [n for n in files if n.endswith(".S")]
    found = [*plain, *chosen]
    for language, names in (("c", c), ("c++", cplusplus), ("assembler-with-cpp", assembled)):
        found += ["-x", language, *names] if names else []
    return found


def _libraries(files: Mapping[str, object]) -> list[str]:
    return ["-lm", "-lstdc++"] if any(n.endswith(_CPLUSPLUS) for n in files) else ["-lm"]


def _run(line: Sequence[str], folder: str) -> None:
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise BuildError(f"the C compiler failed: {' '.join(line)}\n{done.stderr.strip()[-3000:]}")


def support_object(triple: str) -> bytes:
    """Object code of the pool, the workspace functions and the error text, for a shared library of its own."""
    from . import llvm
    from .arguments import arguments_text
    from .halves import conversions_text
    from .threads import error_text, runtime_text

    target = triple or llvm.host_triple()
    return llvm.compile_text(runtime_text(target) + error_text() + conversions_text() + arguments_text(declare_error=False), opt=2)


__all__ = ["DEFAULT_FLAGS", "c_command", "compile_objects", "compile_shared", "find_compiler", "support_object"]
