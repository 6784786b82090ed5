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


_C_WORDS = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if inline int long register restrict return short "
    "signed sizeof static struct switch typedef union unsigned void volatile while _Bool _Complex _Imaginary asm typeof "
    "alignas alignof and and_eq bitand bitor bool catch char8_t char16_t char32_t class compl concept consteval constexpr constinit const_cast "
    "co_await co_return co_yield decltype delete dynamic_cast explicit export false friend mutable namespace new noexcept not not_eq nullptr "
    "operator or or_eq private protected public reinterpret_cast requires static_assert static_cast template this thread_local throw true try "
    "typeid typename using virtual wchar_t xor xor_eq linux unix NULL INFINITY NAN".split()
)


def c_identifier(text: str) -> str:
    """A name for C and C++: every other character becomes one ``_``, a leading digit is prefixed, a word of the language gets ``_`` behind.

    >>> c_identifier("input-x::2"), c_identifier("3x3"), c_identifier("int"), c_identifier("")
    ('input_x__2', '_3x3', 'int_', 'v')
    """
    word = re.sub(r"[^0-9A-Za-z_]", "_", text) or "v"
    word = "_" + word if word[0].isdigit() else word
    return word + "_" if word in _C_WORDS else word


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
