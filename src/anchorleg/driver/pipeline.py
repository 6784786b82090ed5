"""The passes between a scheduled function and code, in order, with the reason for the order.

========================  ==============================================================================================
StorageFlatten            first: the passes after it see one-dimensional buffers and plain allocations only
LoopPartition             while loops are whole: the main part of a loop with ``likely`` conditions loses them
Simplify, VectorizeLoop   on loops freed of conditions, which would otherwise keep them scalar; indices in their simplest form
                          first, so that what lies next to one another is seen to
StorageRewrite            when every access is in its final form: buffers whose lives do not overlap share memory
UnrollLoop                applies the hints of pragmas (an UNROLLED loop itself is unrolled by the code generator)
Simplify, RemoveNoOp      clean up what the others left
BF16/FP8ComputeLegalize   arithmetic on narrow floats in float32, after all that could have folded it
LowerIntrin               last: intrinsics in terms of what every code generator knows
========================  ==============================================================================================

For C source, which small processors run, two phases differ:

========================  ==============================================================================================
UnfuseLoops               before loops are looked at one by one: without divisions their conditions are plain
HintMoves, LoopPartition  only loops that move data are partitioned: elsewhere small code counts for more than a condition less
HoistMoves                once the parts of such loops are simplified: what is left of their conditions is asked once per loop
MergeLoops                when indices are final: loops that run over memory together need one counter
UnrollAll                 so that arrays of sums have constant indices, and compilers keep them in registers
========================  ==============================================================================================
"""
from __future__ import annotations

from typing import Any, Callable

from ..ir.module import IRModule
from ..ir.transform import ModulePass, Pass, PassContext, PassInfo
from ..tir.function import PrimFunc


_PHASES: tuple[tuple[str, ...], ...] = (
    ("StorageFlatten",),
    ("LoopPartition", "Simplify", "VectorizeLoop", "StorageRewrite", "UnrollLoop"),
    ("Simplify", "RemoveNoOp"),
    ("BF16ComputeLegalize", "FP8ComputeLegalize", "LowerIntrin"),
)
_C_PHASES = (
    _PHASES[0],
    ("VectorizeLoop", "Simplify", "UnfuseLoops", "HintMoves", "LoopPartition", "Simplify", "HoistMoves", "MergeLoops", "StorageRewrite", "UnrollLoop",
     "UnrollAll"),
    *_PHASES[2:],
)
_NOT_SIMPLE = ("UnfuseLoops", "HintMoves", "LoopPartition", "HoistMoves", "MergeLoops", "LowerIntrin")


def lowering_passes(simple_mode: bool = False) -> list[Pass]:
    """The passes from a function with multi-dimensional buffers to a flat one, under the current PassContext."""
    ctx = PassContext.current()
    left_out = set(_NOT_SIMPLE) if simple_mode or ctx.get("tir.simple_mode", False) else set()
    if ctx.get("tir.disable_storage_rewrite", False):
        left_out.add("StorageRewrite")
    added = [(int(phase), each) for phase, each in ctx.get("tir.add_lower_pass", [])]
    passes: list[Pass] = []
    for phase, names in enumerate(_C_PHASES if _is_plain_c() else _PHASES):
        passes.extend(_as_pass(each) for p, each in added if p == phase)
        passes.extend(_make(name, ctx) for name in names if name not in left_out)
    passes.extend(_as_pass(each) for p, each in added if p >= len(_PHASES))
    return passes


def _make(name: str, ctx: PassContext) -> Pass:
    from ..tir import transform

    factory = getattr(transform, name)
    if name == "VectorizeLoop":
        return factory(not ctx.get("tir.disable_vectorize", False) and not _is_plain_c())
    if name == "LoopPartition":
        return factory(_is_plain_c())
    return factory(64) if name == "StorageFlatten" else factory()


def _is_plain_c() -> bool:
    """Whether the current target is C source, which has no vectors."""
    from ..target.target import Target

    target = Target.current(allow_none=True)
    return target is not None and target.kind.name == "c"


def _as_pass(given: Any) -> Pass:
    return given if isinstance(given, Pass) else _function_pass(given)


def _function_pass(fn: Callable[..., Any]) -> Pass:
    """A plain function ``(PrimFunc, module, context) -> PrimFunc`` as a pass."""
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        return mod.with_functions({g: fn(f, mod, ctx) if isinstance(f, PrimFunc) else f for g, f in mod.items()})

    return ModulePass(run, PassInfo(0, getattr(fn, "__name__", "added")))


def run_passes(mod: IRModule, passes: list[Pass]) -> IRModule:
    """The module after all passes that the current context enables."""
    ctx = PassContext.current()
    for each in passes:
        if ctx.pass_enabled(each.info):
            mod = each(mod)
    return mod
