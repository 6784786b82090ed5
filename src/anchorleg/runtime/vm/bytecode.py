"""The virtual machine's instructions, and their text form.

Register operands are numbers; jumps are relative to the instruction itself; dtypes are text.
"""
from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any, NamedTuple


class Opcode(IntEnum):
    """Numbers of the instructions, as upstream's."""

    Move = 0
    Ret = 1
    Invoke = 2
    InvokeClosure = 3
    InvokePacked = 4
    AllocTensor = 5
    AllocTensorReg = 6
    AllocADT = 7
    AllocClosure = 8
    GetField = 9
    If = 10
    LoadConst = 11
    Goto = 12
    GetTag = 13
    LoadConsti = 14
    Fatal = 15
    AllocStorage = 16
    ShapeOf = 17
    ReshapeTensor = 18
    DeviceCopy = 19
    KillRegister = 20
    PutRow = 28  # ours: a slice along the first axis replaced, in place where nobody else uses the data
    GetRow = 29  # ours: a slice along the first axis, as a view of the same memory
    AllocRef = 30  # ours, as upstream's machine has no references: a cell that holds a value
    ReadRef = 31
    WriteRef = 32


class Inner(IntEnum):
    """Numbers of operations that only the native loop knows; the translator makes them of others."""

    AllocOwn = 24     # a tensor and a block for it alone
    AllocOwnReg = 25
    IfImmediate = 26  # a comparison with a constant
    TailCall = 27


class Kind(IntEnum):
    """What an operand of an instruction is."""

    DST = 0       # register that is written
    SRC = 1       # register that is read
    SRCS = 2      # list of registers that are read
    INT = 3
    INTS = 4
    DTYPE = 5
    JUMP = 6      # distance to another instruction
    SRC_OR_NOT = 7  # register that is read, or -1


# opcode → names and kinds of the operands, in order
LAYOUT: dict[Opcode, tuple[tuple[str, Kind], ...]] = {
    Opcode.Move: (("dst", Kind.DST), ("from_", Kind.SRC)),
    Opcode.Ret: (("result", Kind.SRC),),
    Opcode.Invoke: (("dst", Kind.DST), ("func_index", Kind.INT), ("args", Kind.SRCS)),
    Opcode.InvokeClosure: (("dst", Kind.DST), ("closure", Kind.SRC), ("args", Kind.SRCS)),
    Opcode.InvokePacked: (("packed_index", Kind.INT), ("output_size", Kind.INT), ("args", Kind.SRCS)),
    Opcode.AllocTensor: (("dst", Kind.DST), ("storage", Kind.SRC), ("offset", Kind.SRC), ("dtype", Kind.DTYPE), ("shape", Kind.INTS)),
    Opcode.AllocTensorReg: (("dst", Kind.DST), ("storage", Kind.SRC), ("offset", Kind.SRC), ("dtype", Kind.DTYPE), ("shape_register", Kind.SRC)),
    Opcode.AllocADT: (("dst", Kind.DST), ("constructor_tag", Kind.INT), ("fields", Kind.SRCS)),
    Opcode.AllocClosure: (("dst", Kind.DST), ("func_index", Kind.INT), ("free_vars", Kind.SRCS)),
    Opcode.GetField: (("dst", Kind.DST), ("object", Kind.SRC), ("field_index", Kind.INT)),
    Opcode.If: (("test", Kind.SRC), ("target", Kind.SRC), ("true_offset", Kind.JUMP), ("false_offset", Kind.JUMP)),
    Opcode.LoadConst: (("dst", Kind.DST), ("const_index", Kind.INT)),
    Opcode.Goto: (("pc_offset", Kind.JUMP),),
    Opcode.GetTag: (("dst", Kind.DST), ("object", Kind.SRC)),
    Opcode.LoadConsti: (("dst", Kind.DST), ("val", Kind.INT)),
    Opcode.Fatal: (),
    Opcode.AllocStorage: (("dst", Kind.DST), ("size", Kind.SRC), ("alignment", Kind.INT), ("dtype", Kind.DTYPE), ("device_index", Kind.INT)),
    Opcode.ShapeOf: (("dst", Kind.DST), ("tensor", Kind.SRC)),
    Opcode.ReshapeTensor: (("dst", Kind.DST), ("tensor", Kind.SRC), ("newshape", Kind.SRC)),
    Opcode.DeviceCopy: (("dst", Kind.DST), ("src", Kind.SRC), ("src_device_index", Kind.INT), ("dst_device_index", Kind.INT)),
    Opcode.KillRegister: (("register", Kind.DST),),
    Opcode.GetRow: (("dst", Kind.DST), ("data", Kind.SRC), ("at", Kind.SRC), ("mode", Kind.INT)),
    Opcode.PutRow: (("dst", Kind.DST), ("data", Kind.SRC), ("at", Kind.SRC), ("row", Kind.SRC)),
    Opcode.AllocRef: (("dst", Kind.DST), ("value", Kind.SRC)),
    Opcode.ReadRef: (("dst", Kind.DST), ("ref", Kind.SRC)),
    Opcode.WriteRef: (("dst", Kind.DST), ("ref", Kind.SRC), ("value", Kind.SRC)),
}

