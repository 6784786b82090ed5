"""llvmlite, loaded when it is first needed, and what the host is."""

from __future__ import annotations

import threading
from functools import lru_cache
from types import ModuleType

from ..support.errors import ArtifactError

_lock = threading.Lock()
_ready: ModuleType | None = None


def binding() -> ModuleType:
    """``llvmlite.binding`` with the native target set up; `ArtifactError` when llvmlite is missing."""
    global _ready
    if _ready is None:
        with _lock:
            if _ready is None:
                _ready = _start()
    return _ready


def _start() -> ModuleType:
    try:
        import llvmlite.binding as llvm
    except ImportError as err:
        raise ArtifactError(f"loading native code needs the package llvmlite: {err}; run: pip install llvmlite") from err
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def host_triple() -> str:
    """The triple of the machine this process runs on."""
    return binding().get_process_triple()


@lru_cache(maxsize=1)
def host_features() -> frozenset[str]:
    """LLVM's names of the features the host's processor has, such as ``avx512f``."""
    return frozenset(name for name, there in binding().get_host_cpu_features().items() if there)


def host_cpu() -> str:
    """LLVM's name for the host's processor."""
    return binding().get_host_cpu_name()


def target_machine(opt: int = 1):  # noqa: ANN201
    """A machine for code that any processor of the host's kind can run."""
    llvm = binding()
    return llvm.Target.from_triple(host_triple()).create_target_machine(opt=opt, reloc="pic", codemodel="small")


def compile_text(text: str, opt: int = 1) -> bytes:
    """Object code of LLVM IR text for the host; used for the runtime's own small modules."""
    llvm = binding()
    module = llvm.parse_assembly(text)
    module.verify()
    return target_machine(opt).emit_object(module)


def compile_cached(text: str) -> bytes:
    """Like `compile_text`, remembered in the persistent cache."""
    from ..support.cache import key_of, open_cache

    cache = open_cache("runtime")
    if cache is None:
        return compile_text(text)
    version = ".".join(map(str, binding().llvm_version_info))
    key = key_of("runtime-1", version, host_triple(), text)
    code = cache.get(key)
    if code is None:
        code = compile_text(text)
        cache.put(key, code)
    return code
