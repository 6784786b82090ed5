"""Tensorize: replaces the inner loops of a nest by a hand-written intrinsic, after checking that it computes the same."""
from __future__ import annotations

from typing import Any

from ...tir.stmt import Stmt


def tensorized_stmt(nest: Any, at: int, part: str) -> Stmt:
    """Filled in below."""
    raise NotImplementedError
