"""Which registers are still wanted after each instruction."""
from __future__ import annotations

from collections.abc import Sequence

from .bytecode import Instruction, Opcode


def successors(code: Sequence[Instruction], at: int) -> list[int]:
    """The instructions that may come next."""
    instr = code[at]
    if instr.op == Opcode.If:
        return [at + instr.true_offset, at + instr.false_offset]
    if instr.op == Opcode.Goto:
        return [at + instr.pc_offset]
    if instr.op in (Opcode.Ret, Opcode.Fatal):
        return []
    return [at + 1] if at + 1 < len(code) else []


def _bits(registers: Sequence[int]) -> int:
    found = 0
    for r in registers:
        found |= 1 << r
    return found


def live_sets(code: Sequence[Instruction], reads: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
    """(wanted before, wanted after) each instruction, as bit sets; ``reads`` are the registers each one really reads."""
    count = len(code)
    before, after = [0] * count, [0] * count
    use = [_bits(r) for r in reads]
    define = [1 << w if w is not None else 0 for w in (i.writes() for i in code)]
    following = [successors(code, i) for i in range(count)]
    changed = True
    while changed:
        changed = False
        for i in range(count - 1, -1, -1):
            out = 0
            for s in following[i]:
                out |= before[s]
            inside = use[i] | (out & ~define[i])
            if inside != before[i] or out != after[i]:
                before[i], after[i], changed = inside, out, True
        if not any(s <= i for i in range(count) for s in following[i]):
            break  # without jumps back one pass is enough
    return before, after


__all__ = ["live_sets", "successors"]
