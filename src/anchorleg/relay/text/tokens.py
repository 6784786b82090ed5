"""The text format cut into tokens, with one regular expression; and errors that show the place."""
from __future__ import annotations

import re
from bisect import bisect_right
from typing import NoReturn

from ...ir.span import SourceName, Span
from ...support.errors import ParseError

_IDENT = r"[A-Za-z_][A-Za-z0-9_]*(?:/[A-Za-z0-9_]+)*"
_RULES = (
    ("skip", r"[ \t\r\n]+|//[^\n]*|/\*(?:[^*/]|\*(?!/)|/(?!\*))*\*/"),
    ("nested", r"/\*"),  # a comment with comments inside
    ("graph", r"%[0-9]+"),
    ("local", rf'%{_IDENT}|%"(?:[^"\\\n]|\\.)*"'),
    ("global", rf'@{_IDENT}|@"(?:[^"\\\n]|\\.)*"'),
    ("field", r"\.[ \t]*[0-9]+"),
    ("number", r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?(?:[fi][0-9]*)?(?![A-Za-z0-9_])|(?:inf|nan)f(?:16|32|64)?(?![A-Za-z0-9_])"),
    ("meta", r"meta\[[^\]\n]*\]\[[^\]\n]*\]"),
    ("word", rf"match\?|{_IDENT}(?:\.{_IDENT})*"),
    ("string", r'"(?:[^"\\]|\\.)*"'),
    ("metadata", r"#\[\s*metadata\s*\]"),
    ("version", r'#\[\s*version\s*=[^\]]*\]'),
    ("mark", r"->|=>|==|!=|<=|>=|[-+*/<>=;:,()\[\]{}?!.@%#]"),
    ("unknown", r"."),
)
_PATTERN = re.compile("|".join(f"(?P<{name}>{rule})" for name, rule in _RULES), re.S)
KEYWORDS = frozenset(("let", "fn", "def", "if", "else", "type", "match", "match?", "extern", "free_var", "ref", "ref_read", "ref_write"))
_NAMED = {"end": "the end of the text", "graph": "a graph variable", "local": "a variable", "global": "a global name", "number": "a number",
          "string": "a string", "word": "a name", "meta": "a metadata reference", "field": "a projection", "version": "a version line"}


class Source:
    """A text, and where its lines begin."""

    def __init__(self, text: str, name: str) -> None:
        self.text, self.name = text, SourceName(name)
        self.starts = [0, *(m.end() for m in re.finditer("\n", text))]

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1."""
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1

    def span(self, start: int, end: int) -> Span:
        """The span of ``text[start:end]``."""
        line, column = self.place(start)
        end_line, end_column = self.place(end)
        return Span(self.name, line, end_line, column, end_column)

    def fail(self, offset: int, message: str) -> NoReturn:
        """Raises a ParseError that shows the line with a caret under the place."""
        line, column = self.place(min(offset, len(self.text)))
        shown = self.text[self.starts[line - 1]:].split("\n", 1)[0].replace("\t", " ")
        cut = max(0, column - 100)
        shown = shown[cut:cut + 160]
        margin = f"{line} | "
        caret = " " * (len(margin) + column - 1 - cut) + "^"
        error = ParseError(f"{self.name}:{line}:{column}: {message}\n{margin}{shown}\n{caret}")
        error.line, error.column = line, column  # type: ignore[attr-defined]
        raise error


class Tokens:
    """The token stream: kinds, texts and offsets in parallel lists, closed by an ``end`` token.

    Keywords and marks are tokens whose kind is their text.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.kinds: list[str] = []
        self.texts: list[str] = []
        self.offsets: list[int] = []
        self.metadata: tuple[int, str] | None = None
        self._cut(source.text)

    def _cut(self, text: str) -> None:
        kinds, texts, offsets = self.kinds, self.texts, self.offsets
        at, size = 0, len(text)
        while at < size:
            resume = size
            for match in _PATTERN.finditer(text, at):
                kind = match.lastgroup or "unknown"
                if kind == "skip":
                    continue
                if kind in ("nested", "metadata", "unknown"):
                    resume = self._special(kind, match)
                    break
                word = match.group()
                if kind == "mark" or (kind == "word" and word in KEYWORDS):
                    kind = word
                kinds.append(kind)
                texts.append(word)
                offsets.append(match.start())
            at = resume
        kinds.append("end")
        texts.append("")
        offsets.append(self.metadata[0] if self.metadata else size)

    def _special(self, kind: str, match: re.Match[str]) -> int:
        """Handles what ends a run of tokens; the offset to go on from."""
        text = self.source.text
        if kind == "nested":
            return self._skip_comment(match.start())
        if kind == "metadata":
            self.metadata = (match.start(), text[match.end():])
            return len(text)
        what = "a string without an end" if match.group() == '"' else f"a character that has no meaning here: {match.group()!r}"
        self.source.fail(match.start(), what)

    def _skip_comment(self, start: int) -> int:
        depth = 0
        for mark in re.finditer(r"/\*|\*/", self.source.text[start:]):
            depth += 1 if mark.group() == "/*" else -1
            if depth == 0:
                return start + mark.end()
        self.source.fail(start, "a comment without an end: expected '*/'")

    def describe(self, at: int) -> str:
        """A token as an error message names it."""
        kind, text = self.kinds[at], self.texts[at]
        if kind == text:
            return f"'{text}'"
        return _NAMED.get(kind, kind) + (f" '{text if len(text) < 40 else text[:37] + '...'}'" if text else "")


_UNESCAPE = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}
_ESCAPE = re.compile(r"\\x([0-9a-fA-F]{2})|\\(.)", re.S)


def unquote(literal: str) -> str:
    """The text a string literal stands for."""
    inner = literal[1:-1]
    if "\\" not in inner:
        return inner
    out = bytearray()
    at = 0
    for match in _ESCAPE.finditer(inner):
        out += inner[at:match.start()].encode()
        out += bytes([int(match.group(1), 16)]) if match.group(1) else _UNESCAPE.get(match.group(2), match.group(2)).encode()
        at = match.end()
    return (out + inner[at:].encode()).decode(errors="replace")
