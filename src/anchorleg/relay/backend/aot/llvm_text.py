"""The main function as LLVM text: for this machine, or as an object file for a machine without an operating system.

Two forms.  *Hosted*: ``i32 entry(inputs, outputs, pools, params)``, arrays of pointers that the executor fills.  *Embedded*: the C
interface ``i32 tvmgen_<model>_run(inputs, outputs[, pools][, params])``, working memory and linked parameters inside the object.
"""
from __future__ import annotations

from typing import Any, Mapping, Sequence

from ..memory import MemoryLayout
from .c_source import raw_bytes
from .program import CONSTANT, INPUT, OUTPUT, Copy, KernelCall, Place, Program


class LLVMMain:
    """Writes the entry of one program.

    ``symbols`` maps kernel names to the symbols of their fast entries; ``hosted`` chooses the form; ``arguments`` names the
    structures the entry takes in order; ``external`` the pools that come from the caller.
    """

    def __init__(self, entry: str, program: Program, layout: MemoryLayout, symbols: Mapping[str, str], hosted: bool, pointer_bytes: int,
                 arguments: Sequence[str], external: Sequence[str] = (), linked: bool = True, alignment: int = 64) -> None:
        self.entry, self.program, self.layout, self.symbols, self.hosted = entry, program, layout, symbols, hosted
        self.arguments, self.external, self.linked, self.alignment = list(arguments), list(external), linked, alignment
        self.word = f"i{8 * pointer_bytes}"
        self.lines: list[str] = []
        self.cache: dict[str, str] = {}
        self.count = 0

    def text(self) -> str:
        """The module."""
        for step in self.program.steps:
            self._call(step) if isinstance(step, KernelCall) else self._copy(step)
        head = [f'source_filename = "{self.entry}"', *self._globals(), *self._declarations()]
        params = ", ".join(f"ptr %{a}" for a in self.arguments)
        body = [f"define i32 @{self.entry}({params}) nounwind {{", "entry:", *self.lines, "  ret i32 0", "fail:", "  ret i32 -1", "}"]
        if not any("label %fail" in line for line in self.lines):
            body[-3:-1] = []
        return "\n".join([*head, *body, ""])

    def _globals(self) -> list[str]:
        if self.hosted:
            return []
        pools = [f"@{p.name} = internal global [{p.used} x i8] zeroinitializer, align {self.alignment}" for p in self.layout.pools
                 if p.used and p.name not in self.external]
        constants = [f"@c{i} = internal constant [{max(1, c.nbytes)} x i8] {_bytes_text(raw_bytes(c))}, align {self.alignment}"
                     for i, c in enumerate(self.program.constants)] if self.linked else []
        return [*pools, *constants, _NO_ERROR_TEXT]

    def _declarations(self) -> list[str]:
        kernels: dict[str, int] = {}
        for step in self.program.steps:
            if isinstance(step, KernelCall):
                kernels[self.symbols[step.kernel]] = len(step.args)
        copies = any(isinstance(s, Copy) for s in self.program.steps)
        lines = [f"declare i32 @{symbol}({', '.join(['ptr'] * (n + 1))})" for symbol, n in kernels.items()]
        return lines + ([f"declare void @llvm.memcpy.p0.p0.{self.word}(ptr, ptr, {self.word}, i1)"] if copies else [])

    def _fresh(self, hint: str) -> str:
        self.count += 1
        return f"%{hint}{self.count}"

    def _loaded(self, array: str, index: int) -> str:
        """Pointer ``index`` of an argument array, read once."""
        key = f"{array}[{index}]"
        if key not in self.cache:
            at, value = self._fresh("p"), self._fresh("v")
            self.lines += [f"  {at} = getelementptr ptr, ptr %{array}, i32 {index}", f"  {value} = load ptr, ptr {at}"]
            self.cache[key] = value
        return self.cache[key]

    def place(self, place: Place) -> str:
        """The operand that points to some memory."""
        if place.kind in (INPUT, OUTPUT):
            return self._loaded("inputs" if place.kind == INPUT else "outputs", place.index)
        if place.kind == CONSTANT:
            return f"@c{place.index}" if self.linked and not self.hosted else self._loaded("params", place.index)
        found = self.layout.places[place.index]
        base = self._pool(found.pool)
        if not found.offset:
            return base
        key = f"{found.pool}+{found.offset}"
        if key not in self.cache:
            self.cache[key] = self._fresh("w")
            self.lines.append(f"  {self.cache[key]} = getelementptr i8, ptr {base}, {self.word} {found.offset}")
        return self.cache[key]

    def _pool(self, name: str) -> str:
        if self.hosted:
            return self._loaded("workspace_pools", [p.name for p in self.layout.pools].index(name))
        return self._loaded("workspace_pools", self.external.index(name)) if name in self.external else f"@{name}"

    def _scratch(self, step: KernelCall) -> str:
        if step.scratch is not None:
            return self.place(step.scratch)
        return self._loaded("workspace_pools", len(self.layout.pools)) if self.hosted else "null"

    def _call(self, step: KernelCall) -> None:
        arguments = [self.place(a) for a in step.args] + [self._scratch(step)]
        status, good, label = self._fresh("r"), self._fresh("ok"), f"next{self.count}"
        self.lines += [f"  {status} = call i32 @{self.symbols[step.kernel]}({', '.join(f'ptr {a}' for a in arguments)})",
                       f"  {good} = icmp eq i32 {status}, 0", f"  br i1 {good}, label %{label}, label %fail", f"{label}:"]

    def _copy(self, step: Copy) -> None:
        self.lines.append(f"  call void @llvm.memcpy.p0.p0.{self.word}(ptr {self.place(step.target)}, ptr {self.place(step.source)}, "
                          f"{self.word} {step.size}, i1 false)")


# Kernels leave the text of an error there when they are called by the packed convention; a machine without a runtime has no use for it.
_NO_ERROR_TEXT = "define weak void @TVMAPISetLastError(ptr %text) nounwind {\n  ret void\n}"


def _bytes_text(data: bytes) -> str:
    if not any(data):
        return "zeroinitializer"
    return 'c"' + "".join(f"\\{b:02X}" for b in data) + '"'


def entry_arguments(*names: Any) -> list[str]:
    """The structures that exist."""
    return [name for name, there in names if there]
