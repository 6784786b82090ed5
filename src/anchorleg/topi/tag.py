"""Tags of operations: what fusion and schedules recognise them by."""
from __future__ import annotations

from ..te.tag import is_broadcast, is_injective, tag_scope

ELEMWISE = "elemwise"
BROADCAST = "broadcast"
INJECTIVE = "injective"
COMM_REDUCE = "comm_reduce"
COMM_REDUCE_IDX = "comm_reduce_idx"

__all__ = ["ELEMWISE", "BROADCAST", "INJECTIVE", "COMM_REDUCE", "COMM_REDUCE_IDX", "is_broadcast", "is_injective", "tag_scope"]
