"""The text form of a target: words, quoting with ``'`` and escaping with ``\\``, and typed option values.

``blah`` stands for itself, ``'a b'`` for ``a b``, ``\\'`` for a quote; a list is its items with commas.
"""
from __future__ import annotations

from typing import Any, Iterator

from ..support.errors import TargetError
from .kinds import BOOL, INT, STR, STRS, TARGET, TARGETS, TargetKind

QUOTE, ESCAPE = "'", "\\"
_TRUTH = {"true": 1, "false": 0}


def split_words(text: str, separator: str) -> list[str]:
    """Cuts at ``separator`` outside quotes; empty words are dropped, quotes and escapes stay in the words."""
    words, word, quoted, chars = [], "", False, iter(text)
    for c in chars:
        if c == separator and not quoted:
            words.append(word)
            word = ""
            continue
        if c == ESCAPE:
            c += next(chars, "")
        elif c == QUOTE:
            quoted = not quoted
        word += c
    if quoted:
        raise TargetError(f"mismatched quotes '' in {text!r}")
    return [w for w in [*words, word] if w]


def is_quoted(text: str) -> bool:
    """Whether one pair of quotes encloses the whole text."""
    if len(text) < 2 or text[0] != QUOTE or text[-1] != QUOTE:
        return False
    chars = iter(text[1:-1])
    for c in chars:
        if c == QUOTE or c == ESCAPE and next(chars, None) is None:
            return False
    return True


def unescape(text: str) -> str:
    """The value that quoted or escaped text stands for (escapes within inner quotes stay as they are)."""
    body = text[1:-1] if is_quoted(text) else text
    return "".join(_unescaped(body))


def _unescaped(body: str) -> Iterator[str]:
    quoted, chars = False, iter(body)
    for c in chars:
        if c == ESCAPE:
            yield (c if quoted else "") + next(chars, "")
            continue
        quoted ^= c == QUOTE
        yield c


def escape(text: str) -> str:
    """Text that :func:`unescape` turns back into ``text``."""
    return "".join(ESCAPE + c if c in (ESCAPE, QUOTE) else c for c in text)


def _guard(text: str, separator: str) -> str:
    return f"{QUOTE}{text}{QUOTE}" if separator in text and not is_quoted(text) else text


def value_text(value: Any) -> str:
    """An option's value as it stands in a target's text."""
    if isinstance(value, (list, tuple)):
        return ",".join(_guard(escape(_atom(v)), ",") for v in value)
    return _atom(value)


def _atom(value: Any) -> str:
    if isinstance(value, (bool, int)):
        return str(int(value))
    return _guard(escape(str(value)), " ")


def parse_value(text: str, kind: str) -> Any:
    """The value of type ``kind`` that ``text`` stands for (targets stay text)."""
    if kind in (STRS, TARGETS):
        return [parse_value(w, STR) for w in split_words(unescape(text), ",")]
    plain = unescape(text)
    if kind in (INT, BOOL):
        return _number(plain, kind)
    return plain.strip(" ")


def _number(text: str, kind: str) -> Any:
    try:
        number = _TRUTH[text.lower()] if text.lower() in _TRUTH else int(text)
    except ValueError:
        raise TargetError(f"expected {kind}, got {text!r}") from None
    return bool(number) if kind == BOOL else number


_PYTHON_TYPES = {INT: (int,), BOOL: (bool, int), STR: (str,), STRS: (list, tuple), TARGETS: (list, tuple), TARGET: (str, dict)}


def check_value(value: Any, kind: str) -> Any:
    """``value`` in the form kept for an option of type ``kind``; TargetError when it does not fit."""
    if isinstance(value, Strings):
        value = tuple(value)
    if not isinstance(value, _PYTHON_TYPES[kind]) or kind == INT and isinstance(value, bool):
        raise TargetError(f"expected {kind}, got {value!r} ({type(value).__name__})")
    if kind == STRS:
        wrong = next((v for v in value if not isinstance(v, str)), None)
        if wrong is not None:
            raise TargetError(f"expected {kind}, got an element {wrong!r} ({type(wrong).__name__})")
        return Strings(value)
    return bool(value) if kind == BOOL else value


class Strings(tuple):
    """A tuple of strings that also equals a list of them."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, tuple(other)) if isinstance(other, (list, tuple)) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __repr__(self) -> str:
        return repr(list(self))


def parse_words(text: str) -> dict[str, Any]:
    """The configuration that ``kind -key=value --key value -flag`` spells."""
    from .kinds import find_kind

    words = split_words(text, " ")
    if not words:
        raise TargetError("empty target string: expected a kind (llvm, c, cuda, opencl …), a tag, or JSON")
    kind = find_kind(words[0])
    config: dict[str, Any] = {"kind": words[0]}
    position = 1
    while position < len(words):
        key, value, used = _key_and_value(words, position)
        position += used
        if key in config:
            raise TargetError(f"target {text!r}: option {key!r} appears more than once")
        config[key] = _parse_option(kind, key, value)
    return config


def _parse_option(kind: TargetKind, key: str, value: str) -> Any:
    option_type = kind.type_of(key)
    try:
        return parse_value(value, option_type)
    except TargetError as exc:
        raise TargetError(f"target kind {kind.name!r}, option {key!r}: {exc}") from None


def _key_and_value(words: list[str], position: int) -> tuple[str, str, int]:
    word = words[position]
    body = word.lstrip("-")
    if body == word or not body:
        raise TargetError(f"expected an option such as -key=value, got {word!r}")
    key, equals, value = body.partition("=")
    if equals:
        if not key or not value:
            raise TargetError(f"option {word!r} lacks its {'value' if key else 'name'}")
        return key, value, 1
    following = words[position + 1] if position + 1 < len(words) else "-"
    return (key, "1", 1) if following.startswith("-") else (key, following, 2)
