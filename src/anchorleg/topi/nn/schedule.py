"""Schedules that are right for every computation, and the parts that faster ones are made of.

A fused kernel is a graph of operations with one or more outputs.  What only moves data is inlined; the *anchor*, the reduction
whose result the first output takes element by element, is computed in registers, tile by tile, inside the loops of that output;
every other reduction has loops of its own.
"""
from __future__ import annotations

from typing import Any, Sequence

from ... import te
from ...ir.expr import IntImm
from ...ir.visit import post_order
from ...te import tag
from ...te.operation import ComputeOp, Operation, PlaceholderOp
from ...te.schedule import Schedule, Stage
from ...te.tensor import Tensor
from ...tir.buffer import ProducerLoad
from ...tir.expr import Add, IterVar, Mul, Sub, Var

MIN_PARALLEL_WORK = 16384  # multiply-adds below which a second thread costs more than it brings


def lanes_of(target: Any, dtype: str) -> int:
    """Elements of ``dtype`` in one vector register of the target's processor."""
    if target is None or target.kind.name != "llvm":
        return 1 if target is not None and target.kind.name == "c" else 4
    from ...target.cpu import resolve_cpu

    return resolve_cpu(target).lanes(dtype)


def operations(outs: Sequence[Tensor]) -> list[Operation]:
    """Every operation the outputs need, producers first."""
    from ..utils import operations as found

    return found(outs)


def consumers_of(ops: Sequence[Operation]) -> dict[int, list[Operation]]:
    """Who reads each operation (by ``id``)."""
    table: dict[int, list[Operation]] = {id(op): [] for op in ops}
    for op in ops:
        for t in op.input_tensors:
            table[id(t.op)].append(op)
    return table


