"""Identifiers: making any text a legal one, and keeping names unique."""

from __future__ import annotations

import re

_BAD = re.compile(r"[^0-9A-Za-z_]+")


def sanitize(text: str, fallback: str = "v") -> str:
    """A C identifier resembling ``text``: other characters become ``_``, a leading digit is prefixed.

    >>> sanitize("conv2d/bias:0"), sanitize("3x3"), sanitize("")
    ('conv2d_bias_0', '_3x3', 'v')
    """
    word = _BAD.sub("_", text)
    if not word.strip("_"):
        return fallback
    return "_" + word if word[0].isdigit() else word


class NameSupply:
    """Hands out names that have not been handed out before, by appending ``_1``, ``_2`` …

    >>> supply = NameSupply()
    >>> supply.fresh("x"), supply.fresh("x"), supply.fresh("x_1")
    ('x', 'x_1', 'x_1_1')
    """

    __slots__ = ("prefix", "_next", "_taken")

    def __init__(self, prefix: str = "", taken: object = ()) -> None:
        self.prefix = prefix
        self._next: dict[str, int] = {}
        self._taken: set[str] = set(taken)  # type: ignore[call-overload]

    def fresh(self, hint: str, add_prefix: bool = True, separator: str = "_") -> str:
        """A new name derived from ``hint``; amortised constant time even for a much used hint."""
        base = f"{self.prefix}_{hint}" if self.prefix and add_prefix else hint
        if base not in self._taken:
            self._taken.add(base)
            return base
        number = self._next.get(base, 1)
        while (name := f"{base}{separator}{number}") in self._taken:
            number += 1
        self._next[base] = number + 1
        self._taken.add(name)
        return name

    def reserve(self, name: str) -> None:
        """Mark ``name`` as taken without handing it out."""
        self._taken.add(name)

    def __contains__(self, name: str) -> bool:
        return name in self._taken


def shorten(name: str, limit: int, digest: str) -> str:
    """``name`` when it fits in ``limit`` characters, else its head followed by ``digest``."""
    return name if len(name) <= limit else f"{name[: max(1, limit - len(digest) - 1)]}_{digest}"
