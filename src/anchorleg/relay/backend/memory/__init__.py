"""Static memory planning: where each intermediate result lies, so that those that live together never overlap."""
from .algorithms import ALGORITHMS, plan_offsets
from .buffers import BufferInfo, PoolAllocation, lower_bound
from .pools import MemoryLayout, PoolUse, plan_pools

__all__ = ["ALGORITHMS", "BufferInfo", "MemoryLayout", "PoolAllocation", "PoolUse", "lower_bound", "plan_offsets", "plan_pools"]
