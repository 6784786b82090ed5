"""``tvm.parser``: the text format's reader."""
from __future__ import annotations

from ...ir.span import SequentialSpan, SourceName, Span
from ...relay.text.parser import fromtext, parse, parse_expr

__all__ = ["SequentialSpan", "SourceName", "Span", "fromtext", "parse", "parse_expr"]
