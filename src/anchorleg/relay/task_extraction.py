"""Task extraction: lowers a program's primitive functions so that tunable computes announce themselves."""
from __future__ import annotations

import logging
from typing import Any, Mapping

from ..ir.module import IRModule
from ..ir.transform import get_pass
from ..support.errors import AnchorlegError
from .analysis.variables import exprs
from .expr import Call
from .function import Function
from .backend.te_compiler import TECompiler
from .transform.target_hooks import compiler_of

logger = logging.getLogger("te_compiler")


def lower_for_tasks(mod: Any, target: Any, params: Mapping[str, Any] | None) -> None:
    """Optimises a program and runs the computes of all its primitive functions but those of external compilers, under the current pass context.

    A function that can't be lowered is passed over (and logged): extraction never fails for a program that builds.
    """
    from ..target.target import Target
    from .build_module import optimize

    mod = mod if isinstance(mod, IRModule) else IRModule.from_expr(mod)
    first = Target.canon_multi_target(target)[0]
    fused = get_pass("FuseOps")(optimize(mod, target=first, params=params)[0])
    compiler = TECompiler()
    for func in fused.functions.values():
        for node in exprs(func) if isinstance(func, Function) else ():
            if isinstance(node, Call) and isinstance(node.op, Function) and node.op.get_attr("Primitive", 0) and compiler_of(node.op) is None:
                try:
                    compiler.lower(node.op, first)
                except AnchorlegError as exc:
                    logger.info("no task is extracted from a function that can't be lowered: %s", exc)

