"""The whole way: module in, planned module out."""
from __future__ import annotations

from typing import Any

import pytest

from anchorleg.ir.transform import PassContext
from anchorleg.relay.backend.executor import Executor
from anchorleg.runtime.registry import register_func, remove_global_func
from anchorleg.support.errors import ArgumentError
from anchorleg.tir.usmp.planner import UnifiedStaticMemoryPlanner
from anchorleg.tir.usmp.utils import PoolAllocation

from .test_io_allocates import Program as WithIO
from .test_transform import Program


def _size(mod: Any) -> int:
    return sum(p.allocated_size for p in mod.get_attr("pool_args"))


@pytest.mark.parametrize("algorithm", ["greedy_by_size", "greedy_by_conflicts", "hill_climb"])
def test_every_algorithm_plans(algorithm: str) -> None:
    with PassContext(config={"tir.usmp.algorithm": algorithm}):
        after = UnifiedStaticMemoryPlanner()(Program)
    assert _size(after) == 32 and len(after["double"].params) == 3 and _size(UnifiedStaticMemoryPlanner()(Program)) == 32


def test_inputs_and_outputs_on_request() -> None:
    mod = WithIO.with_attr("executor", Executor("aot", {"interface-api": "c"}))
    with PassContext(config={"tir.usmp.use_workspace_io": True}):
        after = UnifiedStaticMemoryPlanner()(mod)
        with pytest.raises(ArgumentError, match="interface_api c"):
            UnifiedStaticMemoryPlanner()(WithIO)
    places = after.get_attr("io_tensor_pool_allocations")
    assert sorted(places) == ["image", "mask", "scores"] and len(after["__tvm_main__"].params) == 2


def test_an_algorithm_of_ones_own() -> None:
    def stacked(buffers: Any, pressure: int) -> Any:
        offsets = [sum(b.size_bytes for b in buffers[:i]) for i in range(len(buffers))]
        return {b: PoolAllocation(b.pool_candidates[0], 64 + at) for b, at in zip(buffers, offsets)}

    register_func("tir.usmp.algo.stacked", stacked)
    try:
        with PassContext(config={"tir.usmp.custom_algorithm": "stacked"}):
            assert _size(UnifiedStaticMemoryPlanner()(Program)) == 96
    finally:
        remove_global_func("tir.usmp.algo.stacked")
    for option, what in (("custom_algorithm", "custom USMP algorithm : stacked"), ("algorithm", "USMP algorithm : stacked")):
        with PassContext(config={f"tir.usmp.{option}": "stacked"}), pytest.raises(ArgumentError, match=what):
            UnifiedStaticMemoryPlanner()(Program)
