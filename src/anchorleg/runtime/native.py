"""Native code in this process: object code linked in memory by LLVM, and shared libraries opened by the system.

`NativeLibrary` gives addresses for symbols; `packed_function` wraps a symbol of the packed calling convention as a
`PackedFunc`.  The library stays loaded as long as it, or any function taken from it, is referenced.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..support.errors import AnchorlegError, ArgumentError, ArtifactError, TypeMismatchError
from . import llvm as _llvm
from .c_abi import ArgTypeCode, DLDataType, DLDevice, TVMByteArray, TVMValue
from .device import Device
from .dtype import DataType
from .ndarray import NDArray, numpyasarray
from .packed_func import PackedFunc
from .threads import arch_of

_counter = itertools.count()
_link_lock = threading.Lock()
_jit: Any = None


def check_host(triple: str, features: Iterable[str] = (), what: str = "this library") -> None:
    """`ArtifactError` unless the host can run code made for ``triple`` that uses the given processor features."""
    host = _llvm.host_triple()
    wanted, have = _kind(triple or host), _kind(host)
    if wanted != have:
        raise ArtifactError(
            f"{what} was built for {triple}, this machine is {host}; build it again with a target for this machine"
        )
    missing = sorted(set(features) - _llvm.host_features())
    if missing:
        raise ArtifactError(
            f"{what} needs processor features that this machine ({_llvm.host_cpu()}) lacks: {', '.join(missing)}; "
            "build it again for this machine, or with a target that names an older processor (-mcpu=…)"
        )


def _kind(triple: str) -> tuple[str, str]:
    system = next((name for name in ("linux", "darwin", "macos", "windows") if name in triple), "")
    return arch_of(triple), "darwin" if system == "macos" else system


class NativeLibrary:
    """A set of symbols with addresses in this process.

    Made by `from_objects` (object code, linked by LLVM), `from_shared` (a shared library file) or `from_addresses`
    (symbols that something else keeps alive).
    """

    __slots__ = ("_addresses", "_lookup", "_keep", "name", "__weakref__")

    def __init__(self, addresses: dict[str, int], lookup: Any = None, keep: object = None, name: str = "") -> None:
        self._addresses = addresses
        self._lookup = lookup
        self._keep = keep
        self.name = name

    @classmethod
    def from_objects(
        cls, objects: Sequence[bytes], symbols: Iterable[str], triple: str = "", features: Iterable[str] = (),
        imports: Mapping[str, int] | None = None, name: str = "library",
    ) -> "NativeLibrary":
        """Link relocatable objects into this process.

        Parameters
        ----------
        objects : contents of ELF, Mach-O or COFF object files for the host.
        symbols : the names whose addresses are wanted.
        triple, features : what the code was built for; checked against the host first.
        imports : addresses for further undefined names, besides the runtime's own and the process's.

        Raises `ArtifactError` for a foreign host, missing processor features, damaged code or undefined names.
        """
        check_host(triple, features, name)
        wanted = list(dict.fromkeys(symbols))
        known = {**runtime_symbols(), **(imports or {})}
        tracker = _link(list(objects), wanted, known, name)
        return cls({symbol: tracker[symbol] for symbol in wanted}, None, tracker, name)

    @classmethod
    def from_shared(cls, path: "str | os.PathLike[str]") -> "NativeLibrary":
        """Open a shared library; its symbols are looked up when asked for."""
        try:
            library = ctypes.CDLL(os.fspath(os.path.abspath(path)))
        except OSError as err:
            raise ArtifactError(f"cannot load the shared library {os.fspath(path)}: {err}") from err
        return cls({}, library, library, os.fspath(path))

    @classmethod
    def from_addresses(cls, addresses: Mapping[str, int], keep: object = None, name: str = "") -> "NativeLibrary":
        """Symbols whose code is kept alive by ``keep``."""
        return cls(dict(addresses), None, keep, name)

    def address(self, symbol: str) -> int | None:
        """The address of ``symbol``, or None."""
        found = self._addresses.get(symbol)
        if found is None and self._lookup is not None:
            try:
                found = ctypes.cast(getattr(self._lookup, symbol), ctypes.c_void_p).value
            except AttributeError:
                return None
            self._addresses[symbol] = found
        return found

    def __getitem__(self, symbol: str) -> int:
        found = self.address(symbol)
        if found is None:
            raise ArgumentError(f"library {self.name!r} has no symbol {symbol!r}")
        return found

    def __contains__(self, symbol: str) -> bool:
        return self.address(symbol) is not None

    def symbols(self) -> list[str]:
        """The names known so far (all of them, for linked objects)."""
        return sorted(self._addresses)


def _link(objects: list[bytes], wanted: list[str], known: Mapping[str, int], name: str) -> Any:
    """Link with LLVM; when that fails, once more with the system's libraries of helper functions opened."""
    try:
        return _link_once(objects, wanted, known, name)
    except RuntimeError as first:
        if not _open_system_libraries():
            raise _link_error(objects, known, name, first) from None
    try:
        return _link_once(objects, wanted, known, name)
    except RuntimeError as err:
        raise _link_error(objects, known, name, err) from None


