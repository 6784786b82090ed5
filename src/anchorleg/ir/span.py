"""Where a node came from: a place in a text, or a node of the model that was imported."""
from __future__ import annotations


class SourceName:
    """The name of a source: a file, or a model's node."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


class Span:
    """A source and, for text, the lines and columns covered (1-based; 0 where unknown)."""

    __slots__ = ("source_name", "line", "end_line", "column", "end_column")

    def __init__(self, source: SourceName | str, line: int = 0, end_line: int = 0, column: int = 0, end_column: int = 0) -> None:
        self.source_name = SourceName(source) if isinstance(source, str) else source
        self.line, self.end_line, self.column, self.end_column = line, end_line, column, end_column

    def same_as(self, other: object) -> bool:
        """Whether both are one and the same object."""
        return self is other

    def __repr__(self) -> str:
        where = f":{self.line}:{self.column}" if self.line else ""
        return f"{self.source_name.name if self.source_name is not None else ''}{where}"


class SequentialSpan(Span):
    """Several origins merged into one node (a fused or simplified expression)."""

    __slots__ = ("spans",)

    def __init__(self, spans: list[Span]) -> None:
        super().__init__(spans[0].source_name if spans else "", *(
            (spans[0].line, spans[0].end_line, spans[0].column, spans[0].end_column) if spans else ()))
        self.spans = tuple(spans)
