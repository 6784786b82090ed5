"""`CompiledModule`: object code and the table of its kernels, linked into the process when first called."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ..support.errors import ArgumentError, ArtifactError
from ..support.files import atomic_write
from .artifact import read_artifact, write_artifact
from .callbacks import packed_address
from .graph_executor import Kernel
from .imports import register_import_kind, unpack_imports
from .module import Module, register_loader
from .native import NativeLibrary, check_host, last_error_of, packed_function
from .packed_func import PackedFunc


@dataclass(frozen=True)
class KernelInfo:
    """One compiled function.

    ``packed`` and ``fast`` are the symbols of its two entry points ("" when it has none); the fast one takes data
    pointers and a workspace pointer of ``workspace_bytes`` + threads × ``workspace_bytes_per_task`` bytes.
    """

    packed: str = ""
    fast: str = ""
    workspace_bytes: int = 0
    workspace_bytes_per_task: int = 0


class CompiledModule(Module):
    """Kernels as object code.

    Parameters
    ----------
    objects : contents of object files.
    kernels : function name → `KernelInfo`.
    triple, cpu, features : what the code was made for; ``features`` are those it needs (LLVM's names).
    sources : ``fmt`` → text of the code, or a function giving it, for `get_source` (``ll``, ``asm``).
    library : the code when it is loaded already (a shared library), instead of objects.
    origin : what messages call it, such as the file it came from.
    foreign : names of packed functions that the code calls and imported modules have.
    """

    type_key = "llvm"

    def __init__(
        self, objects: Sequence[bytes], kernels: Mapping[str, KernelInfo], triple: str = "", cpu: str = "",
        features: Iterable[str] = (), sources: Mapping[str, "str | Callable[[], str]"] | None = None,
        library: NativeLibrary | None = None, entry: str | None = None, origin: str = "the compiled module", foreign: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self.objects = tuple(objects)
        self.kernels = dict(kernels)
        self.triple = triple
        self.cpu = cpu
        self.features = tuple(features)
        self._sources = dict(sources or {})
        self._library = library
        self._origin = origin
        self.foreign = tuple(foreign)
        self._imported: dict[str, tuple[int, object]] | None = None
        self._packed: dict[str, PackedFunc] = {}
        self._fast: dict[str, Kernel] | None = None
        self._lock = threading.Lock()
        if entry is not None:
            self._entry_name = entry

    # -- running ----------------------------------------------------------------------------------

    def native(self) -> NativeLibrary:
        """The linked code; linked now if it has not been.  `ArtifactError` when this machine cannot run it."""
        if self._library is None or self._imported is None:
            with self._lock:
                if self._imported is None:
                    self._imported = {name: packed_address(self._foreign_function(name)) for name in self.foreign}
                if self._library is None:
                    addresses = {name: address for name, (address, _) in self._imported.items()}
                    self._library = NativeLibrary.from_objects(
                        self.objects, self._symbols(), self.triple, self.features, addresses, name=self._origin
                    )
        return self._library

    def _foreign_function(self, name: str) -> PackedFunc:
        """An imported function, ready to be called: with its constants."""
        found = next((f for m in self._all_imports() if (f := m._own_function(name)) is not None), None)
        if found is None:
            raise ArtifactError(f"{self._origin}: there is no code for the external function {name!r}: import the module with it")
        return found

    def foreign_error(self) -> str:
        """The error text that an imported function's library left on this thread."""
        functions = [keep for _, keep in (self._imported or {}).values() if isinstance(keep, PackedFunc)]
        return next((text for f in functions if (text := last_error_of(f))), "")

    def _symbols(self) -> list[str]:
        return [symbol for info in self.kernels.values() for symbol in (info.packed, info.fast) if symbol]

    def fast_kernels(self) -> dict[str, Kernel]:
        """Function name → `Kernel` for those that have a fast entry point."""
        if self._fast is None:
            library = self.native()
            self._fast = {
                name: Kernel(library[info.fast], info.workspace_bytes, info.workspace_bytes_per_task)
                for name, info in self.kernels.items() if info.fast
            }
        return self._fast

    def _own_function(self, name: str) -> PackedFunc | None:
        found = self._packed.get(name)
        if found is None:
            info = self.kernels.get(name)
            if info is None or not info.packed:
                return None
            found = self._packed[name] = packed_function(self.native(), info.packed, name)
        return found

    @property
    def entry_func(self) -> PackedFunc:
        """The entry function; the only function when there is but one."""
        if self._entry_name not in self.kernels and len(self.kernels) == 1:
            return self.get_function(next(iter(self.kernels)))
        return super().entry_func

    # -- text and files ---------------------------------------------------------------------------

    def get_source(self, fmt: str = "") -> str:
        """The code as text; ``fmt`` is one of those it was given (the first of them by default)."""
        wanted = fmt or next(iter(self._sources), "ll")
        found = self._sources.get(wanted)
        if found is None:
            known = ", ".join(self._sources) or "none"
            raise ArgumentError(f"this module has no source of format {wanted!r}; it has: {known}")
        return found if isinstance(found, str) else found()

    @property
    def format(self) -> str:
        return "o"

    def save(self, file_name: "str | os.PathLike[str]", fmt: str = "") -> None:
        """Write text (``ll``, ``s``) or, when there is one, the object (``o``)."""
        kind = fmt or Path(file_name).suffix.lstrip(".")
        if kind == "o":
            if len(self.objects) != 1:
                raise ArgumentError(f"save: {len(self.objects)} objects do not fit one .o file; use export_library")
            atomic_write(file_name, self.objects[0])
        else:
            atomic_write(file_name, self.get_source({"s": "asm"}.get(kind, kind)).encode())

    @property
    def is_binary_serializable(self) -> bool:
        return True

    @property
    def is_dso_exportable(self) -> bool:
        return True

    def export_library(self, file_name: "str | os.PathLike[str]", **options: object) -> str:
        """Write the library to a file that `load_module` reads; a linked shared library when the name asks for one."""
        from .export import export

        return export(file_name, self, {"kind": "library", "entry": self._entry_name}, {}, **options)

    # -- the archive's form -----------------------------------------------------------------------

    def manifest(self) -> dict:
        """The facts about the code that an archive keeps."""
        return {
            "triple": self.triple, "cpu": self.cpu, "features": sorted(self.features),
            "kernels": {name: asdict(info) for name, info in self.kernels.items()}, **({"foreign": list(self.foreign)} if self.foreign else {}),
        }

    def members(self) -> dict[str, bytes]:
        """The code's members in an archive."""
        return {f"code/{number:05d}.o": code for number, code in enumerate(self.objects)}

    @classmethod
    def from_artifact(cls, manifest: Mapping, members: Mapping[str, memoryview], path: Path) -> "CompiledModule":
        """The code in an archive; one that is linked as a shared library is opened by the system."""
        try:
            kernels = {str(name): KernelInfo(**info) for name, info in manifest["kernels"].items()}
            triple, cpu, features = manifest["triple"], manifest["cpu"], tuple(manifest["features"])
            shared, foreign = bool(manifest.get("shared")), [str(n) for n in manifest.get("foreign", ())]
        except (KeyError, TypeError, AttributeError) as err:
            raise ArtifactError(f"{path}: the manifest does not describe code ({type(err).__name__}: {err})") from err
        if not shared:
            objects = [bytes(members[name]) for name in sorted(members) if name.startswith("code/")]
            made = cls(objects, kernels, triple, cpu, features, origin=str(path), foreign=foreign)
        else:
            check_host(triple, features, str(path))
            made = cls([], kernels, triple, cpu, features, library=NativeLibrary.from_shared(path), origin=str(path), foreign=foreign)
        unpack_imports(made, manifest.get("imports", ()), members, path, made._library)
        return made


class CKernelModule(CompiledModule):
    """Kernels that were C code; ``get_source()`` is the C text, ``["get_func_names"]()`` names them."""

    type_key = "c"

    def _own_function(self, name: str) -> PackedFunc | None:
        return PackedFunc(lambda: list(self.kernels), name, keep=self) if name == "get_func_names" else super()._own_function(name)


def _load(manifest: Mapping, members: Mapping[str, memoryview], path: Path) -> CompiledModule:
    module = CompiledModule.from_artifact(manifest, members, path)
    module._entry_name = str(manifest.get("entry", module._entry_name))
    return module


def _pack(module: CompiledModule, folder: str, how: object) -> tuple[dict, dict]:
    return {"kind": "code", **module.manifest(), "folder": folder}, {f"{folder}/{name}": data for name, data in module.members().items()}


def _unpack(fact: Mapping, members: Mapping[str, memoryview], path: Path, library: NativeLibrary | None) -> CompiledModule:
    folder = str(fact["folder"]) + "/"
    own = {name[len(folder):]: members[name] for name in members if name.startswith(folder)}
    return CompiledModule.from_artifact({**fact, "imports": ()}, own, path)


register_loader("library", _load)
register_import_kind("code", CompiledModule, _pack, _unpack)

__all__ = ["CKernelModule", "CompiledModule", "KernelInfo", "read_artifact", "write_artifact"]
