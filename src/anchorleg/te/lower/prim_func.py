"""From a schedule to a ``PrimFunc`` with multi-dimensional buffers."""
from __future__ import annotations

from typing import Any, Mapping, Sequence

from ...ir.attrs import DictAttrs
from ...ir.expr import IntImm
from ...support.errors import ArgumentError
from ...tir.buffer import Buffer
from ...tir.expr import Var
from ...tir.function import PrimFunc
from ..operation import Operation
from ..schedule import Schedule, create_schedule
from ..tensor import Tensor
from .affine import Affine
from .bounds import BoundInference
from .nest import NestBuilder


def schedule_to_prim_func(sch: Schedule, args: Sequence[Any], name: str = "main", binds: Mapping[Tensor, Buffer] | None = None) -> PrimFunc:
    """The function that runs ``sch``.

    ``args`` are its parameters in order: tensors (each becomes a buffer, or the one ``binds`` gives it), buffers, scalar Vars.
    Tensors that are computed but are no parameter live inside the function, in ``BufferRealize``.
    """
    buffers: dict[Tensor, Buffer] = dict(binds or {})
    params: list[Any] = []
    names: dict[str, int] = {}
    for a in args:
        params.append(_parameter(a, buffers, names))
    body = NestBuilder(_inferred(sch, list(buffers)), buffers).build()
    return PrimFunc(params, body, attrs=DictAttrs({"from_legacy_te_schedule": IntImm("bool", 1), "global_symbol": name, "tir.noalias": IntImm("bool", 1)}))


def _inferred(sch: Schedule, args: Sequence[Tensor]) -> BoundInference:
    """The bounds of a schedule; run again while a later stage asks for more threads of a kind than an earlier one knew of."""
    bounds = BoundInference(sch, Affine(), args)
    bounds.run()
    while bounds.threads_grew:
        bounds = BoundInference(sch, Affine(), args, bounds.thread_extents)
        bounds.run()
    return bounds


def _parameter(a: Any, buffers: dict[Tensor, Buffer], names: dict[str, int]) -> Any:
    if isinstance(a, Tensor):
        if a not in buffers:
            buffers[a] = Buffer(None, a.dtype, a.shape, (), 0, _unique(a.name, names))
        return buffers[a]
    if isinstance(a, (Buffer, Var)):
        return a
    raise ArgumentError(f"an argument of a function is expected to be a Tensor, Buffer or Var, got {type(a).__name__}")


def _unique(name: str, names: dict[str, int]) -> str:
    count = names[name] = names.get(name, -1) + 1
    return f"{name}_{count}" if count else name


def create_prim_func(ops: Sequence[Any], index_dtype_override: str | None = None) -> PrimFunc:
    """The function of these tensors (the inputs, then the outputs) under the default schedule."""
    tensors = [t.output(0) if isinstance(t, Operation) else t for t in ops]
    outputs = [t.op for t in tensors if t.op.input_tensors]
    return schedule_to_prim_func(create_schedule(outputs or [tensors[-1].op]), tensors)
