"""Questions about planned workspaces in tests."""
from __future__ import annotations

from typing import Any


def is_tvm_backendallocworkspace_calls(mod: Any) -> bool:
    """Whether generated C asks the platform for memory instead of planning it."""
    modules = [mod, *getattr(mod, "imported_modules", ())]
    return any("TVMBackendAllocWorkspace" in m.get_source() for m in modules)
