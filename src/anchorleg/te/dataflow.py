"""Schedule primitives that change the graph: ``cache_read``, ``cache_write`` and ``rfactor`` make new operations.

An operation that gets new inputs keeps its axes, so the loops already scheduled stay valid.
"""
from __future__ import annotations

from typing import Any, Callable, Sequence

from ..ir.expr import PrimExpr, Range
from ..ir.visit import rewrite
from ..support.errors import ArgumentError
from ..tir import op as tir_op
from ..tir.buffer import ProducerLoad
from ..tir.expr import IntImm, IterVar, Reduce, Var
from .operation import ComputeOp, ExternOp, Operation
from .relations import descendants
from .schedule import Schedule, Stage
from .tensor import Tensor


def cache_read(sch: Schedule, tensor: Tensor, scope: str, readers: Any) -> Tensor:
    """See :meth:`Schedule.cache_read`."""
    given = readers if isinstance(readers, (list, tuple)) else [readers]
    stages = list(dict.fromkeys(sch[r] for r in given))
    source = sch[tensor]
    axis = [IterVar(Range.from_min_extent(0, d), Var(f"ax{i}"), IterVar.DataPar) for i, d in enumerate(tensor.shape)]
    copy = ComputeOp(f"{tensor.op.name}.{scope}", "", None, axis, [ProducerLoad(tensor, [iv.var for iv in axis])])
    cached = copy.output(0)

    def swap(node: Any) -> Any:
        if isinstance(node, ProducerLoad) and node.producer.value_index == tensor.value_index and sch.stage_of_op(node.producer.op) is source:
            return ProducerLoad(cached, node.indices)
        return node

    for stage in stages:
        new = _with_inputs(stage.op, swap, lambda t: cached if sch.stage_of_op(t.op) is source and t.value_index == tensor.value_index else t)
        if new is stage.op:
            raise ArgumentError(f"cache_read: {stage.op.name} does not read {tensor.name}")
        sch.set_op(stage, new)
    sch.insert_stage(sch.stages.index(source) + 1, copy).scope = scope
    return cached


def _with_inputs(op: Operation, swap: Callable[[Any], Any], swap_tensor: Callable[[Tensor], Tensor]) -> Operation:
    """The operation with other tensors read, on the same axes."""
    if isinstance(op, ExternOp):
        inputs = [swap_tensor(t) for t in op.inputs]
        if all(a is b for a, b in zip(inputs, op.inputs)):
            return op
        return ExternOp(op.name, op.tag, op.attrs, inputs, op.input_placeholders, op.output_placeholders, op.body)
    if not isinstance(op, ComputeOp):
        return op
    memo: dict[int, Any] = {}
    body = [rewrite(b, swap, memo) for b in op.body]
    return op if all(a is b for a, b in zip(body, op.body)) else ComputeOp(op.name, op.tag, op.attrs, op.axis, body)  # type: ignore[arg-type]


def cache_write(sch: Schedule, tensor: Any, scope: str) -> Any:
    """See :meth:`Schedule.cache_write`."""
    tensors: list[Tensor] = list(tensor) if isinstance(tensor, (list, tuple)) else [tensor]
    stage = sch[tensors[0]]
    op = stage.op
    if not isinstance(op, ComputeOp):
        raise ArgumentError(f"cache_write: {tensors[0].name} is not computed by te.compute")
    if any(sch[t] is not stage for t in tensors) or len(tensors) != op.num_outputs:
        raise ArgumentError(f"cache_write: give all {op.num_outputs} outputs of {op.name} together")
    if stage.relations:
        raise ArgumentError(f"cache_write: call it before splitting or fusing the axes of {op.name}")
    cached_op = _on_new_axes(op, f"{op.name}.{scope}")
    cached = [cached_op.output(i) for i in range(op.num_outputs)]
    copy = ComputeOp(op.name, op.tag, op.attrs, op.axis, [ProducerLoad(t, [iv.var for iv in op.axis]) for t in cached])
    position = sch.stages.index(stage)
    sch.set_op(stage, copy)
    reduced = {id(iv) for iv in op.reduce_axis}
    stage.leaf_iter_vars = [iv for iv in stage.leaf_iter_vars if id(iv) not in reduced]
    stage.all_iter_vars = [iv for iv in stage.all_iter_vars if id(iv) not in reduced]
    sch.insert_stage(position, cached_op).scope = scope
    return cached if isinstance(tensor, (list, tuple)) else cached[0]


def _on_new_axes(op: ComputeOp, name: str) -> ComputeOp:
    """The same computation with output axes of its own (the reduction axes stay)."""
    axis = [IterVar(iv.dom, Var(f"{iv.var.name}.c", iv.var.dtype), iv.iter_type) for iv in op.axis]
    memo: dict[int, Any] = {id(old.var): (old.var, new.var) for old, new in zip(op.axis, axis)}
    return ComputeOp(name, op.tag, op.attrs, axis, [rewrite(b, lambda n: n, memo) for b in op.body])  # type: ignore[misc]


