"""The error of a script: where in the source, what was expected, what came."""
from __future__ import annotations

from ..support.errors import ParseError


class ScriptError(ParseError):
    """Source that is no program of the script language.

    ``filename`` and ``line`` (1-based) say where; the message shows the line with a caret.
    """

    def __init__(self, message: str, filename: str = "", line: int = 0, column: int = 0, text: str = "") -> None:
        self.filename, self.line, self.column = filename, line, column
        where = f"{filename}:{line}: " if line else ""
        shown = f"\n    {text.strip()}\n    {' ' * max(0, column - (len(text) - len(text.lstrip())))}^" if text.strip() else ""
        super().__init__(f"{where}{message}{shown}")
