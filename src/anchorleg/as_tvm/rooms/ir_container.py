"""``tvm.ir.container``: lists and dictionaries, which are Python's own here."""
from __future__ import annotations

Array = list
Map = dict
