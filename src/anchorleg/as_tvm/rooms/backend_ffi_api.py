"""``tvm.relay.backend._backend``: building lowered functions."""
from __future__ import annotations

from typing import Any

from ...driver.build_module import build as _build


def build(mod: Any, target: Any, target_host: Any = None) -> Any:
    """Lowered functions (a module, or one per target) as a runtime module."""
    return _build(mod, target=target)


def GraphPlanMemory(func: Any) -> Any:
    """The storage of every expression of a fused function."""
    from ...relay.backend.storage_info import graph_plan_memory

    return graph_plan_memory(func)
