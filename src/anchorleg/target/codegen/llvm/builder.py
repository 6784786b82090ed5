"""Writes one LLVM function as text.

Instructions without effects are kept once per scope and put into the outermost scope that has their operands (loops
first of all), so that what LLVM gets needs no cleaning up.  A *scope* is the function, a loop's body or a branch.
"""
from __future__ import annotations

from typing import Iterable

from .linear import Lin, lin_range


class Block:
    """A basic block: its label, phis, and instructions."""

    __slots__ = ("label", "phis", "lines")

    def __init__(self, label: str) -> None:
        self.label, self.phis, self.lines = label, [], []

    def text(self) -> str:
        """The block as text."""
        return "\n".join([f"{self.label}:", *self.phis, *self.lines])


class Scope:
    """A region of structured control flow, the block that is open in it, and what is known there."""

    __slots__ = ("block", "is_branch", "known", "loads", "bases")

    def __init__(self, block: Block, is_branch: bool) -> None:
        self.block, self.is_branch = block, is_branch
        self.known: dict[str, str] = {}
        self.loads: dict[tuple[str, int], str] = {}
        self.bases: dict[tuple[str, str, tuple[tuple[str, int], ...]], str] = {}


class FunctionBuilder:
    """One function under construction.

    Values are operand texts (``%v7``, ``i32``-less constants).  ``depth`` says for each value in which scope it lives;
    ``ranges`` holds inclusive bounds of integers where known.
    """

    def __init__(self, declarations: dict[str, str]) -> None:
        self.declarations = declarations
        self.entry = Block("entry")
        self.blocks = [self.entry]
        self.scopes = [Scope(self.entry, False)]
        self.allocas: list[str] = []
        self.depth: dict[str, int] = {}
        self.ranges: dict[str, tuple[int | None, int | None]] = {}
        self._branch_floor = [0]
        self._count = 0

    # -- names, blocks, scopes

    def fresh(self, stem: str = "v") -> str:
        """A new value name."""
        self._count += 1
        return f"%{stem}{self._count}"

    def new_block(self, stem: str = "b") -> Block:
        """A new block, placed after the others."""
        self._count += 1
        block = Block(f"{stem}{self._count}")
        self.blocks.append(block)
        return block

    @property
    def block(self) -> Block:
        """The block that is open now."""
        return self.scopes[-1].block

    def open_scope(self, block: Block, is_branch: bool) -> None:
        """Enters a region that starts with ``block``."""
        self.scopes.append(Scope(block, is_branch))
        self._branch_floor.append(len(self.scopes) - 1 if is_branch else self._branch_floor[-1])

    def close_scope(self) -> Block:
        """Leaves the region; returns the block that was open in it."""
        self._branch_floor.pop()
        return self.scopes.pop().block

    def continue_in(self, block: Block) -> None:
        """Makes ``block`` the open one of the present scope."""
        self.scopes[-1].block = block

    def line(self, text: str) -> None:
        """Appends an instruction that has an effect."""
        self.scopes[-1].block.lines.append("  " + text)

    def define(self, text: str, stem: str = "v") -> str:
        """Appends an instruction that must stay here; returns its value."""
        name = self.fresh(stem)
        self.scopes[-1].block.lines.append(f"  {name} = {text}")
        self.depth[name] = len(self.scopes) - 1
        return name

    def terminate(self, block: Block, text: str) -> None:
        """Ends ``block``."""
        block.lines.append("  " + text)

    # -- instructions without effects

    def op(self, text: str, *operands: str, cheap: bool = False) -> str:
        """The value of a pure instruction.  ``cheap`` ones may also be hoisted out of branches."""
        depth, home = self.depth, 0
        for operand in operands:
            d = depth.get(operand, 0)
            if d > home:
                home = d
        scopes = self.scopes
        low = home
        if not cheap and home < self._branch_floor[-1]:
            home = self._branch_floor[-1]
        for d in range(low, home + 1):
            found = scopes[d].known.get(text)
            if found is not None:
                return found
        self._count += 1
        name = f"%v{self._count}"
        scope = scopes[home]
        scope.block.lines.append(f"  {name} = {text}")
        scope.known[text] = name
        if home:
            depth[name] = home
        return name

    def declare(self, name: str, text: str) -> None:
        """Makes sure that ``declare text`` is in the module."""
        self.declarations.setdefault(name, text)

    def call(self, name: str, result: str, args: Iterable[tuple[str, str]], pure: bool = True) -> str:
        """A call of a declared or external function; ``args`` are (type, operand)."""
        args = list(args)
        self.declare(name, f"{result} @{name}({', '.join(t for t, _ in args)})")
        text = f"call {result} @{name}({', '.join(f'{t} {v}' for t, v in args)})"
        if pure:
            return self.op(text, *(v for _, v in args))
        if result == "void":
            self.line(text)
            return ""
        return self.define(text)

    def alloca(self, type_text: str, align: int) -> str:
        """Stack memory for the whole function."""
        name = self.fresh("m")
        self.allocas.append(f"  {name} = alloca {type_text}, align {align}")
        return name

    # -- memory

    def load(self, type_text: str, address: str, align: int, version: int, tags: str = "") -> str:
        """A load; one of the same address and version is reused."""
        key = (f"{type_text} {address}", version)
        for scope in self.scopes:
            found = scope.loads.get(key)
            if found is not None:
                return found
        name = self.define(f"load {type_text}, ptr {address}, align {align}{tags}")
        self.scopes[-1].loads[key] = name
        return name

    # -- index arithmetic

    def range_of(self, x: Lin) -> tuple[int | None, int | None]:
        """Inclusive bounds of an index."""
        return lin_range(x, self.ranges)

    def _by_depth(self, x: Lin) -> list[tuple[int, list[tuple[str, int]]]]:
        groups: dict[int, list[tuple[str, int]]] = {}
        for name, coefficient in x.terms:
            groups.setdefault(self.depth.get(name, 0), []).append((name, coefficient))
        return sorted(groups.items())

    def _term(self, name: str, coefficient: int) -> str:
        if coefficient == 1:
            return name
        if coefficient > 0 and coefficient & (coefficient - 1) == 0:
            return self.op(f"shl i64 {name}, {coefficient.bit_length() - 1}", name, cheap=True)
        return self.op(f"mul i64 {name}, {coefficient}", name, cheap=True)

    def _sum(self, terms: list[tuple[str, int]]) -> str:
        total = ""
        for name, coefficient in terms:
            value = self._term(name, coefficient)
            total = value if not total else self.op(f"add i64 {total}, {value}", total, value, cheap=True)
        return total

    def index(self, x: Lin) -> str:
        """The index as an i64 operand."""
        if not x.terms:
            return str(x.const)
        total = self._sum([t for _, group in self._by_depth(x) for t in group])
        if x.const:
            total = self.op(f"add i64 {total}, {x.const}", total, cheap=True)
        if len(x.terms) > 1 or x.const or x.terms[0][1] != 1:
            self.ranges.setdefault(total, self.range_of(x))
        return total

    def address(self, pointer: str, element: str, x: Lin) -> str:
        """The address of element ``x`` behind ``pointer``: a chain from the outermost values inward, the constant last."""
        if x.terms:
            pointer = self._base(pointer, element, x)
        if x.const:
            pointer = self.op(f"getelementptr {element}, ptr {pointer}, i64 {x.const}", pointer, cheap=True)
        return pointer

    def _base(self, pointer: str, element: str, x: Lin) -> str:
        """The address without the constant, remembered where its innermost value lives."""
        depth = self.depth
        home = max(depth.get(pointer, 0), max([depth.get(name, 0) for name, _ in x.terms]))
        key, known = (pointer, element, x.terms), self.scopes[home].bases
        found = known.get(key)
        if found is None:
            for _, group in self._by_depth(x):
                offset = self._sum(group)
                pointer = self.op(f"getelementptr {element}, ptr {pointer}, i64 {offset}", pointer, offset, cheap=True)
            found = known[key] = pointer
        return found

    # -- text

    def text(self, header: str) -> str:
        """The function's text; ``header`` is everything before its brace."""
        self.entry.phis = self.allocas
        return "\n".join([header + " {", *(b.text() for b in self.blocks), "}"])