def rfactor(sch: Schedule, tensor: Tensor, axis: IterVar, factor_axis: int = 0) -> Any:
    """See :meth:`Schedule.rfactor`."""
    stage = sch[tensor]
    op, reduce = stage.op, stage.op.body[0] if isinstance(stage.op, ComputeOp) else None
    if not isinstance(reduce, Reduce) or not isinstance(op, ComputeOp):
        raise ArgumentError(f"rfactor: {tensor.name} is not computed by a reduction")
    if axis.iter_type != IterVar.CommReduce or not any(axis is iv for iv in stage.leaf_iter_vars):
        raise ArgumentError(f"rfactor: {axis.var.name} is no reduction loop of {op.name}; its loops are {stage._leaf_names()}")
    if reduce.init:
        raise ArgumentError(f"rfactor: the reduction {op.name} has start values (init=), which parts would count several times")
    where = factor_axis if factor_axis >= 0 else len(op.axis) + 1 + factor_axis
    if not 0 <= where <= len(op.axis):
        raise ArgumentError(f"rfactor: factor_axis {factor_axis} is not within the {len(op.axis) + 1} dimensions of the parts")
    parts_op = _parts(stage, op, reduce, axis, where)
    parts = [parts_op.output(i) for i in range(parts_op.num_outputs)]
    position = sch.stages.index(stage)
    relations, kept = _data_loops(stage, op)
    sch.set_op(stage, _total(op, reduce, parts, parts_op.axis[where], where))
    marks = stage.iter_var_attrs
    stage.reset_axes()
    data = {id(iv) for iv in op.axis}
    stage.relations = relations
    stage.leaf_iter_vars = kept + list(stage.op.reduce_axis)
    stage.all_iter_vars.extend(iv for iv in kept if id(iv) not in data)
    stage.iter_var_attrs = {iv: m for iv, m in marks.items() if any(iv is k for k in (*kept, *op.axis))}
    new = sch.insert_stage(position, parts_op)
    new.scope = stage.scope
    return parts[0] if len(parts) == 1 else tuple(parts)


def _data_loops(stage: Stage, op: ComputeOp) -> tuple[list[Any], list[IterVar]]:
    """The relations and loops of a stage that come from its output axes."""
    reduced = descendants(op.reduce_axis, stage.relations)
    relations = [r for r in stage.relations if id(r[0]) not in reduced]
    return relations, [iv for iv in stage.leaf_iter_vars if id(iv) not in reduced]


def _parts(stage: Stage, op: ComputeOp, reduce: Reduce, axis: IterVar, where: int) -> ComputeOp:
    """The operation of the parts: ``axis`` becomes an output axis, the other reduction loops stay reduced."""
    from .lower.affine import Affine
    from .lower.domains import overshoots, pass_down, pass_up
    from .lower.evaluate import Evaluator

    ctx = Affine()
    ev = Evaluator(ctx, lambda t, indices: ProducerLoad(t, [ctx.expr(i) for i in indices]))
    index = lambda e: ctx.const(e) if isinstance(e, int) else ev.run_index([e], {})[0]  # noqa: E731
    reduced = descendants(op.reduce_axis, stage.relations)
    relations = [r for r in stage.relations if id(r[0]) in reduced]
    extents = {id(iv): index(iv.dom.extent) for iv in op.reduce_axis}
    pass_down(ctx, relations, extents, index)
    loops = {id(iv): IterVar(Range.from_min_extent(0, ctx.expr(extents[id(iv)])), Var(iv.var.name, iv.var.dtype),
                             IterVar.DataPar if iv is axis else IterVar.CommReduce)
             for iv in stage.leaf_iter_vars if id(iv) in reduced}
    values = {}
    for key, new in loops.items():
        most = ctx.bounds(extents[key])[1]
        values[key] = ctx.var(new.var, 0, None if most is None else most - 1)
    pass_up(ctx, relations, extents, values)
    env = {id(iv.var): ctx.add(index(iv.dom.min), values[id(iv)]) for iv in op.reduce_axis}
    outer = [IterVar(iv.dom, Var(iv.var.name, iv.var.dtype), iv.iter_type) for iv in op.axis]
    for old, fresh in zip(op.axis, outer):
        env[id(old.var)] = ctx.var(fresh.var)
    source = ev.run(reduce.source, env)
    (condition,) = ev.run([reduce.condition], env)
    for value, extent in overshoots(ctx, relations, extents, values):
        condition = tir_op.all(condition, tir_op.likely(ctx.expr(value) < ctx.expr(extent)))
    inner = [iv for key, iv in loops.items() if key != id(axis)]
    outer.insert(where, loops[id(axis)])
    if inner:
        body: list[PrimExpr] = [Reduce(reduce.combiner, source, inner, condition, i) for i in range(len(source))]
    else:
        identity = reduce.combiner.identity_element
        body = [s if isinstance(condition, IntImm) and condition.value else tir_op.if_then_else(condition, s, e) for s, e in zip(source, identity)]
    return ComputeOp(f"{op.name}.rf", op.tag, op.attrs, outer, body)


def _total(op: ComputeOp, reduce: Reduce, parts: Sequence[Tensor], factored: IterVar, where: int) -> ComputeOp:
    """The operation that reduces the parts."""
    k = IterVar(factored.dom, Var(f"{factored.var.name}.v", factored.var.dtype), IterVar.CommReduce)
    at: list[Any] = [iv.var for iv in op.axis]
    at.insert(where, k.var)
    loads = [ProducerLoad(p, at) for p in parts]
    body = [Reduce(reduce.combiner, loads, [k], IntImm("bool", 1), i) for i in range(len(parts))]
    return ComputeOp(op.name, op.tag, op.attrs, op.axis, body)


