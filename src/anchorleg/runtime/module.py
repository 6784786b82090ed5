"""`Module`: compiled functions found by name, in memory, in a file, or answered by Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from ..support.errors import ArgumentError, ArtifactError
from .device import Device, cpu
from .native import NativeLibrary, packed_function
from .packed_func import PackedFunc
from .profiling import BenchmarkResult, measure

_ENTRY = "__tvm_main__"


class Module:
    """Functions by name, and further modules they may come from.

    Subclasses answer `_own_function`; everything else is common to all of them.
    """

    type_key = "module"

    def __init__(self) -> None:
        self._imports: list[Module] = []
        self._entry_name = _ENTRY

    # -- functions --------------------------------------------------------------------------------

    def _own_function(self, name: str) -> PackedFunc | None:
        return None

    def get_function(self, name: str, query_imports: bool = False) -> PackedFunc:
        """The function called ``name``; ``query_imports`` looks in imported modules too.

        Raises `AttributeError` (an `ArgumentError` as well) when there is none.
        """
        found = self._find(name, query_imports)
        if found is None:
            raise MissingFunctionError(f"module {self.type_key!r} has no function {name!r}")
        return found

    def _find(self, name: str, query_imports: bool) -> PackedFunc | None:
        found = self._own_function(name)
        if found is not None or not query_imports:
            return found
        for module in self._all_imports():
            found = module._own_function(name)
            if found is not None:
                return found
        return None

    def _all_imports(self) -> "list[Module]":
        order: list[Module] = []
        queue = list(self._imports)
        while queue:
            module = queue.pop(0)
            if all(module is not other for other in order):
                order.append(module)
                queue += module._imports
        return order

    def implements_function(self, name: str, query_imports: bool = False) -> bool:
        """Whether `get_function` would find ``name``."""
        return self._find(name, query_imports) is not None

    def __getitem__(self, name: str) -> PackedFunc:
        return self.get_function(name)

    @property
    def entry_name(self) -> str:
        return self._entry_name

    @property
    def entry_func(self) -> PackedFunc:
        """The function that calling the module calls."""
        return self.get_function(self._entry_name)

    def __call__(self, *args: object) -> object:
        return self.entry_func(*args)

    def time_evaluator(
        self, func_name: str, dev: Device | None = None, number: int = 10, repeat: int = 1, min_repeat_ms: float = 0,
        limit_zero_time_iterations: int = 100, cooldown_interval_ms: float = 0, repeats_to_cooldown: int = 1,
        cache_flush_bytes: int = 0, f_preproc: str = "",
    ) -> Callable[..., BenchmarkResult]:
        """A function that calls ``func_name`` with its arguments and returns the time per call, in seconds.

        Each of ``repeat`` results is the mean of ``number`` calls, with ``number`` raised until they take
        ``min_repeat_ms``; ``cache_flush_bytes`` of other memory are written before each repeat.
        """
        function = self.get_function(func_name, query_imports=True)
        before = _before_repeat(cache_flush_bytes, f_preproc)

        def evaluate(*args: object) -> BenchmarkResult:
            return measure(
                lambda: function(*args), number, repeat, min_repeat_ms, limit_zero_time_iterations,
                cooldown_interval_ms, repeats_to_cooldown, before,
            )

        return evaluate

    # -- imports and files ------------------------------------------------------------------------

    def import_module(self, module: "Module") -> None:
        """Let `get_function` look in ``module`` too."""
        if module is self or any(other is self for other in module._all_imports()):
            raise ArgumentError("import_module: the module would import itself")
        self._imports.append(module)

    @property
    def imported_modules(self) -> "list[Module]":
        return list(self._imports)

    def clear_imports(self) -> None:
        self._imports.clear()

    @property
    def format(self) -> str:
        """The format `save` writes by default."""
        return ""

    def get_source(self, fmt: str = "") -> str:
        """The code as text: ``ll``, ``asm`` or the module's own format, when it has it."""
        return ""

    def save(self, file_name: "str | os.PathLike[str]", fmt: str = "") -> None:
        """Write the module to a file."""
        raise ArgumentError(f"a module of kind {self.type_key!r} cannot be saved")

    def export_library(self, file_name: "str | os.PathLike[str]", **options: object) -> str:
        """Write everything needed to run elsewhere to one file; `load_module` reads it."""
        raise ArgumentError(f"a module of kind {self.type_key!r} cannot be exported")

    @property
    def is_runnable(self) -> bool:
        return True

    @property
    def is_binary_serializable(self) -> bool:
        return False

    @property
    def is_dso_exportable(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"Module({self.type_key})"


class MissingFunctionError(ArgumentError, AttributeError):
    """A module has no function of the name asked for."""


def _before_repeat(flush_bytes: int, preparation: str) -> Callable[[], object] | None:
    if not flush_bytes and not preparation:
        return None
    import numpy as np

    from .registry import get_global_func

    block = np.zeros(flush_bytes, np.uint8) if flush_bytes else None
    prepare = get_global_func(preparation, allow_missing=True) if preparation else None

    def before() -> None:
        if block is not None:
            block.fill(0)
        if prepare is not None:
            prepare()

    return before


class PythonModule(Module):
    """A module whose functions are Python callables."""

    type_key = "python"

    def __init__(self, functions: Mapping[str, Callable], entry: str | None = None) -> None:
        super().__init__()
        self._functions = {
            name: f if isinstance(f, PackedFunc) else PackedFunc(f, name, keep=self) for name, f in functions.items()
        }
        if entry is not None:
            self._entry_name = entry

    def _own_function(self, name: str) -> PackedFunc | None:
        return self._functions.get(name)


class LibraryModule(Module):
    """Packed functions in native code.

    Parameters
    ----------
    library : the code.
    names : packed function name → symbol; None takes every name as its own symbol.
    entry : the function that calling the module calls.
    """

    type_key = "library"

    def __init__(self, library: NativeLibrary, names: Mapping[str, str] | None = None, entry: str | None = None) -> None:
        super().__init__()
        self.library = library
        self._names = None if names is None else dict(names)
        self._packed: dict[str, PackedFunc] = {}
        if entry is not None:
            self._entry_name = entry

    def _own_function(self, name: str) -> PackedFunc | None:
        found = self._packed.get(name)
        if found is None:
            symbol = name if self._names is None else self._names.get(name)
            if symbol is None or self.library.address(symbol) is None:
                return None
            found = self._packed[name] = packed_function(self.library, symbol, name)
        return found

    def function_names(self) -> list[str]:
        """The functions known by name."""
        return sorted(self.library.symbols() if self._names is None else self._names)


# -- loading ------------------------------------------------------------------------------------------

_LOADERS: dict[str, Callable] = {}
_SHARED_MAGIC = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"MZ")