_TEXT_NAMES = {
    Opcode.Move: "move", Opcode.Ret: "ret", Opcode.Invoke: "invoke", Opcode.InvokeClosure: "invoke_closure",
    Opcode.InvokePacked: "invoke_packed", Opcode.AllocTensor: "alloc_tensor", Opcode.AllocTensorReg: "alloc_tensor_reg",
    Opcode.AllocADT: "alloc_data", Opcode.AllocClosure: "alloc_closure", Opcode.GetField: "get_field", Opcode.If: "if",
    Opcode.LoadConst: "load_const", Opcode.Goto: "goto", Opcode.GetTag: "get_tag", Opcode.LoadConsti: "load_consti", Opcode.Fatal: "fatal",
    Opcode.AllocStorage: "alloc_storage", Opcode.ShapeOf: "shape_of", Opcode.ReshapeTensor: "reshape_tensor",
    Opcode.DeviceCopy: "device_copy", Opcode.KillRegister: "kill_register", Opcode.PutRow: "put_row",
    Opcode.GetRow: "get_row", Opcode.AllocRef: "alloc_ref", Opcode.ReadRef: "read_ref", Opcode.WriteRef: "write_ref",
}


class Instruction(NamedTuple):
    """One instruction: its opcode and operands in the order of `LAYOUT` (lists as tuples)."""

    op: Opcode
    operands: tuple[Any, ...]

    def __getattr__(self, name: str) -> Any:
        for (known, _), value in zip(LAYOUT[self.op], self.operands):
            if known == name:
                return value
        raise AttributeError(f"{self.op.name} has no operand {name!r}")

    def with_operand(self, name: str, value: Any) -> Instruction:
        """The instruction with another value for an operand."""
        names = [n for n, _ in LAYOUT[self.op]]
        operands = list(self.operands)
        operands[names.index(name)] = value
        return Instruction(self.op, tuple(operands))

    def reads(self) -> list[int]:
        """The registers it reads."""
        found: list[int] = []
        for (_, kind), value in zip(LAYOUT[self.op], self.operands):
            if kind == Kind.SRC:
                found.append(value)
            elif kind == Kind.SRCS:
                found.extend(value)
        return found

    def writes(self) -> int | None:
        """The register it writes, if any."""
        return self.operands[0] if LAYOUT[self.op] and LAYOUT[self.op][0][1] == Kind.DST else None

    def text(self) -> str:
        """The instruction as people read it."""
        parts = []
        for (name, kind), value in zip(LAYOUT[self.op], self.operands):
            parts.append(_operand_text(self.op, name, kind, value))
        return f"{_TEXT_NAMES[self.op]} {' '.join(parts)}".rstrip()


def _operand_text(op: Opcode, name: str, kind: Kind, value: Any) -> str:
    if kind in (Kind.DST, Kind.SRC):
        return f"${value}"
    if kind == Kind.SRCS:
        return f"({', '.join(f'${v}' for v in value)})"
    if kind == Kind.INTS:
        return f"[{', '.join(map(str, value))}]"
    if name == "const_index":
        return f"Const[{value}]"
    if name == "packed_index":
        return f"PackedFunc[{value}]"
    if name == "func_index":
        return f"VMFunc[{value}]"
    return str(value)


def make(op: Opcode, *operands: Any) -> Instruction:
    """An instruction; lists become tuples."""
    return Instruction(op, tuple(tuple(o) if isinstance(o, list) else o for o in operands))


class VMFunction(NamedTuple):
    """A function: name, names of its parameters, instructions, number of registers, the devices (by number) of parameters and result."""

    name: str
    params: tuple[str, ...]
    instructions: tuple[Instruction, ...]
    register_file_size: int
    devices: tuple[int, ...] = ()


def function_text(func: VMFunction, index: int, names: Iterable[str] = ()) -> str:
    """A function's instructions, one a line."""
    lines = [f"VM Function[{index}]: {func.name}({', '.join(func.params)})", f"# reg file size = {func.register_file_size}",
             f"# instruction count = {len(func.instructions)}", "opcode, fields # inst(text):"]
    for i, instr in enumerate(func.instructions):
        fields = " ".join(_flat_text(instr))
        lines.append(f"{int(instr.op)} {fields}  # {i}: {instr.text()}")
    return "\n".join(lines) + "\n"


def _flat_text(instr: Instruction) -> list[str]:
    found = []
    for value in instr.operands:
        found.extend(map(str, value) if isinstance(value, tuple) else [str(value)])
    return found


__all__ = ["Inner", "Instruction", "Kind", "LAYOUT", "Opcode", "VMFunction", "function_text", "make"]
