"""From a backend's loop programs to C code."""
from __future__ import annotations

from typing import Any, Callable

from ......ir.module import IRModule
from ......runtime.source_module import CSourceModule
from ......support.errors import ArgumentError
from ......target.codegen.c import emit_c_kernel
from ......target.codegen.c.packed import packed_source


class UMACodegen:
    """C code of a backend's functions; ``includes`` is what the backend puts before them."""

    def __init__(self, target_name: str) -> None:
        self.target_name = target_name
        self.includes: Callable[[], str] | None = None
        self.registered = False

    def _register_codegen(self, fmt: str = "c", includes: Callable[[], str] | None = None, **kwargs: Any) -> None:
        """Lets the functions be C code (``fmt`` ``c``), with the text that ``includes()`` gives at their head."""
        if fmt != "c":
            raise ArgumentError(f'Unsupported codegen format "{fmt}": c is expected')
        if kwargs:
            raise ArgumentError(f"the C code generator has no option {', '.join(kwargs)}; its option: includes")
        self.includes, self.registered = includes, True

    def tir_to_runtime(self, mod: IRModule, target: Any) -> CSourceModule:
        """The loop programs as a source module.  With ``includes`` the functions they call are declared there."""
        head = self.includes() if self.includes is not None else ""
        kernels = [(v.name_hint, emit_c_kernel(f, f"{v.name_hint}_kernel")) for v, f in mod.functions.items()]  # type: ignore[arg-type]
        if head:
            kernels = [(name, k._replace(externs=())) for name, k in kernels]
        return CSourceModule(packed_source(f"Functions for {self.target_name}", kernels, head), "c", [name for name, _ in kernels])
