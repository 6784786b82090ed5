"""The passes of the virtual machine's compiler, in order, on one page."""
from __future__ import annotations

from typing import Any, Sequence

from ...ir.module import IRModule
from ...ir.transform import PassContext
from ...target.target import Target
from ..transform.pipelines import pipeline
from .external import lower_external
from .placement import pin, place, settle

# Programs keep their functions, branches and unknown sizes; otherwise as every executor's pipeline.
OPTIMIZE: tuple[str, ...] = (
    "InferType",
    "DynamicToStatic",        # sizes that turned out constant
    "RemoveUnusedFunctions",
    "EtaExpand",              # constructors as values become functions
    "QnnCanonicalize",
    "Legalize",
    "SimplifyInference",
    "EliminateCommonSubexpr",
    "CombineParallelConv2D",
    "CombineParallelDense",
    "CombineParallelBatchMatmul",
    "FoldConstant",
    "DequantizedProducts",
    "FoldQuantizeScale",
    "IntegerProducts",
    "FoldScaleAxis",
    "FoldConstant",
    "SimplifyExpr",
    "CanonicalizeCast",
    "CanonicalizeOps",
    "SinkReshape",
    "FoldConstant",
    "ByteWeights",
    "AlterOpLayout",
    "FoldConstant",
    "SimplifyExpr",
    "FastMath",
    "FoldConstant",
    "DeadCodeElimination",
)

# Passes of level 3 that run at the default level as well: kernels over unknown sizes are fast in packed layouts only.
FROM_DEFAULT_LEVEL: tuple[str, ...] = ("EliminateCommonSubexpr", "FoldScaleAxis", "SinkReshape", "AlterOpLayout")
DEFAULT_LEVEL = 2

FUSE: tuple[str, ...] = ("FuseOps",)  # primitive functions; external compilers get theirs next

# From primitive functions to explicit memory.
LOWER: tuple[str, ...] = (
    "ToANormalForm",          # an order of evaluation, in which memory can be given and taken
    "InferType",
    "LambdaLift",             # local functions become global ones; loops become jumps
    "InferType",
    "ManifestAlloc",          # allocations and shape functions
)


def optimise(mod: IRModule, targets: Sequence[Any] = ()) -> IRModule:
    """The module after target-independent and layout passes; its devices, where it names any, are planned before and after."""
    known = targets or [Target.current() or Target("llvm")]
    more = FROM_DEFAULT_LEVEL if PassContext.current().opt_level >= DEFAULT_LEVEL else ()
    return settle(pipeline(OPTIMIZE, ("EtaExpand", *more))(place(mod, known)), known)


def lower(mod: IRModule, external_targets: Sequence[Any] = ()) -> IRModule:
    """An optimised module with explicit memory, ready for code generation; ``external_targets`` are those of external compilers."""
    return pipeline(LOWER, LOWER)(lower_external(pin(pipeline(FUSE, FUSE)(mod)), external_targets))


__all__ = ["FUSE", "LOWER", "OPTIMIZE", "lower", "optimise"]
