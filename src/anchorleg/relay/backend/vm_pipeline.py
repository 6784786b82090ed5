"""The passes of the virtual machine's compiler, in order, on one page."""
from __future__ import annotations

from ...ir.module import IRModule
from ..transform.pipelines import pipeline

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
    "IntegerProducts",
    "FoldScaleAxis",
    "FoldConstant",
    "SimplifyExpr",
    "CanonicalizeCast",
    "CanonicalizeOps",
    "FoldConstant",
    "ByteWeights",
    "AlterOpLayout",
    "FoldConstant",
    "SimplifyExpr",
    "FastMath",
    "FoldConstant",
    "DeadCodeElimination",
)

# From an optimised module to one with explicit memory.
LOWER: tuple[str, ...] = (
    "FuseOps",                # primitive functions
    "ToANormalForm",          # an order of evaluation, in which memory can be given and taken
    "InferType",
    "LambdaLift",             # local functions become global ones; loops become jumps
    "InferType",
    "ManifestAlloc",          # allocations and shape functions
)


def optimise(mod: IRModule) -> IRModule:
    """The module after target-independent and layout passes."""
    return pipeline(OPTIMIZE, ("EtaExpand",))(mod)


def lower(mod: IRModule) -> IRModule:
    """An optimised module with explicit memory, ready for code generation."""
    return pipeline(LOWER, LOWER)(mod)


__all__ = ["LOWER", "OPTIMIZE", "lower", "optimise"]
