"""Writing a compiled module to one file: an archive, or a shared library with the archive behind it.

The archive needs nothing on the machine that loads it but this package.  A file named ``.so`` (``.dylib``, ``.dll``) is
linked when a C compiler is found (``CC``, cc, gcc, clang, or ``python -m ziglang cc``), so that C programs can open it;
without one the archive is written under that name, and `load_module` reads either.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..support.errors import BuildError
from .artifact import write_artifact
from .c_compiler import find_compiler, support_object
from .imports import Packing, linked_sources, pack_imports

if TYPE_CHECKING:
    from .compiled import CompiledModule

_SHARED_SUFFIXES = {".so", ".dylib", ".dll"}


def export(
    file_name: "str | os.PathLike[str]", code: "CompiledModule", manifest: Mapping,
    members: Mapping[str, "bytes | bytearray | memoryview"], fcompile: object = None, cc: str | None = None,
    options: Sequence[str] = (), link: bool | None = None, **_: object,
) -> str:
    """Write ``code`` and further members; returns the file's name.

    Parameters
    ----------
    link : True demands a linked shared library (`BuildError` without a compiler), False an archive only, None decides
        by the name's suffix and what is installed.
    cc, options : the compiler to link with and further arguments for it.
    """
    path = Path(file_name)
    facts = {**code.manifest(), **manifest}
    linker = _linker(path, cc, link, code.triple)
    _check_compiler(code, cc)
    apart = set(code.foreign) - {n for m in linked_sources(code) for n in m.function_names}
    if linker is not None and apart:
        if link:
            raise BuildError(f"cannot link {path}: the external functions {', '.join(sorted(apart))} are not C code; export an archive (link=False)")
        linker = None
    if code._imports:
        imported, more = pack_imports(code, Packing(linker is not None, cc, options or None))
        facts, members = {**facts, "imports": imported}, {**members, **more}
    if linker is None:
        write_artifact(path, {**code.members(), **members}, facts)
    else:
        prefix = link_shared(code, linker, options)
        write_artifact(path, members, {**facts, "shared": True}, prefix)
    return str(path)


def _linker(path: Path, cc: str | None, link: bool | None, triple: str) -> list[str] | None:
    if link is False or (link is None and path.suffix not in _SHARED_SUFFIXES):
        return None
    found = [cc] if cc else find_compiler()
    if found is None and link:
        raise BuildError(f"cannot link {path}: no C compiler was found; set CC, or run: pip install ziglang")
    if found is not None and cc is None and not _for_host(triple):
        return None
    return found


def _check_compiler(code: "CompiledModule", cc: str | None) -> None:
    """`BuildError` when imported C code would be compiled for this machine, but the rest is for another one."""
    sources = linked_sources(code)
    if sources and cc is None and not _for_host(code.triple):
        names = ", ".join(n for m in sources for n in m.function_names)
        raise BuildError(f"the external functions {names} are C code, which this machine's compiler would compile for itself, but the model is for {code.triple}: "
                         "name a compiler for that with cc=")


def _for_host(triple: str) -> bool:
    from .llvm import host_triple
    from .native import _kind

    return not triple or _kind(triple) == _kind(host_triple())


def link_shared(code: "CompiledModule", linker: Sequence[str], options: Sequence[str] = ()) -> bytes:
    """The bytes of a shared library made of the module's objects, the C code it imports and the thread pool they call."""
    external = linked_sources(code)
    objects = [*code.objects, *(o for m in external for o in m.object_code(linker, options)), support_object(code.triple)]
    with tempfile.TemporaryDirectory(prefix="anchorleg-") as folder:
        files = []
        for number, data in enumerate(objects):
            files.append(str(Path(folder, f"{number:05d}.o")))
            Path(files[-1]).write_bytes(data)
        output = str(Path(folder, "library"))
        # a library whose threads run must never be unmapped
        flags = ["-shared", "-fPIC", "-pthread"] + (["-Wl,-z,nodelete"] if "darwin" not in sys.platform else [])
        libraries = ["-lm", "-lstdc++"] if any(m.is_cplusplus for m in external) else ["-lm"]
        command = [*linker, *flags, "-o", output, "@" + _response(folder, files), *libraries, *options]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise BuildError(f"linking failed: {' '.join(linker)}: {done.stderr.strip()[-2000:]}")
        return Path(output).read_bytes()


def _response(folder: str, files: Sequence[str]) -> str:
    """A file of file names: a model can have more objects than a command line takes."""
    listing = Path(folder, "objects.txt")
    listing.write_text("\n".join(f'"{name}"' for name in files))
    return str(listing)
