"""From bytecode to the words that the native loop runs.

On the way registers die where their last use is (so that memory is used again, and a value nobody else has can be changed
in place), a block and the one tensor in it become one object, constants that are sizes become immediate, and a call whose
result is the function's becomes a jump.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dtype import DataType
from .bytecode import Inner, Instruction, Opcode, VMFunction
from .liveness import live_sets, successors

_JUMPS = {Opcode.If, Opcode.Goto}


def dtype_words(text: str) -> tuple[int, int]:
    """(code of the dtype for the machine, bytes of an element)."""
    kind = DataType(text)
    return kind.type_code | kind.bits << 8 | kind.lanes << 16, kind.itemsize


class Translator:
    """Translates one function; jumps are fixed by `place` once the code's address is known."""

    def __init__(self, func: VMFunction, constants: Sequence[Any]) -> None:
        self.code, self.constants, self.name = list(func.instructions), constants, func.name
        self.words: list[int] = []
        self.jumps: list[tuple[int, int]] = []  # (word that holds an address, number of the instruction)
        self.starts: list[int] = [0] * len(self.code)
        self.sources: list[int] = []  # the instruction each of `places` belongs to
        self.places: list[int] = []
        self._analyse(len(func.params))

    # -- facts

    def _analyse(self, params: int) -> None:
        code = self.code
        writers: dict[int, list[int]] = {r: [-1] for r in range(params)}
        readers: dict[int, list[int]] = {}
        for i, instr in enumerate(code):
            w = instr.writes()
            if w is not None and instr.op != Opcode.KillRegister:
                writers.setdefault(w, []).append(i)
            for r in instr.reads():
                readers.setdefault(r, []).append(i)
        self.single = {r: w[0] for r, w in writers.items() if len(w) == 1 and w[0] >= 0}
        self.fused = self._fusible(readers)
        self.skipped = set(self.fused.values())
        self.reads = [self._really_reads(i) for i in range(len(code))]
        self.tails = {i: self._tail(i) for i, instr in enumerate(code) if instr.op == Opcode.Invoke}
        self.before, self.after = live_sets(code, self.reads)
        self.targets = {s for i, instr in enumerate(code) if instr.op == Opcode.If for s in successors(code, i)}

    def immediate(self, register: int) -> int | None:
        """The integer in a register that only ever holds one constant scalar."""
        at = self.single.get(register)
        if at is None:
            return None
        instr = self.code[at]
        if instr.op == Opcode.LoadConsti:
            return instr.val
        if instr.op != Opcode.LoadConst:
            return None
        data = self.constants[instr.const_index]
        return int(data.item()) if data is not None and not data.shape and "int" in data.dtype else None

    def _fusible(self, readers: dict[int, list[int]]) -> dict[int, int]:
        """AllocTensor(Reg) → the AllocStorage that serves it alone."""
        found = {}
        for i, instr in enumerate(self.code):
            if instr.op not in (Opcode.AllocTensor, Opcode.AllocTensorReg) or self.immediate(instr.offset) != 0:
                continue
            at = self.single.get(instr.storage)
            if at is None or self.code[at].op != Opcode.AllocStorage or readers.get(instr.storage) != [i]:
                continue
            if any(c.op in _JUMPS or c.op == Opcode.Ret for c in self.code[at:i]) or at > i:
                continue
            size = self.code[at].size
            if instr.op == Opcode.AllocTensorReg and size == instr.shape_register or \
                    instr.op == Opcode.AllocTensor and (self.immediate(size) or 0) >= _bytes_of(instr):
                found[i] = at
        return found

    def _really_reads(self, i: int) -> list[int]:
        instr = self.code[i]
        if i in self.fused:
            return [instr.shape_register] if instr.op == Opcode.AllocTensorReg else []
        if i in self.skipped:
            return []
        if instr.op == Opcode.If and self.immediate(instr.target) is not None:
            return [instr.test]
        if instr.op in (Opcode.AllocTensor, Opcode.AllocTensorReg, Opcode.AllocStorage):
            skipped = [r for r in ((instr.offset,) if instr.op != Opcode.AllocStorage else (instr.size,)) if self.immediate(r) is not None]
            return [r for r in instr.reads() if r not in skipped]
        return instr.reads()

    def _tail(self, i: int) -> bool:
        """Whether all that happens after a call is that its result is returned."""
        register, at, seen = self.code[i].dst, i + 1, set()
        while at < len(self.code) and at not in seen:
            seen.add(at)
            instr = self.code[at]
            if instr.op == Opcode.Ret:
                return instr.result == register
            if instr.op == Opcode.Goto:
                at += instr.pc_offset
            elif instr.op == Opcode.Move and instr.from_ == register:
                register, at = instr.dst, at + 1
            elif instr.op == Opcode.KillRegister and instr.register != register:
                at += 1
            else:
                return False
        return False

    # -- words

    def run(self) -> Translator:
        """Translates everything."""
        for i, instr in enumerate(self.code):
            self.starts[i] = len(self.words)
            if i in self.targets:
                self._kill(self._dead_on_entry(i))
            dst = instr.writes()
            useless = dst is not None and not self.after[i] >> dst & 1 and instr.op in (Opcode.LoadConst, Opcode.LoadConsti)
            if i in self.skipped or useless:
                continue
            self.sources.append(i)
            self.places.append(len(self.words))
            self._one(i, instr)
        return self

    def _dead_on_entry(self, i: int) -> list[int]:
        found = 0
        for p, instr in enumerate(self.code):
            if instr.op == Opcode.If and i in successors(self.code, p):
                found |= self.before[p]
        return _registers(found & ~self.before[i])

    def _dies(self, i: int, register: int) -> bool:
        return not self.after[i] >> register & 1

    def _one(self, i: int, instr: Instruction) -> None:
        moved = _EMIT[instr.op](self, i, instr)
        if instr.op in _JUMPS or instr.op in (Opcode.Ret, Opcode.Fatal) or self.tails.get(i):
            return
        dead = [r for r in dict.fromkeys(self.reads[i]) if self._dies(i, r) and r not in moved and r != instr.writes()]
        dst = instr.writes()
        if dst is not None and instr.op != Opcode.KillRegister and self._dies(i, dst):
            dead.append(dst)
        self._kill(dead)

    def _kill(self, registers: Sequence[int]) -> None:
        for r in registers:
            self.emit(Opcode.KillRegister, r)

    def operands(self, i: int, registers: Sequence[int], keep: Sequence[int] = ()) -> tuple[list[int], set[int]]:
        """Operands with the last use of each register that dies marked; the registers moved."""
        words, moved = [], set()
        for k, r in enumerate(registers):
            last = r not in registers[k + 1:] and r not in keep and self._dies(i, r)
            words.append(2 * r + last)
            if last:
                moved.add(r)
        return words, moved

    def emit(self, operation: Opcode | Inner, *words: int) -> None:
        """Appends an operation of the native loop and its words."""
        self.words += [int(operation), *words]

    def jump(self, target: int) -> None:
        """A word for the address of an instruction."""
        self.jumps.append((len(self.words), target))
        self.words.append(0)

    def place(self, address: int) -> list[int]:
        """The words with jumps resolved for code that begins at ``address``."""
        for at, target in self.jumps:
            self.words[at] = address + 8 * self.starts[target]
        return self.words

    # -- instructions

    def move(self, i: int, n: Instruction) -> set[int]:
        words, moved = self.operands(i, [n.from_])
        self.emit(Opcode.Move, n.dst, *words)
        return moved

    def ret(self, i: int, n: Instruction) -> set[int]:
        self.emit(n.op, 2 * n.result + 1)
        return set()

    def invoke(self, i: int, n: Instruction) -> set[int]:
        words, moved = self.operands(i, n.args)
        if self.tails[i]:
            words = [2 * r + (r not in n.args[k + 1:]) for k, r in enumerate(n.args)]
            self.emit(Inner.TailCall, n.func_index, len(words), *words)
        else:
            self.emit(n.op, n.dst, n.func_index, len(words), *words)
        return moved

    def invoke_closure(self, i: int, n: Instruction) -> set[int]:
        words, moved = self.operands(i, n.args, [n.closure])
        self.emit(n.op, n.dst, n.closure, len(words), *words)
        return moved

    def invoke_packed(self, i: int, n: Instruction) -> set[int]:
        self.emit(n.op, n.packed_index, len(n.args), *n.args)
        return set()

    def alloc_tensor(self, i: int, n: Instruction) -> set[int]:
        code, item = dtype_words(n.dtype)
        if i in self.fused:
            count = 1
            for d in n.shape:
                count *= d
            self.emit(Inner.AllocOwn, n.dst, code, item, len(n.shape), count, *n.shape)
        else:
            self.emit(n.op, n.dst, n.storage, *self._offset(n.offset), code, item, len(n.shape), *n.shape)
        return set()

    def alloc_tensor_reg(self, i: int, n: Instruction) -> set[int]:
        code, item = dtype_words(n.dtype)
        if i in self.fused:
            self.emit(Inner.AllocOwnReg, n.dst, code, item, n.shape_register)
        else:
            self.emit(n.op, n.dst, n.storage, *self._offset(n.offset), code, item, n.shape_register)
        return set()

    def _offset(self, register: int) -> tuple[int, int]:
        value = self.immediate(register)
        return (register, 0) if value is None else (-1, value)

    def alloc_adt(self, i: int, n: Instruction) -> set[int]:
        words, moved = self.operands(i, n.fields)
        self.emit(n.op, n.dst, n.constructor_tag, len(words), *words)
        return moved

    def alloc_closure(self, i: int, n: Instruction) -> set[int]:
        words, moved = self.operands(i, n.free_vars)
        self.emit(n.op, n.dst, n.func_index, len(words), *words)
        return moved

    def get_field(self, i: int, n: Instruction) -> set[int]:
        self.emit(n.op, n.dst, n.object, n.field_index)
        return set()

    def if_(self, i: int, n: Instruction) -> set[int]:
        value = self.immediate(n.target)
        if value is not None and n.true_offset == 1:
            self.emit(Inner.IfImmediate, n.test, value)
        else:
            self.emit(n.op, n.test, n.target)
            self.jump(i + n.true_offset)
        self.jump(i + n.false_offset)
        return set()

    def load_const(self, i: int, n: Instruction) -> set[int]:
        self.emit(n.op, n.dst, n.const_index)
        return set()

    def goto(self, i: int, n: Instruction) -> set[int]:
        self.emit(n.op)
        self.jump(i + n.pc_offset)
        return set()

    def get_tag(self, i: int, n: Instruction) -> set[int]:
        self.emit(n.op, n.dst, n.object)
        return set()

    def load_consti(self, i: int, n: Instruction) -> set[int]:
        self.emit(n.op, n.dst, 2 * n.val + 1)
        return set()

    def fatal(self, i: int, n: Instruction) -> set[int]:
        self.emit(n.op)
        return set()

    def alloc_storage(self, i: int, n: Instruction) -> set[int]:
        value, (_, item) = self.immediate(n.size), dtype_words(n.dtype)
        self.emit(n.op, n.dst, *((n.size, 0) if value is None else (-1, value)), item)
        return set()

    def shape_of(self, i: int, n: Instruction) -> set[int]:
        self.emit(n.op, n.dst, n.tensor)
        return set()

    def reshape(self, i: int, n: Instruction) -> set[int]:
        self.emit(n.op, n.dst, n.tensor, n.newshape)
        return set()

    def device_copy(self, i: int, n: Instruction) -> set[int]:
        words, moved = self.operands(i, [n.src])
        self.emit(Opcode.Move, n.dst, *words)
        return moved

    def kill_register(self, i: int, n: Instruction) -> set[int]:
        self.emit(n.op, n.register)
        return set()

    def get_row(self, i: int, n: Instruction) -> set[int]:
        self.emit(n.op, n.dst, n.data, n.at, n.mode)
        return set()

    def put_row(self, i: int, n: Instruction) -> set[int]:
        words, moved = self.operands(i, [n.data], [n.at, n.row])
        self.emit(n.op, n.dst, *words, n.at, n.row)
        return moved

    def alloc_ref(self, i: int, n: Instruction) -> set[int]:
        words, moved = self.operands(i, [n.value])
        self.emit(n.op, n.dst, *words)
        return moved

    def read_ref(self, i: int, n: Instruction) -> set[int]:
        self.emit(n.op, n.dst, n.ref)
        return set()

    def write_ref(self, i: int, n: Instruction) -> set[int]:
        words, moved = self.operands(i, [n.value], [n.ref])
        self.emit(n.op, n.dst, n.ref, *words)
        return moved


