"""Passes of the loop language: each a pure function on ``PrimFunc`` and a registered pass of upstream's name."""
from .attributes import AnnotateEntryFunc, BindTarget, Filter, bind_target
from .common import fresh_copy, prim_func_pass
from .dtype_legalize import BF16ComputeLegalize, FP8ComputeLegalize, bf16_compute_legalize, fp8_compute_legalize
from .flatten import FlattenBuffer, StorageFlatten, flatten
from .hoist_if import HoistIfThenElse, hoist_if_then_else
from .loop_partition import LoopPartition, loop_partition
from .lower_blocks import (ConvertBlocksToOpaque, LowerBlocks, LowerInitBlock, LowerMatchBuffer, LowerOpaqueBlock, convert_blocks_to_opaque,
                           lower_blocks, lower_init_block, lower_match_buffer, lower_opaque_block)
from .lower_intrin import LowerIntrin, lower_intrin
from .merge_loops import MergeLoops, merge_loops
from .moves import HintMoves, HoistMoves, hint_moves, hoist_moves
from .remove_no_op import RemoveNoOp, remove_no_op
from .simplify import Simplify, simplify
from .storage_rewrite import StorageRewrite, storage_rewrite
from .unfuse import UnfuseLoops, unfuse_loops
from .unroll import UnrollAll, UnrollLoop, unroll_all, unroll_loop
from .vectorize import VectorizeLoop, vectorize_loop
from .virtual_thread import InjectVirtualThread, inject_virtual_thread

__all__ = ["AnnotateEntryFunc", "BF16ComputeLegalize", "BindTarget", "ConvertBlocksToOpaque", "Filter", "LowerBlocks", "LowerInitBlock", "LowerMatchBuffer", "LowerOpaqueBlock",
           "bind_target", "convert_blocks_to_opaque", "lower_blocks", "lower_init_block", "lower_match_buffer", "lower_opaque_block",
           "FP8ComputeLegalize", "FlattenBuffer", "HintMoves", "HoistIfThenElse", "HoistMoves", "InjectVirtualThread", "LoopPartition",
           "LowerIntrin", "MergeLoops", "RemoveNoOp", "Simplify", "StorageFlatten", "StorageRewrite", "UnfuseLoops", "UnrollAll", "UnrollLoop", "VectorizeLoop",
           "bf16_compute_legalize", "flatten", "fp8_compute_legalize", "fresh_copy", "hint_moves", "hoist_if_then_else", "hoist_moves", "inject_virtual_thread",
           "loop_partition", "lower_intrin", "merge_loops", "prim_func_pass", "remove_no_op", "simplify", "storage_rewrite", "unfuse_loops", "unroll_all",
           "unroll_loop", "vectorize_loop"]
