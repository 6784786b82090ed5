"""The strategy of ``vm.output_shapes``: the shape function that a user declared, in plain loops."""
from __future__ import annotations

from typing import Any, Sequence

from ....ir.op import Op
from ....support.errors import ArgumentError
from ..op import register_strategy
from .generic import naive_schedule, simple_strategy


def _compute(attrs: Any, inputs: Sequence[Any], out_type: Any) -> list[Any]:
    ranks = [int(r) for r in attrs.ranks]
    found = Op.get(attrs.op).get_attr("FShapeFunc")(attrs.attrs, list(inputs), ranks)
    outputs = list(found) if isinstance(found, (list, tuple)) else [found]
    if len(outputs) != len(ranks) or any(t.dtype != "int64" for t in outputs):
        raise ArgumentError(f"{attrs.op}: the shape function is expected to give {len(ranks)} tensors of int64, "
                            f"got {', '.join(str(t.dtype) for t in outputs) or 'none'}")
    return outputs


register_strategy("vm.output_shapes", simple_strategy(_compute, naive_schedule, "vm.output_shapes"))