def _registers(bits: int) -> list[int]:
    found = []
    while bits:
        low = bits & -bits
        found.append(low.bit_length() - 1)
        bits ^= low
    return found


def _bytes_of(n: Instruction) -> int:
    size = DataType(n.dtype).itemsize
    for d in n.shape:
        size *= d
    return size


_EMIT = {
    Opcode.Move: Translator.move, Opcode.Ret: Translator.ret, Opcode.Invoke: Translator.invoke,
    Opcode.InvokeClosure: Translator.invoke_closure, Opcode.InvokePacked: Translator.invoke_packed,
    Opcode.AllocTensor: Translator.alloc_tensor, Opcode.AllocTensorReg: Translator.alloc_tensor_reg, Opcode.AllocADT: Translator.alloc_adt,
    Opcode.AllocClosure: Translator.alloc_closure, Opcode.GetField: Translator.get_field, Opcode.If: Translator.if_,
    Opcode.LoadConst: Translator.load_const, Opcode.Goto: Translator.goto, Opcode.GetTag: Translator.get_tag,
    Opcode.LoadConsti: Translator.load_consti, Opcode.Fatal: Translator.fatal, Opcode.AllocStorage: Translator.alloc_storage,
    Opcode.ShapeOf: Translator.shape_of, Opcode.ReshapeTensor: Translator.reshape, Opcode.DeviceCopy: Translator.device_copy,
    Opcode.KillRegister: Translator.kill_register, Opcode.PutRow: Translator.put_row,
    Opcode.GetRow: Translator.get_row, Opcode.AllocRef: Translator.alloc_ref, Opcode.ReadRef: Translator.read_ref,
    Opcode.WriteRef: Translator.write_ref,
}

__all__ = ["Translator", "dtype_words"]
