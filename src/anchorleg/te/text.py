"""A schedule as text: each stage with what it computes, where, and in which loops."""
from __future__ import annotations

from typing import Any, Callable

from ..tir.expr import IterVar
from .operation import ComputeOp, ExternOp, Operation, PlaceholderOp
from .relations import Fuse, Relation, Split
from .schedule import AttachType, Schedule, Stage

_MARKS = {IterVar.Unrolled: "unrolled", IterVar.Vectorized: "vectorized", IterVar.Parallelized: "parallel", IterVar.Tensorized: "tensorized"}


def schedule_text(schedule: Schedule) -> str:
    """All stages, producers first."""
    return "\n".join(_stage(s) for s in schedule.stages)


def _stage(stage: Stage) -> str:
    op = stage.op
    lines = [f"{op.name}: {_outputs(op)}{_place(stage)}", *(f"    {line}" for line in _definition(op))]
    if not isinstance(op, PlaceholderOp) and stage.attach_type != AttachType.INLINE:
        lines += [f"    {_relation(r)}" for r in stage.relations]
        lines += [f"    loops: {', '.join(_loop(stage, iv) for iv in stage.leaf_iter_vars) or 'none'}"]
    return "\n".join(lines)


def _outputs(op: Operation) -> str:
    tensors = [op.output(i) for i in range(op.num_outputs)]
    return ", ".join(f"{t.dtype}[{', '.join(map(str, t.shape))}]" for t in tensors)


def _place(stage: Stage) -> str:
    if isinstance(stage.op, PlaceholderOp):
        return ", an input"
    memory = f" in {stage.scope} memory" if stage.scope and stage.scope != "global" else ""
    if stage.attach_type == AttachType.INLINE:
        return ", inlined"
    if stage.attach_type == AttachType.SCOPE:
        return f"{memory}, computed inside {stage.attach_stage.op.name} at {stage.attach_ivar.var.name}"
    return memory


def _definition(op: Operation) -> list[str]:
    if isinstance(op, ExternOp):
        return str(op.body).splitlines()
    if not isinstance(op, ComputeOp):
        return []
    index = ", ".join(iv.var.name for iv in op.axis)
    return [f"{op.name}[{index}] = {body}" for body in op.body]


def _name(iv: Any) -> str:
    return iv.var.name


def _split(r: Split) -> str:
    size = f"factor {r.factor}" if r.factor is not None else f"{r.nparts} parts"
    return f"split {_name(r.parent)} into {_name(r.outer)}, {_name(r.inner)} ({size})"


def _fuse(r: Fuse) -> str:
    return f"fuse {_name(r.outer)}, {_name(r.inner)} into {_name(r.fused)}"


_RELATIONS: dict[type, Callable[[Any], str]] = {Split: _split, Fuse: _fuse}


def _relation(relation: Relation) -> str:
    return _RELATIONS.get(type(relation), lambda r: f"one loop of length 1: {_name(r.iter)}")(relation)


def _loop(stage: Stage, iv: IterVar) -> str:
    attr = stage.iter_var_attrs.get(iv)
    notes = ["reduction"] if iv.iter_type == IterVar.CommReduce else []
    if attr is not None:
        notes += [_MARKS[attr.iter_type]] if attr.iter_type in _MARKS else []
        notes += [f"bound to {_name(attr.bind_thread)}"] if attr.bind_thread is not None else []
        notes += [kind for kind, _ in attr.pragmas]
    return _name(iv) + (f" ({', '.join(notes)})" if notes else "")
