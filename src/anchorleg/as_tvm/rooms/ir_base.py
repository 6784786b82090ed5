"""``tvm.ir.base``: nodes, structural comparison, saving."""
from __future__ import annotations

from ...ir import Node, SourceName, Span, assert_structural_equal, load_json, save_json, structural_equal, structural_hash
from ...ir.attrs import make_node

__all__ = ["Node", "SourceName", "Span", "assert_structural_equal", "load_json", "make_node", "save_json", "structural_equal",
           "structural_hash"]
