"""The order of passes, on one page.

Each pipeline is a list of pass names; a pass's own ``opt_level`` decides whether it runs under the current context.  A
name in ``ALWAYS`` runs whatever the level, because a later stage needs its result.
"""
from __future__ import annotations

from ...ir.module import IRModule
from ...ir.transform import ModulePass, Pass, PassContext, PassInfo, get_pass
from . import load_all

# What every executor's pipeline begins with: target independent simplification, then layouts, then folding again.
OPTIMIZE: tuple[str, ...] = (
    "InferType",
    "DynamicToStatic",        # dyn.* operators whose shapes turned out constant: everything below sees static shapes
    "RemoveUnusedFunctions",
    "InlineAll",              # executors of this pipeline make no calls of Relay functions
    "WidenAccumulation",      # half precision sums in float32; before Legalize, whose convolutions then do so too
    "QnnCanonicalize",        # quantised operators become integer ones, which everything below knows
    "Legalize",               # operators a target can't take become ones it can
    "SimplifyInference",      # batch_norm → scale and shift, dropout → identity: the next passes fold those
    "EliminateCommonSubexpr",
    "CombineParallelConv2D",
    "CombineParallelDense",
    "CombineParallelBatchMatmul",
    "FoldConstant",           # weights of the steps above become constants again
    "DequantizedProducts",    # products of dequantised bytes by integer ones, which the next but one multiplies as bytes
    "FoldQuantizeScale",      # one factor where bytes are scaled twice
    "IntegerProducts",        # products of shifted bytes by products of the bytes themselves; needs the weights constant
    "FoldScaleAxis",          # scales move into convolution weights
    "FoldConstant",
    "SimplifyExpr",
    "CanonicalizeCast",
    "CanonicalizeOps",        # bias_add → add with an expanded bias, which layouts and fusion understand
    "SinkReshape",            # biases and activations next to the products they follow, which they then fuse with
    "FoldConstant",
    "ByteWeights",            # large weights that are scaled bytes; before they are packed
    "AlterOpLayout",          # blocked layouts that the target's kernels want
    "FoldConstant",           # packed weights become constants
    "SimplifyExpr",           # adjacent layout transforms that appeared
    "FastMath",
    "FoldConstant",
    "DeadCodeElimination",
)

# From optimised Relay to primitive functions.
FUSE: tuple[str, ...] = ("FuseOps",)

ALWAYS = frozenset({"InferType", "DynamicToStatic", "RemoveUnusedFunctions", "InlineAll", "WidenAccumulation", "QnnCanonicalize", "Legalize", "SimplifyInference",
                    "CanonicalizeOps", "FuseOps"})


def pipeline(names: tuple[str, ...], always: tuple[str, ...] = ()) -> Pass:
    """The named passes as one, with those of ``ALWAYS`` (and of ``always``) run at every level."""
    load_all()

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        for name in names:
            each = get_pass(name)
            if (name in ALWAYS or name in always) and name not in ctx.disabled_pass or ctx.pass_enabled(each.info):
                mod = each(mod)
        return mod

    return ModulePass(run, PassInfo(0, "pipeline"))


__all__ = ["OPTIMIZE", "FUSE", "ALWAYS", "pipeline"]
