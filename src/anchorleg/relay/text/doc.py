"""Text under construction: nested lists of strings, line breaks and indented parts, put together once at the end."""
from __future__ import annotations

from typing import Any

MAX_INDENT = 128  # deeper nesting keeps this margin, so that text grows linearly with the program


class _NewLine:
    """A line break."""


NEWLINE = _NewLine()


class Indent:
    """A part whose line breaks are indented by two more blanks."""

    __slots__ = ("inner",)

    def __init__(self, inner: Any) -> None:
        self.inner = inner


def render(doc: Any) -> str:
    """The text of a document: a string, ``NEWLINE``, an ``Indent`` or a list of documents."""
    out: list[str] = []
    stack: list[tuple[Any, int]] = [(doc, 0)]
    while stack:
        piece, margin = stack.pop()
        if isinstance(piece, str):
            out.append(piece)
        elif piece is NEWLINE:
            out.append("\n" + " " * min(margin, MAX_INDENT))
        elif isinstance(piece, Indent):
            stack.append((piece.inner, margin + 2))
        else:
            stack.extend((p, margin) for p in reversed(piece))
    return "".join(out)


def braced(inner: Any) -> list[Any]:
    """``{`` inner, indented on its own lines, ``}``."""
    return ["{", Indent([NEWLINE, inner]), NEWLINE, "}"]


def joined(parts: list[Any], separator: Any = ", ") -> Any:
    """Parts with a separator between them; one string when all are strings."""
    if isinstance(separator, str) and all(isinstance(p, str) for p in parts):
        return separator.join(parts)
    out: list[Any] = []
    for i, part in enumerate(parts):
        if i:
            out.append(separator)
        out.append(part)
    return out


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\t": "\\t", "\r": "\\r", "\n": "\\n"}


def quoted(text: str) -> str:
    """A string literal: printable ASCII as it is, the rest escaped byte by byte."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    out = []
    for char in text:
        if char in _ESCAPES:
            out.append(_ESCAPES[char])
        elif " " <= char <= "~":
            out.append(char)
        else:
            out.extend(f"\\x{byte:02x}" for byte in char.encode())
    return '"' + "".join(out) + '"'
