"""The LLVM module under construction: functions, declarations, constants."""
from __future__ import annotations

from ...cpu import CpuInfo

_SAFE = frozenset(range(32, 127)) - {ord('"'), ord("\\")}


def quoted_bytes(data: bytes) -> str:
    """``c"…"`` of those bytes."""
    return 'c"' + "".join(chr(b) if b in _SAFE else f"\\{b:02X}" for b in data) + '"'


class ModuleText:
    """Collects the parts and joins them."""

    def __init__(self, cpu: CpuInfo, name: str) -> None:
        self.cpu, self.name = cpu, name
        self.declarations: dict[str, str] = {}
        self.functions: list[str] = []
        self.constants: list[str] = []
        self.defined: set[str] = set()
        self._strings: dict[str, str] = {}
        self.helpers: set[str] = set()

    def string(self, text: str) -> str:
        """The address of a zero-terminated string."""
        found = self._strings.get(text)
        if found is None:
            data = text.encode() + b"\0"
            found = self._strings[text] = f"@.str{len(self._strings)}"
            self.constants.append(f"{found} = private unnamed_addr constant [{len(data)} x i8] {quoted_bytes(data)}, align 1")
        return found

    def data(self, content: bytes, align: int) -> str:
        """The address of constant bytes."""
        name = f"@.data{len(self.constants)}"
        self.constants.append(f"{name} = private unnamed_addr constant [{len(content)} x i8] {quoted_bytes(content)}, align {align}")
        return name

    def constant(self, kind: str, content: str, align: int) -> str:
        """The address of constant data, the same for equal content."""
        key = f"{kind} {content}"
        found = self._strings.get(key)
        if found is None:
            found = self._strings[key] = f"@.const{len(self._strings)}"
            self.constants.append(f"{found} = private unnamed_addr constant {key}, align {align}")
        return found

    def helper(self, name: str, text: str) -> None:
        """Adds an internal function once."""
        if name not in self.helpers:
            self.helpers.add(name)
            self.functions.append(text)

    def attributes(self) -> str:
        """The attributes of our functions: full vector width, no exceptions; #1 is not optimised."""
        bits = self.cpu.vector_bytes * 8
        width = f' "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}"' if self.cpu.arch == "x86_64" else ""
        # the packed entry runs once a call: what matters there is how long LLVM takes
        return f"attributes #0 = {{ nounwind{width} }}\nattributes #1 = {{ nounwind noinline optnone{width} }}"

    def text(self) -> str:
        """The whole module."""
        declared = [f"declare {d}" for n, d in sorted(self.declarations.items()) if n not in self.defined]
        return "\n".join([f'source_filename = "{self.name}"', f'target triple = "{self.cpu.triple}"', *self.constants, *declared, "",
                          "\n\n".join(self.functions), "", self.attributes(), ""])
