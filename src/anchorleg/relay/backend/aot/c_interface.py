"""What a model's C header says: sizes, structures of pointers, the entry, pools, where inputs and results lie."""
from __future__ import annotations

import re
from typing import Any, NamedTuple, Sequence

import numpy as np

from ....support.errors import ArgumentError
from ..memory import MemoryLayout
from .options import AotOptions
from .pools import ConstantPool
from .program import Place, Program, Tensor


class Names(NamedTuple):
    """The C names of a model: ``tvmgen_<module>`` and its upper case form."""

    prefix: str

    @property
    def upper(self) -> str:
        """The prefix of macros."""
        return re.sub(r"\W", "_", self.prefix, flags=re.A).upper()

    def of(self, suffix: str) -> str:
        """A name with the model's prefix."""
        return f"{self.prefix}_{suffix}"

    def macro(self, suffix: str) -> str:
        """A macro with the model's prefix."""
        return f"{self.upper}_{suffix.upper()}"


class CInterface:
    """The interface of one program: what its caller hands over, and the header that says so."""

    def __init__(self, names: Names, program: Program, layout: MemoryLayout, options: AotOptions, external_pools: Sequence[str] = (),
                 constant_pools: Sequence[ConstantPool] = ()) -> None:
        self.names, self.program, self.layout, self.options = names, program, layout, options
        self.external, self.constant_pools = list(external_pools), list(constant_pools)
        self.pooled = {i: (p.name, o) for p in constant_pools for i, o in p.offsets.items()}
        self.linked = options.link_params

    # -- what the caller hands over

    @property
    def pool_fields(self) -> list[str]:
        """The members of the structure of pools."""
        return [*self.external, *(p.name for p in self.constant_pools)]

    @property
    def parameter_fields(self) -> list[str]:
        """The members of the structure of parameters (without linked parameters)."""
        return [] if self.linked else [c.symbol for i, c in enumerate(self.program.constants) if i not in self.pooled]

    def structures(self) -> list[tuple[str, str, list[str], str]]:
        """(kind, what it is, members, member type) of each structure of the interface."""
        found = [("inputs", "input tensors", [t.symbol for t in self.program.inputs], "void*"),
                 ("outputs", "output tensors", [t.symbol for t in self.program.outputs], "void*")]
        if self.pool_fields:
            found.append(("workspace_pools", "memory pools", self.pool_fields, "void*"))
        if self.parameter_fields:
            found.append(("params", "parameters", self.parameter_fields, "const void*"))
        return [s for s in found if s[2]]

    def entry_structures(self) -> list[tuple[str, str, list[str], str]]:
        """The structures that the entry takes: without inputs and outputs where these lie in the workspace."""
        return [s for s in self.structures() if not self.options.workspace_io or s[0] not in ("inputs", "outputs")]

    # -- header

    def header(self) -> str:
        """The interface: sizes, structures, the entry."""
        guard = self.names.macro("H") + "_"
        lines = [f"/* Interface of the model {self.names.prefix.removeprefix('tvmgen_')}. */", f"#ifndef {guard}", f"#define {guard}", "",
                 "#include <stdint.h>", "", "#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
        lines += self._size_macros()
        for kind, what, members, ctype in self.structures():
            lines += ["", f"/* Pointers to the {what} */", f"struct {self.names.of(kind)} {{", *(f"  {ctype} {m};" for m in members), "};"]
        lines += self._map_declarations() if self.options.workspace_io else []
        lines += ["", "/* Runs the model; 0 on success. */", self.entry_prototype() + ";", "",
                  "/* Bytes of working memory */", f"#define {self.names.macro('WORKSPACE_SIZE')} {self.layout.total}"]
        for pool in self.layout.pools:
            if pool.name in self.external:
                lines += [f"/* Bytes used of pool {pool.name} */", f"#define {self.names.macro(pool.name + '_WORKSPACE_POOL_SIZE')} {pool.used}"]
        for constants in self.constant_pools:
            lines += self._constant_pool_macros(constants)
        return "\n".join([*lines, "", "#ifdef __cplusplus", "}", "#endif", "", f"#endif  /* {guard} */", ""])

    def _size_macros(self) -> list[str]:
        """The bytes of each input and result; names that differ in case only have one macro."""
        lines: list[str] = []
        sizes: dict[str, Tensor] = {}
        for what, tensors in (("Input", self.program.inputs), ("Output", self.program.outputs)):
            for t in tensors:
                macro = self.names.macro(t.symbol + "_size")
                if macro in self._pool_macros():
                    raise ArgumentError(f"the {what.lower()} {t.name!r} cannot be told from the memory pools' size {macro} in C; rename it")
                if macro in sizes and sizes[macro].nbytes != t.nbytes:
                    raise ArgumentError(f"{sizes[macro].name!r} of {sizes[macro].nbytes} bytes and {t.name!r} of {t.nbytes} bytes have one macro "
                                        f"{macro} in C; rename one of them")
                lines.append(f"/* {what} {comment_text(t.name)}: {t.info.dtype}{list(t.info.shape)}, in bytes */")
                lines += [] if macro in sizes else [f"#define {macro} {t.nbytes}"]
                sizes[macro] = t
        return lines

    def _pool_macros(self) -> list[str]:
        return [self.names.macro(n) for n in ("WORKSPACE_SIZE", *(f"{p}_WORKSPACE_POOL_SIZE" for p in self.external),
                                              *(f"{p.name}_CONSTANT_POOL_SIZE" for p in self.constant_pools))]

    def pool_contents(self, pool: ConstantPool) -> bytes:
        """What a constant pool holds."""
        data = bytearray(pool.size)
        for i, offset in pool.offsets.items():
            raw = raw_bytes(self.program.constants[i])
            data[offset: offset + len(raw)] = raw
        return bytes(data)

    def _constant_pool_macros(self, pool: ConstantPool) -> list[str]:
        data = self.pool_contents(pool)
        rows = [", ".join(f"0x{b:02x}" for b in data[i: i + 16]) for i in range(0, len(data), 16)]
        name = self.names.macro(pool.name)
        return [f"/* Contents of constant pool {pool.name} */", f"#define {name}_CONSTANT_POOL_SIZE {pool.size}",
                f"#define {name}_CONSTANT_POOL_DATA \\\n    " + ", \\\n    ".join(rows)]

    def entry_prototype(self) -> str:
        """``int32_t tvmgen_default_run(…)``"""
        params = [f"struct {self.names.of(kind)}* {kind}" for kind, *_ in self.entry_structures()]
        return f"int32_t {self.names.of('run')}({', '.join(params) or 'void'})"

    # -- inputs and results in the workspace

    def _map_prototype(self, kind: str) -> str:
        pools = f"struct {self.names.of('workspace_pools')}* workspace_pools" if self.pool_fields else "void"
        return f"struct {self.names.of(kind)} {self.names.of('map_' + kind)}({pools})"

    def _mapped(self) -> list[tuple[str, list[Tensor], list[Place]]]:
        found = [("inputs", self.program.inputs, self.program.input_places), ("outputs", self.program.outputs, self.program.output_places)]
        return [f for f in found if f[1]]

    def _map_declarations(self) -> list[str]:
        return [line for kind, *_ in self._mapped() for line in
                ("", f"/* Where the {kind} lie in the workspace; write inputs before every run, read outputs before the next */", self._map_prototype(kind) + ";")]


def comment_text(text: str) -> str:
    """Text that ends no comment and starts none."""
    return text.replace("*/", "* /").replace("/*", "/ *").replace("\\", "/").replace("\n", " ")


def array_of(tensor: Tensor) -> Any:
    """A constant's values as a numpy array."""
    data = tensor.data
    return np.asarray(data.numpy() if hasattr(data, "numpy") else data)


def raw_bytes(tensor: Tensor) -> bytes:
    """A constant's bytes, little endian."""
    return np.ascontiguousarray(array_of(tensor)).tobytes()
