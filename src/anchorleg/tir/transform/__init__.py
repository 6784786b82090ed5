"""Passes of the loop language: each a pure function on ``PrimFunc`` and a registered pass of upstream's name."""
from .common import fresh_copy, prim_func_pass
from .flatten import FlattenBuffer, StorageFlatten, flatten
from .remove_no_op import RemoveNoOp, remove_no_op
from .simplify import Simplify, simplify
from .vectorize import VectorizeLoop, vectorize_loop
from .loop_partition import LoopPartition, loop_partition
from .dtype_legalize import BF16ComputeLegalize, FP8ComputeLegalize, bf16_compute_legalize, fp8_compute_legalize
from .hoist_if import HoistIfThenElse, hoist_if_then_else
from .lower_intrin import LowerIntrin, lower_intrin
from .storage_rewrite import StorageRewrite, storage_rewrite
from .unroll import UnrollLoop, unroll_all, unroll_loop
