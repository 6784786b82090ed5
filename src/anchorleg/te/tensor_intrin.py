"""Tensor intrinsics: hand-written inner kernels that ``Stage.tensorize`` puts in place of loops."""
from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence

from ..ir.expr import PrimExpr
from ..support.errors import ArgumentError, TypeMismatchError
from ..tir.buffer import Buffer, decl_buffer
from ..tir.stmt import Evaluate, Stmt
from .operation import Operation, PlaceholderOp
from .tensor import Tensor


class TensorIntrin:
    """What the intrinsic computes (``op`` over ``inputs``) and the statements that do it, over ``buffers`` (inputs, then outputs).

    ``body`` does the whole computation; ``reduce_init`` and ``reduce_update`` do it in steps, inside reduction loops.
    """

    __slots__ = ("name", "op", "inputs", "buffers", "scalar_params", "body", "reduce_init", "reduce_update")

    def __init__(self, name: str, op: Operation, inputs: Sequence[Tensor], buffers: Sequence[Buffer], scalar_params: Sequence[Any],
                 body: Stmt | None, reduce_init: Stmt | None, reduce_update: Stmt | None) -> None:
        self.name, self.op, self.inputs, self.buffers = name, op, tuple(inputs), tuple(buffers)
        self.scalar_params = tuple(scalar_params)
        self.body, self.reduce_init, self.reduce_update = body, reduce_init, reduce_update


def decl_tensor_intrin(op: Operation, fcompute: Callable[..., Any], name: str = "tensor_intrin", binds: Mapping[Tensor, Buffer] | None = None,
                       scalar_params: Sequence[Any] | None = None, default_buffer_params: Mapping[str, Any] | None = None) -> TensorIntrin:
    """Declares an intrinsic: ``op`` says what it computes, ``fcompute(ins, outs)`` gives the statement over buffers.

    ``fcompute`` returns one statement, or ``(body, reduce_init, reduce_update)``; ``binds`` gives tensors buffers of a certain layout.
    """
    if not isinstance(op, Operation):
        raise TypeMismatchError(f"decl_tensor_intrin expects an operation, got {type(op).__name__}")
    inputs = op.input_tensors
    for t in inputs:
        if not isinstance(t.op, PlaceholderOp):
            raise ArgumentError(f"decl_tensor_intrin: input {t.name} of {name} is expected to be a placeholder")
    tensors = [*inputs, *(op.output(i) for i in range(op.num_outputs))]
    buffers = [(binds or {}).get(t) or decl_buffer(t.shape, t.dtype, t.op.name, **dict(default_buffer_params or {})) for t in tensors]
    extra = [list(scalar_params)] if scalar_params else []
    result = fcompute(buffers[:len(inputs)], buffers[len(inputs):], *extra)
    parts = [_as_stmt(p) for p in (result if isinstance(result, (list, tuple)) else [result])]
    parts += [None] * (3 - len(parts))
    return TensorIntrin(name, op, inputs, buffers, scalar_params or (), *parts[:3])


def _as_stmt(part: Any) -> Stmt | None:
    return Evaluate(part) if isinstance(part, PrimExpr) else part