def same_shape(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether two shapes are known to be equal."""
    return len(a) == len(b) and all(x is y or (isinstance(x, IntImm) and isinstance(y, IntImm) and x.value == y.value) for x, y in zip(a, b))


def find_anchor(final: Operation) -> Operation | None:
    """The reduction whose result ``final`` takes element by element (itself, or through element-wise operations)."""
    shape, op = final.output(0).shape, final
    stack, seen = [op], set()
    while stack:
        op = stack.pop()
        if id(op) in seen or not isinstance(op, ComputeOp) or not same_shape(op.output(0).shape, shape):
            continue
        seen.add(id(op))
        if op.reduce_axis:
            return op if op.num_outputs == 1 else None
        if op is final or tag.is_broadcast(op.tag):
            stack.extend(t.op for t in op.input_tensors)
    return None


def inline_producers(s: Schedule, outs: Sequence[Tensor], keep: Sequence[Operation] = ()) -> list[Operation]:
    """Inlines what only moves data (not outputs, not padding that a product reads many times); gives the operations left."""
    ops = [op for op in operations(outs) if not isinstance(op, PlaceholderOp)]
    readers = consumers_of(operations(outs))
    left = []
    for op in ops:
        is_out = any(op is t.op for t in outs) or any(op is k for k in keep)
        if not is_out and _inlinable(op, readers[id(op)]):
            s[op].compute_inline()
        else:
            left.append(op)
    return left


def _inlinable(op: Operation, readers: Sequence[Operation]) -> bool:
    if not isinstance(op, ComputeOp) or op.reduce_axis:
        return False
    if op.tag == "const_matrix" or not op.axis:
        return True
    if op.tag.endswith(",pad"):
        return all(not getattr(r, "reduce_axis", ()) or (r.tag.startswith("pool_") and _packed_last(op)) for r in readers)
    return tag.is_injective(op.tag)


def _packed_last(op: ComputeOp) -> bool:
    """Whether padding leaves the last axis alone, so that its conditions hold for whole vectors."""
    source = op.input_tensors[0] if op.input_tensors else None
    return source is not None and len(source.shape) == len(op.axis) and same_shape(source.shape[-1:], op.output(0).shape[-1:])


def stride_along(index: Any, var: Var) -> int | None:
    """How far ``index`` moves when ``var`` grows by one; None when it is no linear function of it."""
    if index is var:
        return 1
    if isinstance(index, (Add, Sub)):
        a, b = stride_along(index.a, var), stride_along(index.b, var)
        return None if a is None or b is None else a + b if isinstance(index, Add) else a - b
    if isinstance(index, Mul) and isinstance(index.b, IntImm):
        a = stride_along(index.a, var)
        return None if a is None else a * index.b.value
    return 0 if not any(n is var for n in post_order(index)) else None


def reads_contiguously(op: ComputeOp, var: Var) -> bool:
    """Whether neighbouring values of ``var`` read neighbouring (or the same) elements of every input."""
    for node in post_order(op.body):
        if not isinstance(node, ProducerLoad):
            continue
        *outer, last = [stride_along(i, var) for i in node.indices] or [0]
        if any(s != 0 for s in outer) or last not in (0, 1):
            return False
    return True


def extent_of(iv: IterVar) -> int | None:
    """The constant extent of an axis of an operation, or None."""
    return iv.dom.extent.value if iv.dom is not None and isinstance(iv.dom.extent, IntImm) else None


def work_of(op: Operation) -> float:
    """Elements computed times terms of the reduction; infinite when not constant."""
    total = 1.0
    for iv in (*op.axis, *op.reduce_axis):
        extent = extent_of(iv)
        total *= float("inf") if extent is None else max(extent, 1)
    return total


def parallelise(s: Schedule, stage: Stage, axes: Sequence[IterVar], work: float) -> IterVar | None:
    """Shares the fused ``axes`` (outermost, in order) among threads when there is enough to do; gives the fused axis."""
    if not axes:
        return None
    fused = stage.fuse(*axes) if len(axes) > 1 else axes[0]
    if work >= MIN_PARALLEL_WORK:
        stage.parallel(fused)
    return fused


def tile_extent(extent: int | None, lanes: int, most: int) -> int:
    """The widest tile of at most ``most`` vectors that divides ``extent``; one vector, with a remainder, when none does; 0 for scalars."""
    if extent is None or extent < lanes:
        return 0
    for count in range(most, 0, -1):
        if extent % (count * lanes) == 0:
            return count * lanes
    return lanes


def schedule_other(s: Schedule, op: Operation, target: Any) -> None:
    """Loops of an operation that is computed as a whole."""
    from ..injective import access_of, schedule_loops
    from ..reduction_schedule import schedule_reduction

    if not isinstance(op, ComputeOp) or not op.axis or s[op].relations:
        return
    if not op.reduce_axis:
        schedule_loops(s[op], access_of(s))
    elif op.num_outputs == 1 and not s[op].is_output:
        schedule_reduction(s, s[op])
    else:
        schedule_reduction_stage(s, op, lanes_of(target, op.output(0).dtype))


def schedule_reduction_stage(s: Schedule, op: Operation, lanes: int) -> None:
    """Loops of a reduction on its own: outer axes among threads; where neighbours read neighbours, vectors of results."""
    stage, axes = s[op], list(op.axis)
    if not axes:
        return
    last = axes[-1]
    if tile_extent(extent_of(last), lanes, 1) and reads_contiguously(op, last.var):
        outer, inner = stage.split(last, factor=lanes)
        stage.reorder(outer, *op.reduce_axis, inner)
        stage.vectorize(inner)
        axes[-1] = outer
    parallelise(s, stage, axes, work_of(op))


def accumulate_locally(s: Schedule, anchor: Operation, final: Operation) -> Tensor:
    """Puts the anchor's sums into registers; gives the tensor to attach to the output's loops."""
    if anchor is final:
        return s.cache_write(anchor.output(0), "local")
    s[anchor].set_scope("local")
    return anchor.output(0)


def schedule_anchor(s: Schedule, anchor: Operation, final: Operation, lanes: int) -> None:
    """Computes the anchor in tiles of a few vectors, inside the loops of the output."""
    last_axis = anchor.axis[-1]
    contiguous = reads_contiguously(anchor, last_axis.var)
    tile = tile_extent(extent_of(last_axis), lanes, 4) if contiguous else 0
    local = accumulate_locally(s, anchor, final)
    stage, axes = s[final], list(final.axis)
    if tile:
        xo, xi = stage.split(axes[-1], factor=tile)
        _vectors(stage, xi, tile, lanes)
        at, outer = xo, axes[:-1]
    else:
        at, outer = axes[-1], axes[:-1]
    fused = parallelise(s, stage, outer, work_of(anchor))
    if fused is None and work_of(anchor) >= MIN_PARALLEL_WORK:
        stage.parallel(at)
    inner = s[local]
    inner.compute_at(stage, at)
    ins = list(local.op.axis)
    if tile:
        vo, vi = inner.split(ins[-1], factor=lanes)
        inner.reorder(*local.op.reduce_axis, *ins[:-1], vo, vi)
        inner.unroll(vo)
        inner.vectorize(vi)


def _vectors(stage: Stage, axis: IterVar, extent: int, lanes: int) -> None:
    outer, inner = stage.split(axis, factor=lanes)
    stage.unroll(outer)
    stage.vectorize(inner)


def schedule_for_small_memory(s: Schedule, anchor: Operation, final: Operation) -> None:
    """Plain loops that make a few neighbouring results at once in registers; of padding, only the rows that a row of results reads exist at a time."""
    sums = s.cache_write(anchor.output(0), "local")
    stage, axes = s[final], list(final.axis)
    pads = [t.op for t in anchor.input_tensors if t.op.tag.endswith(",pad") and isinstance(t.op, ComputeOp)]
    rows, across = _rows_and_others(anchor, final) if pads else (axes[:-1], [])
    width = next((n for n in (4, 3, 2) if (extent_of(axes[-1]) or 1) % n == 0), 1)
    at, within = stage.split(axes[-1], factor=width)
    stage.reorder(*rows, *across, at, within)
    _accumulate(s, s[sums], anchor, final, at, within)
    for pad in pads if rows else ():
        s[pad].compute_at(stage, rows[-1])


def _accumulate(s: Schedule, sums: Stage, anchor: Operation, final: Operation, at: IterVar, within: IterVar) -> None:
    """Sums of the results ``within`` a step of ``at``, each a variable of its own; what comes after reads them one by one."""
    if anchor is final:
        s[final].unroll(within)
    else:
        s[anchor].set_scope("local")
        s[anchor].compute_at(s[final], at)
        s[anchor].unroll(anchor.axis[-1])
    sums.compute_at(s[final], at)
    sums.reorder(*_in_memory_order(sums.op), *sums.op.axis)
    sums.unroll(sums.op.axis[-1])


def _rows_and_others(anchor: Operation, final: Operation) -> tuple[list[IterVar], list[IterVar]]:
    """The axes of ``final``, but for the last, outermost first: those that tell which rows of its padded input the anchor reads, and the others, such
    as the channels of a convolution's result."""
    read: set[int] = set()
    for node in post_order(anchor.body):
        if isinstance(node, ProducerLoad) and node.producer.op.tag.endswith(",pad"):
            read |= {id(n) for i in node.indices for n in post_order(i)}
    outer = len(final.axis) - (2 if _channels_last(anchor) else 1)
    rows = [f for a, f in zip(anchor.axis[:outer], final.axis[:outer]) if id(a.var) in read]
    return rows, [f for f in final.axis[:-1] if not any(f is r for r in rows)]


def _in_memory_order(op: ComputeOp) -> list[IterVar]:
    """The axes of a reduction, the one that moves least through the first tensor innermost."""
    indices = next((n.indices for n in post_order(op.body) if isinstance(n, ProducerLoad)), ())

    def place(axis: IterVar) -> int:
        return max((at for at, index in enumerate(indices) if any(n is axis.var for n in post_order(index))), default=-1)

    return sorted(op.reduce_axis, key=place)


def _channels_last(anchor: Operation) -> bool:
    """Whether the last axis of the result is no step over the padded input: its index there has no tap of the reduction added."""
    last, taps = anchor.axis[-1].var, {id(iv.var) for iv in anchor.reduce_axis}
    for node in post_order(anchor.body):
        if isinstance(node, ProducerLoad) and node.producer.op.tag.endswith(",pad"):
            inside = {id(n) for n in post_order(node.indices[-1])}
            return not (id(last) in inside and taps & inside)
    return False


def schedule_default(outs: Any, target: Any = None) -> Schedule:
    """A schedule for any fused computation on the processor."""
    outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    s = te.create_schedule([t.op for t in outs])
    final = outs[0].op
    anchor = find_anchor(final) if len(outs) == 1 and final.axis else None
    for op in inline_producers(s, outs):
        if op is anchor and op is not final:
            continue
        if op is final and anchor is not None:
            if target is not None and target.kind.name == "c":
                schedule_for_small_memory(s, anchor, final)
            else:
                schedule_anchor(s, anchor, final, lanes_of(target, op.output(0).dtype))
        else:
            schedule_other(s, op, target)
    return s