def _link_error(objects: list[bytes], known: Mapping[str, int], name: str, err: Exception) -> ArtifactError:
    from .elf import undefined_symbols

    used = {symbol for code in objects for symbol in undefined_symbols(code)}
    missing = sorted(symbol for symbol in used - set(known) if not _in_process(symbol))
    detail = f"nothing defines {', '.join(missing)}; " if missing else ""
    return ArtifactError(f"native code of {name!r} could not be linked: {detail}{' '.join(str(err).split())}")


def _in_process(symbol: str) -> bool:
    return _llvm.binding().address_of_symbol(symbol) is not None


def _link_once(objects: list[bytes], wanted: list[str], known: Mapping[str, int], name: str) -> Any:
    global _jit
    llvm = _llvm.binding()
    builder = llvm.JITLibraryBuilder()
    for code in objects:
        builder.add_object_img(code)
    for symbol in wanted:
        builder.export_symbol(symbol)
    for symbol, address in known.items():
        builder.import_symbol(symbol, address)
    builder.add_current_process()
    with _link_lock:
        if _jit is None:
            _jit = llvm.create_lljit_compiler(_llvm.target_machine(), use_jit_link=True, suppress_errors=True)
        return builder.link(_jit, f"{name}.{next(_counter)}")


_SYSTEM_LIBRARIES = ("libm.so.6", "libgcc_s.so.1")
_opened: list[object] = []


def _open_system_libraries() -> bool:
    """Make the C mathematics library and the compiler's helper functions (half precision …) visible; False if done."""
    if _opened:
        return False
    for file in _SYSTEM_LIBRARIES:
        try:
            _opened.append(ctypes.CDLL(file, mode=ctypes.RTLD_GLOBAL))
        except OSError:
            continue
    return bool(_opened)


# -- the process's own runtime ------------------------------------------------------------------------

_runtime_lock = threading.RLock()
_runtime: NativeLibrary | None = None
_runtime_symbols: dict[str, int] = {}


def runtime_library() -> NativeLibrary:
    """The thread pool and workspace functions of this process, made at first use."""
    global _runtime
    if _runtime is None:
        with _runtime_lock:
            if _runtime is None:
                _runtime = _load_runtime()
    return _runtime


