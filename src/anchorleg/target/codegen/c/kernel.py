"""One flat PrimFunc as a C function."""
from __future__ import annotations

import re
from typing import Any, NamedTuple, Sequence

from ....tir.dtypes import scalar_of
from ....tir.function import PrimFunc
from .expressions import Pointer
from .statements import Statements
from .types import storage_type
from .values import PRIMARY, Value


class CKernel(NamedTuple):
    """A C function ``int32_t symbol(parameters…[, uint8_t* workspace])``.

    ``prototype`` has no semicolon; ``workspace_bytes`` > 0 means that the last parameter is the scratch memory (16-byte aligned).
    ``written`` says for each parameter whether the kernel stores into it.
    """

    symbol: str
    prototype: str
    body: str
    comment: str
    workspace_bytes: int
    helpers: frozenset[str]
    externs: tuple[str, ...]
    uses_math: bool
    constants: tuple[tuple[str, Any], ...]
    written: tuple[bool, ...]

    @property
    def definition(self) -> str:
        """The whole function; never copied into its callers: main calls kernels by the thousand, and a copy for each takes compilers minutes."""
        note = f"/* {self.comment} */\n" if self.comment else ""
        return f"{note}__attribute__((noinline))\n{self.prototype} {{\n{self.body}    return 0;\n}}\n"


def emit_c_kernel(func: PrimFunc, symbol: str | None = None, comment: str = "", may_alias: bool = False) -> CKernel:
    """The C function of a flat PrimFunc.

    ``symbol`` defaults to the attribute ``global_symbol``.  ``may_alias`` leaves out ``restrict``, for calls that compute in place.
    Raises UnsupportedOpError for what C has no form for.
    """
    name = symbol or str(func.get_attr("global_symbol") or "main")
    em = Statements(name, may_alias)
    em.names.fresh("workspace")
    pointers = _bind_parameters(em, func)
    em.run(func.body)
    params = [p if isinstance(p, str) else _pointer_parameter(p, may_alias) for p in pointers]
    if em.workspace_bytes:
        params.append("uint8_t* workspace" if may_alias else "uint8_t* restrict workspace")
    used = set(re.findall(r"\w+", "\n".join(em.lines)))
    unused = [f"    (void){n};" for n in (p.name if isinstance(p, Pointer) else p.split()[-1] for p in pointers) if n not in used]
    body = "".join(line + "\n" for line in [*unused, *em.lines])
    return CKernel(name, f"int32_t {name}({', '.join(params) or 'void'})", body, comment.replace("*/", "* /"), em.workspace_bytes,
                   frozenset(em.helpers), tuple(em.externs.values()), em.uses_math, tuple(em.constants),
                   tuple(isinstance(p, Pointer) and p.written for p in pointers))


def _bind_parameters(em: Statements, func: PrimFunc) -> Sequence[Pointer | str]:
    """Makes the parameters known; pointers, or the declaration of a scalar."""
    found: list[Pointer | str] = []
    for var, buffer in zip(func.params, func.buffers):
        name = em.fresh(buffer.name if buffer is not None else var.name)
        if buffer is not None or var.dtype == "handle":
            pointer = Pointer(name, scalar_of(buffer.dtype) if buffer is not None else "handle")
            em.pointers[id(var)] = pointer
            if buffer is not None:
                em.pointers[id(buffer.data)] = pointer
            found.append(pointer)
        else:
            em.env[id(var)] = Value(name, PRIMARY, var.dtype)
            found.append(f"{storage_type(var.dtype)} {name}")
    return found


def _pointer_parameter(pointer: Pointer, may_alias: bool) -> str:
    kind = "void*" if pointer.dtype == "handle" else f"{storage_type(pointer.dtype)}*"
    return f"{'' if pointer.written or pointer.dtype == 'handle' else 'const '}{kind} {'' if may_alias else 'restrict '}{pointer.name}"


