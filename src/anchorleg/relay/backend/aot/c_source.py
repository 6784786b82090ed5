"""The C sources of a program: interface header (``c_interface.py``), entry (``lib0.c``), constants, kernels and main (``lib1.c``).

Constants that together are large go into a binary file that the assembler includes, since compilers take long over large arrays.
"""
from __future__ import annotations

import re
from typing import NamedTuple, Sequence

from ....support.names import NameSupply
from ....target.codegen.c import CKernel, CSource
from ....target.codegen.c.source import constant_array
from ..memory import MemoryLayout
from .c_interface import CInterface, Names, array_of, comment_text, raw_bytes
from .options import AotOptions
from .pools import ConstantPool
from .program import CONSTANT, INPUT, OUTPUT, Copy, KernelCall, Place, Program

TEXT_LIMIT = 2 << 20  # bytes of constants up to which they are written as C arrays
_ALIGNED = '__attribute__((section(".rodata.tvm"), aligned({})))'


class Sources(NamedTuple):
    """Everything to compile: header, C files by name, other files (weights) by name."""

    header: str
    files: dict[str, str]
    binaries: dict[str, bytes]


class CWriter(CInterface):
    """Writes the sources of one program."""

    def __init__(self, names: Names, program: Program, layout: MemoryLayout, kernels: Sequence[CKernel], options: AotOptions,
                 external_pools: Sequence[str] = (), constant_pools: Sequence[ConstantPool] = ()) -> None:
        super().__init__(names, program, layout, options, external_pools, constant_pools)
        self.kernels = list(kernels)
        self.by_symbol = {k.symbol: k for k in kernels}
        self.border_names = _border_names(program)
        total = sum(c.nbytes for i, c in enumerate(program.constants) if i not in self.pooled)
        self.binary = self.linked and total > TEXT_LIMIT

    # -- inputs and results in the workspace

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
                lines.append(f"/* {number}: {comment_text(step.origin)} */")
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


_PACKED_TYPES = """/* Packed calls: arguments are tensors as DLPack describes them */
typedef union { int64_t v_int64; double v_float64; void* v_handle; } AlValue;
typedef struct { void* data; struct { int32_t type, id; } device; int32_t ndim; struct { uint8_t code, bits; uint16_t lanes; } dtype;
                 int64_t* shape; int64_t* strides; uint64_t byte_offset; } AlTensor;

static inline void* al_data(void* handle) {
    const AlTensor* tensor = (const AlTensor*)handle;
    return (void*)((uint8_t*)tensor->data + tensor->byte_offset);
}
"""


__all__ = ["CWriter", "Names", "Sources", "array_of", "raw_bytes"]
