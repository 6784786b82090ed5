"""The C sources of a program: interface header, entry (``lib0.c``), constants, kernels and main (``lib1.c``).

Constants that together are large go into a binary file that the assembler includes, since compilers take long over large arrays.
"""
from __future__ import annotations

import re
from typing import Any, NamedTuple, Sequence

import numpy as np

from ....support.errors import ArgumentError
from ....support.names import NameSupply
from ....target.codegen.c import CKernel, CSource
from ....target.codegen.c.source import constant_array
from ..memory import MemoryLayout
from .options import AotOptions
from .pools import ConstantPool
from .program import CONSTANT, INPUT, OUTPUT, Copy, KernelCall, Place, Program, Tensor

TEXT_LIMIT = 2 << 20  # bytes of constants up to which they are written as C arrays
_ALIGNED = '__attribute__((section(".rodata.tvm"), aligned({})))'


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


class Sources(NamedTuple):
    """Everything to compile: header, C files by name, other files (weights) by name."""

    header: str
    files: dict[str, str]
    binaries: dict[str, bytes]


class CWriter:
    """Writes the sources of one program."""

    def __init__(self, names: Names, program: Program, layout: MemoryLayout, kernels: Sequence[CKernel], options: AotOptions,
                 external_pools: Sequence[str] = (), constant_pools: Sequence[ConstantPool] = ()) -> None:
        self.names, self.program, self.layout, self.kernels, self.options = names, program, layout, list(kernels), options
        self.external, self.constant_pools = list(external_pools), list(constant_pools)
        self.pooled = {i: (p.name, o) for p in constant_pools for i, o in p.offsets.items()}
        self.linked = options.link_params
        self.by_symbol = {k.symbol: k for k in kernels}
        self.border_names = _border_names(program)
        total = sum(c.nbytes for i, c in enumerate(program.constants) if i not in self.pooled)
        self.binary = self.linked and total > TEXT_LIMIT

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
                lines.append(f"/* {what} {_comment(t.name)}: {t.info.dtype}{list(t.info.shape)}, in bytes */")
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

    def map_functions(self) -> list[str]:
        """The functions that say where inputs and results lie."""
        unused = "    (void)workspace_pools;\n" if self.pool_fields else ""
        return [f"{self._map_prototype(kind)} {{\n{unused}    struct {self.names.of(kind)} {kind};\n"
                + "".join(f"    {kind}.{t.symbol} = {self._mapped_place(p)};\n" for t, p in zip(tensors, places))
                + f"    return {kind};\n}}\n" for kind, tensors, places in self._mapped()]

    def _mapped_place(self, place: Place) -> str:
        found = self.layout.places[place.index]
        if found.pool in self.pool_fields:
            return f"(uint8_t*)workspace_pools->{found.pool} + {found.offset}"
        return f"{self._pool_variable(found.pool)} + {found.offset}"

    # -- entry

    def entry(self) -> str:
        """``lib0.c``: the entry, which takes the structures apart, and the packed entry when asked for."""
        declared = [self.main_prototype() + ";"]
        arguments = [f"{kind}->{member}" for kind, _, members, _ in self.entry_structures() if kind in ("inputs", "outputs") for member in members]
        arguments += [f"(uint8_t*)workspace_pools->{name}" for name in self.pool_fields] + [f"params->{name}" for name in self.parameter_fields]
        body = f"{self.entry_prototype()} {{\n    return {self.names.of('__tvm_main__')}({', '.join(arguments)});\n}}\n"
        functions = [body]
        if not self.options.is_c_interface:
            functions.append(self._packed_entry())
            declared = [_PACKED_TYPES, *declared]
        return CSource(f"Entry of {self.names.prefix}", (), functions, [f'"{self.names.prefix}.h"'], (), declared).text

    def _packed_entry(self) -> str:
        """Arguments as an array of tensors: inputs, outputs, then pools and parameters as pointers."""
        tensors = len(self.program.inputs) + len(self.program.outputs)
        count = tensors + len(self.pool_fields) + len(self.parameter_fields)
        arguments = [f"al_data(args[{i}].v_handle)" for i in range(tensors)]
        arguments += [f"{'(uint8_t*)' if i < tensors + len(self.pool_fields) else ''}args[{i}].v_handle" for i in range(tensors, count)]
        name = self.names.of("run_packed")
        signature = "AlValue* args, int32_t* type_codes, int32_t num_args, AlValue* ret, int32_t* ret_type_code, void* resource"
        return (f"int32_t {name}({signature});\n\nint32_t {name}({signature}) {{\n    (void)type_codes;\n    (void)ret;\n    (void)ret_type_code;\n"
                f"    (void)resource;\n    (void)args;\n    if (num_args != {count}) return -1;\n"
                f"    return {self.names.of('__tvm_main__')}({', '.join(arguments)});\n}}\n")

    # -- main

    def main_prototype(self) -> str:
        """``int32_t tvmgen_default___tvm_main__(…)``: a pointer for each input, output, pool and unlinked parameter."""
        params = [f"void* {name}" for name in self.border_names.values() if not self.options.workspace_io]
        params += [f"uint8_t* {name}_pool_var" for name in self.pool_fields] + [f"const void* {name}" for name in self.parameter_fields]
        return f"int32_t {self.names.of('__tvm_main__')}({', '.join(params) or 'void'})"

    def body(self) -> str:
        """``lib1.c``: constants, working memory, kernels, main."""
        section = _ALIGNED.format(self.options.constant_alignment)
        declarations = [f"extern const uint8_t {self.names.of('weights')}[] {section};"] if self.binary else []
        declarations += [self._workspace(p.name, p.used) for p in self.layout.pools if p.name not in self.external and p.used]
        if self.linked and not self.binary:
            declarations += [constant_array(c.symbol, array_of(c), section=" " + section) for i, c in enumerate(self.program.constants) if i not in self.pooled]
        declarations.append(self.main_prototype() + ";")
        maps, includes = (self.map_functions(), [f'"{self.names.prefix}.h"']) if self.options.workspace_io else ([], [])
        return CSource(f"Kernels and main function of {self.names.prefix}", self.kernels, [self.main(), *maps], includes, (), declarations).text

    def _workspace(self, name: str, size: int) -> str:
        return f"static uint8_t {self._pool_variable(name)}[{size}] __attribute__((aligned({self.options.workspace_alignment})));"

    def _pool_variable(self, name: str) -> str:
        return f"{name}_pool_var" if name in self.pool_fields else self.names.of(name)

    def main(self) -> str:
        """The main function."""
        lines = []
        for number, step in enumerate(self.program.steps):
            if step.origin:
                lines.append(f"/* {number}: {_comment(step.origin)} */")
            lines.append(self._call(step) if isinstance(step, KernelCall) else self._copy(step))
        text = "".join(f"    {line}\n" for line in [*self._unused(lines), *lines])
        return f"{self.main_prototype()} {{\n{text}    return 0;\n}}\n"

    def _unused(self, lines: list[str]) -> list[str]:
        used = set(re.findall(r"\w+", "\n".join(lines)))
        names = re.findall(r"(\w+)(?=[,)])", self.main_prototype().partition("(")[2])
        return [f"(void){n};" for n in names if n != "void" and n not in used]

    def _call(self, step: KernelCall) -> str:
        arguments = [self.place(a) for a in step.args]
        if step.scratch is not None:
            arguments.append(self._bytes(step.scratch))
        return f"if ({step.kernel}({', '.join(arguments)}) != 0 ) return -1;"

    def _copy(self, step: Copy) -> str:
        return f"memcpy({self.place(step.target)}, {self.place(step.source)}, {step.size});"

    def _bytes(self, place: Place) -> str:
        found = self.layout.places[place.index]
        return f"{self._pool_variable(found.pool)} + {found.offset}" if found.offset else self._pool_variable(found.pool)

    def place(self, place: Place) -> str:
        """The C expression of a pointer to some memory."""
        if place.kind in (INPUT, OUTPUT):
            return self.border_names[place]
        if place.kind != CONSTANT:
            return f"(void*)({self._bytes(place)})"
        if place.index in self.pooled:
            pool, offset = self.pooled[place.index]
            return f"(const void*)({pool}_pool_var + {offset})"
        if self.binary:
            return f"(const void*)({self.names.of('weights')} + {self.weight_offsets()[place.index]})"
        return self.program.constants[place.index].symbol

    # -- weights as a file

    def weight_offsets(self) -> list[int]:
        """Where each constant lies in the weight file."""
        if not hasattr(self, "_offsets"):
            at, self._offsets = 0, []
            for i, c in enumerate(self.program.constants):
                self._offsets.append(at)
                if i not in self.pooled:
                    at += -(-c.nbytes // self.options.constant_alignment) * self.options.constant_alignment
            self._weight_bytes = at
        return self._offsets

    def weights(self) -> bytes:
        """The weight file."""
        offsets = self.weight_offsets()
        data = bytearray(max(1, self._weight_bytes))
        for i, (c, at) in enumerate(zip(self.program.constants, offsets)):
            if i not in self.pooled:
                raw = raw_bytes(c)
                data[at: at + len(raw)] = raw
        return bytes(data)

    def sources(self) -> Sources:
        """All files."""
        files = {"lib0.c": self.entry(), "lib1.c": self.body()}
        binaries: dict[str, bytes] = {}
        if self.binary:
            name = self.names.of("weights")
            files["weights.S"] = (f'/* The weights of {self.names.prefix}; assemble in the folder of weights.bin, or name it with -I */\n'
                                  f'    .section .rodata.tvm, "a"\n    .balign {max(16, self.options.constant_alignment)}\n    .global {name}\n{name}:\n'
                                  f'    .incbin "weights.bin"\n\n#if defined(__linux__) && defined(__ELF__)\n    .section .note.GNU-stack,"",%progbits\n#endif\n')
            binaries["weights.bin"] = self.weights()
        return Sources(self.header(), files, binaries)


def _border_names(program: Program) -> dict[Place, str]:
    """What the main function calls the memory of inputs and results; a result may have an input's name."""
    supply = NameSupply()
    return {Place(kind, i): supply.fresh(f"{t.symbol}_buffer_var")
            for kind, tensors in ((INPUT, program.inputs), (OUTPUT, program.outputs)) for i, t in enumerate(tensors)}


def _comment(text: str) -> str:
    """Text that ends no comment and starts none."""
    return text.replace("*/", "* /").replace("/*", "/ *").replace("\\", "/").replace("\n", " ")


_PACKED_TYPES = """/* Packed calls: arguments are tensors as DLPack describes them */
typedef union { int64_t v_int64; double v_float64; void* v_handle; } AlValue;
typedef struct { void* data; struct { int32_t type, id; } device; int32_t ndim; struct { uint8_t code, bits; uint16_t lanes; } dtype;
                 int64_t* shape; int64_t* strides; uint64_t byte_offset; } AlTensor;

static inline void* al_data(void* handle) {
    const AlTensor* tensor = (const AlTensor*)handle;
    return (void*)((uint8_t*)tensor->data + tensor->byte_offset);
}
"""


def array_of(tensor: Tensor) -> Any:
    """A constant's values as a numpy array."""
    data = tensor.data
    return np.asarray(data.numpy() if hasattr(data, "numpy") else data)


def raw_bytes(tensor: Tensor) -> bytes:
    """A constant's bytes, little endian."""
    return np.ascontiguousarray(array_of(tensor)).tobytes()


__all__ = ["CWriter", "Names", "Sources", "array_of", "raw_bytes"]
