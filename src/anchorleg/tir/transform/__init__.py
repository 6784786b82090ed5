"""Passes of the loop language: each a pure function on ``PrimFunc`` and a registered pass of upstream's name."""
from .common import fresh_copy, prim_func_pass
from .flatten import FlattenBuffer, StorageFlatten, flatten
from .remove_no_op import RemoveNoOp, remove_no_op
from .simplify import Simplify, simplify
from .vectorize import VectorizeLoop, vectorize_loop
from .loop_partition import LoopPartition, loop_partition