def _load_runtime() -> NativeLibrary:
    from . import arguments, halves, threads
    from ..support import knobs

    code = _llvm.compile_cached(threads.runtime_text(_llvm.host_triple()) + halves.conversions_text() + arguments.arguments_text())
    symbols = [*threads.EXPORTS, *halves.SYMBOLS, *arguments.SYMBOLS]
    error = {"TVMAPISetLastError": ctypes.cast(_set_last_error, ctypes.c_void_p).value or 0}
    tracker = _link([code], symbols, error, "anchorleg-runtime")
    library = NativeLibrary({symbol: tracker[symbol] for symbol in symbols}, None, tracker, "anchorleg-runtime")
    ctypes.CFUNCTYPE(None, ctypes.c_int)(library["al_set_num_threads"])(knobs.NUM_THREADS.get())
    ctypes.CFUNCTYPE(None)(library["al_trust_fork_hook"])()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=ctypes.PYFUNCTYPE(None)(library["al_after_fork"]))
    return library


def runtime_symbols() -> dict[str, int]:
    """Every function that kernels may call by name, with its address: the pool, workspaces and error reporting."""
    from . import callbacks

    if not _runtime_symbols:
        library = runtime_library()
        _runtime_symbols.update({name: library[name] for name in library.symbols()})
        _runtime_symbols["TVMAPISetLastError"] = ctypes.cast(_set_last_error, ctypes.c_void_p).value or 0
        _runtime_symbols[callbacks.SYMBOL] = callbacks.address()
        _runtime_symbols["TVMGetLastError"] = ctypes.cast(_get_last_error, ctypes.c_void_p).value or 0
    return _runtime_symbols


def set_num_threads(count: int) -> None:
    """Change how many threads parallel kernels of this process use."""
    if count < 1:
        raise ArgumentError(f"number of threads: expected at least 1, got {count}")
    global _thread_epoch
    ctypes.CFUNCTYPE(None, ctypes.c_int)(runtime_library()["al_set_num_threads"])(count)
    _thread_epoch += 1


# changes whenever the number of threads does, so that executors know to measure their workspace again
_thread_epoch = 0


def thread_epoch() -> int:
    """A number that changes whenever `set_num_threads` is called."""
    return _thread_epoch


def set_last_error(text: str) -> None:
    """Leave an error text for this thread, as native code does."""
    _last_error.text = text.encode()


def last_error_text() -> str:
    """The text that native code on this thread left with ``TVMAPISetLastError``; reading it clears it."""
    text, _last_error.text = _last_error.text, b""
    return text.decode(errors="replace")


def last_error_of(function: PackedFunc) -> str:
    """The text that a packed function's library left on this thread."""
    return _error_reader(function._keep)()


def get_num_threads() -> int:
    """How many threads parallel kernels of this process use."""
    return ctypes.CFUNCTYPE(ctypes.c_int)(runtime_library()["al_num_threads"])()


class _LastError(threading.local):
    text: bytes = b""


_last_error = _LastError()


@ctypes.CFUNCTYPE(None, ctypes.c_char_p)
def _set_last_error(text: bytes | None) -> None:
    _last_error.text = text or b""


@ctypes.CFUNCTYPE(ctypes.c_void_p)
def _get_last_error() -> int:
    _last_error.text += b""
    return ctypes.cast(ctypes.c_char_p(_last_error.text), ctypes.c_void_p).value or 0


# -- packed functions ---------------------------------------------------------------------------------

_PACKED = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
)


def packed_function(library: NativeLibrary, symbol: str, name: str = "") -> PackedFunc:
    """The packed function at ``symbol``; it keeps its library alive.

    Arguments may be tensors (numpy arrays are passed in place), ints, floats, bool, text, bytes, None, `Device`,
    `DataType` and ctypes pointers.  A failure inside raises `AnchorlegError` with the text the function left.
    """
    return packed_at(library[symbol], name or symbol, library)


def packed_at(address: int, name: str = "function", keep: object = None) -> PackedFunc:
    """The packed function at an address."""
    entry = _PACKED(address)
    last_error = _error_reader(keep)

    def call(*args: object) -> object:
        count = len(args)
        values = (TVMValue * max(1, count))()
        codes = (ctypes.c_int * max(1, count))()
        alive = [_fill(values[i], codes, i, arg) for i, arg in enumerate(args)]
        result, code = TVMValue(), ctypes.c_int(ArgTypeCode.NULL)
        _last_error.text = b""
        status = entry(
            ctypes.addressof(values), ctypes.addressof(codes), count, ctypes.addressof(result),
            ctypes.addressof(code), None,
        )
        if status != 0:
            raise AnchorlegError(f"{name}: {last_error() or f'failed with status {status}'}")
        answer = _result(result, code.value, name)
        del alive  # the answer may point into an argument until here
        return answer

    return PackedFunc(call, name, address, keep)