def register_loader(kind: str, load: Callable) -> None:
    """Let `load_module` read artifacts of a kind: ``load(manifest, members, path) -> Module``."""
    _LOADERS[kind] = load


def load_module(path: "str | os.PathLike[str]", fmt: str = "") -> Module:
    """The module in a file written by ``export_library``, or in a plain shared library.

    Raises `ArtifactError` for a missing, damaged or foreign file.
    """
    file = Path(path)
    head = _first_bytes(file)
    from .artifact import has_artifact, read_artifact

    if has_artifact(file):
        manifest, members = read_artifact(file)
        return _loader_of(manifest, file)(manifest, members, file)
    if head.startswith(_SHARED_MAGIC):
        _check_length(file)
        return LibraryModule(NativeLibrary.from_shared(file))
    raise ArtifactError(f"{file} is neither an exported library nor a shared library, or its end is missing")


def _loader_of(manifest: Mapping, file: Path) -> Callable:
    kind = manifest.get("kind")
    if kind not in _LOADERS:
        from . import aot_executor, executor_factory, vm  # noqa: F401  (they register their loaders)
    if kind not in _LOADERS:
        known = ", ".join(sorted(_LOADERS)) or "none"
        raise ArtifactError(f"{file} holds an artifact of kind {kind!r}; this version reads: {known}")
    return _LOADERS[kind]


def _check_length(file: Path) -> None:
    """ArtifactError for a shared library that ends too early, or whose archive does."""
    from .elf import extent

    data = file.read_bytes()
    wanted = extent(data)
    if data[:4] == b"\x7fELF" and (wanted is None or wanted > len(data)):
        raise ArtifactError(f"{file} is cut short: it has {len(data)} bytes"
                            + (f" of {wanted}" if wanted else "") + "; export the model again, or copy the file again")
    if wanted is not None and data[wanted:wanted + 4] == b"PK\x03\x04":
        raise ArtifactError(f"{file} is cut short: the archive behind its code has no end; export the model again, or copy the file again")


def _first_bytes(file: Path) -> bytes:
    try:
        with open(file, "rb") as stream:
            return stream.read(8)
    except OSError as err:
        raise ArtifactError(f"cannot read {file}: {err.strerror or err}") from err


def system_lib(symbol_prefix: str = "") -> Module:
    """Functions registered globally whose names begin with the prefix, as a module."""
    from .registry import get_global_func, list_global_func_names

    names: Iterable[str] = (name for name in list_global_func_names() if name.startswith(symbol_prefix))
    return PythonModule({name[len(symbol_prefix):]: get_global_func(name) for name in names})


def enabled(target: str) -> bool:
    """Whether this process can run code for a target such as ``llvm`` or ``cuda``."""
    word = target.split()[0] if target.split() else ""
    from .device import device

    if word in ("cpu", "llvm", "c"):
        return True
    try:
        return device(word).exist
    except ArgumentError:
        return False


def num_threads() -> int:
    """Threads that parallel kernels use, the calling one included."""
    from ..support import knobs

    return knobs.NUM_THREADS.get()


__all__ = [
    "BenchmarkResult", "Device", "LibraryModule", "Module", "PythonModule", "cpu", "enabled", "load_module",
    "num_threads", "register_loader", "system_lib",
]
