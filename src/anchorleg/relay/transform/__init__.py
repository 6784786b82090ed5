"""Passes of the graph language, under upstream's names.  Each is in a file of its own, loaded when first asked for."""
from __future__ import annotations

import importlib
from typing import Any

from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, PrintIR, Sequential, module_pass

# public name → file
_PUBLIC = {
    "AlterOpLayout": "alter_op_layout", "AnnotateTarget": "annotate_target", "MergeCompilerRegions": "merge_compiler_regions",
    "MergeComposite": "merge_composite", "PartitionGraph": "partition_graph", "AnnotateSpans": "annotate_spans", "AnnotateUsedMemory": "annotate_used_memory", "SpanCheck": "annotate_spans", "BackwardFoldScaleAxis": "fold_scale_axis",
    "ByteWeights": "byte_weights", "CanonicalizeCast": "canonicalize_cast", "CapturePostDfsIndexInSpans": "annotate_spans", "CanonicalizeOps": "canonicalize_ops", "CombineParallelBatchMatmul": "combine_parallel", "CombineParallelConv2D": "combine_parallel",
    "CombineParallelDense": "combine_parallel", "ConvertLayout": "convert_layout", "DeadCodeElimination": "dead_code_elimination", "DequantizedProducts": "dequantized_products", "FoldQuantizeScale": "fold_quantize_scale",
    "Defunctionalization": "defunctionalization", "DefuseOps": "defuse_ops", "DynamicToStatic": "dynamic_to_static", "EliminateCommonSubexpr": "eliminate_common_subexpr",
    "EtaExpand": "eta_expand", "FastMath": "fast_math", "FoldConstant": "fold_constant", "FoldExplicitPadding": "fold_explicit_padding", "FoldScaleAxis": "fold_scale_axis",
    "FirstOrderGradient": "first_order_gradient", "ForwardFoldScaleAxis": "fold_scale_axis", "FuseOps": "fuse_ops", "gradient": "gradients", "InferType": "infer_type", "InferTypeLocal": "infer_type",
    "Inline": "inline", "InlineAll": "inline", "IntegerProducts": "integer_products", "LambdaLift": "lambda_lift", "Legalize": "legalize", "ManifestAlloc": "manifest_alloc", "ManifestLifetimes": "manifest_lifetimes", "MemoryPlan": "memory_plan", "PlanDevices": "plan_devices", "QnnCanonicalize": "qnn_canonicalize", "RemoveStandaloneReshapes": "remove_standalone_reshapes", "RemoveUnusedFunctions": "remove_unused_functions",
    "SimplifyExpr": "simplify_expr", "SinkReshape": "sink_reshape", "SimplifyInference": "simplify_inference", "ToANormalForm": "normal_forms", "ToBasicBlockNormalForm": "basic_block_normal_form",
    "SplitArgs": "split_args", "OutlineCompilerFunctionsWithExistingGlobalSymbols": "compiler_functions",
    "MarkCompilerFunctionsAsExtern": "compiler_functions", "InlineCompilerFunctionsBoundTo": "compiler_functions",
    "ToGraphNormalForm": "normal_forms", "WidenAccumulation": "widen_accumulation", "FunctionPass": "function_passes", "function_pass": "function_passes",
}


def load_all() -> None:
    """Loads every pass, so that all are registered by name."""
    for file in sorted(set(_PUBLIC.values())):
        importlib.import_module(f"{__name__}.{file}")


def build_config(opt_level: int = 2, required_pass: Any = None, disabled_pass: Any = None, trace: Any = None) -> PassContext:
    """A pass context (an older name of it)."""
    return PassContext(opt_level, required_pass, disabled_pass)


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(importlib.import_module(f"{__name__}.{_PUBLIC[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])


__all__ = ["ModulePass", "Pass", "PassContext", "PassInfo", "PrintIR", "Sequential", "module_pass", "load_all", *_PUBLIC]
