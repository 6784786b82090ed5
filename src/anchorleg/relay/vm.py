"""``relay.vm``: the virtual machine's compiler, under upstream's address."""
from __future__ import annotations

from .backend.vm import VMCompiler, VMExecutor, compile

__all__ = ["VMCompiler", "VMExecutor", "compile"]