def _error_reader(keep: object) -> Any:
    """How to read the error text: a shared library of its own may carry its own ``TVMGetLastError``."""
    own = keep.address("TVMGetLastError") if isinstance(keep, NativeLibrary) and keep._lookup is not None else None
    if own is None:
        return lambda: _last_error.text.decode(errors="replace")
    reader = ctypes.CFUNCTYPE(ctypes.c_char_p)(own)
    return lambda: (reader() or b"").decode(errors="replace")


def _fill(value: TVMValue, codes: Any, index: int, arg: object) -> object:
    """Store one argument; returns what has to live during the call."""
    code, alive = _fill_value(value, arg, index)
    codes[index] = code
    return alive


def _fill_value(value: TVMValue, arg: object, index: int) -> tuple[int, object]:
    if isinstance(arg, np.ndarray):
        arg = numpyasarray(arg)
    if isinstance(arg, NDArray):
        value.v_handle = ctypes.addressof(arg.handle.contents)
        return ArgTypeCode.DLTENSOR_HANDLE, arg
    if isinstance(arg, (bool, int, np.integer, np.bool_)):
        value.v_int64 = int(arg)
        return ArgTypeCode.INT, None
    if isinstance(arg, (float, np.floating)):
        value.v_float64 = float(arg)
        return ArgTypeCode.FLOAT, None
    if arg is None:
        value.v_handle = None
        return ArgTypeCode.NULL, None
    return _fill_object(value, arg, index)


def _fill_object(value: TVMValue, arg: object, index: int) -> tuple[int, object]:
    if isinstance(arg, str):
        text = ctypes.c_char_p(arg.encode())
        value.v_handle = ctypes.cast(text, ctypes.c_void_p).value
        return ArgTypeCode.STR, text
    if isinstance(arg, (bytes, bytearray)):
        block = ctypes.create_string_buffer(bytes(arg), len(arg))
        pair = TVMByteArray(ctypes.cast(block, ctypes.POINTER(ctypes.c_char)), len(arg))
        value.v_handle = ctypes.addressof(pair)
        return ArgTypeCode.BYTES, (block, pair)
    if isinstance(arg, Device):
        value.v_device = DLDevice(arg.device_type, arg.device_id)
        return ArgTypeCode.DLDEVICE, None
    if isinstance(arg, DataType):
        value.v_type = DLDataType(arg.type_code, arg.bits, arg.lanes)
        return ArgTypeCode.TVM_TYPE, None
    if isinstance(arg, (ctypes.c_void_p, ctypes.Array)) or hasattr(arg, "contents"):
        value.v_handle = ctypes.cast(arg, ctypes.c_void_p).value  # type: ignore[arg-type]
        return ArgTypeCode.HANDLE, arg
    raise TypeMismatchError(f"argument {index}: a {type(arg).__name__} cannot be passed to native code")


def _result(value: TVMValue, code: int, name: str) -> object:
    if code == ArgTypeCode.NULL:
        return None
    if code == ArgTypeCode.INT:
        return value.v_int64
    if code == ArgTypeCode.BOOL:
        return bool(value.v_int64)
    if code == ArgTypeCode.FLOAT:
        return value.v_float64
    if code == ArgTypeCode.HANDLE:
        return ctypes.c_void_p(value.v_handle)
    if code == ArgTypeCode.STR:
        return (value.v_str or b"").decode(errors="replace")
    raise TypeMismatchError(f"{name}: returned a value of type code {code}, which Python has no form for")
