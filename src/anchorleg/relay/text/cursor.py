"""The reading position in a token stream, with the small readers that everything else is made of."""
from __future__ import annotations

from typing import Any, NoReturn

from ...ir.span import Span
from ...support.errors import ParseError
from .numbers import read_float, read_int
from .tokens import Source, Tokens


class Cursor:
    """Where the parser stands.  ``index`` counts tokens."""

    def __init__(self, source: Source, metadata: dict[str, Any] | None = None) -> None:
        self.source, self.tokens = source, Tokens(source)
        self.kinds, self.texts, self.offsets = self.tokens.kinds, self.tokens.texts, self.tokens.offsets
        self.index = 0
        self.metadata = _merged(self._read_metadata(), metadata or {})

    def _read_metadata(self) -> dict[str, Any]:
        if self.tokens.metadata is None:
            return {}
        from ...ir.serialize import load_json

        offset, text = self.tokens.metadata
        try:
            found = load_json(text)
        except ParseError as exc:
            self.source.fail(offset, f"the metadata section cannot be read: {exc}")
        if not isinstance(found, dict):
            self.source.fail(offset, "the metadata section is expected to map type keys to lists")
        return found

    # ---------------------------------------------------------------------------------------------------------- looking

    def kind(self, ahead: int = 0) -> str:
        """The kind of the next token (or of one further on)."""
        at = self.index + ahead
        return self.kinds[at] if at < len(self.kinds) else "end"

    def text(self) -> str:
        """The text of the next token."""
        return self.texts[self.index]

    def take(self, kind: str) -> bool:
        """Passes the next token if it is of that kind; whether it was."""
        if self.kinds[self.index] != kind:
            return False
        self.index += 1
        return True

    def expect(self, kind: str, also: str = "") -> str:
        """Passes a token of that kind and gives its text; an error naming what else would do otherwise."""
        if self.kinds[self.index] != kind:
            from .tokens import _NAMED

            self.fail(_NAMED.get(kind, f"'{kind}'") + (f" or {also}" if also else ""))
        self.index += 1
        return self.texts[self.index - 1]

    # ----------------------------------------------------------------------------------------------------------- places

    def span_from(self, start: int) -> Span:
        """The span from a token to the last one read."""
        last = max(start, self.index - 1)
        return self.source.span(self.offsets[start], self.offsets[last] + len(self.texts[last]))

    def fail(self, expected: str) -> NoReturn:
        """An error at the next token."""
        self.fail_at(self.index, f"expected {expected}, found {self.tokens.describe(self.index)}")

    def fail_at(self, index: int, message: str) -> NoReturn:
        """An error at a token."""
        self.source.fail(self.offsets[index], message)

    # ---------------------------------------------------------------------------------------------------------- literals

    def number(self) -> tuple[int | float, str] | None:
        """(value, dtype) of the numeric literal here, minus signs included; None, with nothing read, when there is none."""
        start = self.index
        while self.take("-"):
            pass
        if self.kinds[self.index] != "number":
            self.index = start
            return None
        text = "-" * ((self.index - start) % 2) + self.texts[self.index]
        self.index += 1
        try:
            return _literal(text)
        except ValueError as exc:
            self.fail_at(start, f"bad number {text!r}: {exc}")

    def meta(self) -> Any:
        """What a metadata reference stands for."""
        start = self.index
        key, _, number = self.expect("meta")[5:-1].partition("][")
        rows = self.metadata.get(key)
        if rows is None:
            self.fail_at(start, f"the metadata section has no entry {key!r}; it has: {', '.join(self.metadata) or 'none'}")
        if not number.isdigit() or int(number) >= len(rows):
            self.fail_at(start, f"no entry {number} among the {len(rows)} of {key!r} in the metadata section")
        return rows[int(number)]

    def meta_as(self, kind: type, what: str) -> Any:
        """What a metadata reference stands for, which must be ``what``."""
        start = self.index
        found = self.meta()
        if not isinstance(found, kind):
            self.fail_at(start, f"expected {what}, found a {type(found).__name__} in the metadata section")
        return found


def _literal(text: str) -> tuple[int | float, str]:
    body, mark, suffix = text, "", ""
    for letter in "fi":
        head, found, tail = text.rpartition(letter)
        if found and (not tail or tail.isdigit()) and head not in ("", "-"):
            body, mark, suffix = head, letter, tail
            break
    if mark == "f":
        return read_float(body, suffix)
    if mark == "i" or body.lstrip("-").isdigit():
        return read_int(body, suffix)
    return read_float(body, "")


def _merged(own: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The text's own entries, followed by those the caller passes in."""
    return {key: [*own.get(key, ()), *given.get(key, ())] for key in {**own, **given}}
