"""Origins and text, under the address users know; they live in :mod:`anchorleg.ir.span` and :mod:`anchorleg.relay.text`."""
from ..ir.node import Node
from ..ir.span import SequentialSpan, SourceName, Span
from .text.printer import astext, pretty_print

__all__ = ["Node", "SequentialSpan", "SourceName", "Span", "astext", "pretty_print"]
