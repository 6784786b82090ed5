"""Passes of the loop language: each a pure function on ``PrimFunc`` and a registered pass of upstream's name."""
from .common import fresh_copy, prim_func_pass
from .dtype_legalize import BF16ComputeLegalize, FP8ComputeLegalize, bf16_compute_legalize, fp8_compute_legalize
from .flatten import FlattenBuffer, StorageFlatten, flatten
from .hoist_if import HoistIfThenElse, hoist_if_then_else
from .loop_partition import LoopPartition, loop_partition
from .lower_intrin import LowerIntrin, lower_intrin
from .remove_no_op import RemoveNoOp, remove_no_op
from .simplify import Simplify, simplify
from .storage_rewrite import StorageRewrite, storage_rewrite
from .unroll import UnrollLoop, unroll_all, unroll_loop
from .vectorize import VectorizeLoop, vectorize_loop
from .virtual_thread import InjectVirtualThread, inject_virtual_thread

__all__ = ["BF16ComputeLegalize", "FP8ComputeLegalize", "FlattenBuffer", "HoistIfThenElse", "InjectVirtualThread", "LoopPartition",
           "LowerIntrin", "RemoveNoOp", "Simplify", "StorageFlatten", "StorageRewrite", "UnrollLoop", "VectorizeLoop",
           "bf16_compute_legalize", "flatten", "fp8_compute_legalize", "fresh_copy", "hoist_if_then_else", "inject_virtual_thread",
           "loop_partition", "lower_intrin", "prim_func_pass", "remove_no_op", "simplify", "storage_rewrite", "unroll_all",
           "unroll_loop", "vectorize_loop"]
