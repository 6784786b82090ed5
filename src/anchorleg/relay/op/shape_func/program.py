"""Formulas as a shape program: the list of integer operations that the virtual machine runs to get sizes.

A step is four integers (operation, a, b, c); its result is the value with the step's number, which later steps refer to.
"""
from __future__ import annotations

from typing import Any, NamedTuple, Sequence

from .dims import Dim, DimTable, Size

OPERATIONS = {name: i for i, name in enumerate((
    "const", "dim", "val", "add", "sub", "mul", "div", "mod", "max", "min", "eq", "lt", "select", "nonzero", "size", "check", "out"))}


class ShapeProgram(NamedTuple):
    """``steps`` to run, the ranks of the results, and what went wrong when check number *i* fails."""

    steps: tuple[tuple[int, int, int, int], ...]
    ranks: tuple[int, ...]
    texts: tuple[str, ...]


class _Assembler:
    def __init__(self, table: DimTable) -> None:
        self.table = table
        self.steps: list[tuple[int, int, int, int]] = []
        self.made: dict[Any, int] = {}

    def emit(self, name: str, a: int = 0, b: int = 0, c: int = 0) -> int:
        """A step; equal ones are made once."""
        step = (OPERATIONS[name], a, b, c)
        if name in ("check", "out"):
            self.steps.append(step)
            return len(self.steps) - 1
        if step not in self.made:
            self.made[step] = len(self.steps)
            self.steps.append(step)
        return self.made[step]

    def value(self, wanted: Dim) -> int:
        """The step that computes a formula; operands first, on a stack of its own."""
        stack: list[Any] = [wanted]
        while stack:
            d = stack[-1]
            key = ("value", d)
            if key in self.made:
                stack.pop()
                continue
            waiting = [x for x in self._operands(d) if ("value", x) not in self.made]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            self.made[key] = self._make(d)
        return self.made[("value", wanted)]

    def _operands(self, d: Dim) -> list[Dim]:
        if isinstance(d, int):
            return []
        atoms = {a for m, _ in d.terms for a in m}
        return [x for a in atoms for x in self.table.atoms[a][1:] if self._has_operands(a)]

    def _has_operands(self, at: int) -> bool:
        return self.table.atoms[at][0] not in ("dim", "val", "nonzero", "fresh", "param")

    def _make(self, d: Dim) -> int:
        if isinstance(d, int):
            return self.emit("const", d)
        total: int | None = None
        for atoms, factor in d.terms:
            term = None if factor == 1 and atoms else self.emit("const", factor)
            for a in atoms:
                term = self._atom(a) if term is None else self.emit("mul", term, self._atom(a))
            total = term if total is None else self.emit("add", total, term)  # type: ignore[arg-type]
        return total  # type: ignore[return-value]

    def _atom(self, at: int) -> int:
        name, *operands = self.table.atoms[at]
        if not self._has_operands(at):
            return self.emit(name, *operands)
        return self.emit(name, *(self.made[("value", o)] for o in operands))


def assemble(table: DimTable, results: Sequence[Sequence[Dim]], checks: Sequence[tuple[Dim, str]]) -> ShapeProgram:
    """The program that tests ``checks`` and writes the results' sizes."""
    maker = _Assembler(table)
    texts: list[str] = []
    for condition, text in dict(checks).items():
        at = maker.value(condition)
        maker.emit("check", at, len(texts))
        texts.append(text)
    for k, dims in enumerate(results):
        for i, d in enumerate(dims):
            at = maker.value(d)
            maker.emit("out", k, i, at)
    return ShapeProgram(tuple(maker.steps), tuple(len(d) for d in results), tuple(texts))


def is_computable(table: DimTable, dims: Sequence[Dim]) -> bool:
    """Whether formulas depend on arguments only."""
    stack, seen = list(dims), set()
    while stack:
        d = stack.pop()
        if not isinstance(d, Size):
            continue
        for at in {a for m, _ in d.terms for a in m}:
            if at not in seen:
                seen.add(at)
                name, *operands = table.atoms[at]
                if name in ("fresh", "param"):
                    return False
                stack.extend(o for o in operands if isinstance(o, Size))
    return True
