"""Index arithmetic kept symbolic: a constant plus multiples of SSA values.

Inside an unrolled loop most indices differ only by a constant.  Kept in this form, they share one base address and differ in
the displacement of the instruction.  All arithmetic is modulo 2**64, so the rearranging is exact.
"""
from __future__ import annotations

from typing import Mapping

_WRAP, _HALF = 1 << 64, 1 << 63
Range = "tuple[int | None, int | None]"


def wrap_signed(value: int) -> int:
    """``value`` as a signed 64-bit number."""
    if -_HALF <= value < _HALF:
        return value
    value %= _WRAP
    return value - _WRAP if value >> 63 else value


class Lin:
    """``const + Σ coefficient · value``; ``terms`` is a tuple of (value name, coefficient) sorted by name."""

    __slots__ = ("const", "terms")

    def __init__(self, const: int, terms: tuple[tuple[str, int], ...] = ()) -> None:
        self.const, self.terms = const, terms

    @property
    def is_const(self) -> bool:
        """Whether no value takes part."""
        return not self.terms

    def add(self, other: Lin, scale: int = 1) -> Lin:
        """self + scale · other."""
        const = wrap_signed(self.const + scale * other.const)
        if not other.terms:
            return Lin(const, self.terms)
        if not self.terms and scale == 1:
            return Lin(const, other.terms)
        table = dict(self.terms)
        for name, coefficient in other.terms:
            table[name] = wrap_signed(table.get(name, 0) + scale * coefficient)
        return Lin(const, tuple(sorted((n, c) for n, c in table.items() if c)))

    def scaled(self, factor: int) -> Lin:
        """factor · self."""
        if factor == 0:
            return Lin(0)
        return Lin(wrap_signed(self.const * factor), tuple((n, wrap_signed(c * factor)) for n, c in self.terms))

    def __repr__(self) -> str:
        return f"Lin({self.const}, {self.terms})"


def combine_terms(parts: list[tuple[tuple[tuple[str, int], ...], int]]) -> tuple[tuple[str, int], ...]:
    """The terms of Σ factor · terms."""
    if not parts:
        return ()
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0]
    table: dict[str, int] = {}
    for terms, factor in parts:
        for name, coefficient in terms:
            table[name] = table.get(name, 0) + factor * coefficient
    return tuple(sorted((n, wrap_signed(c)) for n, c in table.items() if c % _WRAP))


class VLin:
    """The vector ``base + (lane // repeat) · stride``; ``repeat`` divides ``lanes``."""

    __slots__ = ("base", "stride", "lanes", "repeat")

    def __init__(self, base: Lin, stride: int, lanes: int, repeat: int = 1) -> None:
        self.base, self.stride, self.lanes, self.repeat = base, stride, lanes, repeat if stride else 1

    def steps(self) -> list[int]:
        """What each lane adds to the base."""
        return [i // self.repeat * self.stride for i in range(self.lanes)]

    def divided(self, divisor: int) -> VLin | None:
        """The quotients, rounded down, of a vector of neighbours that starts at a multiple of ``divisor``; else None."""
        if self.stride != 1 or self.repeat != 1 or divisor < 1 or self.lanes % divisor:
            return None
        whole, rest = split_by(self.base, divisor)
        return None if rest.terms or rest.const else VLin(whole, 1, self.lanes, divisor)


def lin_range(x: Lin, ranges: Mapping[str, tuple[int | None, int | None]]) -> tuple[int | None, int | None]:
    """Inclusive bounds of ``x`` from those of its values; None where unbounded."""
    low: int | None = x.const
    high: int | None = x.const
    for name, coefficient in x.terms:
        lo, hi = ranges.get(name, (None, None))
        if coefficient < 0:
            lo, hi = hi, lo
        low = None if low is None or lo is None else low + coefficient * lo
        high = None if high is None or hi is None else high + coefficient * hi
    return low, high


def split_by(x: Lin, divisor: int) -> tuple[Lin, Lin]:
    """(q, r) with x = divisor·q + r, where r holds what is not a multiple of the divisor."""
    const_q, const_r = divmod(x.const, divisor)
    whole = tuple((n, c // divisor) for n, c in x.terms if c % divisor == 0)
    rest = tuple((n, c) for n, c in x.terms if c % divisor)
    return Lin(const_q, whole), Lin(const_r, rest)
